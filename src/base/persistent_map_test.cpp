#include "base/persistent_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"

namespace gpu_platform::base {
namespace {

using Model = std::map<std::uint64_t, std::string>;
using Map = PersistentMap<std::string>;

std::vector<std::pair<std::uint64_t, std::string>> content(const Map& map) {
  std::vector<std::pair<std::uint64_t, std::string>> result;
  map.for_each(
      [&](std::uint64_t key, const std::string& value) { result.emplace_back(key, value); });
  return result;
}

void expect_equal(const Map& map, const Model& model, std::uint64_t seed) {
  EXPECT_EQ(map.size(), model.size()) << "seed " << seed;
  const std::vector<std::pair<std::uint64_t, std::string>> expected(model.begin(), model.end());
  EXPECT_EQ(content(map), expected) << "seed " << seed;
}

// Keys near each other, far apart, and at the ends.
std::uint64_t draw_key(Prng& random) {
  switch (random.below(4)) {
    case 0:
      return random.below(40);
    case 1:
      return random.below(5000);
    case 2:
      return ~std::uint64_t{0} - random.below(3);
    default:
      return random.next() >> random.below(64);
  }
}

// One random write to both.
void write(Prng& random, Map& map, Model& model) {
  const std::uint64_t key = draw_key(random);
  const std::string value = std::to_string(random.below(1000));
  switch (random.below(5)) {
    case 0:
    case 1:
      EXPECT_EQ(map.put(key, value), value);
      model[key] = value;
      break;
    case 2:
      EXPECT_EQ(map.erase(key), model.erase(key) == 1);
      break;
    case 3:
      // Erases a key that is there, so that erasing really happens.
      if (!model.empty()) {
        const auto at = static_cast<std::ptrdiff_t>(random.below(model.size()));
        const std::uint64_t present = std::next(model.begin(), at)->first;
        EXPECT_TRUE(map.erase(present));
        model.erase(present);
      }
      break;
    default:
      std::string* found = map.find_mutable(key);
      EXPECT_EQ(found != nullptr, model.contains(key));
      if (found != nullptr) *found = model[key] = value + "!";
      break;
  }
}

TEST(PersistentMap, IsAMapAndItsSnapshotsNeverChange) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Prng random(seed);
    Map map;
    Model model;
    std::vector<std::pair<Map, Model>> snapshots;
    for (int step = 0; step < 400; ++step) {
      write(random, map, model);
      if (random.chance(1, 20)) snapshots.emplace_back(map.freeze(), model);
    }
    expect_equal(map, model, seed);
    for (const auto& [snapshot, then] : snapshots) expect_equal(snapshot, then, seed);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PersistentMap, FindsWhatIsThereAndNothingElse) {
  Map map;
  EXPECT_EQ(map.find(0), nullptr);
  map.put(0, "zero");
  map.put(1'000'000, "far");
  ASSERT_NE(map.find(0), nullptr);
  EXPECT_EQ(*map.find(1'000'000), "far");
  EXPECT_EQ(map.find(16), nullptr);
  EXPECT_EQ(map.find(~std::uint64_t{0}), nullptr);
  EXPECT_EQ(map.find_mutable(5), nullptr);
  EXPECT_FALSE(map.erase(5));
}

TEST(PersistentMap, WalksBothWaysAndStopsWhenTold) {
  Map map;
  for (const std::uint64_t key : {300U, 2U, 17U, 4000U}) map.put(key, std::to_string(key));
  std::vector<std::uint64_t> down;
  map.for_each_descending_while([&](std::uint64_t key, const std::string&) {
    down.push_back(key);
    return key > 17;
  });
  EXPECT_EQ(down, (std::vector<std::uint64_t>{4000, 300, 17}));
  std::vector<std::uint64_t> up;
  map.for_each_while([&](std::uint64_t key, const std::string&) {
    up.push_back(key);
    return key < 17;
  });
  EXPECT_EQ(up, (std::vector<std::uint64_t>{2, 17}));
}

TEST(PersistentMap, EqualContentIsEqualHoweverItCameAbout) {
  Map a;
  Map b;
  for (std::uint64_t key = 0; key < 100; ++key) a.put(key, "v");
  for (std::uint64_t key = 100; key-- > 0;) b.put(key, "v");
  b.put(100'000, "gone");
  b.erase(100'000);
  EXPECT_TRUE(a == b);
  b.put(7, "w");
  EXPECT_FALSE(a == b);
}

TEST(PersistentMap, DifferencesLeadFromOneSnapshotToTheNext) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Prng random(seed);
    Map map;
    Model model;
    Map before = map.freeze();
    Model followed;
    for (int step = 0; step < 40; ++step) {
      for (std::uint64_t writes = random.below(20); writes > 0; --writes) write(random, map, model);
      const Map after = map.freeze();
      Map::for_each_difference(
          before, after, [&](std::uint64_t key, const auto* was, const auto* is) {
            const auto known = followed.find(key);
            EXPECT_EQ(was == nullptr, known == followed.end()) << key << " seed " << seed;
            if (was != nullptr && known != followed.end()) {
              EXPECT_EQ(*was, known->second);
            }
            if (is == nullptr) {
              followed.erase(key);
            } else {
              followed[key] = *is;
            }
          });
      EXPECT_EQ(followed, model) << "seed " << seed;
      before = after;
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PersistentMap, DifferencesLeaveOutWhatIsShared) {
  Map map;
  for (std::uint64_t key = 0; key < 10'000; ++key) map.put(key, "v");
  const Map before = map.freeze();
  map.put(5'000, "w");
  map.erase(7);
  map.put(20'000, "new");
  std::vector<std::uint64_t> seen;
  Map::for_each_difference(before, map.freeze(), [&](std::uint64_t key, const auto*, const auto*) {
    seen.push_back(key);
  });
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{7, 5'000, 20'000}));
}

TEST(PersistentMap, AWriteCopiesOnlyWhatASnapshotShares) {
  Map map;
  map.put(1, "one");
  const Map snapshot = map.freeze();
  std::string* const own = map.find_mutable(1);
  EXPECT_NE(own, snapshot.find(1));
  *own = "changed";
  EXPECT_EQ(*snapshot.find(1), "one");
  // No snapshot in between: the same value is written in place.
  EXPECT_EQ(map.find_mutable(1), own);
}

}  // namespace
}  // namespace gpu_platform::base
