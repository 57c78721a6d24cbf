#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

// What the script of the acceptance reads out of the platform's answers. Pure.

namespace gpu_platform::node {

// The value at a JSON pointer: a text without quotes, else JSON; nothing if it is absent or null.
std::optional<std::string> value_at(const nlohmann::json& document, const std::string& pointer);

// The milliseconds from the end of each job to the start of the next one, sorted by size. Takes an
// answer of 'jobs list'; a job that has not started and ended is left out.
std::vector<std::int64_t> turnarounds_ms(const nlohmann::json& jobs);

// Returns the value of which `percent` percent of the values are no larger (nearest rank). Takes
// sorted values, at least one.
std::int64_t percentile(const std::vector<std::int64_t>& sorted, int percent);

// Returns the results with the ends of the UUIDs and serial numbers of its GPUs replaced by x,
// wherever they occur.
nlohmann::ordered_json mask_identities(const nlohmann::ordered_json& results);

}  // namespace gpu_platform::node
