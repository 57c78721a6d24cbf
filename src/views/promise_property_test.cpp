#include <set>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/virtual_site_fixture.h"
#include "model/job_spec.h"
#include "views/planned_starts.h"

// Planned starts by hard limits are kept, also with jobs that were let in by their prediction:
// everything in the way is gone by then.

namespace gpu_platform::views {
namespace {

namespace testing = controller::testing;

using testing::kGrace;

// In the order of submission, with a place kept for the first job that does not fit: the places of
// others change when that one starts early. Only jobs that were let in are ever stopped.
class PromiseSite : public testing::VirtualSite {
 public:
  PromiseSite(std::uint64_t seed, bool trusts) : VirtualSite(seed, 3) {
    model::Policy policy;
    policy.order = model::QueueOrder::kFcfs;
    policy.stop_grace = kGrace;
    policy.overdue_after = {};
    policy.max_queue_size = 100'000;
    policy.backfill_depth = 1;
    policy.backfill_by_prediction = trusts;
    begin(policy);
  }

  void submit_some() {
    for (std::uint64_t n = random().below(5); n > 0; --n) {
      model::JobSpec spec = testing::spec(static_cast<std::uint32_t>(1 + random().below(8)));
      spec.request.cpus = static_cast<std::uint32_t>(1 + random().below(24));
      spec.time_limit = base::minutes(static_cast<std::int64_t>(2 + random().below(300)));
      spec.preemptible = random().chance(2, 3);
      if (random().chance(2, 3)) spec.expected_time = base::minutes(1);
      submit(spec);
    }
  }

  // Starts that came later than was promised when a place was first kept for them.
  std::vector<std::string> broken;
  std::uint64_t kept = 0;
  std::uint64_t let_in = 0;
  std::uint64_t stopped = 0;

 private:
  void on_start(const execution::StartOrder& start) override {
    const model::Job& job = *state().jobs.find(start.attempt.job.value);
    if (job.attempts.back().yields_at.is_set()) ++let_in;
    // A stopped job goes before all jobs that came after it, so these have no promise.
    const bool was_passed = !stopped_.empty() && *stopped_.begin() < job.id;
    if (!job.prediction || was_passed || stopped_.contains(job.id)) return;
    if (now() <= job.prediction->by_limits) {
      ++kept;
    } else {
      broken.push_back("job " + std::to_string(job.id.value));
    }
  }
  void on_stop(const execution::StopOrder& stop) override {
    stopped_.insert(stop.attempt.job);
    ++stopped;
  }

  std::set<model::JobId> stopped_;
};

class Promise : public ::testing::TestWithParam<bool> {};

TEST_P(Promise, IsKept) {
  std::uint64_t kept = 0;
  std::uint64_t let_in = 0;
  std::uint64_t stopped = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    PromiseSite site(seed, GetParam());
    for (int i = 0; i < 30; ++i) {
      site.submit_some();
      site.pass(base::seconds(static_cast<std::int64_t>(1 + site.random().below(3600))), [] {});
      ASSERT_EQ(site.broken, std::vector<std::string>()) << "seed " << seed << " step " << i;
    }
    ASSERT_EQ(controller::check_invariants(site.state()), std::vector<std::string>())
        << "seed " << seed;
    kept += site.kept;
    let_in += site.let_in;
    stopped += site.stopped;
  }
  EXPECT_GT(kept, 1000U);
  EXPECT_EQ(let_in > 100, GetParam()) << let_in;
  EXPECT_EQ(stopped > 20, GetParam()) << stopped;
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutTrust, Promise, ::testing::Bool());

// ---- what is guaranteed and what is only planned, against the same streams of jobs

struct Kind {
  model::QueueOrder order = model::QueueOrder::kFcfs;
  base::Duration overdue_after;
  std::uint64_t users = 1;  // each is a team of one
  bool has_reservations = false;
};

class Stream : public testing::VirtualSite {
 public:
  Stream(std::uint64_t seed, const Kind& kind) : VirtualSite(seed, 3), kind_(kind) {
    model::Policy policy;
    policy.order = kind.order;
    policy.stop_grace = kGrace;
    policy.overdue_after = kind.overdue_after;
    policy.max_queue_size = 100'000;
    policy.backfill_by_prediction = false;
    begin(policy);
  }

  void submit_some() {
    for (std::uint64_t n = random().below(5); n > 0; --n) {
      model::JobSpec spec = testing::spec(static_cast<std::uint32_t>(1 + random().below(8)));
      spec.request.cpus = static_cast<std::uint32_t>(1 + random().below(24));
      spec.time_limit = base::minutes(static_cast<std::int64_t>(2 + random().below(300)));
      spec.preemptible = random().chance(1, 2);
      const std::uint64_t user = random().below(kind_.users);
      spec.user += std::to_string(user);
      spec.uid += static_cast<std::uint32_t>(user);
      submit(spec);
      note();
    }
    if (kind_.has_reservations) try_to_reserve();
  }
  // Notes what readers are told now.
  void note() {
    const auto seen = snapshot();
    const model::JobId first = guaranteed_start(*seen);
    for (const auto& [job, start] : last_planned_starts(*seen)) {
      planned_.emplace(job, start);
      if (job == first) guaranteed_.emplace(job, start);
    }
  }

  // All that it would break is refused, because it is not forced.
  void try_to_reserve() {
    model::MakeReservation reserve;
    reserve.name = "r" + std::to_string(++reservations_);
    reserve.begin = now() + base::minutes(static_cast<std::int64_t>(random().below(300)));
    reserve.duration = base::minutes(static_cast<std::int64_t>(1 + random().below(120)));
    reserve.maintenance = true;
    reserve.nodes = {"n" + std::to_string(random().below(nodes()))};
    reserve.ignore_running = random().chance(1, 2);
    command({testing::kAdministrator, reserve});
    note();
  }

  struct Count {
    std::uint64_t starts = 0;
    std::uint64_t late = 0;
    base::Duration latest;
  };
  Count guaranteed;
  Count planned;  // from the first time that a planned start was told

 private:
  void on_start(const execution::StartOrder& start) override {
    if (start.attempt.attempt > 1) return;  // it was stopped: what was promised had been kept
    count(guaranteed_, start.attempt.job, guaranteed);
    count(planned_, start.attempt.job, planned);
  }
  void count(const std::map<model::JobId, base::Instant>& told, model::JobId job, Count& into) {
    const auto found = told.find(job);
    if (found == told.end()) return;
    ++into.starts;
    if (now() <= found->second) return;
    ++into.late;
    into.latest = std::max(into.latest, now() - found->second);
  }

  Kind kind_;
  std::uint64_t reservations_ = 0;
  std::map<model::JobId, base::Instant> planned_;
  std::map<model::JobId, base::Instant> guaranteed_;
};

TEST(PlannedStart, IsKeptWhereItIsGuaranteed) {
  Stream::Count guaranteed;
  Stream::Count planned;
  const auto add = [](Stream::Count& sum, const Stream::Count& each) {
    sum.starts += each.starts;
    sum.late += each.late;
    sum.latest = std::max(sum.latest, each.latest);
  };
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Stream stream(seed, {});
    for (int i = 0; i < 30; ++i) {
      stream.submit_some();
      stream.pass(base::seconds(static_cast<std::int64_t>(1 + stream.random().below(3600))),
                  [&] { stream.note(); });
      ASSERT_EQ(stream.guaranteed.late, 0U) << "seed " << seed << " step " << i;
    }
    add(guaranteed, stream.guaranteed);
    add(planned, stream.planned);
  }
  EXPECT_GT(guaranteed.starts, 1000U);
  RecordProperty("guaranteed", std::to_string(guaranteed.starts));
  RecordProperty("planned", std::to_string(planned.starts));
  RecordProperty("planned_late", std::to_string(planned.late));
  RecordProperty("planned_latest_s", std::to_string(planned.latest.value() / 1'000'000'000));
  // If none were late, all of them could be guaranteed.
  EXPECT_GT(planned.late, 0U);
}

// Jobs that become overdue go before the rest of their class, and reservations take GPUs: no start
// is promised that these move.
TEST(PlannedStart, IsKeptBesideOverdueJobsAndReservations) {
  std::map<model::QueueOrder, std::uint64_t> kept;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto order = static_cast<model::QueueOrder>(seed % model::kQueueOrders);
    Stream stream(seed, {order, base::minutes(seed % 3 == 0 ? 0 : 90), 4, seed % 2 == 0});
    for (int i = 0; i < 30; ++i) {
      stream.submit_some();
      stream.pass(base::seconds(static_cast<std::int64_t>(1 + stream.random().below(3600))),
                  [&] { stream.note(); });
      ASSERT_EQ(stream.guaranteed.late, 0U) << "seed " << seed << " step " << i;
    }
    kept[order] += stream.guaranteed.starts;
  }
  EXPECT_GT(kept[model::QueueOrder::kFcfs], 50U);
  EXPECT_GT(kept[model::QueueOrder::kPriority], 50U);
  EXPECT_EQ(kept[model::QueueOrder::kFairShare], 0U);
}

}  // namespace
}  // namespace gpu_platform::views
