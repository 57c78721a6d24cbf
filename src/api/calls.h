#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "api/core_access.h"
#include "api/dependencies.h"
#include "api/job_reader.h"
#include "gpu_platform/v1/audit.pb.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/planning.pb.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "gpu_platform/v1/shares.pb.h"

namespace gpu_platform::api {

// The client at the other end, by the socket's peer credentials.
struct Peer {
  model::Caller caller;
  std::uint32_t gid = 0;
  // False: the user database does not answer, and the name is the number. Nothing that goes by the
  // name is done for them.
  bool is_name_known = true;
  bool has_account = true;  // on this machine
};

// The calls of proto/gpu_platform/v1 that answer once, independent of the door that they come
// through. Requests have passed check_limits. Safe from any thread.
class Calls {
 public:
  struct Options {
    std::string version;  // of the program
    bool shows_all_commands =
        false;  // of processes on GPUs: to everybody, not to their owner alone
  };
  Calls(const CoreAccess& core, Options options)
      : core_(core), reader_(core), options_(std::move(options)) {}

  const JobReader& reader() const { return reader_; }

  // Runs a continuation on the thread that the request belongs to.
  using Resume = std::function<void(std::function<void()>)>;

  struct Submitted {
    v1::Job job;
    bool is_repeat = false;  // the first answer to the same request id
  };
  // `done` is called through `resume`, or at once when the request is refused at the door.
  void submit(const v1::JobSpec& request, const Peer& peer, Resume resume,
              std::function<void(base::Result<Submitted>)> done) const;

  // Of all calls that change jobs `done` is called through `resume`, or at once when the request is
  // refused at the door.
  using JobChanged = std::function<void(base::Result<v1::ChangeJobResponse>)>;
  void act(std::string_view id, model::JobAction action, const Peer& peer, Resume resume,
           JobChanged done) const;
  void update(const v1::UpdateJobRequest& request, const Peer& peer, Resume resume,
              JobChanged done) const;
  void act_on_many(const v1::ActOnJobsRequest& request, const Peer& peer, Resume resume,
                   std::function<void(base::Result<v1::ActOnJobsResponse>)> done) const;

  base::Result<v1::Job> get(const v1::GetJobRequest& request, const Peer& peer) const;
  // kUnavailable for a caller whose name cannot be told just now.
  static base::Status check_named(const Peer& peer);

  // `done` is called at once for output that the platform keeps, and through `resume` for a file of
  // the job's user.
  void output(const v1::GetOutputRequest& request, const Peer& peer, Resume resume,
              std::function<void(base::Result<v1::OutputChunk>)> done) const;
  v1::Status status(const v1::GetStatusRequest& request, const Peer& peer) const;
  v1::ListNodesResponse nodes() const;
  base::Result<v1::GpuHealth> gpu_health(const v1::GetGpuHealthRequest& request,
                                         const Peer& peer) const;
  base::Result<v1::ListGpusResponse> gpus(const v1::ListGpusRequest& request,
                                          const Peer& peer) const;
  base::Result<v1::GetTopologyResponse> topology(const v1::GetTopologyRequest& request) const;
  // `done` is called through `resume`, or at once when the request is refused at the door.
  void change_gpus(const v1::ChangeGpusRequest& request, model::GpuAction action, const Peer& peer,
                   Resume resume,
                   std::function<void(base::Result<v1::ChangeGpusResponse>)> done) const;

  // What is to be opened, once it is certain that the caller may.
  base::Result<model::ChannelOrder> channel(const v1::ExecInJobRequest& request,
                                            const Peer& peer) const;
  base::Result<model::ChannelOrder> channel(const v1::ForwardPortRequest& request,
                                            const Peer& peer) const;
  base::Result<model::ChannelOrder> channel(const v1::AttachToJobRequest& request,
                                            const Peer& peer) const;
  // Records in the audit trail that the channel is opened. Call it before, so that no user enters a
  // job unseen. `done` is called through `resume`, or at once if no trail is kept.
  void record_channel(model::AuditAction action, const model::ChannelOrder& order, const Peer& peer,
                      Resume resume, std::function<void(base::Status)> done) const;
  void open_channel(model::ChannelOrder order, Resume resume, ChannelSource::Opened opened) const;

  base::Result<v1::Explanation> explain(const v1::ExplainJobRequest& request,
                                        const Peer& peer) const;
  // The job as it would be accepted: of a submission that is judged and not carried out. `done` is
  // called through `resume`, or at once when the request is refused at the door.
  using Accepted = base::Result<std::shared_ptr<const model::Job>>;
  void judge(const v1::JobSpec& request, const Peer& peer, Resume resume,
             std::function<void(Accepted)> done) const;
  // What is to be said of it now.
  v1::CheckResult check(const model::Job& job) const;
  // What could never run is an answer; other refusals stay errors.
  static base::Result<v1::CheckResult> check_refused(const base::Error& error);
  static base::Result<v1::Needs> size_model_server(const v1::ModelSizingRequest& request);

  base::Result<v1::ListSharesResponse> shares(const v1::ListSharesRequest& request) const;

  // Of both `done` is called through `resume`, or at once when the request is refused at the door.
  using Reserved = std::function<void(base::Result<v1::Reservation>)>;
  void create_reservation(const v1::CreateReservationRequest& request, const Peer& peer,
                          Resume resume, Reserved done) const;
  void cancel_reservation(const std::string& name, const Peer& peer, Resume resume,
                          Reserved done) const;
  v1::ListReservationsResponse reservations() const;
  base::Result<v1::Reservation> reservation(const std::string& name) const;

  base::Result<v1::ListAuditResponse> audit(const v1::ListAuditRequest& request,
                                            const Peer& peer) const;

  v1::Health health() const;
  base::Result<v1::Readiness> readiness() const;
  v1::Version version() const;

 private:
  // A running job that the caller may enter.
  base::Result<FoundJob> enterable(std::string_view id, const Peer& peer) const;
  // Whose job it is to be. `done` is called through `resume` where another user has to be looked
  // up.
  using AccountFound = std::function<void(base::Result<Account>)>;
  void account_of(const v1::JobSpec& request, const Peer& peer, const Resume& resume,
                  AccountFound done) const;
  // As the caller may see it.
  std::shared_ptr<const model::GpuReading> reading_of(std::string_view uuid,
                                                      const model::Caller& caller,
                                                      const controller::Snapshot& snapshot) const;
  v1::ChangeGpusResponse changed(const model::CommandReply& reply,
                                 const model::Caller& caller) const;
  void submit_as(const Account& account, const v1::JobSpec& request, const model::Caller& caller,
                 Resume resume, std::function<void(base::Result<Submitted>)> done) const;
  void judge_as(const Account& account, const v1::JobSpec& request, const model::Caller& caller,
                Resume resume, std::function<void(Accepted)> done) const;
  // Hands the command to the core, and its answer to `finish` through `resume`.
  void send(model::Command command, Resume resume,
            std::function<void(base::Result<model::CommandReply>)> finish) const;
  v1::CheckResult check_queued(const model::Job& job, const Planner::Snapshot& snapshot) const;
  v1::CheckResult check_kept_back(const model::Job& job, const Planner::Snapshot& snapshot) const;
  // The submission, judged together with the jobs that it is to wait for.
  void send_submission(model::SubmitJob submission, const std::string& dependency,
                       const model::Caller& caller, Resume resume,
                       std::function<void(base::Result<model::CommandReply>)> finish) const;
  // A command that names other jobs: they are looked up, and again where one of them left the core
  // between that look and the core's.
  struct Dependent {
    std::string dependency;
    model::Caller caller;
    std::function<model::Command(ResolvedDependencies)> command;
    int looks = 3;
  };
  void send_with_dependencies(Dependent dependent, Resume resume,
                              std::function<void(base::Result<model::CommandReply>)> finish) const;
  base::Result<v1::ChangeJobResponse> changed(base::Result<model::CommandReply> reply,
                                              const model::Caller& caller, model::JobId id) const;
  v1::ActOnJobsResponse outcomes(const model::CommandReply& reply, bool dry_run) const;

  const CoreAccess& core_;
  JobReader reader_;
  Options options_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace gpu_platform::api
