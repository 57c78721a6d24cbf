#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/persistent_map.h"
#include "base/shared.h"
#include "base/units.h"
#include "model/budget.h"
#include "model/forward.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/node.h"
#include "model/price.h"
#include "scheduling/forward.h"

// The state that readers see: an immutable copy of the state after some event. A copy costs O(1),
// and it is published before the commands that led to it are acknowledged, so a client reads its
// own writes. What few readers look at is declared alone: those include its header.

namespace gpu_platform::controller {

struct Counts {
  std::uint64_t pending = 0;
  std::uint64_t queued = 0;
  std::uint64_t held = 0;
  std::uint64_t suspended = 0;
  std::uint64_t active = 0;  // STARTING, RUNNING, STOPPING

  friend bool operator==(const Counts&, const Counts&) = default;
};

struct Snapshot {
  model::EventSeq seq;
  base::Instant at;
  base::PersistentMap<model::Job> jobs;    // by JobId: every job that has not left the core
  base::PersistentMap<model::Node> nodes;  // by NodeId
  std::shared_ptr<const model::Policy> policy;
  Counts counts;
  // The planned starts of the scheduler's last cycle; null before the first.
  std::shared_ptr<const std::vector<scheduling::PlannedStart>> planned_starts;
  base::Shared<scheduling::OrderBasis> order;  // that the queue is ordered by
  base::Instant use_epoch;  // that the GPU-time in its ranking is as of; see FairShareUse
  std::shared_ptr<const scheduling::PreemptionHolds> holds;  // null: none
  base::PersistentMap<model::JobArray> arrays;               // by the array's id
  base::Shared<scheduling::PeriodUse> period_use;
  std::shared_ptr<const scheduling::Reservations> reservations;  // null: none
  base::Shared<scheduling::RunHistory> runs;
  base::Shared<scheduling::PredictionScores> scores;
  base::PersistentMap<model::Token> tokens = {};  // by TokenId
  base::Shared<model::TeamSources> teams = {};
  model::JobId promised = {};  // see promised_start.h; invalid: none
  base::Shared<std::vector<model::NodeId>> nodes_by_name = {};  // see node_named()
  base::Shared<model::PriceBook> prices = {};
  base::Shared<model::BudgetStates> budgets = {};
};

}  // namespace gpu_platform::controller
