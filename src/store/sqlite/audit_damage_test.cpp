#include <algorithm>

#include <gtest/gtest.h>

#include "store/sqlite/repair.h"
#include "store/sqlite/sqlite_test_support.h"

// What of the audit trail is noticed to be damaged, and what a recovery saves of it.

namespace gpu_platform::store {
namespace {

class AuditDamage : public testing::Test {
 protected:
  AuditDamage() {
    const auto store = open_store(dir());
    base::Prng prng(3);
    std::uint64_t last_job = 0;
    for (std::uint64_t first = 1; first < 200; first += 5) {
      const auto events = audited_events(first, 5, last_job, prng);
      EXPECT_TRUE(store->append({.events = events}));
    }
    before_ = trail(*store);
    EXPECT_GT(before_.size(), 50u);
  }

  const std::filesystem::path& dir() const { return directory_.path(); }
  static std::vector<model::AuditEntry> trail(const SqliteStore& store) {
    model::AuditQuery query;
    query.limit = query.max_looked_at = 100'000;
    const auto page = store.audit(query);
    EXPECT_TRUE(page) << page.error().message;
    return page ? page->entries : std::vector<model::AuditEntry>();
  }
  void change(const std::string& sql) const { run_sql(dir(), sql); }
  // One damage at least that speaks of the table.
  void expect_noticed() {
    const auto report = check_store(dir());
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(std::ranges::any_of(report->damages, [](const std::string& damage) {
      return damage.starts_with("table audit");
    }));
  }

  TemporaryDirectory directory_;
  std::vector<model::AuditEntry> before_;
};

TEST_F(AuditDamage, ASoundTrailIsSound) {
  const auto report = check_store(dir());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->is_sound()) << report->damages.front();
  EXPECT_EQ(report->audit_entries, before_.size());
}

TEST_F(AuditDamage, EntriesThatWereTakenAwayAreNoticedAndMadeAnew) {
  change("DELETE FROM audit WHERE first_seq BETWEEN 51 AND 80");
  expect_noticed();
  const auto recovered = recover_store(dir());
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->lost, std::vector<std::string>());
  EXPECT_EQ(trail(*open_store(dir())), before_);
  EXPECT_TRUE(check_store(dir())->is_sound());
}

TEST_F(AuditDamage, EntriesThatWereChangedAreNoticedAndMadeAnew) {
  change(
      "UPDATE audit SET payload = (SELECT payload FROM audit WHERE first_seq = 1) "
      "WHERE first_seq = 101");
  expect_noticed();
  ASSERT_TRUE(recover_store(dir()));
  EXPECT_EQ(trail(*open_store(dir())), before_);
}

TEST_F(AuditDamage, WhatAnEarlierBoundDroppedStaysDropped) {
  {
    const auto store = open_store(dir());
    base::Prng prng(4);
    std::uint64_t last_job = 1'000;
    for (int i = 0; i < 60; ++i) {
      const auto events = audited_events(store->last_seq().value + 1, 5, last_job, prng);
      ASSERT_TRUE(store->append({.events = events, .audit_keep = {.max_entries = 40}}));
    }
    before_ = trail(*store);
  }
  EXPECT_TRUE(check_store(dir())->is_sound());
  change("UPDATE audit SET checksum = 1 WHERE first_seq = (SELECT max(first_seq) FROM audit)");
  expect_noticed();
  ASSERT_TRUE(recover_store(dir()));
  EXPECT_EQ(trail(*open_store(dir())), before_);
}

}  // namespace
}  // namespace gpu_platform::store
