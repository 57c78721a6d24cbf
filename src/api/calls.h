#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/call_meter.h"
#include "api/core_access.h"
#include "api/dependencies.h"
#include "api/job_reader.h"
#include "api/peer.h"
#include "api/resume.h"
#include "gpu_platform/v1/access.pb.h"
#include "gpu_platform/v1/audit.pb.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/configuration.pb.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/planning.pb.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "gpu_platform/v1/shares.pb.h"
#include "gpu_platform/v1/slurm.pb.h"
#include "gpu_platform/v1/statistics.pb.h"
#include "gpu_platform/v1/teams.pb.h"
#include "gpu_platform/v1/tokens.pb.h"
#include "model/user_range.h"

namespace gpu_platform::api {

// The calls of proto/gpu_platform/v1 that answer once, independent of the transport. Requests have
// passed check_limits. Safe from any thread.
class Calls {
 public:
  struct Options {
    std::string version;  // of the program
    // The only user whose jobs can be started here: a daemon that is not root's has no rights to
    // run jobs as another. Unset: every user.
    std::optional<std::uint32_t> only_uid = {};
    model::UserRange users = {};  // that may have jobs and tokens
  };
  Calls(const CoreAccess& core, Options options)
      : core_(core), reader_(core), options_(std::move(options)) {}

  const JobReader& reader() const { return reader_; }

  struct Submitted {
    v1::Job job;
    bool is_repeat = false;  // the first answer to the same request id
  };
  // `done` is called through `resume`, or at once when the request is refused at the door.
  void submit(const v1::JobSpec& request, const Peer& peer, Resume resume,
              std::function<void(base::Result<Submitted>)> done) const;

  // For all calls that change jobs, `done` is called through `resume`, or at once if the request is
  // refused before the core.
  using JobChanged = std::function<void(base::Result<v1::ChangeJobResponse>)>;
  void raise(const v1::RaiseJobRequest& request, const Peer& peer, Resume resume,
             JobChanged done) const;
  void signal(const v1::SignalJobRequest& request, const Peer& peer, Resume resume,
              JobChanged done) const;
  void act(std::string_view id, model::JobAction action, const Peer& peer, Resume resume,
           JobChanged done) const;
  void record_step(const v1::RecordStepRequest& request, const Peer& peer, Resume resume,
                   std::function<void(base::Result<v1::RecordStepResponse>)> done) const;
  void update(const v1::UpdateJobRequest& request, const Peer& peer, Resume resume,
              JobChanged done) const;
  void act_on_many(const v1::ActOnJobsRequest& request, const Peer& peer, Resume resume,
                   std::function<void(base::Result<v1::ActOnJobsResponse>)> done) const;

  base::Result<v1::Job> get(const v1::GetJobRequest& request, const Peer& peer) const;

  // `done` is called at once for output that the platform keeps, and through `resume` for a file of
  // the job's user.
  void output(const v1::GetOutputRequest& request, const Peer& peer, Resume resume,
              std::function<void(base::Result<v1::OutputChunk>)> done) const;
  v1::Status status(const v1::GetStatusRequest& request, const Peer& peer) const;
  base::Result<v1::ListNodesResponse> nodes(const v1::ListNodesRequest& request) const;
  base::Result<v1::GpuHealth> gpu_health(const v1::GetGpuHealthRequest& request,
                                         const Peer& peer) const;
  base::Result<v1::ListGpusResponse> gpus(const v1::ListGpusRequest& request,
                                          const Peer& peer) const;
  base::Result<v1::GetTopologyResponse> topology(const v1::GetTopologyRequest& request) const;
  // `done` is called through `resume`, or at once when the request is refused at the door.
  void change_gpus(const v1::ChangeGpusRequest& request, model::GpuAction action, const Peer& peer,
                   Resume resume,
                   std::function<void(base::Result<v1::ChangeGpusResponse>)> done) const;

  // Returns the channel to open, after a check that the caller may open it.
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

  base::Result<v1::ListSharesResponse> shares(const v1::ListSharesRequest& request,
                                              const Peer& peer) const;
  v1::SlurmNames slurm_names() const;
  v1::Configuration configuration() const;

  // For both, `done` is called through `resume`, or at once if the request is refused before the
  // core.
  using Reserved = std::function<void(base::Result<v1::Reservation>)>;
  void create_reservation(const v1::CreateReservationRequest& request, const Peer& peer,
                          Resume resume, Reserved done) const;
  void update_reservation(const v1::UpdateReservationRequest& request, const Peer& peer,
                          Resume resume, Reserved done) const;
  void cancel_reservation(const std::string& name, const Peer& peer, Resume resume,
                          Reserved done) const;
  base::Result<v1::ListReservationsResponse> reservations(
      const v1::ListReservationsRequest& request) const;
  base::Result<v1::Reservation> reservation(const std::string& name) const;

  struct TokenMade {
    v1::CreatedToken answer;
    bool is_repeat = false;  // an earlier request of its id made it; its secret is not known
  };
  // For both, `done` is called through `resume`, or at once if the request is refused before the
  // core.
  void create_token(const v1::CreateTokenRequest& request, const Peer& peer, Resume resume,
                    std::function<void(base::Result<TokenMade>)> done) const;
  void revoke_token(const v1::RevokeTokenRequest& request, const Peer& peer, Resume resume,
                    std::function<void(base::Result<v1::Token>)> done) const;
  base::Result<v1::ListTokensResponse> tokens(const v1::ListTokensRequest& request,
                                              const Peer& peer) const;

  base::Result<v1::ListTeamsResponse> teams(const v1::ListTeamsRequest& request,
                                            const Peer& peer) const;
  base::Result<v1::Team> team(const std::string& name, const Peer& peer) const;
  // For all three, `done` is called through `resume`, or at once if the request is refused before
  // the core. `is_new`: there may be none of that name yet.
  using TeamChanged = std::function<void(base::Result<v1::Team>)>;
  void set_team(const v1::SetTeamRequest& request, bool is_new, const Peer& peer, Resume resume,
                TeamChanged done) const;
  void answer_invitation(model::AnswerInvitation answer, const Peer& peer, Resume resume,
                         TeamChanged done) const;
  void remove_team(const std::string& name, const Peer& peer, Resume resume,
                   TeamChanged done) const;

  base::Result<v1::ListAuditResponse> audit(const v1::ListAuditRequest& request,
                                            const Peer& peer) const;

  v1::Identity who_am_i(const v1::WhoAmIRequest& request, const Peer& peer) const;
  v1::Health health() const;
  base::Result<v1::Readiness> readiness() const;
  v1::Version version() const;
  v1::Statistics statistics() const;
  // The page of GET /metrics.
  std::string metrics() const;
  // Counts the answers; the server tells it of each.
  CallMeter& call_meter() const { return call_meter_; }

 private:
  template <class MakeCommand>
  void change_one(std::string_view id, const Peer& peer, Resume resume, JobChanged done,
                  const MakeCommand& command) const;
  // Returns a running job that the caller may enter.
  base::Result<FoundJob> enterable(std::string_view id, const Peer& peer) const;
  // Finds the owner of the new job. If another user has to be looked up, `done` is called through
  // `resume`.
  using AccountFound = std::function<void(base::Result<Account>)>;
  base::Status check_can_run(const Account& account) const;
  void account_of(const v1::JobSpec& request, const Peer& peer, const Resume& resume,
                  AccountFound done) const;
  // Finds the user of a new token, which may be none of root's or of the system's.
  void token_user(const std::string& name, const Peer& peer, const Resume& resume,
                  AccountFound done) const;
  // Hands the command to the core with a new secret.
  void make_token(model::MakeToken command, const model::Caller& caller, Resume resume,
                  std::function<void(base::Result<TokenMade>)> done) const;
  base::Result<model::Token> token_of(const v1::RevokeTokenRequest& request,
                                      const Peer& peer) const;
  v1::Token described(const model::Token& token) const;
  v1::Team described(const model::Team& team, const controller::Snapshot& snapshot,
                     const Peer& peer) const;
  // Sends a command that changes the team of that name, which is the answer.
  void change_team(model::Command command, std::string name, const Peer& peer, Resume resume,
                   TeamChanged done) const;
  // Returns the job as the caller may see it.
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
  // Sends a command that names other jobs. They are looked up first, and again if one of them
  // leaves the core before the core looks.
  struct Dependent {
    std::string dependency;
    model::Caller caller;
    std::function<model::Command(ResolvedDependencies)> command;
    int looks = 3;
  };
  void send_with_dependencies(Dependent dependent, Resume resume,
                              std::function<void(base::Result<model::CommandReply>)> finish) const;
  // Refused if one of them does not exist on this host.
  struct NamedUser {
    std::string field;  // of the request
    std::string name;
  };
  struct NamedUsers {
    std::vector<NamedUser> named = {};
    std::size_t next = 0;     // the first that has not been looked up
    std::uint32_t asker = 0;  // the user that they are looked up for
  };
  template <class Command>
  void reserve(Command command, const std::vector<std::string>& users, const Peer& peer,
               Resume resume, Reserved done) const;
  void check_users(NamedUsers users, Resume resume, std::function<void(base::Status)> done) const;
  base::Result<v1::ChangeJobResponse> changed(base::Result<model::CommandReply> reply,
                                              const model::Caller& caller, model::JobId id) const;
  v1::ActOnJobsResponse outcomes(const model::CommandReply& reply, bool dry_run) const;

  const CoreAccess& core_;
  JobReader reader_;
  Options options_;
  mutable CallMeter call_meter_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace gpu_platform::api
