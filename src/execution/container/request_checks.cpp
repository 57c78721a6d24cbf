#include "execution/container/request_checks.h"

#include <sys/utsname.h>

#include <utility>

#include <fmt/format.h>

#include "execution/container/container_gpus.h"
#include "execution/container/image_platform.h"
#include "execution/container/start_signs.h"
#include "node/site_hooks.h"

namespace gpu_platform::execution {

namespace {

constexpr std::size_t kMaxPlaces = 256;  // twice what a specification may have

std::string_view without_nul(std::string_view c_text) {
  return c_text.substr(0, c_text.size() - 1);
}

// Before the image is fetched: the engine would have the image of another architecture under its
// name from then on, for everyone.
std::string error_in_asked_platform(std::string_view asked) {
  const std::string why = asked.empty() ? "" : model::error_in_platform(asked);
  return why.empty() ? why : fmt::format("platform '{}' {}", asked, why);
}

std::string error_in_secrets(const ContainerRules& rules) {
  const std::string& secret = rules.site_credentials;
  const std::string why = secret.empty() ? "" : node::error_in_secret(secret);
  return why.empty() ? why : "credentials: " + why;
}

std::string error_in_parts(const ContainerRules& rules, const node::LaunchRequest& request) {
  const node::ContainerRequest& asked = request.container;
  std::string why = error_in_image(rules, without_nul(asked.image));
  if (why.empty()) why = error_in_asked_platform(without_nul(asked.platform));
  if (why.empty()) why = error_in_secrets(rules);
  const auto network = static_cast<model::ContainerNetwork>(asked.network);
  if (why.empty()) why = error_in_network(rules, network);
  if (!why.empty()) return why;
  if (const std::string name = strange_gpu_name(request); !name.empty()) {
    return fmt::format("'{}' is not the UUID of a GPU", name);
  }
  if (asked.mounts.size() + asked.tmpfs.size() + asked.board_files.size() > kMaxPlaces) {
    return fmt::format("it has more than {} mounts", kMaxPlaces);
  }
  for (const std::string_view text : asked.tmpfs) {
    const auto tmpfs = model::parse_container_tmpfs(without_nul(text));
    if (!tmpfs) return tmpfs.error().message;
  }
  for (const std::string_view text : asked.annotations) {
    why = error_in_annotation(rules, without_nul(text));
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace

ContainerDone<std::vector<model::ContainerMount>> check_request(
    const ContainerRules& rules, const node::LaunchRequest& request) {
  if (std::string why = error_in_parts(rules, request); !why.empty()) {
    return container_failed(std::move(why));
  }
  std::vector<model::ContainerMount> mounts;
  for (const std::string_view text : request.container.mounts) {
    auto mount = model::parse_container_mount(without_nul(text));
    if (!mount) return container_failed("mount " + mount.error().message);
    if (std::string why = error_in_mount(rules, *mount); !why.empty()) {
      return container_failed(std::move(why));
    }
    mounts.push_back(*std::move(mount));
  }
  return mounts;
}

ContainerDone<> check_host_platform(const std::string& what, const std::string& platform) {
  utsname host{};
  uname(&host);
  const std::string ours = platform_of_machine(host.machine);
  if (platform.empty() || can_execute(ours, platform)) return {};
  return container_failed(fmt::format("{} is for {}, and this node is {}", what, platform, ours));
}

// The runtimes' own words say whose fault it is.
int code_of_start(std::string_view message) {
  const auto says = [&](std::string_view text) {
    return message.find(text) != std::string_view::npos;
  };
  if (says("executable file not found")) return kNoProgram;
  if (!says("exec: ")) return kNoContainer;
  if (says("no such file or directory")) return kNoProgram;
  return says("permission denied") || says("is a directory") ? kNotExecutable : kNoContainer;
}

}  // namespace gpu_platform::execution
