#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "base/units.h"
#include "model/node.h"

namespace gpu_platform::controller {

// A taint that ends by itself: of a node, or of one of its GPUs.
struct TaintEnd {
  base::Instant at;
  model::NodeId node;
  std::optional<std::uint32_t> gpu;

  friend auto operator<=>(const TaintEnd&, const TaintEnd&) = default;
};

// Finds the taints of operators that end by themselves.
// Ownership: values. Thread: one owner. Cost: O(GPUs of the node x log ends) to enter and to leave.
class TaintEnds {
 public:
  void enter(const model::Node& node);
  // `node` has the taints that it was entered with.
  void leave(const model::Node& node);

  // Returns the one that ends first; nothing if none ever does.
  std::optional<TaintEnd> next() const;

  friend bool operator==(const TaintEnds&, const TaintEnds&) = default;

 private:
  std::set<TaintEnd> ends_;
};

}  // namespace gpu_platform::controller
