#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

// The kinds of engines that run jobs. A node belongs to one engine; a job may run on the nodes of
// some of them.

namespace gpu_platform::model {

enum class EngineKind : std::uint8_t {
  kProcess,     // processes of the node, started by the node part
  kKubernetes,  // pods of a cluster
};
inline constexpr std::size_t kEngineKinds = 2;
inline constexpr EngineKind kAllEngineKinds[kEngineKinds] = {EngineKind::kProcess,
                                                             EngineKind::kKubernetes};
std::string_view to_string(EngineKind kind);  // "kubernetes"
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
