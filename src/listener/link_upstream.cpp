#include "listener/link_upstream.h"

#include <sys/socket.h>

#include <cerrno>

#include "listener/link.h"
#include "os/descriptor.h"
#include "os/packet_socket.h"

namespace gpu_platform::listener {

base::Result<int> LinkUpstream::open(const Credential& credential) {
  if (credential.secret.size() > kMaxSecret || credential.address.size() > kMaxAddress) {
    return base::fail(base::ErrorCode::kUnauthenticated, "the credential is too long");
  }
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
    return base::fail(base::ErrorCode::kUnavailable, "the listener has too many connections open");
  }
  os::Descriptor ours(pair[0]);
  const os::Descriptor theirs(pair[1]);
  if (!os::send_packet(link_, encode(FromListener(Open{credential})), theirs.get())) {
    return base::fail(base::ErrorCode::kUnavailable,
                      "the daemon takes no more connections now: try again in a moment");
  }
  return ours.release();
}

}  // namespace gpu_platform::listener
