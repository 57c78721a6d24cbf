#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/ledger_fixture.h"

// What the ledger of every store promises. An implementation instantiates the suite with a subject:
//
//   struct Subject {
//     Journal& journal();
//     Ledger& ledger();
//     void restart();        // the process ended and came back
//     void forget_ledger();  // it becomes the store of a version without a ledger, and is opened
//   };

namespace gpu_platform::store {

template <class Subject>
class LedgerContract : public testing::Test {
 protected:
  struct Added {
    std::uint64_t first = 0;
    std::vector<model::LedgerLine> lines;
  };

  Journal& journal() { return subject_.journal(); }
  const Ledger& ledger() { return subject_.ledger(); }

  // One batch of so many events.
  base::Status append(std::uint64_t events, const std::vector<model::LedgerLine>& lines,
                      base::Instant not_before = {}) {
    const std::uint64_t first = journal().last_seq().value + 1;
    const auto records = events_of(first, first + events - 1);
    base::Status status =
        journal().append({.events = records, .ledger = lines, .ledger_not_before = not_before});
    if (status && !lines.empty()) added_.push_back({first, lines});
    return status;
  }
  void append_random(std::size_t batches, base::Prng& prng) {
    for (std::size_t i = 0; i < batches; ++i) {
      const auto lines = random_lines(journal().last_seq().value + 1, prng);
      ASSERT_TRUE(append(1 + prng.below(4), lines));
    }
  }
  // Of what was added.
  std::vector<model::LedgerLine> expected(const LedgerQuery& query) const {
    std::vector<model::LedgerLine> lines;
    for (const Added& batch : added_) {
      if (query.upto.valid() && batch.first > query.upto.value) continue;
      for (const model::LedgerLine& line : batch.lines) {
        if (is_wanted(query, line)) lines.push_back(line);
      }
    }
    return lines;
  }
  std::vector<model::LedgerLine> everything() const {
    return expected({.from = INT64_MIN, .to = INT64_MAX});
  }
  std::vector<LedgerBatch> batches(std::size_t from, std::size_t to) const {
    std::vector<LedgerBatch> batches;
    for (std::size_t i = from; i < to; ++i) {
      batches.push_back({model::EventSeq(added_[i].first), added_[i].lines});
    }
    return batches;
  }
  base::ErrorCode refusal(std::vector<LedgerBatch> some, std::uint64_t upto) {
    const base::Status put = journal().put_ledger(some, model::EventSeq(upto));
    EXPECT_FALSE(put);
    return put ? base::ErrorCode::kInternal : put.error().code;
  }

  Subject subject_;
  std::vector<Added> added_;  // batches that have lines
};

TYPED_TEST_SUITE_P(LedgerContract);

TYPED_TEST_P(LedgerContract, ANewLedgerIsEmptyAndLacksNothing) {
  EXPECT_TRUE(all_lines(this->ledger()).empty());
  EXPECT_FALSE(this->ledger().ledger_upto()->valid());
  EXPECT_FALSE(this->journal().ledger_gap().is_open());
}

TYPED_TEST_P(LedgerContract, FindsExactlyTheLinesThatAreWantedInTheirOrder) {
  base::Prng prng(5);
  this->append_random(60, prng);
  EXPECT_EQ(all_lines(this->ledger()), this->everything());
  std::size_t found = 0;
  for (int i = 0; i < 300; ++i) {
    if (i == 150) this->subject_.restart();
    const LedgerQuery query = random_ledger_query(prng, this->journal().last_seq().value);
    const auto lines = lines_of(this->ledger(), query);
    ASSERT_EQ(lines, this->expected(query)) << query.from << " to " << query.to << query.user;
    found += lines.size();
  }
  EXPECT_GT(found, 300u) << "the queries miss everything";
}

TYPED_TEST_P(LedgerContract, HasTheLinesOfEveryEventThatIsStored) {
  ASSERT_TRUE(this->append(3, held_lines({.gpus = 2})));
  EXPECT_EQ(*this->ledger().ledger_upto(), model::EventSeq(3));
  ASSERT_TRUE(this->append(2, {}));
  EXPECT_EQ(*this->ledger().ledger_upto(), model::EventSeq(5));
}

TYPED_TEST_P(LedgerContract, NothingIsAddedByABatchThatIsRefused) {
  ASSERT_TRUE(this->append(3, held_lines({.gpus = 2})));
  const auto lines = held_lines({.attempt = 9});
  EXPECT_FALSE(this->journal().append({.events = events_of(9, 10), .ledger = lines}));
  EXPECT_EQ(all_lines(this->ledger()), this->everything());
}

TYPED_TEST_P(LedgerContract, AVisitEndsWithTheVisitorsError) {
  ASSERT_TRUE(this->append(1, held_lines({.gpus = 4})));
  std::size_t seen = 0;
  const base::Status status = this->ledger().visit(
      {.from = INT64_MIN, .to = INT64_MAX}, [&](const model::LedgerLine&) -> base::Status {
        if (++seen == 2) return base::fail(base::ErrorCode::kDataLoss, "enough");
        return {};
      });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "enough");
  EXPECT_EQ(seen, 2u);
}

TYPED_TEST_P(LedgerContract, LinesLeaveWhenTheirTimeIsOverAFewBatchesAtATime) {
  const auto ended_at = [](std::int64_t ms) { return held_lines({.from = ms - 10, .length = 10}); };
  for (const std::int64_t ms : {100, 200, 300, 400, 500})
    ASSERT_TRUE(this->append(1, ended_at(ms)));
  const base::Instant over(350 * 1'000'000);
  ASSERT_TRUE(this->append(1, ended_at(600), over));
  this->added_.erase(this->added_.begin(), this->added_.begin() + 2);
  EXPECT_EQ(all_lines(this->ledger()), this->everything());
  ASSERT_TRUE(this->append(1, ended_at(700), over));
  this->added_.erase(this->added_.begin());
  this->subject_.restart();
  EXPECT_EQ(all_lines(this->ledger()), this->everything());
  EXPECT_EQ(lines_of(this->ledger(), {.from = 0, .to = 1'000, .user = "ann"}), this->everything());
}

TYPED_TEST_P(LedgerContract, TheLastLinesStayHoweverOldTheyAre) {
  const base::Instant over(1'000'000'000'000);
  ASSERT_TRUE(this->append(1, held_lines({.from = 1, .length = 9}), over));
  EXPECT_EQ(all_lines(this->ledger()), this->everything());
}

TYPED_TEST_P(LedgerContract, AGapIsFilledInStepsThatOutliveTheProcess) {
  base::Prng prng(6);
  this->append_random(20, prng);
  const std::size_t before = this->added_.size();
  const model::EventSeq last = this->journal().last_seq();
  this->subject_.forget_ledger();
  EXPECT_TRUE(all_lines(this->ledger()).empty());
  EXPECT_EQ(this->journal().ledger_gap(), (LedgerGap{{}, last}));

  // What is new is not in the gap.
  this->append_random(5, prng);
  EXPECT_FALSE(this->ledger().ledger_upto()->valid());
  const model::EventSeq half(this->added_[before / 2].first - 1);
  ASSERT_TRUE(this->journal().put_ledger(this->batches(0, before / 2), half));
  this->subject_.restart();
  EXPECT_EQ(this->journal().ledger_gap(), (LedgerGap{half, last}));
  EXPECT_EQ(*this->ledger().ledger_upto(), half);

  ASSERT_TRUE(this->journal().put_ledger(this->batches(before / 2, before), last));
  EXPECT_FALSE(this->journal().ledger_gap().is_open());
  EXPECT_EQ(*this->ledger().ledger_upto(), this->journal().last_seq());
  this->subject_.restart();
  EXPECT_FALSE(this->journal().ledger_gap().is_open());
  EXPECT_EQ(all_lines(this->ledger()), this->everything());
  for (int i = 0; i < 50; ++i) {
    LedgerQuery query = random_ledger_query(prng, last.value);
    ASSERT_EQ(lines_of(this->ledger(), query), this->expected(query));
  }
}

TYPED_TEST_P(LedgerContract, RefusesLinesThatAreNotThoseOfTheGap) {
  const auto lines = held_lines({});
  ASSERT_TRUE(this->append(5, lines));
  EXPECT_EQ(this->refusal({{model::EventSeq(1), lines}}, 5), base::ErrorCode::kInvalidArgument);
  this->subject_.forget_ledger();
  ASSERT_TRUE(this->append(5, {}));
  EXPECT_EQ(this->refusal({{model::EventSeq(1), lines}}, 6), base::ErrorCode::kInvalidArgument);
  EXPECT_EQ(this->refusal({{model::EventSeq(4), lines}}, 3), base::ErrorCode::kInvalidArgument);
  EXPECT_EQ(this->refusal({{model::EventSeq(4), lines}, {model::EventSeq(2), lines}}, 5),
            base::ErrorCode::kInvalidArgument);
  EXPECT_TRUE(all_lines(this->ledger()).empty());
  EXPECT_TRUE(this->journal().put_ledger({}, model::EventSeq(5))) << "and goes on";
}

TYPED_TEST_P(LedgerContract, AGapIsFilledWhileTheJournalIsReplayed) {
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(this->append(1, held_lines({.attempt = static_cast<std::uint64_t>(i + 1)})));
  }
  this->subject_.forget_ledger();
  std::uint64_t visited = 0;
  ASSERT_TRUE(this->journal().replay({}, [&](const model::EventRecord& record) -> base::Status {
    ++visited;
    return this->journal().put_ledger(this->batches(visited - 1, visited), record.seq);
  }));
  EXPECT_EQ(visited, 200u);
  EXPECT_EQ(all_lines(this->ledger()), this->everything());
}

TYPED_TEST_P(LedgerContract, EventsThatNoCoreHasSeenJoinTheGap) {
  ASSERT_TRUE(this->append(2, held_lines({.attempt = 1})));
  ASSERT_TRUE(this->journal().append({.events = events_of(3, 4), .has_no_lines = true}));
  EXPECT_EQ(this->journal().ledger_gap(), (LedgerGap{model::EventSeq(2), model::EventSeq(4)}));
  EXPECT_EQ(all_lines(this->ledger()), this->everything()) << "what was there stays";

  // Lines behind the gap go into it with the events after them.
  ASSERT_TRUE(
      this->journal().append({.events = events_of(5, 5), .ledger = held_lines({.attempt = 2})}));
  ASSERT_TRUE(this->journal().append({.events = events_of(6, 6), .has_no_lines = true}));
  this->subject_.restart();
  EXPECT_EQ(this->journal().ledger_gap(), (LedgerGap{model::EventSeq(2), model::EventSeq(6)}));
  EXPECT_EQ(all_lines(this->ledger()), this->everything());
}

REGISTER_TYPED_TEST_SUITE_P(
    LedgerContract, ANewLedgerIsEmptyAndLacksNothing, FindsExactlyTheLinesThatAreWantedInTheirOrder,
    HasTheLinesOfEveryEventThatIsStored, NothingIsAddedByABatchThatIsRefused,
    AVisitEndsWithTheVisitorsError, LinesLeaveWhenTheirTimeIsOverAFewBatchesAtATime,
    TheLastLinesStayHoweverOldTheyAre, AGapIsFilledInStepsThatOutliveTheProcess,
    RefusesLinesThatAreNotThoseOfTheGap, AGapIsFilledWhileTheJournalIsReplayed,
    EventsThatNoCoreHasSeenJoinTheGap);

}  // namespace gpu_platform::store
