#include "execution/container/registry_credentials.h"

#include <string.h>

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "execution/container/answer_fields.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxHeader = 32 * 1024;  // bytes
constexpr std::string_view kDocker = "docker.io";

// Docker's own registry has names of older days.
std::string_view plain_registry(std::string_view registry) {
  const bool is_docker = registry == "index.docker.io" || registry == "registry-1.docker.io";
  return is_docker ? kDocker : registry;
}

// The registry of a key: keys of older days are addresses, "https://index.docker.io/v1/".
std::string_view registry_of_key(std::string_view key) {
  bool is_address = false;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!key.starts_with(scheme)) continue;
    key.remove_prefix(scheme.size());
    is_address = true;
  }
  return plain_registry(is_address ? key.substr(0, key.find('/')) : key);
}

Json entry_for(const Json& auths, const std::vector<std::string>& keys) {
  if (!auths.is_object()) return {};
  for (const std::string& key : keys) {
    if (auths.contains(key)) return auths[key];
  }
  for (const auto& [key, entry] : auths.items()) {
    if (registry_of_key(key) == keys.back()) return entry;
  }
  return {};
}

// Empty: the entry has none.
std::string header_of(const Json& entry, const std::string& registry) {
  Json header = {{"serveraddress", registry}};
  const std::string token = text_field(entry, "identitytoken");
  if (!token.empty()) {
    header["identitytoken"] = token;
  } else {
    auto pair = base::parse_base64(text_field(entry, "auth"));
    const std::size_t colon = pair ? pair->find(':') : std::string::npos;
    if (colon == std::string::npos || colon == 0) return {};
    header["username"] = pair->substr(0, colon);
    header["password"] = pair->substr(colon + 1, pair->find('\0', colon) - colon - 1);
    wipe(*pair);
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string value = base::to_base64(text, base::Base64::kUrl);
  wipe(text);
  return value.size() <= kMaxHeader ? value : std::string();
}

bool names_program(const Json& file, const std::string& registry) {
  return !text_field(field(file, "credHelpers"), registry.c_str()).empty() ||
         !text_field(file, "credsStore").empty();
}

}  // namespace

void wipe(std::string& text) {
  explicit_bzero(text.data(), text.size());
  text.clear();
}

std::vector<std::string> credential_keys(std::string_view image) {
  std::string name(image.substr(0, image.find('@')));
  const std::size_t slash = name.find('/');
  const std::size_t last = name.rfind('/');
  name.resize(std::min(name.find(':', last == std::string::npos ? 0 : last), name.size()));
  const std::string first = slash == std::string::npos ? "" : name.substr(0, slash);
  const bool has_registry = first == "localhost" || first.find_first_of(".:") != std::string::npos;
  if (!has_registry) {
    name = fmt::format("{}/{}{}", kDocker, slash == std::string::npos ? "library/" : "", name);
  } else if (plain_registry(first) != first) {
    name.replace(0, first.size(), plain_registry(first));
  }
  std::vector<std::string> keys = {name};
  while (keys.back().find('/') != std::string::npos) {
    keys.push_back(keys.back().substr(0, keys.back().rfind('/')));
  }
  return keys;
}

RegistryCredentials find_credentials(std::string_view text, std::string_view image,
                                     std::string_view name) {
  RegistryCredentials found;
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object()) {
    found.hint = fmt::format("{} is not in the format of a config.json", name);
    return found;
  }
  const std::vector<std::string> keys = credential_keys(image);
  const std::string& registry = keys.back();
  const Json entry = entry_for(field(file, "auths"), keys);
  found.header = header_of(entry, registry);
  if (!found.header.empty()) return found;
  if (names_program(file, registry)) {
    found.hint = fmt::format(
        "{} leaves the credentials of {} to a program (credHelpers, credsStore), and such programs "
        "are not run",
        name, registry);
  } else if (!entry.is_null()) {
    found.hint = fmt::format("the entry of {} in {} has no user and password", registry, name);
  }
  return found;
}

bool is_registry_auth(std::string_view header) {
  const std::string_view letters = header.substr(0, header.find('='));
  const auto is_letter = [](char c) { return base::is_base64(c, base::Base64::kUrlUnpadded); };
  return header.size() <= kMaxHeader && std::ranges::all_of(letters, is_letter) &&
         header.find_first_not_of('=', letters.size()) == std::string_view::npos;
}

std::string without_secrets(std::string text, const RegistryCredentials& credentials) {
  if (credentials.header.empty()) return text;
  auto decoded = base::parse_base64(credentials.header, base::Base64::kUrl);
  const Json told = Json::parse(decoded ? *decoded : "", nullptr, false);
  if (decoded) wipe(*decoded);
  const std::string password = text_field(told, "password");
  std::string secrets[] = {credentials.header,
                           base::to_base64(text_field(told, "username") + ":" + password), password,
                           text_field(told, "identitytoken")};
  for (std::string& secret : secrets) {
    for (std::size_t at = 0;
         !secret.empty() && (at = text.find(secret, at)) != std::string::npos;) {
      text.replace(at, secret.size(), "***");
      at += 3;
    }
    wipe(secret);
  }
  return text;
}

}  // namespace gpu_platform::execution
