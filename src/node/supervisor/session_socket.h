#pragma once

#include <string_view>

#include "model/ids.h"

// Where an attempt's supervisor is reached by people who attach to its job: a socket in run_dir,
// through which the launcher passes their channels on. For the node part's own user alone: both
// sides look whom they have before them. Descriptors returned do not block; -1 with errno.

namespace gpu_platform::node {

int listen_for_people(std::string_view root, model::AttemptId attempt);
int connect_to_session(std::string_view root, model::AttemptId attempt);
void remove_session_socket(std::string_view root, model::AttemptId attempt);

// Whether the other side of the socket is of our own user.
bool is_of_our_own(int socket);

}  // namespace gpu_platform::node
