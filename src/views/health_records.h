#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/snapshot.h"
#include "health/verdict.h"

namespace gpu_platform::views {

// What the judge of GPUs may look at, as of a snapshot, which outlives it. Thread: one owner. Cost:
// of making it, all nodes and GPUs with evidence.
class HealthRecords final : public health::Records {
 public:
  // Returns whether the user and the program of a piece are hidden. Each of them gets a name that
  // tells nothing ("user 1"), so that the verdict stays the same and its reasons name no user.
  using IsHidden = std::function<bool(const model::Evidence& piece)>;

  explicit HealthRecords(const controller::Snapshot& snapshot, const IsHidden& is_hidden = {});

  std::span<const model::Evidence> of_gpu(std::string_view uuid) const override;
  std::span<const model::Evidence> of_node(std::string_view node) const override;
  std::vector<std::string_view> gpus_with_job(model::JobId job) const override;
  std::vector<std::string_view> gpus_with_program(std::string_view user,
                                                  std::string_view program) const override;
  std::vector<std::string_view> gpus_of_node(std::string_view node) const override;

 private:
  using Pieces = base::Shared<std::vector<model::Evidence>>;

  Pieces shown(const Pieces& kept, const IsHidden& is_hidden);
  void take(const model::Gpu& gpu, const IsHidden& is_hidden);

  const controller::Snapshot& snapshot_;
  std::map<std::string_view, Pieces> gpus_;   // by UUID, those with evidence
  std::map<std::string_view, Pieces> nodes_;  // by name
  std::map<model::JobId, std::vector<std::string_view>> gpus_by_job_;
  std::map<std::pair<std::string, std::string>, std::vector<std::string_view>> gpus_by_program_;
  std::map<std::string, std::string> names_;  // that stand for hidden ones
};

}  // namespace gpu_platform::views
