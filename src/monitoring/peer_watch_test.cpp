#include "monitoring/peer_watch.h"

#include <gtest/gtest.h>

#include <map>

namespace gpu_platform::monitoring {
namespace {

constexpr std::int64_t kIntervalNs = 5'000'000'000;

class PeerWatchTest : public ::testing::Test {
 protected:
  // Reads the GPUs "a", "b", … with these clocks, at the next interval. 0: it is not busy.
  std::vector<PeerWatch::Change> read(const std::vector<std::uint32_t>& clocks) {
    now_ns_ += kIntervalNs;
    std::vector<std::string> uuids;
    for (std::size_t i = 0; i < clocks.size(); ++i) {
      uuids.emplace_back(1, static_cast<char>('a' + i));
      std::optional<PeerWatch::Sample> sample;
      if (clocks[i] != 0) sample = {job_, kinds_[uuids.back()], clocks[i]};
      watch_.take(uuids.back(), sample, now_ns_);
    }
    return watch_.take_changes(uuids, now_ns_);
  }
  // What is new of "a" within this time.
  std::optional<PeerWatch::Change> read_for(base::Duration time,
                                            const std::vector<std::uint32_t>& clocks) {
    std::optional<PeerWatch::Change> found;
    for (std::int64_t passed = 0; passed <= time.value(); passed += kIntervalNs) {
      for (const PeerWatch::Change& change : read(clocks)) {
        if (change.uuid == "a") found = change;
      }
    }
    return found;
  }

  model::JobId job_{7};
  std::map<std::string, std::string> kinds_;
  std::int64_t now_ns_ = 0;
  PeerWatch watch_;
};

TEST_F(PeerWatchTest, AGpuFarBelowTheMedianForMinutesIsSlow) {
  EXPECT_FALSE(read_for(base::seconds(170), {1000, 1900, 1900, 1950}));
  const auto told = read_for(base::seconds(20), {1000, 1900, 1900, 1950});
  ASSERT_TRUE(told);
  EXPECT_TRUE(told->is_slow);
  EXPECT_EQ(told->percent, 52U);
  EXPECT_FALSE(read_for(base::minutes(10), {1000, 1900, 1900, 1950})) << "told once";
  EXPECT_FALSE(read_for(base::minutes(10), {1600, 1900, 1900, 1950})) << "between the limits";
  const auto over = read_for(base::minutes(2), {1900, 1900, 1900, 1950});
  ASSERT_TRUE(over);
  EXPECT_FALSE(over->is_slow);
}

TEST_F(PeerWatchTest, ItMustLast) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(read_for(base::seconds(100), {1000, 1900, 1900, 1950}));
    EXPECT_FALSE(read_for(base::seconds(20), {1600, 1900, 1900, 1950}));
  }
}

TEST_F(PeerWatchTest, TwoGpusAreNoPeers) {
  EXPECT_FALSE(read_for(base::minutes(10), {1000, 1900}));
  EXPECT_FALSE(read_for(base::minutes(10), {1000, 1900, 0, 0})) << "nor idle ones";
}

TEST_F(PeerWatchTest, OtherKindsAreNoPeers) {
  kinds_["a"] = "a smaller one";
  EXPECT_FALSE(read_for(base::minutes(10), {1000, 1900, 1900, 1950}));
}

TEST_F(PeerWatchTest, WhenAllAreSlowNoneIs) {
  const auto told = read_for(base::minutes(10), {1000, 1000, 1000, 1000});
  ASSERT_TRUE(told) << "a new daemon says once that it is not";
  EXPECT_FALSE(told->is_slow);
}

TEST_F(PeerWatchTest, AnotherJobCountsAnew) {
  EXPECT_FALSE(read_for(base::seconds(170), {1000, 1900, 1900, 1950}));
  job_ = model::JobId(8);
  EXPECT_FALSE(read_for(base::seconds(170), {1000, 1900, 1900, 1950}));
}

TEST_F(PeerWatchTest, OldReadingsAreNotCompared) {
  read({1900, 1900, 1900});
  now_ns_ += PeerWatch::kFresh.value();
  EXPECT_FALSE(read_for(base::minutes(10), {1000}));
}

}  // namespace
}  // namespace gpu_platform::monitoring
