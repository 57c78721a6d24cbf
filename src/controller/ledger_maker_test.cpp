#include "controller/ledger_maker.h"

#include <gtest/gtest.h>

#include "controller/state.h"
#include "store/ledger_fixture.h"
#include "store/memory/memory_store.h"

namespace gpu_platform::controller {
namespace {

using model::EventSeq;

class LedgerMakerTest : public ::testing::Test {
 protected:
  // A store of a version without a ledger, with so many events.
  void store_events(std::uint64_t count) {
    ASSERT_TRUE(store::append_events(store_, 1, count));
    store_.forget_ledger();
  }
  static std::vector<model::LedgerLine> lines_of(std::uint64_t seq, std::uint32_t gpus = 2) {
    return store::held_lines({.attempt = seq, .gpus = gpus});
  }
  static State state_at(std::uint64_t seq, bool has_accounts = true) {
    State state;
    state.seq = EventSeq(seq);
    if (has_accounts) state.accounts_since = base::Instant(1);
    return state;
  }

  store::MemoryStore store_;
};

TEST_F(LedgerMakerTest, FillsTheGapWithTheLinesOfItsEvents) {
  store_events(6);
  ASSERT_TRUE(store_.append({.events = store::events_of(7, 7), .ledger = lines_of(7)}));
  LedgerMaker maker(store_);
  std::vector<model::LedgerLine> expected;
  for (std::uint64_t seq = 1; seq <= 7; ++seq) {
    const auto lines = seq % 2 == 1 ? lines_of(seq) : std::vector<model::LedgerLine>();
    expected.insert(expected.end(), lines.begin(), lines.end());
    ASSERT_TRUE(maker.take(EventSeq(seq), lines));
  }
  EXPECT_EQ(*maker.finish(), "");
  EXPECT_TRUE(maker.has_closed_gap());
  EXPECT_EQ(store::all_lines(store_), expected);
}

TEST_F(LedgerMakerTest, WritesNothingWhereThereIsNoGap) {
  ASSERT_TRUE(store_.append({.events = store::events_of(1, 2), .ledger = lines_of(1)}));
  LedgerMaker maker(store_);
  ASSERT_TRUE(maker.take(EventSeq(1), lines_of(1)));
  ASSERT_TRUE(maker.take(EventSeq(2), {}));
  EXPECT_EQ(*maker.finish(), "");
  EXPECT_FALSE(maker.has_closed_gap());
  EXPECT_EQ(store::all_lines(store_), lines_of(1));
}

TEST_F(LedgerMakerTest, GoesOnWhereAKilledProcessStopped) {
  store_events(3);
  const auto many = lines_of(2, 20'000);
  {
    LedgerMaker killed(store_);
    ASSERT_TRUE(killed.take(EventSeq(1), lines_of(1)));
    ASSERT_TRUE(killed.take(EventSeq(2), many));
  }
  EXPECT_EQ(store_.ledger_gap(), (store::LedgerGap{EventSeq(2), EventSeq(3)})) << "one step";
  LedgerMaker maker(store_);
  ASSERT_TRUE(maker.take(EventSeq(1), lines_of(1)));
  ASSERT_TRUE(maker.take(EventSeq(2), many));
  ASSERT_TRUE(maker.take(EventSeq(3), lines_of(3)));
  EXPECT_EQ(*maker.finish(), "");
  std::vector<model::LedgerLine> expected = lines_of(1);
  expected.insert(expected.end(), many.begin(), many.end());
  const auto last = lines_of(3);
  expected.insert(expected.end(), last.begin(), last.end());
  EXPECT_TRUE(store::all_lines(store_) == expected);
}

TEST_F(LedgerMakerTest, BeginsWithASnapshotThatHasAccountsAndLacksNoLine) {
  store_events(6);
  ASSERT_TRUE(store_.put_ledger({}, EventSeq(4)));
  const LedgerMaker maker(store_);
  EXPECT_TRUE(maker.may_begin_with(state_at(3)));
  EXPECT_TRUE(maker.may_begin_with(state_at(4)));
  EXPECT_FALSE(maker.may_begin_with(state_at(5))) << "the lines of event 5 would be lost";
  EXPECT_FALSE(maker.may_begin_with(state_at(3, false))) << "it has no clocks";
  ASSERT_TRUE(store_.put_ledger({}, EventSeq(6)));
  EXPECT_TRUE(LedgerMaker(store_).may_begin_with(state_at(5)));
  EXPECT_FALSE(LedgerMaker(store_).may_begin_with(state_at(5, false)));
}

TEST_F(LedgerMakerTest, SaysWhichLinesCannotBeMade) {
  store_events(6);
  LedgerMaker maker(store_);
  ASSERT_TRUE(maker.take(EventSeq(5), lines_of(5)));
  ASSERT_TRUE(maker.take(EventSeq(6), {}));
  EXPECT_EQ(*maker.finish(),
            "the ledger has no lines of events 1 to 4: the journal does not have what was before "
            "them");
  EXPECT_TRUE(maker.has_closed_gap());
  EXPECT_EQ(store::all_lines(store_), lines_of(5));
}

}  // namespace
}  // namespace gpu_platform::controller
