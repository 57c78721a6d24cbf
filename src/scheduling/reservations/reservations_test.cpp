#include "scheduling/reservations/reservations.h"

#include <gtest/gtest.h>

#include "model/job_spec.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

model::Reservation reservation_on(std::uint64_t node, std::uint64_t gpus, base::Instant begin,
                                  base::Instant end) {
  model::Reservation reservation;
  reservation.name = "w";
  reservation.begin = begin;
  reservation.end = end;
  reservation.parts = {{model::NodeId(node), gpus, false}};
  return reservation;
}

WaitingJob job_of(std::uint64_t id, std::uint32_t gpus_asked, base::Duration limit,
                  const std::string& reservation = {}) {
  WaitingJob job = waiting(id, gpus(gpus_asked));
  auto spec = std::make_shared<model::JobSpec>(*job.spec);
  spec->time_limit = limit;
  spec->request.reservation = reservation;
  job.spec = std::move(spec);
  return job;
}

class ReservedCycle : public ::testing::Test {
 protected:
  ReservedCycle() { policy_.stop_grace = {}; }

  Books books(const std::vector<WaitingJob>& jobs) const {
    Books made = books_of({node(1).gpus(4)}, jobs, policy_);
    for (const auto& [name, reservation] : reservations_.all()) made.put(reservation);
    return made;
  }
  Plan plan(const std::vector<WaitingJob>& jobs, base::Instant now) const {
    Books made = books(jobs);
    return plan_cycle(made, policy_, {.now = now});
  }

  model::Policy policy_;
  Reservations reservations_;
};

TEST_F(ReservedCycle, StartsOnReservedGpusWhoEndsBefore) {
  reservations_.put(reservation_on(1, 0b0111, kNow + base::hours(1), kNow + base::hours(2)));
  const Plan found = plan({job_of(1, 3, base::hours(1)), job_of(2, 1, base::hours(5))}, kNow);
  ASSERT_EQ(found.starts.size(), 2U);
  EXPECT_EQ(indices(found.starts[1].allocation), std::vector<std::uint32_t>{3});
}

TEST_F(ReservedCycle, KeepsAPlaceBehindTheReservationForWhoWouldNot) {
  reservations_.put(reservation_on(1, 0b0111, kNow + base::hours(1), kNow + base::hours(2)));
  const Plan found = plan({job_of(1, 3, base::minutes(61))}, kNow);
  EXPECT_TRUE(found.starts.empty());
  ASSERT_EQ(found.planned_starts.size(), 1U);
  EXPECT_EQ(found.planned_starts[0].slot.start, kNow + base::hours(2));
}

TEST_F(ReservedCycle, StartsItsOwnJobsInsideAndOnlyWhileTheyEndInTime) {
  reservations_.put(reservation_on(1, 0b0110, kNow + base::hours(1), kNow + base::hours(2)));
  const WaitingJob own = job_of(1, 2, base::minutes(50), "w");
  const Plan before = plan({own}, kNow);
  EXPECT_TRUE(before.starts.empty());
  ASSERT_EQ(before.planned_starts.size(), 1U);
  EXPECT_EQ(before.planned_starts[0].slot.start, kNow + base::hours(1));

  const Plan within = plan({own}, kNow + base::minutes(70));
  ASSERT_EQ(within.starts.size(), 1U);
  EXPECT_EQ(indices(within.starts[0].allocation), (std::vector<std::uint32_t>{1, 2}));

  EXPECT_TRUE(plan({own}, kNow + base::minutes(71)).starts.empty());
  EXPECT_TRUE(plan({job_of(1, 3, base::minutes(1), "w")}, kNow + base::minutes(70)).starts.empty());
  EXPECT_TRUE(plan({job_of(1, 1, base::minutes(1), "v")}, kNow + base::minutes(70)).starts.empty());
}

TEST_F(ReservedCycle, LooksAgainWhenAReservationBeginsAndEnds) {
  reservations_.put(reservation_on(1, 0b1111, kNow + base::hours(1), kNow + base::hours(2)));
  EXPECT_EQ(plan({}, kNow).look_again_at, kNow + base::hours(1));
  EXPECT_EQ(plan({}, kNow + base::hours(1)).look_again_at, kNow + base::hours(2));
  EXPECT_EQ(plan({}, kNow + base::hours(2)).look_again_at, std::nullopt);
}

TEST_F(ReservedCycle, ACycleThatSawOtherReservationsIsNotRepeated) {
  Books seen = books({job_of(1, 5, base::hours(3))});
  CycleCache cache;
  EXPECT_FALSE(cache.plan(seen, policy_, {.now = kNow}).unchanged);
  EXPECT_TRUE(cache.plan(seen, policy_, {.now = kNow}).unchanged);
  seen.put(reservation_on(1, 0b0111, kNow + base::hours(1), kNow + base::hours(2)));
  EXPECT_FALSE(cache.plan(seen, policy_, {.now = kNow}).unchanged);
}

TEST_F(ReservedCycle, APreemptionHoldThatAReservationHasOvertakenIsVoid) {
  reservations_.put(reservation_on(1, 0b1111, kNow + base::hours(1), kNow + base::hours(2)));
  Books seen = books({job_of(1, 1, base::hours(3))});
  model::Allocation held;
  held.nodes = {{model::NodeId(1), {{0, base::kWholeGpu, base::kGiB * 80}}, 1, {}}};
  seen.put(model::PreemptionHold{model::JobId(1), held, {{model::JobId(9), 1}}, kNow});
  const Plan found = plan_cycle(seen, policy_, {.now = kNow});
  EXPECT_TRUE(found.starts.empty());
  EXPECT_EQ(found.void_holds, std::vector{model::JobId(1)});
}

TEST(Reservations, AWholeNodeTakesNoJobsWithoutGpus) {
  Reservations reservations;
  model::Reservation whole = reservation_on(1, 0, kNow, kNow + base::hours(1));
  whole.parts[0].whole_node = true;
  reservations.put(whole);
  model::Allocation cpus;
  cpus.nodes = {{model::NodeId(1), {}, 4, {}}};
  const model::ResourceRequest request = gpus(0);
  EXPECT_FALSE(reservations.allow(request, cpus, {kNow, kNow + base::hours(2)}));
  EXPECT_TRUE(reservations.allow(request, cpus, {kNow + base::hours(1), kNow + base::hours(2)}));
  const auto of_node = reservations.withheld_on(
      request, model::NodeId(1), reservations.of_others(request, {kNow, kNow + base::hours(2)}));
  ASSERT_TRUE(of_node);
  EXPECT_TRUE(of_node->withheld.whole_node);
}

}  // namespace
}  // namespace gpu_platform::scheduling
