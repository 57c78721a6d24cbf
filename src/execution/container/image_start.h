#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "execution/container/start_signs.h"

// What an image says of the start of its containers, from "Config" of an engine's answer to GET
// /images/NAME/json. An image is a user's: none of it is done as root. Pure.

namespace gpu_platform::execution {

// The directory to start in, absolute.
std::string workdir_of_image(const nlohmann::json& config);
std::vector<std::string> entrypoint_of_image(const nlohmann::json& config);

// Returns which volume a container may not have, and why: it would be made at a place that is the
// platform's or the engine's. Empty: none.
std::string error_in_volumes(const nlohmann::json& config);

// Returns whether two ids of an engine name one image; "sha256:" may be left out.
bool is_same_image(std::string_view one, std::string_view other);

// Returns the error for the user. `words`: the command to execute.
std::string describe_outcome(const StartOutcome& outcome, std::string_view workdir,
                             const std::vector<std::string>& words);

}  // namespace gpu_platform::execution
