#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "execution/kubernetes/workloads/attempts.h"
#include "model/job_spec.h"

// Controllers of others that make pods again and again, a cluster that lies, is late and repeats
// itself, and a platform that crashes: in every case, a slot has one pod that runs at a time, an
// end is told once, nothing is called free that still runs, and nothing is left behind.

namespace gpu_platform::execution {
namespace {

using model::AttemptId;
using model::AttemptState;

constexpr const char* kBootOfNodes = "boot-1";

struct TheirPod {
  WorkloadPod waiting;
  PodView view;
  bool is_gated = true;
};

// A workload of others, and what the core knows of its job.
struct TheirJob {
  std::string key;
  std::uint32_t pods = 1;
  bool is_deleted = false;
  std::uint32_t attempt = 0;  // the latest
  StartOrder order;
  AttemptState state = AttemptState::kReleased;
  bool is_stop_asked = false;
  bool is_over = false;  // no further attempt
  std::optional<Ended> ended;
  bool is_forgotten = true;
};

class WorkloadWorld {
 public:
  explicit WorkloadWorld(std::uint64_t seed) : prng_(seed) {
    open();
    for (std::uint32_t i = 1; i <= 4; ++i) {
      TheirJob job;
      const bool is_alone = prng_.below(4) == 0;
      job.key = fmt::format("ml/{}/work-{}/uid-{}", is_alone ? "Pod" : "Job", i, i);
      job.pods = is_alone ? 1 : 1 + static_cast<std::uint32_t>(prng_.below(3));
      jobs_.push_back(std::move(job));
    }
    list();
    platform_->adopt({}, now_);
  }

  // Returns how many attempts it saw running.
  int run() {
    for (int i = 0; i < 600 && !has_failed(); ++i) step(30);
    is_ending_ = true;
    for (int i = 0; i < 6000 && !has_failed() && !is_over(); ++i) step(0);
    EXPECT_TRUE(is_over());
    EXPECT_EQ(platform_->size(), 0U);
    return started_;
  }

 private:
  static bool has_failed() { return ::testing::Test::HasFailure(); }

  void open() {
    KubernetesSettings settings;
    settings.cluster = "test";
    platform_ = std::make_unique<WorkloadAttempts>(
        settings, [](std::string_view) { return std::string(kBootOfNodes); },
        [this](const std::string& key) { return told_waiting_[key]; });
  }

  void step(std::uint32_t fault_percent) {
    now_ = now_ + base::milliseconds(static_cast<std::int64_t>(prng_.below(400)));
    for (TheirJob& job : jobs_) live(job);
    order_something();
    if (!is_ending_ && prng_.below(80) == 0) crash();
    if (prng_.below(30) == 0) list();
    for (int i = 0; i < 4; ++i) deliver();
    platform_->advance(now_);
    for (const WorkloadCall& call : platform_->take_calls()) carry_out(call, fault_percent);
    for (const std::string& key : platform_->take_owner_questions()) {
      const auto job = std::ranges::find(jobs_, key, &TheirJob::key);
      if (job->is_deleted) platform_->owner_ended(key, OwnerEnd::kDeleted);
    }
    for (Observation& observation : platform_->take_observations()) {
      std::visit([this](const auto& seen) { on(seen); }, observation);
    }
    check_slots();
  }

  // ---- the cluster

  TheirJob& job_of(AttemptId id) { return jobs_.at(id.job.value - 1); }

  void live(TheirJob& job) {
    std::uint32_t alive = 0;
    for (auto& [uid, pod] : pods_) {
      if (pod.waiting.workload.key() != job.key) continue;
      if (prng_.below(4) == 0) advance(pod);
      if (pod.is_gated || !is_dead(pod.view)) ++alive;
    }
    collect();
    const bool is_alone = job.key.starts_with("ml/Pod/");
    const bool makes = !job.is_deleted && !is_ending_ && prng_.below(8) == 0;
    if (makes && alive < job.pods && (!is_alone || !was_made_[job.key])) make_pod(job);
    if (prng_.below(300) == 0 || is_ending_) {
      job.is_deleted = true;
      for (auto& [uid, pod] : pods_) {
        if (pod.waiting.workload.key() == job.key) remove(pod);
      }
      collect();
    }
  }

  void make_pod(TheirJob& job) {
    was_made_[job.key] = true;
    TheirPod pod;
    pod.waiting.uid = fmt::format("uid-{}", ++last_uid_);
    pod.waiting.name = fmt::format("pod-{}", last_uid_);
    pod.waiting.namespace_name = "ml";
    pod.waiting.workload = *workload_of_key(job.key);
    pod.waiting.created_at = now_;
    pod.waiting.gpus = 1;
    pod.waiting.gate_at = static_cast<std::uint32_t>(prng_.below(2));
    pod.view.uid = pod.waiting.uid;
    pod.view.name = pod.waiting.name;
    pod.view.namespace_name = "ml";
    pods_[pod.waiting.uid] = pod;
    changed_.push_back(job.key);
  }

  void advance(TheirPod& pod) {
    PodView& view = pod.view;
    if (pod.is_gated || is_dead(view)) return;
    if (view.node.empty()) {
      view.node = "node-1";
    } else if (view.is_being_deleted) {
      end(view, 143);
    } else if (!view.started_at.is_set()) {
      view.started_at = now_;
      view.phase = PodPhase::kRunning;
    } else if (const auto what = prng_.below(20); what < 2) {
      end(view, what == 0 ? 0 : 3);
    } else if (what == 2) {
      view.disruption = Disruption::kPreempted;
      view.is_being_deleted = true;
    }
    tell(view, false);
  }

  void end(PodView& view, std::int32_t code) {
    view.phase = code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
    view.finished_at = now_;
    if (view.started_at.is_set()) view.exit_code = code;
  }

  void remove(TheirPod& pod) {
    if (pod.view.is_being_deleted) return;
    pod.view.is_being_deleted = true;
    if (!pod.is_gated) tell(pod.view, false);
  }

  void collect() {
    for (auto it = pods_.begin(); it != pods_.end();) {
      const PodView& view = it->second.view;
      const bool goes = view.is_being_deleted && (it->second.is_gated || is_dead(view));
      if (goes && !it->second.is_gated) tell(view, true);
      if (goes) changed_.push_back(it->second.waiting.workload.key());
      it = goes ? pods_.erase(it) : std::next(it);
    }
  }

  void tell(const PodView& view, bool is_gone) { events_.emplace_back(view, is_gone); }

  void tell_waiting(const std::string& key) {
    std::vector<WorkloadPod>& told = told_waiting_[key];
    told.clear();
    for (const auto& [uid, pod] : pods_) {
      const bool waits = pod.is_gated && !pod.view.is_being_deleted;
      if (waits && pod.waiting.workload.key() == key) told.push_back(pod.waiting);
    }
    platform_->touch_workload(key);
  }

  void deliver() {
    if (!answers_.empty() && prng_.below(2) == 0) {
      const std::size_t which = prng_.below(answers_.size());
      platform_->answer(answers_[which].first, answers_[which].second, now_);
      answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(which));
    }
    if (!events_.empty()) {
      const auto [view, is_gone] = events_.front();
      if (prng_.below(8) != 0) events_.pop_front();  // else it is told twice
      is_gone ? platform_->see_gone(view) : platform_->see(view);
    }
    if (!changed_.empty()) {
      tell_waiting(changed_.front());
      changed_.pop_front();
    }
  }

  void list() {
    events_.clear();
    platform_->begin_list();
    for (const auto& [uid, pod] : pods_) {
      if (!pod.is_gated) platform_->see(pod.view);
    }
    platform_->listed();
    for (const TheirJob& job : jobs_) tell_waiting(job.key);
  }

  void carry_out(const WorkloadCall& call, std::uint32_t fault_percent) {
    const bool is_faulty = prng_.below(100) < fault_percent;
    const std::uint64_t fault = is_faulty ? 1 + prng_.below(3) : 0;
    CallAnswer answer{.status = fault == 3 ? 503 : 0, .text = "away"};
    if (fault < 2) answer = apply(call);
    if (fault == 1) answer = {.status = 0, .text = "lost"};
    answers_.emplace_back(call.id, answer);
  }

  CallAnswer apply(const WorkloadCall& call) {
    const auto found = pods_.find(call.uid);
    if (found == pods_.end()) return {.status = 404};
    TheirPod& pod = found->second;
    if (call.kind == WorkloadCallKind::kDeletePod) {
      remove(pod);
      collect();
      return {.status = 200};
    }
    if (!pod.is_gated || pod.waiting.gate_at != call.gate_at) return {.status = 422};
    EXPECT_EQ(call.node, "node-1");
    pod.is_gated = false;
    pod.view.attempt = call.attempt;
    pod.view.rank = call.rank;
    tell(pod.view, false);
    changed_.push_back(pod.waiting.workload.key());
    return {.status = 200};
  }

  // ---- the core

  void order_something() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      TheirJob& job = jobs_[i];
      const bool is_idle = job.state == AttemptState::kReleased;
      if (is_idle && !job.is_forgotten && prng_.below(4) == 0) {
        platform_->forget({job.order.attempt});
        job.is_forgotten = true;
      }
      if (is_idle && job.is_forgotten && !is_ending_ && !job.is_over && prng_.below(10) == 0) {
        start(job, i + 1);
      }
      const bool may_stop = !is_idle && (is_ending_ || prng_.below(60) == 0);
      if (may_stop && !job.is_stop_asked) {
        job.is_stop_asked = true;
        platform_->stop(stop_of(job));
      }
    }
  }

  StopOrder stop_of(const TheirJob& job) {
    return {job.order.attempt, prng_.below(2) == 0, base::seconds(1),
            model::EndReason::kCancelledBy};
  }

  void start(TheirJob& job, std::uint64_t id) {
    job.order = {};
    job.order.attempt = {model::JobId(id), ++job.attempt};
    job.order.boot_id = kBootOfNodes;
    auto spec = std::make_shared<model::JobSpec>();
    spec->workload = job.key;
    spec->workload_pods = job.pods;
    spec->request.gpus = job.pods;
    job.order.spec = std::move(spec);
    LaunchNode node;
    node.node_name = "node-1";
    node.gpus.resize(job.pods);
    job.order.nodes = {node};
    if (prng_.below(4) == 0) job.order.time_limit = base::seconds(20);
    job.state = AttemptState::kRequested;
    job.is_stop_asked = false;
    job.is_forgotten = false;
    job.ended.reset();
    platform_->start(job.order, now_);
  }

  void crash() {
    open();
    answers_.clear();
    told_waiting_.clear();
    list();
    std::vector<KnownAttempt> known;
    for (const TheirJob& job : jobs_) {
      if (job.state != AttemptState::kReleased) known.push_back({job.order, job.state});
    }
    platform_->adopt(known, now_);
    for (TheirJob& job : jobs_) {
      if (job.state == AttemptState::kReleased) job.is_forgotten = true;
      if (job.state == AttemptState::kRequested) platform_->start(job.order, now_);
      if (job.state != AttemptState::kReleased && job.is_stop_asked) {
        platform_->stop(stop_of(job));
      }
    }
  }

  void on(const Started& seen) {
    TheirJob& job = job_of(seen.attempt);
    EXPECT_EQ(seen.attempt.attempt, job.attempt);
    if (job.state != AttemptState::kRequested) return;
    job.state = AttemptState::kRunning;
    ++started_;
  }
  void on(const Ended& seen) {
    TheirJob& job = job_of(seen.attempt);
    if (job.state == AttemptState::kReleased) return;  // told again
    EXPECT_EQ(seen.attempt.attempt, job.attempt);
    if (!job.ended) job.ended = seen;
    job.state = AttemptState::kCleaning;
  }
  void on(const Cleaned& seen) {
    TheirJob& job = job_of(seen.attempt);
    EXPECT_TRUE(job.ended.has_value());
    for (const auto& [uid, pod] : pods_) {
      const bool is_its = !pod.is_gated && pod.view.attempt == seen.attempt;
      EXPECT_FALSE(is_its && !is_dead(pod.view)) << "freed while " << pod.view.name << " runs";
    }
    job.state = AttemptState::kReleased;
  }
  template <class Other>
  void on(const Other&) {}

  void check_slots() {
    std::map<std::pair<AttemptId, std::uint32_t>, int> running;
    for (const auto& [uid, pod] : pods_) {
      if (pod.is_gated || is_dead(pod.view)) continue;
      EXPECT_EQ(++running[std::pair(pod.view.attempt, pod.view.rank)], 1)
          << pod.view.attempt.job.value << " rank " << pod.view.rank;
    }
  }

  bool is_over() const {
    return platform_->size() == 0 && std::ranges::all_of(jobs_, [](const TheirJob& job) {
             return job.is_forgotten && job.state == AttemptState::kReleased;
           });
  }

  base::Prng prng_;
  std::unique_ptr<WorkloadAttempts> platform_;
  std::vector<TheirJob> jobs_;
  std::map<std::string, TheirPod> pods_;
  std::map<std::string, bool> was_made_;
  std::map<std::string, std::vector<WorkloadPod>> told_waiting_;
  std::deque<std::pair<PodView, bool>> events_;
  std::deque<std::string> changed_;
  std::vector<std::pair<std::uint64_t, CallAnswer>> answers_;
  int last_uid_ = 0;
  int started_ = 0;
  base::Instant now_{1'000'000'000'000};
  bool is_ending_ = false;
};

TEST(WorkloadAttemptsProperty, GiveASlotToOnePodAtATimeAndLeaveNothingWhateverHappens) {
  constexpr int kSeeds = 200;
  int started = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    started += WorkloadWorld(seed).run();
  }
  EXPECT_GT(started, kSeeds) << "too little has happened";
}

}  // namespace
}  // namespace gpu_platform::execution
