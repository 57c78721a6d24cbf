#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "api/call_context.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "model/caller.h"
#include "views/health_records.h"

namespace gpu_platform::api {

// The evidence and the verdicts of one snapshot, as one caller may see them. Thread: one owner.
// Cost: of the first verdict, all nodes; of each, what the judge takes.
class EvidenceView {
 public:
  EvidenceView(const CallContext& context, std::shared_ptr<const controller::Snapshot> snapshot,
               const model::Caller& caller);

  // Adds the taints and the verdict.
  void put_verdict(const model::Node& node, const model::Gpu& gpu, v1::GpuHealth& out);

  using Pieces = google::protobuf::RepeatedPtrField<v1::Evidence>;
  // Adds the evidence of the node itself, or of one of its GPUs, that was seen at `since` or later.
  void add_of_node(const model::Node& node, base::Instant since, Pieces& out) const;
  void add_of_gpu(const model::Node& node, const model::Gpu& gpu, base::Instant since,
                  Pieces& out) const;

 private:
  bool is_hidden(const model::Evidence& piece) const;
  void add(const model::Node& node, const model::Gpu* gpu,
           const std::vector<model::Evidence>& pieces, base::Instant since, Pieces& out) const;

  const CallContext& context_;
  std::shared_ptr<const controller::Snapshot> snapshot_;
  model::Caller caller_;
  model::View view_;
  std::optional<views::HealthRecords> records_;  // as soon as they are needed
};

// Ascending by the time of the first of each; equal times stay as they are.
void sort_by_time(EvidenceView::Pieces& pieces);

}  // namespace gpu_platform::api
