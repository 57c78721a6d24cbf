#include "node/probe/probes_fixture.h"

namespace gpu_platform::node {
namespace {

TEST_F(Probes, HeldProbeEndsWithoutAReportAndComesBackWithItsInventory) {
  start();
  runner_->watch(emulated("n1"));
  std::size_t from = 0;
  ASSERT_TRUE(reports_.wait_for<Inventory>("n1", from));
  runner_->hold("n1");
  runner_->hold("none");
  ASSERT_TRUE(os::eventually([&] {
    const auto status = runner_->status();
    return status.size() == 1 && status[0].pid == 0 && status[0].abandoned == 0;
  }));
  EXPECT_EQ(runner_->status()[0].starts, 1U);
  from = reports_.count();
  runner_->let_go_on("n1");
  ASSERT_TRUE(reports_.wait_for<Inventory>("n1", from));
  std::size_t all = 0;
  EXPECT_FALSE(reports_.find<ProbeProblem>("n1", all)) << "its end was ordered";
}

TEST_F(Probes, GoOnWithABoardThatAnswersSlowly) {
  const ProbeTarget node = emulated("n1");
  emulator("inject slow 3 --gpu n1:0");
  start();
  runner_->watch(node);

  EXPECT_TRUE(reports_.wait_for<Inventory>("n1", seen_));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
}

TEST_F(Probes, WatchSixteenBoardsAtOnce) {
  start();
  for (int i = 1; i <= 16; ++i) runner_->watch(emulated(fmt::format("dgx-h100-{}", i)));

  std::set<std::string> uuids;
  for (int i = 1; i <= 16; ++i) {
    std::size_t from = 0;
    const auto inventory = reports_.wait_for<Inventory>(fmt::format("dgx-h100-{}", i), from);
    ASSERT_TRUE(inventory) << i;
    for (const hardware::GpuDescription& gpu : inventory->gpus) uuids.insert(gpu.uuid.value_or(""));
  }

  EXPECT_EQ(uuids.size(), 128u);
}

TEST_F(Probes, AreStartedAgainWhenTheyDie) {
  start();
  runner_->watch(emulated("n1"));
  ASSERT_TRUE(reports_.wait_for<Inventory>("n1", seen_));
  const ProbeStatus first =
      wait_for_status([](const ProbeStatus& status) { return status.pid != 0; });

  ASSERT_EQ(kill(first.pid, SIGKILL), 0);
  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);
  const auto again = reports_.wait_for<Inventory>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kDied);
  EXPECT_EQ(problem->message, "the probe ended by SIGKILL");
  EXPECT_TRUE(again);
  const ProbeStatus second = wait_for_status(
      [&](const ProbeStatus& status) { return status.pid != 0 && status.starts == 2; });
  EXPECT_EQ(second.starts, 2u);
  EXPECT_NE(second.pid, first.pid);
}

TEST_F(Probes, AreGivenUpWhenTheDriverHangsAndComeBackWhenItAnswers) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  options_.first_inventory_limit = base::milliseconds(300);
  const std::string hang = folder_ + "/hang";
  std::ofstream(hang).put('x');
  start();
  runner_->watch(target(FAKE_NVML, {"FAKE_NVML_HANG_WHILE=" + hang}));

  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);
  std::filesystem::remove(hang);
  const auto inventory = reports_.wait_for<Inventory>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kNotAnswering);
  EXPECT_NE(problem->message.find("driver has not answered"), std::string::npos)
      << problem->message;
  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->gpus.size(), 2u);
}

TEST_F(Probes, AreGivenUpWhenTheyFallSilentLater) {
  fall_silent_soon();
  const std::string hang = folder_ + "/hang";
  start();
  runner_->watch(target(FAKE_NVML, {"FAKE_NVML_HANG_WHILE=" + hang}));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  std::ofstream(hang).put('x');
  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kNotAnswering);
}

TEST_F(Probes, HandOnWhatTheDriverTellsOfItsOwnAccord) {
  const std::string event = folder_ + "/event";
  options_.interval = base::hours(1);
  start();
  runner_->watch(target(FAKE_NVML_NEW, {"FAKE_NVML_EVENT=" + event}));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  std::ofstream(event) << "1 8 79";
  const auto told = reports_.wait_for<ProbeEvents>("n1", seen_);

  ASSERT_TRUE(told);
  EXPECT_EQ(*told, (ProbeEvents{{{1, "GPU-fake-1", hardware::GpuEventKind::kXid, 8, 79}}, 0, 0}));
}

TEST_F(Probes, SayUntilWhenTheyListenedOnceTheyAreAsked) {
  options_.interval = base::hours(1);
  start();
  runner_->watch(target(FAKE_NVML_NEW));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
  const std::int64_t asked_ns = os::boot_ns();

  // Whether the thread listens already, the test cannot see: it is asked until it does.
  const auto says_when = [&](const ProbeEvents& events) { return events.until_ns != 0; };
  std::optional<ProbeEvents> told;
  do {
    runner_->read_now("n1");
    told = reports_.wait_for<ProbeEvents>("n1", seen_, says_when);
    ASSERT_TRUE(told);
  } while (told->until_ns == kNoEventsEver);

  EXPECT_TRUE(told->events.empty());
  EXPECT_GT(told->until_ns, asked_ns);
  EXPECT_LE(told->until_ns, os::boot_ns());
}

TEST_F(Probes, SayThatNothingIsHeardWhereTheDriverTellsNothing) {
  options_.interval = base::hours(1);
  start();
  runner_->watch(target(FAKE_NVML_NEW, {"FAKE_NVML_EVENT_TYPES=0"}));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  runner_->read_now("n1");

  const auto told = reports_.wait_for<ProbeEvents>("n1", seen_);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->until_ns, kNoEventsEver);
}

TEST_F(Probes, AreGivenUpWhenTheWaitForEventsHangsThoughTheyStillPoll) {
  fall_silent_soon();
  const std::string hang = folder_ + "/hang";
  std::ofstream(hang).put('x');
  start();
  runner_->watch(target(FAKE_NVML_NEW, {"FAKE_NVML_EVENTS_HANG_WHILE=" + hang}));

  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);
  std::filesystem::remove(hang);
  const auto again = reports_.wait_for<Inventory>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kNotAnswering);
  EXPECT_NE(problem->message.find("thread for events has been inside the driver"),
            std::string::npos)
      << problem->message;
  EXPECT_TRUE(again);
}

TEST_F(Probes, AreGivenUpWhenSlowReadingsHangThoughTheyStillPoll) {
  fall_silent_soon();
  const std::string hang = folder_ + "/hang";
  std::ofstream(hang).put('x');
  start();
  runner_->watch(target(FAKE_NVML_NEW, {"FAKE_NVML_SLOW_HANG_WHILE=" + hang}));

  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_NE(problem->message.find("thread for slow readings has been inside the driver"),
            std::string::npos)
      << problem->message;
}

// Events are no sign of life of the thread that polls.
TEST_F(Probes, AreGivenUpWhenPollingHangsThoughEventsComeIn) {
  fall_silent_soon();
  const std::string hang = folder_ + "/hang";
  const std::string event = folder_ + "/event";
  start();
  runner_->watch(
      target(FAKE_NVML_NEW, {"FAKE_NVML_HANG_WHILE=" + hang, "FAKE_NVML_EVENT=" + event}));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  std::ofstream(hang).put('x');
  std::optional<ProbeProblem> problem;
  std::size_t events = 0;
  std::size_t from = seen_;
  os::eventually([&] {
    if (!std::filesystem::exists(event)) {
      const std::string ready = event + ".new";
      std::ofstream(ready) << "0 8 31";
      std::filesystem::rename(ready, event);
    }
    problem = reports_.find<ProbeProblem>("n1", from);
    if (reports_.find<ProbeEvents>("n1", seen_)) ++events;
    return problem.has_value();
  });

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kNotAnswering);
  EXPECT_GT(events, 3u);
}

TEST_F(Probes, AskNvidiaSmiWhereNvmlCannotBeOpened) {
  ProbeTarget node = target("/nonexistent/libnvidia-ml.so.1");
  node.nvidia_smi = nvidia_smi();
  start();
  runner_->watch(node);

  const auto inventory = reports_.wait_for<Inventory>("n1", seen_);
  const auto readings = reports_.wait_for<ProbeReadings>("n1", seen_);

  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->problem, std::nullopt);
  EXPECT_EQ(inventory->gpus.size(), 2u);
  EXPECT_NE(inventory->fallback.find("nvidia-smi is asked instead"), std::string::npos);
  EXPECT_NE(inventory->fallback.find("no NVIDIA driver is installed"), std::string::npos)
      << inventory->fallback;
  ASSERT_TRUE(readings);
  EXPECT_EQ(readings->gpus.at(0).utilization_percent, 97u);
  EXPECT_EQ(readings->events, std::nullopt) << "nothing waits for events";
}

TEST_F(Probes, OfAnEmulatedNodeNeverAskTheRealMachine) {
  const ProbeTarget node = emulated_target("n1", folder_, "libnvidia-ml.so.1");
  EXPECT_EQ(node.nvidia_smi, "");
  EXPECT_EQ(node.kernel_log, "");
}

TEST_F(Probes, TellWhatTheKernelsLogSaysOfGpus) {
  ProbeTarget node = emulated("n1");
  node.kernel_log = folder_ + "/kmsg";
  ASSERT_EQ(mkfifo(node.kernel_log.c_str(), 0600), 0);
  start();
  runner_->watch(node);
  os::Descriptor log;
  ASSERT_TRUE(os::eventually([&] {
    log.reset(::open(node.kernel_log.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return log.is_open();
  })) << "a probe reads it";
  const std::string record =
      "3,7,1,-;NVRM: Xid (PCI:0000:1b:00): 63, pid=9, name=a, Row Remapper: New row\n";

  ASSERT_EQ(::write(log.get(), record.data(), record.size()), static_cast<ssize_t>(record.size()));

  const auto told = reports_.wait_for<ProbeKernelLog>("n1", seen_);
  ASSERT_TRUE(told);
  ASSERT_EQ(told->lines.size(), 1U);
  EXPECT_EQ(told->lines[0].code, 63U);
  EXPECT_EQ(told->lines[0].place, "00000000:1b:00");
  EXPECT_EQ(told->problem, "");
}

TEST_F(Probes, SayOnceThatTheKernelsLogMayNotBeRead) {
  ProbeTarget node = emulated("n1");
  node.kernel_log = folder_ + "/none";
  start();
  runner_->watch(node);

  const auto told = reports_.wait_for<ProbeKernelLog>("n1", seen_);

  ASSERT_TRUE(told);
  EXPECT_NE(told->problem.find("/none"), std::string::npos) << told->problem;
  EXPECT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_)) << "it goes on";
}

TEST_F(Probes, TellOfBothWhereNvidiaSmiFailsToo) {
  ProbeTarget node = target("/nonexistent/libnvidia-ml.so.1");
  node.nvidia_smi = folder_ + "/nvidia-smi";
  std::ofstream(node.nvidia_smi) << "#!/bin/sh\necho no devices were found\nexit 6\n";
  ASSERT_EQ(chmod(node.nvidia_smi.c_str(), 0700), 0);
  start();
  runner_->watch(node);

  const auto inventory = reports_.wait_for<Inventory>("n1", seen_);

  ASSERT_TRUE(inventory && inventory->problem);
  EXPECT_EQ(inventory->problem->kind, ProblemKind::kNoLibrary);
  EXPECT_NE(inventory->problem->message.find("no devices were found"), std::string::npos)
      << inventory->problem->message;
}

// A stopped process stands for one that is stuck in the kernel: SIGTERM does not reach it either.
TEST_F(Probes, ThatHangDoNotHoldUpOthers) {
  fall_silent_soon();
  start();
  runner_->watch(emulated("n1"));
  runner_->watch(emulated("n2"));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
  pid_t first = 0;
  wait_for_status([&](const ProbeStatus& status) {
    if (status.node_name == "n1") first = status.pid;
    return first != 0;
  });

  ASSERT_EQ(kill(first, SIGSTOP), 0);
  std::size_t from = reports_.count();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(reports_.wait_for<ProbeReadings>("n2", from));
  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kNotAnswering);
  EXPECT_TRUE(reports_.wait_for<Inventory>("n1", seen_)) << "another probe took over";
}

TEST_F(Probes, ReportAMachineWithoutADriverAsOneWithoutGpus) {
  start();
  runner_->watch(target("/nonexistent/libnvidia-ml.so.1"));

  const auto inventory = reports_.wait_for<Inventory>("n1", seen_);
  const auto readings = reports_.wait_for<ProbeReadings>("n1", seen_);

  ASSERT_TRUE(inventory);
  ASSERT_TRUE(inventory->problem);
  EXPECT_EQ(inventory->problem->kind, ProblemKind::kNoLibrary);
  EXPECT_FALSE(inventory->host.cpus.empty());
  ASSERT_TRUE(readings) << "the sign of life";
  EXPECT_TRUE(readings->gpus.empty());
}

TEST_F(Probes, TellWhyADriverRefuses) {
  const std::tuple<const char*, const char*, ProblemKind, const char*> cases[] = {
      {"FAKE_NVML_INIT=9", FAKE_NVML, ProblemKind::kNoDriver, "kernel module is not loaded"},
      {"FAKE_NVML_INIT=4", FAKE_NVML, ProblemKind::kNoPermission, "no permission"},
      {"FAKE_NVML_INIT=18", FAKE_NVML, ProblemKind::kDriverMismatch, "different versions"},
      {"FAKE_NVML_COUNT=0", FAKE_NVML, ProblemKind::kNoGpu, "reports no GPU"},
      {"A=B", "libm.so.6", ProblemKind::kNotNvml, "is not NVML"},
  };
  start();
  for (const auto& [environment, library, kind, words] : cases) {
    ProbeTarget node = target(library, {environment});
    node.node_name = environment;
    runner_->watch(node);
  }
  for (const auto& [environment, library, kind, words] : cases) {
    std::size_t from = 0;
    const auto inventory = reports_.wait_for<Inventory>(environment, from);
    ASSERT_TRUE(inventory && inventory->problem) << environment;
    EXPECT_EQ(inventory->problem->kind, kind) << environment;
    EXPECT_NE(inventory->problem->message.find(words), std::string::npos)
        << inventory->problem->message;
    EXPECT_TRUE(reports_.wait_for<ProbeReadings>(environment, from)) << "the sign of life";
  }
}

TEST_F(Probes, ReportALostGpuAndTheOthersAsTheyAre) {
  start();
  runner_->watch(target(FAKE_NVML, {"FAKE_NVML_LOST=1"}));

  const auto readings = reports_.wait_for<ProbeReadings>("n1", seen_);

  ASSERT_TRUE(readings);
  ASSERT_EQ(readings->gpus.size(), 2u);
  EXPECT_EQ(readings->gpus[0].condition, hardware::GpuCondition::kAnswering);
  EXPECT_EQ(readings->gpus[1].condition, hardware::GpuCondition::kLost);
}

TEST_F(Probes, SayThatTheHostsDescriptionIsMissing) {
  ProbeTarget broken = emulated("n1");
  broken.host_description = folder_ + "/nothing.json";
  start();
  runner_->watch(broken);

  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kCannotRead);
  EXPECT_NE(problem->message.find("nothing.json"), std::string::npos) << problem->message;
}

TEST_F(Probes, ThatCannotBeStartedAreReported) {
  options_.executable = folder_ + "/no-such-probe";
  start();
  runner_->watch(target("libnvidia-ml.so.1"));

  const auto problem = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->trouble, ProbeTrouble::kCannotStart);
}

// A program that speaks nonsense in the probe's place.
TEST_F(Probes, ThatSpeakNonsenseAreEnded) {
  options_.executable = folder_ + "/nonsense";
  std::ofstream(options_.executable) << "#!/bin/sh\nprintf '\\377\\377' >&3\nread line <&3\n";
  ASSERT_EQ(chmod(options_.executable.c_str(), 0700), 0);
  start();
  runner_->watch(target("libnvidia-ml.so.1"));

  const auto nonsense = reports_.wait_for<ProbeProblem>("n1", seen_);
  const auto ended = reports_.wait_for<ProbeProblem>("n1", seen_);

  ASSERT_TRUE(nonsense);
  EXPECT_EQ(nonsense->trouble, ProbeTrouble::kCannotRead);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->trouble, ProbeTrouble::kDied);
}

TEST_F(Probes, EndWithTheRunner) {
  start();
  runner_->watch(emulated("n1"));
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));
  const ProbeStatus status = wait_for_status([](const ProbeStatus& now) { return now.pid != 0; });

  runner_.reset();

  EXPECT_NE(kill(status.pid, 0), 0);
}

TEST_F(Probes, OfOneNodeAreStartedOnce) {
  start();
  const ProbeTarget node = emulated("n1");
  runner_->watch(node);
  runner_->watch(node);
  ASSERT_TRUE(reports_.wait_for<ProbeReadings>("n1", seen_));

  EXPECT_EQ(runner_->status().size(), 1u);
}

}  // namespace
}  // namespace gpu_platform::node
