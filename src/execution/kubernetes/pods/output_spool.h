#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "model/ids.h"

// The output of jobs' pods in files of the daemon, in the form that read_kept_output() reads. The
// pods of a gang share a file, in the order in which their output comes. What was stored before a
// restart is stored anew: the cluster has all of it as long as the pod is there. Thread: one owner;
// readers open the files on their own.

namespace gpu_platform::execution {

class OutputSpool {
 public:
  // `folder` is made if it is not there, for the daemon alone. `limit_bytes`: of all that one
  // attempt prints so much is kept, with a mark behind it; 0: all.
  static base::Result<OutputSpool> open(std::string folder, std::uint64_t limit_bytes);

  const std::string& folder() const { return folder_; }
  std::uint64_t limit() const { return limit_bytes_; }
  std::string path(model::AttemptId attempt) const;

  // Bytes as they come from a rank.
  base::Status append(model::AttemptId attempt, std::uint32_t rank, std::string_view bytes);
  // All that a rank printed: stores what is missing of it.
  base::Status complete(model::AttemptId attempt, std::uint32_t rank, std::string_view all);
  // The bytes that have come from a rank since the daemon's start.
  std::uint64_t received(model::AttemptId attempt, std::uint32_t rank) const;
  // Nothing more is stored of the attempt; its file stays.
  void close(model::AttemptId attempt);
  // Removes the files of a job.
  void remove(model::JobId job) const;

 private:
  struct Written {
    std::uint64_t bytes = 0;                         // in the file
    bool is_cut = false;                             // the limit was reached
    std::map<std::uint32_t, std::uint64_t> by_rank;  // that came from each
  };
  OutputSpool(std::string folder, std::uint64_t limit_bytes)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}
  base::Status store(Written& written, const std::string& path, std::string_view bytes);

  std::string folder_;
  std::uint64_t limit_bytes_ = 0;
  std::map<model::AttemptId, Written> written_;
};

}  // namespace gpu_platform::execution
