#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/mig_geometry.h"

// All that instances can make of one GPU, in a table. A GPU has 8 memory slices at most, so there
// are few hundred states, and questions about the future are answered by looking them up.

namespace gpu_platform::scheduling {

// What instances take of a GPU.
struct MigState {
  model::MigSlices occupied = 0;  // memory slices
  std::uint8_t compute_used = 0;  // compute slices
  model::MigGroups groups = 0;    // those that an instance belongs to

  friend auto operator<=>(const MigState&, const MigState&) = default;
};

// Returns the starts from which an instance of the profile fits beside those that are there.
model::MigSlices free_starts(const model::MigGeometry& geometry, const model::MigProfile& profile,
                             const MigState& state);
// Adds an instance, which must fit, or removes one.
MigState with(const MigState& state, const model::MigProfile& profile, std::uint32_t start);
MigState without(const MigState& state, const model::MigProfile& profile, std::uint32_t start);

// Calls visit(start) for each, ascending.
template <class Visit>
void for_each_start(model::MigSlices starts, const Visit& visit) {
  for (std::uint32_t start = 0; start < model::kMaxMigSlices; ++start) {
    if ((starts >> start & 1) != 0) visit(start);
  }
}

using MigStateNumber = std::uint16_t;

// The states that instances of a geometry can make, numbered in ascending order, so that 0 is the
// empty GPU and each instance leads to a higher number. Profiles are numbered as in the geometry.
//
// Ownership: holds a copy of the geometry; never changes. Thread: any. Memory: 32 KiB and some
// bytes for each state and profile; a type of GPU needs one. Cost: a question is one look-up.
class MigStates {
 public:
  explicit MigStates(model::MigGeometry geometry);

  const model::MigGeometry& geometry() const { return geometry_; }
  std::size_t profiles() const { return geometry_.profiles.size(); }
  std::size_t size() const { return states_.size(); }
  const MigState& operator[](MigStateNumber number) const { return states_[number]; }
  // Nothing for a state that no instances of the geometry can make.
  std::optional<MigStateNumber> find(const MigState& state) const;

  // Does what free_starts() does.
  model::MigSlices starts(MigStateNumber number, std::size_t profile) const {
    return starts_[number * profiles() + profile];
  }
  // Returns the state with one more instance, from one of these starts.
  MigStateNumber after(MigStateNumber number, std::size_t profile, std::uint32_t start) const;
  // Returns how many instances of the profile can be made in this state, if all are of it.
  std::uint32_t capacity(MigStateNumber number, std::size_t profile) const {
    return capacities_[number * profiles() + profile];
  }

 private:
  void find_all();
  void fill();

  model::MigGeometry geometry_;
  std::vector<MigState> states_;          // ascending
  std::vector<MigStateNumber> numbers_;   // by a key of the state; kNoState: there is no such state
  std::vector<model::MigSlices> starts_;  // by state and profile
  std::vector<std::uint8_t> capacities_;  // the same
};

// What of a GPU's free slices no profile of a set can use, whichever instances come.
struct MigStranded {
  std::uint32_t compute_slices = 0;
  std::uint32_t memory_slices = 0;

  friend bool operator==(const MigStranded&, const MigStranded&) = default;
};
// Returns that of each state. `is_wanted` says of each profile whether it is in the set. Memory
// counts as usable where some instance that fits now would lie on it; compute slices, as far as
// instances that fit together can use them.
std::vector<MigStranded> stranded_by_state(const MigStates& states,
                                           const std::vector<bool>& is_wanted);

}  // namespace gpu_platform::scheduling
