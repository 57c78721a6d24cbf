#pragma once

#include "model/ids.h"

// Where an attempt's supervisor is reached by people who attach to its job: a socket in the
// folder `run` (NodeFolders), through which the launcher passes their channels on. For the node
// part's own user alone: both sides look whom they have before them. Descriptors returned do not
// block; -1 with errno.

namespace gpu_platform::node {

int listen_for_people(int run, model::AttemptId attempt);
int connect_to_session(int run, model::AttemptId attempt);
void remove_session_socket(int run, model::AttemptId attempt);

// Whether the other side of the socket is of our own user.
bool is_of_our_own(int socket);

}  // namespace gpu_platform::node
