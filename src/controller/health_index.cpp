#include "controller/health_index.h"

#include <string_view>

#include "model/taint.h"

namespace gpu_platform::controller {

void HealthIndex::enter(const model::Node& node) {
  for (std::uint32_t i = 0; i < node.gpus.size(); ++i) enter({node.id, i}, node.gpus[i]);
}

void HealthIndex::leave(const model::Node& node) {
  for (std::uint32_t i = 0; i < node.gpus.size(); ++i) leave({node.id, i}, node.gpus[i]);
}

void HealthIndex::enter(const model::Node& node, std::optional<std::uint32_t> gpu) {
  if (gpu) enter({node.id, *gpu}, node.gpus.at(*gpu));
}

void HealthIndex::leave(const model::Node& node, std::optional<std::uint32_t> gpu) {
  if (gpu) leave({node.id, *gpu}, node.gpus.at(*gpu));
}

void HealthIndex::enter(model::GpuRef place, const model::Gpu& gpu) {
  if (!gpu.withheld_verdict.empty()) withheld_.insert(place);
  if (model::find_taint(gpu.taints, model::TaintSource::kReset) != nullptr) resets_.insert(place);
  const model::Taint* const own = model::find_taint(gpu.taints, model::TaintSource::kHealth);
  if (own != nullptr && own->effect == model::TaintEffect::kDegraded) degraded_.insert(place);
  if (gpu.evidence->empty()) return;
  with_evidence_.insert(place);
  uuids_.emplace(gpu.info.uuid, place);
  for (const model::Evidence& piece : *gpu.evidence) {
    if (piece.job.valid()) jobs_.emplace(piece.job, place);
    if (!piece.program.empty()) programs_.emplace(piece.user, piece.program, place);
  }
}

void HealthIndex::leave(model::GpuRef place, const model::Gpu& gpu) {
  withheld_.erase(place);
  resets_.erase(place);
  degraded_.erase(place);
  if (gpu.evidence->empty()) return;
  with_evidence_.erase(place);
  uuids_.erase({gpu.info.uuid, place});
  for (const model::Evidence& piece : *gpu.evidence) {
    if (piece.job.valid()) jobs_.erase({piece.job, place});
    if (!piece.program.empty()) programs_.erase({piece.user, piece.program, place});
  }
}

std::vector<model::GpuRef> HealthIndex::with_job(model::JobId job) const {
  std::vector<model::GpuRef> places;
  for (auto at = jobs_.lower_bound({job, {}}); at != jobs_.end() && at->first == job; ++at) {
    places.push_back(at->second);
  }
  return places;
}

std::vector<model::GpuRef> HealthIndex::with_program(std::string_view user,
                                                     std::string_view program) const {
  std::vector<model::GpuRef> places;
  auto at = programs_.lower_bound({std::string(user), std::string(program), {}});
  for (; at != programs_.end(); ++at) {
    if (std::get<0>(*at) != user || std::get<1>(*at) != program) break;
    places.push_back(std::get<2>(*at));
  }
  return places;
}

std::vector<model::GpuRef> HealthIndex::with_uuid(std::string_view uuid) const {
  std::vector<model::GpuRef> places;
  auto at = uuids_.lower_bound({std::string(uuid), {}});
  for (; at != uuids_.end() && at->first == uuid; ++at) places.push_back(at->second);
  return places;
}

}  // namespace gpu_platform::controller
