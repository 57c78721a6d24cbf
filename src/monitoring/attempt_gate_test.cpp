#include "monitoring/attempt_gate.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
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

using GpusOfJobs = std::map<std::uint64_t, std::vector<std::uint32_t>>;

// A node with two GPUs, "a" and "b", and its jobs with their GPUs.
std::shared_ptr<const controller::Snapshot> snapshot_of(const GpusOfJobs& jobs) {
  auto made = std::make_shared<controller::Snapshot>();
  model::Node node;
  node.id = model::NodeId(1);
  node.name = "n1";
  for (const char* uuid : {"a", "b"}) {
    model::Gpu gpu;
    gpu.info.uuid = uuid;
    node.gpus.push_back(gpu);
  }
  for (const auto& [id, gpus] : jobs) {
    model::Job job;
    job.id = JobId(id);
    job.spec = std::make_shared<const model::JobSpec>();
    model::Attempt attempt;
    attempt.number = 1;
    attempt.allocation.nodes.push_back({model::NodeId(1), {}, 1, {}});
    for (const std::uint32_t gpu : gpus) {
      attempt.allocation.nodes[0].grants.push_back({.gpu_index = gpu});
      model::GpuHolder& holder = node.gpus[gpu].holders.emplace_back();
      holder.attempt = {JobId(id), 1};
    }
    job.attempts.push_back(attempt);
    made->jobs.put(id, job);
  }
  made->nodes.put(1, node);
  return made;
}

// Job 1 has both GPUs, job 2 none.
std::shared_ptr<const controller::Snapshot> snapshot() {
  return snapshot_of({{1, {0, 1}}, {2, {}}});
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
        const auto memory = memory_.find(pid);
        gpu.processes->push_back({.pid = pid, .memory = {}});
        if (memory != memory_.end()) gpu.processes->back().memory = kMiB * memory->second;
        const auto owner = owners_.find(pid);
        of_gpu.push_back({pid, pid >= kFreePid,
                          owner == owners_.end() ? std::nullopt : std::optional(owner->second),
                          servers_.contains(pid)});
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
  // Of all questions so far, whether they want the energy.
  std::vector<bool> wanted_energy() {
    const std::lock_guard lock(mutex_);
    return wanted_energy_;
  }
  void note(const node::ReadNow& wanted) {
    const std::lock_guard lock(mutex_);
    asked_ = wanted.uuids;
    wanted_energy_.push_back(wanted.with_energy);
  }

  // Jobs 1 and 2 have a part of GPU "a" each.
  void share_a_gpu() { snapshot_ = snapshot_of({{1, {0}}, {2, {0}}}); }

  bool are_events_told_ = true;
  std::shared_ptr<const controller::Snapshot> snapshot_ = snapshot();
  std::map<std::uint32_t, std::int64_t> memory_;  // MiB of the processes that tell it, by pid
  std::mutex mutex_;                              // over what the gate's thread writes
  std::vector<std::string> passed_;
  std::vector<std::string> asked_;
  std::vector<bool> wanted_energy_;
  std::map<std::uint32_t, AttemptId> owners_;  // by pid
  std::set<std::uint32_t> servers_;            // pids of MPS servers of ours
  AttemptGate gate_{*this,
                    [this] { return snapshot_; },
                    [this](const std::string&, const node::ReadNow& wanted) { note(wanted); },
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

TEST_F(AttemptGateTest, AsksForTheEnergyWithTheFirstQuestionAlone) {
  clean(1);
  EXPECT_TRUE(wanted_energy().front());
  ASSERT_TRUE(os::eventually([&] { return wanted_energy().size() >= 3; })) << "it asks again";
  const std::vector<bool> wanted = wanted_energy();
  EXPECT_EQ(std::count(wanted.begin(), wanted.end(), true), 1);
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

// ---- several attempts on one GPU

TEST_F(AttemptGateTest, APartIsFreeThoughOthersRunOn) {
  share_a_gpu();
  read({{}}, 3);
  owners_ = {{17, {JobId(1), 1}}, {18, {JobId(2), 1}}};
  clean(1);
  read({{17, 18}}, 5000);
  EXPECT_EQ(released(), 0U) << "a process of it is still there";
  read({{18}}, 5000);
  EXPECT_EQ(passed(), (std::vector<std::string>{"release of 1"}));
}

TEST_F(AttemptGateTest, NoHolderIsBlamedForWhatAnotherLeaves) {
  share_a_gpu();
  read({{}}, 3);
  owners_ = {{kFreePid, {JobId(2), 1}}};
  clean(1);
  read({{kFreePid, kFreePid + 1}}, 5000);
  EXPECT_EQ(passed(), (std::vector<std::string>{"release of 1"}));
  clean(2);
  read({{kFreePid + 1}}, 3);
  EXPECT_EQ(released(), 1U) << "what is of no known attempt is laid to the last one";
  read({{}}, 3);
  EXPECT_EQ(released(), 2U);
}

TEST_F(AttemptGateTest, TheLastHolderWaitsForTheMemoryOfTheGpu) {
  share_a_gpu();
  read({{}}, 3);
  clean(1);
  read({{}}, 500);
  EXPECT_EQ(passed(), (std::vector<std::string>{"release of 1"}));
  clean(2);
  read({{}}, 500);
  EXPECT_EQ(released(), 1U);
  read({{}}, 4);
  EXPECT_EQ(released(), 2U);
}

TEST_F(AttemptGateTest, AttemptsThatLeaveTogetherBothWaitForTheMemory) {
  share_a_gpu();
  read({{}}, 3);
  clean(1);
  clean(2);
  read({{}}, 500);
  EXPECT_EQ(released(), 0U) << "each is the last one";
  read({{}}, 4);
  EXPECT_EQ(released(), 2U);
}

TEST_F(AttemptGateTest, AGpuThatIsNeverEmptyHasABaseLineToo) {
  share_a_gpu();
  memory_ = {{17, 100}};
  read({{17}}, 103);
  owners_ = {{18, {JobId(2), 1}}};
  clean(1);
  clean(2);
  read({{17, 18}}, 5000);
  EXPECT_EQ(passed(), (std::vector<std::string>{"release of 1"}));
  read({{17}}, 600);
  EXPECT_EQ(released(), 1U) << "500 MiB are in use by no process";
  memory_[17] = 595;
  read({{17}}, 600);
  EXPECT_EQ(released(), 2U) << "they are the other process's";
}

TEST_F(AttemptGateTest, AnMpsServerThatServesOthersOrIsIdleHoldsNothingBack) {
  share_a_gpu();
  read({{}}, 3);
  servers_ = {17};
  memory_ = {{17, 66}, {18, 4000}, {19, 5000}};  // the server, and a client of each job
  owners_ = {{18, {JobId(1), 1}}, {19, {JobId(2), 1}}};
  read({{17, 18, 19}}, 9069);
  clean(1);
  read({{17, 19}}, 5069);
  EXPECT_EQ(passed(), (std::vector<std::string>{"release of 1"}));
  clean(2);
  read({{17, 19}}, 5069);
  EXPECT_EQ(released(), 1U);
  read({{17}}, 69);
  EXPECT_EQ(released(), 2U) << "the server has 66 MiB until it is ended";
}

TEST_F(AttemptGateTest, MemoryThatIsLeftBesideAnMpsServerIsNoticed) {
  share_a_gpu();
  memory_ = {{5, 100}};
  read({{5}}, 103);  // a display
  servers_ = {17};
  memory_[17] = 66;
  clean(1);
  clean(2);
  read({{5, 17}}, 669);
  EXPECT_EQ(released(), 0U) << "500 MiB are in use by no process";
  read({{5}}, 603);
  EXPECT_EQ(released(), 0U) << "they are still there without the server";
  read({{5}}, 103);
  EXPECT_EQ(released(), 2U);
}

TEST_F(AttemptGateTest, WhatAGpuIsLikeIsNotLearntWhileAnMpsServerIsThere) {
  share_a_gpu();
  servers_ = {17};
  memory_ = {{17, 600}};
  read({{17}}, 603);
  clean(1);
  clean(2);
  read({{}}, 100);
  EXPECT_EQ(released(), 2U) << "no more than the server's share of it was seen before";
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

TEST_F(AttemptGateTest, EndsAreCompletedWhenTheyPass) {
  std::vector<std::string> completed;
  gate_.complete_ends_with([&](execution::Ended& ended) {
    completed.push_back(fmt::format("{} {}", ended.attempt.job.value, passed().size()));
  });
  read({{}, {}});
  end(1);
  EXPECT_TRUE(completed.empty());
  end(2, 0);
  read({{}, {}});
  EXPECT_EQ(completed, (std::vector<std::string>{"2 0", "1 1"}));
}

TEST_F(AttemptGateTest, FailuresAreToldBeforeTheyAreHeld) {
  std::vector<std::uint64_t> failed;
  gate_.tell_failures_to(
      [&](const execution::Ended& ended) { failed.push_back(ended.attempt.job.value); });
  read({{}, {}});
  end(1);
  end(2, 0);
  end(2, 1, model::EndReason::kTimeLimit);
  EXPECT_EQ(failed, std::vector<std::uint64_t>{1});
  EXPECT_EQ(passed(), (std::vector<std::string>{"end of 2", "end of 2"}));
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
