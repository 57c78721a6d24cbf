#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "simulation/faults/fault_kind.h"

namespace gpu_platform::simulation {

struct Violation {
  std::uint64_t seed = 0;  // zero: of the run as a whole
  std::uint64_t step = 0;  // turns of the controller before it was seen
  std::string invariant;   // its name
  std::string text;
};

// Counts the faults that were done to one world and keeps the first violation, since later ones may
// only be its consequences.
class Findings {
 public:
  Findings(std::uint64_t seed, FaultCounts& counts) : seed_(seed), counts_(counts) {}

  void count(FaultKind kind) { ++counts_[static_cast<std::size_t>(kind)]; }
  void next_step() { ++step_; }
  std::uint64_t step() const { return step_; }

  void violated(std::string_view invariant, std::string text) {
    if (!first_) first_ = Violation{seed_, step_, std::string(invariant), std::move(text)};
  }
  // A sentence that begins with the invariant's name, as controller::check_invariants() gives it.
  void violated(std::string_view sentence) {
    const std::size_t colon = sentence.find(": ");
    violated(sentence.substr(0, colon), std::string(sentence.substr(colon + 2)));
  }
  bool any() const { return first_.has_value(); }
  const std::optional<Violation>& first() const { return first_; }

 private:
  std::uint64_t seed_;
  FaultCounts& counts_;
  std::uint64_t step_ = 0;
  std::optional<Violation> first_;
};

}  // namespace gpu_platform::simulation
