#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/capacity.h"
#include "model/gpu_clock.h"
#include "model/ids.h"
#include "model/ledger.h"
#include "model/node.h"
#include "model/price.h"
#include "model/reservation.h"

// The lines of the ledger that are of the time that no attempt holds. The controller adds those of
// an interval when it ends; a reader makes those of one that goes on, as if it ended now.

namespace gpu_platform::accounting {

// A GPU in an interval. The texts outlive the call.
struct RestingGpu {
  model::NodeId node;
  std::string_view node_name;
  model::CapacityClass capacity = model::CapacityClass::kOnDemand;
  std::uint32_t index = 0;  // within the node
  std::string_view uuid;
  std::string_view type;
  model::GpuClock clock;
};
RestingGpu resting_gpu(const model::Node& node, std::uint32_t index);

using ReservationMap = std::map<std::string, model::Reservation, std::less<>>;  // by name

// Appends the lines of the present interval of the GPU until `until`, in the order of time. The
// begin and the end of a reservation are no events: what is idle is cut there, and its times are
// kReserved. Lines are cut where the price changes, too. Nothing is appended if all of the GPU is
// held, it has not been seen, or less than a millisecond has passed.
void append_rest_lines(const RestingGpu& gpu, const ReservationMap& reservations,
                       const model::PriceBook& prices, base::Instant until,
                       std::vector<model::LedgerLine>& lines);

}  // namespace gpu_platform::accounting
