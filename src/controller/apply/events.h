#pragma once

#include "controller/apply/application.h"

// Each overload is one event's whole meaning.

namespace gpu_platform::controller {

// site_events.cpp
void apply(Application& a, const model::PolicyApplied& event);
void apply(Application& a, const model::QuotaPeriodBegan& event);
void apply(Application& a, const model::UseCounted& event);
void apply(Application& a, const model::ReservationMade& event);
void apply(Application& a, const model::ReservationChanged& event);
void apply(Application& a, const model::ReservationEnded& event);
void apply(Application& a, const model::TokenCreated& event);
void apply(Application& a, const model::TokenRevoked& event);
void apply(Application& a, const model::TokenUsed& event);
void apply(Application& a, const model::TeamSet& event);
void apply(Application& a, const model::TeamRemoved& event);

// money_events.cpp
void apply(Application& a, const model::PriceSet& event);
void apply(Application& a, const model::PriceWithdrawn& event);
void apply(Application& a, const model::BudgetSet& event);
void apply(Application& a, const model::BudgetRemoved& event);
void apply(Application& a, const model::BudgetsCounted& event);
void apply(Application& a, const model::LedgerCorrected& event);

inline void apply(Application&, const model::CallAudited&) {}  // for the archive alone

// node_events.cpp
void apply(Application& a, const model::NodeSeen& event);
void apply(Application& a, const model::NodeStateChanged& event);
void apply(Application& a, const model::TaintChanged& event);
void apply(Application& a, const model::GpuStateChanged& event);
void apply(Application& a, const model::UnmanagedProcessesChanged& event);
void apply(Application& a, const model::GpuUnavailableChanged& event);
void apply(Application& a, const model::NodeServiceChanged& event);
void apply(Application& a, const model::NodeOthersChanged& event);
void apply(Application& a, const model::EvidenceRecorded& event);
void apply(Application& a, const model::VerdictWithheld& event);

// job_events.cpp
void apply(Application& a, const model::JobSubmitted& event);
void apply(Application& a, const model::JobChanged& event);
void apply(Application& a, const model::JobsRaised& event);
void apply(Application& a, const model::JobEligible& event);
void apply(Application& a, const model::JobHoldChanged& event);
void apply(Application& a, const model::JobOverdue& event);
void apply(Application& a, const model::StartPredicted& event);
void apply(Application& a, const model::PreemptionDecided& event);
void apply(Application& a, const model::PreemptionHoldDropped& event);
void apply(Application& a, const model::JobRequeued& event);
void apply(Application& a, const model::JobEnded& event);
void apply(Application& a, const model::StoreRepaired& event);
inline void apply(Application&, const model::SignalRequested&) {}  // an order alone

// attempt_events.cpp
void apply(Application& a, const model::StartRequested& event);
void apply(Application& a, const model::AttemptStarted& event);
void apply(Application& a, const model::YieldPutOff& event);
void apply(Application& a, const model::StopRequested& event);
void apply(Application& a, const model::StepRecorded& event);
void apply(Application& a, const model::AttemptEnded& event);
void apply(Application& a, const model::AttemptReleased& event);

}  // namespace gpu_platform::controller
