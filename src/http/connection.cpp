#include "http/connection.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/tls.h"
#include "os/descriptor.h"

namespace gpu_platform::http {

namespace {

using Why = TransportError::Kind;

std::unexpected<TransportError> failed(Why kind, std::string_view what, int error) {
  char buffer[128];
  return std::unexpected(
      TransportError{kind, fmt::format("{}: {}", what, strerror_r(error, buffer, sizeof buffer))});
}

std::unexpected<TransportError> not_reached(std::string_view where, int error) {
  auto failure = failed(Why::kNoDaemon, where, error);
  failure.error().is_refused = error == ECONNREFUSED;
  return failure;
}

// Returns when the descriptor is ready for it, or has ended.
Transported<> wait_until_ready(int fd, Wants wants, const Waiting& waiting) {
  const short events = wants == Wants::kWritable ? POLLOUT : POLLIN;
  std::array<pollfd, 2> watched = {pollfd{fd, events, 0}, pollfd{waiting.interrupt_fd, POLLIN, 0}};
  const std::int64_t limit_ms =
      waiting.at_most.has_value() ? base::whole_milliseconds(*waiting.at_most) : -1;
  while (true) {
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(limit_ms));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return failed(Why::kBroken, "poll", errno);
    if (ready == 0) {
      return std::unexpected(TransportError{Why::kTimedOut, "the daemon does not answer"});
    }
    if (watched[1].revents != 0) return std::unexpected(TransportError{Why::kInterrupted, {}});
    return {};
  }
}

bool is_interrupted(const Waiting& waiting) {
  pollfd watched{waiting.interrupt_fd, POLLIN, 0};
  return waiting.interrupt_fd >= 0 && ::poll(&watched, 1, 0) > 0;
}

// Connects the socket, which never blocks, to the address.
Transported<> connect_to(int fd, const sockaddr* address, socklen_t size, const std::string& where,
                         const Waiting& waiting) {
  if (::connect(fd, address, size) == 0) return {};
  if (errno != EINPROGRESS && errno != EINTR) return not_reached(where, errno);
  if (auto ready = wait_until_ready(fd, Wants::kWritable, waiting); !ready) {
    if (ready.error().kind == Why::kTimedOut) return not_reached(where, ETIMEDOUT);
    return ready;
  }
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return not_reached(where, error);
  return {};
}

Transported<os::Descriptor> new_socket(int family, int flags) {
  os::Descriptor fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd.is_open()) return failed(Why::kNoDaemon, "socket", errno);
  return fd;
}

// Waits where the daemon's queue of connections is full: that one must not look like no daemon.
Transported<os::Descriptor> connect_local(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return std::unexpected(
        TransportError{Why::kNoDaemon, fmt::format("{}: a socket's path has at most {} bytes", path,
                                                   sizeof address.sun_path - 1)});
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  auto fd = new_socket(AF_UNIX, 0);
  if (!fd) return fd;
  while (::connect(fd->get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINTR) return not_reached(path, errno);
  }
  ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  return fd;
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(ipv4->sin_addr.s_addr) >> 24 == 127;
  }
  const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(address);
  return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&ipv6->sin6_addr) != 0;
}

// Tries the host's addresses in their order.
Transported<os::Descriptor> connect_host(const Server& server, const Waiting& waiting) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int looked_up = ::getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &found);
  if (looked_up != 0) {
    return std::unexpected(TransportError{
        Why::kNoDaemon,
        fmt::format("the host '{}' is not found: {}", server.host, ::gai_strerror(looked_up))});
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  TransportError last{Why::kNoDaemon,
                      fmt::format("'{}' is not an address of this machine", server.host)};
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    // What a name stands for may change; a token must not leave this machine unprotected.
    if (server.kind == Server::Kind::kPlain && !is_loopback(at->ai_addr)) continue;
    auto fd = new_socket(at->ai_family, SOCK_NONBLOCK);
    if (!fd) return fd;
    auto connected = connect_to(fd->get(), at->ai_addr, at->ai_addrlen, server.text(), waiting);
    if (connected) {
      const int on = 1;
      ::setsockopt(fd->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return fd;
    }
    last = std::move(connected).error();
    if (last.kind == Why::kInterrupted) break;
  }
  return std::unexpected(std::move(last));
}

}  // namespace

struct Connection::State {
  Server server;
  os::Descriptor socket;
  std::unique_ptr<TlsSession> tls;  // null without TLS
};

Connection::Connection(std::unique_ptr<State> state) : state_(std::move(state)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

Transported<Connection> Connection::open(const Server& server, const Waiting& waiting) {
  auto fd = server.is_network() ? connect_host(server, waiting) : connect_local(server.path);
  if (!fd) return std::unexpected(std::move(fd).error());
  Connection connection(std::make_unique<State>(State{server, std::move(*fd), nullptr}));
  if (server.kind != Server::Kind::kTls) return connection;
  auto tls = TlsSession::begin(connection.fd(), server);
  if (!tls) return std::unexpected(std::move(tls).error());
  while (true) {
    const auto wants = (*tls)->handshake();
    if (!wants) return std::unexpected(wants.error());
    if (*wants == Wants::kNothing) break;
    if (auto ready = wait_until_ready(connection.fd(), *wants, waiting); !ready) {
      if (ready.error().kind == Why::kTimedOut) return not_reached(server.text(), ETIMEDOUT);
      return std::unexpected(std::move(ready).error());
    }
  }
  connection.state_->tls = std::move(*tls);
  return connection;
}

const Server& Connection::server() const {
  return state_->server;
}

int Connection::fd() const {
  return state_->socket.get();
}

void Connection::close() {
  state_->tls.reset();
  state_->socket.reset();
}

Transported<Step> Connection::try_read(std::span<char> room) {
  if (state_->tls != nullptr) return state_->tls->read(room);
  ssize_t got = 0;
  do {
    got = ::recv(fd(), room.data(), room.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got >= 0) return Step{static_cast<std::size_t>(got), Wants::kNothing};
  if (errno == EAGAIN) return Step{0, Wants::kReadable};
  return failed(Why::kBroken, "the connection to the daemon ended", errno);
}

Transported<Step> Connection::try_write(std::string_view bytes) {
  if (state_->tls != nullptr) return state_->tls->write(bytes);
  ssize_t sent = 0;
  do {
    sent = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return Step{static_cast<std::size_t>(sent), Wants::kNothing};
  if (errno == EAGAIN) return Step{0, Wants::kWritable};
  return failed(Why::kBroken, "the connection to the daemon ended", errno);
}

Transported<std::size_t> Connection::read(std::span<char> room, const Waiting& waiting) {
  // Also where bytes come without a pause.
  if (is_interrupted(waiting)) return std::unexpected(TransportError{Why::kInterrupted, {}});
  while (true) {
    const auto step = try_read(room);
    if (!step) return std::unexpected(step.error());
    if (step->wants == Wants::kNothing) return step->bytes;
    if (auto ready = wait_until_ready(fd(), step->wants, waiting); !ready) {
      return std::unexpected(std::move(ready).error());
    }
  }
}

Transported<std::size_t> Connection::write(std::string_view bytes, const Waiting& waiting) {
  while (true) {
    const auto step = try_write(bytes);
    if (!step) return std::unexpected(step.error());
    if (step->wants == Wants::kNothing) return step->bytes;
    if (auto ready = wait_until_ready(fd(), step->wants, waiting); !ready) {
      return std::unexpected(std::move(ready).error());
    }
  }
}

}  // namespace gpu_platform::http
