#include "node/supervisor/job_start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "node/syscalls.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

constexpr const char* kDefaultSearchPath = "/usr/local/bin:/usr/bin:/bin";

std::vector<char*> pointers(const std::vector<std::string_view>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const std::string_view text : texts) list.push_back(const_cast<char*>(text.data()));
  list.push_back(nullptr);
  return list;
}

const char* search_path_of(const std::vector<std::string_view>& environment) {
  for (const std::string_view entry : environment) {
    if (entry.starts_with("PATH=")) return entry.data() + 5;
  }
  return kDefaultSearchPath;
}

bool is_missing(int error) {
  return error == ENOENT || error == ENOTDIR;
}

// Steps that depend on what the job itself has named.
bool is_its_own(StartStep step) {
  return step == StartStep::kWorkdir || step == StartStep::kOutput || step == StartStep::kError ||
         step == StartStep::kExecute;
}

// Nothing of the job's own environment reaches it.
void set_container_client(JobChild& child, const ContainerStart& container) {
  child.container_request_fd = container.request_fd;
  child.container_report_fd = container.report_fd;
  child.folders = nullptr;
  child.arguments.clear();
  for (const std::string& word : container.command) {
    child.arguments.push_back(const_cast<char*>(word.c_str()));
  }
  child.arguments.push_back(nullptr);
  child.environment = {nullptr};
}

std::unique_ptr<JobChild> prepare(const JobStartOptions& options, StartReport& report) {
  const LaunchRequest& request = *options.request;
  auto child = std::make_unique<JobChild>(request, report);
  child->switches_user = geteuid() == 0;
  child->oom_score = options.oom_score;
  child->output_fd = options.output_fd;
  child->input_fd = options.input_fd;
  child->binding = &options.confinement->binding();
  child->entrances = &options.confinement->limits().entrances();
  child->folders = options.confinement->folders();
  child->filters_syscalls = options.confinement->filters_syscalls();
  child->mounts_fd = options.is_later ? options.confinement->mounts() : -1;
  child->truncates = request.truncate_output && !options.is_later;
  child->arguments = pointers(options.command.empty() ? request.command : options.command);
  child->environment = pointers(request.environment);
  for (const std::string& entry : options.more_environment) {
    child->environment.insert(child->environment.end() - 1, const_cast<char*>(entry.c_str()));
  }
  child->search_path = search_path_of(request.environment);
  if (!options.container.command.empty()) set_container_client(*child, options.container);
  return child;
}

}  // namespace

JobStart::JobStart(const JobStartOptions& options) : options_(options) {
  if (report_.is_there()) child_ = prepare(options_, *report_);
}

JobStart::~JobStart() {
  finish();
  if (mounts_ >= 0) close(mounts_);
}

bool JobStart::begin() {
  int ends[2];
  // Closed by the program's execution as by the child's end: that is how we hear of either.
  if (child_ == nullptr || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    failure_ = std::string("make a page and a socket: ") + strerror(errno);
    return false;
  }
  child_->parent_socket = ends[1];
  pid_ = fork_into_cgroup(options_.cgroup_fd);
  if (pid_ == 0) run_job_child(*child_);
  const int error = errno;
  close(ends[1]);
  socket_ = ends[0];
  if (pid_ > 0) return true;
  failure_ = std::string("start a process: ") + strerror(error);
  finish();
  return false;
}

bool JobStart::is_over() {
  if (socket_ < 0) return true;
  char buffer[16];
  while (true) {
    const os::Packet packet = os::receive_packet(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (packet.fd >= 0) {
      if (mounts_ >= 0) close(mounts_);
      mounts_ = packet.fd;
    }
    if (packet.kind == os::Packet::Kind::kNothing) return false;
    if (packet.kind == os::Packet::Kind::kClosed) break;
  }
  was_executed_ = !has_failed() && step() == StartStep::kExecute;
  finish();
  return true;
}

StartStep JobStart::step() const {
  const std::uint8_t step = report_.is_there() ? report_->step.load() : 0;
  return static_cast<StartStep>(std::min(step, static_cast<std::uint8_t>(StartStep::kExecute)));
}

bool JobStart::was_killed() const {
  return failure_.empty() && !was_executed_ && !has_failed();
}

void JobStart::finish() {
  if (socket_ >= 0) close(std::exchange(socket_, -1));
}

void JobStart::give_up() {
  if (pid_ > 0) kill(pid_, SIGKILL);  // not reaped yet, so the number is its own
}

int JobStart::take_mounts() {
  return std::exchange(mounts_, -1);
}

std::string JobStart::doing() const {
  const LaunchRequest& request = *options_.request;
  switch (step()) {
    case StartStep::kSession:
      return "make a session";
    case StartStep::kLimits:
      return "enter the groups that limit it";
    case StartStep::kFolders:
      return "make /tmp, /dev/shm and /proc private";
    case StartStep::kInput:
      return "take its input";
    case StartStep::kUser:
      return "become user " + std::to_string(child_->user.uid());
    case StartStep::kWorkdir:
      return std::string("change to directory ") + request.workdir.data();
    case StartStep::kOutput:
      return std::string("open output file ") + request.output.data();
    case StartStep::kError:
      return std::string("open error file ") + request.error.data();
    case StartStep::kSyscalls:
      return "filter its system calls";
    case StartStep::kExecute:
      return std::string("execute ") + child_->arguments.front();
  }
  return {};
}

std::string JobStart::detail() const {
  if (!failure_.empty()) return failure_;
  std::string text = doing();
  if (!has_failed()) return text + ": killed meanwhile";
  const std::string why = report_->why();
  const int error = report_->error.load();
  if (!why.empty()) text += ": " + why;
  const bool says_all = !why.empty() && is_its_own(step());
  if (error != 0 && !says_all) text += std::string(": ") + strerror(error);
  // If the program exists outside of the job, the error must say why the job cannot see it.
  const bool is_hidden = child_->folders != nullptr && is_missing(error) &&
                         step() == StartStep::kExecute &&
                         std::string_view(child_->arguments.front()).starts_with("/tmp/");
  return is_hidden ? text + " (a job's /tmp is its own: execution.private_tmp)" : text;
}

// Directory, output file and program are the job's own; the rest, and a host that has run out of
// something, is not its fault.
int JobStart::exit_code() const {
  if (!failure_.empty() || !has_failed() || !is_its_own(step())) return 0;
  if (!report_->why().empty()) return 126;
  const int error = report_->error.load();
  switch (error) {
    case ENOMEM:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EIO:
      return 0;
    default:
      return step() == StartStep::kExecute && is_missing(error) ? 127 : 126;
  }
}

}  // namespace gpu_platform::node
