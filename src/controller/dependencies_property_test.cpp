// The invariants of jobs that wait for times, for each other and for siblings, for any acts of
// people and programs: no job waits for what has been decided, no array exceeds its limit, and
// every job starts or ends.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {
namespace {

using model::Dependency;
using model::DependencyKind;
using model::JobId;
using model::JobState;
using testing::kNoon;

std::uint64_t draw(std::uint64_t n) {
  return *rc::gen::inRange<std::uint64_t>(0, n);
}

class DependencyWorld {
 public:
  DependencyWorld() {
    model::Policy policy;
    policy.max_time_limit = base::minutes(30);
    core_.apply_policy(policy, "test", now_);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 4)}, now_);
    settle();
  }

  void act() {
    switch (draw(8)) {
      case 0:
      case 1:
      case 2:
        return submit();
      case 3:
        return update();
      case 4:
        return act_on_some();
      case 5:
      case 6:
        return end_some();
      default:
        return pass_time();
    }
  }

  // Every held job is released and everything that runs ends, until nothing is left.
  void run_dry() {
    for (int rounds = 0; rounds < 10'000 && !core_.state().jobs.empty(); ++rounds) {
      for (const JobId id : jobs_in(JobState::kHeld)) {
        command(model::ActOnJob{id, model::JobAction::kRelease});
      }
      if (!core_.state().held_attempts.empty()) {
        end(*core_.state().held_attempts.begin(), 0);
        continue;
      }
      const auto wakeup = core_.next_wakeup();
      if (!wakeup) break;
      now_ = std::max(now_, *wakeup);
      settle();
    }
    RC_ASSERT(core_.state().jobs.empty());
    RC_ASSERT(core_.state().arrays.empty());
    RC_ASSERT(core_.state().admission_gates == AdmissionGates());
  }

  // Jobs that have left the core and waited for others.
  std::size_t departed_dependents() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        departed_, [](const model::Job& job) { return !job.spec->dependencies.empty(); }));
  }

 private:
  // As the loop does: every batch ends with a turn of the timers and the scheduler.
  void settle() {
    core_.advance(now_);
    for (const model::Job& job : core_.take_batch().ended_jobs) departed_.push_back(job);
    const auto violations = check_invariants(core_.state());
    RC_ASSERT(violations == std::vector<std::string>());
    RC_ASSERT(core_.state().admission_gates.hopeless().empty());
  }

  void command(decltype(model::Command::body) body) {
    // Much of it is refused, and then changes nothing.
    [[maybe_unused]] const auto reply =
        core_.command({{"ann", 1001}, std::move(body)}, now_, store::Headroom::kAmple);
    settle();
  }

  base::Instant soon(std::uint64_t minutes) {
    return now_ + base::minutes(static_cast<std::int64_t>(1 + draw(minutes)));
  }

  // Among those that have left the core, those that are there, and now and then one that never was.
  std::vector<Dependency> some_dependencies(std::vector<model::EndedTarget>& ended) {
    std::vector<Dependency> asked;
    for (std::uint64_t left = draw(4); left > 0; --left) {
      const JobId id(1 + draw(core_.state().last_job_id + 1));
      const bool whole_array = core_.state().arrays.find(id.value) != nullptr && draw(2) == 0;
      const DependencyKind kind = model::kAllDependencyKinds[draw(model::kDependencyKinds)];
      if (kind == DependencyKind::kSingleton) {
        asked.push_back({kind, {}});
        continue;
      }
      asked.push_back({kind, {id, whole_array}});
      for (const model::Job& job : departed_) {
        const bool is_named = whole_array ? job.array_id == id : job.id == id;
        if (!is_named) continue;
        model::EndedTarget target{{job.id, false}, {}};
        model::count_end(job, target.outcome);
        ended.push_back(target);
      }
    }
    return asked;
  }

  void submit() {
    model::SubmitJob submission;
    submission.spec = testing::spec(1);
    submission.spec.time_limit = base::minutes(static_cast<std::int64_t>(1 + draw(20)));
    if (draw(3) == 0) submission.spec.begin = soon(10);
    if (draw(3) == 0) submission.spec.deadline = soon(60);
    if (draw(2) == 0) submission.spec.dependencies = some_dependencies(submission.ended);
    if (draw(3) == 0) {
      submission.spec.array = model::ArraySpec{{{0, static_cast<std::uint32_t>(draw(6)), 1}},
                                               static_cast<std::uint32_t>(draw(3))};
    }
    submission.hold = draw(5) == 0;
    command(std::move(submission));
  }

  void update() {
    model::UpdateJob update;
    update.job = JobId(1 + draw(core_.state().last_job_id + 1));
    update.whole_array = core_.state().arrays.find(update.job.value) != nullptr && draw(2) == 0;
    if (draw(3) == 0) {
      update.to.set(&model::JobSpec::begin, draw(4) == 0 ? base::Instant() : soon(10));
    }
    if (draw(3) == 0) {
      update.to.set(&model::JobSpec::deadline, draw(4) == 0 ? base::Instant() : soon(60));
    }
    if (draw(2) == 0) {
      update.to.set(&model::JobSpec::dependencies, some_dependencies(update.ended));
    }
    if (draw(4) == 0) {
      update.to.set(&model::JobSpec::time_limit,
                    base::minutes(static_cast<std::int64_t>(1 + draw(20))));
    }
    command(std::move(update));
  }

  void act_on_some() {
    constexpr model::JobAction kActions[] = {model::JobAction::kCancel, model::JobAction::kHold,
                                             model::JobAction::kRelease, model::JobAction::kRequeue,
                                             model::JobAction::kRequeueAndHold};
    const JobId id(1 + draw(core_.state().last_job_id + 1));
    const bool whole_array = core_.state().arrays.find(id.value) != nullptr && draw(2) == 0;
    command(model::ActOnJob{id, kActions[draw(5)], whole_array});
  }

  void end_some() {
    const auto& held = core_.state().held_attempts;
    if (held.empty()) return;
    end(*std::next(held.begin(), static_cast<std::ptrdiff_t>(draw(held.size()))),
        static_cast<std::uint8_t>(draw(2)));
  }

  void end(model::AttemptId attempt, std::uint8_t code) {
    core_.observe(testing::ended(attempt, code, now_), now_);
    settle();
    core_.observe(execution::Cleaned{attempt}, now_);
    settle();
  }

  void pass_time() {
    now_ = soon(5);
    settle();
  }

  std::vector<JobId> jobs_in(JobState state) const {
    std::vector<JobId> ids;
    core_.state().jobs.for_each([&](std::uint64_t, const model::Job& job) {
      if (job.state == state) ids.push_back(job.id);
    });
    return ids;
  }

  base::Instant now_ = kNoon;
  Core core_;
  std::vector<model::Job> departed_;
};

TEST(Dependencies, EveryJobStartsOrEndsAndNoneWaitsForADecidedOne) {
  std::size_t dependents = 0;
  EXPECT_TRUE(rc::check("random submissions, changes and ends", [&dependents] {
    DependencyWorld world;
    const std::uint64_t steps = draw(60);
    for (std::uint64_t step = 0; step < steps; ++step) world.act();
    world.run_dry();
    dependents += world.departed_dependents();
  }));
  EXPECT_GT(dependents, 100U);
}

}  // namespace
}  // namespace gpu_platform::controller
