#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "model/job_spec.h"

// A cluster that lies, is late and repeats itself, and a platform that crashes: in every case,
// each rank runs at most once, an end is told once and stays what it was, nothing is called free
// that still runs, and nothing is left behind.

namespace gpu_platform::execution {
namespace {

using model::AttemptId;
using model::AttemptState;
using model::JobId;

constexpr const char* kNode = "node-1";
constexpr const char* kBoot = "boot-1";

struct SimPod {
  PodView view;
  bool has_started = false;
};
using PodKey = std::pair<AttemptId, std::uint32_t>;

// What happens to a call that the platform sends.
enum class Fate { kDone, kDoneAndLost, kLost, kBusy };

class Cluster {
 public:
  explicit Cluster(base::Prng& prng) : prng_(prng) {}

  void carry_out(const Call& call, base::Instant now, std::uint32_t fault_percent) {
    const Fate fate = draw(fault_percent);
    CallAnswer answer{.status = fate == Fate::kBusy ? 503 : 0, .text = "away"};
    if (fate == Fate::kDone || fate == Fate::kDoneAndLost) answer = apply(call, now);
    if (fate == Fate::kDoneAndLost) answer = {.status = 0, .text = "connection lost"};
    answers_.emplace_back(call.id, answer);
  }

  // Something of its own accord.
  void live(base::Instant now) {
    for (auto& [key, pod] : pods_) {
      if (prng_.below(3) != 0) continue;
      advance(pod, now);
      tell(pod.view, false);
    }
    collect();
  }

  // An answer or a change reaches the platform.
  void deliver(PodAttempts& platform, base::Instant now) {
    if (!answers_.empty() && prng_.below(2) == 0) {
      const std::size_t which = prng_.below(answers_.size());
      platform.answer(answers_[which].first, answers_[which].second, now);
      answers_.erase(answers_.begin() + static_cast<std::ptrdiff_t>(which));
    }
    if (!events_.empty() && prng_.below(2) == 0) {
      const auto [view, is_gone] = events_.front();
      if (prng_.below(8) != 0) events_.pop_front();  // else it is told twice
      is_gone ? platform.see_gone(view) : platform.see(view);
    }
    if (!claim_events_.empty()) {
      platform.see_claim(claim_events_.front());
      claim_events_.pop_front();
    }
  }

  // As after a watch that ended: everything anew, and no change from before.
  void list(PodAttempts& platform) {
    events_.clear();
    claim_events_.clear();
    platform.begin_claim_list();
    for (const auto& [key, is_deleted] : claims_) {
      platform.see_claim({"jobs", key.first, key.second, true});
    }
    platform.claims_listed();
    platform.begin_list();
    for (const auto& [key, pod] : pods_) platform.see(pod.view);
    platform.listed();
  }
  void forget_answers() { answers_.clear(); }

  void add_gang(AttemptId attempt) { gangs_.insert(attempt); }

  bool is_empty() const { return pods_.empty() && claims_.empty() && services_.empty(); }
  std::string text() const {
    return fmt::format("{} pods, {} claims, {} services", pods_.size(), claims_.size(),
                       services_.size());
  }
  bool holds(AttemptId attempt) const {
    for (const auto& [key, pod] : pods_) {
      if (key.first == attempt && !is_dead(pod.view)) return true;
    }
    return std::ranges::any_of(claims_,
                               [&](const auto& claim) { return claim.first.first == attempt; });
  }
  int starts(AttemptId attempt, std::uint32_t rank) const {
    const auto found = starts_.find({attempt, rank});
    return found == starts_.end() ? 0 : found->second;
  }

 private:
  Fate draw(std::uint32_t fault_percent) {
    if (prng_.below(100) >= fault_percent) return Fate::kDone;
    return static_cast<Fate>(1 + prng_.below(3));
  }

  CallAnswer apply(const Call& call, base::Instant now) {
    const PodKey key{call.attempt, call.rank};
    const auto pod = pods_.find(key);
    const bool is_there = pod != pods_.end();
    switch (call.kind) {
      case CallKind::kMakeService:
        return made(services_.insert(call.attempt).second);
      case CallKind::kMakeClaim: {
        const bool is_new = claims_.try_emplace(key, false).second;
        if (is_new) claim_events_.push_back({"jobs", key.first, key.second, true});
        return made(is_new);
      }
      case CallKind::kDeleteClaim: {
        const auto claim = claims_.find(key);
        if (claim == claims_.end()) return {.status = 404};
        claim->second = true;
        collect();
        return {.status = 200};
      }
      case CallKind::kMakePod:
        return is_there ? made(false) : make_pod(call);
      case CallKind::kLiftGate:
        if (!is_there) return {.status = 404};
        if (pod->second.view.gang_gate_at != call.place) return {.status = 422};
        pod->second.view.gang_gate_at.reset();
        break;
      case CallKind::kDeletePod:
        if (!is_there) return {.status = 404};
        pod->second.view.is_being_deleted = true;
        break;
      case CallKind::kReleasePod:
        if (!is_there) return {.status = 404};
        if (pod->second.view.finalizer_at != call.place) return {.status = 422};
        pod->second.view.finalizer_at.reset();
        break;
      case CallKind::kFetchOutput:
        return {.status = is_there ? 200 : 404};
      case CallKind::kAllocate:
      case CallKind::kBind:
        return {.status = 500};
    }
    tell(pod->second.view, false);
    (void)now;
    collect();
    return {.status = 200};
  }

  CallAnswer make_pod(const Call& call) {
    SimPod pod;
    pod.view.name = call.name;
    pod.view.namespace_name = "jobs";
    pod.view.uid = fmt::format("uid-{}", ++last_uid_);
    pod.view.attempt = call.attempt;
    pod.view.rank = call.rank;
    // Others may have put entries of their own before the platform's.
    pod.view.finalizer_at = static_cast<std::uint32_t>(prng_.below(2));
    if (gangs_.contains(call.attempt)) {
      pod.view.gang_gate_at = static_cast<std::uint32_t>(prng_.below(2));
    }
    tell(pod.view, false);
    const std::string uid = pod.view.uid;
    pods_[{call.attempt, call.rank}] = std::move(pod);
    return {.status = 201, .uid = uid};
  }

  static CallAnswer made(bool is_new) {
    return is_new ? CallAnswer{.status = 201}
                  : CallAnswer{.status = 409, .reason = "AlreadyExists"};
  }

  void advance(SimPod& pod, base::Instant now) {
    PodView& view = pod.view;
    if (view.is_over() || (view.is_being_deleted && view.node.empty())) return;
    if (view.node.empty()) {
      if (!view.gang_gate_at) view.node = kNode;
      return;
    }
    if (view.is_being_deleted) return end(view, prng_.below(2) == 0 ? 143 : 137, now);
    if (!view.started_at.is_set()) {
      view.started_at = now;
      view.phase = PodPhase::kRunning;
      ++starts_[{view.attempt, view.rank}];
      return;
    }
    const std::uint64_t what = prng_.below(10);
    if (what == 0) end(view, 0, now);
    if (what == 1) end(view, static_cast<std::int32_t>(1 + prng_.below(200)), now);
    if (what == 2 && prng_.below(4) == 0) {
      view.disruption = Disruption::kNodeLost;
      view.is_being_deleted = true;
      end(view, 137, now);
    }
  }

  static void end(PodView& view, std::int32_t code, base::Instant now) {
    if (!view.started_at.is_set() && code == 0) return;
    view.phase = code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
    view.finished_at = now;
    if (view.started_at.is_set()) view.exit_code = code;
    view.end_reason = code == 0 ? "Completed" : "Error";
  }

  // The API server and the controller-manager: what nothing holds any more goes.
  void collect() {
    for (auto it = pods_.begin(); it != pods_.end();) {
      const PodView& view = it->second.view;
      const bool goes = view.is_being_deleted && !view.finalizer_at && is_dead(view);
      if (goes) tell(view, true);
      if (goes && view.rank == 0) services_.erase(view.attempt);
      it = goes ? pods_.erase(it) : std::next(it);
    }
    for (auto it = claims_.begin(); it != claims_.end();) {
      const auto pod = pods_.find(it->first);
      const bool is_held = pod != pods_.end() && !is_dead(pod->second.view);
      const bool goes = it->second && !is_held;
      if (goes) claim_events_.push_back({"jobs", it->first.first, it->first.second, false});
      it = goes ? claims_.erase(it) : std::next(it);
    }
  }

  void tell(const PodView& view, bool is_gone) { events_.emplace_back(view, is_gone); }

  base::Prng& prng_;
  int last_uid_ = 0;
  std::map<PodKey, SimPod> pods_;
  std::map<PodKey, bool> claims_;  // true: deleted
  std::set<AttemptId> services_;
  std::set<AttemptId> gangs_;
  std::map<PodKey, int> starts_;
  std::deque<std::pair<PodView, bool>> events_;
  std::deque<ClaimSeen> claim_events_;
  std::vector<std::pair<std::uint64_t, CallAnswer>> answers_;
};

// The core, as far as attempts go.
struct Known {
  StartOrder order;
  AttemptState state = AttemptState::kRequested;
  bool is_stop_asked = false;
  bool is_forgotten = false;
  std::optional<Ended> ended;
  int told_in_life = 0;  // of the platform's lives
};

class World {
 public:
  explicit World(std::uint64_t seed) : prng_(seed), cluster_(prng_) { open(); }

  void run() {
    constexpr int kSteps = 400;
    for (int i = 0; i < kSteps && !failed(); ++i) step(30);
    // No more faults, no more orders: everything comes to its end.
    constexpr int kLast = 4000;
    is_ending_ = true;
    for (int i = 0; i < kLast && !failed() && !is_over(); ++i) step(0);
    EXPECT_TRUE(is_over()) << cluster_.text();
    EXPECT_TRUE(cluster_.is_empty()) << cluster_.text();
    EXPECT_EQ(platform_->size(), 0U);
  }
  std::size_t jobs() const { return jobs_.size(); }
  int lives() const { return life_; }

 private:
  static bool failed() { return ::testing::Test::HasFailure(); }

  void step(std::uint32_t fault_percent) {
    now_ = now_ + base::milliseconds(static_cast<std::int64_t>(prng_.below(400)));
    if (!is_ending_ && prng_.below(12) == 0) submit();
    order_something();
    if (!is_ending_ && prng_.below(60) == 0) crash();
    if (prng_.below(25) == 0) cluster_.list(*platform_);
    cluster_.live(now_);
    cluster_.deliver(*platform_, now_);
    platform_->advance(now_);
    for (const Call& call : platform_->take_calls()) {
      cluster_.carry_out(call, now_, fault_percent);
    }
    for (Observation& observation : platform_->take_observations()) {
      std::visit([this](const auto& seen) { on(seen); }, observation);
    }
  }

  void open() {
    KubernetesSettings settings;
    settings.cluster = "test";
    settings.namespace_name = "jobs";
    platform_ = std::make_unique<PodAttempts>(settings,
                                              [](std::string_view) { return std::string(kBoot); });
  }

  void submit() {
    const AttemptId id{JobId(++last_job_), 1};
    auto spec = std::make_shared<model::JobSpec>();
    spec->image = "img";
    spec->command = {"true"};
    spec->uid = 1000;
    Known known;
    known.order.attempt = id;
    known.order.boot_id = kBoot;
    known.order.stop_grace = base::seconds(1);
    const std::uint32_t nodes = prng_.below(3) == 0 ? 3 : 1;
    spec->request.nodes = nodes;
    spec->request.gpus = 1;
    for (std::uint32_t i = 0; i < nodes; ++i) {
      LaunchNode node;
      node.node = model::NodeId(1);
      node.node_name = kNode;
      node.cpus = 1;
      node.gpus.resize(1);
      node.gpus[0].info.uuid = fmt::format("GPU-{}-{}", last_job_, i);
      known.order.nodes.push_back(node);
    }
    if (nodes > 1) cluster_.add_gang(id);
    if (prng_.below(4) == 0) known.order.time_limit = base::seconds(5);
    known.order.spec = std::move(spec);
    platform_->start(known.order, {}, now_);
    jobs_[id] = std::move(known);
  }

  void order_something() {
    for (auto& [id, known] : jobs_) {
      const bool may_stop = !known.ended && (is_ending_ || prng_.below(30) == 0);
      if (may_stop && !known.is_stop_asked) {
        known.is_stop_asked = true;
        platform_->stop(
            {id, prng_.below(2) == 0, base::seconds(2), model::EndReason::kCancelledBy});
      }
      if (known.state == AttemptState::kReleased && !known.is_forgotten && prng_.below(4) == 0) {
        known.is_forgotten = true;
        platform_->forget({id});
      }
    }
  }

  // The daemon is killed: what was under way has no answer, and the next one lists and adopts.
  void crash() {
    open();
    ++life_;
    cluster_.forget_answers();
    cluster_.list(*platform_);
    std::vector<KnownAttempt> adopted;
    for (const auto& [id, known] : jobs_) {
      if (known.state != AttemptState::kReleased) adopted.push_back({known.order, known.state});
    }
    platform_->adopt(adopted, now_);
    for (const auto& [id, known] : jobs_) {
      if (known.state == AttemptState::kReleased) continue;
      if (known.is_stop_asked && !known.ended) {
        platform_->stop({id, true, {}, model::EndReason::kCancelledBy});
      }
      if (known.state == AttemptState::kRequested) platform_->start(known.order, {}, now_);
    }
  }

  void on(const Started& seen) {
    Known& known = jobs_.at(seen.attempt);
    if (known.state == AttemptState::kRequested) known.state = AttemptState::kRunning;
  }
  void on(const Ended& seen) {
    Known& known = jobs_.at(seen.attempt);
    // After a crash the reason of a stop is the core's alone; it ignores what comes again.
    const bool is_again = known.ended && known.told_in_life == life_;
    if (is_again) {
      EXPECT_EQ(known.ended->exit, seen.exit) << seen.attempt.job.value;
    }
    if (known.ended) return;
    known.told_in_life = life_;
    known.ended = seen;
    known.state = AttemptState::kCleaning;
  }
  void on(const Cleaned& seen) {
    Known& known = jobs_.at(seen.attempt);
    EXPECT_TRUE(known.ended.has_value()) << seen.attempt.job.value;
    EXPECT_FALSE(cluster_.holds(seen.attempt)) << seen.attempt.job.value;
    for (std::uint32_t rank = 0; rank < known.order.nodes.size(); ++rank) {
      EXPECT_LE(cluster_.starts(seen.attempt, rank), 1) << seen.attempt.job.value;
    }
    known.state = AttemptState::kReleased;
  }
  template <class Other>
  void on(const Other&) {}

  bool is_over() const {
    return cluster_.is_empty() && platform_->size() == 0 &&
           std::ranges::all_of(jobs_, [](const auto& job) { return job.second.is_forgotten; });
  }

  base::Prng prng_;
  Cluster cluster_;
  std::unique_ptr<PodAttempts> platform_;
  std::map<AttemptId, Known> jobs_;
  std::uint64_t last_job_ = 0;
  base::Instant now_{1'000'000'000'000};
  bool is_ending_ = false;
  int life_ = 1;

 public:
  void begin() {
    cluster_.list(*platform_);
    platform_->adopt({}, now_);
  }
};

TEST(PodAttemptsProperty, LoseDoubleAndLeakNothingInAClusterThatLiesIsLateAndRepeatsItself) {
  constexpr std::uint64_t kSeeds = 100;
  std::size_t jobs = 0;
  int lives = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    World world(seed);
    world.begin();
    world.run();
    jobs += world.jobs();
    lives += world.lives();
  }
  EXPECT_GT(jobs, 20 * kSeeds);
  EXPECT_GT(lives, 4 * static_cast<int>(kSeeds));
}

}  // namespace
}  // namespace gpu_platform::execution
