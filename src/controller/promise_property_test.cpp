#include <set>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/virtual_site_fixture.h"

// What was promised by hard limits is kept, whoever was let in by what was expected of it: all that
// stands in the way is gone by then.

namespace gpu_platform::controller {
namespace {

constexpr base::Duration kGrace = base::seconds(30);

// In the order of submission, with a place kept for the first that does not fit: of others the
// place changes when that one starts early. Nobody but those who were let in is ever stopped.
class Site : public testing::VirtualSite {
 public:
  Site(std::uint64_t seed, bool trusts) : VirtualSite(seed, 3) {
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
    // Who was stopped goes before all that came after it, which is no promise to these.
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
    Site site(seed, GetParam());
    for (int i = 0; i < 30; ++i) {
      site.submit_some();
      site.pass(base::seconds(static_cast<std::int64_t>(1 + site.random().below(3600))), [] {});
      ASSERT_EQ(site.broken, std::vector<std::string>()) << "seed " << seed << " step " << i;
    }
    ASSERT_EQ(check_invariants(site.state()), std::vector<std::string>()) << "seed " << seed;
    kept += site.kept;
    let_in += site.let_in;
    stopped += site.stopped;
  }
  EXPECT_GT(kept, 1000U);
  EXPECT_EQ(let_in > 100, GetParam()) << let_in;
  EXPECT_EQ(stopped > 20, GetParam()) << stopped;
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutTrust, Promise, ::testing::Bool());

}  // namespace
}  // namespace gpu_platform::controller
