#pragma once

#include "base/result.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"

// Whether there is a place for what is submitted: in the queue, and in the memory that jobs take.
// Of both each user may have a part, and the last part of the whole is root's, so that nobody who
// has filled them keeps root from its work. Administrators, and the user that the daemon runs as,
// are held to the whole alone.

namespace gpu_platform::controller {

base::Status check_queue_limits(const State& state, const model::Caller& caller,
                                const model::JobSpec& spec);

// A longer name or more labels, which every member of an array may be given of its own.
base::Status check_growth(const State& state, const model::Caller& caller, const model::Job& job,
                          const model::JobChanged& change);

}  // namespace gpu_platform::controller
