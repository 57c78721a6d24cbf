#include "client/places.h"

#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

namespace gpu_platform::client {

namespace {

constexpr std::string_view kSocket = "/gpu-platform.sock";
constexpr std::string_view kSocketOfRoot = "/run/gpu-platform/gpu-platform.sock";

enum class Folder { kAbsent, kOwn, kForeign };

// A link is foreign: its target may change.
Folder look_at_folder(const std::string& path, unsigned uid) {
  struct stat about{};
  if (::lstat(path.c_str(), &about) != 0) return Folder::kAbsent;
  const bool is_own =
      S_ISDIR(about.st_mode) && about.st_uid == uid && (about.st_mode & S_IWOTH) == 0;
  return is_own ? Folder::kOwn : Folder::kForeign;
}

// Folders in which the user's socket may be, the fallback apart.
std::vector<std::string> runtime_folders(const ProcessEnvironment& process_environment) {
  std::vector<std::string> folders;
  if (const auto runtime = variable(process_environment, "XDG_RUNTIME_DIR"))
    folders.push_back(*runtime);
  const std::string usual = fmt::format("/run/user/{}", process_environment.uid);
  const bool is_named = !folders.empty() && folders.front() == usual;
  if (process_environment.uid != 0 && !is_named) folders.push_back(usual);
  return folders;
}

}  // namespace

std::string fallback_folder(const ProcessEnvironment& process_environment) {
  return fmt::format("{}/gpu-platform-{}", process_environment.temporary, process_environment.uid);
}

std::string socket_to_serve(const ProcessEnvironment& process_environment) {
  if (process_environment.uid == 0) return std::string(kSocketOfRoot);
  for (const std::string& folder : runtime_folders(process_environment)) {
    if (look_at_folder(folder, process_environment.uid) == Folder::kOwn)
      return folder + std::string(kSocket);
  }
  return fallback_folder(process_environment) + std::string(kSocket);
}

std::vector<std::string> sockets_to_try(const ProcessEnvironment& process_environment) {
  std::vector<std::string> sockets;
  for (const std::string& folder : runtime_folders(process_environment)) {
    if (look_at_folder(folder, process_environment.uid) == Folder::kForeign) continue;
    sockets.push_back(folder + std::string(kSocket));
  }
  const std::string fallback = fallback_folder(process_environment);
  const bool has_fallback = process_environment.uid != 0 &&
                            look_at_folder(fallback, process_environment.uid) == Folder::kOwn;
  if (has_fallback) sockets.push_back(fallback + std::string(kSocket));
  sockets.emplace_back(kSocketOfRoot);
  return sockets;
}

std::string default_data_dir(const ProcessEnvironment& process_environment) {
  if (process_environment.uid == 0) return "/var/lib/gpu-platform";
  if (const auto state = variable(process_environment, "XDG_STATE_HOME")) {
    if (look_at_folder(*state, process_environment.uid) != Folder::kForeign)
      return *state + "/gpu-platform";
  }
  if (const auto home = variable(process_environment, "HOME")) {
    if (look_at_folder(*home, process_environment.uid) == Folder::kOwn) {
      return *home + "/.local/state/gpu-platform";
    }
  }
  return fallback_folder(process_environment) + "/data";
}

base::Status make_fallback_folder(const ProcessEnvironment& process_environment,
                                  const std::string& path) {
  const std::string folder = fallback_folder(process_environment);
  if (!path.starts_with(folder + "/")) return {};
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return std::unexpected(base::system_error("make " + folder, errno));
  }
  if (look_at_folder(folder, process_environment.uid) == Folder::kOwn) return {};
  return base::fail(
      base::ErrorCode::kPermissionDenied,
      fmt::format("{} does not belong to this user, so nothing can be kept there: set HOME and "
                  "XDG_RUNTIME_DIR, or use --data-dir and --socket",
                  folder));
}

}  // namespace gpu_platform::client
