#pragma once

#include <functional>
#include <memory>

#include "api/peer.h"
#include "api/resume.h"
#include "base/result.h"
#include "gpu_platform/v1/planning.pb.h"
#include "model/job.h"

namespace gpu_platform::api {

struct CallContext;

// The calls of PlanningService: questions about what would be. Safe from any thread.
class PlanningCalls {
 public:
  explicit PlanningCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::Explanation> explain(const v1::ExplainJobRequest& request,
                                        const Peer& peer) const;
  // Returns the job as it would be accepted, for a submission that is judged and not carried out.
  // `done` is called through `resume`, or at once when the request is refused at the door.
  using Accepted = base::Result<std::shared_ptr<const model::Job>>;
  void judge(const v1::JobSpec& request, const Peer& peer, Resume resume,
             std::function<void(Accepted)> done) const;
  // Returns the present answer about it.
  v1::CheckResult check(const model::Job& job) const;
  // A job that could never run is an answer; other refusals stay errors.
  static base::Result<v1::CheckResult> check_refused(const base::Error& error);
  base::Result<v1::Needs> size_model_server(const v1::ModelSizingRequest& request) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
