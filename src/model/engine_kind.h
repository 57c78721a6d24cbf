#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

// The kinds of engines that run jobs, and what each can do. A node belongs to one engine; a job may
// run on the nodes of some of them. Decisions ask for a trait, never for a kind, so that a further
// engine is a further row of the table (engine_kind.cpp).

namespace gpu_platform::model {

enum class EngineKind : std::uint8_t {
  kProcess,     // processes of the node, started by the node part
  kKubernetes,  // pods of a cluster
};
inline constexpr std::size_t kEngineKinds = 2;
inline constexpr EngineKind kAllEngineKinds[kEngineKinds] = {EngineKind::kProcess,
                                                             EngineKind::kKubernetes};

// What an engine's nodes can do and must have, as far as decisions depend on it. Traits follow from
// the kind alone, so the journal has none of them.
struct EngineTraits {
  std::string_view name;   // "kubernetes"
  std::string_view place;  // where its jobs run, in a sentence: "in Kubernetes"
  bool delivers_signals = true;
  // Its nodes are this machine or boards of it: a boot of the machine is one of the nodes.
  bool is_on_this_machine = true;
  // A node that comes with another boot id runs nothing from before: no other machine has its name,
  // and nothing that was on its way may still come to it.
  bool is_empty_after_boot = true;
  bool admits_workloads = false;  // pods that others have made
  // A job with an image runs in a container engine of the site (execution.containers).
  bool needs_container_engine = false;
  bool gives_network = false;  // a job with an image always has a network
  // A job has only annotations that the site names in Policy::pod_annotations.
  bool needs_named_annotations = false;
};
const EngineTraits& traits_of(EngineKind kind);

std::string_view to_string(EngineKind kind);  // the name
std::optional<EngineKind> parse_engine_kind(std::string_view text);

// A set of kinds. A bit that no kind has means nothing.
struct EngineSet {
  std::uint8_t bits = 0;

  static constexpr EngineSet of(EngineKind kind) {
    return {static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind))};
  }
  constexpr bool contains(EngineKind kind) const { return (bits & of(kind).bits) != 0; }
  constexpr void add(EngineKind kind) { bits = static_cast<std::uint8_t>(bits | of(kind).bits); }
  constexpr bool empty() const { return bits == 0; }

  friend bool operator==(const EngineSet&, const EngineSet&) = default;
};
inline constexpr EngineSet kProcessesOnly = EngineSet::of(EngineKind::kProcess);
inline constexpr EngineSet kAnyEngine = {(1U << kEngineKinds) - 1};

// The kinds in the set, in the order of their enumerators.
std::vector<EngineKind> kinds_in(EngineSet set);

}  // namespace gpu_platform::model
