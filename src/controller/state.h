#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accounting/budget_meter.h"
#include "base/persistent_map.h"
#include "base/result.h"
#include "base/shared.h"
#include "base/units.h"
#include "controller/admission_gates.h"
#include "controller/expiring_requests.h"
#include "controller/health_index.h"
#include "controller/load.h"
#include "controller/outbox.h"
#include "controller/snapshot.h"
#include "controller/taint_ends.h"
#include "controller/token_index.h"
#include "model/event.h"
#include "model/job.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/price.h"
#include "model/run_time_team.h"
#include "scheduling/book_entries.h"
#include "scheduling/books.h"
#include "scheduling/order/fair_share_use.h"
#include "scheduling/predict/prediction_scores.h"

namespace gpu_platform::controller {

using accounting::BudgetMeter;
using accounting::BudgetMeters;
using scheduling::end_by_limit;
using scheduling::latest_end;
using scheduling::time_limit_of;

// The job of a request id. It is kept until its lifetime after the job's end is over, so that a
// repeated submission returns the first answer. Of each user at most kMaxEndedRequests for ended
// jobs are kept; the oldest are forgotten first.
inline constexpr std::size_t kMaxEndedRequests = 20'000;
struct RequestEntry {
  model::JobId job;
  base::Instant expires;  // unset while the job has not ended

  friend bool operator==(const RequestEntry&, const RequestEntry&) = default;
};

// The data that is derived from the truth, beside the books: none of it is in snapshots.
struct Indices {
  Counts counts;
  Load load;                                                   // what each user has in the core
  std::map<std::string, model::NodeId, std::less<>> node_ids;  // by name
  AdmissionGates admission_gates;                              // between waiting jobs and the queue
  ExpiringRequests expiring_requests;
  std::set<model::AttemptId> held_attempts;  // attempts that still hold resources
  bool limits_hours = false;                 // the policy limits GPU-hours
  TokenIndex token_index;
  TaintEnds taint_ends;
  HealthIndex health;
  BudgetMeters budget_meters;  // one of each budget in force

  friend bool operator==(const Indices&, const Indices&) = default;
};
// Returns the names of the members that differ.
std::vector<std::string_view> differences(const Indices& a, const Indices& b);

// Everything the core knows. Owned by one thread; only apply() changes it. The truth goes into
// snapshots; rebuild_indices() computes the rest from it.
struct State : Indices {
  model::EventSeq seq;  // of the last event applied
  base::Instant at;     // of the last event applied; never runs backwards
  // The policy in force: its organisation is made of that of the configuration and of the teams
  // that were set at run time.
  std::shared_ptr<const model::Policy> policy = std::make_shared<model::Policy>();
  base::Shared<model::TeamSources> teams;
  std::uint64_t last_job_id = 0;
  std::uint64_t last_node_id = 0;
  std::uint64_t last_token_id = 0;
  base::PersistentMap<model::Job> jobs;  // by JobId: waiting, active, and ended ones still holding
  base::PersistentMap<model::Node> nodes;       // by NodeId
  base::PersistentMap<model::JobArray> arrays;  // by the array's id, until its last member has left
  base::PersistentMap<model::Token> tokens;     // by TokenId, until they expire or are revoked
  // The key is (user, request id).
  std::map<std::pair<std::string, std::string>, RequestEntry> requests;
  scheduling::FairShareUse use;
  // When the policy was applied last, or, where GPUs are guaranteed, their number changed.
  base::Instant limits_set_at;
  base::Shared<scheduling::PredictionScores> scores;
  base::Shared<model::PriceBook> prices;
  // Since when the time of all GPUs is accounted: the first event. Unset in snapshots of versions
  // without a ledger, whose GPUs have no clocks: theirs come from the journal.
  base::Instant accounts_since;
  // Attempts that may have processes and got another time limit since their start was requested:
  // the last order to their engine may have been lost.
  std::set<model::AttemptId> relimited;
  // The scheduler's data. The parts that it keeps as reported (preemption holds, reservations, the
  // history of runs, the use of the period) are truth; the rest is derived from nodes and jobs.
  scheduling::Books books;
};

// Applies one event. `record.seq` must follow state.seq. A job that leaves the core with this event
// and the lines that it adds to the ledger go to the outbox. An event the transition tables do not
// allow is a bug and stops the program: commands and observations are judged before they become
// events.
void apply(State& state, const model::EventRecord& record, Outbox outbox);

// The truth as bytes, and back. Equal states give equal bytes.
std::string encode_state(const State& state);
base::Result<State> decode_state(std::string_view bytes);
std::uint64_t state_hash(const State& state);

// Returns null if the core does not know it (any more).
const model::Job* find_job(const State& state, model::JobId id);
const model::Attempt* find_attempt(const State& state, model::AttemptId id);

// Returns whether its victims that have not been told to stop still give way to the beneficiary:
// both may have changed since.
bool is_outranking(const State& state, const model::PreemptionHold& hold);
bool is_told_to_stop(const State& state, model::AttemptId attempt);
bool is_stopped_by_person(const model::Attempt& attempt);
// Returns whether the job fails if GPUs fail under this attempt, too: they have failed under it
// wherever it ran, or its input is gone.
bool is_given_up_by_hardware(const model::Job& job);
// Returns whether the attempt was told to stop in order to be queued again, and the job can begin
// anew.
bool goes_back(const model::Job& job, const model::Attempt& attempt);
// Returns the result of the target so far; nothing if the core does not know it (any more).
std::optional<model::TargetOutcome> outcome_of(const State& state,
                                               const model::DependencyTarget& target);

// Returns the places of the node, bit i for index i, whose GPUs may be forgotten: they are gone,
// and no attempt, person or reservation names them.
std::uint64_t free_places(const State& state, const model::Node& node);

// Returns the policy as the configuration has it, without what was set at run time.
model::Policy configured_policy(const State& state);

// Computes the derived part afresh from the truth.
void rebuild_indices(State& state);

}  // namespace gpu_platform::controller
