#pragma once

#include "base/units.h"
#include "model/job.h"

namespace gpu_platform::model {

// Returns the memory of a specification: itself and everything that it refers to, each text with
// its own overhead, so that a million empty arguments are not free. It depends only on the value:
// equal specifications have the same size on every machine, however they were made. Cost: the
// number of its texts.
base::Bytes size_of(const JobSpec& spec);

// Returns about the memory of a job in a list: its specification and its steps.
base::Bytes size_in_list(const Job& job);

}  // namespace gpu_platform::model
