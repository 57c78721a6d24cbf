#include "scheduling/order/waiting_classes.h"

#include <algorithm>
#include <functional>
#include <string>

#include "base/check.h"
#include "model/job_spec.h"

namespace gpu_platform::scheduling {

std::size_t WaitingClasses::Hash::operator()(const Key& key) const {
  const model::ResourceRequest& request = key.request;
  std::size_t hash = request.gpus;
  const auto mix = [&hash](std::size_t value) { hash = hash * 1'099'511'628'211U ^ value; };
  mix(static_cast<std::size_t>(key.time_limit.value()));
  mix(static_cast<std::size_t>(request.gpu_memory.value()));
  mix(request.cpus.value_or(0));
  mix(static_cast<std::size_t>(request.memory.value_or(base::Bytes()).value()));
  mix(static_cast<std::size_t>(key.expected_time.value()));
  mix(key.preemption);
  mix(key.record.stops * 2 + (key.record.had_others_stopped ? 1 : 0));
  mix(request.nodes * 2 + (request.cross_node ? 1 : 0));
  mix(static_cast<std::size_t>(request.within));
  mix(request.engines.bits);
  mix(static_cast<std::size_t>(request.capacity));
  for (const model::NodeId node : request.nodelist) mix(node.value);
  for (const model::NodeId node : request.exclude) mix(node.value);
  for (const std::uint32_t speed : request.gpu_speeds) mix(speed);
  for (const auto* gpus : {&request.gpus_avoid, &request.gpus_only}) {
    for (const std::string& uuid : *gpus) mix(std::hash<std::string>()(uuid));
  }
  mix(request.accept_degraded ? 1 : 0);
  mix(static_cast<std::size_t>(request.share_per_gpu.value()));
  mix(request.tenant.uid);
  mix(std::hash<std::string>()(request.reservation));
  for (const std::string& type : request.gpu_types) mix(std::hash<std::string>()(type));
  for (const std::string* name : {&key.team, &key.user, &key.project}) {
    mix(std::hash<std::string>()(*name));
  }
  return hash;
}

namespace {

// The inputs of the policy's decision whether a job may be stopped for others.
std::uint8_t preemption_of(const model::JobSpec& spec) {
  if (spec.preemptible) return *spec.preemptible ? 1 : 2;
  const int of_class = 3 + 2 * static_cast<int>(spec.priority.priority_class);
  return static_cast<std::uint8_t>(of_class + (spec.takes_input ? 1 : 0));
}

}  // namespace

WaitingClasses::Key WaitingClasses::key_of(const model::JobSpec& spec,
                                           const StopRecord& record) const {
  Key key{.request = spec.request,
          .time_limit = spec.time_limit,
          .expected_time = spec.expected_time.value_or(base::Duration()),
          .preemption = preemption_of(spec)};
  if (splits_by_owner_) {
    key.team = spec.team;
    key.user = spec.user;
    key.project = spec.project;
    key.record = record;
  }
  return key;
}

bool is_alike(const WaitingClasses& a, const WaitingClasses& b) {
  const auto is_same_class = [](const auto& one, const auto& other) {
    return std::ranges::equal(*one.second, *other.second, {}, &Rank::job, &Rank::job);
  };
  return a.splits_by_owner_ == b.splits_by_owner_ &&
         std::ranges::equal(a.by_first_, b.by_first_, is_same_class);
}

void WaitingClasses::split_by_owner(bool split) {
  CHECK(classes_.empty());
  splits_by_owner_ = split;
}

void WaitingClasses::add(const Rank& rank, const model::JobSpec& spec, const StopRecord& record) {
  std::set<Rank>& jobs = classes_[key_of(spec, record)];
  if (!jobs.empty()) by_first_.erase(*jobs.begin());
  CHECK(jobs.insert(rank).second);
  by_first_.emplace(*jobs.begin(), &jobs);
}

void WaitingClasses::remove(const Rank& rank, const model::JobSpec& spec,
                            const StopRecord& record) {
  const auto entry = classes_.find(key_of(spec, record));
  CHECK(entry != classes_.end());
  std::set<Rank>& jobs = entry->second;
  by_first_.erase(*jobs.begin());
  CHECK(jobs.erase(rank) == 1);
  if (jobs.empty()) {
    classes_.erase(entry);
  } else {
    by_first_.emplace(*jobs.begin(), &jobs);
  }
}

void WaitingClasses::clear() {
  by_first_.clear();
  classes_.clear();
}

WaitingClasses::Walk::Walk(const WaitingClasses& classes)
    : unmet_(classes.by_first_.begin()), end_(classes.by_first_.end()) {}

const Rank* WaitingClasses::Walk::next() {
  if (has_current_ && ++current_.at != current_.jobs->end()) {
    met_.push_back(current_);
    std::ranges::push_heap(met_, is_later);
  }
  has_current_ = true;
  if (unmet_ != end_ && (met_.empty() || unmet_->first < *met_.front().at)) {
    current_ = {unmet_->second, unmet_->second->begin()};
    ++unmet_;
  } else if (!met_.empty()) {
    std::ranges::pop_heap(met_, is_later);
    current_ = met_.back();
    met_.pop_back();
  } else {
    has_current_ = false;
    return nullptr;
  }
  return &*current_.at;
}

}  // namespace gpu_platform::scheduling
