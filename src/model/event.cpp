#include "model/event.h"
#include "model/job_spec.h"

namespace gpu_platform::model {

Event::Event(const Event&) = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(const Event&) = default;
Event& Event::operator=(Event&&) noexcept = default;
Event::~Event() = default;

std::string_view name_of(const Event& event) {
  constexpr std::string_view kNames[] = {"PolicyApplied",
                                         "NodeSeen",
                                         "NodeStateChanged",
                                         "GpuStateChanged",
                                         "JobSubmitted",
                                         "JobEligible",
                                         "StartRequested",
                                         "AttemptStarted",
                                         "StopRequested",
                                         "AttemptEnded",
                                         "AttemptReleased",
                                         "JobRequeued",
                                         "JobEnded",
                                         "UnmanagedProcessesChanged",
                                         "JobHoldChanged",
                                         "JobChanged",
                                         "UseCounted",
                                         "QuotaPeriodBegan",
                                         "PreemptionDecided",
                                         "JobOverdue",
                                         "ReservationMade",
                                         "ReservationEnded",
                                         "PreemptionHoldDropped",
                                         "StartPredicted",
                                         "YieldPutOff",
                                         "CallAudited",
                                         "StoreRepaired",
                                         "JobsRaised",
                                         "SignalRequested",
                                         "ReservationChanged",
                                         "StepRecorded",
                                         "TokenCreated",
                                         "TokenRevoked",
                                         "TokenUsed",
                                         "TeamSet",
                                         "TeamRemoved",
                                         "GpuUnavailableChanged",
                                         "NodeServiceChanged",
                                         "NodeOthersChanged",
                                         "TaintChanged",
                                         "EvidenceRecorded",
                                         "VerdictWithheld",
                                         "PriceSet",
                                         "PriceWithdrawn",
                                         "BudgetSet",
                                         "BudgetRemoved",
                                         "BudgetsCounted",
                                         "LedgerCorrected"};
  static_assert(std::size(kNames) == std::variant_size_v<AnyEvent>);
  return kNames[event.index()];
}

std::string words_of(const UnmanagedProcessesChanged& event) {
  return event.why.empty() ? event.text : event.text + ": " + event.why;
}

JobId job_of(const Event& event) {
  return std::visit(
      [](const auto& e) -> JobId {
        if constexpr (requires { e.job; }) {
          return e.job;
        } else if constexpr (requires { e.attempt.job; }) {
          return e.attempt.job;
        } else {
          return {};
        }
      },
      event);
}

namespace {

AuditedCall call_of(const JobSubmitted& event) {
  const JobSpec& spec = *event.spec;
  AuditedCall call;
  call.by = event.by;
  call.owner = {spec.user, spec.uid};
  if (call.by.user.empty()) {
    call.by.user = spec.user;
    call.by.uid = spec.uid;
  }
  call.action = AuditAction::kSubmit;
  call.jobs = {event.job};
  call.job_count = spec.array ? member_count(*spec.array) : 1;
  call.request_id = spec.request_id;
  return call;
}

}  // namespace

bool has_audit_entry(const Event& event) {
  const auto* submitted = std::get_if<JobSubmitted>(&event);
  if (submitted != nullptr) return submitted->by.door != Door::kNone;
  return std::holds_alternative<CallAudited>(event);
}

std::optional<AuditEntry> audit_entry(const EventRecord& record) {
  if (!has_audit_entry(record.event)) return std::nullopt;
  if (const auto* submitted = std::get_if<JobSubmitted>(&record.event)) {
    return AuditEntry{record.seq, record.at, call_of(*submitted)};
  }
  return AuditEntry{record.seq, record.at, std::get<CallAudited>(record.event).call};
}

}  // namespace gpu_platform::model
