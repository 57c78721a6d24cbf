#include "scheduling/mig/mig_search.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace gpu_platform::scheduling {

namespace {

constexpr std::size_t kWordBits = 64;

std::vector<std::uint64_t> worths_of(const MigStates& states,
                                     const std::vector<std::uint64_t>& weights) {
  std::vector<std::uint64_t> worths(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (std::size_t p = 0; p < states.profiles(); ++p) {
      worths[i] += weights[p] * states.capacity(static_cast<MigStateNumber>(i), p) *
                   states.geometry().profiles[p].compute_slices;
    }
  }
  return worths;
}

// Returns the entry of the state, with the start that loses the least.
MigRanking::Entry best_entry(const MigStates& states, const std::vector<std::uint64_t>& worths,
                             std::size_t profile, MigStateNumber state) {
  MigRanking::Entry entry{.loss = std::numeric_limits<std::uint64_t>::max(), .state = state};
  for_each_start(states.starts(state, profile), [&](std::uint32_t start) {
    const std::uint64_t loss = worths[state] - worths[states.after(state, profile, start)];
    if (loss >= entry.loss) return;
    entry.loss = loss;
    entry.start = static_cast<std::uint8_t>(start);
  });
  return entry;
}

}  // namespace

MigRanking::MigRanking(const MigStates& states, const std::vector<std::uint64_t>& weights)
    : entries_(states.profiles()), places_(states.profiles()) {
  CHECK(weights.size() == states.profiles());
  const std::vector<std::uint64_t> worths = worths_of(states, weights);
  const auto level_of = [&](const Entry& entry) {
    const MigState& state = states[entry.state];
    return std::tuple(entry.loss, -std::popcount(state.occupied), -int{state.compute_used});
  };
  for (std::size_t p = 0; p < states.profiles(); ++p) {
    std::vector<Entry>& entries = entries_[p];
    for (std::size_t i = 0; i < states.size(); ++i) {
      const auto state = static_cast<MigStateNumber>(i);
      if (states.starts(state, p) != 0) entries.push_back(best_entry(states, worths, p, state));
    }
    std::ranges::stable_sort(entries, {}, level_of);
    places_[p].assign(states.size(), kUnranked);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      places_[p][entries[i].state] = static_cast<std::uint16_t>(i);
      if (i == 0) continue;
      const bool is_next = level_of(entries[i - 1]) != level_of(entries[i]);
      entries[i].level = entries[i - 1].level + (is_next ? 1 : 0);
    }
  }
}

MigIndex::MigIndex(std::shared_ptr<const MigStates> states)
    : states_(std::move(states)), buckets_(states_->size()) {
  follow(MigDemand(states_->profiles()));
}

std::optional<MigState> MigIndex::exchange(const model::GpuRef& gpu,
                                           const std::optional<MigState>& state) {
  std::optional<MigState> former;
  const auto known = numbers_.find(gpu);
  if (known != numbers_.end()) {
    const MigStateNumber number = known->second;
    former = (*states_)[number];
    if (former == state) return former;
    CHECK(buckets_[number].erase(gpu) == 1);
    if (buckets_[number].empty()) mark(number, false);
    numbers_.erase(known);
  }
  if (state) {
    const auto number = states_->find(*state);
    CHECK(number.has_value());
    numbers_.emplace(gpu, *number);
    buckets_[*number].insert(gpu);
    if (buckets_[*number].size() == 1) mark(*number, true);
  }
  return former;
}

void MigIndex::follow(const MigDemand& demand) {
  ranking_ = std::make_shared<const MigRanking>(*states_, demand.weights());
  is_wanted_ = demand.is_wanted();
  mark_all();
}

std::optional<MigState> MigIndex::find(const model::GpuRef& gpu) const {
  const auto found = numbers_.find(gpu);
  if (found == numbers_.end()) return std::nullopt;
  return (*states_)[found->second];
}

std::size_t MigIndex::gpus_with_place(std::size_t profile) const {
  std::size_t gpus = 0;
  for (const MigRanking::Entry& entry : ranking_->of(profile)) gpus += buckets_[entry.state].size();
  return gpus;
}

MigStranded MigIndex::stranded() const {
  const std::vector<MigStranded> by_state = stranded_by_state(*states_, is_wanted_);
  MigStranded sum;
  for (std::size_t i = 0; i < by_state.size(); ++i) {
    const auto gpus = static_cast<std::uint32_t>(buckets_[i].size());
    sum.compute_slices += by_state[i].compute_slices * gpus;
    sum.memory_slices += by_state[i].memory_slices * gpus;
  }
  return sum;
}

std::optional<MigChoice> MigIndex::best(std::size_t profile) const {
  const std::vector<MigRanking::Entry>& entries = ranking_->of(profile);
  std::size_t at = next_filled(profile, 0);
  if (at >= entries.size()) return std::nullopt;
  const std::uint32_t level = entries[at].level;
  std::optional<MigChoice> best;
  for (; at < entries.size() && entries[at].level == level; at = next_filled(profile, at + 1)) {
    const MigRanking::Entry& entry = entries[at];
    const model::GpuRef& gpu = *buckets_[entry.state].begin();
    if (!best || gpu < best->gpu) best = MigChoice{gpu, entry.start, entry.loss};
  }
  return best;
}

MigIndex::Part* MigIndex::lowest_of(std::vector<Part>& parts) {
  Part* lowest = nullptr;
  for (Part& part : parts) {
    if (part.at == part.end) continue;
    if (lowest == nullptr || *part.at < *lowest->at) lowest = &part;
  }
  return lowest;
}

// Returns a place beyond the last one if no state from there on has a GPU.
std::size_t MigIndex::next_filled(std::size_t profile, std::size_t from) const {
  const std::vector<std::uint64_t>& words = is_filled_[profile];
  std::size_t word = from / kWordBits;
  if (word >= words.size()) return ranking_->of(profile).size();
  std::uint64_t bits = words[word] >> from % kWordBits << from % kWordBits;
  while (bits == 0) {
    if (++word == words.size()) return ranking_->of(profile).size();
    bits = words[word];
  }
  return word * kWordBits + static_cast<std::size_t>(std::countr_zero(bits));
}

void MigIndex::mark(MigStateNumber state, bool is_filled) {
  for (std::size_t p = 0; p < states_->profiles(); ++p) {
    const std::uint16_t place = ranking_->place(p, state);
    if (place == MigRanking::kUnranked) continue;
    std::uint64_t& word = is_filled_[p][place / kWordBits];
    const std::uint64_t bit = std::uint64_t{1} << place % kWordBits;
    word = is_filled ? word | bit : word & ~bit;
  }
}

void MigIndex::mark_all() {
  is_filled_.assign(states_->profiles(), {});
  for (std::size_t p = 0; p < states_->profiles(); ++p) {
    is_filled_[p].resize((ranking_->of(p).size() + kWordBits - 1) / kWordBits);
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    if (!buckets_[i].empty()) mark(static_cast<MigStateNumber>(i), true);
  }
}

void MigIndex::encode(base::Encoder& out) const {
  out.u64(numbers_.size());
  for (const auto& [gpu, number] : numbers_) {
    const MigState& state = (*states_)[number];
    out.u64(gpu.node.value);
    out.u64(gpu.index);
    out.u64(state.occupied);
    out.u64(state.compute_used);
    out.u64(state.groups);
    out.boolean(buckets_[number].contains(gpu));
    for (std::size_t p = 0; p < states_->profiles(); ++p) {
      const std::uint16_t place = ranking_->place(p, number);
      out.boolean(place != MigRanking::kUnranked && next_filled(p, place) == place);
    }
  }
}

}  // namespace gpu_platform::scheduling
