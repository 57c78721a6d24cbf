#pragma once

#include <cstdint>

#include "controller/apply/application.h"
#include "model/allocation.h"
#include "model/reservation.h"

// The clocks of GPUs (model/gpu_clock.h): whatever changes what no attempt holds of a GPU, or what
// becomes of that, ends an interval, which is a line of the ledger.

namespace gpu_platform::controller {

// Compares the clocks with what is so now. To be called after each change of holders, of taints and
// of preemption holds, for the GPUs that it concerns. Cost: their holders and taints, and the
// preemption holds for those that have a rest.
void follow_clock(Application& a, model::Node& node, std::uint32_t gpu);
void follow_clocks(Application& a, model::Node& node);
void follow_clocks(Application& a, const model::Allocation& allocation);

// Ends the intervals of the GPUs that the description forgets or gives another type, and of all if
// it gives the node another class: until now they were as they were. To be called before it is
// taken over.
void end_intervals_before(Application& a, model::Node& node, const model::NodeInfo& info);

// Ends the idle intervals of the reservation's GPUs, if it has begun: what was reserved until now
// is told by the reservation as it is. To be called before it changes or ends.
void end_intervals_before_change(Application& a, const model::Reservation& reservation);

}  // namespace gpu_platform::controller
