#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "simulation/faults/world.h"

// These actions happen to a world.

namespace gpu_platform::simulation {

// ---- time

void World::run_with_faults() {
  for (std::uint64_t i = 0; i < setup_.actions && !findings_.any(); ++i) {
    const auto mean = static_cast<std::uint64_t>(setup_.mean_gap.value());
    // Often at the same moment as what came before: that is where races are.
    const std::uint64_t gap = random_.chance(1, 3) ? 0 : random_.below(2 * mean);
    run_until(clock_.boot() + base::nanoseconds(static_cast<std::int64_t>(gap)));
    if (findings_.any()) return;
    fault_mps_client();
    act();
    if (!commands_.empty() && random_.chance(1, 2)) turn();
  }
}

void World::run_until(base::Instant boot) {
  while (!findings_.any() && clock_.boot() < boot) step_to(boot);
}

// Moves time to the next thing that happens, at most to `limit`.
void World::step_to(base::Instant limit) {
  if (!commands_.empty() || link_.has_news()) {
    turn();
    return;
  }
  base::Instant next = limit;
  if (const auto at = engine_.next_event()) next = std::min(next, *at);
  if (const auto at = pods_ ? pods_->next_event() : std::nullopt) next = std::min(next, *at);
  if (const auto at = link_.next_delivery()) next = std::min(next, *at);
  const auto wakeup = controller_->next_wakeup();
  const base::Instant wakes_at = wakeup ? clock_.boot_when(*wakeup) : limit;
  next = std::min(next, wakes_at);
  clock_.advance_to(next);
  engine_.advance(clock_.boot());
  if (pods_) pods_->advance(clock_.boot());
  link_.deliver();
  const bool is_due = wakeup && wakes_at <= clock_.boot();
  if (is_due || !commands_.empty() || link_.has_news()) turn();
}

// ---- actions

void World::act() {
  if (cut_short_.valid() && random_.chance(1, 2)) return cross();
  struct Choice {
    std::uint64_t weight;
    void (World::*act)();
  };
  const Weights& w = setup_.weights;
  if (random_.chance(w.submit, w.submit + w.stop + w.repeat_submission + w.policy + w.crash +
                                   w.node + w.clock + w.disk + w.snapshot + w.supervisor +
                                   w.operators + w.unmanaged_processes + w.change + w.crossing +
                                   w.cluster)) {
    for (std::uint64_t n = 1 + random_.below(3); n > 0; --n) {
      client_.submit_new(commands_);
    }
    return;
  }
  const Choice choices[] = {
      {w.stop, &World::stop_job},
      {w.repeat_submission, &World::repeat_submission},
      {w.policy, &World::change_policy},
      {w.crash, &World::plan_crash},
      {w.node, &World::trouble_node},
      {w.clock, &World::set_clock},
      {w.disk, &World::fill_or_free_disk},
      {w.snapshot, &World::plan_damaged_snapshot},
      {w.supervisor, &World::lose_supervisor},
      {w.operators, &World::operate},
      {w.unmanaged_processes, &World::bring_unmanaged_processes},
      {w.change, &World::change_job},
      {w.crossing, &World::cross},
      {w.cluster, &World::change_cluster},
  };
  std::uint64_t total = 0;
  for (const Choice& choice : choices) total += choice.weight;
  std::uint64_t drawn = random_.below(total);
  for (const Choice& choice : choices) {
    if (drawn < choice.weight) return (this->*choice.act)();
    drawn -= choice.weight;
  }
}

void World::stop_job() {
  client_.stop_some(commands_);
}

void World::change_job() {
  client_.change_some(commands_);
}

// A process ends by itself, or at its time limit, while a command about it is on its way.
void World::cross() {
  if (cut_short_.valid()) {
    client_.limit_one(std::exchange(cut_short_, {}), base::hours(1), commands_);
    return;
  }
  const std::vector<model::AttemptId> live = live_attempts();
  if (live.empty()) return;
  const model::AttemptId id = live[random_.below(live.size())];
  if (random_.chance(1, 3)) {
    cut_short_ = id.job;
    client_.limit_one(id.job, base::seconds(1), commands_);
    return;
  }
  client_.change_one(id.job, commands_);
  const auto code = static_cast<std::uint8_t>(random_.chance(2, 3) ? 0 : 3);
  finish(id, {.code = code, .signal = {}, .lost = model::Lost::kNo});
}

std::vector<model::AttemptId> World::live_attempts() const {
  std::vector<model::AttemptId> live = engine_.live_attempts();
  if (!pods_) return live;
  const std::vector<model::AttemptId> in_pods = cluster_->live_attempts();
  live.insert(live.end(), in_pods.begin(), in_pods.end());
  return live;
}

bool World::finish(model::AttemptId attempt, const model::Exit& exit) {
  return (pods_ && cluster_->finish(attempt, exit)) ||
         engine_.finish(attempt, exit, model::EndReason::kNone);
}

void World::repeat_submission() {
  client_.submit_again(commands_);
}

void World::change_policy() {
  policy_ = draw_policy(random_);
  commands_.emplace_back(controller::PolicyChange{policy_, "root"});
}

void World::plan_crash() {
  constexpr FaultKind kPoints[] = {
      FaultKind::kCrashIdle,           FaultKind::kCrashBeforeCommit,
      FaultKind::kCrashCommitLost,     FaultKind::kCrashCommitUnheard,
      FaultKind::kCrashBeforePublish,  FaultKind::kCrashBeforeAcknowledge,
      FaultKind::kCrashBeforeDispatch, FaultKind::kCrashInDispatch};
  dies_in_recovery_ = random_.chance(1, 4);
  const FaultKind point = kPoints[random_.below(std::size(kPoints))];
  if (point != FaultKind::kCrashIdle) {
    planned_crash_ = point;
    return;
  }
  findings_.count(point);
  crash();
}

void World::plan_damaged_snapshot() {
  is_snapshot_to_be_damaged_ = true;
  findings_.count(FaultKind::kCrashIdle);
  crash();
}

void World::trouble_node() {
  const std::size_t node = random_.below(setup_.nodes.size());
  const std::string& name = setup_.nodes[node].name;
  if (has_pods(node)) return cluster_->trouble(name);
  if (random_.chance(1, 3)) {
    reboot(node, random_.chance(1, 2));
  } else if (random_.chance(1, 8)) {
    shrink_node(node);
  } else if (engine_.is_reachable(name)) {
    findings_.count(FaultKind::kNodeUnreachable);
    // Sometimes there is only silence: no report says that the connection is gone.
    engine_.disconnect(name, random_.chance(1, 4) ? "" : "no answer for 30 s");
  } else {
    findings_.count(FaultKind::kNodeReturned);
    engine_.reconnect(name);
  }
}

void World::reboot(std::size_t node, bool with_all_gpus) {
  findings_.count(FaultKind::kNodeRebooted);
  model::NodeInfo info = setup_.nodes[node];
  ++boots_[node];
  info.boot_id = boot_id(node);
  if (!with_all_gpus && !info.gpus.empty()) {
    findings_.count(FaultKind::kGpuMissing);
    info.gpus.erase(info.gpus.begin() +
                    static_cast<std::ptrdiff_t>(random_.below(info.gpus.size())));
  }
  if (!with_all_gpus && random_.chance(1, 2)) shrink(info);
  engine_.reboot(info);
}

void World::shrink(model::NodeInfo& info) {
  findings_.count(FaultKind::kNodeShrunk);
  info.cpus = 1 + static_cast<std::uint32_t>(random_.below(info.cpus));
  info.memory =
      base::kGiB * static_cast<std::int64_t>(1 + random_.below(static_cast<std::uint64_t>(
                                                     info.memory.value() / base::kGiB.value())));
}

// There is no new boot: what runs there keeps what it was given.
void World::shrink_node(std::size_t node) {
  model::NodeInfo info = setup_.nodes[node];
  info.boot_id = boot_id(node);
  shrink(info);
  engine_.put_node(info);
}

std::string World::boot_id(std::size_t node) const {
  return fmt::format("{}.{}", setup_.nodes[node].name, boots_[node]);
}

void World::set_clock() {
  const auto seconds =
      static_cast<std::int64_t>(1 + random_.below(random_.chance(1, 2) ? 60 : 7200));
  const bool is_forward = random_.chance(1, 2);
  findings_.count(is_forward ? FaultKind::kClockForward : FaultKind::kClockBack);
  clock_.set_wall_by(base::seconds(is_forward ? seconds : -seconds));
}

void World::fill_or_free_disk() {
  if (store_.headroom() == store::Headroom::kAmple) {
    findings_.count(FaultKind::kDiskFull);
    store_.set_headroom(store::Headroom::kReserved);
  } else {
    store_.set_headroom(store::Headroom::kAmple);
  }
}

void World::lose_supervisor() {
  const std::vector<model::AttemptId> live = engine_.live_attempts();
  if (live.empty()) return;
  findings_.count(FaultKind::kSupervisorLost);
  engine_.lose_supervisor(live[random_.below(live.size())]);
}

// ---- liveness

// From here on nothing goes wrong any more, and what did is repaired.
void World::heal() {
  is_faulty_ = false;
  planned_crash_.reset();
  dies_in_recovery_ = false;
  link_.set_faults({}, {});
  store_.set_headroom(store::Headroom::kAmple);
  if (pods_) {
    pods_->set_faults({});
    cluster_->heal();
  }
  for (std::size_t i = 0; i < setup_.nodes.size(); ++i) {
    if (has_pods(i)) continue;
    const model::NodeInfo& node = setup_.nodes[i];
    if (random_.chance(1, 2)) {
      reboot(i, true);
    } else if (!engine_.is_reachable(node.name)) {
      engine_.reconnect(node.name);
    }
    model::NodeInfo whole = node;
    whole.boot_id = boot_id(i);
    engine_.put_node(whole);
  }
  // Limits may have been lowered below what a waiting job asks for: they are lifted.
  if (*policy_.organisation != model::Organisation()) {
    policy_.organisation = model::Organisation();
    commands_.emplace_back(controller::PolicyChange{policy_, "root"});
  }
  lift_limits_of_teams();
  client_.submit_unanswered(commands_);
  for (const model::AttemptId id : ledger_.state().held_attempts) {
    const model::Job* job = ledger_.state().jobs.find(id.job.value);
    if (job->state == model::JobState::kStopping) told_to_stop_.insert(id);
  }
  // The longest grace, the slowest end after SIGTERM, and a few times in which the core asks again.
  obeyed_by_ = clock_.boot() + base::minutes(4) + setup_.controller.reconcile_interval * 3;
}

bool World::is_done() const {
  const controller::State& state = controller_->core().state();
  return state.jobs.empty() && state.health.resets().empty() && commands_.empty() &&
         !link_.has_news() && !link_.next_delivery() && (!pods_ || pods_->is_idle());
}

void World::run_to_the_end() {
  const base::Instant deadline = clock_.boot() + base::hours(24 * 30);
  std::uint64_t turns_at_one_instant = 0;
  while (!findings_.any()) {
    put_back();
    if (is_done()) return;
    if (clock_.boot() >= deadline && controller_->core().state().jobs.empty()) {
      findings_.violated("left", pods_ ? cluster_->contents() + " are left" : "news are left");
      return;
    }
    if (clock_.boot() >= deadline) {
      const auto& jobs = controller_->core().state().jobs;
      std::string first;
      jobs.for_each_while([&](std::uint64_t id, const model::Job& job) {
        first = fmt::format("job {} is {}", id, to_string(job.state));
        return false;
      });
      findings_.violated("liveness", fmt::format("{} jobs have not ended after 30 days without "
                                                 "faults; {}",
                                                 jobs.size(), first));
      return;
    }
    const base::Instant before = clock_.boot();
    step_to(deadline);
    turns_at_one_instant = clock_.boot() == before ? turns_at_one_instant + 1 : 0;
    if (turns_at_one_instant > 10'000) {
      findings_.violated("liveness", "controller and engine call each other without end");
    }
    check_obeyed();
  }
}

void World::check_obeyed() {
  if (told_to_stop_.empty() || clock_.boot() < obeyed_by_) return;
  for (const model::AttemptId id : std::exchange(told_to_stop_, {})) {
    const model::Job* job = ledger_.state().jobs.find(id.job.value);
    if (job == nullptr || id.attempt > job->attempts.size()) continue;
    if (job->attempts[id.attempt - 1].state == model::AttemptState::kStopping) {
      findings_.violated("obeyed", fmt::format("attempt {} of job {} was told to stop and runs on",
                                               id.attempt, id.job.value));
    }
  }
}

void World::check_end() {
  const controller::State& state = controller_->core().state();
  if (!state.held_attempts.empty() || state.counts != controller::Counts()) {
    findings_.violated("liveness", "resources are held or jobs counted after the last job ended");
  }
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    const bool is_free = node.cpus_used == 0 && node.memory_used == base::Bytes() &&
                         std::ranges::all_of(node.gpus, &model::is_free);
    if (!is_free) {
      findings_.violated("liveness", node.name + " is not free after the last job ended");
    }
  });
  client_.check_end(store_);
  check_replay_from_start();
}

}  // namespace gpu_platform::simulation
