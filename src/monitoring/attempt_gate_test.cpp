#include "monitoring/attempt_gate.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "controller/snapshot.h"
#include "model/job_spec.h"
#include "os/testing/eventually.h"

namespace gpu_platform::monitoring {
namespace {

using base::kMiB;
using model::AttemptId;
using model::JobId;

constexpr std::uint32_t kFreePid = 0x7ffffff0;  // and those above

std::int64_t boot_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A node with two GPUs, "a" and "b"; job 1 has both, job 2 none.
std::shared_ptr<const controller::Snapshot> snapshot() {
  auto made = std::make_shared<controller::Snapshot>();
  model::Node node;
  node.id = model::NodeId(1);
  node.name = "n1";
  for (const char* uuid : {"a", "b"}) {
    model::Gpu gpu;
    gpu.info.uuid = uuid;
    node.gpus.push_back(gpu);
  }
  made->nodes.put(1, node);
  for (const std::uint64_t id : {1, 2}) {
    model::Job job;
    job.id = JobId(id);
    job.spec = std::make_shared<const model::JobSpec>();
    model::Attempt attempt;
    attempt.number = 1;
    attempt.allocation.nodes.push_back({model::NodeId(1), {}, 1, {}});
    if (id == 1) attempt.allocation.nodes[0].grants = {{.gpu_index = 0}, {.gpu_index = 1}};
    job.attempts.push_back(attempt);
    made->jobs.put(id, job);
  }
  return made;
}

// The gate's thread may pass an end, too.
class AttemptGateTest : public ::testing::Test, public execution::ObservationSink {
 protected:
  void observe(execution::Observation observation) override {
    const std::lock_guard lock(mutex_);
    if (const auto* ended = std::get_if<execution::Ended>(&observation)) {
      passed_.push_back(fmt::format("end of {}", ended->attempt.job.value));
    } else if (const auto* cleaned = std::get_if<execution::Cleaned>(&observation)) {
      passed_.push_back(fmt::format("release of {}", cleaned->attempt.job.value));
    }
  }
  std::vector<std::string> passed() {
    const std::lock_guard lock(mutex_);
    return passed_;
  }
  std::size_t released() {
    const std::vector<std::string> all = passed();
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [](const std::string& what) { return what.starts_with("release"); }));
  }

  void clean(std::uint64_t job) { gate_.observe(execution::Cleaned{{JobId(job), 1}, {}}); }
  void end(std::uint64_t job, std::uint8_t code = 1,
           model::EndReason reason = model::EndReason::kNone) {
    gate_.observe(
        execution::Ended{{JobId(job), 1}, {}, {.code = code}, reason, {}, {}, std::nullopt});
  }

  // Each GPU with the pids on it and the memory in use. Pids that are free have ended.
  void read(std::vector<std::vector<std::uint32_t>> pids, std::int64_t mib = 0,
            std::int64_t began_ns = boot_clock_ns()) {
    node::ProbeReadings readings;
    SeenProcesses seen;
    readings.began_ns = began_ns;
    for (std::uint32_t i = 0; i < pids.size(); ++i) {
      hardware::GpuReading gpu;
      gpu.index = i;
      gpu.memory_used = kMiB * mib;
      gpu.processes.emplace();
      std::vector<SeenProcess>& of_gpu = seen[i == 0 ? "a" : "b"];
      for (const std::uint32_t pid : pids[i]) {
        gpu.processes->push_back({pid, {}});
        const auto owner = owners_.find(pid);
        of_gpu.push_back({pid, pid >= kFreePid,
                          owner == owners_.end() ? std::nullopt : std::optional(owner->second)});
      }
      readings.gpus.push_back(gpu);
    }
    gate_.take_readings("n1", {"a", "b"}, readings, seen);
    if (are_events_told_) hear(node::kNoEventsEver);
  }
  void hear(std::int64_t until_ns) { gate_.take_events("n1", until_ns); }
  void read_one(std::uint32_t index) {
    node::ProbeReadings readings;
    readings.is_partial = true;
    readings.began_ns = boot_clock_ns();
    hardware::GpuReading& gpu = readings.gpus.emplace_back();
    gpu.index = index;
    gpu.processes.emplace();
    gate_.take_readings("n1", {"a", "b"}, readings, {{index == 0 ? "a" : "b", {}}});
    if (are_events_told_) hear(node::kNoEventsEver);
  }

  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  void note(const std::vector<std::string>& uuids) {
    const std::lock_guard lock(mutex_);
    asked_ = uuids;
  }

  bool are_events_told_ = true;
  std::mutex mutex_;  // over what the gate's thread writes
  std::vector<std::string> passed_;
  std::vector<std::string> asked_;
  std::map<std::uint32_t, AttemptId> owners_;  // by pid
  AttemptGate gate_{*this,
                    [] { return snapshot(); },
                    [this](const std::string&, const auto& uuids) { note(uuids); },
                    [](const std::string&) {},
                    std::chrono::hours(1),
                    std::chrono::hours(1)};
};

TEST_F(AttemptGateTest, AnAttemptWithoutGpusPassesAtOnce) {
  clean(2);
  EXPECT_EQ(passed(), (std::vector<std::string>{"release of 2"}));
}

TEST_F(AttemptGateTest, GpusComeFreeWithAReadingThatShowsThemEmpty) {
  clean(1);
  EXPECT_EQ(released(), 0U);
  read({{}, {}});
  EXPECT_EQ(released(), 1U);
}

TEST_F(AttemptGateTest, AsksForItsGpusAtOnceAndBelievesNothingOfOthers) {
  clean(1);
  EXPECT_EQ(asked(), (std::vector<std::string>{"a", "b"}));
  read_one(0);
  EXPECT_EQ(released(), 0U) << "b has no reading yet";
  read_one(1);
  EXPECT_EQ(released(), 1U);
}

TEST_F(AttemptGateTest, AReadingThatBeganBeforeTheEndProvesNothing) {
  const std::int64_t before = boot_clock_ns();
  clean(1);
  read({{}, {}}, 0, before);
  EXPECT_EQ(released(), 0U);
}

TEST_F(AttemptGateTest, AnEntryWhoseProcessHasEndedHoldsTheGpuBack) {
  clean(1);
  read({{}, {kFreePid}});
  EXPECT_EQ(released(), 0U);
  read({{}, {}});
  EXPECT_EQ(released(), 1U) << "told once";
}

TEST_F(AttemptGateTest, ALivingProcessOfAnotherJobDoesNot) {
  clean(1);
  read({{17}, {}}, 5000);
  EXPECT_EQ(released(), 1U);
}

TEST_F(AttemptGateTest, MemoryInUseByNoProcessHoldsTheGpuBack) {
  read({{}, {}}, 3);
  clean(1);
  read({{}, {}}, 500);
  EXPECT_EQ(released(), 0U);
  read({{}, {}}, 4);
  EXPECT_EQ(released(), 1U);
}

TEST_F(AttemptGateTest, AGpuThatItsDriverDoesNotSpeakOfIsNotWaitedFor) {
  clean(1);
  node::ProbeReadings readings;
  readings.began_ns = boot_clock_ns();
  hardware::GpuReading lost;
  lost.condition = hardware::GpuCondition::kLost;
  readings.gpus.push_back(lost);  // "b" is missing altogether
  gate_.take_readings("n1", {"a", "b"}, readings, {});
  EXPECT_EQ(released(), 1U);
}

TEST_F(AttemptGateTest, OtherNewsPassAtOnce) {
  gate_.observe(execution::NodeUnreachable{"n1", "gone"});
  gate_.observe(execution::Cleaned{{JobId(99), 1}});
  EXPECT_EQ(released(), 1U) << "of a job that the core does not have";
}

TEST_F(AttemptGateTest, AnEndedProcessOfAnotherJobDoesNotHoldTheGpuBack) {
  owners_[kFreePid] = {JobId(7), 1};
  owners_[kFreePid + 1] = {JobId(1), 1};
  clean(1);
  read({{}, {kFreePid, kFreePid + 1}});
  EXPECT_EQ(released(), 0U) << "one is its own";
  read({{}, {kFreePid}});
  EXPECT_EQ(released(), 1U);
}

// ---- ends

TEST_F(AttemptGateTest, AFailureIsToldAfterAReadingOfAllItsGpus) {
  read({{}, {}});
  end(1);
  EXPECT_EQ(asked(), (std::vector<std::string>{"a", "b"}));
  read_one(0);
  EXPECT_TRUE(passed().empty()) << "b was not read yet";
  read_one(1);
  EXPECT_EQ(passed(), (std::vector<std::string>{"end of 1"}));
}

TEST_F(AttemptGateTest, AReadingThatBeganBeforeTheEndDoesNotLetItPass) {
  read({{}, {}});
  const std::int64_t before = boot_clock_ns();
  end(1);
  read({{}, {}}, 0, before);
  EXPECT_TRUE(passed().empty());
}

TEST_F(AttemptGateTest, AFailureIsToldAfterWhatTheDriverHadToReport) {
  constexpr std::int64_t kDelay = std::chrono::nanoseconds(AttemptGate::kEventsDelay).count();
  are_events_told_ = false;
  read({{}, {}});
  end(1);
  read({{}, {}});
  EXPECT_TRUE(passed().empty()) << "an XID may be on its way";
  hear(0);
  hear(boot_clock_ns());
  EXPECT_TRUE(passed().empty()) << "drivers tell a moment later";
  gate_.take_events("n2", boot_clock_ns() + kDelay);
  EXPECT_TRUE(passed().empty()) << "another node";
  hear(boot_clock_ns() + kDelay);
  EXPECT_EQ(passed(), (std::vector<std::string>{"end of 1"}));
}

TEST_F(AttemptGateTest, AFailureIsNotToldBeforeItsReadingsThoughNoEventsCome) {
  are_events_told_ = false;
  read({{}, {}});
  end(1);
  hear(node::kNoEventsEver);
  EXPECT_TRUE(passed().empty());
  read({{}, {}});
  EXPECT_EQ(passed(), (std::vector<std::string>{"end of 1"}));
}

TEST_F(AttemptGateTest, EventsAreNotWaitedForLong) {
  AttemptGate impatient(
      *this, [] { return snapshot(); }, [](const std::string&, const auto&) {},
      [](const std::string&) {}, std::chrono::hours(1), std::chrono::milliseconds(1));
  const auto read_all = [&] {
    node::ProbeReadings readings;
    readings.began_ns = boot_clock_ns();
    readings.gpus.resize(2);
    readings.gpus[1].index = 1;
    impatient.take_readings("n1", {"a", "b"}, readings, {});
  };
  read_all();
  impatient.observe(execution::Ended{{JobId(1), 1}, {}, {.code = 1}, {}, {}, {}, std::nullopt});
  read_all();
  EXPECT_TRUE(os::eventually([&] { return !passed().empty(); }));
}

TEST_F(AttemptGateTest, WhatIsOnTheGpuDelaysTheReleaseAndNotTheEnd) {
  read({{}, {}});
  end(1);
  clean(1);
  read({{}, {kFreePid}});
  EXPECT_EQ(passed(), (std::vector<std::string>{"end of 1"}));
  read({{}, {}});
  EXPECT_EQ(passed(), (std::vector<std::string>{"end of 1", "release of 1"}));
}

TEST_F(AttemptGateTest, OneReadingLetsTheEndAndThenTheReleasePass) {
  read({{}, {}});
  end(1);
  clean(1);
  clean(1);
  end(1);
  read({{}, {}});
  EXPECT_EQ(passed(), (std::vector<std::string>{"end of 1", "release of 1"})) << "each once";
}

TEST_F(AttemptGateTest, OtherEndsPassAtOnce) {
  read({{}, {}});
  end(1, 0);
  EXPECT_EQ(passed().size(), 1U) << "a success";
  end(1, 1, model::EndReason::kTimeLimit);
  EXPECT_EQ(passed().size(), 2U) << "stopped by the platform";
  end(1, 1, model::EndReason::kCancelledBy);
  EXPECT_EQ(passed().size(), 3U) << "stopped by a person";
  end(1, 127, model::EndReason::kLaunchFailed);
  EXPECT_EQ(passed().size(), 4U) << "never ran";
  end(2);
  EXPECT_EQ(passed().size(), 5U) << "has no GPU";
  end(99);
  EXPECT_EQ(passed().size(), 6U) << "of a job that the core does not have";
}

TEST_F(AttemptGateTest, AnEndDoesNotWaitForANodeWithoutReadings) {
  end(1);
  EXPECT_EQ(passed().size(), 1U) << "no reading has come yet";
}

TEST_F(AttemptGateTest, AnEndDoesNotWaitForADeadProbe) {
  read({{}, {}});
  end(1);
  clean(1);
  gate_.lose_readings("n2");
  EXPECT_TRUE(passed().empty());
  gate_.lose_readings("n1");
  EXPECT_EQ(passed(), (std::vector<std::string>{"end of 1"})) << "the release waits";
  end(1);
  EXPECT_EQ(passed().size(), 2U) << "nor does the next one";
  read({{}, {}});
  end(1);
  EXPECT_EQ(passed().size(), 3U) << "the probe is back";
}

TEST_F(AttemptGateTest, AnEndPassesWhenItsTimeIsOver) {
  AttemptGate impatient(
      *this, [] { return snapshot(); }, [](const std::string&, const auto&) {},
      [](const std::string&) {}, std::chrono::milliseconds(1));
  node::ProbeReadings readings;
  readings.began_ns = boot_clock_ns();
  readings.gpus.resize(2);
  readings.gpus[1].index = 1;
  impatient.take_readings("n1", {"a", "b"}, readings, {});
  impatient.observe(
      execution::Ended{{JobId(1), 1}, {}, {.signal = std::uint8_t{11}}, {}, {}, {}, std::nullopt});
  impatient.observe(execution::Cleaned{{JobId(1), 1}, {}});
  EXPECT_TRUE(os::eventually([&] { return !passed().empty(); }));
  EXPECT_EQ(passed(), (std::vector<std::string>{"end of 1"})) << "the release has no limit";
}

TEST_F(AttemptGateTest, EndsPassWhenItIsStoppedAndReleasesDoNot) {
  read({{}, {}});
  end(1);
  clean(1);
  gate_.stop();
  EXPECT_EQ(passed(), (std::vector<std::string>{"end of 1"}));
  note({});
  end(1);
  clean(1);
  EXPECT_EQ(passed(), (std::vector<std::string>{"end of 1", "end of 1"}));
  EXPECT_TRUE(asked().empty());
}

}  // namespace
}  // namespace gpu_platform::monitoring
