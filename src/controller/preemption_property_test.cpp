#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/preemption_site_fixture.h"

// No job is stopped for one that could be stopped in turn, for any rules by which they are
// stopped: classes, guarantees, overdue jobs, and jobs that were let in by their prediction, all at
// once. And none is stopped more often than its limits say. In half of the worlds there are GPUs of
// two types, and guarantees by type.

namespace gpu_platform::controller {
namespace {

using testing::PreemptionSite;

TEST(Preemption, StopsNoJobForOneThatCouldBeStoppedInTurn) {
  std::map<model::PreemptionRule, std::uint64_t> stopped;
  std::uint64_t let_in = 0;
  std::uint64_t chained = 0;
  std::uint64_t reclaimed_by_type = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    PreemptionSite site(seed);
    for (int i = 0; i < 50; ++i) {
      site.submit_some();
      site.pass(base::seconds(static_cast<std::int64_t>(1 + site.random().below(1800))),
                [&] { site.check_borrowers(); });
      ASSERT_EQ(site.broken, std::vector<std::string>()) << "seed " << seed << " step " << i;
    }
    ASSERT_EQ(check_invariants(site.state()), std::vector<std::string>()) << "seed " << seed;
    for (const auto& [rule, count] : site.stopped) stopped[rule] += count;
    let_in += site.let_in;
    chained += site.chained;
    reclaimed_by_type += site.reclaimed_by_type;
  }
  EXPECT_GT(stopped[model::PreemptionRule::kClass], 500U);
  EXPECT_GT(stopped[model::PreemptionRule::kReclaim], 500U);
  EXPECT_GT(stopped[model::PreemptionRule::kOverdue], 300U);
  EXPECT_GE(let_in, 3U);
  EXPECT_GT(chained, 20U);
  EXPECT_GT(reclaimed_by_type, 500U);
}

}  // namespace
}  // namespace gpu_platform::controller
