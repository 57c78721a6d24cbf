#include "scheduling/mig/mig_states.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "base/check.h"

namespace gpu_platform::scheduling {

namespace {

constexpr MigStateNumber kNoState = 0xFFFF;
constexpr std::size_t kComputeBits = 4;
constexpr std::size_t kKeys = std::size_t{1}
                              << (model::kMaxMigSlices + kComputeBits + model::kMaxMigGroups);
static_assert(model::kMaxMigSlices < 1U << kComputeBits);

std::size_t state_key(const MigState& state) {
  std::size_t key = state.groups;
  key = key << kComputeBits | state.compute_used;
  return key << model::kMaxMigSlices | state.occupied;
}

std::uint32_t slices_in(model::MigSlices slices) {
  return static_cast<std::uint32_t>(std::popcount(slices));
}

}  // namespace

model::MigSlices free_starts(const model::MigGeometry& geometry, const model::MigProfile& profile,
                             const MigState& state) {
  if (state.compute_used + profile.compute_slices > geometry.compute_slices) return 0;
  if ((state.groups & profile.groups) != 0) return 0;
  unsigned starts = 0;
  for_each_start(profile.starts, [&](std::uint32_t start) {
    if ((state.occupied & slices_of(profile, start)) == 0) starts |= 1U << start;
  });
  return static_cast<model::MigSlices>(starts);
}

MigState with(const MigState& state, const model::MigProfile& profile, std::uint32_t start) {
  const model::MigSlices slices = slices_of(profile, start);
  CHECK((state.occupied & slices) == 0 && (state.groups & profile.groups) == 0);
  return {.occupied = static_cast<model::MigSlices>(state.occupied | slices),
          .compute_used = static_cast<std::uint8_t>(state.compute_used + profile.compute_slices),
          .groups = static_cast<model::MigGroups>(state.groups | profile.groups)};
}

MigState without(const MigState& state, const model::MigProfile& profile, std::uint32_t start) {
  const model::MigSlices slices = slices_of(profile, start);
  CHECK((state.occupied & slices) == slices && (state.groups & profile.groups) == profile.groups);
  CHECK(state.compute_used >= profile.compute_slices);
  return {.occupied = static_cast<model::MigSlices>(state.occupied & ~slices),
          .compute_used = static_cast<std::uint8_t>(state.compute_used - profile.compute_slices),
          .groups = static_cast<model::MigGroups>(state.groups & ~profile.groups)};
}

MigStates::MigStates(model::MigGeometry geometry) : geometry_(std::move(geometry)) {
  CHECK(geometry_.compute_slices <= model::kMaxMigSlices);
  find_all();
  fill();
}

void MigStates::find_all() {
  std::set<MigState> found = {MigState()};
  std::vector<MigState> unseen = {MigState()};
  while (!unseen.empty()) {
    const MigState state = unseen.back();
    unseen.pop_back();
    for (const model::MigProfile& profile : geometry_.profiles) {
      for_each_start(free_starts(geometry_, profile, state), [&](std::uint32_t start) {
        const MigState next = with(state, profile, start);
        if (found.insert(next).second) unseen.push_back(next);
      });
    }
  }
  CHECK(found.size() < kNoState);
  states_.assign(found.begin(), found.end());
  numbers_.assign(kKeys, kNoState);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    numbers_[state_key(states_[i])] = static_cast<MigStateNumber>(i);
  }
}

void MigStates::fill() {
  starts_.resize(size() * profiles());
  capacities_.resize(size() * profiles());
  // An instance leads to a state of a higher number, whose capacities are known then.
  for (std::size_t i = size(); i-- > 0;) {
    for (std::size_t p = 0; p < profiles(); ++p) {
      const auto number = static_cast<MigStateNumber>(i);
      const model::MigSlices starts =
          free_starts(geometry_, geometry_.profiles[p], states_[number]);
      std::uint32_t instances = 0;
      for_each_start(starts, [&](std::uint32_t start) {
        instances = std::max(instances, 1 + capacity(after(number, p, start), p));
      });
      starts_[i * profiles() + p] = starts;
      capacities_[i * profiles() + p] = static_cast<std::uint8_t>(instances);
    }
  }
}

std::optional<MigStateNumber> MigStates::find(const MigState& state) const {
  if (state.compute_used > model::kMaxMigSlices || state.groups >> model::kMaxMigGroups != 0) {
    return std::nullopt;
  }
  const MigStateNumber number = numbers_[state_key(state)];
  if (number == kNoState) return std::nullopt;
  return number;
}

MigStateNumber MigStates::after(MigStateNumber number, std::size_t profile,
                                std::uint32_t start) const {
  return numbers_[state_key(with(states_[number], geometry_.profiles[profile], start))];
}

std::vector<MigStranded> stranded_by_state(const MigStates& states,
                                           const std::vector<bool>& is_wanted) {
  CHECK(is_wanted.size() == states.profiles());
  const model::MigGeometry& geometry = states.geometry();
  std::vector<MigStranded> stranded(states.size());
  std::vector<std::uint32_t> usable(states.size());  // compute slices
  for (std::size_t i = states.size(); i-- > 0;) {
    const auto number = static_cast<MigStateNumber>(i);
    unsigned reached = 0;
    for (std::size_t p = 0; p < states.profiles(); ++p) {
      if (!is_wanted[p]) continue;
      const model::MigProfile& profile = geometry.profiles[p];
      for_each_start(states.starts(number, p), [&](std::uint32_t start) {
        reached |= slices_of(profile, start);
        usable[i] =
            std::max(usable[i], profile.compute_slices + usable[states.after(number, p, start)]);
      });
    }
    const MigState& state = states[number];
    stranded[i].compute_slices = geometry.compute_slices - state.compute_used - usable[i];
    stranded[i].memory_slices =
        geometry.memory_slices - slices_in(static_cast<model::MigSlices>(state.occupied | reached));
  }
  return stranded;
}

}  // namespace gpu_platform::scheduling
