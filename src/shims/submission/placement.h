#pragma once

#include "base/result.h"
#include "client/client.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "shims/options/option_table.h"
#include "shims/submission/partition_choice.h"
#include "shims/submission/resources.h"

// The places where a job may run: types of GPU, names of nodes, whole nodes.

namespace gpu_platform::shims {

// The number of nodes of a job that leaves it open (resources.h), by those of the daemon that it
// may have.
base::Result<std::uint32_t> fewest_nodes(client::Client& client, const Settings& settings,
                                         const Resources& resources, const SiteChoice& choice);

// Puts types and nodes into the request: those of -C, --gres=gpu:TYPE and the partition, of -w and
// -x; and with --exclusive all GPUs and CPUs of a node, of unlike nodes those of one size. `spec`
// has the resources already. Errors name the option.
base::Status put_placement(client::Client& client, const Settings& settings,
                           const Resources& resources, const SiteChoice& choice, base::Instant now,
                           v1::JobSpec& spec);

}  // namespace gpu_platform::shims
