#include "bin/process_options.h"

#include <gtest/gtest.h>

#include <functional>

namespace gpu_platform::bin {
namespace {

using config::Configuration;

ProcessPlaces places() {
  ProcessPlaces places;
  places.data_dir = "/var/lib/gpu-platform";
  places.programs.node = "/usr/libexec/gpu-platform/gpu-platform-node";
  places.programs.emulated_nvml = "/usr/lib/gpu-platform/libnvidia-ml.so.1";
  places.programs.emulated_programs = "/usr/libexec/gpu-platform/emulated";
  return places;
}

TEST(ProcessOptions, AreThoseOfTheConfiguration) {
  Configuration site;
  site.prolog.path = "/etc/prolog";
  site.prolog_timeout = base::seconds(7);
  site.start_timeout = base::seconds(3);
  site.reset_deadline = base::minutes(4);
  site.check_deadline = base::minutes(6);
  site.deep_check_deadline = base::minutes(50);
  site.cuda_visible_devices = config::CudaVisibleDevices::kUuid;
  site.output_files_kept = 4;
  site.root_jobs = config::RootJobs::kAllow;
  site.min_uid = 2000;
  ProcessPlaces with_mps = places();
  with_mps.mps_control = "/usr/bin/nvidia-cuda-mps-control";
  const auto options = process_options(site, with_mps);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->mps_control, "/usr/bin/nvidia-cuda-mps-control");
  EXPECT_EQ(options->data_dir, "/var/lib/gpu-platform");
  EXPECT_EQ(options->node_program, "/usr/libexec/gpu-platform/gpu-platform-node");
  EXPECT_EQ(options->hooks.prolog, "/etc/prolog");
  EXPECT_EQ(options->hooks.prolog_timeout_ms, 7'000U);
  EXPECT_EQ(options->start_timeout_ms, 3'000U);
  EXPECT_EQ(options->reset_limit_ms, 240'000U);
  EXPECT_EQ(options->check_limit_ms, 360'000U);
  EXPECT_EQ(options->deep_check_limit_ms, 3'000'000U);
  EXPECT_EQ(options->cuda_names, execution::CudaNames::kUuid);
  EXPECT_EQ(options->output_files, 5U) << "with the present one";
  EXPECT_TRUE(options->launcher_rules.allow_root && options->launcher_rules.filter_syscalls);
  EXPECT_EQ(options->launcher_rules.users.min_uid, 2000U);
  EXPECT_TRUE(options->board_places.boards.empty());
}

TEST(ProcessOptions, BoardsAreInTheDataDirectory) {
  ProcessPlaces emulated = places();
  emulated.has_boards = true;
  const auto options = process_options({}, emulated);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->board_places.boards, "/var/lib/gpu-platform/emulated");
  EXPECT_EQ(options->board_places.library, "/usr/lib/gpu-platform");
  EXPECT_EQ(options->board_places.programs, "/usr/libexec/gpu-platform/emulated");
}

TEST(ProcessOptions, ALauncherThatIsAServiceHasItsOwnRules) {
  ProcessPlaces with_service = places();
  with_service.launcher = "/run/gpu-platform/launcher.sock";
  EXPECT_TRUE(process_options({}, with_service));
  const std::pair<std::function<void(Configuration&)>, std::string> kKeys[] = {
      {[](Configuration& site) { site.prolog.path = "/p"; }, "prolog"},
      {[](Configuration& site) { site.epilog.path = "/e"; }, "epilog"},
      {[](Configuration& site) { site.prolog_timeout = base::seconds(1); }, "prolog_timeout"},
      {[](Configuration& site) { site.epilog_timeout = base::seconds(1); }, "epilog_timeout"},
      {[](Configuration& site) { site.seccomp = config::Seccomp::kOff; }, "seccomp"},
      {[](Configuration& site) { site.mode_setting = true; }, "mode_setting"}};
  for (const auto& [set, key] : kKeys) {
    Configuration site;
    set(site);
    EXPECT_TRUE(process_options(site, places())) << "where the daemon starts the launcher";
    const auto options = process_options(site, with_service);
    ASSERT_FALSE(options) << key;
    EXPECT_EQ(options.error().field, "execution." + key);
    EXPECT_TRUE(options.error().message.starts_with("execution." + key + ": the launcher at /run/"))
        << options.error().message;
  }
}

TEST(ProcessOptions, TheRangeOfUsersIsNotEmpty) {
  Configuration site;
  site.min_uid = 5000;
  site.max_uid = 4000;
  const auto options = process_options(site, places());
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().field, "execution.min_uid");
}

}  // namespace
}  // namespace gpu_platform::bin
