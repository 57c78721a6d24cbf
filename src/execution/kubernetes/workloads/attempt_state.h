#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "execution/kubernetes/workloads/attempts.h"
#include "execution/kubernetes/workloads/end.h"
#include "model/job_spec.h"

// What WorkloadAttempts keeps of each attempt; for its own sources alone.

namespace gpu_platform::execution {

// The place of one pod of an attempt.
struct WorkloadAttempts::PodSlot {
  std::uint32_t rank = 0;
  std::optional<PodView> pod;        // the last that had it, also when it is gone
  bool is_there = false;             // that pod is in the cluster
  std::optional<WorkloadPod> offer;  // the waiting pod that gets it
  std::string awaited;               // the uid of a pod that was admitted and is not seen yet
  base::Instant awaited_since;
  std::uint64_t under_way = 0;
  int tries = 0;
  base::Instant not_before;  // of the next call
  bool is_delete_sent = false;
  std::uint32_t delete_grace = 0;
  // The claim of the platform's for its devices.
  std::string claim;  // empty: there is none
  std::string claim_namespace;
  bool is_claim_made = false;    // by us, or seen
  base::Instant claim_asked_at;  // when its removal was last asked for

  bool is_alive() const { return is_there && !is_dead(*pod); }
  bool is_free() const { return !is_alive() && !offer && awaited.empty() && under_way == 0; }
};

struct WorkloadAttempts::Attempt : AttemptLife {
  std::string key;
  std::string namespace_name;              // of the workload; empty: its order is not known
  std::map<std::uint32_t, PodSlot> slots;  // by rank; from holders() on: pods that hold nothing
  std::vector<PodSlot> surplus;            // pods of a rank that another pod has
  std::set<std::string> gone;              // uids: what is gone does not come back
  bool was_admitted = false;               // a pod of it, ever
  bool is_changed = true;                  // since changed_at was set
  base::Instant changed_at;
  base::Instant owner_asked_at;       // since it changed; unset: it was not
  std::optional<OwnerEnd> owner_end;  // unset: it has not ended

  // A user may write our labels on pods of another namespace; they are not the attempt's.
  bool is_foreign(const std::string& name) const { return has_order && name != namespace_name; }
  // What was seen before the order was known gives way to the attempt's own.
  void drop_foreign() {
    std::erase_if(surplus,
                  [this](const PodSlot& each) { return is_foreign(each.pod->namespace_name); });
    for (auto& [rank, slot] : slots) {
      if (!slot.claim.empty() && is_foreign(slot.claim_namespace)) {
        slot.claim.clear();
        slot.is_claim_made = false;
      }
      if (!slot.pod || !is_foreign(slot.pod->namespace_name)) continue;
      slot.pod.reset();
      slot.is_there = false;
      const auto own = std::ranges::find(surplus, slot.rank, &PodSlot::rank);
      if (own == surplus.end()) continue;
      slot.pod = std::move(own->pod);
      slot.is_there = own->is_there;
      surplus.erase(own);
    }
  }

  std::uint32_t holders() const { return has_order ? order.spec->workload_pods.value_or(1) : 0; }
  bool holds(const WorkloadPod& waiting) const {
    return order.spec->request.gpus == 0 || waiting.gpus > 0;
  }
  // The job was given what its first pods asked for: one that asks for more is none of it.
  bool may_have_slot(const WorkloadPod& waiting) const {
    const model::ResourceRequest& request = order.spec->request;
    const std::uint64_t of_all = std::uint64_t{request.gpus} * request.nodes;
    const std::uint64_t each = of_all / std::max<std::uint32_t>(1, holders());
    return waiting.uncounted.empty() && (waiting.gpus == 0 || waiting.gpus == each);
  }
  const std::string& node_of(std::uint32_t rank) const {
    const std::size_t on_each = std::max<std::size_t>(1, holders() / order.nodes.size());
    return order.nodes.at(std::min(rank / on_each, order.nodes.size() - 1)).node_name;
  }
  bool is_disrupted() const {
    return std::ranges::any_of(slots, [](const auto& slot) {
      return slot.second.pod && execution::is_disrupted(*slot.second.pod);
    });
  }
  bool must_go() const {
    return stop.has_value() || !failed_start.empty() || ended.has_value() || is_disrupted();
  }
  // The GPUs of a slot: its part of its node's.
  std::vector<LaunchGpu> gpus_of(std::uint32_t rank) const {
    const std::size_t on_each = std::max<std::size_t>(1, holders() / order.nodes.size());
    const auto& all = order.nodes.at(std::min(rank / on_each, order.nodes.size() - 1)).gpus;
    const std::size_t each = all.size() / on_each;
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank % on_each * each);
    return {first, first + static_cast<std::ptrdiff_t>(each)};
  }
  bool has_claims() const {
    return std::ranges::any_of(slots, [](const auto& slot) { return !slot.second.claim.empty(); });
  }
  // No pod of it is alive, and none is on its way.
  bool is_empty() const {
    const auto is_quiet = [](const PodSlot& slot) { return slot.is_free(); };
    return std::ranges::all_of(slots, [&](const auto& slot) { return is_quiet(slot.second); }) &&
           std::ranges::all_of(surplus, is_quiet);
  }
};

}  // namespace gpu_platform::execution
