#include "shims/steps/rendezvous.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "client/submission.h"

namespace gpu_platform::shims {

namespace {

constexpr std::size_t kMaxLine = 4 * 1024 * 1024;

base::Error rendezvous_error(const char* what) {
  return base::system_error(what, errno);
}

struct Address {
  sockaddr_un name = {};
  socklen_t size = 0;
};
// A leading NUL: the name is of no file system.
Address address_of(const std::string& name) {
  Address address;
  address.name.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.name.sun_path - 1);
  std::memcpy(address.name.sun_path + 1, name.data(), length);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

// Anyone on the machine may connect to the name.
base::Result<Connection> of_own_user(Connection connection) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return std::unexpected(rendezvous_error("SO_PEERCRED"));
  if (peer.uid != ::getuid())
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("a process of uid {} connected to this step's socket; only the "
                                  "job's own user may",
                                  peer.uid));
  return connection;
}

}  // namespace

Connection::Connection(Connection&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Connection::~Connection() {
  if (fd_ >= 0) ::close(fd_);
}

base::Status Connection::send_line(std::string line) const {
  line.push_back('\n');
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t sent = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return std::unexpected(rendezvous_error("send"));
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

base::Result<std::string> Connection::read_line() const {
  std::string line;
  char block[4096];
  while (line.size() < kMaxLine) {
    const ssize_t seen = ::recv(fd_, block, sizeof block, MSG_PEEK);
    if (seen < 0 && errno == EINTR) continue;
    if (seen < 0) return std::unexpected(rendezvous_error("receive"));
    if (seen == 0)
      return base::fail(base::ErrorCode::kFailedPrecondition, "the other side has gone");
    const std::string_view bytes(block, static_cast<std::size_t>(seen));
    const std::size_t end = bytes.find('\n');
    const std::size_t taken = end == std::string_view::npos ? bytes.size() : end + 1;
    if (::recv(fd_, block, taken, 0) < 0) return std::unexpected(rendezvous_error("receive"));
    line += bytes.substr(0, taken);
    if (line.ends_with('\n')) {
      line.pop_back();
      return line;
    }
  }
  return base::fail(base::ErrorCode::kFailedPrecondition, "the other side said too much");
}

base::Status Connection::lend_streams(const std::array<int, 3>& streams) const {
  char byte = 's';
  iovec text = {&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof streams)> control = {};
  msghdr message = {};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof streams);
  std::memcpy(CMSG_DATA(header), streams.data(), sizeof streams);
  while (::sendmsg(fd_, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return std::unexpected(rendezvous_error("lend the standard streams"));
  }
  return {};
}

base::Result<std::array<int, 3>> Connection::borrow_streams() const {
  std::array<int, 3> streams = {};
  char byte = 0;
  iovec text = {&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof streams)> control = {};
  msghdr message = {};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return std::unexpected(rendezvous_error("borrow the standard streams"));
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof streams)) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      "the other side has gone before it lent its standard streams");
  }
  std::memcpy(streams.data(), CMSG_DATA(header), sizeof streams);
  return streams;
}

base::Result<RendezvousPlace> RendezvousPlace::open() {
  const std::string id = client::random_request_id();
  if (id.empty())
    return base::fail(base::ErrorCode::kInternal, "the system has no randomness for a name");
  const std::string name = "gpu-platform-" + id;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::unexpected(rendezvous_error("socket"));
  RendezvousPlace place(fd, name);
  const Address address = address_of(name);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0 ||
      ::listen(fd, 1) != 0)
    return std::unexpected(rendezvous_error("listen"));
  return place;
}

RendezvousPlace::RendezvousPlace(RendezvousPlace&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)) {}

RendezvousPlace::~RendezvousPlace() {
  if (fd_ >= 0) ::close(fd_);
}

base::Result<Connection> RendezvousPlace::accept() const {
  while (true) {
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && errno == EINTR) continue;
    if (fd < 0) return std::unexpected(rendezvous_error("accept"));
    return of_own_user(Connection(fd));
  }
}

base::Result<Connection> meet(const std::string& name) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::unexpected(rendezvous_error("socket"));
  Connection connection(fd);
  const Address address = address_of(name);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0)
    return std::unexpected(rendezvous_error("connect"));
  return of_own_user(std::move(connection));
}

}  // namespace gpu_platform::shims
