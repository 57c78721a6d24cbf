#include "controller/invariants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/core.h"
#include "controller/test_support.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {
namespace {

using testing::attempt;
using testing::kNoon;

// Job 1 runs on two GPUs, job 2 waits for its back-off, job 3 is queued.
Core world() {
  Core core;
  core.apply_policy(model::Policy(), "test", kNoon);
  core.observe(execution::NodeObserved{testing::node_info("n1", 4)}, kNoon);
  EXPECT_TRUE(core.command(testing::submission(testing::spec(2)), kNoon, store::Headroom::kAmple));
  core.advance(kNoon);
  core.observe(execution::Started{attempt(1), 77, kNoon}, kNoon);
  model::JobSpec retried = testing::spec(2);
  retried.retries = 1;
  retried.request_id = "r";
  EXPECT_TRUE(core.command(testing::submission(retried), kNoon, store::Headroom::kAmple));
  core.advance(kNoon);
  core.observe(testing::ended(attempt(2), 1, kNoon), kNoon);
  core.observe(execution::Cleaned{attempt(2)}, kNoon);
  EXPECT_TRUE(core.command(testing::submission(testing::spec(4)), kNoon, store::Headroom::kAmple));
  core.advance(kNoon);
  return core;
}

struct Breakage {
  std::string invariant;
  std::string what;
  std::function<void(State&)> mutate;
};

model::Gpu& gpu(State& state, std::size_t index) {
  return state.nodes.find_mutable(1)->gpus.at(index);
}

model::Job& job(State& state, std::uint64_t id) {
  return *state.jobs.find_mutable(id);
}

template <class Write>
void rewrite(State& state, Write write) {
  state.books.rewrite(write);
}

std::vector<Breakage> breakages() {
  return {
      {"capacity", "more of a GPU is held than there is",
       [](State& s) { gpu(s, 0).holders.front().share = base::GpuShare(7001); }},
      {"capacity", "more of a GPU's memory is held than there is",
       [](State& s) { gpu(s, 0).holders.front().memory = base::kGiB * 81; }},
      {"sharing", "a GPU is whole and has a mode",
       [](State& s) { gpu(s, 0).holders.front().mode = model::ShareMode::kMps; }},
      {"sharing", "a part of a GPU has no mode",
       [](State& s) { gpu(s, 0).holders.front().share = base::GpuShare(3500); }},
      {"holders", "a GPU knows another amount of memory than the attempt that has it",
       [](State& s) { gpu(s, 0).holders.front().memory = base::kGiB; }},
      {"gang", "an attempt without a part has a tenant",
       [](State& s) { job(s, 1).attempts.front().allocation.tenant.uid = 5; }},
      {"capacity", "more CPUs are in use than there are",
       [](State& s) { s.nodes.find_mutable(1)->cpus_used = 65; }},
      {"capacity", "more memory is in use than there is",
       [](State& s) { s.nodes.find_mutable(1)->memory_used = base::kGiB * 513; }},
      {"holders", "a GPU is held by a job that is not there",
       [](State& s) { gpu(s, 0).holders.front().attempt = attempt(99); }},
      {"holders", "a GPU does not know the attempt that has a grant of it",
       [](State& s) { gpu(s, 0).holders.clear(); }},
      {"holders", "the CPUs in use are not the sum of what attempts hold",
       [](State& s) { ++s.nodes.find_mutable(1)->cpus_used; }},
      {"gang", "an attempt holds fewer GPUs than its job asked for",
       [](State& s) { job(s, 1).attempts.front().allocation.nodes.front().grants.pop_back(); }},
      {"names", "a job runs on a GPU that it avoids",
       [](State& s) {
         model::JobSpec spec = *job(s, 1).spec;
         spec.request.gpus_avoid = {gpu(s, 0).info.uuid};
         job(s, 1).spec = std::make_shared<const model::JobSpec>(std::move(spec));
       }},
      {"taints", "a GPU that an operator drains takes work",
       [](State& s) {
         model::set_taint(gpu(s, 1).taints, {.source = model::TaintSource::kOperator});
       }},
      {"taints", "a GPU is offline and nothing keeps it from work",
       [](State& s) { gpu(s, 1).state = model::GpuState::kOffline; }},
      {"free", "an available GPU is held",
       [](State& s) { gpu(s, 0).state = model::GpuState::kAvailable; }},
      {"holders", "a GPU takes its running job for one that has ended",
       [](State& s) { gpu(s, 0).holders.front().phase = model::HolderPhase::kCleaning; }},
      {"free", "a GPU in use is held by no attempt",
       [](State& s) { gpu(s, 3).state = model::GpuState::kInUse; }},
      {"one-process", "a running job has no process",
       [](State& s) { job(s, 1).attempts.front().state = model::AttemptState::kCleaning; }},
      {"one-process", "a job has two attempts with processes",
       [](State& s) { job(s, 1).attempts.push_back(job(s, 1).attempts.front()); }},
      {"one-process", "a waiting job has a process",
       [](State& s) { job(s, 2).attempts.front().state = model::AttemptState::kRunning; }},
      {"prolog", "a job that runs avoids nodes",
       [](State& s) { job(s, 1).prolog_failed_on = {model::NodeId(1)}; }},
      {"prolog", "a job is held for its prolog, which did not fail",
       [](State& s) { job(s, 1).hold = model::Hold::kByPlatform; }},
      {"conservation", "a job that has ended and holds nothing is still there",
       [](State& s) { job(s, 2).state = model::JobState::kFailed; }},
      {"indices", "what counts against quotas is not what the jobs come to",
       [](State& s) {
         rewrite(s, [](auto& p) {
           p.quotas.add_used({{model::QuotaHolder::kUser, "ann"}, {}}, 7, {});
         });
       }},
      {"indices", "the cluster is larger than its nodes",
       [](State& s) {
         model::Node more = *s.nodes.find(1);
         more.id = model::NodeId(2);
         s.books.put(more);
       }},
      {"quota", "more GPUs are held than a limit that was not lowered since allows",
       [](State& s) {
         model::Policy policy = *s.policy;
         policy.organisation = model::Organisation{.of_each_user = {.max_gpus = 1}};
         s.policy = std::make_shared<model::Policy>(policy);
         rebuild_indices(s);
         s.limits_set_at = base::Instant(1);
       }},
      {"quota", "more GPU-hours of a type are spoken for than a limit on its family allows",
       [](State& s) {
         model::Policy policy = *s.policy;
         const model::TypeQuota h100{.type = "H100", .max_gpus = {}, .gpu_hours = 1};
         policy.organisation = model::Organisation{.of_each_user = {.gpu_types = {h100}}};
         s.policy = std::make_shared<model::Policy>(policy);
         rebuild_indices(s);
         s.limits_set_at = base::Instant(1);
       }},
      {"guarantees", "work that cannot be stopped holds GPUs of a type of others",
       [](State& s) {
         model::Policy policy = *s.policy;
         policy.organisation =
             model::Organisation{.of_users = {{"cat", {.gpu_types = {{"H100", {}, 99}}}}}};
         policy.allow_preemption = false;
         s.policy = std::make_shared<model::Policy>(policy);
         rebuild_indices(s);
         s.limits_set_at = base::Instant(1);
       }},
      {"indices", "the counts are wrong", [](State& s) { ++s.counts.queued; }},
      {"indices", "a job in back-off would never wake up",
       [](State& s) { s.admission_gates = AdmissionGates(); }},
      {"dependencies", "a waiting job waits for one that is not there",
       [](State& s) {
         job(s, 2).waits_for = {{model::DependencyKind::kAfterOk, {model::JobId(99), false}}};
       }},
      {"dependencies", "a waiting job is past what it waits for, which can never be",
       [](State& s) { job(s, 3).dependency_failure = "never"; }},
      {"array", "a member's array is not known",
       [](State& s) { job(s, 3).array_id = model::JobId(3); }},
      {"array", "an array counts members that are not there",
       [](State& s) { s.arrays.put(9, {model::JobId(9), 1, 1, 0, {.open = 1}}); }},
      {"indices", "an attempt that holds resources is forgotten",
       [](State& s) { s.held_attempts.clear(); }},
      {"indices", "a lifetime of a request id is invented",
       [](State& s) { s.expiring_requests.put(kNoon, {"ann", "r"}); }},
      {"indices", "a queued job is not in the queue",
       [](State& s) { rewrite(s, [](auto& p) { p.queue.erase(model::JobId(3)); }); }},
      {"indices", "the index of free capacity is behind",
       [](State& s) {
         model::Node node = *s.nodes.find(1);
         node.cpus_used = 0;
         s.books.put(node);
       }},
      {"indices", "a node has an unknown name",
       [](State& s) { s.node_ids.emplace("n7", model::NodeId(7)); }},
      {"indices", "the policy's limits of hours are forgotten",
       [](State& s) { s.limits_hours = !s.limits_hours; }},
      {"indices", "a waiting job's turn is forgotten",
       [](State& s) {
         rewrite(
             s, [&](auto& p) { p.starvation_queue.erase(*s.jobs.find(3)->spec, model::JobId(3)); });
       }},
      {"indices", "the end of an attempt is another",
       [](State& s) { rewrite(s, [](auto& p) { p.running.put(attempt(1), kNoon, {}, true); }); }},
      {"indices", "a victim is invented",
       [](State& s) { rewrite(s, [](auto& p) { p.victims.put({.attempt = attempt(1)}); }); }},
      {"indices", "an attempt borrows without a guarantee",
       [](State& s) {
         s.books.follow_guarantees(scheduling::Pools({{"", {.of = {{{}, {}}}, .shared = {}}}}));
       }},
      {"indices", "the queue knows a job as it was",
       [](State& s) {
         model::Job changed = *s.jobs.find(3);
         changed.preemptions = 1;
         s.books.update_waiting(changed);
       }},
  };
}

State broken(const Breakage& breakage) {
  State state = *decode_state(encode_state(world().state()));
  breakage.mutate(state);
  return state;
}

bool names(const std::vector<std::string>& violations, const std::string& invariant) {
  return std::ranges::any_of(
      violations, [&](const std::string& each) { return each.starts_with(invariant + ": "); });
}

TEST(Invariants, HoldInASoundWorld) {
  const Core core = world();
  EXPECT_EQ(check_invariants(core.state()), std::vector<std::string>());
  for (const std::uint64_t id : {1, 2, 3}) {
    EXPECT_EQ(check_job(core.state(), model::JobId(id)), std::vector<std::string>());
  }
}

TEST(Invariants, EachKindOfBrokenStateIsFound) {
  for (const Breakage& breakage : breakages()) {
    State state = broken(breakage);
    EXPECT_TRUE(names(check_invariants(state), breakage.invariant)) << breakage.what;
  }
}

// The daemon runs this check before each commit. It looks at the job and its nodes, at little cost.
TEST(Invariants, TheCheapCheckFindsWhatOneJobTouches) {
  for (const Breakage& breakage : breakages()) {
    const bool is_local = breakage.invariant != "indices" && breakage.invariant != "conservation" &&
                          breakage.invariant != "array" && breakage.invariant != "quota" &&
                          breakage.invariant != "guarantees" &&
                          breakage.what.find("sum") == std::string::npos &&
                          breakage.what.find("waiting") == std::string::npos;
    if (!is_local) continue;
    EXPECT_TRUE(names(check_job(broken(breakage), model::JobId(1)), breakage.invariant))
        << breakage.what;
  }
}

}  // namespace
}  // namespace gpu_platform::controller
