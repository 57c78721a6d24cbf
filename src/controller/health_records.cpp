#include "controller/health_records.h"

#include <utility>

namespace gpu_platform::controller {

namespace {

const model::Gpu& kept_of(const State& state, model::GpuRef place) {
  return state.nodes.find(place.node.value)->gpus.at(place.index);
}

}  // namespace

HealthRecords::HealthRecords(const State& state, model::NodeId node,
                             std::optional<std::uint32_t> gpu,
                             std::vector<model::Evidence> evidence)
    : state_(state), trial_({state.nodes.find(node.value), gpu, std::move(evidence)}) {}

std::span<const model::Evidence> HealthRecords::of_gpu(std::string_view uuid) const {
  if (trial_ && trial_->gpu && trial_->node->gpus.at(*trial_->gpu).info.uuid == uuid) {
    return trial_->evidence;
  }
  // A GPU that moved to another node begins anew there: what its driver lists goes first.
  const model::Gpu* found = nullptr;
  for (const model::GpuRef& place : state_.health.with_uuid(uuid)) {
    const model::Gpu& gpu = kept_of(state_, place);
    if (found == nullptr || (gpu.is_reported && !found->is_reported)) found = &gpu;
  }
  if (found == nullptr) return {};
  return *found->evidence;
}

std::span<const model::Evidence> HealthRecords::of_node(std::string_view name) const {
  if (trial_ && !trial_->gpu && trial_->node->name == name) return trial_->evidence;
  const model::Node* const node = find_node(name);
  if (node == nullptr) return {};
  return *node->evidence;
}

std::vector<std::string_view> HealthRecords::gpus_with_job(model::JobId job) const {
  return names_of(state_.health.with_job(job));
}

std::vector<std::string_view> HealthRecords::gpus_with_program(std::string_view user,
                                                               std::string_view program) const {
  return names_of(state_.health.with_program(user, program));
}

std::vector<std::string_view> HealthRecords::gpus_of_node(std::string_view name) const {
  std::vector<std::string_view> names;
  const model::Node* const node = find_node(name);
  if (node == nullptr) return names;
  for (const model::Gpu& gpu : node->gpus) names.push_back(gpu.info.uuid);
  return names;
}

std::vector<std::string_view> HealthRecords::names_of(
    const std::vector<model::GpuRef>& places) const {
  std::vector<std::string_view> names;
  names.reserve(places.size());
  for (const model::GpuRef& place : places) names.push_back(kept_of(state_, place).info.uuid);
  return names;
}

const model::Node* HealthRecords::find_node(std::string_view name) const {
  const auto known = state_.node_ids.find(name);
  return known == state_.node_ids.end() ? nullptr : state_.nodes.find(known->second.value);
}

health::GpuKey key_of(const State& state, model::GpuRef place) {
  const model::Node& node = *state.nodes.find(place.node.value);
  const model::GpuInfo& info = node.gpus.at(place.index).info;
  return {node.name, info.uuid, info.type};
}

}  // namespace gpu_platform::controller
