#include "execution/process/gpu_resets.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "execution/process/engine_fixture.h"
#include "model/job_spec.h"
#include "os/packet_socket.h"

namespace gpu_platform::execution::testing {
namespace {

using node::DriverVerb;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Sent = LauncherLink::Sent;
using Held = std::vector<std::pair<std::string, bool>>;

ResetOrder order_of(const std::string& node, std::vector<std::string> gpus) {
  return {model::NodeId(1), node, std::move(gpus), model::EngineKind::kProcess};
}

ResetOrder check_of(const std::string& node, std::vector<std::string> gpus, bool is_deep) {
  ResetOrder order = order_of(node, std::move(gpus));
  order.without_reset = true;
  order.is_deep = is_deep;
  return order;
}

// The launcher's side is this test.
class GpuResetsTest : public ::testing::Test {
 protected:
  struct Asked {
    node::RunDriver order;
    os::Descriptor socket;
  };

  Sent go_on(Sent sent = Sent::kYes) {
    return resets_.go_on(
        [&](const node::RunDriver& order, int socket) {
          if (sent == Sent::kYes) {
            asked_.push_back({order, os::Descriptor(fcntl(socket, F_DUPFD_CLOEXEC, 3))});
          }
          return sent;
        },
        now_);
  }
  // What was asked last, and the handle of its answer.
  std::pair<Asked, int> take() {
    std::pair<Asked, int> taken{std::move(asked_.back()), resets_.take_new_handles().back()};
    asked_.pop_back();
    return taken;
  }
  void answer(const node::DriverAnswer& answer) {
    auto [asked, handle] = take();
    os::send_packet(asked.socket.get(), node::encode_driver_answer(answer));
    EXPECT_TRUE(resets_.read(handle));
  }
  std::vector<ResetEnded> told() const { return observed_.resets(); }

  std::int64_t now_ = 1;
  std::vector<Asked> asked_;
  Held held_;
  Observed observed_;
  GpuResets resets_{{.hold_probe = [this](const std::string& node,
                                          bool is_held) { held_.emplace_back(node, is_held); }},
                    observed_};
};

TEST_F(GpuResetsTest, GpuIsResetWhileTheProbeIsHeldAndCheckedAfter) {
  resets_.add(order_of("n1", {"GPU-1"}));
  EXPECT_EQ(go_on(), Sent::kYes);
  EXPECT_EQ(asked_.back().order.verb, DriverVerb::kReset);
  EXPECT_FALSE(asked_.back().order.board.has_value());
  EXPECT_EQ(held_, (Held{{"n1", true}}));
  answer({{{"GPU-1", ""}}, "it was reset"});
  EXPECT_EQ(held_, (Held{{"n1", true}, {"n1", false}}));
  EXPECT_THAT(told(), IsEmpty());
  go_on();
  EXPECT_EQ(asked_.back().order.verb, DriverVerb::kQuickCheck);
  answer({{{"GPU-1", ""}}, "readings only"});
  EXPECT_THAT(told(), ElementsAre(ResetEnded{"n1", "GPU-1", "", "readings only"}));
  EXPECT_EQ(held_.size(), 2U);
  EXPECT_EQ(resets_.do_due(INT64_MAX), std::nullopt);
}

TEST_F(GpuResetsTest, CheckAloneResetsNothingAndHoldsNoProbe) {
  for (const bool is_deep : {false, true}) {
    resets_.add(check_of("n1", {"GPU-1", "GPU-2"}, is_deep));
    EXPECT_EQ(go_on(), Sent::kYes);
    EXPECT_EQ(asked_.back().order.verb, is_deep ? DriverVerb::kDeepCheck : DriverVerb::kQuickCheck);
    answer({{{"GPU-1", ""}, {"GPU-2", "its memory"}}, "all of it"});
    go_on();
    EXPECT_THAT(asked_, IsEmpty());
  }
  ASSERT_EQ(told().size(), 4U);
  EXPECT_EQ(told()[0], (ResetEnded{"n1", "GPU-1", "", "all of it", true}));
  EXPECT_EQ(told()[1], (ResetEnded{"n1", "GPU-2", "its memory", "all of it", true}));
  EXPECT_THAT(held_, IsEmpty());
}

TEST_F(GpuResetsTest, WhatTheRulesDoNotAllowIsToldApartFromWhatFails) {
  resets_.add(check_of("n1", {"GPU-1"}, false));
  go_on();
  answer(node::refused_answer({"GPU-1"}, "add the line \"allow check\""));
  EXPECT_THAT(told(), ElementsAre(ResetEnded{"n1", "GPU-1", "add the line \"allow check\"", "",
                                             true, RefusedPart::kAll}));
  resets_.add(order_of("n1", {"GPU-2"}));
  go_on();
  answer(node::refused_answer({"GPU-2"}, "no resets"));
  EXPECT_EQ(told().back(), (ResetEnded{"n1", "GPU-2", "no resets", "", false, RefusedPart::kAll}));
  resets_.add(order_of("n1", {"GPU-3"}));
  go_on();
  answer({{{"GPU-3", ""}}, "it was reset"});
  go_on();
  answer(node::refused_answer({"GPU-3"}, "no checks"));
  EXPECT_EQ(told().back().refused, RefusedPart::kCheckAfterReset);
  EXPECT_THAT(told().back().failure, HasSubstr("it was reset, but the rules do not allow"));
}

TEST_F(GpuResetsTest, WhatCouldNotBeginIsToldApartFromWhatTheRulesDoNotAllow) {
  resets_.add(order_of("n1", {"GPU-1"}));
  go_on();
  answer(node::untried_answer({"GPU-1"}, "it is in use by process 7"));
  EXPECT_THAT(told(), ElementsAre(ResetEnded{"n1", "GPU-1", "it is in use by process 7", "", false,
                                             RefusedPart::kAll, true}));
  resets_.add(order_of("n1", {"GPU-2"}));
  go_on();
  answer({{{"GPU-2", ""}}, "it was reset"});
  go_on();
  answer(node::untried_answer({"GPU-2"}, "the driver is busy with other requests"));
  EXPECT_EQ(told().back().refused, RefusedPart::kCheckAfterReset);
  EXPECT_TRUE(told().back().is_untried);
  EXPECT_THAT(told().back().failure, HasSubstr("it was reset, but nothing could begin"));
}

TEST_F(GpuResetsTest, ResetAndCheckOfOneGpuAreBothAnswered) {
  resets_.add(check_of("n1", {"GPU-1"}, false));
  go_on();
  resets_.add(order_of("n1", {"GPU-1"}));
  resets_.add(check_of("n1", {"GPU-1"}, false));
  answer({{{"GPU-1", ""}}, ""});
  EXPECT_THAT(told(), ElementsAre(ResetEnded{"n1", "GPU-1", "", "", true}));
  go_on();
  EXPECT_EQ(asked_.back().order.verb, DriverVerb::kReset);
}

TEST_F(GpuResetsTest, OnlyThoseThatWereResetAreChecked) {
  resets_.add(order_of("n1", {"GPU-1", "GPU-2", "GPU-3"}));
  go_on();
  answer({{{"GPU-1", ""}, {"GPU-2", "it is in use"}}, ""});
  EXPECT_THAT(told(), ElementsAre(ResetEnded{"n1", "GPU-2", "it is in use", ""},
                                  ResetEnded{"n1", "GPU-3", "the answer does not name it", ""}));
  go_on();
  EXPECT_THAT(asked_.back().order.gpus, ElementsAre("GPU-1"));
  answer({{{"GPU-1", "memory"}}, ""});
  EXPECT_EQ(told().back().failure, "it was reset, but failed its check: memory");
}

TEST_F(GpuResetsTest, RepeatedOrderHasOneAnswerAndOneOfTheSameNodeWaits) {
  resets_.add(order_of("n1", {"GPU-1", "GPU-1"}));
  go_on();
  resets_.add(order_of("n1", {"GPU-1"}));
  resets_.add(order_of("n1", {"GPU-1", "GPU-2"}));
  resets_.add(order_of("n2", {"GPU-1"}));
  go_on();
  ASSERT_EQ(asked_.size(), 2U);  // n1's first and n2's
  EXPECT_THAT(asked_[0].order.gpus, ElementsAre("GPU-1"));
  asked_.clear();  // nobody answers
  for (const int handle : resets_.take_new_handles()) EXPECT_TRUE(resets_.read(handle));
  EXPECT_EQ(told().size(), 2U);
  go_on();
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_THAT(asked_[0].order.gpus, ElementsAre("GPU-2"));
}

TEST_F(GpuResetsTest, LauncherThatIsBusyOrGoneIsAskedAgain) {
  resets_.add(order_of("n1", {"GPU-1"}));
  EXPECT_EQ(go_on(Sent::kNotNow), Sent::kNotNow);
  EXPECT_EQ(go_on(Sent::kBroken), Sent::kBroken);
  EXPECT_THAT(told(), IsEmpty());
  EXPECT_EQ(go_on(), Sent::kYes);
  EXPECT_EQ(held_.size(), 1U);
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(GpuResetsTest, NoAnswerIsAFailure) {
  resets_.add(order_of("n1", {"GPU-1"}));
  go_on();
  const int handle = resets_.take_new_handles().back();
  asked_.clear();  // its socket closes
  EXPECT_TRUE(resets_.read(handle));
  EXPECT_THAT(told().back().failure, HasSubstr("without an answer"));
  EXPECT_FALSE(resets_.read(handle));
  EXPECT_EQ(held_.back(), (std::pair<std::string, bool>{"n1", false}));
}

TEST_F(GpuResetsTest, SilentLauncherIsGivenUpLongAfterTheLimit) {
  resets_.add(order_of("n1", {"GPU-1"}));
  go_on();
  const auto due = resets_.do_due(now_);
  ASSERT_TRUE(due.has_value());
  EXPECT_GT(*due, base::milliseconds(180'000).value());
  EXPECT_THAT(told(), IsEmpty());
  resets_.do_due(*due);
  EXPECT_EQ(told().back().failure, "the launcher does not answer");
}

// The real launcher and the real program, on an emulated board.
class ResetsOnABoard : public EngineTest, public ::testing::WithParamInterface<Mode> {
 protected:
  ResetsOnABoard() : EngineTest(GetParam()) {}

  void prepare() override {
    const std::string programs = GP_PROGRAM_DIRECTORY;
    boards_ = data_ + "/emulated";
    emulator(fmt::format("create --board dgx-h100 --node-name n1 --dir {}/n1", boards_));
    // As a daemon of that user would have made it.
    ASSERT_EQ(chmod((boards_ + "/n1/state").c_str(), 0666), 0);
    options_.board_places = {boards_, programs + "/emulator", programs + "/emulator/bin"};
  }
  static void emulator(const std::string& arguments) {
    const std::string command =
        fmt::format("{}/gpu-emulator {} > /dev/null", GP_PROGRAM_DIRECTORY, arguments);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  void inject(const std::string& fault) {
    emulator(fmt::format("inject {} --gpu n1:0 --data-dir {}", fault, data_));
  }
  std::string first_gpu() const {
    const std::string command = fmt::format(
        "GPU_EMULATOR_STATE={}/n1/state LD_LIBRARY_PATH={} {}/nvidia-smi -i 0 --query-gpu=uuid "
        "--format=csv,noheader",
        boards_, options_.board_places.library, options_.board_places.programs);
    std::FILE* const out = popen(command.c_str(), "re");
    char uuid[64] = {};
    if (out == nullptr || std::fscanf(out, "%63s", uuid) != 1) ADD_FAILURE() << command;
    if (out != nullptr) pclose(out);
    return uuid;
  }
  ResetEnded reset(const std::string& gpu) {
    engine_->reset(order_of("n1", {gpu}));
    EXPECT_TRUE(observed_->wait_until([&] { return !observed_->resets().empty(); }));
    return observed_->resets().empty() ? ResetEnded{} : observed_->resets().back();
  }

  // Of a job on the first GPU.
  StartOrder checked_start(std::uint64_t job) const {
    StartOrder start = shell(job, "exit 0");
    auto spec = std::make_shared<model::JobSpec>(*start.spec);
    spec->preflight = model::Preflight::kQuick;
    start.spec = spec;
    start.nodes[0].node_name = "n1";
    start.nodes[0].emulated = true;
    LaunchGpu gpu;
    gpu.info.uuid = first_gpu();
    start.nodes[0].gpus = {gpu};
    return start;
  }

  std::string boards_;
};
INSTANTIATE_TEST_SUITE_P(Engine, ResetsOnABoard, ::testing::Values(Mode::kCgroup, Mode::kAdvisory),
                         [](const auto& mode) {
                           return mode.param == Mode::kCgroup ? "Cgroup" : "Advisory";
                         });

TEST_P(ResetsOnABoard, GpuIsResetAndChecked) {
  const std::string gpu = first_gpu();
  inject("ecc uncorrected 1");
  EXPECT_EQ(reset(gpu), (ResetEnded{"n1", gpu, "", "readings only: there is no libcuda"}));
}

TEST_P(ResetsOnABoard, GpuIsCheckedAlone) {
  const std::string gpu = first_gpu();
  engine_->reset(check_of("n1", {gpu}, true));
  ASSERT_TRUE(observed_->wait_until([&] { return !observed_->resets().empty(); }));
  EXPECT_EQ(observed_->resets().back(),
            (ResetEnded{"n1", gpu, "", "readings only: there is no libcuda", true}));
}

TEST_P(ResetsOnABoard, GpuIsCheckedBeforeItsJobStarts) {
  const StartOrder start = checked_start(1);
  EXPECT_EQ(run(start).exit.code, 0);
  ASSERT_FALSE(observed_->of(start.attempt).started.empty());
  EXPECT_THAT(observed_->of(start.attempt).started[0].preflight, StartsWith("quick: passed in "));
  inject("remap-failed");
  const StartOrder unfit = checked_start(2);
  const Ended ended = run(unfit);
  EXPECT_EQ(ended.reason, model::EndReason::kLaunchFailed);
  ASSERT_EQ(ended.unfit_gpus.size(), 1U);
  EXPECT_EQ(ended.unfit_gpus[0],
            (UnfitGpu{"n1", first_gpu(), "a row of its memory could not be replaced"}));
  EXPECT_TRUE(observed_->of(unfit.attempt).started.empty());
}

TEST_P(ResetsOnABoard, StartThatIsStoppedInItsCheckEndsTheCheck) {
  const StartOrder start = checked_start(1);
  inject("hang 600");
  engine_->start(start);
  ASSERT_TRUE(eventually([&] { return !engine_->step_of(start.attempt).empty(); }));
  engine_->stop({start.attempt, false, {}, model::EndReason::kCancelledBy});
  ASSERT_TRUE(observed_->wait_cleaned(start.attempt));
  EXPECT_TRUE(observed_->of(start.attempt).started.empty());
  EXPECT_TRUE(observed_->of(start.attempt).ended[0].unfit_gpus.empty());
  EXPECT_EQ(engine_->step_of(start.attempt), "");
}

TEST_P(ResetsOnABoard, StartIsCheckedAnewByTheNextDaemon) {
  const StartOrder start = checked_start(1);
  inject("hang 600");
  engine_->start(start);
  ASSERT_TRUE(eventually([&] { return !engine_->step_of(start.attempt).empty(); }));
  close_engine();
  inject("hang 0");
  open_engine();
  adopt(start, model::AttemptState::kRequested);
  engine_->start(start);  // the core repeats it
  ASSERT_TRUE(observed_->wait_cleaned(start.attempt));
  EXPECT_EQ(observed_->of(start.attempt).ended[0].exit.code, 0);
  EXPECT_THAT(observed_->of(start.attempt).started.at(0).preflight, StartsWith("quick: passed"));
}

TEST_P(ResetsOnABoard, GpuThatIsNotThereIsNotReset) {
  EXPECT_THAT(reset("GPU-none").failure, HasSubstr("does not list it"));
}

TEST_P(ResetsOnABoard, ResetThatHangsIsEnded) {
  options_.reset_limit_ms = 6'000;
  open_engine();
  const std::string gpu = first_gpu();
  inject("reset-hang");
  EXPECT_THAT(reset(gpu).failure, HasSubstr("did not answer within"));
}

TEST_P(ResetsOnABoard, DriverThatHangsIsEndedWithItsCall) {
  options_.reset_limit_ms = 4'000;
  open_engine();
  const std::string gpu = first_gpu();
  inject("hang 600");
  EXPECT_EQ(reset(gpu).failure, "the driver did not answer within 4 s; the call was ended");
}

}  // namespace
}  // namespace gpu_platform::execution::testing
