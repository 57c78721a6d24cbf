#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

// The platforms of images, "linux/ARCH[/VARIANT]" with the names that registries have for them.
// Pure.

namespace gpu_platform::execution {

// Returns the platform of the image from an engine's answer to GET /images/NAME/json; empty: the
// answer does not say it.
std::string platform_of_image(const nlohmann::json& image);

// Returns the platform of a host from its name for its processor (uname), "x86_64".
std::string platform_of_machine(std::string_view machine);

// Returns whether the image is one of the wanted platform. A variant that one of them leaves out is
// no difference.
bool is_of_platform(std::string_view image, std::string_view wanted);

// Returns whether a host executes the programs of a platform.
bool can_execute(std::string_view host, std::string_view platform);

}  // namespace gpu_platform::execution
