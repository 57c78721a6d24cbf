#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/ledger_fixture.h"
#include "store/sqlite/repair.h"
#include "store/sqlite/sqlite_test_support.h"

// What of the ledger is noticed to be damaged, and how it becomes whole again.

namespace gpu_platform::store {
namespace {

constexpr std::uint64_t kEvents = 100;

// The lines that the event at that place makes, as the core would say.
std::vector<model::LedgerLine> lines_of_event(std::uint64_t seq) {
  if (seq % 3 != 0) return {};
  return held_lines({.attempt = seq,
                     .gpus = static_cast<std::uint32_t>(1 + seq % 4),
                     .user = fmt::format("user{}", seq % 5),
                     .from = kLedgerEpoch + static_cast<model::Millis>(seq) * 1'000});
}

std::vector<model::LedgerLine> lines_of_events(std::uint64_t first, std::uint64_t last) {
  std::vector<model::LedgerLine> lines;
  for (std::uint64_t seq = first; seq <= last; ++seq) {
    std::ranges::copy(lines_of_event(seq), std::back_inserter(lines));
  }
  return lines;
}

base::Status made_by_events(const StateSource& source, const VisitMadeLines& visit) {
  return source.replay([&](const model::EventRecord& record) {
    return visit(record.seq, lines_of_event(record.seq.value));
  });
}

const EventMeaning kMeaning{{}, made_by_events};

base::Status append_with_lines(SqliteStore& store, std::uint64_t first, std::uint64_t last) {
  const auto events = events_of(first, last);
  const auto lines = lines_of_events(first, last);
  return store.append({.events = events, .ledger = lines});
}

// What the daemon does at its start.
void fill_gap(SqliteStore& store) {
  const LedgerGap gap = store.ledger_gap();
  ASSERT_TRUE(gap.is_open());
  std::vector<LedgerBatch> batches;
  for (std::uint64_t seq = gap.after.value + 1; seq <= gap.last.value; ++seq) {
    auto lines = lines_of_event(seq);
    if (!lines.empty()) batches.push_back({model::EventSeq(seq), std::move(lines)});
  }
  ASSERT_TRUE(store.put_ledger(batches, gap.last));
}

class LedgerDamage : public testing::Test {
 protected:
  LedgerDamage() {
    const auto store = open_store(dir());
    for (std::uint64_t first = 1; first <= kEvents; first += 5) {
      EXPECT_TRUE(append_with_lines(*store, first, first + 4));
    }
  }

  const std::filesystem::path& dir() const { return directory_.path(); }
  void change(const std::string& sql) const { run_sql(dir(), sql); }
  std::vector<std::string> damages() const {
    const auto report = check_store(dir(), kMeaning);
    EXPECT_TRUE(report) << report.error().message;
    return report ? report->damages : std::vector<std::string>();
  }
  void expect_noticed() const {
    const auto found = damages();
    EXPECT_TRUE(std::ranges::any_of(found, [](const std::string& damage) {
      return damage.starts_with("table ledger");
    })) << fmt::format("{}", fmt::join(found, "; "));
  }
  // The recovery loses nothing, and the next start makes the ledger what it was.
  void expect_made_again() const {
    const auto recovered = recover_store(dir(), {.meaning = kMeaning});
    ASSERT_TRUE(recovered) << recovered.error().message;
    EXPECT_EQ(recovered->lost, std::vector<std::string>());
    EXPECT_TRUE(recovered->is_ledger_due);
    EXPECT_EQ(damages(), std::vector<std::string>()) << "what is due is no damage";
    fill_gap(*open_store(dir()));
    EXPECT_EQ(damages(), std::vector<std::string>());
    EXPECT_EQ(all_lines(*open_store(dir())), lines_of_events(1, kEvents));
  }

  TemporaryDirectory directory_;
};

TEST_F(LedgerDamage, ASoundLedgerIsSound) {
  const auto report = check_store(dir(), kMeaning);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->is_sound()) << report->damages.front();
  EXPECT_EQ(report->ledger_lines, lines_of_events(1, kEvents).size());
}

TEST_F(LedgerDamage, LinesThatWereTakenAwayAreNoticedAndMadeAgain) {
  change(
      "DELETE FROM ledger_users WHERE batch BETWEEN 51 AND 60;"
      "DELETE FROM ledger WHERE first_seq BETWEEN 51 AND 60");
  expect_noticed();
  expect_made_again();
}

TEST_F(LedgerDamage, TheLossOfTheLastLinesIsNoticed) {
  change(
      "DELETE FROM ledger_users WHERE batch = 96;"
      "DELETE FROM ledger WHERE first_seq = 96");
  expect_noticed();
}

TEST_F(LedgerDamage, TheLossOfAllLinesIsNoticed) {
  change("DELETE FROM ledger_users; DELETE FROM ledger");
  expect_noticed();
  expect_made_again();
}

TEST_F(LedgerDamage, LinesThatWereChangedAreNoticedAndMadeAgain) {
  change(
      "UPDATE ledger SET payload = (SELECT payload FROM ledger WHERE first_seq = 1) "
      "WHERE first_seq = 51");
  expect_noticed();
  expect_made_again();
}

TEST_F(LedgerDamage, ASpanThatWasChangedIsNoticed) {
  change("UPDATE ledger SET to_ms = to_ms - 1000 WHERE first_seq = 51");
  expect_noticed();
}

TEST_F(LedgerDamage, ANameThatWasChangedIsNoticedAndMadeAgain) {
  change("UPDATE ledger_names SET text = 'mallory' WHERE text = 'user1'");
  expect_noticed();
  EXPECT_FALSE(SqliteStore::open(options_for(dir())));
  expect_made_again();
}

TEST_F(LedgerDamage, KeysThatWereTakenAwayAreNoticed) {
  change("DELETE FROM ledger_users WHERE batch = 51");
  expect_noticed();
  expect_made_again();
}

TEST_F(LedgerDamage, LinesThatNoEventMakesAreNoticed) {
  {
    const auto store = open_store(dir());
    auto lines = lines_of_events(kEvents + 1, kEvents + 2);
    lines.push_back(held_lines({.attempt = 4'711}).front());
    ASSERT_TRUE(store->append({.events = events_of(kEvents + 1, kEvents + 2), .ledger = lines}));
  }
  EXPECT_EQ(damages().size(), 1u);
  expect_noticed();
}

TEST_F(LedgerDamage, WhatWentInTimeIsNotMissed) {
  {
    const auto store = open_store(dir());
    const auto lines = lines_of_events(kEvents + 1, kEvents + 8);
    const base::Instant over((kLedgerEpoch + 10'000'000) * 1'000'000);
    ASSERT_TRUE(store->append({.events = events_of(kEvents + 1, kEvents + 8),
                               .ledger = lines,
                               .ledger_not_before = over}));
    EXPECT_LT(all_lines(*store).size(), lines_of_events(1, kEvents + 8).size());
  }
  EXPECT_EQ(damages(), std::vector<std::string>());
}

TEST_F(LedgerDamage, AStoreOfTheVersionBeforeIsSoundAndGetsItsLedgerLater) {
  change(std::string(kToVersion3));
  EXPECT_EQ(damages(), std::vector<std::string>());
  {
    const auto store = open_store(dir());
    EXPECT_EQ(store->ledger_gap(), (LedgerGap{{}, model::EventSeq(kEvents)}));
    ASSERT_TRUE(append_with_lines(*store, kEvents + 1, kEvents + 6));
  }
  EXPECT_EQ(damages(), std::vector<std::string>());
  fill_gap(*open_store(dir()));
  EXPECT_EQ(damages(), std::vector<std::string>());
  EXPECT_EQ(all_lines(*open_store(dir())), lines_of_events(1, kEvents + 6));
}

TEST_F(LedgerDamage, ACopyThatSqliteMakesHasTheLedger) {
  const TemporaryDirectory other;
  change(fmt::format("VACUUM INTO '{}'", (other.path() / "store.db").string()));
  EXPECT_EQ(all_lines(*open_store(other.path())), lines_of_events(1, kEvents));
}

// Wherever the log ends, the ledger has the lines of the events that are there, and no others.
TEST_F(LedgerDamage, ALogThatACrashCutOffHasLinesWithTheirEvents) {
  const TemporaryDirectory running;
  const auto store = open_store(running.path());
  for (std::uint64_t seq = 1; seq <= 12; ++seq) ASSERT_TRUE(append_with_lines(*store, seq, seq));
  const std::string database = read_file(running.path() / "store.db");
  const std::string log = read_file(running.path() / "store.db-wal");
  std::set<std::uint64_t> ends;
  for (std::size_t size = 0; size <= log.size(); size += 4'021) {
    const TemporaryDirectory crashed;
    write_file(crashed.path() / "store.db", database);
    write_file(crashed.path() / "store.db-wal", log.substr(0, size));
    const auto found = open_store(crashed.path());
    ASSERT_NE(found, nullptr) << size;
    ends.insert(found->last_seq().value);
    ASSERT_EQ(all_lines(*found), lines_of_events(1, found->last_seq().value)) << size;
  }
  EXPECT_GT(ends.size(), 6u) << "the log was cut off at few places";
}

}  // namespace
}  // namespace gpu_platform::store
