#include "scheduling/mig/mig_shortage.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "scheduling/mig/mig_states.h"

namespace gpu_platform::scheduling {

namespace {

constexpr std::size_t kNamedWays = 3;

using Moves = std::vector<MigMove>;  // ascending

// The fewest moves, then the fewest compute slices, then the lowest jobs.
struct MoveCost {
  std::size_t moves = 0;
  std::uint32_t compute_slices = 0;
  Moves which = {};

  friend auto operator<=>(const MoveCost&, const MoveCost&) = default;
};

// The GPU's state and what it costs without the holders of a set. Nothing: one of them is no job's.
std::optional<std::pair<MigState, MoveCost>> without_holders(const MigGpu& gpu,
                                                             std::uint32_t moved) {
  MigState state;
  MoveCost cost;
  for (std::size_t i = 0; i < gpu.holders.size(); ++i) {
    const MigHolder& holder = gpu.holders[i];
    const model::MigProfile& profile = gpu.geometry->profiles[holder.profile];
    if ((moved >> i & 1) == 0) {
      state = with(state, profile, holder.start);
      continue;
    }
    if (!holder.job.valid()) return std::nullopt;
    ++cost.moves;
    cost.compute_slices += profile.compute_slices;
    cost.which.push_back({holder.job, profile.name});
  }
  std::ranges::sort(cost.which);
  return std::pair(state, std::move(cost));
}

// Returns the cheapest moves after which the profile fits; none at all: it fits now. Nothing: no
// moves help.
std::optional<Moves> cheapest_moves(const MigGpu& gpu, const model::MigProfile& profile) {
  std::optional<MoveCost> cheapest;
  const std::uint32_t sets = 1U << gpu.holders.size();
  for (std::uint32_t moved = 0; moved < sets; ++moved) {
    auto rest = without_holders(gpu, moved);
    if (!rest || free_starts(*gpu.geometry, profile, rest->first) == 0) continue;
    if (moved == 0) return Moves();
    if (!cheapest || rest->second < *cheapest) cheapest = std::move(rest->second);
  }
  if (!cheapest) return std::nullopt;
  return std::move(cheapest->which);
}

std::string moves_in_words(const Moves& moves) {
  std::string text;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (i > 0) text += i + 1 == moves.size() ? " and " : ", ";
    text += fmt::format("job {}'s {}", moves[i].job.value, to_string(moves[i].profile));
  }
  return text;
}

std::string no_such_profile(const MigShortage& shortage, std::span<const MigGpu> gpus) {
  std::set<model::MigProfileName> names;
  for (const MigGpu& gpu : gpus) {
    for (const model::MigProfile& profile : gpu.geometry->profiles) names.insert(profile.name);
  }
  const std::string wanted = to_string(shortage.profile);
  if (names.empty()) return fmt::format("no GPU takes MIG instances, so none has {}", wanted);
  std::string list;
  for (const model::MigProfileName& name : names) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", to_string(name));
  }
  return fmt::format("no GPU has the MIG profile {}; there are {}", wanted, list);
}

}  // namespace

MigShortage explain_mig(const model::MigProfileName& profile, std::span<const MigGpu> gpus) {
  MigShortage shortage{.profile = profile};
  std::map<Moves, std::uint32_t> counts;
  for (const MigGpu& gpu : gpus) {
    const auto number = find_profile(*gpu.geometry, profile);
    if (!number) continue;
    ++shortage.gpus_of_profile;
    auto moves = cheapest_moves(gpu, gpu.geometry->profiles[*number]);
    if (!moves) continue;
    if (moves->empty()) {
      ++shortage.gpus_with_place;
    } else {
      ++counts[std::move(*moves)];
    }
  }
  for (auto& [moves, count] : counts) shortage.ways_out.push_back({moves, count});
  std::ranges::stable_sort(shortage.ways_out, {}, [](const MigWayOut& way) {
    return std::tuple(way.moves.size(), -std::int64_t{way.gpus});
  });
  return shortage;
}

std::string sentence_of(const MigShortage& shortage, std::span<const MigGpu> gpus) {
  if (shortage.gpus_of_profile == 0) return no_such_profile(shortage, gpus);
  const std::string profile = to_string(shortage.profile);
  if (shortage.gpus_with_place > 0) {
    return fmt::format("a {} fits on {} GPU{}", profile, shortage.gpus_with_place,
                       shortage.gpus_with_place == 1 ? "" : "s");
  }
  std::string text = fmt::format("a {} fits on no GPU", profile);
  const std::size_t named = std::min(kNamedWays, shortage.ways_out.size());
  for (std::size_t i = 0; i < named; ++i) {
    const MigWayOut& way = shortage.ways_out[i];
    text += fmt::format("{} {} could hold it if {} were elsewhere", i == 0 ? ":" : ",", way.gpus,
                        moves_in_words(way.moves));
  }
  std::uint32_t others = 0;
  for (std::size_t i = named; i < shortage.ways_out.size(); ++i)
    others += shortage.ways_out[i].gpus;
  if (others > 0) text += fmt::format(", and {} more if other instances were", others);
  return text;
}

}  // namespace gpu_platform::scheduling
