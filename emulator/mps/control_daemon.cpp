#include "mps/control_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "board_state.h"
#include "mps/mps_log.h"
#include "mps/mps_socket.h"
#include "mps/mps_words.h"
#include "os/child_process.h"
#include "os/clock.h"
#include "os/packet_socket.h"
#include "os/small_file.h"

namespace gpu_emulator {
namespace {

using gpu_platform::os::Descriptor;
using gpu_platform::os::Packet;
using gpu_platform::os::receive_packet;
using gpu_platform::os::send_packet;

using Words = std::vector<std::string>;

// What an answer waits for.
enum class AnswerAfter { kNothing, kClientIsGone, kQuit };

struct Connection {
  enum class Kind { kUnknown, kFrontEnd, kClient };

  Descriptor socket;  // closed: to be forgotten
  ucred peer{};
  Kind kind = Kind::kUnknown;
  AnswerAfter answer_after = AnswerAfter::kNothing;
  pid_t awaited_client = 0;
};

struct Server {
  pid_t pid = -1;
  Descriptor link;
  MpsLimits limits;
  bool is_ready = false;
  bool is_ending = false;  // takes no more clients
  std::string device;      // as `ps` shows it
  std::vector<pid_t> clients;
};

// The descriptors that a listening daemon has.
struct Listening {
  Descriptor lock;
  Descriptor control;
  Descriptor privileged;  // which is there for its looks
};

class ControlDaemon {
 public:
  ControlDaemon(const ControlOptions& options, Listening listening, int log_fd, int server_log_fd)
      : options_(options),
        listening_(std::move(listening)),
        log_(log_fd),
        server_log_fd_(server_log_fd) {
    const char* percentage = std::getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    if (percentage == nullptr) return;
    if (const auto parsed = parse_percentage(percentage)) {
      default_limits_.percentage = *parsed;
    } else {
      log_.line("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE should be between (0.0, 100.0]");
    }
  }

  int run() {
    while (!has_ended_) turn();
    log_.line(fmt::format("Exit with status {}", last_status_));
    ::unlink((options_.pipe_folder + "/log").c_str());
    return last_status_;
  }

 private:
  using Command = std::string (ControlDaemon::*)(Connection&, const Words&);
  struct Row {
    const char* name;
    Command command;
  };
  static const Row kCommands[];

  void turn();
  int wait_ms() const;
  void accept_connection();
  void hear(Connection& connection);
  void hear_front_end(Connection& connection, std::string_view line);
  void hear_server();
  void reap_server();
  bool start_server();
  void send_limits();
  void refuse_clients(int code);
  void serve_clients();
  void force_at_deadline();
  void answer_waiting();
  // The server of that number; without it the answer says so.
  Server* find_server(const Words& words, std::string* answer);

  std::string list_servers(Connection&, const Words&);
  std::string start_server(Connection& ui, const Words& words);
  std::string shut_server_down(Connection&, const Words& words);
  std::string list_clients(Connection&, const Words& words);
  std::string list_processes(Connection&, const Words&);
  std::string default_percentage(Connection&, const Words&);
  std::string set_default_percentage(Connection& ui, const Words& words);
  std::string percentage(Connection&, const Words& words);
  std::string set_percentage(Connection& ui, const Words& words);
  std::string default_pinned_limit(Connection&, const Words& words);
  std::string set_default_pinned_limit(Connection&, const Words& words);
  std::string pinned_limit(Connection&, const Words& words);
  std::string set_pinned_limit(Connection&, const Words& words);
  std::string priority(Connection&, const Words&);
  std::string set_priority(Connection&, const Words& words);
  std::string terminate_client(Connection& ui, const Words& words);
  std::string quit(Connection& ui, const Words& words);

  const ControlOptions& options_;
  Listening listening_;
  MpsLog log_;
  int server_log_fd_;
  MpsLimits default_limits_;
  long long default_priority_ = 0;
  std::optional<Server> server_;
  int last_status_ = 0;  // of a server
  std::vector<Connection> connections_;
  bool is_quitting_ = false;
  std::optional<std::int64_t> force_at_ms_;  // monotonic
  bool has_ended_ = false;
};

const ControlDaemon::Row ControlDaemon::kCommands[] = {
    {"get_server_list", &ControlDaemon::list_servers},
    {"start_server", &ControlDaemon::start_server},
    {"shutdown_server", &ControlDaemon::shut_server_down},
    {"get_client_list", &ControlDaemon::list_clients},
    {"ps", &ControlDaemon::list_processes},
    {"get_default_active_thread_percentage", &ControlDaemon::default_percentage},
    {"set_default_active_thread_percentage", &ControlDaemon::set_default_percentage},
    {"get_active_thread_percentage", &ControlDaemon::percentage},
    {"set_active_thread_percentage", &ControlDaemon::set_percentage},
    {"get_default_device_pinned_mem_limit", &ControlDaemon::default_pinned_limit},
    {"set_default_device_pinned_mem_limit", &ControlDaemon::set_default_pinned_limit},
    {"get_device_pinned_mem_limit", &ControlDaemon::pinned_limit},
    {"set_device_pinned_mem_limit", &ControlDaemon::set_pinned_limit},
    {"get_default_client_priority", &ControlDaemon::priority},
    {"set_default_client_priority", &ControlDaemon::set_priority},
    {"terminate_client", &ControlDaemon::terminate_client},
    {"quit", &ControlDaemon::quit},
};

// The word at a place; empty without one.
std::string word_at(const Words& words, std::size_t at) {
  return at < words.size() ? words[at] : std::string();
}

bool has_word(const Words& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// The number of a device; nothing if no device can have it.
std::optional<std::uint32_t> device_at(const Words& words, std::size_t at) {
  const long long device = number_at(word_at(words, at));
  if (device < 0 || device >= kMaxGpus) return std::nullopt;
  return static_cast<std::uint32_t>(device);
}

// A limit of 0 is none.
void set_limit(PinnedLimits& limits, std::uint32_t device, std::uint64_t mib) {
  if (mib == 0) {
    limits.erase(device);
  } else {
    limits[device] = mib;
  }
}

void ControlDaemon::turn() {
  std::vector<pollfd> polled{{listening_.control.get(), POLLIN, 0},
                             {server_ ? server_->link.get() : -1, POLLIN, 0}};
  for (const Connection& each : connections_) polled.push_back({each.socket.get(), POLLIN, 0});
  if (::poll(polled.data(), polled.size(), wait_ms()) < 0) return;
  // The server first: a front end may ask about a client that knows itself to be one.
  hear_server();
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    if (polled[i + 2].revents != 0) hear(connections_[i]);
  }
  if (polled[0].revents != 0) accept_connection();
  force_at_deadline();
  serve_clients();
  answer_waiting();
  std::erase_if(connections_, [](const Connection& each) { return !each.socket.is_open(); });
}

int ControlDaemon::wait_ms() const {
  if (!force_at_ms_) return -1;
  const std::int64_t left = *force_at_ms_ - gpu_platform::os::monotonic_ms();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

void ControlDaemon::accept_connection() {
  Connection accepted;
  accepted.socket.reset(::accept4(listening_.control.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted.socket.is_open()) return;
  log_.line("Accepting connection...");
  socklen_t size = sizeof accepted.peer;
  const int asked =
      ::getsockopt(accepted.socket.get(), SOL_SOCKET, SO_PEERCRED, &accepted.peer, &size);
  if (asked == 0) connections_.push_back(std::move(accepted));
}

void ControlDaemon::hear(Connection& connection) {
  char buffer[kMaxMpsPacket];
  const Packet packet =
      receive_packet(connection.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  const Descriptor unexpected(packet.fd);
  if (packet.kind == Packet::Kind::kClosed) {
    if (connection.kind == Connection::Kind::kFrontEnd) log_.line("UI closed");
    connection.socket.reset();
  }
  if (packet.kind != Packet::Kind::kMessage) return;
  const bool is_first = connection.kind == Connection::Kind::kUnknown;
  if (connection.kind == Connection::Kind::kFrontEnd && packet.bytes.starts_with(':')) {
    hear_front_end(connection, packet.bytes.substr(1));
  } else if (is_first && packet.bytes == "ui") {
    log_.line("NEW UI");
    connection.kind = Connection::Kind::kFrontEnd;
  } else if (is_first && packet.bytes == "client") {
    log_.line(fmt::format("NEW CLIENT {} from user {}", connection.peer.pid, connection.peer.uid));
    connection.kind = Connection::Kind::kClient;
  }
}

void ControlDaemon::hear_front_end(Connection& connection, std::string_view line) {
  log_.line(fmt::format("Cmd:{}", line));
  Words words = words_of(line);
  if (words.empty()) words.emplace_back();
  const auto* const row = std::ranges::find(kCommands, words[0], &Row::name);
  const std::string answer = row == std::end(kCommands)
                                 ? fmt::format("Unknown command \"{}\"\n", words[0])
                                 : (this->*row->command)(connection, words);
  if (connection.answer_after != AnswerAfter::kNothing) return;
  (void)send_packet(connection.socket.get(), "=" + answer);
}

void ControlDaemon::hear_server() {
  char buffer[kMaxMpsPacket];
  while (server_) {
    const Packet packet = receive_packet(server_->link.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (packet.kind == Packet::Kind::kNothing) return;
    if (packet.kind == Packet::Kind::kClosed) return reap_server();
    const Words words = words_of(packet.bytes);
    if (word_at(words, 0) == "ready") {
      log_.line(fmt::format("NEW SERVER {}: Ready", server_->pid));
      server_->is_ready = true;
      server_->device = word_at(words, 1);
    } else if (word_at(words, 0) == "clients") {
      server_->clients.clear();
      for (std::size_t i = 1; i < words.size(); ++i) {
        server_->clients.push_back(static_cast<pid_t>(number_at(words[i])));
      }
    }
  }
}

// Its link closes as it ends, so that the wait is short.
void ControlDaemon::reap_server() {
  int status = 0;
  while (::waitpid(server_->pid, &status, 0) < 0 && errno == EINTR) {
  }
  last_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  log_.line(fmt::format("Server {} exited with status {}", server_->pid, last_status_));
  const bool was_ready = server_->is_ready;
  server_.reset();
  if (!was_ready) refuse_clients(kMpsConnectionFailed);
}

bool ControlDaemon::start_server() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return false;
  Descriptor link(pair[0]);
  const Descriptor theirs(pair[1]);
  gpu_platform::os::ChildProgram child;
  child.words = {"nvidia-cuda-mps-server"};
  child.file = options_.server_program;
  child.errors = server_log_fd_;
  child.link = theirs.get();
  const auto pid = gpu_platform::os::start_child_process(child);
  if (!pid) return false;
  log_.line(fmt::format("Starting new server {} for user {}", *pid, ::geteuid()));
  server_.emplace();
  server_->pid = *pid;
  server_->link = std::move(link);
  server_->limits = default_limits_;
  send_limits();
  return true;
}

void ControlDaemon::send_limits() {
  (void)send_packet(server_->link.get(),
                    fmt::format("limits {} {}", written_percentage(server_->limits.percentage),
                                written_pinned_limits(server_->limits.pinned_mib)));
}

void ControlDaemon::refuse_clients(int code) {
  for (Connection& each : connections_) {
    if (each.kind != Connection::Kind::kClient || !each.socket.is_open()) continue;
    (void)send_packet(each.socket.get(), fmt::format("refused {}", code));
    each.socket.reset();
  }
}

// Gives the clients that wait to the server, which the first of them starts.
void ControlDaemon::serve_clients() {
  if (is_quitting_) refuse_clients(kMpsNotReady);
  for (Connection& each : connections_) {
    if (each.kind != Connection::Kind::kClient || !each.socket.is_open()) continue;
    if (each.peer.uid != ::geteuid()) {
      (void)send_packet(each.socket.get(), fmt::format("refused {}", kMpsConnectionFailed));
      each.socket.reset();
      continue;
    }
    if (!server_ && !start_server()) return refuse_clients(kMpsConnectionFailed);
    if (!server_->is_ready || server_->is_ending) return;
    (void)send_packet(server_->link.get(), "client", each.socket.get());
    each.socket.reset();
  }
}

void ControlDaemon::force_at_deadline() {
  if (!force_at_ms_ || gpu_platform::os::monotonic_ms() < *force_at_ms_) return;
  force_at_ms_.reset();
  if (server_) (void)send_packet(server_->link.get(), "force");
}

// Answers the front ends that have what they waited for.
void ControlDaemon::answer_waiting() {
  has_ended_ = is_quitting_ && !server_;
  for (Connection& each : connections_) {
    const bool is_client_gone =
        each.answer_after == AnswerAfter::kClientIsGone &&
        (!server_ ||
         std::ranges::find(server_->clients, each.awaited_client) == server_->clients.end());
    const bool has_quit = each.answer_after == AnswerAfter::kQuit && has_ended_;
    if (!each.socket.is_open() || (!is_client_gone && !has_quit)) continue;
    each.answer_after = AnswerAfter::kNothing;
    (void)send_packet(each.socket.get(), is_client_gone ? "=0\n" : "=");
  }
}

Server* ControlDaemon::find_server(const Words& words, std::string* answer) {
  const long long pid = number_at(word_at(words, 1));
  if (server_ && server_->pid == pid) return &*server_;
  *answer = fmt::format("Server {} not found\n", pid);
  return nullptr;
}

std::string ControlDaemon::list_servers(Connection&, const Words&) {
  return server_ && server_->is_ready ? fmt::format("{}\n", server_->pid) : "";
}

std::string ControlDaemon::start_server(Connection& ui, const Words& words) {
  if (word_at(words, 1) != "-uid" || words.size() < 3) {
    return "A user id (UID) is required to start a new server\n";
  }
  const bool is_own = number_at(words[2]) == static_cast<long long>(::geteuid());
  if (!is_own || ui.peer.uid != ::geteuid()) {
    return fmt::format("Insufficient privileges for UID {}\n", ui.peer.uid);
  }
  if (!server_) (void)start_server();
  return "";
}

std::string ControlDaemon::shut_server_down(Connection&, const Words& words) {
  std::string answer;
  Server* const server = find_server(words, &answer);
  if (server == nullptr) return answer;
  server->is_ending = true;
  (void)send_packet(server->link.get(), has_word(words, "-f") ? "force" : "shutdown");
  return "";
}

std::string ControlDaemon::list_clients(Connection&, const Words& words) {
  std::string answer;
  const Server* const server = find_server(words, &answer);
  if (server == nullptr) return answer;
  for (const pid_t client : server->clients) answer += fmt::format("{}\n", client);
  return answer;
}

std::string ControlDaemon::list_processes(Connection&, const Words&) {
  if (!server_) return "Server not found\n";
  const auto row = [](const auto&... values) {
    std::string text = fmt::format("{:<10}{:<10}{:<15}{:<26}{:<15}{:<15}", values...);
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string answer = row("PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND");
  for (std::size_t i = 0; i < server_->clients.size(); ++i) {
    const pid_t pid = server_->clients[i];
    struct stat space{};
    (void)::stat(fmt::format("/proc/{}/ns/pid", pid).c_str(), &space);
    std::string command =
        gpu_platform::os::read_small_file(AT_FDCWD, fmt::format("/proc/{}/cmdline", pid).c_str());
    command.resize(std::min(command.find('\0'), command.size()));
    answer += row(pid, i, server_->pid, server_->device, space.st_ino, command);
  }
  return answer;
}

std::string ControlDaemon::default_percentage(Connection&, const Words&) {
  return written_percentage(default_limits_.percentage) + "\n";
}

// A wrong one changes nothing, and only the log says so. The answer is what holds.
std::string ControlDaemon::set_default_percentage(Connection& ui, const Words& words) {
  if (const auto wanted = parse_percentage(word_at(words, 1))) {
    default_limits_.percentage = *wanted;
  } else {
    log_.line("Invalid percentage, expected between (0.0, 100.0]");
  }
  return default_percentage(ui, words);
}

std::string ControlDaemon::percentage(Connection&, const Words& words) {
  std::string answer;
  const Server* const server = find_server(words, &answer);
  return server == nullptr ? answer : written_percentage(server->limits.percentage) + "\n";
}

std::string ControlDaemon::set_percentage(Connection& ui, const Words& words) {
  std::string answer;
  Server* const server = find_server(words, &answer);
  if (server == nullptr) return answer;
  if (const auto wanted = parse_percentage(word_at(words, 2))) {
    server->limits.percentage = *wanted;
    send_limits();
  } else {
    log_.line("Invalid percentage, expected between (0.0, 100.0]");
  }
  return percentage(ui, words);
}

std::string ControlDaemon::default_pinned_limit(Connection&, const Words& words) {
  const auto device = device_at(words, 1);
  if (!device || !default_limits_.pinned_mib.contains(*device)) return "";
  return written_pinned_limit(default_limits_.pinned_mib.at(*device)) + "\n";
}

// A wrong limit takes the one before it away, without a word.
std::string ControlDaemon::set_default_pinned_limit(Connection&, const Words& words) {
  if (const auto device = device_at(words, 1)) {
    set_limit(default_limits_.pinned_mib, *device, parse_pinned_limit(word_at(words, 2)));
  } else {
    log_.line("Invalid device ordinal!");
  }
  return "";
}

std::string ControlDaemon::pinned_limit(Connection&, const Words& words) {
  std::string answer;
  const Server* const server = find_server(words, &answer);
  if (server == nullptr) return answer;
  const auto device = device_at(words, 2);
  if (!device || !server->limits.pinned_mib.contains(*device)) return "";
  return written_pinned_limit(server->limits.pinned_mib.at(*device)) + "\n";
}

std::string ControlDaemon::set_pinned_limit(Connection&, const Words& words) {
  std::string answer;
  Server* const server = find_server(words, &answer);
  if (server == nullptr) return answer;
  if (const auto device = device_at(words, 2)) {
    set_limit(server->limits.pinned_mib, *device, parse_pinned_limit(word_at(words, 3)));
    send_limits();
  }
  return "";
}

std::string ControlDaemon::priority(Connection&, const Words&) {
  return fmt::format("{}\n", default_priority_);
}

std::string ControlDaemon::set_priority(Connection&, const Words& words) {
  const std::string wanted = word_at(words, 1);
  if (wanted != "0" && wanted != "1") return "Invalid priority value - must be 0 or 1!\n";
  default_priority_ = number_at(wanted);
  return "";
}

// The answer comes when the server has let go of the client.
std::string ControlDaemon::terminate_client(Connection& ui, const Words& words) {
  std::string answer;
  Server* const server = find_server(words, &answer);
  if (server == nullptr) {
    return fmt::format("{}Server {} not found!\n1\n", answer, number_at(word_at(words, 1)));
  }
  const auto pid = static_cast<pid_t>(number_at(word_at(words, 2)));
  if (std::ranges::find(server->clients, pid) == server->clients.end()) {
    return fmt::format("Invalid process {}!\n1\n", pid);
  }
  (void)send_packet(server->link.get(), fmt::format("terminate {}", pid));
  ui.answer_after = AnswerAfter::kClientIsGone;
  ui.awaited_client = pid;
  return "";
}

// The answer comes when no server is left, which waits for its clients.
std::string ControlDaemon::quit(Connection& ui, const Words& words) {
  if (ui.peer.uid != 0 && ui.peer.uid != ::geteuid()) {
    return "Not enough privilege to execute quit command\n";
  }
  if (word_at(words, 1) == "-t") {
    const long long seconds = std::clamp(number_at(word_at(words, 2)), 0LL, 1'000'000LL);
    log_.line(fmt::format("quit command issued with timeout of {}", seconds));
    force_at_ms_ = gpu_platform::os::monotonic_ms() + seconds * 1000;
  }
  is_quitting_ = true;
  ui.answer_after = AnswerAfter::kQuit;
  if (server_) {
    server_->is_ending = true;
    (void)send_packet(server_->link.get(), "shutdown");
  }
  return "";
}

// Binds a socket in place of an old one, which a daemon that was killed has left.
Descriptor listen_at(const std::string& path, mode_t mode) {
  const auto address = socket_address(path);
  if (!address) return {};
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ::unlink(path.c_str());
  const auto* const where = reinterpret_cast<const sockaddr*>(&*address);
  const bool is_there = socket.is_open() && ::bind(socket.get(), where, sizeof *address) == 0 &&
                        ::chmod(path.c_str(), mode) == 0 && ::listen(socket.get(), SOMAXCONN) == 0;
  return is_there ? std::move(socket) : Descriptor();
}

// The folder, which is made where only it is missing, with its lock. Closed, after an error
// message, if another daemon has it.
Descriptor lock_folder(const std::string& pipe_folder) {
  const std::string path = pipe_folder + "/control_lock";
  constexpr mode_t kFolderMode = 0755;
  constexpr mode_t kLockMode = 0666;
  (void)::mkdir(pipe_folder.c_str(), kFolderMode);
  Descriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kLockMode));
  if (!lock.is_open()) {
    fmt::print(stderr, "Cannot access CUDA_MPS_PIPE_DIRECTORY={}\n", pipe_folder);
    return {};
  }
  // It is another user's if a daemon of that user was here before.
  (void)::fchmod(lock.get(), kLockMode);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  std::fputs("An instance of this daemon is already running\n", stderr);
  return {};
}

// Opens a file of the log folder for appending; /dev/null if that fails.
Descriptor open_log(const std::string& path) {
  constexpr mode_t kLogMode = 0644;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  Descriptor file(::open(path.c_str(), kFlags, kLogMode));
  if (file.is_open()) (void)::fchmod(file.get(), kLogMode);
  return file.is_open() ? std::move(file) : Descriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC));
}

// Leaves the caller's session. The caller's process ends with 0.
bool go_to_background() {
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child > 0) ::_exit(0);
  ::setsid();
  const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null.get(), fd);
  return ::chdir("/") == 0;
}

}  // namespace

int run_control_daemon(const ControlOptions& options) {
  constexpr mode_t kForAll = 0666;
  constexpr mode_t kForItsUser = 0755;
  constexpr mode_t kLogPipeMode = 0777;
  Listening listening;
  listening.lock = lock_folder(options.pipe_folder);
  if (!listening.lock.is_open()) return 1;
  Descriptor log;
  Descriptor server_log;
  if (options.is_background) {
    (void)::mkdir(options.log_folder.c_str(), kForItsUser);
    log = open_log(options.log_folder + "/control.log");
    server_log = open_log(options.log_folder + "/server.log");
  }
  const int log_fd = options.is_background ? log.get() : STDERR_FILENO;
  const MpsLog first(log_fd);
  first.line(fmt::format("Starting control daemon using socket {}/control", options.pipe_folder));
  first.line(
      fmt::format("To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY={}",
                  options.pipe_folder));
  // The longer path first: where it does not fit there is no daemon.
  listening.privileged = listen_at(options.pipe_folder + "/control_privileged", kForItsUser);
  if (!listening.privileged.is_open()) return 1;
  const std::string log_pipe = options.pipe_folder + "/log";
  ::unlink(log_pipe.c_str());
  if (::mkfifo(log_pipe.c_str(), kLogPipeMode) != 0) return 1;
  (void)::chmod(log_pipe.c_str(), kLogPipeMode);
  listening.control = listen_at(options.pipe_folder + "/control", kForAll);
  if (!listening.control.is_open()) return 1;
  if (options.is_background && !go_to_background()) return 1;
  const int server_log_fd = options.is_background ? server_log.get() : gpu_platform::os::kShared;
  ControlDaemon daemon(options, std::move(listening), log_fd, server_log_fd);
  return daemon.run();
}

}  // namespace gpu_emulator
