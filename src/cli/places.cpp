#include "cli/places.h"

#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

namespace gpu_platform::cli {

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
std::vector<std::string> runtime_folders(const Surroundings& surroundings) {
  std::vector<std::string> folders;
  if (const auto runtime = variable(surroundings, "XDG_RUNTIME_DIR")) folders.push_back(*runtime);
  const std::string usual = fmt::format("/run/user/{}", surroundings.uid);
  const bool is_named = !folders.empty() && folders.front() == usual;
  if (surroundings.uid != 0 && !is_named) folders.push_back(usual);
  return folders;
}

}  // namespace

std::string fallback_folder(const Surroundings& surroundings) {
  return fmt::format("{}/gpu-platform-{}", surroundings.temporary, surroundings.uid);
}

std::string socket_to_serve(const Surroundings& surroundings) {
  if (surroundings.uid == 0) return std::string(kSocketOfRoot);
  for (const std::string& folder : runtime_folders(surroundings)) {
    if (look_at_folder(folder, surroundings.uid) == Folder::kOwn)
      return folder + std::string(kSocket);
  }
  return fallback_folder(surroundings) + std::string(kSocket);
}

std::vector<std::string> sockets_to_try(const Surroundings& surroundings) {
  std::vector<std::string> sockets;
  for (const std::string& folder : runtime_folders(surroundings)) {
    if (look_at_folder(folder, surroundings.uid) == Folder::kForeign) continue;
    sockets.push_back(folder + std::string(kSocket));
  }
  const std::string fallback = fallback_folder(surroundings);
  const bool has_fallback =
      surroundings.uid != 0 && look_at_folder(fallback, surroundings.uid) == Folder::kOwn;
  if (has_fallback) sockets.push_back(fallback + std::string(kSocket));
  sockets.emplace_back(kSocketOfRoot);
  return sockets;
}

std::string default_data_dir(const Surroundings& surroundings) {
  if (surroundings.uid == 0) return "/var/lib/gpu-platform";
  if (const auto state = variable(surroundings, "XDG_STATE_HOME")) {
    if (look_at_folder(*state, surroundings.uid) != Folder::kForeign)
      return *state + "/gpu-platform";
  }
  if (const auto home = variable(surroundings, "HOME")) {
    if (look_at_folder(*home, surroundings.uid) == Folder::kOwn) {
      return *home + "/.local/state/gpu-platform";
    }
  }
  return fallback_folder(surroundings) + "/data";
}

base::Status make_fallback_folder(const Surroundings& surroundings, const std::string& path) {
  const std::string folder = fallback_folder(surroundings);
  if (!path.starts_with(folder + "/")) return {};
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return std::unexpected(base::system_error("make " + folder, errno));
  }
  if (look_at_folder(folder, surroundings.uid) == Folder::kOwn) return {};
  return base::fail(
      base::ErrorCode::kPermissionDenied,
      fmt::format("{} does not belong to this user, so nothing can be kept there: set HOME and "
                  "XDG_RUNTIME_DIR, or use --data-dir and --socket",
                  folder));
}

}  // namespace gpu_platform::cli
