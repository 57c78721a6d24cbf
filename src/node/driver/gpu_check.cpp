#include "node/driver/gpu_check.h"

#include <algorithm>

#include "node/driver/cuda_check.h"
#include "node/driver/opened_gpus.h"
#include "node/driver/readings_check.h"

namespace gpu_platform::node {

namespace {

// Adds what the readings say to GPUs that have not failed yet.
void check_readings(const DriverOrder& order, DriverAnswer& answer) {
  const OpenedGpus opened = open_gpus(order.library);
  for (DriverResult& result : answer.gpus) {
    if (!result.failure.empty()) continue;
    const hardware::GpuDescription* const gpu = opened.find(result.gpu);
    if (gpu == nullptr) {
      result.failure = words_for_unlisted(opened);
      continue;
    }
    result.failure = objection_to_readings(opened.library->read(gpu->index),
                                           opened.library->read_slow(gpu->index));
  }
}

// Those that CUDA can be asked about. It lists no GPU that is divided, only its parts.
std::vector<std::string> whole_ones(const DriverOrder& order, const DriverAnswer& answer) {
  const OpenedGpus opened = open_gpus(order.library);
  std::vector<std::string> whole;
  for (const DriverResult& result : answer.gpus) {
    const hardware::GpuDescription* const gpu = opened.find(result.gpu);
    const bool is_whole = gpu != nullptr && !gpu->mig_enabled.value_or(false);
    if (result.failure.empty() && is_whole) whole.push_back(result.gpu);
  }
  return whole;
}

}  // namespace

DriverAnswer check_gpus(const DriverOrder& order, const char* cuda) {
  DriverAnswer answer = failed_answer(order.gpus, "");
  check_readings(order, answer);
  // What libcuda would find is not the emulated board.
  if (order.is_emulated()) {
    answer.detail = "readings only: there is no libcuda";
    return answer;
  }
  const std::vector<std::string> whole = whole_ones(order, answer);
  if (whole.empty()) {
    answer.detail = "readings only: no GPU is sound and whole";
    return answer;
  }
  const bool is_deep = order.verb == DriverVerb::kDeepCheck;
  const CudaOutcome outcome = check_with_cuda(whole, is_deep ? kDeepDepth : kQuickDepth, cuda);
  answer.detail = outcome.detail;
  for (DriverResult& result : answer.gpus) {
    const auto failed = outcome.failures.find(result.gpu);
    if (failed != outcome.failures.end()) result.failure = failed->second;
  }
  if (outcome.has_run) check_readings(order, answer);
  return answer;
}

}  // namespace gpu_platform::node
