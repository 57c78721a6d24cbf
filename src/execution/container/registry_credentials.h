#pragma once

#include <string>
#include <string_view>
#include <vector>

// Credentials for registries, as ~/.docker/config.json and containers-auth.json(5) have them.

namespace gpu_platform::execution {

// Overwrites the text's memory.
void wipe(std::string& text);

struct RegistryCredentials {
  std::string header;  // the value of X-Registry-Auth; empty: there are none
  std::string hint;    // why a file that is there has none; for people; may be empty

  RegistryCredentials() = default;
  RegistryCredentials(RegistryCredentials&&) = default;
  RegistryCredentials& operator=(RegistryCredentials&&) = default;
  ~RegistryCredentials() { wipe(header); }
};

// Returns what the text of such a file says for the image. `name`: the file's, for people. Programs
// that the file names (credHelpers, credsStore) are not run.
RegistryCredentials find_credentials(std::string_view text, std::string_view image,
                                     std::string_view name);

// Returns the keys under which a file may have an image, the most special first:
// "registry/namespace/name", "registry/namespace", "registry".
std::vector<std::string> credential_keys(std::string_view image);

// Returns whether the text can be the value of X-Registry-Auth and nothing more.
bool is_registry_auth(std::string_view header);

// Returns the text without the secrets in it: a registry may repeat what it was told.
std::string without_secrets(std::string text, const RegistryCredentials& credentials);

}  // namespace gpu_platform::execution
