#include "bin/notifier.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "api/convert/job.h"
#include "api/convert/json_writer.h"
#include "model/job_spec.h"
#include "os/child_process.h"

namespace gpu_platform::bin {

namespace {

using model::NotifyOn;

std::string_view name_of(NotifyOn when) {
  constexpr std::string_view kNames[model::kNotifyOns] = {"START", "END", "FAIL"};
  return kNames[static_cast<std::size_t>(when)];
}

bool wants(const model::Job& job, NotifyOn when) {
  return std::ranges::find(job.spec->notify, when) != job.spec->notify.end();
}

// Returns the notification that the job gets for this event, if it asked for one. A failure counts
// as "fail" if the job asked for both.
std::optional<NotifyOn> heard(const model::Job& job, const model::Event& event) {
  if (std::holds_alternative<model::AttemptStarted>(event)) {
    return wants(job, NotifyOn::kStart) ? std::optional(NotifyOn::kStart) : std::nullopt;
  }
  const auto* ended = std::get_if<model::JobEnded>(&event);
  if (ended == nullptr) return std::nullopt;
  const bool failed =
      ended->how == model::JobTrigger::kFail || ended->how == model::JobTrigger::kTimeOut;
  if (failed && wants(job, NotifyOn::kFail)) return NotifyOn::kFail;
  return wants(job, NotifyOn::kEnd) ? std::optional(NotifyOn::kEnd) : std::nullopt;
}

// A file in memory: it is complete before the program starts, so the daemon does not wait for a
// reader.
int file_with(const std::string& text) {
  const int fd = memfd_create("notification", MFD_CLOEXEC);
  std::string_view left = text;
  while (fd >= 0 && !left.empty()) {
    const ssize_t wrote = write(fd, left.data(), left.size());
    if (wrote <= 0) {
      close(fd);
      return -1;
    }
    left.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (fd >= 0) lseek(fd, 0, SEEK_SET);
  return fd;
}

// Starts the command with nothing of ours but stdin and these variables. The error is an errno.
std::expected<pid_t, int> start_command(const std::vector<std::string>& command, int input,
                                        std::vector<std::string> variables) {
  variables.emplace_back("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  return os::start_child_process(
      {.words = command, .environment = std::move(variables), .input = input, .errors = os::kNull});
}

}  // namespace

Notifier::Notifier(const std::string& command, logging::Log& log)
    : log_(log), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  std::istringstream words(command);
  for (std::string word; words >> word;) command_.push_back(std::move(word));
  thread_ = std::thread([this] { work(); });
}

Notifier::~Notifier() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t wrote = write(stop_, &one, sizeof one);
  thread_.join();
  close(stop_);
}

void Notifier::published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                         std::span<const model::EventRecord> events,
                         const controller::DepartedJobs& departed) {
  for (const model::EventRecord& record : events) {
    const model::JobId id = model::job_of(record.event);
    if (!id.valid()) continue;
    const model::Job* job = snapshot->jobs.find(id.value);
    if (job == nullptr) job = departed.find(id);
    if (job == nullptr) continue;
    if (const auto when = heard(*job, record.event)) enqueue({snapshot, *job, *when});
  }
}

void Notifier::enqueue(Notice notice) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= kMaxWaiting) {
    log_.warn(logging::of_user(notice.job.spec->uid),
              "notify job={} dropped: {} notifications wait already", notice.job.id.value,
              kMaxWaiting);
    return;
  }
  waiting_.push_back(std::move(notice));
  wake_.notify_one();
}

void Notifier::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) break;
    const Notice notice = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    tell(notice);
    lock.lock();
  }
  if (!waiting_.empty()) spdlog::warn("notify dropped={} at the daemon's end", waiting_.size());
}

void Notifier::tell(const Notice& notice) {
  v1::Job job;
  api::to_proto(notice.job, notice.snapshot->nodes, job);
  const std::string event(name_of(notice.when));
  std::string document = fmt::format(R"({{"event":"{}","job":)", event);
  api::append_json(document, job);
  document += "}\n";
  const std::string failure =
      run(document,
          {"GPU_PLATFORM_EVENT=" + event, "GPU_PLATFORM_NOTIFY_TO=" + notice.job.spec->notify_to});
  if (failure.empty()) return;
  log_.warn(logging::of_user(notice.job.spec->uid), "notify job={} event={} command={} failed: {}",
            notice.job.id.value, event, command_.front(), failure);
}

std::string Notifier::run(const std::string& document, std::vector<std::string> variables) {
  const int input = file_with(document);
  if (input < 0) return strerror(errno);
  const auto pid = start_command(command_, input, std::move(variables));
  close(input);
  return pid ? wait_for(*pid) : strerror(pid.error());
}

std::string Notifier::wait_for(int pid) {
  // The call is made by its number, because Debian 12's <sys/pidfd.h> declares the function without
  // C linkage.
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  pollfd fds[] = {{handle, POLLIN, 0}, {stop_, POLLIN, 0}};
  const int ready = poll(fds, 2, static_cast<int>(kLongestMs));
  if (handle >= 0) close(handle);
  // At the daemon's end it is left to itself.
  if (ready > 0 && (fds[0].revents & POLLIN) == 0) return {};
  if (ready <= 0) kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (ready <= 0) return fmt::format("not done after {} s, killed", kLongestMs / 1000);
  if (WIFSIGNALED(status)) return fmt::format("ended by signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? std::string()
                                  : fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace gpu_platform::bin
