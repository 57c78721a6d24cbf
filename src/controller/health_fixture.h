#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"

namespace gpu_platform::controller::testing {

using model::EvidenceKind;
using model::GpuAction;
using model::GpuState;
using model::JobState;

// Two nodes of eight GPUs. Time passes by pass(); what follows from it has followed then.
class HealthTest : public ::testing::Test {
 protected:
  HealthTest() {
    policy_.health_max_out_percent = 50;
    apply(policy_);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 8)}, now_);
    core_.observe(execution::NodeObserved{testing::node_info("n2", 8)}, now_);
    settle();
  }

  void apply(const model::Policy& policy) {
    core_.apply_policy(policy, "test", now_);
    settle();
  }
  void settle() {
    core_.advance(now_);
    Batch batch = core_.take_batch();
    for (model::EventRecord& each : batch.events) events_.push_back(std::move(each));
    for (Effect& each : batch.effects) effects_.push_back(std::move(each));
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  // Wakes as often as the core asks for it.
  void pass(base::Duration time) {
    const base::Instant until = now_ + time;
    while (true) {
      const auto next = core_.next_wakeup();
      if (!next || *next > until) break;
      now_ = std::max(now_ + base::nanoseconds(1), *next);
      settle();
    }
    now_ = std::max(now_, until);
    settle();
  }
  void see(const execution::Observation& observation) {
    core_.observe(observation, now_);
    settle();
  }
  void see(const std::string& uuid, EvidenceKind kind, std::uint32_t code = 0,
           bool is_over = false) {
    execution::EvidenceObserved seen{uuid.substr(0, 2), uuid, {}};
    seen.evidence.kind = kind;
    seen.evidence.code = code;
    seen.evidence.at = now_;
    seen.evidence.last = now_;
    seen.evidence.is_over = is_over;
    see(seen);
  }
  void xid(const std::string& uuid, std::uint32_t code) { see(uuid, EvidenceKind::kXid, code); }

  std::uint64_t submit(std::uint32_t gpus, const std::string& name = "job") {
    model::JobSpec spec = testing::spec(gpus);
    spec.name = name;
    const auto reply =
        core_.command(testing::submission(std::move(spec)), now_, store::Headroom::kAmple);
    EXPECT_TRUE(reply);
    settle();
    return reply->job.value;
  }
  std::uint64_t run(std::uint32_t gpus, const std::string& name = "job") {
    const std::uint64_t job = submit(gpus, name);
    started(job, 1);
    return job;
  }
  void started(std::uint64_t job, std::uint32_t number) {
    see(execution::Started{attempt(job, number), 5, now_});
  }
  void end(std::uint64_t job, std::uint32_t number, std::uint8_t code) {
    see(testing::ended(attempt(job, number), code, now_));
    see(execution::Cleaned{attempt(job, number)});
  }
  base::Result<model::CommandReply> order(const std::string& node, std::uint32_t index,
                                          GpuAction action, bool force = false,
                                          bool when_empty = false) {
    model::ChangeGpus command;
    command.which = {.node = node, .index = index};
    command.action = action;
    command.force = force;
    command.when_empty = when_empty;
    auto reply = core_.command({model::root_caller(), command}, now_, store::Headroom::kAmple);
    settle();
    return reply;
  }

  // Many PCIe replays in a day: it is suspected, and nothing else.
  void suspect(const std::string& uuid) {
    execution::EvidenceObserved seen{uuid.substr(0, 2), uuid, {}};
    seen.evidence.kind = EvidenceKind::kPcieReplays;
    seen.evidence.value = 100'000;
    seen.evidence.at = now_;
    seen.evidence.last = now_;
    see(seen);
  }
  void degrade(const std::string& uuid) {
    suspect(uuid);
    ASSERT_EQ(gpu(uuid).state, GpuState::kDegraded) << gpu(uuid).cause;
    pass(base::seconds(1));
  }
  static execution::ResetEnded checked(const std::string& uuid, const std::string& failure) {
    return {uuid.substr(0, 2), uuid, failure, "", true};
  }

  const model::Gpu& gpu(const std::string& uuid) const {
    const model::Node& node = *core_.state().nodes.find(uuid.substr(0, 2) == "n1" ? 1 : 2);
    return *std::ranges::find(node.gpus, uuid, [](const model::Gpu& g) { return g.info.uuid; });
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  std::string gpu_of(std::uint64_t id) const {
    return job(id).attempts.back().granted->front().gpus.front().uuid;
  }
  template <class Event>
  std::size_t count() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        events_, [](const auto& each) { return std::holds_alternative<Event>(each.event); }));
  }
  template <class Order>
  std::vector<Order> orders() const {
    std::vector<Order> found;
    for (const Effect& effect : effects_) {
      if (const auto* each = std::get_if<Order>(&effect)) found.push_back(*each);
    }
    return found;
  }

  model::Policy policy_;
  base::Instant now_ = kNoon;
  Core core_;
  std::vector<model::EventRecord> events_;
  std::vector<Effect> effects_;
};

}  // namespace gpu_platform::controller::testing
