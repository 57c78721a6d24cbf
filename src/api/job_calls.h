#pragma once

#include <string_view>

#include "api/changing_call.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/command.h"

namespace gpu_platform::api {

struct CallContext;

// The calls of JobService that answer once, without the channels. Requests have passed
// check_limits. Safe from any thread.
class JobCalls {
 public:
  explicit JobCalls(const CallContext& context) : context_(context) {}

  base::Result<v1::Job> get(const v1::GetJobRequest& request, const Peer& peer) const;
  // `done` is called at once for output that the platform keeps, and through `resume` for a file of
  // the job's user.
  void output(const v1::GetOutputRequest& request, const Peer& peer, const Resume& resume,
              Done<v1::OutputChunk> done) const;

  void submit(const v1::SubmitJobRequest& request, const Peer& peer, Resume resume,
              Done<Created<v1::Job>> done) const;

  using JobChanged = Done<v1::ChangeJobResponse>;
  void act(std::string_view id, model::JobAction action, const Peer& peer, Resume resume,
           JobChanged done) const;
  void requeue(const v1::RequeueJobRequest& request, const Peer& peer, Resume resume,
               JobChanged done) const;
  void update(const v1::UpdateJobRequest& request, const Peer& peer, Resume resume,
              JobChanged done) const;
  void raise(const v1::RaiseJobRequest& request, const Peer& peer, Resume resume,
             JobChanged done) const;
  void signal(const v1::SignalJobRequest& request, const Peer& peer, Resume resume,
              JobChanged done) const;
  void record_step(const v1::RecordStepRequest& request, const Peer& peer, Resume resume,
                   Done<v1::RecordStepResponse> done) const;
  void act_on_many(const v1::ActOnJobsRequest& request, const Peer& peer, Resume resume,
                   Done<v1::ActOnJobsResponse> done) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
