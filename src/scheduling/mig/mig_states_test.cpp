#include "scheduling/mig/mig_states.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpu_platform::scheduling {
namespace {

struct MigPlaced {
  std::size_t profile = 0;
  std::uint32_t start = 0;

  friend auto operator<=>(const MigPlaced&, const MigPlaced&) = default;
};
using MigLayout = std::vector<MigPlaced>;

const model::MigGeometry& mig_of(std::string_view type) {
  return *model::known_mig_geometry(type);
}

std::size_t mig_number_of(const model::MigGeometry& geometry, std::string_view name) {
  return model::find_profile(geometry, *model::parse_mig_profile(name)).value();
}

// ---- The rule once more, in words of instances: no masks, no tables.

bool lies_on(const model::MigGeometry& geometry, const MigPlaced& placed, std::uint32_t slice) {
  return slice >= placed.start &&
         slice < placed.start + geometry.profiles[placed.profile].memory_slices;
}

// Returns whether an instance can be added to those of a layout that is legal.
bool may_be_added(const model::MigGeometry& geometry, const MigLayout& layout,
                  const MigPlaced& placed) {
  const model::MigProfile& profile = geometry.profiles[placed.profile];
  if ((profile.starts >> placed.start & 1) == 0) return false;
  std::uint32_t compute = profile.compute_slices;
  for (const MigPlaced& other : layout) {
    compute += geometry.profiles[other.profile].compute_slices;
    if ((geometry.profiles[other.profile].groups & profile.groups) != 0) return false;
    for (std::uint32_t slice = 0; slice < model::kMaxMigSlices; ++slice) {
      if (lies_on(geometry, other, slice) && lies_on(geometry, placed, slice)) return false;
    }
  }
  return compute <= geometry.compute_slices;
}

std::vector<MigPlaced> all_placements(const model::MigGeometry& geometry) {
  std::vector<MigPlaced> all;
  for (std::size_t p = 0; p < geometry.profiles.size(); ++p) {
    for (std::uint32_t start = 0; start < model::kMaxMigSlices; ++start) {
      if ((geometry.profiles[p].starts >> start & 1) != 0) all.push_back({p, start});
    }
  }
  return all;
}

// All legal layouts, each once: with the placements from `from` on, or without.
void add_layouts(const model::MigGeometry& geometry, const std::vector<MigPlaced>& placements,
                 std::size_t from, MigLayout& layout, std::vector<MigLayout>& found) {
  if (from == placements.size()) {
    found.push_back(layout);
    return;
  }
  add_layouts(geometry, placements, from + 1, layout, found);
  if (!may_be_added(geometry, layout, placements[from])) return;
  layout.push_back(placements[from]);
  add_layouts(geometry, placements, from + 1, layout, found);
  layout.pop_back();
}

std::vector<MigLayout> all_layouts(const model::MigGeometry& geometry,
                                   const std::vector<MigPlaced>& placements) {
  std::vector<MigLayout> found;
  MigLayout layout;
  add_layouts(geometry, placements, 0, layout, found);
  return found;
}

MigState mig_state_of(const model::MigGeometry& geometry, const MigLayout& layout) {
  MigState state;
  for (const MigPlaced& placed : layout) {
    state = with(state, geometry.profiles[placed.profile], placed.start);
  }
  return state;
}

// The layouts of the plain profiles to which no plain instance can be added.
std::vector<MigLayout> maximal_layouts(const model::MigGeometry& geometry,
                                       const std::vector<std::string>& plain) {
  std::vector<MigPlaced> placements;
  for (const MigPlaced& placed : all_placements(geometry)) {
    const std::string name = to_string(geometry.profiles[placed.profile].name);
    if (std::ranges::find(plain, name) != plain.end()) placements.push_back(placed);
  }
  std::vector<MigLayout> maximal;
  for (const MigLayout& layout : all_layouts(geometry, placements)) {
    const bool takes_more = std::ranges::any_of(placements, [&](const MigPlaced& placed) {
      return may_be_added(geometry, layout, placed);
    });
    if (!takes_more) maximal.push_back(layout);
  }
  return maximal;
}

TEST(MigStates, TheNineteenLayoutsOfAnA100AreReachedInEveryOrder) {
  const model::MigGeometry& a100 = mig_of("A100-40GB");
  const MigStates states(a100);
  auto layouts = maximal_layouts(a100, {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"});
  EXPECT_EQ(layouts.size(), 19U);
  for (MigLayout& layout : layouts) {
    const auto whole = states.find(mig_state_of(a100, layout));
    ASSERT_TRUE(whole.has_value());
    std::ranges::sort(layout);
    do {
      MigStateNumber number = 0;
      for (const MigPlaced& placed : layout) {
        ASSERT_NE(states.starts(number, placed.profile) >> placed.start & 1, 0);
        number = states.after(number, placed.profile, placed.start);
      }
      EXPECT_EQ(number, *whole);
    } while (std::ranges::next_permutation(layout).found);
  }
}

TEST(MigStates, TwoOfThreeSlicesTakeAllMemory) {
  const model::MigGeometry& h100 = mig_of("H100-80GB");
  const MigStates states(h100);
  const std::size_t three = mig_number_of(h100, "3g.40gb");
  const std::size_t one = mig_number_of(h100, "1g.10gb");
  const MigStateNumber full = states.after(states.after(0, three, 0), three, 4);
  EXPECT_EQ(states[full], (MigState{.occupied = 0xFF, .compute_used = 6}));
  EXPECT_EQ(states.starts(full, one), 0) << "one compute slice is left, and no memory";
}

TEST(MigStates, OneInstanceAtATimeHasTheMediaEngines) {
  const model::MigGeometry& a30 = mig_of("A30-24GB");
  const MigStates states(a30);
  const std::size_t one = mig_number_of(a30, "1g.6gb+me");
  const std::size_t two = mig_number_of(a30, "2g.12gb+me");
  EXPECT_EQ(states.capacity(0, one), 1U);
  const MigStateNumber used = states.after(0, one, 0);
  EXPECT_EQ(states.starts(used, one), 0);
  EXPECT_EQ(states.starts(used, two), 0);
  EXPECT_EQ(states.starts(used, mig_number_of(a30, "2g.12gb")), 0b100);
  EXPECT_EQ(without(states[used], a30.profiles[one], 0), MigState());
}

TEST(MigStates, AreExactlyThoseOfAllLayouts) {
  for (const std::string_view type : model::gpu_types_with_mig()) {
    const model::MigGeometry& geometry = mig_of(type);
    const MigStates states(geometry);
    std::set<MigState> found;
    for (const MigLayout& layout : all_layouts(geometry, all_placements(geometry))) {
      found.insert(mig_state_of(geometry, layout));
    }
    EXPECT_EQ(states.size(), found.size()) << type;
    for (const MigState& state : found) {
      const auto number = states.find(state);
      ASSERT_TRUE(number.has_value()) << type;
      EXPECT_EQ(states[*number], state);
    }
    EXPECT_EQ(states[0], MigState());
  }
  EXPECT_FALSE(MigStates(mig_of("A30-24GB")).find({.occupied = 0x80, .compute_used = 1}));
  EXPECT_FALSE(MigStates(mig_of("A30-24GB")).find({.occupied = 1, .compute_used = 200}));
}

// Every set of occupied slices, whether instances make it or not, and every profile.
TEST(MigStates, FreeStartsAreThoseOfPlainEnumeration) {
  for (const std::string_view type : model::gpu_types_with_mig()) {
    const model::MigGeometry& geometry = mig_of(type);
    for (unsigned occupied = 0; occupied < 256; ++occupied) {
      for (std::uint8_t compute = 0; compute <= geometry.compute_slices; ++compute) {
        for (const model::MigGroups groups : {model::MigGroups{0}, model::MigGroups{1}}) {
          const MigState state{static_cast<model::MigSlices>(occupied), compute, groups};
          for (const model::MigProfile& profile : geometry.profiles) {
            unsigned expected = 0;
            for (unsigned start = 0; start < 8; ++start) {
              bool fits = (profile.starts >> start & 1) != 0 &&
                          compute + profile.compute_slices <= geometry.compute_slices &&
                          (groups == 0 || profile.groups == 0);
              for (unsigned k = 0; fits && k < profile.memory_slices; ++k) {
                fits = (occupied >> (start + k) & 1) == 0;
              }
              if (fits) expected |= 1U << start;
            }
            ASSERT_EQ(free_starts(geometry, profile, state), expected)
                << type << " " << to_string(profile.name) << " " << occupied;
          }
        }
      }
    }
  }
}

// The largest number of disjoint starts of the profile, over all sets of starts.
std::uint32_t plain_capacity(const model::MigGeometry& geometry, const MigState& state,
                             const model::MigProfile& profile) {
  std::uint32_t best = 0;
  const model::MigSlices free = free_starts(geometry, profile, state);
  for (unsigned chosen = 0; chosen < 256; ++chosen) {
    if ((chosen & ~unsigned{free}) != 0) continue;
    std::array<int, model::kMaxMigSlices> taken{};
    std::uint32_t count = 0;
    bool is_disjoint = true;
    for (unsigned start = 0; start < 8; ++start) {
      if ((chosen >> start & 1) == 0) continue;
      ++count;
      for (unsigned k = 0; k < profile.memory_slices; ++k) {
        is_disjoint = is_disjoint && taken[start + k]++ == 0;
      }
    }
    const bool has_compute =
        state.compute_used + count * profile.compute_slices <= geometry.compute_slices;
    const bool is_allowed = count <= 1 || profile.groups == 0;
    if (is_disjoint && has_compute && is_allowed) best = std::max(best, count);
  }
  return best;
}

TEST(MigStates, TheTableIsThatOfPlainEnumeration) {
  for (const std::string_view type : model::gpu_types_with_mig()) {
    const model::MigGeometry& geometry = mig_of(type);
    const MigStates states(geometry);
    for (std::size_t i = 0; i < states.size(); ++i) {
      const auto number = static_cast<MigStateNumber>(i);
      for (std::size_t p = 0; p < states.profiles(); ++p) {
        const model::MigProfile& profile = geometry.profiles[p];
        ASSERT_EQ(states.starts(number, p), free_starts(geometry, profile, states[number]));
        ASSERT_EQ(states.capacity(number, p), plain_capacity(geometry, states[number], profile))
            << type << " " << to_string(profile.name) << " " << i;
        for_each_start(states.starts(number, p), [&](std::uint32_t start) {
          const MigStateNumber next = states.after(number, p, start);
          ASSERT_EQ(states[next], with(states[number], profile, start));
          ASSERT_EQ(without(states[next], profile, start), states[number]);
        });
      }
    }
  }
}

TEST(MigStranded, IsWhatNoProfileOfTheMixCanUse) {
  const model::MigGeometry& h100 = mig_of("H100-80GB");
  const MigStates states(h100);
  const std::size_t one = mig_number_of(h100, "1g.10gb");
  const std::size_t double_memory = mig_number_of(h100, "1g.20gb");
  const std::size_t three = mig_number_of(h100, "3g.40gb");
  std::vector<bool> wanted(states.profiles(), true);
  auto stranded = stranded_by_state(states, wanted);
  EXPECT_EQ(stranded[0], MigStranded());
  const MigStateNumber threes = states.after(states.after(0, three, 0), three, 4);
  EXPECT_EQ(stranded[threes], (MigStranded{.compute_slices = 1, .memory_slices = 0}));
  // The last memory slice has no instance of its own, and its neighbour is taken.
  const MigStateNumber at_the_end = states.after(0, one, 6);
  EXPECT_EQ(stranded[at_the_end], (MigStranded{.compute_slices = 0, .memory_slices = 1}));

  wanted.assign(states.profiles(), false);
  wanted[one] = true;
  stranded = stranded_by_state(states, wanted);
  EXPECT_EQ(stranded[0], (MigStranded{.compute_slices = 0, .memory_slices = 1}));
  wanted[one] = false;
  wanted[double_memory] = true;
  stranded = stranded_by_state(states, wanted);
  EXPECT_EQ(stranded[0], (MigStranded{.compute_slices = 3, .memory_slices = 0}));
  wanted.assign(states.profiles(), false);
  stranded = stranded_by_state(states, wanted);
  EXPECT_EQ(stranded[0], (MigStranded{.compute_slices = 7, .memory_slices = 8}));
}

}  // namespace
}  // namespace gpu_platform::scheduling
