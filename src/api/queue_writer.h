#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/job_reader.h"
#include "base/result.h"

namespace gpu_platform::api {

// The waiting jobs that the caller may see, from the head (all users' with `all`), written in
// pieces: "{"jobs":[", job after job, "],"total":…}". Which they are, and their places, is fixed
// when it is made; how each is, when its turn comes. It ends early where a page would be more than
// `max_bytes`, as it does at the limit of jobs: next_page then says where to go on.
//
// Thread: one. Memory: some bytes for each job of the page, and between rest() and the next piece
// nothing else.
class QueueWriter {
 public:
  // An error where the request's page token is none.
  static base::Result<QueueWriter> open(const JobReader& reader, model::Caller caller,
                                        const v1::GetQueueRequest& request, std::size_t max_bytes);

  // Appends at least `enough` bytes unless the end comes first; true when there is more.
  bool append(std::string& out, std::size_t enough);
  // Lets go of the snapshot; the next piece takes the newest.
  void rest();

 private:
  struct Entry {
    model::JobId job;
    std::uint64_t position = 0;               // in line; 0: it is not in the queue yet
    std::unique_ptr<v1::Job> expected_start;  // with what is expected of its start; may be null
  };
  QueueWriter(const JobReader& reader, model::Caller caller, std::size_t max_bytes);
  std::vector<Entry> waiting(bool of_all);
  static base::Result<std::size_t> begin_of_page(const v1::GetQueueRequest& request,
                                                 const std::vector<Entry>& all);
  base::Status choose(const v1::GetQueueRequest& request);
  void look();
  void append_entry(const Entry& entry, std::string& out);
  std::string tail();

  const JobReader* reader_;
  model::Caller caller_;
  model::View view_;
  std::size_t max_bytes_;
  std::shared_ptr<const controller::Snapshot> snapshot_;  // null while it rests
  std::shared_ptr<SnapshotExplainer> explainer_;          // null while it rests
  std::vector<Entry> entries_;
  std::uint64_t hidden_ = 0;  // waiting jobs that the caller may not see
  std::size_t next_ = 0;
  std::size_t written_bytes_ = 0;
  bool has_written_one_ = false;
  bool is_begun_ = false;
  v1::GetQueueResponse rest_of_answer_;  // without its jobs
  std::size_t begin_ = 0;                // the place of the page's first job
};

}  // namespace gpu_platform::api
