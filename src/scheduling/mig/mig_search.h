#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/codec.h"
#include "model/ids.h"
#include "scheduling/mig/mig_demand.h"
#include "scheduling/mig/mig_states.h"

// Where an instance costs the future least.

namespace gpu_platform::scheduling {

struct MigChoice {
  model::GpuRef gpu;
  std::uint32_t start = 0;
  std::uint64_t loss = 0;

  friend bool operator==(const MigChoice&, const MigChoice&) = default;
};

// For each profile, the states in which it fits, the best first, and the best start in each.
//
// A state is worth the sum over the profiles of their weight × the instances of the profile that
// can still be made × their compute slices. The loss of a choice is what its GPU is worth less
// afterwards. The order: the least loss, then the most occupied memory slices, then the most used
// compute slices; GPUs that tie in these are on one level. Counting only whether a profile still
// fits would be as cheap, but it gives up the second of two places as if it were worth nothing.
class MigRanking {
 public:
  struct Entry {
    std::uint64_t loss = 0;
    MigStateNumber state = 0;
    std::uint8_t start = 0;
    std::uint32_t level = 0;  // ascending
  };
  static constexpr std::uint16_t kUnranked = 0xFFFF;

  // Cost: the states × the profiles and their starts, and a sort.
  MigRanking(const MigStates& states, const std::vector<std::uint64_t>& weights);

  const std::vector<Entry>& of(std::size_t profile) const { return entries_[profile]; }
  // Returns the place of the state among the profile's entries; kUnranked where it does not fit.
  std::uint16_t place(std::size_t profile, MigStateNumber state) const {
    return places_[profile][state];
  }

 private:
  std::vector<std::vector<Entry>> entries_;         // by profile
  std::vector<std::vector<std::uint16_t>> places_;  // by profile and state
};

// All GPUs of one geometry that take instances, by their states, and the search among them. Any
// start that fits is found: a request is refused only if no GPU has a place for it.
//
// Ownership: holds copies, and shares the states. Thread: one owner. Cost: exchange O(log GPUs); a
// search some look-ups, and one step for each GPU that the caller passes over; follow() makes a
// ranking, and comes with one of MigDemand::kEpoch requests.
class MigIndex {
 public:
  explicit MigIndex(std::shared_ptr<const MigStates> states);

  const MigStates& states() const { return *states_; }

  // Replaces the state of the GPU and returns the former one. Nothing stands for a GPU that is not
  // here: it takes no instance. The state must be one of states().
  std::optional<MigState> exchange(const model::GpuRef& gpu, const std::optional<MigState>& state);
  // Decides by this demand from now on.
  void follow(const MigDemand& demand);

  std::size_t size() const { return numbers_.size(); }
  std::optional<MigState> find(const model::GpuRef& gpu) const;
  // Returns how many GPUs have a place for an instance of the profile.
  std::size_t gpus_with_place(std::size_t profile) const;
  // Returns the sum over all GPUs of what the profiles in demand cannot use.
  MigStranded stranded() const;

  // Returns the place that costs the least: on the first level of MigRanking the lowest GPU, and
  // there the lowest start that loses as little. Nothing: no GPU has one.
  std::optional<MigChoice> best(std::size_t profile) const;

  // Calls visit(const MigChoice&) for every GPU that has a place, once, in that order, until it
  // returns true; then returns true as well. The index must not change meanwhile.
  template <class Visit>
  bool any_of_best(std::size_t profile, const Visit& visit) const {
    const std::vector<MigRanking::Entry>& entries = ranking_->of(profile);
    std::vector<Part> level;
    for (std::size_t at = next_filled(profile, 0); at < entries.size();) {
      level.clear();
      const std::uint32_t number = entries[at].level;
      for (; at < entries.size() && entries[at].level == number;
           at = next_filled(profile, at + 1)) {
        const std::set<model::GpuRef>& gpus = buckets_[entries[at].state];
        level.push_back({gpus.begin(), gpus.end(), &entries[at]});
      }
      while (Part* next = lowest_of(level)) {
        const MigRanking::Entry& entry = *next->entry;
        if (visit(MigChoice{*(next->at++), entry.start, entry.loss})) return true;
      }
    }
    return false;
  }

  // All of it in an order of its own, with what the search would find.
  void encode(base::Encoder& out) const;

 private:
  struct Part {
    std::set<model::GpuRef>::const_iterator at;
    std::set<model::GpuRef>::const_iterator end;
    const MigRanking::Entry* entry = nullptr;
  };

  static Part* lowest_of(std::vector<Part>& parts);
  std::size_t next_filled(std::size_t profile, std::size_t from) const;
  void mark(MigStateNumber state, bool is_filled);
  void mark_all();

  std::shared_ptr<const MigStates> states_;  // never null
  std::shared_ptr<const MigRanking> ranking_;
  std::vector<bool> is_wanted_;                        // by profile
  std::map<model::GpuRef, MigStateNumber> numbers_;    // of the GPUs that are here
  std::vector<std::set<model::GpuRef>> buckets_;       // by state
  std::vector<std::vector<std::uint64_t>> is_filled_;  // by profile, bits by place in the ranking
};

}  // namespace gpu_platform::scheduling
