#pragma once

#include "api/peer.h"

// Who calls, in the tests of calls.

namespace gpu_platform::api {

inline const Peer kAda{{"ada", 1000}, 1000};
inline const Peer kBob{{"bob", 1001}, 1001};
inline const Peer kRoot{model::root_caller(), 0};

}  // namespace gpu_platform::api
