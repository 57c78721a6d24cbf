#include "health/case_book.h"

#include "base/check.h"

namespace gpu_platform::health {

namespace {

using model::Evidence;
using model::EvidenceKind;

std::vector<std::string_view> views_of(const auto& names) {
  return {names.begin(), names.end()};
}

}  // namespace

CaseBook::Gpu& CaseBook::gpu_at(const GpuKey& gpu) {
  const auto found = gpus_.find(gpu.uuid);
  if (found != gpus_.end()) {
    if (!gpu.type.empty()) found->second.type = gpu.type;
    return found->second;
  }
  gpus_of_nodes_[std::string(gpu.node)].emplace(gpu.uuid);
  return gpus_.emplace(std::string(gpu.uuid), Gpu{std::string(gpu.node), std::string(gpu.type), {}})
      .first->second;
}

void CaseBook::add_gpu(const GpuKey& gpu) {
  gpu_at(gpu);
}

// Others look at this GPU where its job or its node is theirs, too.
void CaseBook::touch_gang(const Gpu& gpu, const Evidence& piece) {
  if (piece.kind == EvidenceKind::kJobStarted) return;
  if (piece.job.valid()) {
    const auto job = jobs_.find(piece.job);
    if (job != jobs_.end()) touched_.insert(job->second.gpus.begin(), job->second.gpus.end());
  }
  const bool clears_program = piece.kind == EvidenceKind::kJobEnded;
  if (clears_program || piece.kind == EvidenceKind::kXid) {
    const auto same = gpus_of_programs_.find(std::pair(piece.user, piece.program));
    const bool is_named = !piece.program.empty() || !piece.user.empty();
    if (is_named && same != gpus_of_programs_.end()) {
      touched_.insert(same->second.begin(), same->second.end());
    }
  }
  if (piece.kind == EvidenceKind::kXid || piece.kind == EvidenceKind::kLost) {
    const auto node = gpus_of_nodes_.find(gpu.node);
    if (piece.code != 45 && node != gpus_of_nodes_.end()) {
      touched_.insert(node->second.begin(), node->second.end());
    }
  }
}

void CaseBook::add(const GpuKey& key, Evidence piece) {
  Gpu& gpu = gpu_at(key);
  if (piece.job.valid()) {
    Job& job = jobs_[piece.job];
    if (piece.user.empty()) piece.user = job.user;
    if (piece.program.empty()) piece.program = job.program;
    job.gpus.emplace(key.uuid);
  }
  if (!piece.user.empty() || !piece.program.empty()) {
    gpus_of_programs_[std::pair(piece.user, piece.program)].emplace(key.uuid);
  }
  // A symptom and a start are no news of the GPU.
  const bool is_symptom = piece.kind == EvidenceKind::kXid && piece.code == 45;
  if (!is_symptom) {
    touched_.emplace(key.uuid);
    touch_gang(gpu, piece);
  }
  keep(gpu.pieces, std::move(piece));
}

void CaseBook::add_to_node(std::string_view node, Evidence piece) {
  auto found = nodes_.find(node);
  if (found == nodes_.end())
    found = nodes_.emplace(std::string(node), std::vector<Evidence>()).first;
  keep(found->second, std::move(piece));
  const auto gpus = gpus_of_nodes_.find(node);
  if (gpus != gpus_of_nodes_.end()) touched_.insert(gpus->second.begin(), gpus->second.end());
}

void CaseBook::start_job(const std::vector<GpuKey>& gpus, const Evidence& start) {
  Job& job = jobs_[start.job];
  if (!start.user.empty()) job.user = start.user;
  if (!start.program.empty()) job.program = start.program;
  for (const GpuKey& gpu : gpus) job.gpus.emplace(gpu.uuid);
  for (const GpuKey& gpu : gpus) add(gpu, start);
}

void CaseBook::end_job(model::JobId id, const Evidence& end) {
  const std::set<std::string> gpus = jobs_[id].gpus;
  for (const std::string& uuid : gpus) add(key(uuid), end);
}

std::vector<std::string> CaseBook::take_touched() {
  std::vector<std::string> touched(touched_.begin(), touched_.end());
  touched_.clear();
  return touched;
}

GpuKey CaseBook::key(std::string_view uuid) const {
  const auto found = gpus_.find(uuid);
  CHECK(found != gpus_.end());
  return {found->second.node, found->first, found->second.type};
}

std::vector<std::string> CaseBook::gpus() const {
  std::vector<std::string> names;
  for (const auto& [uuid, gpu] : gpus_) names.push_back(uuid);
  return names;
}

std::vector<GpuKey> CaseBook::gpus_of_job(model::JobId job) const {
  std::vector<GpuKey> keys;
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return keys;
  for (const std::string& uuid : found->second.gpus) keys.push_back(key(uuid));
  return keys;
}

std::span<const Evidence> CaseBook::of_gpu(std::string_view uuid) const {
  const auto found = gpus_.find(uuid);
  return found == gpus_.end() ? std::span<const Evidence>() : found->second.pieces;
}

std::span<const Evidence> CaseBook::of_node(std::string_view node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? std::span<const Evidence>() : found->second;
}

std::vector<std::string_view> CaseBook::gpus_with_job(model::JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? std::vector<std::string_view>() : views_of(found->second.gpus);
}

std::vector<std::string_view> CaseBook::gpus_with_program(std::string_view user,
                                                          std::string_view program) const {
  const auto found = gpus_of_programs_.find(std::pair(std::string(user), std::string(program)));
  return found == gpus_of_programs_.end() ? std::vector<std::string_view>()
                                          : views_of(found->second);
}

std::vector<std::string_view> CaseBook::gpus_of_node(std::string_view node) const {
  const auto found = gpus_of_nodes_.find(node);
  return found == gpus_of_nodes_.end() ? std::vector<std::string_view>() : views_of(found->second);
}

}  // namespace gpu_platform::health
