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

// The times in microseconds that `gpu-acceptance launches` has written, in their order. Lines that
// hold anything but a number are left out.
std::vector<std::int64_t> launch_times(const std::string& output);

// What works that ran beside each other have done of their launches together.
struct LaunchShares {
  std::int64_t rounds = 0;      // the time that was looked at, in rounds
  double per_second = 0;        // launches of all of them
  std::vector<double> of_each;  // shares of all launches, in the order of the works
};

struct Rounds {
  std::int64_t round_us = 0;
  std::int64_t max_rounds = 0;
};

// Compares works by the times of their launches, in the first whole rounds in which all of them
// ran, at most `max_rounds`: in whole rounds each has all of its turns, whenever the first began.
// Nothing if there is no such round, or no launch in it.
std::optional<LaunchShares> launch_shares(const std::vector<std::vector<std::int64_t>>& works,
                                          const Rounds& rounds);

// Returns the results with the ends of the UUIDs and serial numbers of its GPUs replaced by x,
// wherever they occur.
nlohmann::ordered_json mask_identities(const nlohmann::ordered_json& results);

}  // namespace gpu_platform::node
