#pragma once

#include <compare>
#include <cstdint>

#include "base/id.h"

namespace gpu_platform::model {

using JobId = base::Id<struct JobIdTag>;
using NodeId = base::Id<struct NodeIdTag>;
using TokenId = base::Id<struct TokenIdTag>;
using EventSeq =
    base::Id<struct EventSeqTag>;  // position of an event in the journal, from 1, no gaps

// One run of a job; attempts count from 1. This pair is the idempotence token of everything done
// for it.
struct AttemptId {
  JobId job;
  std::uint32_t attempt = 0;

  friend auto operator<=>(const AttemptId&, const AttemptId&) = default;
};

// A GPU by its place: index counts from 0 within the node, in PCI bus order.
struct GpuRef {
  NodeId node;
  std::uint32_t index = 0;

  friend auto operator<=>(const GpuRef&, const GpuRef&) = default;
};

}  // namespace gpu_platform::model
