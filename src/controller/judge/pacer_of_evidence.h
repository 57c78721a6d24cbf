#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/units.h"
#include "model/evidence.h"
#include "model/ids.h"

namespace gpu_platform::controller {

// Bounds what is written of a GPU's evidence. Each GPU, and each node, has kTurns turns, and gets a
// further one every kTurnEvery: in a storm 44 pieces in the first hour, and 36 in each further one.
// What comes without a turn is added up and written with the next ones, the oldest first. A daemon
// that is killed loses what it has put off.
// Ownership: values. Thread: one owner. Cost: O(log GPUs that had evidence), and to find what is
// due O(GPUs that have put something off).
class PacerOfEvidence {
 public:
  static constexpr std::uint32_t kTurns = 8;
  static constexpr base::Duration kTurnEvery = base::seconds(100);
  // The place of a node itself: of no GPU.
  static constexpr std::uint32_t kNodeItself = 0xFFFF'FFFF;

  // Returns whether the place has a turn, which is used.
  bool take_turn(model::GpuRef place, base::Instant now);
  void put_off(model::GpuRef place, model::Evidence piece);
  const std::vector<model::Evidence>& put_off_of(model::GpuRef place) const;
  std::vector<model::Evidence> take_put_off(model::GpuRef place);

  struct Due {
    model::GpuRef place;
    model::Evidence piece;
  };
  // Returns the next piece that was put off and has a turn now.
  std::optional<Due> next(base::Instant now);
  std::optional<base::Instant> next_at() const;

 private:
  struct Place {
    base::Instant full_at;  // when it has all turns again
    std::vector<model::Evidence> waiting;
  };
  static base::Instant turn_at(const Place& place);

  std::map<model::GpuRef, Place> places_;
  std::set<model::GpuRef> waiting_;  // those that have put something off
};

}  // namespace gpu_platform::controller
