#pragma once

namespace gpu_platform::node {

// A session keyring of its own for the calling process and all that it starts: what it keeps there
// is in nobody else's sight, and nothing of ours in its. To be called as root where there is root:
// the keyring is then not counted against the few keys that a user may have. A kernel or a
// container that has no keyrings keeps them from jobs as well. Raw calls only: 0 or -errno.
int join_new_session_keyring();

}  // namespace gpu_platform::node
