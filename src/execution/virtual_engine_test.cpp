#include "execution/virtual_engine.h"
#include "model/job_spec.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gpu_platform::execution {
namespace {

using base::seconds;
using model::EndReason;
using model::Lost;

constexpr base::Instant kNoon(1'700'000'000'000'000'000);

class VirtualEngineTest : public ::testing::Test,
                          public ObservationSink,
                          public VirtualScript,
                          public VirtualWitness {
 protected:
  VirtualEngineTest() {
    engine_.advance(kNoon);
    info_.name = "n1";
    info_.boot_id = "boot-1";
    engine_.put_node(info_);
    run_.duration = seconds(100);
    told_.clear();
  }

  void observe(Observation observation) override {
    if (const auto* started = std::get_if<Started>(&observation)) {
      told_.push_back("started");
      started_ = *started;
    } else if (const auto* ended = std::get_if<Ended>(&observation)) {
      told_.push_back("ended");
      ended_ = *ended;
    } else if (std::holds_alternative<Cleaned>(observation)) {
      told_.push_back("cleaned");
    } else {
      told_.push_back(std::holds_alternative<NodeObserved>(observation) ? "node" : "unreachable");
    }
  }
  VirtualRun run_of(const StartOrder&) override { return run_; }
  VirtualCheck check_of(const StartOrder&) override {
    ++checks_;
    return check_;
  }
  void process_started(const StartOrder&, base::Instant) override { ++processes_; }
  void process_ended(model::AttemptId, const model::Exit&, base::Instant) override {}
  void processes_gone(model::AttemptId, base::Instant) override { ++gone_; }

  static StartOrder order(std::uint32_t attempt = 1, std::string boot = "boot-1") {
    StartOrder order;
    order.attempt = {model::JobId(1), attempt};
    order.spec = std::make_shared<const model::JobSpec>();
    order.nodes.emplace_back();
    order.nodes.back().node_name = "n1";
    order.boot_id = std::move(boot);
    order.time_limit = seconds(60);
    order.stop_grace = seconds(10);
    return order;
  }
  // With a GPU that is checked before.
  static StartOrder checked_order() {
    StartOrder checked = order();
    model::JobSpec spec;
    spec.preflight = model::Preflight::kQuick;
    checked.spec = std::make_shared<const model::JobSpec>(std::move(spec));
    checked.nodes.front().gpus.emplace_back();
    checked.nodes.front().gpus.back().info.uuid = "n1-0";
    return checked;
  }
  static StopOrder stop() {
    return {{model::JobId(1), 1}, false, seconds(10), EndReason::kCancelledBy};
  }
  void advance(std::int64_t to_second) { engine_.advance(kNoon + seconds(to_second)); }
  std::vector<std::string> told() { return std::exchange(told_, {}); }

  using Told = std::vector<std::string>;

  VirtualEngine engine_{*this, *this, this};
  model::NodeInfo info_;
  VirtualRun run_;
  VirtualCheck check_{.duration = seconds(3), .unfit_gpus = {}, .refusal = {}};
  Told told_;
  Started started_;
  Ended ended_;
  int checks_ = 0;
  int processes_ = 0;
  int gone_ = 0;
};

TEST_F(VirtualEngineTest, RunsAsScriptedAndTellsEachStep) {
  run_.start_delay = seconds(1);
  run_.duration = seconds(5);
  run_.exit.code = 7;
  run_.cleaning_delay = seconds(2);
  engine_.start(order());
  EXPECT_EQ(engine_.next_event(), kNoon + seconds(1));
  advance(1);
  EXPECT_EQ(told(), Told{"started"});
  EXPECT_EQ(started_.at, kNoon + seconds(1));
  advance(6);
  EXPECT_EQ(told(), Told{"ended"});
  EXPECT_EQ(ended_.exit.code, 7);
  EXPECT_EQ(ended_.reason, EndReason::kNone);
  EXPECT_EQ(gone_, 0);
  advance(8);
  EXPECT_EQ(told(), Told{"cleaned"});
  EXPECT_EQ(gone_, 1);
  EXPECT_EQ(engine_.next_event(), std::nullopt);
}

TEST_F(VirtualEngineTest, KeepsTheTimeLimitAndTheGrace) {
  run_.ignores_term = true;
  engine_.start(order());
  advance(69);
  EXPECT_EQ(told(), Told{"started"});
  advance(70);
  EXPECT_EQ(told(), (Told{"ended", "cleaned"}));
  EXPECT_EQ(ended_.reason, EndReason::kTimeLimit);
  EXPECT_EQ(ended_.exit.signal, 9);
}

TEST_F(VirtualEngineTest, ObeysSigtermInItsOwnTime) {
  run_.term_delay = seconds(3);
  engine_.start(order());
  advance(5);
  engine_.stop(stop());
  advance(7);
  EXPECT_EQ(told(), Told{"started"});
  advance(8);
  EXPECT_EQ(told(), (Told{"ended", "cleaned"}));
  EXPECT_EQ(ended_.exit.signal, 15);
  EXPECT_EQ(ended_.reason, EndReason::kCancelledBy);
}

TEST_F(VirtualEngineTest, WhatRunsOnALostNodeRunsOnAndIsToldWhenItReturns) {
  engine_.start(order());
  advance(1);
  told();
  engine_.disconnect("n1", "no answer");
  EXPECT_EQ(told(), Told{"unreachable"});
  engine_.stop(stop());
  engine_.adopt({{order(), model::AttemptState::kRunning}});
  advance(200);
  EXPECT_EQ(told(), Told{});
  engine_.reconnect("n1");
  EXPECT_EQ(told(), (Told{"node", "started", "ended", "cleaned"}));
  EXPECT_EQ(ended_.reason, EndReason::kTimeLimit);
}

TEST_F(VirtualEngineTest, ChecksTheGpusBeforeTheStartIfTheJobAsksForIt) {
  run_.start_delay = seconds(1);
  engine_.start(checked_order());
  advance(3);
  EXPECT_EQ(told(), Told{});
  advance(4);
  EXPECT_EQ(told(), Told{"started"});
  EXPECT_EQ(started_.preflight, "quick: passed in 3.0 s");
  engine_.start(order(2));
  EXPECT_EQ(checks_, 1) << "it asks for none";
}

TEST_F(VirtualEngineTest, AnUnfitGpuEndsTheStartAndNothingOfItRuns) {
  const UnfitGpu unfit{"n1", "n1-0", "a row of its memory"};
  check_.unfit_gpus = {unfit};
  engine_.start(checked_order());
  advance(3);
  EXPECT_EQ(told(), (Told{"ended", "cleaned"}));
  EXPECT_EQ(ended_.reason, EndReason::kLaunchFailed);
  EXPECT_EQ(ended_.unfit_gpus, std::vector<UnfitGpu>{unfit});
  ended_ = {};
  engine_.adopt({{checked_order(), model::AttemptState::kRequested}});
  EXPECT_EQ(told(), (Told{"ended", "cleaned"}));
  EXPECT_EQ(ended_.unfit_gpus, std::vector<UnfitGpu>{unfit}) << "it says so again";
  EXPECT_EQ(processes_, 0);
}

TEST_F(VirtualEngineTest, ACheckThatCannotBeMadeKeepsNoJobFromItsStart) {
  check_.refusal = "no driver program";
  engine_.start(checked_order());
  advance(3);
  EXPECT_EQ(told(), Told{"started"});
  EXPECT_EQ(started_.preflight, "quick: not done: no driver program");
}

TEST_F(VirtualEngineTest, OneThatIsStoppedDuringItsCheckIsNeverStarted) {
  check_.unfit_gpus = {{"n1", "n1-0", "a row of its memory"}};
  engine_.start(checked_order());
  engine_.stop(stop());
  EXPECT_EQ(told(), (Told{"ended", "cleaned"}));
  EXPECT_EQ(ended_.detail, "stopped before it was started");
  EXPECT_TRUE(ended_.unfit_gpus.empty()) << "its check did not end";
  advance(10);
  EXPECT_EQ(told(), Told{});
  EXPECT_EQ(processes_, 0);
}

TEST_F(VirtualEngineTest, ChecksEndWithTheDaemonAndBeginAgainWithTheOrder) {
  engine_.start(checked_order());
  advance(2);
  engine_.drop_checks();
  engine_.adopt({{checked_order(), model::AttemptState::kRequested}});
  advance(10);
  EXPECT_EQ(told(), Told{}) << "nothing is known of it";
  engine_.start(checked_order());
  advance(13);
  EXPECT_EQ(told(), Told{"started"});
  EXPECT_EQ(checks_, 2);
}

TEST_F(VirtualEngineTest, AnEndByANeighboursFaultSaysSoUnlessTheAttemptWasBeingStopped) {
  const model::Exit failed{.code = 1, .signal = {}, .lost = Lost::kNo};
  engine_.start(order(1));
  engine_.start(order(2));
  advance(1);
  EXPECT_TRUE(engine_.finish({model::JobId(1), 2}, failed, EndReason::kNone, "job 9 did it"));
  EXPECT_EQ(ended_.neighbour_fault, "job 9 did it");
  EXPECT_EQ(ended_.exit.code, 1);
  run_.term_delay = seconds(5);
  engine_.start(order(3));
  advance(2);
  engine_.stop({{model::JobId(1), 3}, false, seconds(10), EndReason::kCancelledBy});
  EXPECT_TRUE(engine_.finish({model::JobId(1), 3}, failed, EndReason::kNone, "job 9 did it"));
  EXPECT_EQ(ended_.neighbour_fault, "");
  EXPECT_EQ(ended_.reason, EndReason::kCancelledBy);
}

TEST_F(VirtualEngineTest, ANewBootEndsEverythingAndStartsNothingOfTheOldOne) {
  engine_.start(order());
  advance(1);
  told();
  info_.boot_id = "boot-2";
  engine_.reboot(info_);
  EXPECT_EQ(told(), (Told{"node", "started", "ended", "cleaned"}));
  EXPECT_EQ(ended_.exit.lost, Lost::kNodeLost);
  EXPECT_EQ(gone_, 1);
  engine_.start(order(2, "boot-1"));
  advance(2);
  EXPECT_EQ(processes_, 1);
  EXPECT_EQ(ended_.exit.lost, Lost::kNodeLost);
  engine_.start(order(3, "boot-2"));
  advance(3);
  EXPECT_EQ(processes_, 2);
}

}  // namespace
}  // namespace gpu_platform::execution
