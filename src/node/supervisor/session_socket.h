#pragma once

#include "model/ids.h"

// The socket on which clients that attach to a job reach the attempt's supervisor. It lies in the
// folder `run` (NodeFolders), and the launcher passes the clients' channels on through it. It is
// for the node part's own user alone: both sides check each other's credentials. Descriptors
// returned do not block; -1 with errno.

namespace gpu_platform::node {

int listen_for_people(int run, model::AttemptId attempt);
int connect_to_session(int run, model::AttemptId attempt);
void remove_session_socket(int run, model::AttemptId attempt);

// Returns whether the other side of the socket is of our own user.
bool is_of_our_own(int socket);

}  // namespace gpu_platform::node
