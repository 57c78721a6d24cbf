#include "controller/node_conditions.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "health/evidence_words.h"

namespace gpu_platform::controller {

using model::Evidence;
using model::EvidenceKind;

namespace {

using ByName = std::map<std::string_view, const Evidence*>;

// A condition may change its words while it lasts, so its name alone tells it from others.
void add_latest(std::span<const Evidence> pieces, ByName& latest) {
  for (const Evidence& piece : pieces) {
    if (!is_of_cluster(piece)) continue;
    const Evidence*& known = latest[health::condition_name(piece.text)];
    if (known == nullptr || piece.last >= known->last) known = &piece;
  }
}

void add_lasting(std::span<const Evidence> kept, const std::string& node, const std::string& gpu,
                 std::vector<execution::EvidenceObserved>& lasting) {
  ByName latest;
  add_latest(kept, latest);
  for (const auto& [name, piece] : latest) {
    if (!piece->is_over) lasting.push_back({node, gpu, *piece});
  }
}

}  // namespace

bool is_of_cluster(const Evidence& piece) {
  return piece.kind == EvidenceKind::kNodeCondition &&
         piece.source == model::EvidenceSource::kCluster;
}

bool is_known(const Evidence& piece, const KnownConditions& known) {
  ByName all;
  add_latest(known.kept, all);
  add_latest(known.put_off, all);
  const auto found = all.find(health::condition_name(piece.text));
  const bool lasts = found != all.end() && !found->second->is_over;
  if (piece.is_over) return !lasts;
  return lasts && found->second->text == piece.text && found->second->last >= known.restarted_at;
}

base::Instant restarted_at(const model::Node& node) {
  base::Instant at;
  for (const Evidence& piece : *node.evidence) {
    if (piece.kind == EvidenceKind::kNodeRestarted) at = std::max(at, piece.last);
  }
  return at;
}

std::vector<execution::EvidenceObserved> lasting_conditions(const State& state) {
  std::vector<execution::EvidenceObserved> lasting;
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    add_lasting(*node.evidence, node.name, {}, lasting);
    for (const model::Gpu& gpu : node.gpus) {
      add_lasting(*gpu.evidence, node.name, gpu.info.uuid, lasting);
    }
  });
  return lasting;
}

}  // namespace gpu_platform::controller
