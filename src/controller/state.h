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

#include "base/persistent_map.h"
#include "base/result.h"
#include "base/shared.h"
#include "base/units.h"
#include "controller/admission_gates.h"
#include "controller/expiring_requests.h"
#include "controller/load.h"
#include "controller/snapshot.h"
#include "model/event.h"
#include "model/job.h"
#include "model/node.h"
#include "model/policy.h"
#include "scheduling/book_entries.h"
#include "scheduling/books.h"
#include "scheduling/order/fair_share_use.h"
#include "scheduling/predict/prediction_scores.h"

namespace gpu_platform::controller {

using scheduling::end_by_limit;
using scheduling::latest_end;
using scheduling::time_limit_of;

// What a request id was used for. Kept until its lifetime after the job's end is over, so that a
// repeated submission returns the first answer; of those of a user whose jobs have ended no more
// than kMaxEndedRequests, the oldest of which are forgotten earlier.
inline constexpr std::size_t kMaxEndedRequests = 20'000;
struct RequestEntry {
  model::JobId job;
  base::Instant expires;  // unset while the job has not ended

  friend bool operator==(const RequestEntry&, const RequestEntry&) = default;
};

// What follows from the truth, beside the books: nothing of it is in snapshots.
struct Indices {
  Counts counts;
  Load load;                                                   // what each user has in the core
  std::map<std::string, model::NodeId, std::less<>> node_ids;  // by name
  AdmissionGates admission_gates;                              // between waiting jobs and the queue
  ExpiringRequests expiring_requests;
  std::set<model::AttemptId> held_attempts;  // attempts that still hold resources
  bool limits_hours = false;                 // the policy limits somebody's GPU-hours

  friend bool operator==(const Indices&, const Indices&) = default;
};
// The names of those that differ.
std::vector<std::string_view> differences(const Indices& a, const Indices& b);

// Everything the core knows. Owned by one thread; only apply() changes it. The truth goes into
// snapshots; the rest follows from it and is worked out anew by rebuild_indices().
struct State : Indices {
  model::EventSeq seq;  // of the last event applied
  base::Instant at;     // of the last event applied; never runs backwards
  std::shared_ptr<const model::Policy> policy = std::make_shared<model::Policy>();
  std::uint64_t last_job_id = 0;
  std::uint64_t last_node_id = 0;
  base::PersistentMap<model::Job> jobs;  // by JobId: waiting, active, and ended ones still holding
  base::PersistentMap<model::Node> nodes;       // by NodeId
  base::PersistentMap<model::JobArray> arrays;  // by the array's id, until its last member has left
  // By (user, request id).
  std::map<std::pair<std::string, std::string>, RequestEntry> requests;
  scheduling::FairShareUse use;
  // When the policy was applied last, or, where GPUs are guaranteed, their number changed.
  base::Instant limits_set_at;
  base::Shared<scheduling::PredictionScores> scores;
  // Attempts that may have processes and whose time limit was changed since they were asked for:
  // what their engine was told last may have got lost.
  std::set<model::AttemptId> relimited;
  // What the scheduler goes by. What it keeps as told (preemption holds, reservations, the history
  // of runs, the use of the period) is truth; the rest follows from nodes and jobs.
  scheduling::Books books;
};

// Applies one event. `record.seq` must follow state.seq. A job that leaves the core with this event
// (it has ended and holds nothing) is appended to `departed`. An event the transition tables do not
// allow is a bug and stops the program: commands and observations are judged before they become
// events.
void apply(State& state, const model::EventRecord& record, std::vector<model::Job>& departed);

// The truth as bytes, and back. Equal states give equal bytes.
std::string encode_state(const State& state);
base::Result<State> decode_state(std::string_view bytes);
std::uint64_t state_hash(const State& state);

// Null where the core does not know it (any more).
const model::Job* find_job(const State& state, model::JobId id);
const model::Attempt* find_attempt(const State& state, model::AttemptId id);

// Whether its victims, as far as they are not told to stop yet, still give way to the beneficiary:
// both may have been changed since.
bool is_outranking(const State& state, const model::PreemptionHold& hold);
bool is_told_to_stop(const State& state, model::AttemptId attempt);
bool is_stopped_by_person(const model::Attempt& attempt);
// Whether the attempt was told to stop so as to be queued again, and the job can begin anew.
bool goes_back(const model::Job& job, const model::Attempt& attempt);
// What has become of the target so far; nothing where the core does not know it (any more).
std::optional<model::TargetOutcome> outcome_of(const State& state,
                                               const model::DependencyTarget& target);

// Works out the derived part anew from the truth.
void rebuild_indices(State& state);

}  // namespace gpu_platform::controller
