#include "node/owed_epilog.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/folders/node_folders.h"
#include "node/site_hooks.h"

namespace gpu_platform::node {

namespace {

// The first byte of the file; the request follows.
constexpr char kOwed = 'o';
constexpr char kBegun = 'b';

std::string_view with_nul(const std::string& text) {
  return {text.c_str(), text.size() + 1};
}

}  // namespace

EpilogRequest::EpilogRequest(model::AttemptId attempt, const LaunchRequest& job)
    : texts(hook_environment("epilog", attempt, job)) {
  constexpr std::string_view kName("epilog\0", 7);
  constexpr std::string_view kNothing("\0", 1);
  request.boot_id = job.boot_id;
  request.user.uid = job.user.uid;
  request.command = {kName};
  for (const std::string& text : texts) request.environment.push_back(with_nul(text));
  request.workdir = kNothing;
  request.output = kNothing;
  request.devices = job.devices;
  request.memory_bytes = job.memory_bytes;
  request.max_processes = job.max_processes;
  request.cpus = job.cpus;
  request.near_cpus = job.near_cpus;
  request.near_nodes = job.near_nodes;
}

OwedEpilog::OwedEpilog(int attempts, model::AttemptId attempt)
    : attempts_(attempts), name_(owed_epilog_name(attempt)) {}

OwedEpilog::~OwedEpilog() {
  if (fd_ >= 0) close(fd_);
}

bool OwedEpilog::note(const LaunchRequest& job) {
  const model::AttemptId attempt = *parse_attempt_name(name_.substr(0, name_.find('.')));
  const std::string bytes = kOwed + encode_request(EpilogRequest(attempt, job).request);
  fd_ = open_below(attempts_, name_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd_ < 0) return false;
  const ssize_t wrote = pwrite(fd_, bytes.data(), bytes.size(), 0);
  if (wrote == static_cast<ssize_t>(bytes.size())) return true;
  const int error = wrote < 0 ? errno : ENOSPC;
  remove();
  errno = error;
  return false;
}

void OwedEpilog::mark(char state) const {
  if (fd_ < 0) return;
  [[maybe_unused]] const ssize_t wrote = pwrite(fd_, &state, 1, 0);
}

void OwedEpilog::mark_begun() const {
  mark(kBegun);
}

void OwedEpilog::mark_owed() const {
  mark(kOwed);
}

void OwedEpilog::remove() const {
  unlinkat(attempts_, name_.c_str(), 0);
}

bool OwedEpilog::take() {
  fd_ = open_below(attempts_, name_.c_str(), O_RDWR);
  if (fd_ < 0 || flock(fd_, LOCK_EX | LOCK_NB) != 0) return false;
  struct stat about{};
  if (fstat(fd_, &about) != 0 || about.st_size <= 0) return false;
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  const ssize_t got = pread(fd_, bytes.data(), bytes.size(), 0);
  if (got != static_cast<ssize_t>(bytes.size())) return false;
  has_begun_ = bytes.front() != kOwed;
  bytes_ = bytes.substr(1);
  return true;
}

bool OwedEpilog::is_run(int attempts, model::AttemptId attempt) {
  const int fd = open_below(attempts, owed_epilog_name(attempt).c_str(), O_RDONLY);
  if (fd < 0) return false;
  const bool is_locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return is_locked;
}

}  // namespace gpu_platform::node
