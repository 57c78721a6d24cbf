#include "node/site_hooks.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace gpu_platform::node {

namespace {

constexpr std::string_view kPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Set by the platform in every job's environment, over what was submitted.
constexpr std::string_view kOurs[] = {
    "CUDA_VISIBLE_DEVICES",      "CUDA_DEVICE_ORDER",      "GPU_PLATFORM_NODE",
    "GPU_PLATFORM_GPUS",         "GPU_PLATFORM_GPU_UUIDS", "GPU_PLATFORM_CPUS",
    "GPU_PLATFORM_MEMORY_BYTES", "GPU_PLATFORM_SHARE",     "GPU_PLATFORM_SHARE_MODE",
    "GPU_PLATFORM_GPU_MEMORY",   "GPU_PLATFORM_ISOLATION",
};

// Returns an empty text if only its owner, which is root or us, can change it.
std::string error_in_owner(const std::string& path, const struct stat& about) {
  if (about.st_uid != 0 && about.st_uid != geteuid()) {
    return path + " belongs to user " + std::to_string(about.st_uid) + ": it must belong to root" +
           (geteuid() == 0 ? "" : " or to the launcher's user");
  }
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return path + " can be written to by others than its owner: chmod go-w " + path;
  }
  return {};
}

std::string without_nul(std::string_view text) {
  return std::string(text.substr(0, text.find('\0')));
}

std::string_view name_of(const EndRecord& end) {
  if (end.cause == EndCause::kPrologFailed) return "PROLOG_FAILED";
  if (end.cause == EndCause::kStopped) return "STOPPED";
  if (end.cause == EndCause::kTimeLimit) return "TIME_LIMIT";
  if (end.cause == EndCause::kOutOfMemory) return "OUT_OF_MEMORY";
  if (end.kind == EndKind::kNotStarted) return "NOT_STARTED";
  return end.kind == EndKind::kExited && end.value == 0 ? "COMPLETED" : "FAILED";
}

}  // namespace

std::string error_in_hook(const std::string& path) {
  struct stat about{};
  if (std::string why = error_in_rules(path); !why.empty()) return why;
  if (stat(path.c_str(), &about) != 0) return path + ": " + strerror(errno);
  return (about.st_mode & S_IXUSR) == 0 ? path + " is not executable: chmod u+x " + path : "";
}

std::string error_in_rules(const std::string& path) {
  if (!path.starts_with('/')) return "'" + path + "' is not an absolute path";
  struct stat about{};
  if (stat(path.c_str(), &about) != 0) return path + ": " + strerror(errno);
  if (!S_ISREG(about.st_mode)) return path + " is not a regular file";
  if (std::string why = error_in_owner(path, about); !why.empty()) return why;
  const std::string folder = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
  if (stat(folder.c_str(), &about) != 0) return folder + ": " + strerror(errno);
  return error_in_owner(folder, about);
}

std::string error_in_secret(const std::string& path) {
  struct stat about{};
  if (std::string why = error_in_rules(path); !why.empty()) return why;
  if (stat(path.c_str(), &about) != 0) return path + ": " + strerror(errno);
  const bool is_secret = (about.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  return is_secret ? "" : path + " can be read by others than its owner: chmod go= " + path;
}

std::string error_of(const SiteHooks& hooks) {
  for (const std::string* file : {&hooks.prolog, &hooks.epilog}) {
    if (file->empty()) continue;
    if (const std::string why = error_in_hook(*file); !why.empty()) {
      return (file == &hooks.prolog ? "prolog: " : "epilog: ") + why;
    }
  }
  return {};
}

std::vector<std::string> hook_environment(std::string_view hook, model::AttemptId attempt,
                                          const LaunchRequest& request) {
  std::vector<std::string> environment{
      std::string(kPath),
      "GPU_PLATFORM_HOOK=" + std::string(hook),
      "GPU_PLATFORM_JOB_ID=" + std::to_string(attempt.job.value),
      "GPU_PLATFORM_ATTEMPT=" + std::to_string(attempt.attempt),
      "GPU_PLATFORM_UID=" + std::to_string(request.user.uid),
      "GPU_PLATFORM_GID=" + std::to_string(request.user.gid),
      "GPU_PLATFORM_WORKDIR=" + without_nul(request.workdir),
  };
  if (!request.user.name.empty()) environment.push_back("GPU_PLATFORM_USER=" + request.user.name);
  for (const std::string_view entry : request.environment) {
    for (const std::string_view name : kOurs) {
      if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
        environment.push_back(without_nul(entry));
      }
    }
  }
  return environment;
}

void add_end(const EndRecord& end, std::vector<std::string>& environment) {
  environment.push_back("GPU_PLATFORM_END=" + std::string(name_of(end)));
  if (end.kind == EndKind::kSignalled) {
    environment.push_back("GPU_PLATFORM_SIGNAL=" + std::to_string(end.value));
  } else if (end.kind == EndKind::kExited || end.value != 0) {
    environment.push_back("GPU_PLATFORM_EXIT_CODE=" + std::to_string(end.value));
  }
}

}  // namespace gpu_platform::node
