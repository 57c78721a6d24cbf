#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/job_reader.h"
#include "base/result.h"
#include "controller/snapshot.h"
#include "gpu_platform/v1/telemetry.pb.h"
#include "model/access_rules.h"
#include "telemetry/frame.h"

// Which readings a client asks for, and which of them it may see.

namespace gpu_platform::api {

// What the client named, once and for all. A job stands for its GPUs of the moment.
struct ReadingFilter {
  std::set<std::string, std::less<>> uuids;
  std::set<std::string, std::less<>> nodes;
  std::set<model::JobId> jobs;

  bool is_for_all() const { return uuids.empty() && nodes.empty() && jobs.empty(); }
  bool is_for_jobs_alone() const { return uuids.empty() && nodes.empty() && !jobs.empty(); }
};

// Both requests have the same filters. kNotFound also for a job that the caller may not see.
base::Result<ReadingFilter> to_filter(const v1::ListReadingsRequest& request,
                                      const JobReader& reader, const model::Caller& caller);
base::Result<ReadingFilter> to_filter(const v1::WatchReadingsRequest& request,
                                      const JobReader& reader, const model::Caller& caller);

// The filter as of one snapshot, for one caller with its rights of the moment. A part of a GPU is
// seen by those alone who may see its job.
class ReadingView {
 public:
  ReadingView(const ReadingFilter& filter, const JobReader& reader, const model::Caller& caller);

  bool is_wanted(const telemetry::Frame& frame) const;
  // Returns whether every job of the filter has ended, or is not seen any more.
  bool have_all_jobs_ended() const { return have_all_ended_; }
  void put(const telemetry::Frame& frame, v1::Reading& out) const;

 private:
  void add_gpus_of(const model::Job& job);
  bool is_named(const telemetry::Subject& subject) const;

  const ReadingFilter& filter_;
  const model::Caller& caller_;
  const model::View view_;
  const std::shared_ptr<const controller::Snapshot> snapshot_;
  // The GPUs that a job of the filter has as a whole.
  std::set<std::string, std::less<>> uuids_of_jobs_;
  bool have_all_ended_ = true;
};

}  // namespace gpu_platform::api
