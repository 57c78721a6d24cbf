#include "listener/link_upstream.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "listener/link.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/packet_socket.h"

namespace gpu_platform::listener {

namespace {

constexpr std::int64_t kTimeoutMs = 100;

}  // namespace

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
  if (!send(encode(FromListener(Open{credential})), theirs.get())) {
    return base::fail(base::ErrorCode::kUnavailable,
                      "the daemon takes no more connections now: try again in a moment");
  }
  return ours.release();
}

// The link holds a few hundred messages. When more clients come at once, the daemon takes some in
// the time that is waited here; one that takes none keeps a thread no longer than that.
bool LinkUpstream::send(const std::string& message, int descriptor) const {
  const std::int64_t limit = os::monotonic_ms() + kTimeoutMs;
  while (!os::send_packet(link_, message, descriptor)) {
    if (errno != EAGAIN) return false;
    const std::int64_t left = limit - os::monotonic_ms();
    if (left <= 0) return false;
    pollfd waited{link_, POLLOUT, 0};
    ::poll(&waited, 1, static_cast<int>(left));
  }
  return true;
}

}  // namespace gpu_platform::listener
