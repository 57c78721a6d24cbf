#include "monitoring/memory_watch.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace gpu_platform::monitoring {
namespace {

using base::kGiB;
using base::kMiB;
using base::seconds;
using Step = MemoryWatch::Step;
using Excesses = std::vector<MemoryWatch::Excess>;

constexpr model::AttemptId kGreedy{model::JobId(1), 1};
constexpr model::AttemptId kOther{model::JobId(2), 1};

// An 80 GiB GPU; job 1 has a part with 20 GiB, job 2 one with 30.
class MemoryWatchTest : public ::testing::Test {
 protected:
  using Uses = std::vector<std::pair<model::AttemptId, std::int64_t>>;  // GiB of each process

  Excesses after(base::Duration passed, const Uses& uses) {
    now_ = now_ + passed;
    std::vector<MemoryWatch::Process> processes;
    base::Bytes used;
    for (const auto& [attempt, gib] : uses) {
      processes.push_back({next_pid_++, kGiB * gib, attempt});
      used += kGiB * gib;
    }
    reading_.processes = processes;
    if (is_use_told_) reading_.used = used;
    return read();
  }
  // A second later.
  Excesses see(std::vector<MemoryWatch::Process> processes) {
    now_ = now_ + seconds(1);
    reading_.processes = std::move(processes);
    return read();
  }
  Excesses read() {
    reading_.at = now_;
    return watch_.take(reading_);
  }
  static Excesses warning(std::int64_t gib) {
    return {{kGreedy, Step::kWarn, kGiB * gib, kGiB * 20}};
  }
  static Excesses stop(std::int64_t gib) { return {{kGreedy, Step::kStop, kGiB * gib, kGiB * 20}}; }
  bool is_innocent(model::AttemptId attempt) const {
    return watch_.cause_of_failure(attempt, now_).has_value();
  }

  MemoryWatch watch_;
  MemoryWatch::Reading reading_{.gpu = "GPU-0",
                                .parts = {{kGreedy, kGiB * 20}, {kOther, kGiB * 30}},
                                .processes = {},
                                .used = {},
                                .total = kGiB * 80,
                                .at = {}};
  bool is_use_told_ = true;
  base::Instant now_ = base::Instant() + base::hours(1);
  std::uint32_t next_pid_ = 100;
};

const Excesses kNothing;

// ---- warned, then stopped

TEST_F(MemoryWatchTest, OneThatStaysOverIsWarnedAndThenStopped) {
  EXPECT_EQ(after(seconds(1), {{kGreedy, 19}}), kNothing);
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), warning(23));
  EXPECT_EQ(after(seconds(2), {{kGreedy, 23}}), kNothing) << "it is warned once";
  EXPECT_EQ(after(seconds(2), {{kGreedy, 23}}), kNothing);
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), stop(23));
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), stop(23)) << "until it is gone";
}

TEST_F(MemoryWatchTest, OneThatGrowsFurtherIsStoppedAtOnce) {
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), warning(23));
  EXPECT_EQ(after(seconds(1), {{kGreedy, 24}}), stop(24));
}

TEST_F(MemoryWatchTest, ItsProcessesCountTogether) {
  EXPECT_EQ(after(seconds(1), {{kGreedy, 7}, {kGreedy, 7}, {kOther, 29}}), kNothing);
  EXPECT_EQ(after(seconds(1), {{kGreedy, 7}, {kGreedy, 7}, {kGreedy, 7}, {kOther, 29}}),
            warning(21));
}

TEST_F(MemoryWatchTest, ALittleMoreIsLetPass) {
  EXPECT_EQ(see({{7, kGiB * 20 + kMiB * 200, kGreedy}}), kNothing) << "a hundredth";
  EXPECT_EQ(see({{7, kGiB * 20 + kMiB * 210, kGreedy}}).size(), 1U);
  reading_.parts = {MemoryWatch::Part{kOther, kMiB * 100}};
  EXPECT_EQ(see({{8, kMiB * 164, kOther}}), kNothing) << "64 MiB";
  EXPECT_EQ(see({{8, kMiB * 165, kOther}}).size(), 1U);
}

TEST_F(MemoryWatchTest, OneThatFallsBackGoesOn) {
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), warning(23));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(after(seconds(1), {{kGreedy, 20}}), kNothing);
}

TEST_F(MemoryWatchTest, OneThatIsOverAgainAndAgainIsStopped) {
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), warning(23));
  EXPECT_EQ(after(seconds(2), {{kGreedy, 23}}), kNothing);
  EXPECT_EQ(after(seconds(2), {{kGreedy, 10}}), kNothing);
  EXPECT_EQ(after(seconds(2), {{kGreedy, 23}}), kNothing) << "it was over for 2 s";
  EXPECT_EQ(after(seconds(2), {{kGreedy, 23}}), kNothing) << "for 4 s";
  EXPECT_EQ(after(seconds(2), {{kGreedy, 10}}), kNothing);
  EXPECT_EQ(after(seconds(2), {{kGreedy, 23}}), kNothing);
  EXPECT_EQ(after(seconds(2), {{kGreedy, 23}}), stop(23));
}

TEST_F(MemoryWatchTest, AfterALongTimeItIsWarnedAnew) {
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), warning(23));
  EXPECT_EQ(after(seconds(4), {{kGreedy, 23}}), kNothing);
  for (int i = 0; i < 60; ++i) EXPECT_EQ(after(seconds(5), {{kGreedy, 10}}), kNothing);
  EXPECT_EQ(after(seconds(1), {{kGreedy, 25}}), warning(25));
  EXPECT_EQ(after(seconds(4), {{kGreedy, 25}}), kNothing);
}

// ---- what is not known

TEST_F(MemoryWatchTest, ATimeWithoutReadingsCountsNothing) {
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), warning(23));
  EXPECT_EQ(after(seconds(11), {{kGreedy, 23}}), kNothing);
  EXPECT_EQ(after(seconds(4), {{kGreedy, 23}}), kNothing);
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), stop(23));
}

TEST_F(MemoryWatchTest, NorDoesAReadingWithoutProcesses) {
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), warning(23));
  now_ = now_ + seconds(4);
  reading_.processes.reset();
  EXPECT_EQ(read(), kNothing);
  EXPECT_EQ(after(seconds(4), {{kGreedy, 23}}), kNothing);
  EXPECT_EQ(after(seconds(4), {{kGreedy, 23}}), kNothing);
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), stop(23));
}

TEST_F(MemoryWatchTest, AProcessThatTellsNothingOrNonsenseCountsNothing) {
  const auto of = [](std::optional<base::Bytes> memory) {
    return std::vector<MemoryWatch::Process>{{7, kGiB * 15, kGreedy}, {8, memory, kGreedy}};
  };
  for (const auto& memory :
       {std::optional<base::Bytes>(), std::optional(base::Bytes(-1)), std::optional(kGiB * 81),
        std::optional(base::Bytes(std::numeric_limits<std::int64_t>::max() / 2))}) {
    EXPECT_EQ(see(of(memory)), kNothing);
  }
  EXPECT_EQ(see(of(kGiB * 8)), warning(23));
}

TEST_F(MemoryWatchTest, AReadingThatIsNotLaterSaysNothing) {
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), warning(23));
  EXPECT_EQ(after({}, {{kGreedy, 30}}), kNothing);
  now_ = now_ + seconds(-1);
  EXPECT_EQ(read(), kNothing);
}

TEST_F(MemoryWatchTest, ProcessesOfNoJobAreNoOnes) {
  const model::AttemptId gone{model::JobId(9), 1};
  EXPECT_EQ(after(seconds(1), {{gone, 60}, {kGreedy, 19}}), kNothing);
  EXPECT_EQ(see({{7, kGiB * 60, std::nullopt}}), kNothing);
}

// A pid says nothing: each reading tells whose it is then.
TEST_F(MemoryWatchTest, APidThatIsUsedAgainIsItsNewOwners) {
  EXPECT_EQ(see({{7, kGiB * 23, kGreedy}}), warning(23));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(see({{7, kGiB * 23, kOther}}), kNothing) << "kOther has 30 GiB";
  }
}

TEST_F(MemoryWatchTest, OneThatEndsIsNotWatchedAnyMore) {
  EXPECT_EQ(after(seconds(1), {{kGreedy, 23}}), warning(23));
  reading_.parts = {MemoryWatch::Part{kOther, kGiB * 30}};
  EXPECT_EQ(after(seconds(6), {{kOther, 10}}), kNothing);
  EXPECT_EQ(watch_.latest_excess(kGreedy)->used, kGiB * 23) << "for the reason of its end";
  const model::AttemptId next{model::JobId(1), 2};
  reading_.parts = {MemoryWatch::Part{next, kGiB * 20}};
  const Excesses excesses = after(seconds(1), {{next, 23}});
  ASSERT_EQ(excesses.size(), 1U);
  EXPECT_EQ(excesses[0].step, Step::kWarn) << "its next attempt begins anew";
  EXPECT_EQ(after(base::minutes(10), {}), kNothing);
  EXPECT_EQ(watch_.latest_excess(kGreedy), std::nullopt);
}

TEST_F(MemoryWatchTest, OnlyWatchedPartsAreHeldToTheirs) {
  reading_.parts[0].is_watched = false;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(after(seconds(1), {{kGreedy, 40}}), kNothing);
}

TEST_F(MemoryWatchTest, AGpuIsReadOftenWhileAPartIsNearlyFull) {
  EXPECT_FALSE(watch_.is_close("GPU-0"));
  after(seconds(1), {{kGreedy, 10}, {kOther, 26}});
  EXPECT_FALSE(watch_.is_close("GPU-0"));
  after(seconds(1), {{kGreedy, 18}, {kOther, 26}});
  EXPECT_TRUE(watch_.is_close("GPU-0"));
  after(seconds(1), {});
  EXPECT_FALSE(watch_.is_close("GPU-0"));
}

// ---- neighbours

TEST_F(MemoryWatchTest, ANeighbourThatGoesShortOfWhatIsItsIsInnocent) {
  after(seconds(1), {{kGreedy, 20}, {kOther, 10}});
  EXPECT_FALSE(is_innocent(kOther));
  after(seconds(1), {{kGreedy, 61}, {kOther, 10}});
  ASSERT_TRUE(is_innocent(kOther)) << "9 GiB are free, and it may have 20 more";
  EXPECT_EQ(watch_.cause_of_failure(kOther, now_)->attempt, kGreedy);
  EXPECT_EQ(watch_.cause_of_failure(kOther, now_)->used, kGiB * 61);
  EXPECT_FALSE(is_innocent(kGreedy));
  now_ = now_ + MemoryWatch::kEndsWithin;
  EXPECT_TRUE(is_innocent(kOther));
  now_ = now_ + seconds(1);
  EXPECT_FALSE(is_innocent(kOther)) << "it came through";
}

TEST_F(MemoryWatchTest, WhileThereIsRoomForItsWholePartItsFailureIsItsOwn) {
  after(seconds(1), {{kGreedy, 25}, {kOther, 10}});
  EXPECT_FALSE(is_innocent(kOther));
}

TEST_F(MemoryWatchTest, ItIsGivenTheBenefitOfTheDoubt) {
  is_use_told_ = false;
  after(seconds(1), {{kGreedy, 25}, {kOther, 10}});
  EXPECT_TRUE(is_innocent(kOther));
}

TEST_F(MemoryWatchTest, OneThatWasOverItselfIsNotInnocent) {
  after(seconds(1), {{kGreedy, 21}, {kOther, 58}});
  after(seconds(1), {{kGreedy, 1}, {kOther, 70}});
  EXPECT_FALSE(is_innocent(kGreedy));
  EXPECT_FALSE(is_innocent(kOther));
}

TEST_F(MemoryWatchTest, ANeighbourThatHasEndedByThenIsInnocentToo) {
  after(seconds(1), {{kGreedy, 61}});
  EXPECT_TRUE(is_innocent(kOther)) << "it still has its part";
  reading_.parts = {MemoryWatch::Part{kGreedy, kGiB * 20}};
  after(seconds(1), {{kGreedy, 61}});
  EXPECT_TRUE(is_innocent(kOther)) << "its end may be on its way";
}

}  // namespace
}  // namespace gpu_platform::monitoring
