#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/persistent_map.h"
#include "base/units.h"
#include "model/capacity.h"
#include "model/job.h"
#include "model/ledger.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/price.h"

// The lines of the ledger that are of attempts. The controller adds those of an attempt when it is
// released; a reader makes those of an attempt that goes on, as if it were released now.

namespace gpu_platform::accounting {

// What the lines of an attempt say beside what the attempt says. All of it outlives the call.
struct LineTerms {
  const base::PersistentMap<model::Node>& nodes;  // by NodeId
  const model::PriceBook& prices;
  const model::Policy& policy;  // its billing, and the teams that have discounts
};

// A time in which what an attempt holds of GPUs stays as it is: from <= started <= ended <= to. The
// platform prepares until `started`, the attempt uses the GPUs until `ended`, and the platform
// cleans up until `to`. Of an attempt that never started, the three are one.
struct Segment {
  model::Millis from = 0;
  model::Millis started = 0;
  model::Millis ended = 0;
  model::Millis to = 0;

  friend bool operator==(const Segment&, const Segment&) = default;
};

// Returns the attempt's segments from its request until its release, or until `until` if it still
// holds something: in their order, without gaps. It is one today. An attempt that gives its GPUs
// back for a time, or moves to others, will have several. Times that an engine told and that lie
// outside are moved to the nearest that does not.
std::vector<Segment> segments_of(const model::Attempt& attempt, base::Instant until);

// Returns why the attempt's use costs its owner nothing, as far as is known now; kBilled of one
// that goes on. There are two rules. What hardware or the platform took is never billed: a node
// that is lost counts as hardware, spot or not, for nothing proves that its provider took it back.
// What was stopped for others is billed, unless `preempted_is_free`: its owner chose the class, the
// borrowed GPUs or the spot capacity. `capacity`: of its nodes.
model::NotBilled not_billed_of(const model::Job& job, const model::Attempt& attempt,
                               model::CapacityClass capacity, const model::Billing& billing);

// Returns what the team pays less, in basis points: the discount of the nearest team, from it
// upwards, that has one. Zero: none has.
std::uint32_t discount_of(const model::Policy& policy, std::string_view team);

// Appends the lines of the attempt until its release, or until `until` if it still holds something:
// for each GPU, in the order of the allocation, one for each segment, and the same for each node
// without GPUs. Where the price changes, a line is cut in two (LedgerLine::segment counts all): the
// first has the time before its start, the last that of its cleaning. Nothing is appended for less
// than a millisecond.
void append_lines(const LineTerms& terms, const model::Job& job, const model::Attempt& attempt,
                  base::Instant until, std::vector<model::LedgerLine>& lines);

}  // namespace gpu_platform::accounting
