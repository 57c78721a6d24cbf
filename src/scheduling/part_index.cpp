#include "scheduling/part_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace gpu_platform::scheduling {

namespace {

model::SharedBetween between(model::ShareMode mode, model::SharedBetween between_users) {
  return mode == model::ShareMode::kMps ? model::SharedBetween::kNever : between_users;
}

bool are_of_one_user(const std::vector<model::Tenant>& tenants) {
  return tenants.front().uid == tenants.back().uid;  // ascending by user
}

bool are_of_one_team(const std::vector<model::Tenant>& tenants) {
  const std::string& team = tenants.front().team;
  return !team.empty() &&
         std::ranges::all_of(tenants, [&](const model::Tenant& each) { return each.team == team; });
}

}  // namespace

void add_part(PartState& state, const model::GpuGrant& grant, const model::Tenant& tenant) {
  if (state.tenants.empty()) state.mode = grant.mode;
  CHECK(state.mode == grant.mode);
  CHECK(state.free_share >= grant.share && state.free_memory >= grant.memory);
  state.free_share -= grant.share;
  state.free_memory -= grant.memory;
  state.tenants.insert(std::ranges::upper_bound(state.tenants, tenant), tenant);
}

void remove_part(PartState& state, const model::GpuGrant& grant, const model::Tenant& tenant) {
  const auto found = std::ranges::lower_bound(state.tenants, tenant);
  CHECK(found != state.tenants.end() && *found == tenant);
  state.tenants.erase(found);
  state.free_share += grant.share;
  state.free_memory += grant.memory;
}

bool may_join(const PartState& state, const model::Tenant& tenant,
              model::SharedBetween between_users, std::uint32_t max_jobs) {
  if (state.tenants.size() >= max_jobs) return false;
  if (are_of_one_user(state.tenants) && state.tenants.front().uid == tenant.uid) return true;
  switch (between(state.mode, between_users)) {
    case model::SharedBetween::kNever:
      return false;
    case model::SharedBetween::kTeam:
      return are_of_one_team(state.tenants) && state.tenants.front().team == tenant.team;
    case model::SharedBetween::kAll:
      return true;
  }
  CHECK(false);
  std::unreachable();
}

PartState PartIndex::exchange(const model::GpuRef& gpu, const PartState& state) {
  const auto known = states_.find(gpu);
  PartState former;
  if (known != states_.end()) {
    erase(gpu, known->second);
    former = std::move(known->second);
    states_.erase(known);
  }
  if (!state.tenants.empty()) {
    put(gpu, state);
    states_.emplace(gpu, state);
  }
  return former;
}

void PartIndex::follow(const model::Sharing& rules) {
  if (between_users_ == rules.between_users && max_jobs_ == rules.max_jobs) return;
  between_users_ = rules.between_users;
  max_jobs_ = rules.max_jobs;
  buckets_.clear();
  on_.clear();
  for (const auto& [gpu, state] : states_) put(gpu, state);
}

const PartState* PartIndex::find(const model::GpuRef& gpu) const {
  const auto found = states_.find(gpu);
  return found == states_.end() ? nullptr : &found->second;
}

GpuMask PartIndex::on(model::NodeId node) const {
  if (on_.empty()) return 0;
  const auto found = on_.find(node);
  return found == on_.end() ? 0 : found->second;
}

bool PartIndex::takes_more(const PartState& state) const {
  return state.is_open && !state.is_withheld && state.free_share > base::GpuShare() &&
         state.tenants.size() < max_jobs_;
}

std::vector<PartIndex::Bucket> PartIndex::buckets_of(const PartState& state) const {
  std::vector<Bucket> buckets;
  if (!takes_more(state)) return buckets;
  const model::SharedBetween between_users = between(state.mode, between_users_);
  Bucket bucket{.type = state.type, .mode = state.mode, .team = {}};
  if (between_users == model::SharedBetween::kAll) {
    bucket.between = model::SharedBetween::kAll;
    buckets.push_back(std::move(bucket));
    return buckets;
  }
  if (are_of_one_user(state.tenants)) {
    bucket.uid = state.tenants.front().uid;
    buckets.push_back(bucket);
  }
  if (between_users == model::SharedBetween::kTeam && are_of_one_team(state.tenants)) {
    bucket.between = model::SharedBetween::kTeam;
    bucket.uid = 0;
    bucket.team = state.tenants.front().team;
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

std::vector<PartIndex::Part> PartIndex::parts_for(const Search& search) const {
  std::vector<Part> parts;
  const auto add = [&](const Bucket& bucket) {
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return;
    const Entry first{search.least_share, {}, {}};
    parts.push_back({found->second.lower_bound(first), found->second.end()});
  };
  const model::SharedBetween between_users = between(search.mode, between_users_);
  for (const TypeIndex type : search.types) {
    Bucket bucket{.type = type, .mode = search.mode, .team = {}};
    if (between_users == model::SharedBetween::kAll) {
      bucket.between = model::SharedBetween::kAll;
      add(bucket);
      continue;
    }
    bucket.uid = search.tenant.uid;
    add(bucket);
    if (between_users != model::SharedBetween::kTeam || search.tenant.team.empty()) continue;
    bucket.between = model::SharedBetween::kTeam;
    bucket.uid = 0;
    bucket.team = search.tenant.team;
    add(bucket);
  }
  return parts;
}

void PartIndex::put(const model::GpuRef& gpu, const PartState& state) {
  on_[gpu.node] |= GpuMask{1} << gpu.index;
  for (const Bucket& bucket : buckets_of(state)) {
    buckets_[bucket].insert({state.free_share, state.free_memory, gpu});
  }
}

void PartIndex::erase(const model::GpuRef& gpu, const PartState& state) {
  const auto on = on_.find(gpu.node);
  CHECK(on != on_.end());
  on->second &= ~(GpuMask{1} << gpu.index);
  if (on->second == 0) on_.erase(on);
  for (const Bucket& bucket : buckets_of(state)) {
    const auto found = buckets_.find(bucket);
    CHECK(found != buckets_.end());
    CHECK(found->second.erase({state.free_share, state.free_memory, gpu}) == 1);
    if (found->second.empty()) buckets_.erase(found);
  }
}

void PartIndex::encode(base::Encoder& out) const {
  out.u64(static_cast<std::uint64_t>(between_users_));
  out.u64(max_jobs_);
  out.u64(states_.size());
  for (const auto& [gpu, state] : states_) {
    out.u64(gpu.node.value);
    out.u64(gpu.index);
    out.u64(static_cast<std::uint64_t>(state.mode));
    out.i64(state.free_share.value());
    out.i64(state.free_memory.value());
    out.boolean(state.is_open);
    out.boolean(state.is_withheld);
    for (const model::Tenant& tenant : state.tenants) {
      out.u64(tenant.uid);
      out.text(tenant.team);
    }
    // Types are numbered in the order in which they became known, so no bucket is named.
    std::uint64_t found_in = 0;
    for (const auto& [bucket, entries] : buckets_) {
      found_in += entries.contains({state.free_share, state.free_memory, gpu}) ? 1 : 0;
    }
    out.u64(found_in);
    out.u64(on(gpu.node));
  }
}

}  // namespace gpu_platform::scheduling
