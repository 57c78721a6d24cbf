#include "controller/apply/events.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "controller/apply/borrowing.h"
#include "controller/apply/gpu_clocks.h"
#include "controller/apply/preemption_holds.h"
#include "controller/budget_use.h"
#include "health/verdict.h"

namespace gpu_platform::controller {

using model::GpuTrigger;
using model::Node;
using model::NodeTrigger;
using model::Taint;
using model::TaintEffect;
using model::Taints;
using model::TaintSource;

namespace {

bool is_on(const model::Allocation& allocation, model::NodeId node) {
  return std::ranges::find(allocation.nodes, node, &model::NodeAllocation::node) !=
         allocation.nodes.end();
}

// What every change of a node's taints brings with it.
template <class Change>
void change_node(Application& a, model::NodeId id, const Change& change) {
  Node& n = a.node(id);
  a.state.taint_ends.leave(n);
  change(n);
  a.state.taint_ends.enter(n);
  model::settle(n);
  a.state.books.put(n);
  drop_holds_that_cannot_be_met(a, n);
  follow_clocks(a, n);
}

// The same of a GPU's.
template <class Change>
void change_gpu(Application& a, const model::GpuRef& ref, const Change& change) {
  Node& n = a.node(ref.node);
  model::Gpu& gpu = n.gpus.at(ref.index);
  a.state.taint_ends.leave(n);
  a.state.health.leave(n, ref.index);
  change(gpu);
  a.state.taint_ends.enter(n);
  a.state.health.enter(n, ref.index);
  model::settle(gpu);
  a.state.books.put(n);
  drop_holds_that_cannot_be_met(a, n);
  follow_clock(a, n, ref.index);
}

// A text is the taint's, and none lifts it. The time is not kept: snapshots of former versions,
// which say the same, did not either.
void set_avoided(model::Gpu& gpu, model::Taint taint) {
  if (taint.text.empty()) return model::lift_taint(gpu.taints, taint.source);
  taint.effect = model::TaintEffect::kAvoided;
  model::set_taint(gpu.taints, std::move(taint));
}

void change_taints(Taints& taints, const model::TaintChanged& event, base::Instant at) {
  if (event.is_lifted) return model::lift_taint(taints, event.taint.source);
  Taint taint = event.taint;
  if (!taint.at.is_set()) taint.at = at;
  model::set_taint(taints, std::move(taint));
}

// Bringing a node online lifts both.
bool is_a_persons_to_lift(TaintSource source) {
  return source == TaintSource::kOperator || source == TaintSource::kHooks;
}

void forget_hook_failures(Node& node) {
  node.prolog_failed_for = {};
  node.epilog_failed_for = {};
}

// What is kept is what snapshots of former versions say, too: no times, no users, and no reason of
// the lost connection of a node that a person keeps from work.
void change_as_formerly(Node& node, const model::NodeStateChanged& event) {
  Taint taint{TaintSource::kOperator, TaintEffect::kOut, event.cause, {}, {}};
  switch (event.trigger) {
    case NodeTrigger::kSeen:
      return model::lift_taint(node.taints, TaintSource::kConnection);
    case NodeTrigger::kLose:
      taint.source = TaintSource::kConnection;
      taint.by = "node";
      break;
    case NodeTrigger::kDrain:
      taint.effect = TaintEffect::kNoNewWork;
      break;
    case NodeTrigger::kTakeOffline:
      break;
    case NodeTrigger::kBringOnline:
      forget_hook_failures(node);
      return model::lift_taint(node.taints, TaintSource::kOperator);
  }
  model::set_taint(node.taints, std::move(taint));
  if (model::is_heard(node) || model::find_taint(node.taints, TaintSource::kOperator) == nullptr) {
    return;
  }
  model::set_taint(node.taints, model::former_connection_taint());
}

void change_as_formerly(model::Gpu& gpu, const model::GpuStateChanged& event, base::Instant at) {
  const bool is_former = event.source == model::TaintSource::kFormer;
  const bool is_by_driver = is_former && event.cause == model::kFormerDriverText;
  const model::TaintSource source = is_by_driver ? model::TaintSource::kDriver
                                    : is_former  ? model::TaintSource::kOperator
                                                 : event.source;
  if (is_former) {
    model::lift_taint(gpu.taints, model::TaintSource::kOperator);
    model::lift_taint(gpu.taints, model::TaintSource::kDriver);
  }
  if (event.trigger == GpuTrigger::kBringOnline) return model::lift_taint(gpu.taints, source);
  const bool is_out = event.trigger == GpuTrigger::kTakeOffline;
  model::set_taint(gpu.taints,
                   {source, is_out ? model::TaintEffect::kOut : model::TaintEffect::kNoNewWork,
                    event.cause, event.by, at});
}

}  // namespace

void apply(Application& a, const model::NodeSeen& event) {
  const bool is_new = a.state.nodes.find(event.node.value) == nullptr;
  const std::uint64_t gpus_before = a.state.books->cluster.totals().gpus();
  if (is_new) {
    Node fresh;
    fresh.id = event.node;
    fresh.name = event.info.name;
    a.state.nodes.put(event.node.value, std::move(fresh));
    a.state.node_ids.emplace(event.info.name, event.node);
    a.state.last_node_id = std::max(a.state.last_node_id, event.node.value);
  }
  Node& n = a.node(event.node);
  a.state.taint_ends.leave(n);
  a.state.health.leave(n);
  end_intervals_before(a, n, event.info);
  const model::CapacityClass former = n.capacity;
  model::describe(n, event.info, event.reuses_places ? free_places(a.state, n) : 0);
  a.state.taint_ends.enter(n);
  a.state.health.enter(n);
  a.state.books.put(n);
  follow_clocks(a, n);
  if (n.capacity != former) meter_anew(a.state, a.at);
  follow_cluster_size(a, gpus_before);
  // Rare, and it may be smaller: room is made anew where there is some.
  drop_holds_that(a,
                  [&](const model::PreemptionHold& hold) { return is_on(hold.allocation, n.id); });
}

void apply(Application& a, const model::TaintChanged& event) {
  if (event.gpu) {
    return change_gpu(a, {event.node, *event.gpu},
                      [&](model::Gpu& gpu) { change_taints(gpu.taints, event, a.at); });
  }
  change_node(a, event.node, [&](Node& node) {
    change_taints(node.taints, event, a.at);
    if (event.is_lifted && is_a_persons_to_lift(event.taint.source)) forget_hook_failures(node);
  });
}

void apply(Application& a, const model::NodeStateChanged& event) {
  change_node(a, event.node, [&](Node& node) { change_as_formerly(node, event); });
}

void apply(Application& a, const model::UnmanagedProcessesChanged& event) {
  change_gpu(a, event.gpu, [&](model::Gpu& gpu) {
    gpu.unmanaged_processes = event.text;
    gpu.load = event.load;
    set_avoided(gpu, {.source = model::TaintSource::kProcesses,
                      .text = event.avoid ? model::words_of(event) : std::string(),
                      .by = "node"});
  });
}

void apply(Application& a, const model::GpuStateChanged& event) {
  change_gpu(a, event.gpu, [&](model::Gpu& gpu) { change_as_formerly(gpu, event, a.at); });
}

void apply(Application& a, const model::GpuUnavailableChanged& event) {
  change_gpu(a, event.gpu, [&](model::Gpu& gpu) {
    set_avoided(gpu, {.source = model::TaintSource::kCluster, .text = event.text, .by = "cluster"});
  });
}

void apply(Application& a, const model::NodeServiceChanged& event) {
  change_node(a, event.node, [&](Node& node) {
    const auto effect = model::effect_of(event.service);
    if (!effect) return model::lift_taint(node.taints, TaintSource::kCluster);
    model::set_taint(node.taints, {TaintSource::kCluster, *effect, event.cause, "cluster", {}});
  });
}

void apply(Application& a, const model::EvidenceRecorded& event) {
  Node& n = a.node(event.node);
  a.state.health.leave(n, event.gpu);
  base::Shared<std::vector<model::Evidence>>& evidence =
      event.gpu ? n.gpus.at(*event.gpu).evidence : n.evidence;
  std::vector<model::Evidence> kept = *evidence;
  health::keep(kept, event.evidence);
  evidence = std::move(kept);
  a.state.health.enter(n, event.gpu);
}

void apply(Application& a, const model::VerdictWithheld& event) {
  Node& n = a.node(event.gpu.node);
  a.state.health.leave(n, event.gpu.index);
  n.gpus.at(event.gpu.index).withheld_verdict = event.text;
  a.state.health.enter(n, event.gpu.index);
}

// A hold counts on CPUs and memory that others may have now; room is made anew where there is some.
void apply(Application& a, const model::NodeOthersChanged& event) {
  Node& n = a.node(event.node);
  const bool has_less = event.cpus > n.others_cpus || event.memory > n.others_memory;
  n.others_cpus = event.cpus;
  n.others_memory = event.memory;
  a.state.books.put(n);
  if (!has_less) return;
  drop_holds_that(a,
                  [&](const model::PreemptionHold& hold) { return is_on(hold.allocation, n.id); });
}

}  // namespace gpu_platform::controller
