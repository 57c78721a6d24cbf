// What holds of plans with reservations in every world, checked without any of their code.

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/job_spec.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/testing/draw.h"
#include "scheduling/testing/hits.h"
#include "scheduling/testing/naive_planner.h"
#include "scheduling/testing/random_world.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

base::Duration some_minutes(std::uint64_t most) {
  return base::minutes(static_cast<std::int64_t>(1 + draw(most)));
}

struct ReservedWorld {
  std::vector<model::Node> nodes;
  std::vector<WaitingJob> waiting;
  Reservations reservations;
  RunningEnds running;
  model::Policy policy;
};

// Those that begin before `until`, hour by hour.
std::vector<model::Occurrence> occurrences(const model::Reservation& reservation,
                                           base::Instant until) {
  std::vector<model::Occurrence> all;
  base::Duration step = base::hours(24 * 365);
  if (reservation.repeat == model::Repeat::kHourly) step = base::hours(1);
  if (reservation.repeat == model::Repeat::kDaily) step = base::hours(24);
  for (base::Instant begin = reservation.begin; begin < until; begin = begin + step) {
    if (reservation.last_begin.is_set() && begin > reservation.last_begin) break;
    all.push_back({begin, begin + (reservation.end - reservation.begin)});
  }
  return all;
}

bool lasts_between(const model::Reservation& reservation, base::Instant from, base::Instant until) {
  return std::ranges::any_of(occurrences(reservation, until),
                             [&](const model::Occurrence& each) { return each.end > from; });
}

bool holds_during(const model::Reservation& reservation, base::Instant from, base::Instant until) {
  return std::ranges::any_of(occurrences(reservation, until), [&](const model::Occurrence& each) {
    return each.begin <= from && until <= each.end;
  });
}

// Some of each node, in spans that follow each other, once or again and again: reservations never
// overlap.
Reservations random_reservations(const std::vector<model::Node>& nodes) {
  Reservations reservations;
  base::Instant from = kNow + (base::Duration() - base::minutes(10));
  for (std::uint64_t left = draw(4); left > 0; --left) {
    model::Reservation reservation;
    reservation.name = "w" + std::to_string(left);
    reservation.begin = from + some_minutes(8);
    reservation.end = reservation.begin + some_minutes(15);
    for (const model::Node& node : nodes) {
      if (draw(2) == 0) continue;
      const bool is_whole = draw(3) == 0;
      reservation.parts.push_back({node.id, is_whole ? ~std::uint64_t{0} : draw(256), is_whole});
    }
    from = reservation.end;
    reservation.repeat = static_cast<model::Repeat>(draw(3));  // never, hourly, daily
    if (reservation.repeat != model::Repeat::kNever && draw(2) == 0) {
      reservation.last_begin = reservation.begin + base::hours(static_cast<std::int64_t>(draw(4)));
    }
    const bool overlaps = std::ranges::any_of(
        reservations.all(), [&](const auto& other) { return overlap(other.second, reservation); });
    if (reservation.end > kNow && !overlaps) reservations.put(std::move(reservation));
  }
  return reservations;
}

ReservedWorld reserved_world() {
  World world = random_world(draw, {.max_nodes = 6, .max_jobs = 20});
  ReservedWorld result;
  result.nodes = std::move(world.nodes);
  result.reservations = random_reservations(result.nodes);
  result.policy.stop_grace = base::seconds(static_cast<std::int64_t>(30 * draw(3)));
  constexpr std::uint32_t kDepths[] = {0, 1, 8, 1000};
  result.policy.backfill_depth = kDepths[draw(4)];
  for (const WaitingJob& job : world.jobs) {
    const base::Duration limit = some_minutes(draw(4) == 0 ? 200 : 12);
    const auto allocation =
        draw(3) == 0 ? naive_place(result.nodes, job.spec->request) : std::nullopt;
    if (allocation) {
      occupy(result.nodes, *allocation, job.id);
      result.running.put({job.id, 1}, kNow + limit, *allocation);
      continue;
    }
    model::JobSpec spec = *job.spec;
    spec.time_limit = limit;
    if (draw(4) == 3) spec.request = random_gang(draw);
    if (draw(3) == 0) spec.request.reservation = "w" + std::to_string(1 + draw(3));
    result.waiting.push_back({job.id, std::make_shared<model::JobSpec>(spec), job.submitted_at});
  }
  return result;
}

Plan plan_around(const ReservedWorld& world) {
  Books books({.reservations = world.reservations,
               .cluster = cluster_of(world.nodes),
               .queue = queue_of(world.waiting, world.policy),
               .running = world.running});
  return plan_cycle(books, world.policy, {.now = kNow});
}

// The rule, GPU by GPU and minute by minute of the span's ends.
bool keeps_to_reservations(const ReservedWorld& world, const model::JobSpec& spec,
                           const model::Allocation& allocation, base::Instant start) {
  const base::Instant end = start + spec.time_limit + world.policy.stop_grace;
  const model::Reservation* own = nullptr;
  for (const auto& [name, reservation] : world.reservations.all()) {
    if (name == spec.request.reservation) own = &reservation;
    const bool is_apart = !lasts_between(reservation, start, end);
    for (const model::NodeAllocation& held : allocation.nodes) {
      for (const model::ReservationPart& part : reservation.parts) {
        if (part.node != held.node || name == spec.request.reservation || is_apart) continue;
        if (part.whole_node) return false;
        for (const model::GpuGrant& grant : held.grants) {
          if ((part.gpus >> grant.gpu_index & 1) != 0) return false;
        }
      }
    }
  }
  if (spec.request.reservation.empty()) return true;
  if (own == nullptr || !holds_during(*own, start, end)) return false;
  return std::ranges::all_of(allocation.nodes, [&](const model::NodeAllocation& held) {
    const auto part = std::ranges::find(own->parts, held.node, &model::ReservationPart::node);
    return part != own->parts.end() &&
           std::ranges::all_of(held.grants, [&](const model::GpuGrant& grant) {
             return part->whole_node || (part->gpus >> grant.gpu_index & 1) != 0;
           });
  });
}

const model::JobSpec& spec_in(const ReservedWorld& world, model::JobId job) {
  return *std::ranges::find(world.waiting, job, &WaitingJob::id)->spec;
}

TEST(ReservationsProperty, NobodyHoldsWhatIsReservedForOthersAndItsJobsNothingElse) {
  EXPECT_TRUE(rc::check([] {
    const ReservedWorld world = reserved_world();
    const Plan plan = plan_around(world);
    RC_TAG(plan.starts.size(), world.reservations.all().size());
    for (const Start& start : plan.starts) {
      RC_ASSERT(keeps_to_reservations(world, spec_in(world, start.job), start.allocation, kNow));
    }
    for (const PlannedStart& each : plan.planned_starts) {
      RC_ASSERT(keeps_to_reservations(world, spec_in(world, each.job), each.slot.allocation,
                                      each.slot.start));
    }
  }));
}

// The first job in line starts exactly where the reference, on nodes without what reservations keep
// from it, finds room.
TEST(ReservationsProperty, TheFirstInLineStartsWhereverReservationsLeaveRoom) {
  Hits hits;
  EXPECT_TRUE(rc::check([&hits] {
    ReservedWorld world = reserved_world();
    if (!hits.count(!world.waiting.empty())) return;
    world.waiting.resize(1);
    const model::JobSpec& spec = *world.waiting[0].spec;
    const base::Instant end = kNow + spec.time_limit + world.policy.stop_grace;
    std::vector<model::Node> left = world.nodes;
    const model::Reservation* own = nullptr;
    for (const auto& [name, reservation] : world.reservations.all()) {
      if (name == spec.request.reservation) own = &reservation;
    }
    const bool is_open =
        spec.request.reservation.empty() || (own != nullptr && holds_during(*own, kNow, end));
    for (model::Node& node : left) {
      std::uint64_t gone = 0;
      bool all_gone = !is_open;
      for (const auto& [name, reservation] : world.reservations.all()) {
        if (&reservation == own || !lasts_between(reservation, kNow, end)) continue;
        for (const model::ReservationPart& part : reservation.parts) {
          if (part.node != node.id) continue;
          gone |= part.gpus;
          all_gone = all_gone || part.whole_node;
        }
      }
      if (own != nullptr) {
        const auto part = std::ranges::find(own->parts, node.id, &model::ReservationPart::node);
        all_gone = all_gone || part == own->parts.end();
        if (part != own->parts.end() && !part->whole_node) gone |= ~part->gpus;
      }
      if (all_gone) node.state = model::NodeState::kOffline;
      for (std::size_t i = 0; i < node.gpus.size(); ++i) {
        if ((gone >> i & 1) != 0) node.gpus[i].state = model::GpuState::kOffline;
      }
    }
    model::ResourceRequest request = spec.request;
    request.reservation.clear();
    RC_ASSERT(plan_around(world).starts.empty() == !naive_fits(left, request));
  }));
  EXPECT_TRUE(hits.are_enough());
}

TEST(ReservationsProperty, ReservationsThatNobodyMeetsChangeNothing) {
  EXPECT_TRUE(rc::check([] {
    ReservedWorld world = reserved_world();
    for (WaitingJob& job : world.waiting) {
      auto spec = std::make_shared<model::JobSpec>(*job.spec);
      spec->request.reservation.clear();
      job.spec = std::move(spec);
    }
    world.reservations = {};
    const Plan without = plan_around(world);
    model::Reservation far;
    far.name = "far";
    far.begin = kNow + base::hours(24 * 300);
    far.end = far.begin + base::hours(1);
    for (const model::Node& node : world.nodes) far.parts.push_back({node.id, ~0ULL, true});
    world.reservations.put(far);
    Plan with = plan_around(world);
    RC_ASSERT(with.look_again_at == far.begin);
    with.look_again_at = without.look_again_at;
    RC_ASSERT(with == without);
  }));
}

}  // namespace
}  // namespace gpu_platform::scheduling
