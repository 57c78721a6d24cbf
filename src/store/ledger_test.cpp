#include "store/ledger.h"

#include <gtest/gtest.h>

#include "store/ledger_batch.h"
#include "store/ledger_fixture.h"

namespace gpu_platform::store {
namespace {

model::LedgerLine rest(model::Millis from, model::Millis to) {
  return rest_lines({.from = from, .length = to - from}).front();
}

model::LedgerLine correction(model::Millis at, std::string user) {
  model::LedgerLine line;
  line.kind = model::LedgerKind::kCorrection;
  line.from = at;
  line.user = std::move(user);
  return line;
}

TEST(LedgerQuery, WantsLinesThatHaveAMomentInTheWindow) {
  const LedgerQuery query{.from = 100, .to = 200};
  EXPECT_FALSE(is_wanted(query, rest(50, 100)));
  EXPECT_TRUE(is_wanted(query, rest(50, 101)));
  EXPECT_TRUE(is_wanted(query, rest(120, 130)));
  EXPECT_TRUE(is_wanted(query, rest(50, 300)));
  EXPECT_TRUE(is_wanted(query, rest(199, 300)));
  EXPECT_FALSE(is_wanted(query, rest(200, 300)));
}

TEST(LedgerQuery, ALineWithoutLengthAndACorrectionCountAtTheirMoment) {
  const LedgerQuery query{.from = 100, .to = 200};
  for (const auto& [at, is_in] : {std::pair{99, false}, {100, true}, {199, true}, {200, false}}) {
    EXPECT_EQ(is_wanted(query, rest(at, at)), is_in) << at;
    EXPECT_EQ(is_wanted(query, correction(at, "")), is_in) << at;
  }
}

TEST(LedgerQuery, AUserHasHeldLinesAndCorrections) {
  const LedgerQuery query{.from = 0, .to = 200, .user = "ann"};
  EXPECT_TRUE(is_wanted(query, correction(1, "ann")));
  EXPECT_FALSE(is_wanted(query, correction(1, "bob")));
  EXPECT_TRUE(is_wanted(query, held_lines({.user = "ann", .from = 1}).front()));
  EXPECT_FALSE(is_wanted(query, held_lines({.user = "bob", .from = 1}).front()));
  model::LedgerLine line = rest(1, 2);
  line.user = "ann";
  EXPECT_FALSE(is_wanted(query, line)) << "a rest is of no user";
}

TEST(LedgerBatches, TheSpanIsFromTheEarliestMomentToTheLatest) {
  const std::vector<model::LedgerLine> lines = {rest(50, 60), correction(900, "bob"), rest(10, 20)};
  EXPECT_EQ(span_of(lines), (LedgerSpan{10, 900}));
}

TEST(LedgerBatches, EachUserHasTheSpanOfTheirOwnLines) {
  std::vector<model::LedgerLine> lines = held_lines({.user = "ann", .from = 10, .length = 5});
  lines.push_back(correction(40, "ann"));
  lines.push_back(correction(20, "bob"));
  lines.push_back(correction(20, ""));
  lines.push_back(rest(1, 100));
  const std::map<std::string_view, LedgerSpan> expected = {{"ann", {10, 40}}, {"bob", {20, 20}}};
  EXPECT_EQ(users_of(lines), expected);
}

}  // namespace
}  // namespace gpu_platform::store
