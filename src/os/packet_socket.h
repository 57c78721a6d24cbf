#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpu_platform::os {

// One packet of a SOCK_SEQPACKET socket with at most one file descriptor beside it.
struct Packet {
  enum class Kind {
    kMessage,
    kClosed,
    kNothing
  };  // kNothing: none there now (not blocking), or damaged
  Kind kind = Kind::kNothing;
  std::string_view bytes;  // in the buffer given
  int fd = -1;  // owned by the receiver; -1 also when it had no room for one that was sent
};

// Receives into buffer; a packet larger than it, or with more than one descriptor, is dropped as
// damaged. `flags`: of recvmsg, MSG_DONTWAIT for one.
Packet receive_packet(int socket, char* buffer, std::size_t size, int flags = 0);

// False with errno when it was not sent (EAGAIN: not now). fd is passed along and stays the
// caller's.
bool send_packet(int socket, std::string_view bytes, int fd = -1);

}  // namespace gpu_platform::os
