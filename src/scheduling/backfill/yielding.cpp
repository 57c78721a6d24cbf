#include "scheduling/backfill/yielding.h"

#include <limits>

namespace gpu_platform::scheduling {

namespace {

constexpr base::Instant kForEver(std::numeric_limits<std::int64_t>::max());

struct Found {
  const PlannedStart* place = nullptr;  // the first that could be had but for it
  bool is_known = true;  // false: others whom room is made for still hold what they are to give up
};

Found first_in_the_way_of(model::AttemptId attempt, Timeline& timeline,
                          const std::vector<PlannedStart>& kept, const Timeline::Staying& staying) {
  Timeline::Staying with_it = staying;
  with_it[attempt] = kForEver;
  Found found;
  for (const PlannedStart& each : kept) {
    const bool is_later = found.place != nullptr && found.place->slot.start <= each.slot.start;
    if (is_later || timeline.is_there_despite(with_it, each.slot)) continue;
    if (timeline.is_there_despite(staying, each.slot)) {
      found.place = &each;
    } else {
      found.is_known = false;
    }
  }
  return found;
}

}  // namespace

base::Instant grace_before(base::Instant at, base::Duration grace) {
  const base::Instant epoch;
  return epoch + (at - epoch - grace);
}

std::vector<Yield> judge_yielding(Timeline& timeline, const RunningEnds& running,
                                  const std::vector<PlannedStart>& kept, base::Instant now,
                                  base::Duration grace) {
  std::vector<Yield> judged;
  Timeline::Staying staying;
  for (const RunningEnds::Key& due : running.yielding()) {
    if (due.end > now) break;
    const Found found = first_in_the_way_of(due.attempt, timeline, kept, staying);
    const base::Instant until = found.place == nullptr ? kForEver : found.place->slot.start;
    const base::Instant yields_at = grace_before(until, grace);
    if (found.place != nullptr && yields_at <= now + kNextInstant) {
      judged.push_back({due.attempt, found.place->job, {}});
    } else if (found.is_known) {
      judged.push_back({due.attempt, {}, found.place == nullptr ? base::Instant() : yields_at});
    }
    staying[due.attempt] = until;
  }
  return judged;
}

}  // namespace gpu_platform::scheduling
