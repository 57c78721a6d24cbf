#pragma once

#include "base/units.h"
#include "config/configuration.h"
#include "execution/kubernetes/exporter/exporter_scraper.h"
#include "execution/kubernetes/settings.h"

namespace gpu_platform::bin {

// The shortest time between two readings of a node by its exporter: each passes the API server.
inline constexpr base::Duration kShortestExporterInterval = base::seconds(15);

// Returns the keys of engines.kubernetes as the engine takes them.
execution::KubernetesSettings kubernetes_settings(const config::Configuration& configuration);

// Returns the keys of engines.kubernetes.exporter in the same way.
execution::ExporterSettings exporter_settings(const config::Configuration& configuration);

}  // namespace gpu_platform::bin
