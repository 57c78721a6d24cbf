#include "node/relay/container_entry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "model/channel.h"
#include "node/syscalls.h"
#include "os/clock.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

constexpr int kRequestFd = 3;
constexpr int kControlFd = 4;
constexpr int kLeastFd = 10;  // above the numbers that the program gets them as

struct Started {
  int pid = -1;
  int control = -1;
  std::string why;
};

int make_request_file(const LaunchRequest& request) {
  const int made = memfd_create("container-request", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const int fd = made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, kLeastFd);
  if (made >= 0) close(made);
  if (fd < 0) return -1;
  const std::string bytes = encode_request(request);
  const bool is_written =
      write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
      fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0;
  if (is_written) return fd;
  close(fd);
  return -1;
}

std::string joined_groups(const LaunchRequest& request) {
  std::string text;
  for (const std::uint32_t group : request.user.groups) {
    text += (text.empty() ? "" : ",") + std::to_string(group);
  }
  return text;
}

std::vector<std::string> words_for(const ContainerEntry& entry, const char* what) {
  return {entry.program, what,
          "--rules",     entry.rules,
          "--cgroup",    entry.cgroup,
          "--attempt",   entry.attempt,
          "--uid",       std::to_string(entry.request->user.uid),
          "--gid",       std::to_string(entry.request->user.gid),
          "--groups",    joined_groups(*entry.request)};
}

// In the child. Nothing but these descriptors is left open, and no environment.
[[noreturn]] void execute_program(const std::vector<std::string>& words, const Streams& streams,
                                  int request_fd, int control_fd) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  char* const no_environment[] = {nullptr};
  const int high = fcntl(control_fd, F_DUPFD_CLOEXEC, kLeastFd);
  const bool is_ready = setsid() >= 0 && high >= 0 && dup2(streams.input, 0) >= 0 &&
                        dup2(streams.output, 1) >= 0 && dup2(streams.error, 2) >= 0 &&
                        dup2(request_fd, kRequestFd) >= 0 && dup2(high, kControlFd) >= 0 &&
                        chdir("/") == 0;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (is_ready) execve(arguments.front(), arguments.data(), no_environment);
  _exit(127);
}

Started start_program(const ContainerEntry& entry, const std::vector<std::string>& words,
                      const Streams& streams) {
  Started started;
  const int request_fd = make_request_file(*entry.request);
  int ends[2] = {-1, -1};
  if (request_fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    started.why = std::string("prepare a command in the container: ") + strerror(errno);
  } else {
    started.pid = fork_into_cgroup(-1);
    if (started.pid == 0) execute_program(words, streams, request_fd, ends[1]);
    if (started.pid < 0) started.why = std::string("start a process: ") + strerror(errno);
  }
  if (started.pid > 0) {
    started.control = ends[0];
  } else if (ends[0] >= 0) {
    close(ends[0]);
  }
  for (const int fd : {request_fd, ends[1]}) {
    if (fd >= 0) close(fd);
  }
  return started;
}

struct Answer {
  bool is_opened = false;
  int fd = -1;
  std::uint8_t value = 0;
  std::string why;
};

// Returns whether the program has spoken; if not, why it is not waited for any longer.
std::string wait_for_answer(const ContainerEntry& entry, int control) {
  const std::int64_t until =
      os::boot_ms() + static_cast<std::int64_t>(entry.request->start_timeout_ms);
  while (true) {
    pollfd fds[] = {{control, POLLIN, 0}, {entry.channel, POLLRDHUP, 0}};
    const auto left = std::clamp<std::int64_t>(until - os::boot_ms(), 0, INT_MAX);
    const int ready = poll(fds, std::size(fds), static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (fds[0].revents != 0) return {};
    if (fds[1].revents != 0) return "the client has gone";
    if (ready <= 0) {
      return "the container engine does not answer after " +
             std::to_string(entry.request->start_timeout_ms / 1000) + " s";
    }
  }
}

Answer answer_of(const ContainerEntry& entry, int control) {
  Answer answer;
  answer.why = wait_for_answer(entry, control);
  if (!answer.why.empty()) return answer;
  char buffer[model::kMaxFrame + 1];
  const os::Packet packet = os::receive_packet(control, buffer, sizeof buffer);
  answer.fd = packet.fd;
  const auto frame = packet.kind == os::Packet::Kind::kMessage ? model::decode_frame(packet.bytes)
                                                               : std::optional<model::Frame>();
  answer.why = "the command could not be started in the container";
  if (!frame) return answer;
  if (const auto* end = std::get_if<model::EndFrame>(&*frame)) {
    answer.why = end->text;
    answer.value = end->value;
  }
  answer.is_opened = std::holds_alternative<model::OpenedFrame>(*frame);
  if (answer.is_opened) answer.why.clear();
  return answer;
}

}  // namespace

// A program that is not waited for ends by itself: it sees the socket close.
EnteredContainer enter_container(const ContainerEntry& entry, const Streams& streams,
                                 const std::optional<model::TerminalSize>& terminal) {
  EnteredContainer entered;
  std::vector<std::string> words = words_for(entry, "exec");
  if (terminal) {
    words.insert(words.end(), {"--columns", std::to_string(terminal->columns), "--rows",
                               std::to_string(terminal->rows)});
  }
  const Started started = start_program(entry, words, streams);
  entered.why = started.why;
  if (started.pid < 0) return entered;
  const Answer answer = answer_of(entry, started.control);
  if (answer.fd >= 0) close(answer.fd);
  if (answer.is_opened) {
    entered.pid = started.pid;
    entered.control = started.control;
  } else {
    entered.why = answer.why;
    entered.value = answer.value;
    close(started.control);
  }
  return entered;
}

Connected connect_in_container(const ContainerEntry& entry, std::uint16_t port) {
  Connected connected;
  std::vector<std::string> words = words_for(entry, "connect");
  words.insert(words.end(), {"--port", std::to_string(port)});
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  const Started started = start_program(entry, words, {null, null, null, false});
  if (null >= 0) close(null);
  connected.why = started.why;
  if (started.pid < 0) return connected;
  const Answer answer = answer_of(entry, started.control);
  close(started.control);
  connected.fd = answer.fd;
  connected.why = answer.why;
  if (connected.fd < 0 && connected.why.empty()) connected.why = "the container cannot be reached";
  return connected;
}

}  // namespace gpu_platform::node
