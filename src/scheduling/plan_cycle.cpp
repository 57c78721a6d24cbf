#include "scheduling/plan_cycle.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduling/placement/place.h"
#include "scheduling/trial.h"

namespace gpu_platform::scheduling {

namespace {

const RunningEnds kNobody;

class Cycle {
 public:
  Cycle(Cluster& cluster, const WaitingQueue& queue, const model::Policy& policy,
        const CycleOptions& options)
      : trial_(cluster),
        timeline_(trial_, options.running == nullptr ? kNobody : *options.running,
                  {options.now, policy.stop_grace, options.most_changes}),
        queue_(queue),
        depth_(policy.reservation_depth),
        options_(options),
        walk_(queue.classes()) {}

  Plan run();

  // For questions, instead of run(): keeps the places of those that rank before.
  void keep_places(std::span<const Reservation> reservations, const Rank& before);
  std::optional<model::Allocation> start_of(const WaitingJob& job);
  std::optional<Slot> slot_of(const WaitingJob& job);

 private:
  struct Row {
    Stage stage;
    void (Cycle::*run)();
  };
  static const Row kRows[];

  // What is to be done with the jobs behind one that was considered.
  enum class Next { kGoOn, kSkipClass, kStop };

  void order() { is_ordered_ = true; }
  void place_in_order();
  void backfill();
  Next consider(const WaitingJob& job);
  Next pass_or_block(const WaitingJob& job);
  Next backfill_one(const WaitingJob& job);
  Next reserve_for(const WaitingJob& job);
  bool has_room_for_starts();
  void start(const WaitingJob& job, model::Allocation allocation, model::StartWhy why);
  template <class Place>
  std::optional<model::Allocation> place_for(const WaitingJob& job, const Place& place_it);
  bool is_known_unplaceable(const model::ResourceRequest& request) const;

  Trial trial_;
  Timeline timeline_;
  const WaitingQueue& queue_;
  const std::size_t depth_;
  const CycleOptions& options_;
  WaitingClasses::Walk walk_;
  Plan plan_;
  bool is_ordered_ = false;
  const WaitingJob* blocked_ = nullptr;  // the first job that does not fit
  // Requests found to fit no node that is up, each once: a queue may be full of equal ones.
  std::vector<const model::ResourceRequest*> unplaceable_;
};

// The one list of stages. quota stands between order and place; preempt and defragment follow, each
// with what the earlier ones left in the trial and the plan.
const Cycle::Row Cycle::kRows[] = {
    {Stage::kOrder, &Cycle::order},
    {Stage::kPlace, &Cycle::place_in_order},
    {Stage::kBackfill, &Cycle::backfill},
};

Plan Cycle::run() {
  for (const auto& [stage, run_stage] : kRows) {
    if (!options_.stages.has(stage)) continue;
    if (options_.observer != nullptr) options_.observer->begin(stage);
    (this->*run_stage)();
    if (options_.observer != nullptr) options_.observer->end(stage);
  }
  return std::move(plan_);
}

void Cycle::place_in_order() {
  if (!is_ordered_) {
    queue_.for_each_by_id_while(
        [this](const WaitingJob& job) { return consider(job) != Next::kStop; });
    return;
  }
  while (const Rank* rank = walk_.next()) {
    const Next next = consider(queue_.find(*rank));
    if (next == Next::kStop) return;
    if (next == Next::kSkipClass) walk_.drop_class();
  }
}

// Away from the nodes that the job is to avoid, or there where no other has room.
template <class Place>
std::optional<model::Allocation> Cycle::place_for(const WaitingJob& job, const Place& place_it) {
  if (!job.avoid.empty()) {
    const Trial::Mark mark = trial_.mark();
    for (const model::NodeId node : job.avoid) trial_.shut(node);
    std::optional<model::Allocation> allocation = place_it();
    trial_.rollback_to(mark);
    if (allocation) return allocation;
  }
  return place_it();
}

Cycle::Next Cycle::consider(const WaitingJob& job) {
  if (!has_room_for_starts()) return Next::kStop;
  const model::ResourceRequest& request = job.spec->request;
  if (is_known_unplaceable(request)) return Next::kSkipClass;
  std::optional<model::Allocation> allocation =
      place_for(job, [&] { return place(trial_.cluster(), request); });
  if (!allocation) return pass_or_block(job);
  start(job, *std::move(allocation), model::StartWhy::kImmediate);
  return Next::kGoOn;
}

Cycle::Next Cycle::pass_or_block(const WaitingJob& job) {
  const model::ResourceRequest& request = job.spec->request;
  if (options_.pass_unplaceable && !some_node_up_could_hold(trial_.cluster(), request)) {
    unplaceable_.push_back(&request);
    return Next::kSkipClass;
  }
  blocked_ = &job;
  plan_.blocked_head = job.id;
  return Next::kStop;
}

// Goes on with the walk where placing in order has stopped, at the blocked head.
void Cycle::backfill() {
  if (depth_ == 0 || !is_ordered_ || blocked_ == nullptr) return;
  Next next = reserve_for(*blocked_);
  while (next != Next::kStop) {
    if (next == Next::kSkipClass) walk_.drop_class();
    const Rank* rank = walk_.next();
    if (rank == nullptr) return;
    next = backfill_one(queue_.find(*rank));
  }
}

Cycle::Next Cycle::backfill_one(const WaitingJob& job) {
  if (!has_room_for_starts()) return Next::kStop;
  std::optional<model::Allocation> allocation = start_of(job);
  if (!allocation) return reserve_for(job);
  const bool passes_somebody = !plan_.reservations.empty();
  start(job, *std::move(allocation),
        passes_somebody ? model::StartWhy::kBackfill : model::StartWhy::kImmediate);
  return Next::kGoOn;
}

Cycle::Next Cycle::reserve_for(const WaitingJob& job) {
  if (plan_.reservations.size() >= depth_) return Next::kSkipClass;
  std::optional<Slot> slot = slot_of(job);
  if (!slot) return Next::kSkipClass;
  timeline_.book(*slot, job.spec->time_limit);
  plan_.reservations.push_back({job.id, *std::move(slot)});
  return Next::kGoOn;
}

std::optional<model::Allocation> Cycle::start_of(const WaitingJob& job) {
  return place_for(job,
                   [&] { return timeline_.place_now(job.spec->request, job.spec->time_limit); });
}

std::optional<Slot> Cycle::slot_of(const WaitingJob& job) {
  const model::ResourceRequest& request = job.spec->request;
  if (!some_node_up_could_hold(trial_.cluster(), request)) return std::nullopt;
  return timeline_.earliest(request, job.spec->time_limit);
}

// What was reserved for a moment that has passed since is there at any moment.
void Cycle::keep_places(std::span<const Reservation> reservations, const Rank& before) {
  for (const Reservation& each : reservations) {
    const Rank* rank = queue_.find_rank(each.job);
    if (rank == nullptr || !(*rank < before)) continue;
    Slot slot = each.slot;
    slot.start = std::max(slot.start, options_.now + kNextMoment);
    timeline_.book(slot, queue_.find(*rank).spec->time_limit);
  }
}

bool Cycle::has_room_for_starts() {
  plan_.complete = plan_.starts.size() < options_.max_starts;
  return plan_.complete;
}

void Cycle::start(const WaitingJob& job, model::Allocation allocation, model::StartWhy why) {
  timeline_.start(allocation, job.spec->time_limit);
  plan_.starts.push_back({job.id, std::move(allocation), why});
}

bool Cycle::is_known_unplaceable(const model::ResourceRequest& request) const {
  return std::ranges::any_of(unplaceable_, [&](const auto* known) { return *known == request; });
}

}  // namespace

struct WhatIf::State {
  CycleOptions options;
  Cycle cycle;
  bool may_pass = true;  // those ahead, none of whom starts

  State(Cluster& cluster, const WaitingQueue& queue, const model::Policy& policy,
        const CycleOptions& given)
      : options(given), cycle(cluster, queue, policy, options) {}
};

WhatIf::WhatIf(Cluster& cluster, const WaitingQueue& queue, const model::Policy& policy,
               const CycleOptions& options, std::span<const Reservation> reservations,
               const Rank& rank)
    : state_(std::make_unique<State>(cluster, queue, policy, options)) {
  const Rank* first = queue.classes().first();
  const bool is_behind = first != nullptr && *first < rank;
  state_->may_pass = !is_behind || policy.reservation_depth > 0;
  state_->cycle.keep_places(reservations, rank);
}

WhatIf::~WhatIf() = default;

std::optional<model::Allocation> WhatIf::start_of(const WaitingJob& job) {
  return state_->may_pass ? state_->cycle.start_of(job) : std::nullopt;
}

std::optional<Slot> WhatIf::slot_of(const WaitingJob& job) {
  return state_->may_pass ? state_->cycle.slot_of(job) : std::nullopt;
}

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::kOrder:
      return "order";
    case Stage::kPlace:
      return "place";
    case Stage::kBackfill:
      return "backfill";
  }
  CHECK(false);
  std::unreachable();
}

// A plan with starts is not kept: they change the cluster, or the caller could not apply them and
// has to get them again.
void CycleCache::remember(const Seen& seen, const Plan& plan) {
  if (!plan.starts.empty() || !plan.complete) {
    clear();
    return;
  }
  seen_ = seen;
  plan_ = plan;
  plan_.unchanged = true;
}

Plan plan_cycle(Cluster& cluster, const WaitingQueue& queue, const model::Policy& policy,
                const CycleOptions& options) {
  CHECK(queue.empty() || queue.is_ordered_by(policy));
  if (options.cache == nullptr) return Cycle(cluster, queue, policy, options).run();
  const CycleCache::Seen seen{
      .cluster_version = cluster.version(),
      .queue_version = queue.version(),
      .running_version = options.running == nullptr ? 0 : options.running->version(),
      .policy = policy,
      .stages = options.stages,
      .pass_unplaceable = options.pass_unplaceable};
  if (const Plan* same = options.cache->find(seen)) return *same;
  Plan plan = Cycle(cluster, queue, policy, options).run();
  options.cache->remember(seen, plan);
  return plan;
}

}  // namespace gpu_platform::scheduling
