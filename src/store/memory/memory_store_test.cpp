#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include "store/ledger_contract.h"
#include "store/store_contract.h"
#include "store/test_support.h"

namespace gpu_platform::store {
namespace {

struct MemorySubject {
  Journal& journal() { return store; }
  Archive& archive() { return store; }
  Ledger& ledger() { return store; }
  void restart() { store.crash(); }
  void forget_ledger() { store.forget_ledger(); }
  void damage_event(model::EventSeq seq) { store.damage_event(seq); }
  void damage_snapshot(model::EventSeq upto) { store.damage_snapshot(upto); }

  MemoryStore store;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, StoreContract, MemorySubject);
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, LedgerContract, MemorySubject);

TEST(MemoryStore, ALostSyncLeavesNothingOfTheBatch) {
  MemoryStore store;
  ASSERT_TRUE(append_events(store, 1, 2, {}, {{"old", "A=1"}}));
  store.on_written([](model::EventSeq) { return SyncOutcome::kLost; });

  EXPECT_FALSE(append_events(store, 3, 4, {JobBuilder(1)}, {{"new", "B=2"}}, {"old"}));
  store.crash();

  EXPECT_EQ(replayed(store), bytes_of_events(1, 2));
  EXPECT_EQ(store.last_seq(), model::EventSeq(2));
  EXPECT_FALSE(store.find(model::JobId(1)).value().has_value());
  EXPECT_FALSE(store.environment("new"));
  EXPECT_TRUE(store.environment("old"));
}

TEST(MemoryStore, ASyncThatIsNotHeardOfIsDurableAllTheSame) {
  MemoryStore store;
  store.on_written([](model::EventSeq) { return SyncOutcome::kSyncedUnheard; });

  EXPECT_FALSE(append_events(store, 1, 3, {JobBuilder(1)}, {{"new", "B=2"}}));
  store.crash();

  EXPECT_EQ(replayed(store), bytes_of_events(1, 3));
  EXPECT_TRUE(store.find(model::JobId(1)).value().has_value());
  EXPECT_TRUE(store.environment("new"));
}

TEST(MemoryStore, LinesOfTheLedgerAreLostAndKeptWithTheirEvents) {
  MemoryStore store;
  const auto lines = held_lines({.gpus = 2});
  store.on_written([](model::EventSeq) { return SyncOutcome::kLost; });
  EXPECT_FALSE(store.append({.events = events_of(1, 2), .ledger = lines}));
  store.crash();
  EXPECT_TRUE(all_lines(store).empty());
  store.on_written([](model::EventSeq) { return SyncOutcome::kSyncedUnheard; });
  EXPECT_FALSE(store.append({.events = events_of(1, 2), .ledger = lines}));
  store.crash();
  EXPECT_EQ(all_lines(store), lines);
}

TEST(MemoryStore, ACrashBetweenWriteAndSyncDropsTheBatch) {
  MemoryStore store;
  ASSERT_TRUE(append_events(store, 1, 2));
  store.on_written([&](model::EventSeq last) {
    if (last == model::EventSeq(4)) store.crash();
    return SyncOutcome::kSynced;
  });

  EXPECT_FALSE(append_events(store, 3, 4));

  EXPECT_EQ(replayed(store), bytes_of_events(1, 2));
  EXPECT_TRUE(append_events(store, 3, 3)) << "the store of the next process";
}

TEST(MemoryStore, RefusesEverythingAfterAFailureUntilTheCrash) {
  MemoryStore store;
  ASSERT_TRUE(append_events(store, 1, 1));
  store.on_written([](model::EventSeq) { return SyncOutcome::kLost; });
  ASSERT_FALSE(append_events(store, 2, 2));
  store.on_written({});

  EXPECT_FALSE(append_events(store, 2, 2));
  EXPECT_FALSE(store.put_snapshot({model::EventSeq(1), "state"}));
  store.crash();
  EXPECT_TRUE(append_events(store, 2, 2));
}

TEST(MemoryStore, AFullMediumStillTakesEndings) {
  MemoryStore store;
  store.set_headroom(Headroom::kReserved);
  EXPECT_EQ(store.headroom(), Headroom::kReserved);
  EXPECT_TRUE(append_events(store, 1, 1, {JobBuilder(1)}));
}

TEST(MemoryStore, ACopyIsAStoreOfItsOwn) {
  MemoryStore store;
  ASSERT_TRUE(append_events(store, 1, 2));
  MemoryStore copy = store;
  ASSERT_TRUE(append_events(copy, 3, 3));
  EXPECT_EQ(replayed(store), bytes_of_events(1, 2));
  EXPECT_EQ(replayed(copy), bytes_of_events(1, 3));
}

}  // namespace
}  // namespace gpu_platform::store
