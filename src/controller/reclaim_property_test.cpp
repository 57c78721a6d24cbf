#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"

// What is guaranteed to a team is never kept back by others' borrowed work for longer than the
// grace, whatever the classes, the order and the load.

namespace gpu_platform::controller {
namespace {

using testing::kNoon;

constexpr base::Duration kGrace = base::seconds(30);
constexpr std::uint32_t kGpus = 8;  // of a node
constexpr std::uint32_t kTeams = 3;

std::string team_name(std::uint64_t number) {
  return "team" + std::to_string(number);
}

// Nodes whose GPUs are all guaranteed to teams. These ask for single GPUs, so that what they are
// owed always fits; others, who own nothing, for whole nodes.
class Site {
 public:
  explicit Site(std::uint64_t seed) : random_(seed) {
    const std::uint64_t nodes = 1 + random_.below(3);
    model::Policy policy;
    policy.stop_grace = kGrace;
    policy.order = static_cast<model::QueueOrder>(seed % model::kQueueOrders);
    policy.max_queue_size = 100'000;
    policy.reservation_depth = static_cast<std::uint32_t>(1 + random_.below(3));
    std::uint64_t left = nodes * kGpus;
    model::Organisation organisation;
    for (std::uint64_t i = 0; i < kTeams; ++i) {
      const std::uint64_t own = i + 1 == kTeams ? left : random_.below(left + 1);
      left -= own;
      organisation.teams.push_back({team_name(i),
                                    {},
                                    1,
                                    {{"ann", 1}},
                                    {.guaranteed_gpus = static_cast<std::uint32_t>(own)}});
      guaranteed_[team_name(i)] = own;
    }
    policy.organisation = std::move(organisation);
    core_.apply_policy(policy, "test", now_);
    for (std::uint64_t i = 0; i < nodes; ++i) {
      core_.observe(execution::NodeObserved{testing::node_info("n" + std::to_string(i), kGpus)},
                    now_);
    }
  }

  void submit_some() {
    for (std::uint64_t n = random_.below(5); n > 0; --n) {
      model::JobSpec spec = testing::spec(1);
      spec.request.cpus = 1;
      spec.request.memory = base::kGiB;
      spec.priority = model::priority_of_number(static_cast<std::uint8_t>(random_.below(10)));
      spec.time_limit = base::minutes(static_cast<std::int64_t>(1 + random_.below(600)));
      spec.team = team_name(random_.below(kTeams));
      // Work of one team that cannot be stopped would turn other work of the team into borrowed.
      spec.preemptible = spec.team != team_name(0);
      if (random_.chance(1, 3)) {
        spec.team.clear();
        spec.user = "guest";
        spec.uid = spec.gid = 1002;
        spec.preemptible = true;
        spec.request.gpus = static_cast<std::uint32_t>(1 + random_.below(kGpus));
      }
      const auto reply = core_.command(testing::submission(spec), now_, store::Room::kAmple);
      EXPECT_TRUE(reply.has_value()) << (reply ? "" : reply.error().message);
    }
    settle();
  }

  void pass(base::Duration time) {
    const base::Instant until = now_ + time;
    while (true) {
      base::Instant next = until;
      if (const auto wakeup = core_.next_wakeup()) next = std::min(next, std::max(*wakeup, now_));
      if (!ends_.empty()) next = std::min(next, ends_.begin()->first);
      now_ = next;
      const bool is_over = next == until;
      if (!ends_.empty() && ends_.begin()->first <= now_) end_first();
      settle();
      check_owed();
      if (is_over) return;
    }
  }

  base::Prng& random() { return random_; }
  const State& state() const { return core_.state(); }
  std::uint64_t reclaimed() const { return reclaimed_; }
  base::Duration longest_owed() const { return longest_owed_; }

 private:
  // Since when each team holds less than is guaranteed to it, waits, and nothing of it starts.
  void check_owed() {
    std::map<std::string, std::uint64_t> held;
    std::map<std::string, bool> waits;
    core_.state().jobs.for_each([&](std::uint64_t, const model::Job& job) {
      waits[job.spec->team] |= job.state == model::JobState::kQueued;
      held[job.spec->team] += model::holds_resources(job) ? 1 : 0;
    });
    for (const auto& [team, own] : guaranteed_) {
      const bool is_owed = waits[team] && held[team] < own;
      if (!is_owed || started_[team]) owed_since_[team].reset();
      if (is_owed && !owed_since_[team]) owed_since_[team] = now_;
      if (is_owed) longest_owed_ = std::max(longest_owed_, now_ - *owed_since_[team]);
    }
    started_.clear();
  }

  void end_first() {
    const model::AttemptId id = ends_.begin()->second;
    ends_.erase(ends_.begin());
    core_.observe(testing::ended(id, 0, now_), now_);
    core_.observe(execution::Cleaned{id}, now_);
  }

  // Each news has its cycle, as in the daemon.
  void settle() {
    while (true) {
      core_.advance(now_);
      const std::vector<Effect> effects = core_.take_batch().effects;
      if (effects.empty()) return;
      for (const Effect& effect : effects) carry_out(effect);
    }
  }

  void carry_out(const Effect& effect) {
    if (const auto* start = std::get_if<execution::StartOrder>(&effect)) {
      execution::Started started;
      started.attempt = start->attempt;
      started.at = now_;
      core_.observe(started, now_);
      started_[start->spec->team] = true;
      const auto most = static_cast<std::uint64_t>(start->time_limit.value() / 1'000'000'000);
      ends_.emplace(now_ + base::seconds(static_cast<std::int64_t>(1 + random_.below(most))),
                    start->attempt);
    }
    if (const auto* stop = std::get_if<execution::StopOrder>(&effect)) {
      const model::Job& victim = *state().jobs.find(stop->attempt.job.value);
      reclaimed_ += victim.attempts.back().is_borrowed ? 1 : 0;
      std::erase_if(ends_, [&](const auto& entry) { return entry.second == stop->attempt; });
      ends_.emplace(now_ + kGrace, stop->attempt);
    }
  }

  base::Prng random_;
  Core core_;
  base::Instant now_ = kNoon;
  std::multimap<base::Instant, model::AttemptId> ends_;
  std::map<std::string, std::uint64_t> guaranteed_;
  std::map<std::string, std::optional<base::Instant>> owed_since_;
  std::map<std::string, bool> started_;
  base::Duration longest_owed_;
  std::uint64_t reclaimed_ = 0;
};

TEST(Reclaim, NoGuaranteeIsKeptBackForLongerThanTheGrace) {
  std::uint64_t reclaimed = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Site site(seed);
    for (int i = 0; i < 60; ++i) {
      site.submit_some();
      site.pass(base::seconds(static_cast<std::int64_t>(1 + site.random().below(600))));
      ASSERT_LE(site.longest_owed(), kGrace + base::seconds(1)) << "seed " << seed << " step " << i;
      if (i % 10 == 0) {
        ASSERT_EQ(check_invariants(site.state()), std::vector<std::string>()) << "seed " << seed;
      }
    }
    reclaimed += site.reclaimed();
  }
  EXPECT_GT(reclaimed, 100U);
}

}  // namespace
}  // namespace gpu_platform::controller
