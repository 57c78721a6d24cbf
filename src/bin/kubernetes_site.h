#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "config/configuration.h"
#include "controller/snapshot.h"
#include "execution/environment_source.h"
#include "execution/kubernetes/kubernetes_engine.h"

namespace gpu_platform::bin {

// Whether the site names a cluster.
bool has_kubernetes(const config::Configuration& configuration);

// Opens the engine of the site's cluster; null where it names none. `data_dir` gets the output of
// jobs and the name by which this daemon holds the cluster's lease. Errors name the file and key of
// a kubeconfig that is wrong, the rights that are missing, or who else has the cluster. `end`:
// another controller has taken the cluster, so this one must not go on.
base::Result<std::unique_ptr<execution::KubernetesEngine>> open_kubernetes(
    const config::Configuration& configuration, const std::string& data_dir,
    const execution::EnvironmentSource& environment, execution::ObservationSink& sink,
    std::function<void(const base::Error&)> end);

// Whether an attempt has (or had) a node of the cluster.
bool runs_in_kubernetes(const controller::Snapshot& snapshot, const model::Job& job,
                        std::uint32_t attempt);

}  // namespace gpu_platform::bin
