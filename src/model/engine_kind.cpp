#include "model/engine_kind.h"

namespace gpu_platform::model {

namespace {

constexpr std::string_view kEngineNames[kEngineKinds] = {"process", "kubernetes"};

}  // namespace

std::string_view to_string(EngineKind kind) {
  return kEngineNames[static_cast<std::size_t>(kind)];
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
