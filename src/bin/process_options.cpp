#include "bin/process_options.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "bin/site_users.h"

namespace gpu_platform::bin {

namespace {

using config::Configuration;

// A key of the launcher, and the option of a launcher that is a service and says the same.
struct LauncherKey {
  std::string_view key;
  std::string_view option;
  bool (*is_set)(const Configuration& configuration, const Configuration& defaults);
};

template <auto kMember>
bool differs(const Configuration& configuration, const Configuration& defaults) {
  return configuration.*kMember != defaults.*kMember;
}

constexpr LauncherKey kLauncherKeys[] = {
    {"prolog", "--prolog FILE", differs<&Configuration::prolog>},
    {"epilog", "--epilog FILE", differs<&Configuration::epilog>},
    {"prolog_timeout", "--prolog-timeout TIME", differs<&Configuration::prolog_timeout>},
    {"epilog_timeout", "--epilog-timeout TIME", differs<&Configuration::epilog_timeout>},
    {"seccomp", "--seccomp off", differs<&Configuration::seccomp>},
    {"mode_setting", "--mode-setting allow", differs<&Configuration::mode_setting>},
};

// A launcher that is a service does not learn the keys of the configuration.
base::Status check_launcher_keys(const Configuration& configuration, const std::string& launcher) {
  const Configuration defaults;
  for (const LauncherKey& each : kLauncherKeys) {
    if (!each.is_set(configuration, defaults)) continue;
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("execution.{}: the launcher at {} is a service of its own, which "
                                  "this key does not reach; remove the key and give the "
                                  "launcher {} (ExecStart of gpu-platform-launcher.service)",
                                  each.key, launcher, each.option),
                      fmt::format("execution.{}", each.key));
  }
  return {};
}

std::uint64_t in_ms(base::Duration time) {
  return static_cast<std::uint64_t>(base::whole_milliseconds(time));
}

execution::CudaNames cuda_names_of(config::CudaVisibleDevices value) {
  switch (value) {
    case config::CudaVisibleDevices::kAuto:
      return execution::CudaNames::kAuto;
    case config::CudaVisibleDevices::kIndex:
      return execution::CudaNames::kIndex;
    case config::CudaVisibleDevices::kUuid:
      return execution::CudaNames::kUuid;
  }
  return execution::CudaNames::kAuto;
}

execution::BoardPlaces boards_of(const ProcessPlaces& places) {
  if (!places.has_boards) return {};
  return {places.data_dir + "/emulated",
          std::filesystem::path(places.programs.emulated_nvml).parent_path().string(),
          places.programs.emulated_programs};
}

}  // namespace

base::Result<execution::ProcessEngineOptions> process_options(const Configuration& configuration,
                                                              const ProcessPlaces& places) {
  if (!places.launcher.empty()) TRY(check_launcher_keys(configuration, places.launcher));
  TRY_ASSIGN(model::UserRange users, users_of_site(configuration, true));
  execution::ProcessEngineOptions engine;
  engine.data_dir = places.data_dir;
  engine.node_program = places.programs.node;
  engine.launcher_socket = places.launcher;
  engine.output_file_bytes = static_cast<std::uint64_t>(configuration.output_rotate_bytes.value());
  engine.output_files = configuration.output_files_kept + 1;
  engine.max_processes = configuration.max_processes;
  engine.private_folders = configuration.private_tmp;
  engine.hide_processes = configuration.hide_processes;
  engine.start_timeout_ms = in_ms(configuration.start_timeout);
  engine.reset_limit_ms = in_ms(configuration.reset_deadline);
  engine.check_limit_ms = in_ms(configuration.check_deadline);
  engine.deep_check_limit_ms = in_ms(configuration.deep_check_deadline);
  engine.output_limit_bytes = static_cast<std::uint64_t>(configuration.output_limit.value());
  engine.hooks = {configuration.prolog.path, configuration.epilog.path,
                  in_ms(configuration.prolog_timeout), in_ms(configuration.epilog_timeout)};
  engine.containers = configuration.containers.path;
  engine.launcher_rules = {configuration.root_jobs == config::RootJobs::kAllow, std::move(users),
                           configuration.mode_setting,
                           configuration.seccomp == config::Seccomp::kDefault};
  engine.board_places = boards_of(places);
  engine.mps_control = places.mps_control;
  engine.cuda_names = cuda_names_of(configuration.cuda_visible_devices);
  return engine;
}

}  // namespace gpu_platform::bin
