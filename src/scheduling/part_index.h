#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/units.h"
#include "model/allocation.h"
#include "model/gpu_part.h"
#include "model/ids.h"
#include "model/policy.h"
#include "scheduling/gpu_layout.h"

namespace gpu_platform::scheduling {

// A GPU that jobs have parts of.
struct PartState {
  TypeIndex type = 0;  // the cluster's number
  model::ShareMode mode = model::ShareMode::kNone;
  base::GpuShare free_share;
  base::Bytes free_memory;
  std::vector<model::Tenant> tenants;  // ascending, one for each job; none: no job has a part of it
  bool is_open = false;                // it takes more parts: by its health and the site's rules
  bool is_withheld = false;            // not now; trials alone do that

  friend bool operator==(const PartState&, const PartState&) = default;
};

// Adds or removes a job with that part. Removing the last one leaves the state without tenants.
void add_part(PartState& state, const model::GpuGrant& grant, const model::Tenant& tenant);
void remove_part(PartState& state, const model::GpuGrant& grant, const model::Tenant& tenant);

// Returns whether a job of the tenant may have a part beside those that are there. The site says
// which owners may share a GPU, and how many jobs. An MPS server is of one user.
bool may_join(const PartState& state, const model::Tenant& tenant,
              model::SharedBetween between_users, std::uint32_t max_jobs);

// The GPUs that jobs have parts of, and the fullest of them that a part may still go to. A GPU that
// no job has, or one job has alone, is not in it: a decision about whole GPUs never looks here.
//
// Ownership: holds copies. Thread: one owner. Cost: exchange O(log GPUs); a search O(log GPUs), and
// one step for each GPU that the caller passes over.
class PartIndex {
 public:
  // Replaces the state of the GPU and returns the former one. A state without tenants stands for a
  // GPU that is not here.
  PartState exchange(const model::GpuRef& gpu, const PartState& state);

  // By them it is decided who may share a GPU, and how many jobs.
  void follow(const model::Sharing& rules);

  bool empty() const { return states_.empty(); }
  const PartState* find(const model::GpuRef& gpu) const;
  // Returns the node's GPUs that are here.
  GpuMask on(model::NodeId node) const;
  // Returns whether the tenant's job may have a part beside the jobs that are there.
  bool admits(const PartState& state, const model::Tenant& tenant) const {
    return may_join(state, tenant, between_users_, max_jobs_);
  }

  struct Search {
    std::vector<TypeIndex> types;
    model::ShareMode mode = model::ShareMode::kNone;
    model::Tenant tenant;
    base::GpuShare least_share;
  };
  // Calls visit(GpuRef, const PartState&) for the GPUs with so much free share that admit the
  // tenant, the fullest first, until it returns true; then returns true as well. Ties: less free
  // memory, the lower node and index. It may visit a GPU twice. The index must not change
  // meanwhile.
  template <class Visit>
  bool any_of_fullest(const Search& search, const Visit& visit) const {
    std::vector<Part> parts = parts_for(search);
    while (true) {
      Part* next = nullptr;
      for (Part& part : parts) {
        if (part.at == part.end) continue;
        if (next == nullptr || *part.at < *next->at) next = &part;
      }
      if (next == nullptr) return false;
      const Entry& entry = *(next->at++);
      if (visit(entry.gpu, states_.find(entry.gpu)->second)) return true;
    }
  }

  // All of it in an order of its own, with what the search would find.
  void encode(base::Encoder& out) const;

 private:
  // Whose jobs may join: those of one user, of one team, or all.
  struct Bucket {
    TypeIndex type = 0;
    model::ShareMode mode = model::ShareMode::kNone;
    model::SharedBetween between = model::SharedBetween::kNever;
    std::uint32_t uid = 0;
    std::string team;

    friend auto operator<=>(const Bucket&, const Bucket&) = default;
  };
  struct Entry {
    base::GpuShare free_share;
    base::Bytes free_memory;
    model::GpuRef gpu;

    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  using Entries = std::set<Entry>;
  struct Part {
    Entries::const_iterator at;
    Entries::const_iterator end;
  };

  bool takes_more(const PartState& state) const;
  std::vector<Bucket> buckets_of(const PartState& state) const;
  std::vector<Part> parts_for(const Search& search) const;
  void put(const model::GpuRef& gpu, const PartState& state);
  void erase(const model::GpuRef& gpu, const PartState& state);

  model::SharedBetween between_users_ = model::Sharing().between_users;
  std::uint32_t max_jobs_ = model::Sharing().max_jobs;
  std::map<model::GpuRef, PartState> states_;
  std::map<model::NodeId, GpuMask> on_;  // none is zero
  std::map<Bucket, Entries> buckets_;    // none is empty
};

}  // namespace gpu_platform::scheduling
