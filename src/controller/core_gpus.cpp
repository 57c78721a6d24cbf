#include <algorithm>
#include <utility>

#include "controller/core.h"

// What operators do with GPUs and nodes, and what is seen on GPUs beside jobs.

namespace gpu_platform::controller {

using base::ErrorCode;
using model::GpuAction;
using model::GpuState;
using model::GpuTrigger;
using model::NodeTrigger;

namespace {

GpuTrigger gpu_trigger(GpuAction action) {
  switch (action) {
    case GpuAction::kDrain:
      return GpuTrigger::kDrain;
    case GpuAction::kTakeOffline:
      return GpuTrigger::kTakeOffline;
    case GpuAction::kBringOnline:
      break;
  }
  return GpuTrigger::kBringOnline;
}

NodeTrigger node_trigger(GpuAction action) {
  switch (action) {
    case GpuAction::kDrain:
      return NodeTrigger::kDrain;
    case GpuAction::kTakeOffline:
      return NodeTrigger::kTakeOffline;
    case GpuAction::kBringOnline:
      break;
  }
  return NodeTrigger::kBringOnline;
}

std::vector<model::AttemptId> holders_of(const model::Gpu& gpu) {
  std::vector<model::AttemptId> attempts;
  for (const model::GpuHolder& holder : gpu.holders) attempts.push_back(holder.attempt);
  return attempts;
}

// The operator's words, or what was done where there are none.
std::string cause_of(const model::ChangeGpus& command) {
  if (!command.reason.empty() || command.action == GpuAction::kBringOnline) return command.reason;
  return command.action == GpuAction::kDrain ? "drained" : "taken offline";
}

base::Status busy(std::string_view what, const std::vector<model::AttemptId>& attempts) {
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format(
          "{} is held by job {}{}: drain it and wait, or use force, which stops its jobs and "
          "queues them again",
          what, attempts.front().job.value,
          attempts.size() > 1 ? fmt::format(" and {} more", attempts.size() - 1) : ""),
      "force");
}

}  // namespace

base::Result<model::CommandReply> Core::change_gpus(const model::Caller& caller,
                                                    const model::ChangeGpus& command,
                                                    base::Instant now) {
  if (!caller.is_administrator) {
    return base::fail(
        ErrorCode::kPermissionDenied,
        fmt::format("user {} may not take GPUs out of service or put them back: ask an "
                    "administrator",
                    caller.user));
  }
  TRY_ASSIGN(const std::vector<model::GpuRef> gpus, select_gpus(command.which));
  const std::size_t events_before = batch_.events.size();
  const bool whole_node = command.which.uuid.empty() && !command.which.index;
  if (whole_node) {
    TRY(change_node(state_.node_ids.find(command.which.node)->second, command, caller.user, now));
  } else {
    TRY(change_gpu(gpus.front(), command, caller.user, now));
  }
  model::CommandReply reply;
  reply.changed = batch_.events.size() != events_before;
  if (reply.changed) reply.gpus = gpus;
  return reply;
}

base::Result<std::vector<model::GpuRef>> Core::select_gpus(const model::GpuSelector& which) const {
  std::vector<model::GpuRef> gpus;
  if (!which.uuid.empty()) {
    state_.nodes.for_each([&](std::uint64_t, const model::Node& node) {
      for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
        if (node.gpus[i].info.uuid == which.uuid) gpus.push_back({node.id, i});
      }
    });
    if (gpus.empty()) {
      return base::fail(ErrorCode::kNotFound, fmt::format("there is no GPU {}", which.uuid),
                        "gpu_id");
    }
    return gpus;
  }
  const auto known = state_.node_ids.find(which.node);
  if (known == state_.node_ids.end()) {
    return base::fail(ErrorCode::kNotFound, fmt::format("there is no node {}", which.node),
                      which.index ? "gpu" : "node");
  }
  const model::Node& node = *state_.nodes.find(known->second.value);
  if (which.index && *which.index >= node.gpus.size()) {
    return base::fail(
        ErrorCode::kNotFound,
        fmt::format("node {} has no GPU {}: it has {}", which.node, *which.index, node.gpus.size()),
        "gpu");
  }
  for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
    if (!which.index || *which.index == i) gpus.push_back({node.id, i});
  }
  return gpus;
}

base::Status Core::change_gpu(model::GpuRef ref, const model::ChangeGpus& command,
                              const std::string& by, base::Instant now) {
  const model::Node& node = *state_.nodes.find(ref.node.value);
  const model::Gpu& gpu = node.gpus.at(ref.index);
  const GpuTrigger trigger = gpu_trigger(command.action);
  const auto to = model::next(gpu.state, trigger);
  if (!to) return {};  // it is so already
  if (command.action == GpuAction::kBringOnline && !gpu.is_reported) {
    return base::fail(
        ErrorCode::kFailedPrecondition,
        fmt::format("GPU {} of node {} cannot be brought online: its driver does not report it",
                    ref.index, node.name));
  }
  const std::vector<model::AttemptId> holders = holders_of(gpu);
  const bool takes_away = command.action == GpuAction::kTakeOffline && !holders.empty();
  if (takes_away && !command.force) {
    return busy(fmt::format("GPU {} of node {}", ref.index, node.name), holders);
  }
  emit(model::GpuStateChanged{ref, trigger, cause_of(command), by}, now);
  if (takes_away) stop_holders(holders, by, now);
  return {};
}

base::Status Core::change_node(model::NodeId id, const model::ChangeGpus& command,
                               const std::string& by, base::Instant now) {
  const model::Node& node = *state_.nodes.find(id.value);
  const NodeTrigger trigger = node_trigger(command.action);
  if (command.action == GpuAction::kBringOnline && !node.is_heard) {
    return base::fail(
        ErrorCode::kFailedPrecondition,
        fmt::format("node {} cannot be brought online: it is not heard of", node.name), "node");
  }
  if (!model::next(node.state, trigger)) return {};  // it is so already
  std::vector<model::AttemptId> there;
  for (const model::AttemptId attempt : state_.held_attempts) {
    const auto& parts = find_attempt(attempt)->allocation.nodes;
    if (std::ranges::any_of(parts, [&](const auto& part) { return part.node == id; })) {
      there.push_back(attempt);
    }
  }
  const bool takes_away = command.action == GpuAction::kTakeOffline && !there.empty();
  if (takes_away && !command.force) return busy(fmt::format("node {}", node.name), there);
  emit(model::NodeStateChanged{id, trigger, cause_of(command), by}, now);
  if (takes_away) stop_holders(there, by, now);
  return {};
}

// Their jobs are queued again when they have ended.
void Core::stop_holders(const std::vector<model::AttemptId>& attempts, const std::string& by,
                        base::Instant now) {
  for (const model::AttemptId id : attempts) {
    const model::AttemptState state = find_attempt(id)->state;
    if (state != model::AttemptState::kRequested && state != model::AttemptState::kRunning)
      continue;
    emit(model::StopRequested{id, model::EndReason::kGpuOffline, false, by}, now);
  }
}

void Core::on(const execution::StrangersObserved& seen, base::Instant now) {
  const auto known = state_.node_ids.find(seen.node_name);
  if (known == state_.node_ids.end()) return;
  const model::Node& node = *state_.nodes.find(known->second.value);
  const auto gpu = std::ranges::find(
      node.gpus, seen.gpu_uuid, [](const model::Gpu& g) -> const auto& { return g.info.uuid; });
  if (gpu == node.gpus.end()) return;
  judge_strangers({node.id, static_cast<std::uint32_t>(gpu - node.gpus.begin())}, seen.text, now);
}

void Core::judge_strangers(model::GpuRef ref, const std::string& seen, base::Instant now) {
  const model::Gpu& gpu = state_.nodes.find(ref.node.value)->gpus.at(ref.index);
  const model::StrangerPolicy policy = state_.policy->strangers;
  const std::string text = policy == model::StrangerPolicy::kIgnore ? std::string() : seen;
  const bool avoid = policy == model::StrangerPolicy::kAvoid && !text.empty();
  if (gpu.strangers == text && gpu.avoid_strangers == avoid) return;
  emit(model::GpuStrangersChanged{ref, text, avoid}, now);
}

// Those that are there when the policy changes. Such as were ignored are told again by the probes.
void Core::judge_strangers_again(base::Instant now) {
  std::vector<std::pair<model::GpuRef, std::string>> seen;
  state_.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
      if (!node.gpus[i].strangers.empty()) seen.push_back({{node.id, i}, node.gpus[i].strangers});
    }
  });
  for (const auto& [gpu, text] : seen) judge_strangers(gpu, text, now);
}

}  // namespace gpu_platform::controller
