#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controller/health_index.h"
#include "controller/state.h"
#include "health/verdict.h"
#include "model/evidence.h"

namespace gpu_platform::controller {

// What is kept about the health of all GPUs, as the judge looks at it. Refers to the state, which
// must not change meanwhile.
class HealthRecords : public health::Records {
 public:
  explicit HealthRecords(const State& state) : state_(state) {}

  // As if the GPU had this evidence, or, where there is none of that index, the node.
  HealthRecords(const State& state, model::NodeId node, std::optional<std::uint32_t> gpu,
                std::vector<model::Evidence> evidence);

  std::span<const model::Evidence> of_gpu(std::string_view uuid) const override;
  std::span<const model::Evidence> of_node(std::string_view node) const override;
  std::vector<std::string_view> gpus_with_job(model::JobId job) const override;
  std::vector<std::string_view> gpus_with_program(std::string_view user,
                                                  std::string_view program) const override;
  std::vector<std::string_view> gpus_of_node(std::string_view node) const override;

 private:
  std::vector<std::string_view> names_of(const std::vector<model::GpuRef>& places) const;
  const model::Node* find_node(std::string_view name) const;

  const State& state_;
  // In place of what is kept.
  struct Trial {
    const model::Node* node = nullptr;
    std::optional<std::uint32_t> gpu;
    std::vector<model::Evidence> evidence;
  };
  std::optional<Trial> trial_;
};

// Names the GPU for the judge. Refers to the state.
health::GpuKey key_of(const State& state, model::GpuRef place);

}  // namespace gpu_platform::controller
