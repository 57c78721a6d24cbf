#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/ids.h"
#include "model/node.h"

namespace gpu_platform::controller {

// Finds GPUs by what their nodes keep of their health. It follows from the nodes: nothing of it is
// in snapshots.
// Ownership: values. Thread: one owner. Cost: O(evidence x log n) of what is entered or left.
class HealthIndex {
 public:
  // Of all GPUs of the node, or of one. Evidence of the node itself is not indexed.
  void enter(const model::Node& node);
  void leave(const model::Node& node);
  void enter(const model::Node& node, std::optional<std::uint32_t> gpu);
  // It is as it was entered.
  void leave(const model::Node& node, std::optional<std::uint32_t> gpu);

  // All ascend by their places.
  std::vector<model::GpuRef> with_job(model::JobId job) const;
  std::vector<model::GpuRef> with_program(std::string_view user, std::string_view program) const;
  // The places of that UUID which have evidence.
  std::vector<model::GpuRef> with_uuid(std::string_view uuid) const;
  const std::set<model::GpuRef>& with_evidence() const { return with_evidence_; }
  const std::set<model::GpuRef>& withheld() const { return withheld_; }
  // That are to be reset or checked, or are so now.
  const std::set<model::GpuRef>& resets() const { return resets_; }
  // That health has degraded.
  const std::set<model::GpuRef>& degraded() const { return degraded_; }

  friend bool operator==(const HealthIndex&, const HealthIndex&) = default;

 private:
  void enter(model::GpuRef place, const model::Gpu& gpu);
  void leave(model::GpuRef place, const model::Gpu& gpu);

  std::set<std::pair<model::JobId, model::GpuRef>> jobs_;
  std::set<std::tuple<std::string, std::string, model::GpuRef>> programs_;
  std::set<std::pair<std::string, model::GpuRef>> uuids_;
  std::set<model::GpuRef> with_evidence_;
  std::set<model::GpuRef> withheld_;
  std::set<model::GpuRef> resets_;
  std::set<model::GpuRef> degraded_;
};

}  // namespace gpu_platform::controller
