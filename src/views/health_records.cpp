#include "views/health_records.h"

#include <fmt/format.h>

#include "model/node_lookup.h"

namespace gpu_platform::views {

namespace {

// Pieces of one GPU follow each other, so it is enough to look at the last.
void add_once(std::vector<std::string_view>& gpus, std::string_view uuid) {
  if (gpus.empty() || gpus.back() != uuid) gpus.push_back(uuid);
}

template <class Map, class Key>
std::span<const model::Evidence> found_in(const Map& map, const Key& key) {
  const auto it = map.find(key);
  if (it == map.end()) return {};
  return *it->second;
}

template <class Map, class Key>
std::vector<std::string_view> gpus_in(const Map& map, const Key& key) {
  const auto it = map.find(key);
  return it == map.end() ? std::vector<std::string_view>() : it->second;
}

}  // namespace

HealthRecords::HealthRecords(const controller::Snapshot& snapshot, const IsHidden& is_hidden)
    : snapshot_(snapshot) {
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    if (!node.evidence->empty()) nodes_[node.name] = shown(node.evidence, is_hidden);
    for (const model::Gpu& gpu : node.gpus) take(gpu, is_hidden);
  });
}

HealthRecords::Pieces HealthRecords::shown(const Pieces& kept, const IsHidden& is_hidden) {
  if (!is_hidden) return kept;
  std::vector<model::Evidence> pieces = *kept;
  const auto hide = [this](std::string& name, std::string_view what) {
    if (name.empty()) return;
    const auto [it, is_new] = names_.try_emplace(fmt::format("{} {}", what, name));
    if (is_new) it->second = fmt::format("{} {}", what, names_.size());
    name = it->second;
  };
  for (model::Evidence& piece : pieces) {
    if (!is_hidden(piece)) continue;
    hide(piece.user, "user");
    hide(piece.program, "program");
  }
  return pieces;
}

void HealthRecords::take(const model::Gpu& gpu, const IsHidden& is_hidden) {
  if (gpu.evidence->empty()) return;
  const std::string_view uuid = gpu.info.uuid;
  Pieces& pieces = gpus_[uuid];
  pieces = shown(gpu.evidence, is_hidden);
  for (const model::Evidence& piece : *pieces) {
    if (piece.job.valid()) add_once(gpus_by_job_[piece.job], uuid);
    if (piece.user.empty() && piece.program.empty()) continue;
    add_once(gpus_by_program_[{piece.user, piece.program}], uuid);
  }
}

std::span<const model::Evidence> HealthRecords::of_gpu(std::string_view uuid) const {
  return found_in(gpus_, uuid);
}

std::span<const model::Evidence> HealthRecords::of_node(std::string_view node) const {
  return found_in(nodes_, node);
}

std::vector<std::string_view> HealthRecords::gpus_with_job(model::JobId job) const {
  return gpus_in(gpus_by_job_, job);
}

std::vector<std::string_view> HealthRecords::gpus_with_program(std::string_view user,
                                                               std::string_view program) const {
  return gpus_in(gpus_by_program_, std::pair(std::string(user), std::string(program)));
}

std::vector<std::string_view> HealthRecords::gpus_of_node(std::string_view name) const {
  const model::Node* const node =
      model::node_named(snapshot_.nodes, *snapshot_.nodes_by_name, name);
  std::vector<std::string_view> gpus;
  if (node == nullptr) return gpus;
  for (const model::Gpu& gpu : node->gpus) gpus.emplace_back(gpu.info.uuid);
  return gpus;
}

}  // namespace gpu_platform::views
