#include "controller/apply/events.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "controller/apply/borrowing.h"
#include "controller/apply/preemption_holds.h"

namespace gpu_platform::controller {

using model::Attempt;
using model::GpuTrigger;
using model::Job;
using model::Node;

namespace {

bool is_on(const model::Allocation& allocation, model::NodeId node) {
  return std::ranges::find(allocation.nodes, node, &model::NodeAllocation::node) !=
         allocation.nodes.end();
}

// A GPU back in service with a job still on it is where that job's attempt is.
void follow_holder(const State& state, model::Gpu& gpu) {
  for (const model::GpuHolder& holder : gpu.holders) {
    const Job* j = state.jobs.find(holder.attempt.job.value);
    CHECK(j != nullptr);
    const Attempt& attempt = j->attempts.at(holder.attempt.attempt - 1);
    move_gpu(gpu, GpuTrigger::kAllocate);
    if (attempt.state == model::AttemptState::kCleaning) {
      move_gpu(gpu, GpuTrigger::kEnd);
    } else if (attempt.started_at.is_set()) {
      move_gpu(gpu, GpuTrigger::kStart);
    }
  }
}

void change_taints(model::Gpu& gpu, const model::GpuStateChanged& event, base::Instant at) {
  const bool is_former = event.source == model::TaintSource::kFormer;
  const bool is_by_driver = is_former && event.cause == model::kFormerDriverText;
  const model::TaintSource source = is_by_driver ? model::TaintSource::kDriver
                                    : is_former  ? model::TaintSource::kOperator
                                                 : event.source;
  if (is_former) gpu.taints.clear();
  if (event.trigger == GpuTrigger::kBringOnline) return model::lift_taint(gpu.taints, source);
  const bool is_out = event.trigger == GpuTrigger::kTakeOffline;
  model::set_taint(gpu.taints,
                   {source, is_out ? model::TaintEffect::kOut : model::TaintEffect::kNoNewWork,
                    event.cause, event.by, at});
}

// The state and what is shown of it follow from the taints.
void apply_taints(const State& state, model::Gpu& gpu) {
  const model::Taint* const worst = model::worst_of(gpu.taints);
  gpu.cause = model::text_of(gpu.taints);
  gpu.changed_by = worst == nullptr ? std::string() : worst->by;
  gpu.changed_at = worst == nullptr ? base::Instant() : worst->at;
  const std::optional<model::GpuState> says = model::state_by(gpu.taints);
  if (!says) {
    if (model::next(gpu.state, GpuTrigger::kBringOnline)) {
      move_gpu(gpu, GpuTrigger::kBringOnline);
      follow_holder(state, gpu);
    }
    return;
  }
  if (gpu.state == *says) return;
  const bool is_out = *says == model::GpuState::kOffline;
  move_gpu(gpu, is_out ? GpuTrigger::kTakeOffline : GpuTrigger::kDrain);
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
  model::describe(n, event.info, event.reuses_places ? free_places(a.state, n) : 0);
  a.state.books.put(n);
  follow_cluster_size(a, gpus_before);
  // Rare, and it may be smaller: room is made anew where there is some.
  drop_holds_that(a,
                  [&](const model::PreemptionHold& hold) { return is_on(hold.allocation, n.id); });
}

void apply(Application& a, const model::NodeStateChanged& event) {
  Node& n = a.node(event.node);
  const auto to = model::next(n.state, event.trigger);
  CHECK(to.has_value());
  n.state = *to;
  if (event.trigger == model::NodeTrigger::kBringOnline) {
    n.prolog_failed_for = {};
    n.epilog_failed_for = {};
  }
  if (event.trigger == model::NodeTrigger::kLose) n.is_heard = false;
  if (event.trigger == model::NodeTrigger::kSeen) n.is_heard = true;
  const bool by_person =
      n.state == model::NodeState::kDraining || n.state == model::NodeState::kOffline;
  const bool is_news_of_it =
      event.trigger == model::NodeTrigger::kLose || event.trigger == model::NodeTrigger::kSeen;
  if (!by_person || !is_news_of_it) {
    n.cause = n.state == model::NodeState::kUp ? std::string() : event.cause;
  }
  a.state.books.put(n);
  drop_holds_that_cannot_be_met(a, n);
}

void apply(Application& a, const model::GpuStateChanged& event) {
  Node& n = a.node(event.gpu.node);
  model::Gpu& gpu = n.gpus.at(event.gpu.index);
  change_taints(gpu, event, a.at);
  apply_taints(a.state, gpu);
  a.state.books.put(n);
  drop_holds_that_cannot_be_met(a, n);
}

void apply(Application& a, const model::UnmanagedProcessesChanged& event) {
  Node& n = a.node(event.gpu.node);
  model::Gpu& gpu = n.gpus.at(event.gpu.index);
  gpu.unmanaged_processes = event.text;
  gpu.avoids_unmanaged_processes = event.avoid && !event.text.empty();
  a.state.books.put(n);
  drop_holds_that_cannot_be_met(a, n);
}

void apply(Application& a, const model::GpuUnavailableChanged& event) {
  Node& n = a.node(event.gpu.node);
  n.gpus.at(event.gpu.index).unavailable = event.text;
  a.state.books.put(n);
  drop_holds_that_cannot_be_met(a, n);
}

void apply(Application& a, const model::NodeServiceChanged& event) {
  Node& n = a.node(event.node);
  n.service = event.service;
  n.service_cause = event.cause;
  a.state.books.put(n);
  drop_holds_that_cannot_be_met(a, n);
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
