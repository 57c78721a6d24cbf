#include "node/session_keyring.h"

#include <errno.h>
#include <linux/keyctl.h>

#include "node/raw_call.h"

namespace gpu_platform::node {

int join_new_session_keyring() {
  const long serial = raw_call(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  if (serial >= 0 || serial == -ENOSYS || serial == -EPERM) return 0;
  return static_cast<int>(serial);
}

}  // namespace gpu_platform::node
