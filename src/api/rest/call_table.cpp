#include "api/rest/call_table.h"

#include <string>
#include <type_traits>
#include <utility>

#include "api/calls.h"
#include "api/convert/enums.h"
#include "api/convert/job_change.h"
#include "api/rest/audited_call.h"
#include "api/rest/stream_calls.h"

namespace gpu_platform::api {

namespace {

using model::AuditAction;
using model::AuditedCall;
using model::GpuAction;
using model::JobAction;
using Handler = std::function<void(const RoutedCall&)>;

// ---- handlers of questions ----

template <class Message>
Reply answer_of(const RoutedCall& call, const base::Result<Message>& result) {
  return json_reply(call.route, result, call.request.id, call.fields);
}
Reply answer_of(const RoutedCall& call, const google::protobuf::Message& message) {
  return json_reply(call.route.success_status, message, call.fields);
}

// Answers at once, with what `ask` returns.
template <class Request, class Ask>
Handler answers(Ask ask) {
  return [ask](const RoutedCall& call) {
    Request message;
    if (!read_message(call, message)) return;
    call.exchange.reply(answer_of(call, ask(call.context.calls, message, call.exchange.peer())));
  };
}

template <class Service, class Request, class Answer>
Handler asks(Answer (Service::*ask)(const Request&, const Peer&) const) {
  return answers<Request>([ask](const Calls& calls, const Request& message, const Peer& peer) {
    return (calls.of<Service>().*ask)(message, peer);
  });
}
template <class Service, class Request, class Answer>
Handler asks(Answer (Service::*ask)(const Request&) const) {
  return answers<Request>([ask](const Calls& calls, const Request& message, const Peer&) {
    return (calls.of<Service>().*ask)(message);
  });
}
template <class Request, class Service, class Answer>
Handler asks(Answer (Service::*ask)() const) {
  return answers<Request>([ask](const Calls& calls, const Request&, const Peer&) {
    return (calls.of<Service>().*ask)();
  });
}

// Reads the message and leaves the rest to a function of stream_calls.h.
template <class Request>
Handler reads(void (*handle)(const RoutedCall&, const Request&)) {
  return [handle](const RoutedCall& call) {
    Request message;
    if (read_message(call, message)) handle(call, message);
  };
}

// ---- handlers of changes ----

template <class Message>
Reply changed_reply(const Route& route, const Message& answer) {
  return json_reply(route.success_status, answer);
}
template <class Message>
Reply changed_reply(const Route& route, const Created<Message>& made) {
  return json_reply(made.is_repeat ? 200 : route.success_status, made.answer);
}

// Returns the entry of a refused call in the audit trail, with what the message names; nullopt: the
// trail does not tell of it.
using Audited = std::optional<AuditedCall>;
template <class Request>
using Names = Audited (*)(const Request&, AuditedCall);

// Adds to the reply what is special in it.
template <class Answer>
using Finish = void (*)(const Answer&, Reply&);

// Changes something by change(calls, message, peer, resume, done), and answers when it is done.
template <class Request, class Answer, class Change>
Handler changes_by(Change change, Names<Request> names, Finish<Answer> finish = nullptr) {
  return [change, names, finish](const RoutedCall& call) {
    Request message;
    if (!read_message(call, message)) return;
    Audited audited;
    if (call.action) audited = names(message, begin_audit(call.exchange, *call.action));
    change(call.context.calls, message, call.exchange.peer(), call.exchange.resume(),
           [late = LateAnswer(call, std::move(audited)), finish](base::Result<Answer> result) {
             const auto open = late.open();
             if (open == nullptr) return;
             if (!result) return late.refuse(*open, std::move(result).error());
             Reply reply = changed_reply(late.route, *result);
             if (finish != nullptr) finish(*result, reply);
             open->reply(std::move(reply));
           });
  };
}

template <class Service, class Request, class Answer>
Handler changes(void (Service::*change)(const Request&, const Peer&, Resume, Done<Answer>) const,
                std::type_identity_t<Names<Request>> names,
                std::type_identity_t<Finish<Answer>> finish = nullptr) {
  return changes_by<Request, Answer>(
      [change](const Calls& calls, const Request& message, const Peer& peer, Resume resume,
               Done<Answer> done) {
        (calls.of<Service>().*change)(message, peer, std::move(resume), std::move(done));
      },
      names, finish);
}

// ---- what a change names ----

template <class Message>
Audited job_of(const Message& message, AuditedCall call) {
  add_job(message.id(), call);
  return call;
}

template <class Message>
Audited name_of(const Message& message, AuditedCall call) {
  add_target(message.name(), call);
  return call;
}

// "team vision".
template <class Message>
Audited budget_of(const Message& message, AuditedCall call) {
  add_target(fmt::format("{} {}", message.holder(), message.name()), call);
  return call;
}

Audited token_of(const v1::RevokeTokenRequest& message, AuditedCall call) {
  add_target(message.token(), call);
  return call;
}

Audited price_of(const v1::SetPriceRequest& message, AuditedCall call) {
  add_target(message.gpu_type().empty() ? message.node() : message.gpu_type(), call);
  return call;
}

Audited price_id_of(const v1::WithdrawPriceRequest& message, AuditedCall call) {
  add_target(std::to_string(message.id()), call);
  return call;
}

Audited correction_of(const v1::CorrectLedgerRequest& message, AuditedCall call) {
  const bool names_user = !message.user().empty();
  const bool names_team = !message.team().empty();
  add_target(names_user ? message.user() : names_team ? message.team() : message.project(), call);
  return call;
}

// Alerts and silences have ids.
template <class Message>
Audited id_of(const Message& message, AuditedCall call) {
  add_target(message.id(), call);
  return call;
}

Audited new_silence_of(const v1::CreateSilenceRequest& message, AuditedCall call) {
  std::string text;
  for (const auto& [name, pattern] : message.matchers()) {
    text += (text.empty() ? "" : " ") + name + "=" + pattern;
  }
  add_target(text, call);
  return call;
}

Audited gpus_of(const v1::ChangeGpusRequest& message, AuditedCall call) {
  add_target(!message.node().empty()  ? message.node()
             : !message.gpu().empty() ? message.gpu()
                                      : message.gpu_id(),
             call);
  return call;
}

Audited requeued_job_of(const v1::RequeueJobRequest& message, AuditedCall call) {
  call.action = model::audit_action(requeue_action(message));
  return job_of(message, std::move(call));
}

Audited new_job_of(const v1::SubmitJobRequest& message, AuditedCall call) {
  add_target(message.spec().user(), call);
  add_request_id(message.spec().request_id(), call);
  return call;
}

Audited new_token_of(const v1::CreateTokenRequest& message, AuditedCall call) {
  add_target(message.name(), call);
  add_request_id(message.request_id(), call);
  return call;
}

Audited action_of(const v1::ActOnJobsRequest& message, AuditedCall call) {
  if (message.dry_run()) return std::nullopt;
  if (message.action() != v1::JOB_ACTION_UNSPECIFIED) {
    call.action = model::audit_action(to_model(message.action()));
  }
  return call;
}

// ---- what is special in an answer ----

void add_location(const Created<v1::Job>& made, Reply& reply) {
  reply.headers.emplace_back("Location", "/v1/jobs/" + made.answer.id());
}

void forbid_storing(const Created<v1::CreatedToken>&, Reply& reply) {
  reply.headers.emplace_back("Cache-Control", "no-store");
}

void let_outlive_credential(const v1::Token&, Reply& reply) {
  reply.outlives_credential = true;
}

// ---- rows with an argument ----

template <class Request>
CallRow acts(std::string_view name, JobAction action) {
  return {name, model::audit_action(action),
          changes_by<Request, v1::ChangeJobResponse>(
              [action](const Calls& calls, const Request& message, const Peer& peer, Resume resume,
                       JobCalls::JobChanged done) {
                calls.of<JobCalls>().act(message.id(), action, peer, std::move(resume),
                                         std::move(done));
              },
              job_of)};
}

CallRow changes_gpus(std::string_view name, AuditAction audited, GpuAction action) {
  return {name, audited,
          changes_by<v1::ChangeGpusRequest, v1::ChangeGpusResponse>(
              [action](const Calls& calls, const v1::ChangeGpusRequest& message, const Peer& peer,
                       Resume resume, Done<v1::ChangeGpusResponse> done) {
                calls.of<ClusterCalls>().change_gpus(message, action, peer, std::move(resume),
                                                     std::move(done));
              },
              gpus_of)};
}

constexpr std::optional<AuditAction> kNone = std::nullopt;

}  // namespace

std::vector<CallRow> call_table() {
  return {
      {"JobService.SubmitJob", AuditAction::kSubmit,
       changes(&JobCalls::submit, new_job_of, add_location)},
      {"JobService.GetJob", kNone, asks(&JobCalls::get)},
      {"JobService.ListJobs", kNone, reads(list_jobs)},
      acts<v1::CancelJobRequest>("JobService.CancelJob", JobAction::kCancel),
      acts<v1::KillJobRequest>("JobService.KillJob", JobAction::kKill),
      acts<v1::HoldJobRequest>("JobService.HoldJob", JobAction::kHold),
      acts<v1::ReleaseJobRequest>("JobService.ReleaseJob", JobAction::kRelease),
      {"JobService.RequeueJob", AuditAction::kRequeue,
       changes(&JobCalls::requeue, requeued_job_of)},
      {"JobService.UpdateJob", AuditAction::kUpdate, changes(&JobCalls::update, job_of)},
      {"JobService.RaiseJob", AuditAction::kTop, changes(&JobCalls::raise, job_of)},
      {"JobService.SignalJob", AuditAction::kSignal, changes(&JobCalls::signal, job_of)},
      // Of the job's own record alone: nothing of it goes into the audit trail.
      {"JobService.RecordStep", kNone, changes(&JobCalls::record_step, job_of)},
      {"JobService.ActOnJobs", AuditAction::kChangeMany,
       changes(&JobCalls::act_on_many, action_of)},
      {"JobService.WaitJob", kNone, reads(wait_job)},
      {"JobService.GetOutput", kNone, reads(get_output)},
      {"JobService.StreamOutput", kNone, reads(stream_output)},
      {"JobService.ExecInJob", AuditAction::kExec, reads<v1::ExecInJobRequest>(open_channel)},
      {"JobService.AttachToJob", AuditAction::kAttach, reads<v1::AttachToJobRequest>(open_channel)},
      {"JobService.ForwardPort", AuditAction::kPortForward,
       reads<v1::ForwardPortRequest>(open_channel)},
      {"JobService.WatchJob", kNone, reads(watch_job)},
      {"JobService.WatchJobs", kNone, reads(watch_jobs)},
      {"JobService.GetQueue", kNone, reads(get_queue)},

      {"ClusterService.GetStatus", kNone, asks(&ClusterCalls::status)},
      {"ClusterService.ListNodes", kNone, asks(&ClusterCalls::nodes)},
      {"ClusterService.GetGpuHealth", kNone, asks(&ClusterCalls::gpu_health)},
      {"ClusterService.ListGpus", kNone, asks(&ClusterCalls::gpus)},
      {"ClusterService.ListEvidence", kNone, asks(&ClusterCalls::evidence)},
      {"ClusterService.WatchGpus", kNone, reads(watch_gpus)},
      {"ClusterService.GetTopology", kNone, asks(&ClusterCalls::topology)},
      changes_gpus("ClusterService.DrainGpus", AuditAction::kDrain, GpuAction::kDrain),
      changes_gpus("ClusterService.TakeGpusOffline", AuditAction::kTakeOffline,
                   GpuAction::kTakeOffline),
      changes_gpus("ClusterService.BringGpusOnline", AuditAction::kBringOnline,
                   GpuAction::kBringOnline),
      changes_gpus("ClusterService.ResetGpus", AuditAction::kReset, GpuAction::kReset),
      changes_gpus("ClusterService.CheckGpus", AuditAction::kCheck, GpuAction::kCheck),
      {"ClusterService.GetHealth", kNone, asks<v1::GetHealthRequest>(&SiteCalls::health)},
      {"ClusterService.GetReadiness", kNone, asks<v1::GetReadinessRequest>(&SiteCalls::readiness)},
      {"ClusterService.GetVersion", kNone, asks<v1::GetVersionRequest>(&SiteCalls::version)},

      {"ReservationService.CreateReservation", AuditAction::kMakeReservation,
       changes(&ReservationCalls::create, name_of)},
      {"ReservationService.UpdateReservation", AuditAction::kChangeReservation,
       changes(&ReservationCalls::update, name_of)},
      {"ReservationService.CancelReservation", AuditAction::kCancelReservation,
       changes(&ReservationCalls::cancel, name_of)},
      {"ReservationService.ListReservations", kNone, asks(&ReservationCalls::list)},
      {"ReservationService.GetReservation", kNone, asks(&ReservationCalls::get)},

      {"PlanningService.ExplainJob", kNone, asks(&PlanningCalls::explain)},
      {"PlanningService.CheckJob", kNone, reads(check_job)},
      {"PlanningService.SizeModelServer", kNone, asks(&PlanningCalls::size_model_server)},

      {"TokenService.CreateToken", AuditAction::kCreateToken,
       changes(&TokenCalls::create, new_token_of, forbid_storing)},
      {"TokenService.RevokeToken", AuditAction::kRevokeToken,
       changes(&TokenCalls::revoke, token_of, let_outlive_credential)},
      {"TokenService.ListTokens", kNone, asks(&TokenCalls::list)},

      {"TeamService.CreateTeam", AuditAction::kSetTeam, changes(&TeamCalls::create, name_of)},
      {"TeamService.SetTeam", AuditAction::kSetTeam, changes(&TeamCalls::set, name_of)},
      {"TeamService.AcceptInvitation", AuditAction::kAcceptInvitation,
       changes(&TeamCalls::accept_invitation, name_of)},
      {"TeamService.DeclineInvitation", AuditAction::kDeclineInvitation,
       changes(&TeamCalls::decline_invitation, name_of)},
      {"TeamService.RemoveTeam", AuditAction::kRemoveTeam, changes(&TeamCalls::remove, name_of)},
      {"TeamService.ListTeams", kNone, asks(&TeamCalls::list)},
      {"TeamService.GetTeam", kNone, asks(&TeamCalls::get)},

      {"PriceService.ListPrices", kNone, asks(&PriceCalls::list)},
      {"PriceService.SetPrice", AuditAction::kSetPrice, changes(&PriceCalls::set, price_of)},
      {"PriceService.WithdrawPrice", AuditAction::kWithdrawPrice,
       changes(&PriceCalls::withdraw, price_id_of)},
      {"PriceService.CorrectLedger", AuditAction::kCorrectLedger,
       changes(&PriceCalls::correct, correction_of)},
      {"PriceService.ListInstances", kNone, asks(&PriceCalls::instances)},
      {"BudgetService.SetBudget", AuditAction::kSetBudget,
       changes(&BudgetCalls::set, budget_of<v1::SetBudgetRequest>)},
      {"BudgetService.OverrideBudget", AuditAction::kOverrideBudget,
       changes(&BudgetCalls::override_budget, budget_of<v1::OverrideBudgetRequest>)},
      {"BudgetService.RemoveBudget", AuditAction::kRemoveBudget,
       changes(&BudgetCalls::remove, budget_of<v1::RemoveBudgetRequest>)},
      {"BudgetService.ListBudgets", kNone, asks(&BudgetCalls::list)},
      {"BudgetService.GetBudget", kNone, asks(&BudgetCalls::get)},

      {"ShareService.ListShares", kNone, asks(&ShareCalls::list)},
      {"UseService.GetJobUse", kNone, asks(&UseCalls::get)},
      {"KpiService.GetKpi", kNone, asks(&KpiCalls::get)},
      {"UsageService.GetUsage", kNone, asks(&UsageCalls::get)},
      {"UsageService.ListLedger", kNone, asks(&UsageCalls::list_lines)},
      {"UsageService.GetMonthlyReport", kNone, asks(&UsageCalls::monthly)},
      {"UsageService.GetBalance", kNone, asks(&UsageCalls::balance)},
      {"AdviceService.GetSavings", kNone, asks(&AdviceCalls::savings)},
      {"AdviceService.GetForecast", kNone, asks(&AdviceCalls::forecast)},
      {"AdviceService.GetAdvice", kNone, asks(&AdviceCalls::advice)},
      {"StatisticsService.GetStatistics", kNone,
       asks<v1::GetStatisticsRequest>(&StatisticsCalls::statistics)},
      {"TelemetryService.QueryHistory", kNone, asks(&TelemetryCalls::history)},
      {"TelemetryService.ListReadings", kNone, asks(&TelemetryCalls::readings)},
      {"TelemetryService.WatchReadings", kNone, reads(watch_readings)},
      {"AuditService.ListAudit", kNone, asks(&AuditCalls::list)},
      {"AccessService.WhoAmI", kNone, asks(&SiteCalls::who_am_i)},
      {"AlertService.ListAlerts", kNone, asks(&AlertCalls::list)},
      {"AlertService.GetAlert", kNone, asks(&AlertCalls::get)},
      {"AlertService.AcknowledgeAlert", AuditAction::kAcknowledge,
       changes(&AlertCalls::acknowledge, id_of)},
      {"AlertService.ListAlertRules", kNone, asks(&AlertCalls::rules)},
      {"AlertService.ListSilences", kNone, asks(&AlertCalls::silences)},
      {"AlertService.CreateSilence", AuditAction::kSilence,
       changes(&AlertCalls::create_silence, new_silence_of)},
      {"AlertService.EndSilence", AuditAction::kEndSilence,
       changes(&AlertCalls::end_silence, id_of)},
      {"AlertService.ListAlertChannels", kNone, asks(&AlertCalls::channels)},
      {"AlertService.TestAlertChannel", AuditAction::kTestChannel,
       changes(&AlertCalls::test, name_of)},

      {"SlurmService.GetSlurmNames", kNone,
       asks<v1::GetSlurmNamesRequest>(&SiteCalls::slurm_names)},
      {"ConfigurationService.GetConfiguration", kNone,
       asks<v1::GetConfigurationRequest>(&SiteCalls::configuration)},
  };
}

}  // namespace gpu_platform::api
