#include "store/sqlite/latest_endings.h"

#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::store {
namespace {

// Walks all ranges, as a list does.
std::map<std::uint64_t, bool> ids_below(const LatestEndings& endings, std::uint64_t before,
                                        std::int64_t since, std::uint64_t* looked_at = nullptr) {
  std::map<std::uint64_t, bool> ids;
  model::JobId next(before);
  while (const auto range = endings.below(next, base::Instant(since))) {
    EXPECT_LE(range->first, range->last);
    EXPECT_LE(range->last.value - range->first.value, LatestEndings::kMaxRange);
    if (next.valid()) {
      EXPECT_LT(range->last, next);
    }
    for (std::uint64_t id = range->first.value; id <= range->last.value; ++id) ids[id] = true;
    next = range->first;
  }
  if (looked_at != nullptr) *looked_at = ids.size();
  return ids;
}

TEST(LatestEndings, LeaveOutNoJobThatEndedSince) {
  constexpr std::uint64_t kSeed = 5;
  base::Prng prng(kSeed);
  for (int round = 0; round < 100; ++round) {
    LatestEndings endings;
    std::map<std::uint64_t, std::int64_t> jobs;
    const std::uint64_t count = prng.below(400);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t id = 1 + prng.below(1'000);
      const auto end = static_cast<std::int64_t>(1 + prng.below(1'000));
      endings.note(model::JobId(id), base::Instant(end));
      jobs[id] = std::max(jobs[id], end);
    }
    const std::uint64_t before = prng.chance(1, 3) ? 0 : 1 + prng.below(1'100);
    const auto since = static_cast<std::int64_t>(1 + prng.below(1'100));
    const auto ids = ids_below(endings, before, since);
    for (const auto& [id, end] : jobs) {
      if (end < since || (before != 0 && id >= before)) continue;
      EXPECT_TRUE(ids.contains(id)) << "seed " << kSeed << ", round " << round << ", job " << id;
    }
  }
}

TEST(LatestEndings, FewJobsOfATimeAreFoundWithoutALookAtTheOthers) {
  constexpr std::uint64_t kJobs = 100'000;
  LatestEndings endings;
  for (std::uint64_t id = 1; id <= kJobs; ++id) {
    endings.note(model::JobId(id), base::Instant(static_cast<std::int64_t>(id)));
  }
  endings.note(model::JobId(500), base::Instant(2 * kJobs));  // it ran for long
  std::uint64_t looked_at = 0;
  const auto ids = ids_below(endings, 0, kJobs - 9, &looked_at);
  EXPECT_TRUE(ids.contains(500));
  EXPECT_TRUE(ids.contains(kJobs));
  EXPECT_LE(looked_at, 64u);
}

TEST(LatestEndings, IdsThatAreTooLargeToBeKeptMakeItIncomplete) {
  LatestEndings endings;
  endings.set_complete();
  endings.note(model::JobId(5), base::Instant(5));
  EXPECT_TRUE(endings.is_complete());
  endings.note(model::JobId(std::uint64_t{1} << 60), base::Instant(5));
  EXPECT_FALSE(endings.is_complete());
}

}  // namespace
}  // namespace gpu_platform::store
