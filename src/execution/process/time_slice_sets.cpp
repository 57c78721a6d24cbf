#include "execution/process/time_slice_sets.h"

#include <algorithm>

#include "model/policy.h"

namespace gpu_platform::execution {

namespace {

constexpr std::size_t kFewest = 2;  // attempts, to take turns

bool is_time_slice(const LaunchGpu& gpu) {
  return gpu.grant.mode == model::ShareMode::kTimeSlice;
}

// The GPU that is shared is all that takes a turn.
std::uint32_t weight_of(const model::GpuGrant& grant) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(grant.share.value(), 1, base::kWholeGpu.value()));
}

}  // namespace

bool takes_turns(const StartOrder& order) {
  return std::ranges::any_of(order.nodes, [](const LaunchNode& node) {
    return std::ranges::any_of(node.gpus, is_time_slice);
  });
}

void TimeSliceSets::join(const StartOrder& order) {
  for (const LaunchNode& node : order.nodes) {
    for (const LaunchGpu& gpu : node.gpus) {
      if (!is_time_slice(gpu)) continue;
      gpus_[gpu.info.uuid][order.attempt] = {weight_of(gpu.grant), order.spec->request.slice};
      changed_.insert(gpu.info.uuid);
    }
  }
}

void TimeSliceSets::leave(model::AttemptId attempt) {
  for (auto& [gpu, turns] : gpus_) {
    if (turns.erase(attempt) != 0) changed_.insert(gpu);
  }
  std::erase_if(gpus_, [](const auto& entry) { return entry.second.empty(); });
}

void TimeSliceSets::use_slice(base::Duration slice) {
  slice_ = slice;
  for (const auto& [gpu, turns] : gpus_) changed_.insert(gpu);
}

void TimeSliceSets::tell_all_again() {
  told_.clear();
  for (const auto& [gpu, turns] : gpus_) changed_.insert(gpu);
}

// The shortest slice that one of them asks for is that of all.
node::TimeSlices TimeSliceSets::message_for(const std::string& gpu) const {
  node::TimeSlices message;
  message.gpu = gpu;
  base::Duration slice = model::kMaxSlice;
  const auto found = gpus_.find(gpu);
  if (found != gpus_.end()) {
    for (const auto& [attempt, turns] : found->second) {
      if (message.jobs.size() == node::kMaxTimeSliceJobs) break;
      message.jobs.push_back({attempt, turns.weight});
      slice = std::min(slice, turns.slice == base::Duration() ? slice_ : turns.slice);
    }
  }
  slice = std::max(slice, model::kMinSlice);
  message.slice_ms = static_cast<std::uint64_t>(base::whole_milliseconds(slice));
  return message;
}

std::vector<node::TimeSlices> TimeSliceSets::take_changes() {
  std::vector<node::TimeSlices> changes;
  for (const std::string& gpu : changed_) {
    node::TimeSlices message = message_for(gpu);
    const auto told = told_.find(gpu);
    const bool are_enough = message.jobs.size() >= kFewest;
    const bool is_known = told != told_.end() && told->second == message;
    if (is_known || (!are_enough && told == told_.end())) continue;
    if (are_enough) {
      told_[gpu] = message;
    } else {
      told_.erase(told);
    }
    changes.push_back(std::move(message));
  }
  changed_.clear();
  return changes;
}

}  // namespace gpu_platform::execution
