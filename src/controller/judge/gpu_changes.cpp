#include "controller/judge/gpu_changes.h"

#include <algorithm>
#include <utility>

#include "model/access.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::GpuAction;
using model::NodeTrigger;

namespace {

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

// Returns the operator's words, or the action if there are none.
std::string cause_of(const model::ChangeGpus& command) {
  if (!command.reason.empty() || command.action == GpuAction::kBringOnline) return command.reason;
  return command.action == GpuAction::kDrain ? "drained" : "taken offline";
}

std::unexpected<base::Error> busy(std::string_view what,
                                  const std::vector<model::AttemptId>& attempts) {
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format(
          "{} is held by job {}{}: drain it and wait, or use force, which stops its jobs and "
          "queues them again",
          what, attempts.front().job.value,
          attempts.size() > 1 ? fmt::format(" and {} more", attempts.size() - 1) : ""),
      "force");
}

base::Result<std::vector<model::GpuRef>> select_gpus(const State& state,
                                                     const model::GpuSelector& which) {
  std::vector<model::GpuRef> gpus;
  if (!which.uuid.empty()) {
    state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
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
  const auto known = state.node_ids.find(which.node);
  if (known == state.node_ids.end()) {
    return base::fail(ErrorCode::kNotFound, fmt::format("there is no node {}", which.node),
                      which.index ? "gpu" : "node");
  }
  const model::Node& node = *state.nodes.find(known->second.value);
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

// Their jobs are queued again when they have ended.
void stop_holders(const State& state, const std::vector<model::AttemptId>& attempts,
                  const std::string& by, Events& events) {
  for (const model::AttemptId id : attempts) {
    if (is_told_to_stop(state, id)) continue;
    events.push_back(model::StopRequested{id, model::EndReason::kGpuOffline, false, by});
  }
}

model::TaintEffect effect_of(GpuAction action) {
  return action == GpuAction::kDrain ? model::TaintEffect::kNoNewWork : model::TaintEffect::kOut;
}

// A drain does not weaken what takes it offline. Other words are a change, and no words are not.
bool is_so_already(const model::Taint* own, const model::ChangeGpus& command) {
  if (command.action == GpuAction::kBringOnline || own == nullptr) {
    return (command.action == GpuAction::kBringOnline) == (own == nullptr);
  }
  if (effect_of(command.action) != own->effect) return command.action == GpuAction::kDrain;
  return command.reason.empty() || command.reason == own->text;
}

base::Result<Events> change_gpu(const State& state, model::GpuRef ref,
                                const model::ChangeGpus& command, const std::string& by) {
  const model::Node& node = *state.nodes.find(ref.node.value);
  const model::Gpu& gpu = node.gpus.at(ref.index);
  const model::Taint* const own = model::find_taint(gpu.taints, model::TaintSource::kOperator);
  if (command.action == GpuAction::kBringOnline && own == nullptr && !gpu.is_reported) {
    return base::fail(
        ErrorCode::kFailedPrecondition,
        fmt::format("GPU {} of node {} cannot be brought online: its driver does not report it",
                    ref.index, node.name));
  }
  if (is_so_already(own, command)) return Events();
  const std::vector<model::AttemptId> holders = holders_of(gpu);
  const bool takes_away = command.action == GpuAction::kTakeOffline && !holders.empty() &&
                          (own == nullptr || own->effect != model::TaintEffect::kOut);
  if (takes_away && !command.force) {
    return busy(fmt::format("GPU {} of node {}", ref.index, node.name), holders);
  }
  Events events = {model::GpuTaintChanged{
      ref,
      {model::TaintSource::kOperator, effect_of(command.action), cause_of(command), by, {}},
      command.action == GpuAction::kBringOnline}};
  if (takes_away) stop_holders(state, holders, by, events);
  return events;
}

base::Result<Events> change_node(const State& state, model::NodeId id,
                                 const model::ChangeGpus& command, const std::string& by) {
  const model::Node& node = *state.nodes.find(id.value);
  const NodeTrigger trigger = node_trigger(command.action);
  if (command.action == GpuAction::kBringOnline && !node.is_heard) {
    return base::fail(
        ErrorCode::kFailedPrecondition,
        fmt::format("node {} cannot be brought online: it is not heard of", node.name), "node");
  }
  const bool is_up = node.state == model::NodeState::kUp;
  if (command.action == GpuAction::kBringOnline && is_up &&
      node.service != model::NodeService::kUp) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("node {} cannot be brought online here: its cluster keeps it out "
                                  "of service ({}); put it back there",
                                  node.name, node.service_cause),
                      "node");
  }
  const std::optional<model::NodeState> to = model::next(node.state, trigger);
  const bool says_nothing_new = command.reason.empty() || command.reason == node.cause;
  if (!to || (*to == node.state && says_nothing_new)) return Events();  // it is so already
  std::vector<model::AttemptId> there;
  for (const model::AttemptId attempt : state.held_attempts) {
    const auto& parts = find_attempt(state, attempt)->allocation.nodes;
    if (std::ranges::any_of(parts, [&](const auto& part) { return part.node == id; })) {
      there.push_back(attempt);
    }
  }
  const bool takes_away = command.action == GpuAction::kTakeOffline && !there.empty() &&
                          node.state != model::NodeState::kOffline;
  if (takes_away && !command.force) return busy(fmt::format("node {}", node.name), there);
  Events events = {model::NodeStateChanged{id, trigger, cause_of(command), by}};
  if (takes_away) stop_holders(state, there, by, events);
  return events;
}

// Returns nothing if the node, or the GPU on it, is not known.
std::optional<model::GpuRef> find_gpu(const State& state, std::string_view node_name,
                                      std::string_view uuid) {
  const auto known = state.node_ids.find(node_name);
  if (known == state.node_ids.end()) return std::nullopt;
  const model::Node& node = *state.nodes.find(known->second.value);
  const auto gpu = std::ranges::find(
      node.gpus, uuid, [](const model::Gpu& g) -> std::string_view { return g.info.uuid; });
  if (gpu == node.gpus.end()) return std::nullopt;
  return model::GpuRef{node.id, static_cast<std::uint32_t>(gpu - node.gpus.begin())};
}

// Returns nothing if the state says so already.
std::optional<model::Event> judge_unmanaged_processes(const State& state, model::GpuRef ref,
                                                      const std::string& seen) {
  const model::Gpu& gpu = state.nodes.find(ref.node.value)->gpus.at(ref.index);
  const model::UnmanagedProcessPolicy policy = state.policy->unmanaged_processes;
  const std::string text = policy == model::UnmanagedProcessPolicy::kIgnore ? std::string() : seen;
  const bool avoid = policy == model::UnmanagedProcessPolicy::kAvoid && !text.empty();
  const bool avoids = model::find_taint(gpu.taints, model::TaintSource::kProcesses) != nullptr;
  if (gpu.unmanaged_processes == text && avoids == avoid) return std::nullopt;
  return model::UnmanagedProcessesChanged{ref, text, avoid};
}

}  // namespace

base::Result<GpuChange> judge_gpus(const State& state, const model::Caller& caller,
                                   const model::ChangeGpus& command) {
  if (!model::may_touch_site(caller)) {
    return base::fail(
        ErrorCode::kPermissionDenied,
        fmt::format("user {} may not take GPUs out of service or put them back: ask an "
                    "administrator",
                    caller.user));
  }
  GpuChange change;
  TRY_ASSIGN(change.gpus, select_gpus(state, command.which));
  const bool whole_node = command.which.uuid.empty() && !command.which.index;
  if (whole_node) {
    const model::NodeId node = state.node_ids.find(command.which.node)->second;
    TRY_ASSIGN(change.events, change_node(state, node, command, caller.user));
  } else {
    TRY_ASSIGN(change.events, change_gpu(state, change.gpus.front(), command, caller.user));
  }
  return change;
}

std::optional<model::Event> judge_unmanaged_processes(
    const State& state, const execution::UnmanagedProcessesObserved& seen) {
  const auto gpu = find_gpu(state, seen.node_name, seen.gpu_uuid);
  return gpu ? judge_unmanaged_processes(state, *gpu, seen.text) : std::nullopt;
}

std::optional<model::Event> judge_unavailable(const State& state,
                                              const execution::GpuUnavailableObserved& seen) {
  const auto ref = find_gpu(state, seen.node_name, seen.gpu_uuid);
  if (!ref) return std::nullopt;
  const model::Gpu& gpu = state.nodes.find(ref->node.value)->gpus.at(ref->index);
  const model::Taint* const own = model::find_taint(gpu.taints, model::TaintSource::kCluster);
  if (own == nullptr ? seen.text.empty() : own->text == seen.text) return std::nullopt;
  return model::GpuTaintChanged{
      *ref,
      {model::TaintSource::kCluster, model::TaintEffect::kAvoided, seen.text, "cluster", {}},
      seen.text.empty()};
}

Events judge_unmanaged_processes_again(const State& state) {
  Events events;
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
      if (node.gpus[i].unmanaged_processes.empty()) continue;
      if (auto event =
              judge_unmanaged_processes(state, {node.id, i}, node.gpus[i].unmanaged_processes)) {
        events.push_back(*std::move(event));
      }
    }
  });
  return events;
}

}  // namespace gpu_platform::controller
