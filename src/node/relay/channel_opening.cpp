#include "node/relay/channel_opening.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string_view>

#include "node/cgroup.h"
#include "node/cgroup_freezer.h"
#include "node/process_tree.h"
#include "node/relay/container_entry.h"
#include "node/relay/job_entry.h"
#include "node/syscalls.h"
#include "node/terminal.h"
#include "node/user_switch.h"
#include "os/packet_socket.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

constexpr int kStartTimeoutMs = 10'000;  // for the daemon to say what the channel is for

bool dont_block(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

std::string failed(std::string_view what) {
  return std::string(what) + ": " + strerror(errno);
}

// Each step returns why it failed, or nothing.
class Opening {
 public:
  Opening(const RelayOptions& options, OpenedChannel& opened)
      : o_(options), opened_(opened), request_(opened.request) {}

  std::string run() {
    std::string why = read_start();
    if (why.empty()) why = find_job();
    if (why.empty()) why = enter();
    if (why.empty()) why = become_user();
    return why;
  }

 private:
  std::string read_start() {
    pollfd channel{o_.channel, POLLIN, 0};
    if (poll(&channel, 1, kStartTimeoutMs) != 1) return "nothing was asked for";
    char buffer[model::kMaxFrame + 1];
    const os::Packet packet = os::receive_packet(o_.channel, buffer, sizeof buffer);
    if (packet.kind != os::Packet::Kind::kMessage) return "nothing was asked for";
    const auto start = decode_channel_start(packet.bytes);
    const std::string_view bytes = map_request(packet.fd);
    if (packet.fd >= 0) close(packet.fd);
    const auto request = decode_request(bytes);
    if (!start || !request) return "the request is damaged";
    if (!dont_block(o_.channel)) return failed("prepare the channel");
    opened_.start = *start;
    request_ = *request;
    if (request_.user.uid != o_.user.uid) return "the job is another user's";
    request_.user = o_.user;
    return error_of(request_, o_.boot_id);
  }

  std::string find_job() {
    const Record& record = o_.record;
    if (request_.container.is_given()) return find_container();
    const int pid = static_cast<int>(record.started->pid);
    opened_.job_fd = open_pidfd(pid);
    if (opened_.job_fd < 0 || !is_its_own(pid)) return "the job has just ended";
    entry_ = {
        &request_,    o_.cgroup_fd,        pid,        o_.limits,     attempt_name(o_.attempt),
        o_.oom_score, o_.filters_syscalls, o_.channel, opened_.job_fd};
    return {};
  }

  // The pid may have been given to another process since: the cgroup, or the start time, tells.
  bool is_its_own(int pid) const {
    const std::uint64_t ticks = o_.record.started->start_ticks;
    if (o_.cgroup_fd < 0) return ticks != 0 && start_ticks_of(pid) == ticks;
    const std::string file = "/proc/" + std::to_string(pid) + "/cgroup";
    const auto path = find_cgroup2_path(os::read_small_file(AT_FDCWD, file.c_str()));
    return path && path->size() > 1 && o_.record.beginning->cgroup.ends_with(*path);
  }

  // Its processes are found by the program that speaks to the engine.
  std::string find_container() {
    if (o_.container_client.empty() || o_.cgroup_fd < 0) {
      return "commands cannot be run in this job's container";
    }
    container_ = {&request_,
                  o_.container_client,
                  o_.container_rules,
                  o_.record.beginning->cgroup,
                  attempt_name(o_.attempt),
                  o_.channel};
    return {};
  }

  // In a frozen job nothing of ours would go on until its turn.
  std::string enter() {
    const bool takes_turns = request_.takes_turns && o_.cgroup_fd >= 0;
    if (takes_turns) hold_awake(o_.cgroup_fd);
    std::string why = opened_.start.port != 0 ? connect_to_port() : start_command();
    if (!takes_turns) return why;
    opened_.freezer = open_freezer(o_.cgroup_fd);
    let_go(o_.cgroup_fd);
    return why;
  }

  std::string connect_to_port() {
    const std::uint16_t port = opened_.start.port;
    const Connected connected = request_.container.is_given()
                                    ? connect_in_container(container_, port)
                                    : connect_as_job(entry_, port);
    if (connected.fd < 0) return connected.why;
    opened_.input = connected.fd;
    opened_.output = fcntl(connected.fd, F_DUPFD_CLOEXEC, 3);
    return opened_.output >= 0 && dont_block(connected.fd) ? std::string()
                                                           : failed("prepare the connection");
  }

  std::string start_command() {
    if (request_.container.is_given()) return start_in_container();
    Streams streams;
    const bool has_terminal = opened_.start.terminal.has_value();
    std::string why = has_terminal ? make_terminal(streams) : make_pipes(streams);
    if (!why.empty()) return why;
    const Entered entered = enter_with_command(entry_, streams);
    close(streams.input);
    if (!has_terminal) {
      close(streams.output);
      close(streams.error);
    }
    opened_.pid = entered.pid;
    opened_.refusal_value = entered.value;
    if (entered.pid > 0) tell_of_command();
    return entered.why;
  }

  // A terminal is the engine's to make, in the container; what is typed and shown comes by pipes.
  std::string start_in_container() {
    Streams streams;
    std::string why = make_pipes(streams);
    if (!why.empty()) return why;
    const EnteredContainer entered = enter_container(container_, streams, opened_.start.terminal);
    for (const int fd : {streams.input, streams.output, streams.error}) close(fd);
    opened_.pid = entered.pid;
    opened_.control = entered.control;
    opened_.refusal_value = entered.value;
    return entered.why;
  }

  // Best effort: a FIFO that is full loses nothing but a line in a list.
  void tell_of_command() const {
    if (o_.notice_fd < 0) return;
    Notice notice;
    notice.kind = Notice::Kind::kEntered;
    notice.attempt = o_.attempt;
    notice.started.pid = static_cast<std::uint32_t>(opened_.pid);
    const std::string frame = encode_notice(notice);
    [[maybe_unused]] const ssize_t wrote = write(o_.notice_fd, frame.data(), frame.size());
  }

  std::string make_terminal(Streams& streams) {
    Terminal terminal;
    const bool is_made =
        open_terminal(*opened_.start.terminal, request_.user.uid, geteuid() == 0, terminal);
    if (!is_made) return failed("make a terminal");
    streams = {terminal.theirs, terminal.theirs, terminal.theirs, true};
    opened_.terminal = opened_.input = opened_.output = terminal.ours;
    return {};
  }

  std::string make_pipes(Streams& streams) {
    int in[2];
    int out[2];
    int err[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
      return failed("make pipes");
    }
    streams = {in[0], out[1], err[1], false};
    opened_.input = in[1];
    opened_.output = out[0];
    opened_.error = err[0];
    const bool is_ready =
        dont_block(opened_.input) && dont_block(opened_.output) && dont_block(opened_.error);
    return is_ready ? std::string() : failed("prepare pipes");
  }

  // From here on nothing needs more than the user's own rights, and what is signalled may be named
  // by what the user's programs have done to their terminal.
  std::string become_user() {
    for (const int fd : {o_.cgroup_fd, o_.notice_fd}) {
      if (fd >= 0) close(fd);
    }
    if (geteuid() == 0) {
      const SwitchFailure failure = UserSwitch(request_.user).become();
      if (failure.what != nullptr) {
        if (opened_.pid > 0) kill(opened_.pid, SIGKILL);
        return std::string("become user ") + std::to_string(request_.user.uid) + ": " +
               failure.what;
      }
    }
    const bool is_bound = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // not to be traced by the user's processes
    return is_bound ? std::string() : failed("give up rights");
  }

  const RelayOptions& o_;
  OpenedChannel& opened_;
  LaunchRequest& request_;
  EntryOptions entry_;
  ContainerEntry container_;
};

}  // namespace

std::string open_channel(const RelayOptions& options, OpenedChannel& opened) {
  return Opening(options, opened).run();
}

}  // namespace gpu_platform::node
