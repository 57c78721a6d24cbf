#pragma once

#include <vector>

#include "base/result.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "kubernetes/pod_messages.h"
#include "model/channel.h"
#include "model/job.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

// Returns where a channel into an attempt leads: its first rank's pod. `pods`: of the attempt, as
// last seen; `spec`: its job's, null if it is not known. Errors say why there is no such place.
base::Result<kubernetes::PodStream> channel_target(const model::ChannelOrder& order,
                                                   const std::vector<PodView>& pods,
                                                   const model::JobSpec* spec);

}  // namespace gpu_platform::execution
