#include "model/event.h"

namespace gpu_platform::model {

std::string_view name_of(const Event& event) {
  constexpr std::string_view kNames[] = {"PolicyApplied",     "NodeSeen",
                                         "NodeStateChanged",  "GpuStateChanged",
                                         "JobSubmitted",      "JobEligible",
                                         "StartRequested",    "AttemptStarted",
                                         "StopRequested",     "AttemptEnded",
                                         "AttemptReleased",   "JobRequeued",
                                         "JobEnded",          "GpuStrangersChanged",
                                         "JobHoldChanged",    "JobChanged",
                                         "UseCounted",        "QuotaPeriodBegan",
                                         "PreemptionDecided", "JobOverdue",
                                         "ReservationMade",   "ReservationEnded",
                                         "ClaimDropped",      "StartForeseen",
                                         "YieldPutOff"};
  static_assert(std::size(kNames) == std::variant_size_v<Event>);
  return kNames[event.index()];
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

}  // namespace gpu_platform::model
