#include "execution/container/image_platform.h"

#include <array>
#include <utility>

#include "execution/container/answer_fields.h"

namespace gpu_platform::execution {

namespace {

struct Platform {
  std::string_view system;
  std::string_view architecture;
  std::string_view variant;  // empty: any
};

std::string_view take_part(std::string_view& text) {
  const std::size_t slash = text.find('/');
  const std::string_view part = text.substr(0, slash);
  text.remove_prefix(slash == std::string_view::npos ? text.size() : slash + 1);
  return part;
}

Platform parts_of(std::string_view text) {
  Platform platform;
  platform.system = take_part(text);
  platform.architecture = take_part(text);
  platform.variant = text;
  return platform;
}

}  // namespace

std::string platform_of_image(const nlohmann::json& image) {
  std::string platform = text_field(image, "Os");
  const std::string architecture = text_field(image, "Architecture");
  if (platform.empty() || architecture.empty()) return {};
  platform += '/' + architecture;
  const std::string variant = text_field(image, "Variant");
  return variant.empty() ? platform : platform + '/' + variant;
}

std::string platform_of_machine(std::string_view machine) {
  // The names in which the kernel and the registries differ.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames = {{
      {"x86_64", "amd64"},
      {"aarch64", "arm64"},
      {"armv7l", "arm"},
      {"i686", "386"},
  }};
  std::string architecture(machine);
  for (const auto& [kernels, registries] : kNames) {
    if (machine == kernels) architecture = registries;
  }
  return "linux/" + architecture;
}

bool is_of_platform(std::string_view image, std::string_view wanted) {
  const Platform a = parts_of(image);
  const Platform b = parts_of(wanted);
  return a.system == b.system && a.architecture == b.architecture &&
         (a.variant.empty() || b.variant.empty() || a.variant == b.variant);
}

// Which variants a processor has is not known here; a program that needs more says so itself.
bool can_execute(std::string_view host, std::string_view platform) {
  const Platform machine = parts_of(host);
  const Platform wanted = parts_of(platform);
  const bool is_older = machine.architecture == "amd64" && wanted.architecture == "386";
  return machine.system == wanted.system &&
         (machine.architecture == wanted.architecture || is_older);
}

}  // namespace gpu_platform::execution
