#include "api/peer.h"

#include <fmt/format.h>

namespace gpu_platform::api {

base::Status check_named(const Peer& peer) {
  if (peer.is_name_known) return {};
  return base::fail(
      base::ErrorCode::kUnavailable,
      fmt::format("the user database of this host does not answer, so your name (user "
                  "{}) is not known; try again in a moment",
                  peer.caller.uid));
}

}  // namespace gpu_platform::api
