#include "os/packet_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gpu_platform::os {

namespace {

constexpr std::size_t kMaxFds = 4;  // room to receive what is then refused, rather than to leak it

// The single descriptor that came with the message; any others are closed and reported as damage.
bool take_fd(msghdr& message, int& fd) {
  bool sound = true;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int received = -1;
      memcpy(&received, CMSG_DATA(c) + i * sizeof(int), sizeof received);
      if (fd < 0) {
        fd = received;
      } else {
        close(received);
        sound = false;
      }
    }
  }
  return sound;
}

}  // namespace

Packet receive_packet(int socket, char* buffer, std::size_t size, int flags) {
  iovec data{buffer, size};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = -1;
  do {
    got = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);

  Packet packet;
  if (got < 0) {
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK;
    packet.kind = later ? Packet::Kind::kNothing : Packet::Kind::kClosed;
    return packet;
  }
  const bool sound = take_fd(message, packet.fd);
  if (got == 0) {
    packet.kind = Packet::Kind::kClosed;
  } else if (sound && (message.msg_flags & MSG_TRUNC) == 0) {
    packet.kind = Packet::Kind::kMessage;
    packet.bytes = {buffer, static_cast<std::size_t>(got)};
  }
  if (packet.kind != Packet::Kind::kMessage && packet.fd >= 0) {
    close(packet.fd);
    packet.fd = -1;
  }
  return packet;
}

bool send_packet(int socket, std::string_view bytes, int fd) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

}  // namespace gpu_platform::os
