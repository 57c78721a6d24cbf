#pragma once

namespace gpu_platform::node {

// Gives the calling process, and all that it starts, a session keyring of its own: no other process
// sees its keys, and it sees none of the platform's. Call it as root if there is root: the keyring
// is then not counted against the few keys that a user may have. If a kernel or a container has no
// keyrings, jobs have none either. Raw calls only: 0 or -errno.
int join_new_session_keyring();

}  // namespace gpu_platform::node
