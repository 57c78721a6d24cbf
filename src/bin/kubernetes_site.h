#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "config/configuration.h"
#include "execution/environment_source.h"
#include "execution/kubernetes/exporter/exporter_reader.h"
#include "execution/kubernetes/kubernetes_engine.h"

namespace gpu_platform::bin {

// Waits until this process has the lease of the site's cluster, which must be named. Returns the
// name by which it has it; empty if `wait` said before that the process must end. `wait`: waits
// for that time, or until it is to end: then it returns false. `must_end`: whether it is to end,
// while the cluster is asked. `tell`: why it waits.
base::Result<std::string> stand_by_for_kubernetes(const config::Configuration& configuration,
                                                  std::function<bool(base::Duration)> wait,
                                                  std::function<bool()> must_end,
                                                  std::function<void(const std::string&)> tell);

// Gives the lease of the site's cluster back, if it is this daemon's: the next one has it at once.
// `holder`: the name by which it is held; empty: that of the data directory.
void release_kubernetes_lease(const config::Configuration& configuration,
                              const std::string& data_dir, const std::string& holder);

// Opens the engine of the site's cluster; null where it names none. `data_dir` gets the output of
// jobs and the name by which this daemon holds the cluster's lease: `holder`, or, if that is empty,
// the one that it has already. Errors name the file and key of
// a kubeconfig that is wrong, the rights that are missing, who else has the cluster, or what of
// another data directory is there where this one is new to it. `end`:
// another controller has taken the cluster, so this one must not go on. `must_end`: whether the
// process is to end, so that no answer of the cluster is waited for any more.
base::Result<std::unique_ptr<execution::KubernetesEngine>> open_kubernetes(
    const config::Configuration& configuration, const std::string& data_dir,
    const std::string& holder, const execution::EnvironmentSource& environment,
    execution::ObservationSink& sink, execution::WorkloadPort& workload_port,
    std::function<void(const base::Error&)> end, std::function<bool()> must_end);

// Starts reading the GPUs of the site's cluster from its exporters; null where the site does not
// want that. `take` is called on the reader's thread. Errors as above.
base::Result<std::unique_ptr<execution::ExporterReader>> start_exporter_reader(
    const config::Configuration& configuration, execution::ExporterScraper::Take take);

}  // namespace gpu_platform::bin
