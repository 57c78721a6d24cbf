#include "scheduling/backfill/yielding.h"

#include <limits>

namespace gpu_platform::scheduling {

namespace {

constexpr base::Instant kForEver(std::numeric_limits<std::int64_t>::max());

// The first of the places that could not be had with all of those who stay; null: there is none.
const Reservation* first_in_the_way_of(Timeline& timeline, const std::vector<Reservation>& kept,
                                       const Timeline::Staying& staying) {
  const Reservation* first = nullptr;
  for (const Reservation& each : kept) {
    if (first != nullptr && first->slot.start <= each.slot.start) continue;
    if (!timeline.is_there_despite(staying, each.slot)) first = &each;
  }
  return first;
}

}  // namespace

base::Instant grace_before(base::Instant at, base::Duration grace) {
  const base::Instant epoch;
  return epoch + (at - epoch - grace);
}

std::vector<Yield> judge_yielding(Timeline& timeline, const RunningEnds& running,
                                  const std::vector<Reservation>& kept, base::Instant now,
                                  base::Duration grace) {
  std::vector<Yield> judged;
  Timeline::Staying staying;
  for (const RunningEnds::Key& due : running.yielding()) {
    if (due.end > now) break;
    base::Instant& until = staying[due.attempt];
    until = kForEver;
    const Reservation* place = first_in_the_way_of(timeline, kept, staying);
    if (place == nullptr) {
      judged.push_back({due.attempt, {}, {}});
      continue;
    }
    until = place->slot.start;
    const base::Instant yields_at = grace_before(until, grace);
    const bool is_now = yields_at <= now + kNextMoment;
    judged.push_back(is_now ? Yield{due.attempt, place->job, {}}
                            : Yield{due.attempt, {}, yields_at});
  }
  return judged;
}

}  // namespace gpu_platform::scheduling
