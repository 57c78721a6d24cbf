#include "node/supervisor/container_job.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "node/cgroup.h"
#include "os/clock.h"

namespace gpu_platform::node {

namespace {

constexpr std::size_t kMaxReport = 1024;  // bytes
constexpr int kEngineTimeoutMs = 5000;

// Above the numbers that the client gets them as.
int moved_up(int fd) {
  if (fd < 0) return -1;
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
  close(fd);
  return high;
}

std::string joined(const std::vector<gid_t>& groups) {
  std::string text;
  for (const gid_t group : groups) {
    if (!text.empty()) text += ',';
    text += std::to_string(group);
  }
  return text;
}

}  // namespace

bool ContainerJob::open() {
  if (!is_given()) return true;
  request_fd_ = moved_up(memfd_create("container-request", MFD_CLOEXEC));
  report_fd_ = moved_up(make_report());
  if (request_fd_ < 0 || report_fd_ < 0) return false;
  const std::string bytes = encode_request(request_);
  return write(request_fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
         lseek(request_fd_, 0, SEEK_SET) == 0;
}

// For those who may read the record.
int ContainerJob::make_report() const {
  const int folder = o_.folders->attempts;
  struct stat about{};
  if (fstat(folder, &about) != 0) return -1;
  const unsigned mode = (about.st_mode & S_IRGRP) != 0 ? 0640 : 0600;
  return open_below(folder, container_report_name(o_.attempt).c_str(), O_RDWR | O_CREAT | O_TRUNC,
                    mode);
}

ContainerJob::~ContainerJob() {
  if (report_fd_ < 0 || !is_clean()) return;
  unlinkat(o_.folders->attempts, container_report_name(o_.attempt).c_str(), 0);
}

ContainerStart ContainerJob::start() const {
  ContainerStart start;
  start.command = {o_.containers.program,
                   "run",
                   "--rules",
                   o_.containers.rules,
                   is_rootless() ? "--cluster" : "--cgroup",
                   is_rootless() ? o_.containers.cluster : cgroup(),
                   "--attempt",
                   attempt_name(o_.attempt),
                   "--uid",
                   std::to_string(request_.user.uid),
                   "--gid",
                   std::to_string(request_.user.gid),
                   "--groups",
                   joined(request_.user.groups),
                   "--name",
                   request_.user.name,
                   "--root",
                   o_.folders->path};
  start.request_fd = request_fd_;
  start.report_fd = report_fd_;
  return start;
}

// Not reaped yet, so the number is still the client's own.
void ContainerJob::stop(int client_pid) const {
  if (is_given() && client_pid > 0) ::kill(client_pid, SIGTERM);
}

// It ends by itself within seconds. One that hangs, or is not ours any more, would hold the GPUs.
void ContainerJob::kill(int client_pid) {
  if (!is_given() || client_pid <= 0) return;
  const std::int64_t now = os::boot_ms();
  if (killed_by_ms_ == 0) killed_by_ms_ = now + static_cast<std::int64_t>(o_.containers.timeout_ms);
  was_cut_off_ = now >= killed_by_ms_;
  ::kill(client_pid, was_cut_off_ ? SIGKILL : SIGUSR1);
}

void ContainerJob::signal(int client_pid, int signal) const {
  if (client_pid > 0) sigqueue(client_pid, container_signal_number(), {.sival_int = signal});
}

void ContainerJob::remove_groups() const {
  if (is_in_cgroup()) remove_engine_groups(cgroup(), kEngineTimeoutMs);
}

std::optional<std::uint64_t> ContainerJob::peak_memory_bytes() const {
  return is_in_cgroup() ? peak_of_engine_groups(cgroup()) : std::nullopt;
}

std::string ContainerJob::cgroup() const {
  return o_.cgroup_base + "/" + attempt_name(o_.attempt);
}

std::string ContainerJob::report() const {
  if (report_fd_ < 0) return {};
  char text[kMaxReport];
  const ssize_t got = pread(report_fd_, text, sizeof text, 0);
  const std::string_view all(text, got < 0 ? 0 : static_cast<std::size_t>(got));
  return std::string(all.substr(0, all.find('\n')));
}

// One that never began has left nothing. What one has said that had to be killed is not believed.
bool ContainerJob::is_clean() const {
  if (was_cut_off_) return false;
  char text[kMaxReport];
  const ssize_t got = pread(report_fd_, text, sizeof text, 0);
  return got == 0 ||
         std::string_view(text, got < 0 ? 0 : static_cast<std::size_t>(got)).ends_with("\nclean\n");
}

std::string ContainerJob::failure() const {
  constexpr std::string_view kBegin = "failed: ";
  std::string text = report();
  if (!text.starts_with(kBegin)) return {};
  text.erase(0, kBegin.size());
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, ' ');
  return text;
}

bool ContainerJob::could_not_execute(EndKind kind, std::uint8_t value) const {
  const bool says_so = value == 126 || value == 127;
  return kind == EndKind::kExited && says_so && !failure().empty();
}

}  // namespace gpu_platform::node
