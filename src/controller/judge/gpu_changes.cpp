#include "controller/judge/gpu_changes.h"

#include <algorithm>
#include <utility>

#include "base/utc.h"
#include "controller/judge/gpu_resets.h"
#include "controller/judge/health_evidence.h"
#include "controller/judge/nodes.h"
#include "model/access.h"
#include "model/node_lookup.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::GpuAction;

namespace {

std::vector<model::AttemptId> holders_of(const model::Gpu& gpu) {
  std::vector<model::AttemptId> attempts;
  for (const model::GpuHolder& holder : gpu.holders) attempts.push_back(holder.attempt);
  return attempts;
}

// Returns the operator's words, or the action if there are none.
std::string cause_of(const model::ChangeGpus& command) {
  if (!command.reason.empty()) return command.reason;
  return command.action == GpuAction::kDrain ? "drained" : "taken offline";
}

std::unexpected<base::Error> busy(std::string_view what,
                                  const std::vector<model::AttemptId>& attempts) {
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format(
          "{} is in use by job {}{}: drain it and wait until it is empty, or use --force, which "
          "stops its jobs and queues them again",
          what, attempts.front().job.value,
          attempts.size() > 1 ? fmt::format(" and {} more", attempts.size() - 1) : ""),
      "force");
}

base::Result<std::vector<model::GpuRef>> select_gpus(const State& state,
                                                     const model::GpuSelector& which) {
  std::vector<model::GpuRef> gpus;
  if (!which.uuid.empty()) {
    gpus = model::places_of_gpu(state.nodes, which.uuid);
    if (gpus.empty()) {
      return base::fail(
          ErrorCode::kNotFound,
          fmt::format("there is no GPU '{}'; 'gpu-platform status --all' lists them", which.uuid),
          "gpu_id");
    }
    return gpus;
  }
  const auto known = state.node_ids.find(which.node);
  if (known == state.node_ids.end()) {
    return base::fail(
        ErrorCode::kNotFound,
        fmt::format("there is no node '{}'; 'gpu-platform nodes' lists them", which.node),
        which.index ? "gpu" : "node");
  }
  const model::Node& node = *state.nodes.find(known->second.value);
  if (which.index && *which.index >= node.gpus.size()) {
    return base::fail(ErrorCode::kNotFound,
                      fmt::format("node {} has no GPU {}: it has {}, numbered from 0", which.node,
                                  *which.index, node.gpus.size()),
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
// Another end, or none, is a change.
bool is_so_already(const model::Taint* own, const model::ChangeGpus& command) {
  if (own == nullptr) return false;
  if (effect_of(command.action) != own->effect) return command.action == GpuAction::kDrain;
  if (command.until != own->until) return false;
  return command.reason.empty() || command.reason == own->text;
}

// An order that gives another end and no reason keeps the reason.
model::Taint ordered_taint(const model::Taint* own, const model::ChangeGpus& command,
                           const std::string& by) {
  const model::TaintEffect effect = effect_of(command.action);
  const bool keeps_text = own != nullptr && own->effect == effect && command.reason.empty();
  return {model::TaintSource::kOperator,
          effect,
          keeps_text ? own->text : cause_of(command),
          by,
          {},
          command.until};
}

base::Status check_until(const model::ChangeGpus& command, base::Instant now) {
  if (!command.until.is_set() || command.until > now) return {};
  std::string until;
  base::append_rfc3339(until, command.until, base::Fraction::kNone);
  return base::invalid("until", fmt::format("until: {} has passed; give a future time", until));
}

// A node or one of its GPUs, to be drained or taken offline.
struct Target {
  model::NodeId node;
  std::optional<std::uint32_t> gpu;  // none: the node
  const model::Taints& taints;
  std::string name;  // "node n1"
  std::vector<model::AttemptId> holders;
};

base::Result<Events> keep_from_work(const State& state, const Target& target,
                                    const model::ChangeGpus& command, const std::string& by) {
  const model::Taint* const own = model::find_taint(target.taints, model::TaintSource::kOperator);
  if (is_so_already(own, command)) return Events();
  const bool takes_away = command.action == GpuAction::kTakeOffline && !target.holders.empty() &&
                          (own == nullptr || own->effect != model::TaintEffect::kOut);
  if (takes_away && !command.force) return busy(target.name, target.holders);
  Events events = {model::TaintChanged{target.node, target.gpu, ordered_taint(own, command, by)}};
  if (takes_away) stop_holders(state, target.holders, by, events);
  return events;
}

// Of `taints` of the node, or of a GPU of it, those that an operator lifts. `as` names the user.
Events lift(model::NodeId node, std::optional<std::uint32_t> gpu, const model::Taints& taints,
            model::Taint as) {
  Events events;
  for (const model::Taint& taint : taints) {
    if (!model::is_an_operators_to_lift(taint)) continue;
    as.source = taint.source;
    events.push_back(model::TaintChanged{node, gpu, as, true});
  }
  return events;
}

// An operator's command, and what it is judged with.
struct GpuOrder {
  const State& state;
  const model::ChangeGpus& command;
  const std::string& by;
  base::Instant now;
};

model::Event cleared(const GpuOrder& with, model::NodeId node, std::optional<std::uint32_t> gpu) {
  return model::EvidenceRecorded{node, gpu, cleared_by(with.by, with.command.reason, with.now)};
}

bool is_judged_by_health(const model::Gpu& gpu) {
  return model::find_taint(gpu.taints, model::TaintSource::kHealth) != nullptr ||
         !gpu.withheld_verdict.empty();
}

// What was seen of the GPU does not count any more, unless it is gone.
base::Status clear_evidence(const GpuOrder& with, const model::Node& node, std::uint32_t index,
                            Events& events) {
  const model::Gpu& gpu = node.gpus.at(index);
  if (!is_judged_by_health(gpu) || gpu.evidence->empty()) return {};
  if (!does_not_answer(gpu)) {
    events.insert(events.begin(), cleared(with, node.id, index));
  } else if (events.empty()) {
    return base::fail(
        ErrorCode::kFailedPrecondition,
        fmt::format("GPU {} of node {} cannot be brought online: {}", index, node.name, gpu.cause));
  }
  return {};
}

base::Status check_not_being_reset(const model::Node& node, std::uint32_t index) {
  const model::Taint* const reset =
      model::find_taint(node.gpus.at(index).taints, model::TaintSource::kReset);
  if (reset == nullptr || reset->effect != model::TaintEffect::kOut) return {};
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format("GPU {} of node {} cannot be brought online: it is being {}; wait until that "
                  "has ended",
                  index, node.name,
                  reset->repair == model::GpuRepair::kReset ? "reset" : "checked"));
}

base::Result<Events> bring_gpu_online(const GpuOrder& with, const model::Node& node,
                                      std::uint32_t index) {
  TRY(check_not_being_reset(node, index));
  const model::Gpu& gpu = node.gpus.at(index);
  Events events = lift(node.id, index, gpu.taints,
                       {{}, effect_of(with.command.action), with.command.reason, with.by, {}});
  TRY(clear_evidence(with, node, index, events));
  if (!events.empty()) return events;
  const model::Taint* const sick = model::find_taint(gpu.taints, model::TaintSource::kHealth);
  if (gpu.is_reported && sick != nullptr) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("GPU {} of node {} cannot be brought online: it {}; it comes "
                                  "back by itself when it has answered for a while",
                                  index, node.name, sick->text));
  }
  if (gpu.is_reported) return events;
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format("GPU {} of node {} cannot be brought online: its driver does not report it; "
                  "look at nvidia-smi and the kernel log there",
                  index, node.name));
}

bool is_repair(GpuAction action) {
  return action == GpuAction::kReset || action == GpuAction::kCheck;
}

base::Result<Events> change_gpu(const GpuOrder& with, model::GpuRef ref) {
  const model::Node& node = *with.state.nodes.find(ref.node.value);
  if (with.command.action == GpuAction::kBringOnline) {
    return bring_gpu_online(with, node, ref.index);
  }
  if (is_repair(with.command.action)) {
    return judge_reset(with.state, ref.node, {ref.index}, with.command, with.by);
  }
  const model::Gpu& gpu = node.gpus.at(ref.index);
  return keep_from_work(with.state,
                        {ref.node, ref.index, gpu.taints,
                         fmt::format("GPU {} of node {}", ref.index, node.name), holders_of(gpu)},
                        with.command, with.by);
}

base::Result<Events> bring_node_online(const GpuOrder& with, const model::Node& node) {
  if (!model::is_heard(node)) {
    return base::fail(
        ErrorCode::kFailedPrecondition,
        fmt::format("node {} cannot be brought online: it does not report; check its launcher and "
                    "its network",
                    node.name),
        "node");
  }
  Events events = lift(node.id, {}, node.taints, {{}, {}, {}, with.by, {}});
  if (!node.evidence->empty() && std::ranges::any_of(node.gpus, is_judged_by_health)) {
    events.insert(events.begin(), cleared(with, node.id, std::nullopt));
  }
  const model::Taint* const clusters = model::find_taint(node.taints, model::TaintSource::kCluster);
  if (events.empty() && clusters != nullptr) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      fmt::format("node {} cannot be brought online here: its cluster keeps it out "
                                  "of service ({}); put it back there",
                                  node.name, clusters->text),
                      "node");
  }
  return events;
}

base::Result<Events> change_node(const GpuOrder& with, model::NodeId id) {
  const model::Node& node = *with.state.nodes.find(id.value);
  if (with.command.action == GpuAction::kBringOnline) return bring_node_online(with, node);
  if (is_repair(with.command.action)) {
    std::vector<std::uint32_t> gpus;
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
      if (node.gpus[i].is_reported) gpus.push_back(i);
    }
    if (gpus.empty()) {
      return base::fail(ErrorCode::kFailedPrecondition,
                        fmt::format("node {} has no GPU that could be {}", node.name,
                                    with.command.action == GpuAction::kReset ? "reset" : "checked"),
                        "node");
    }
    return judge_reset(with.state, id, gpus, with.command, with.by);
  }
  return keep_from_work(
      with.state,
      {id, {}, node.taints, fmt::format("node {}", node.name), attempts_on(with.state, id)},
      with.command, with.by);
}

}  // namespace

base::Result<GpuChange> judge_gpus(const State& state, const model::Caller& caller,
                                   const model::ChangeGpus& command, base::Instant now) {
  if (!model::may_touch_site(caller)) {
    return base::fail(
        ErrorCode::kPermissionDenied,
        fmt::format("user {} may not take GPUs out of service or put them back: ask an "
                    "operator",
                    caller.user));
  }
  TRY(check_until(command, now));
  GpuChange change;
  TRY_ASSIGN(change.gpus, select_gpus(state, command.which));
  const GpuOrder with{state, command, caller.user, now};
  const bool whole_node = command.which.uuid.empty() && !command.which.index;
  if (whole_node) {
    const model::NodeId node = state.node_ids.find(command.which.node)->second;
    TRY_ASSIGN(change.events, change_node(with, node));
  } else {
    TRY_ASSIGN(change.events, change_gpu(with, change.gpus.front()));
  }
  return change;
}

}  // namespace gpu_platform::controller
