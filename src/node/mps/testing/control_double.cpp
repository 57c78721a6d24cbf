#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <map>
#include <set>
#include <sstream>
#include <string>

// Stands in for nvidia-cuda-mps-control in the tests of this room: as small as they allow, and with
// commands of its own, by which a test has servers, clients and faults appear.
//   double_server              starts a server; answers with its pid
//   double_client SERVER PID   that server has this client from now on
//   double_drop WORD           from now on commands that begin with the word do nothing
//   double_user                answers with the daemon's user and group
//   double_environment NAME    answers with the daemon's variable

namespace {

constexpr std::size_t kMaxPacket = 64 * 1024;
constexpr unsigned long long kMibPerGib = 1024;

struct Limits {
  double percent = 100;
  unsigned long long memory_mib = 0;  // 0: none
};

struct Server {
  Limits limits;
  std::set<int> clients;
  bool is_leaving = false;
};

sockaddr_un control_address() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const char* const folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
  snprintf(address.sun_path, sizeof address.sun_path, "%s/control",
           folder != nullptr ? folder : "/tmp/nvidia-mps");
  return address;
}

std::string not_found(int server) {
  return "Server " + std::to_string(server) + " not found\n";
}

class Daemon {
 public:
  // Returns the exit code.
  int run() {
    signal(SIGCHLD, SIG_IGN);
    const sockaddr_un address = control_address();
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    unlink(address.sun_path);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener, 16) != 0) {
      fprintf(stderr, "Cannot access CUDA_MPS_PIPE_DIRECTORY\n");
      return 1;
    }
    while (!is_over_) {
      const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) continue;
      serve(connection);
      close(connection);
    }
    return 0;
  }

 private:
  void serve(int connection) {
    static char buffer[kMaxPacket];
    const ssize_t got = recv(connection, buffer, sizeof buffer, 0);
    if (got <= 0) return;
    std::istringstream lines(std::string(buffer, static_cast<std::size_t>(got)));
    std::string text;
    for (std::string line; std::getline(lines, line);) text += answer(line);
    text += '\n';  // an empty packet would be the end
    send(connection, text.data(), text.size(), MSG_NOSIGNAL);
  }

  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (dropped_.contains(command)) return {};
    if (command.starts_with("double_")) return answer_test(command, words);
    if (command == "get_server_list") return servers();
    if (command == "quit") return quit();
    if (command == "get_default_active_thread_percentage" ||
        command == "set_default_active_thread_percentage") {
      return percent(defaults_, command.starts_with("set"), words);
    }
    if (command == "get_default_device_pinned_mem_limit" ||
        command == "set_default_device_pinned_mem_limit") {
      return memory(defaults_, command.starts_with("set"), words);
    }
    return answer_of_server(command, words);
  }

  std::string answer_of_server(const std::string& command, std::istringstream& words) {
    int pid = 0;
    words >> pid;
    const auto found = servers_.find(pid);
    const bool is_known = command == "get_client_list" || command == "shutdown_server" ||
                          command == "terminate_client" ||
                          command.ends_with("_active_thread_percentage") ||
                          command.ends_with("_device_pinned_mem_limit");
    if (!is_known) return "Unknown command \"" + command + "\"\n";
    if (found == servers_.end()) return not_found(pid);
    Server& server = found->second;
    if (command == "get_client_list") return clients(server);
    if (command == "shutdown_server") {
      server.is_leaving = true;
      return leave_if_idle(pid);
    }
    if (command == "terminate_client") {
      int client = 0;
      words >> client;
      server.clients.erase(client);
      return leave_if_idle(pid);
    }
    const bool sets = command.starts_with("set");
    return command.ends_with("percentage") ? percent(server.limits, sets, words)
                                           : memory(server.limits, sets, words);
  }

  std::string answer_test(const std::string& command, std::istringstream& words) {
    std::string word;
    if (command == "double_server") return start_server();
    if (command == "double_user") {
      return std::to_string(getuid()) + " " + std::to_string(getgid()) + "\n";
    }
    words >> word;
    if (command == "double_environment") {
      const char* const value = getenv(word.c_str());
      return std::string(value != nullptr ? value : "none") + "\n";
    }
    if (command == "double_drop") dropped_.insert(word);
    int client = 0;
    words >> client;
    if (command == "double_client") servers_[atoi(word.c_str())].clients.insert(client);
    return {};
  }

  std::string start_server() {
    const int pid = fork();
    if (pid == 0) {
      close_range(3, ~0U, 0);  // it does not listen
      while (true) pause();
    }
    servers_[pid].limits = defaults_;
    return std::to_string(pid) + "\n";
  }

  std::string leave_if_idle(int pid) {
    const auto found = servers_.find(pid);
    if (!found->second.is_leaving || !found->second.clients.empty()) return {};
    kill(pid, SIGTERM);
    servers_.erase(found);
    return {};
  }

  std::string servers() const {
    std::string text;
    for (const auto& [pid, server] : servers_) text += std::to_string(pid) + "\n";
    return text;
  }

  static std::string clients(const Server& server) {
    std::string text;
    for (const int pid : server.clients) text += std::to_string(pid) + "\n";
    return text;
  }

  std::string quit() {
    for (const auto& [pid, server] : servers_) kill(pid, SIGKILL);
    is_over_ = true;
    return {};
  }

  static std::string percent(Limits& limits, bool sets, std::istringstream& words) {
    double value = 0;
    if (sets && words >> value && value > 0 && value <= 100) limits.percent = value;
    char text[32];
    snprintf(text, sizeof text, "%.1f\n", limits.percent);
    return text;
  }

  static std::string memory(Limits& limits, bool sets, std::istringstream& words) {
    int device = 0;
    unsigned long long value = 0;
    words >> device;
    if (sets && words >> value) limits.memory_mib = value;
    if (sets || limits.memory_mib == 0) return {};
    const bool in_gib = limits.memory_mib >= kMibPerGib;
    return std::to_string(in_gib ? limits.memory_mib / kMibPerGib : limits.memory_mib) +
           (in_gib ? "G\n" : "M\n");
  }

  Limits defaults_;
  std::map<int, Server> servers_;
  std::set<std::string> dropped_;
  bool is_over_ = false;
};

// Returns the exit code.
int ask() {
  static char buffer[kMaxPacket];
  const sockaddr_un address = control_address();
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fprintf(stderr, "Cannot find MPS control daemon process\n");
    return 1;
  }
  std::string commands;
  for (ssize_t got = 0; (got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0;) {
    commands.append(buffer, static_cast<std::size_t>(got));
  }
  send(connection, commands.data(), commands.size(), MSG_NOSIGNAL);
  const ssize_t got = recv(connection, buffer, sizeof buffer, 0);
  // Without the line feed that makes each packet one with something in it.
  if (got > 1) fwrite(buffer, 1, static_cast<std::size_t>(got) - 1, stdout);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  return count > 1 && strcmp(words[1], "-f") == 0 ? Daemon().run() : ask();
}
