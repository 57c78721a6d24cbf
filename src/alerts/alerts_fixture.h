#pragma once

#include <memory>
#include <string>
#include <utility>

#include "alerts/evaluator.h"

namespace gpu_platform::alerts {

inline std::shared_ptr<const Subject> gpu_subject(const std::string& node, int index,
                                                  const std::string& rack = {}) {
  Subject subject;
  subject.key = node + "-" + std::to_string(index);
  subject.labels = {{"node", node},
                    {"gpu", subject.key},
                    {"gpu_index", std::to_string(index)},
                    {"type", "H100-80GB"}};
  if (!rack.empty()) subject.labels["rack"] = rack;
  return std::make_shared<const Subject>(std::move(subject));
}

inline Fact fact(Signal signal, std::shared_ptr<const Subject> subject,
                 std::optional<std::int64_t> value) {
  return {.signal = signal, .subject = std::move(subject), .value = value};
}

// Both clocks, this long after a beginning.
inline Moment moment(base::Duration after) {
  return {base::Instant(base::hours(480'000).value()) + after,
          base::Instant(base::hours(1).value()) + after};
}

}  // namespace gpu_platform::alerts
