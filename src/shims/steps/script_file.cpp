#include "shims/steps/script_file.h"

#include <cerrno>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpu_platform::shims {

namespace {

base::Status write_script(int fd, std::string_view script) {
  while (!script.empty()) {
    const ssize_t written = ::write(fd, script.data(), script.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(base::system_error("write the script", errno));
    script.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// High, so that scripts that number their own files do not close it.
base::Result<std::string> nameless_file(const std::string& script) {
  constexpr int kLeastFd = 100;
  const int made = ::memfd_create("slurm_script", MFD_CLOEXEC);
  if (made < 0) return std::unexpected(base::system_error("memfd_create", errno));
  TRY(write_script(made, script));
  const int kept = ::fcntl(made, F_DUPFD, kLeastFd);
  if (kept < 0) return std::unexpected(base::system_error("fcntl", errno));
  ::close(made);
  return fmt::format("/proc/self/fd/{}", kept);
}

base::Result<std::string> named_file(const std::string& script, std::string_view job) {
  const std::string folder = fmt::format("/tmp/job{}", job);
  if (::mkdir(folder.c_str(), 0700) != 0)
    return std::unexpected(base::system_error("mkdir " + folder, errno));
  std::string path = folder + "/slurm_script";
  const int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700);
  if (made < 0) return std::unexpected(base::system_error("open " + path, errno));
  const base::Status written = write_script(made, script);
  ::close(made);
  if (!written) return std::unexpected(written.error());
  return path;
}

}  // namespace

bool is_own_tmp(std::string_view mounts, std::string_view folder) {
  bool is_own = false;
  std::istringstream lines{std::string(mounts)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id;
    std::string parent;
    std::string device;
    std::string root;
    std::string place;
    words >> id >> parent >> device >> root >> place;
    // The last mount there is the one that is seen.
    if (place == "/tmp") is_own = root.substr(root.rfind('/') + 1) == folder;
  }
  return is_own;
}

base::Result<std::string> script_file(const std::string& script, const Variables& variables) {
  const std::string_view job = variable(variables, "GPU_PLATFORM_JOB_ID");
  const std::string folder = fmt::format("{}-{}", job, variable(variables, "GPU_PLATFORM_ATTEMPT"));
  std::ifstream file("/proc/self/mountinfo");
  std::ostringstream mounts;
  mounts << file.rdbuf();
  if (!job.empty() && is_own_tmp(mounts.str(), folder)) {
    if (auto named = named_file(script, job)) return named;
  }
  return nameless_file(script);
}

}  // namespace gpu_platform::shims
