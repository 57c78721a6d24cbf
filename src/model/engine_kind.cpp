#include "model/engine_kind.h"

#include <iterator>

namespace gpu_platform::model {

namespace {

// By kind: one row an engine.
constexpr EngineTraits kTraits[] = {
    {.name = "process",
     .place = "on this host",
     .delivers_signals = true,
     .is_on_this_machine = true,
     .is_empty_after_boot = true,
     .admits_workloads = false,
     .needs_container_engine = true},
    // Another machine may have the name of a node of a cluster, and a pod that had no node before
    // may come to it.
    {.name = "kubernetes",
     .place = "in Kubernetes",
     .delivers_signals = false,
     .is_on_this_machine = false,
     .is_empty_after_boot = false,
     .admits_workloads = true,
     .needs_container_engine = false,
     .gives_network = true,
     .needs_named_annotations = true},
};
static_assert(std::size(kTraits) == kEngineKinds);

}  // namespace

const EngineTraits& traits_of(EngineKind kind) {
  return kTraits[static_cast<std::size_t>(kind)];
}

std::string_view to_string(EngineKind kind) {
  return traits_of(kind).name;
}

std::optional<EngineKind> parse_engine_kind(std::string_view text) {
  for (const EngineKind kind : kAllEngineKinds) {
    if (to_string(kind) == text) return kind;
  }
  return std::nullopt;
}

std::vector<EngineKind> kinds_in(EngineSet set) {
  std::vector<EngineKind> kinds;
  for (const EngineKind kind : kAllEngineKinds) {
    if (set.contains(kind)) kinds.push_back(kind);
  }
  return kinds;
}

}  // namespace gpu_platform::model
