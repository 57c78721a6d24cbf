#include "api/evidence_view.h"

#include <algorithm>
#include <utility>

#include "api/convert/evidence.h"
#include "api/convert/job.h"
#include "model/job_spec.h"
#include "os/clock.h"

namespace gpu_platform::api {

namespace {

void show_verdict(const health::GpuVerdict& verdict, v1::GpuVerdict& out) {
  out.set_action(std::string(health::to_string(verdict.action)));
  out.set_fault(std::string(health::to_string(verdict.fault)));
  out.set_confidence_percent(verdict.confidence_percent);
  out.set_text(verdict.text);
  for (const std::string& reason : verdict.reasons) out.add_reasons(reason);
  out.set_rule(verdict.rule);
  out.set_next(verdict.next);
  if (verdict.again_at.is_set()) api::to_proto(verdict.again_at, *out.mutable_again_at());
}

}  // namespace

EvidenceView::EvidenceView(const CallContext& context,
                           std::shared_ptr<const controller::Snapshot> snapshot,
                           const model::Caller& caller)
    : context_(context),
      snapshot_(std::move(snapshot)),
      caller_(caller),
      view_(context.reader.view_of(caller)) {}

bool EvidenceView::is_hidden(const model::Evidence& piece) const {
  // What a person did to a GPU is shown to all, as the reason of a drain is.
  if (piece.source == model::EvidenceSource::kPerson) return false;
  if (!piece.user.empty() && piece.user == caller_.user) return false;
  if (view_.sees_command_of(std::nullopt)) return false;
  const model::Job* const job = snapshot_->jobs.find(piece.job.value);
  return job == nullptr || !view_.sees(model::Sight::kCommands, *job->spec);
}

void EvidenceView::put_verdict(const model::Node& node, const model::Gpu& gpu, v1::GpuHealth& out) {
  for (const model::Taint& taint : gpu.taints) api::to_proto(taint, *out.add_taints());
  if (!gpu.withheld_verdict.empty()) out.set_withheld(gpu.withheld_verdict);
  const bool has_evidence = !gpu.evidence->empty() || !node.evidence->empty();
  if (!has_evidence || !context_.core.judge_gpu) return;
  if (!records_) {
    records_.emplace(*snapshot_, [this](const model::Evidence& piece) { return is_hidden(piece); });
  }
  const health::GpuKey key{node.name, gpu.info.uuid, gpu.info.type};
  show_verdict(context_.core.judge_gpu(*snapshot_, *records_, key, os::wall_now()),
               *out.mutable_verdict());
}

void EvidenceView::add(const model::Node& node, const model::Gpu* gpu,
                       const std::vector<model::Evidence>& pieces, base::Instant since,
                       Pieces& out) const {
  for (const model::Evidence& piece : pieces) {
    if (since.is_set() && std::max(piece.at, piece.last) < since) continue;
    v1::Evidence& one = *out.Add();
    api::to_proto(piece, one);
    one.set_node(node.name);
    if (gpu != nullptr) one.set_gpu_id(gpu->info.uuid);
    if (is_hidden(piece)) hide_user(one);
  }
}

void EvidenceView::add_of_node(const model::Node& node, base::Instant since, Pieces& out) const {
  add(node, nullptr, *node.evidence, since, out);
}

void EvidenceView::add_of_gpu(const model::Node& node, const model::Gpu& gpu, base::Instant since,
                              Pieces& out) const {
  add(node, &gpu, *gpu.evidence, since, out);
}

void sort_by_time(EvidenceView::Pieces& pieces) {
  std::stable_sort(pieces.pointer_begin(), pieces.pointer_end(),
                   [](const v1::Evidence* a, const v1::Evidence* b) {
                     return to_model(a->at()) < to_model(b->at());
                   });
}

}  // namespace gpu_platform::api
