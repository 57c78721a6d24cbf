#include "mps/mps_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "mps/mps_socket.h"
#include "mps/mps_words.h"
#include "os/descriptor.h"
#include "os/packet_socket.h"
#include "workload/gpu_use.h"

namespace gpu_emulator {
namespace {

using gpu_platform::os::Descriptor;
using gpu_platform::os::Packet;
using gpu_platform::os::receive_packet;
using gpu_platform::os::send_packet;

constexpr std::uint64_t kServerBytes = std::uint64_t{66} << 20;
constexpr std::size_t kMaxClients = 48;

struct ServedClient {
  Descriptor socket;  // closed: to be forgotten
  pid_t pid = 0;
  bool is_in_kernel = false;
  bool is_stuck = false;  // its kernel never ends: it cannot be terminated
};

class MpsServer {
 public:
  MpsServer(int link, std::string device) : link_(link), device_(std::move(device)) {}

  int run() {
    (void)send_packet(link_.get(), "ready " + device_);
    while (!is_over()) turn();
    return 0;
  }

 private:
  bool is_over() const;
  void turn();
  void hear_daemon();
  void obey(std::string_view order, Descriptor passed);
  void admit(Descriptor socket);
  void terminate(pid_t pid);
  void hear_client(ServedClient& client);
  void lose(ServedClient& client);
  void end_all(const char* message);
  void forget_closed();
  void tell_clients();

  Descriptor link_;  // closed: the daemon is gone
  std::string device_;
  MpsLimits limits_;
  std::vector<ServedClient> clients_;
  std::vector<Descriptor> unanswered_;  // those that came to a wedged server
  bool is_wedged_ = false;
  bool is_ending_ = false;
  bool is_forced_ = false;
};

bool MpsServer::is_over() const {
  if (is_forced_) return true;
  if (!clients_.empty()) return false;
  return !link_.is_open() || (is_ending_ && !is_wedged_);
}

void MpsServer::turn() {
  std::vector<pollfd> polled{{link_.get(), POLLIN, 0}};
  for (const ServedClient& each : clients_) polled.push_back({each.socket.get(), POLLIN, 0});
  if (::poll(polled.data(), polled.size(), -1) < 0) return;
  // An order may close clients, but none comes or goes in the list before all were heard.
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (polled[i + 1].revents != 0 && clients_[i].socket.is_open()) hear_client(clients_[i]);
  }
  forget_closed();
  if (polled[0].revents != 0) hear_daemon();
  forget_closed();
}

void MpsServer::hear_daemon() {
  char buffer[kMaxMpsPacket];
  const Packet packet = receive_packet(link_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  Descriptor passed(packet.fd);
  if (packet.kind == Packet::Kind::kClosed) link_.reset();
  if (packet.kind == Packet::Kind::kMessage) obey(packet.bytes, std::move(passed));
}

void MpsServer::obey(std::string_view order, Descriptor passed) {
  const std::vector<std::string> words = words_of(order);
  if (words.empty()) return;
  if (words[0] == "limits" && words.size() > 1) {
    limits_.percentage = parse_percentage(words[1]).value_or(limits_.percentage);
    limits_.pinned_mib = parse_pinned_limits(words.size() > 2 ? words[2] : "");
  } else if (words[0] == "client" && passed.is_open()) {
    admit(std::move(passed));
  } else if (words[0] == "terminate" && words.size() > 1) {
    terminate(static_cast<pid_t>(number_at(words[1])));
  } else if (words[0] == "shutdown") {
    is_ending_ = true;
  } else if (words[0] == "force") {
    is_forced_ = true;
    end_all("terminated");
  }
}

// The daemon knows of the client before the client does.
void MpsServer::admit(Descriptor socket) {
  if (is_wedged_) {
    unanswered_.push_back(std::move(socket));
    return;
  }
  if (clients_.size() >= kMaxClients) {
    (void)send_packet(socket.get(), fmt::format("refused {}", kMpsTooManyClients));
    return;
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  clients_.push_back({std::move(socket), peer.pid});
  tell_clients();
  (void)send_packet(clients_.back().socket.get(),
                    fmt::format("welcome {} {}", written_percentage(limits_.percentage),
                                written_pinned_limits(limits_.pinned_mib)));
}

// Its work is drained first, so that it is inside no kernel.
void MpsServer::terminate(pid_t pid) {
  for (ServedClient& client : clients_) {
    if (client.pid != pid || client.is_stuck) continue;
    (void)send_packet(client.socket.get(), "terminated");
    client.socket.reset();
  }
}

void MpsServer::hear_client(ServedClient& client) {
  char buffer[kMaxMpsPacket];
  const Packet packet = receive_packet(client.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  const Descriptor unexpected(packet.fd);
  if (packet.kind == Packet::Kind::kClosed) return lose(client);
  if (packet.kind != Packet::Kind::kMessage) return;
  const std::vector<std::string> words = words_of(packet.bytes);
  if (words.empty()) return;
  if (words[0] == "load" && words.size() > 1) {
    client.is_in_kernel = number_at(words[1]) > 0;
  } else if (words[0] == "stuck") {
    client.is_stuck = true;
  } else if (words[0] == "fault") {
    end_all("fault");
  } else if (words[0] == "bye") {
    client.socket.reset();
  }
}

// A client that did not say goodbye.
void MpsServer::lose(ServedClient& client) {
  client.socket.reset();
  if (!client.is_in_kernel) return;
  const bool has_others =
      std::ranges::any_of(clients_, [](const ServedClient& each) { return each.socket.is_open(); });
  is_wedged_ = is_wedged_ || !has_others;
  end_all("fault");
}

void MpsServer::end_all(const char* message) {
  for (ServedClient& each : clients_) {
    if (!each.socket.is_open()) continue;
    (void)send_packet(each.socket.get(), message);
    each.socket.reset();
  }
}

void MpsServer::forget_closed() {
  const auto is_closed = [](const ServedClient& each) { return !each.socket.is_open(); };
  if (std::erase_if(clients_, is_closed) > 0) tell_clients();
}

void MpsServer::tell_clients() {
  std::string message = "clients";
  for (const ServedClient& each : clients_) message += fmt::format(" {}", each.pid);
  (void)send_packet(link_.get(), message);
}

}  // namespace

int run_mps_server(int link) {
  const auto fails = [](const gpu_platform::base::Error& error) {
    fmt::print(stderr, "nvidia-cuda-mps-server: {}\n", error.message);
    return 1;
  };
  auto board = open_used_board();
  if (!board) return fails(board.error());
  const auto gpus = gpus_to_use(board->file);
  if (!gpus) return fails(gpus.error());
  GpuUse use(*board, *gpus);
  if (const auto entered = use.set(kServerBytes, 0); !entered) return fails(entered.error());
  // `ps` shows so much of a UUID.
  constexpr std::size_t kShownUuid = 22;
  const std::string uuid = board->file.state().gpus[gpus->front().gpu].uuid;
  return MpsServer(link, uuid.substr(0, kShownUuid)).run();
}

}  // namespace gpu_emulator
