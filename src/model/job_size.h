#pragma once

#include "base/units.h"
#include "model/job.h"

namespace gpu_platform::model {

// What a specification takes of memory: itself and everything that it names, each text with what
// the text itself costs, so that a million empty arguments are not free. Follows from the value
// alone: equal specifications come to the same, on every machine that this program runs on, however
// they were made. Cost: the number of its texts.
base::Bytes size_of(const JobSpec& spec);

}  // namespace gpu_platform::model
