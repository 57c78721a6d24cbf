#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "execution/container/container_rules.h"
#include "execution/container/registry_credentials.h"
#include "node/identity.h"

// Whose credentials an image is fetched with: the job's user's own, where the site's rules allow
// that, else the site's.

namespace gpu_platform::execution {

struct CredentialsSearch {
  const ContainerRules* rules = nullptr;
  node::Identity user;  // the job's
  std::string image;
  // As for EngineCalls: a signal that waits may give the search up.
  int interrupt_fd = -1;
  std::function<bool()> on_interrupt;
};

// The user's files are read by a process that has become the user, so no other file can be read by
// way of them; if it hangs, as a home on the network may, it is given up after 10 s. Needs root's
// rights where the rules allow users' files.
RegistryCredentials search_credentials(const CredentialsSearch& search);

// These are for a process that is the user. The search takes ~/.config/containers/auth.json before
// ~/.docker/config.json.
RegistryCredentials find_in_home(const std::string& home, const std::string& image);
// Returns the text of a regular file of this process's own user, of at most 1 MiB. Otherwise `why`
// says what is wrong with it; it stays empty if there is no such file.
std::string read_own_file(const std::string& path, std::string& why);

}  // namespace gpu_platform::execution
