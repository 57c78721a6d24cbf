#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpu_platform/v1/jobs.pb.h"

namespace gpu_platform::cli {

// A row of a table that becomes one with others of the same key, and what differs: "15_[2-9]".
struct Fold {
  std::string key;
  std::string prefix;  // "15"
  std::int64_t number = 0;
};

// Returns the key of a waiting member of an array. Members with the same key wait for the same, at
// any places in the queue. Nothing for other jobs.
std::optional<Fold> array_fold(const v1::Job& job);

}  // namespace gpu_platform::cli
