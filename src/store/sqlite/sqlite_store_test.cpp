#include "store/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/ledger_contract.h"
#include "store/sqlite/repair.h"
#include "store/sqlite/sqlite_test_support.h"
#include "store/store_contract.h"

namespace gpu_platform::store {
namespace {

struct SqliteSubject {
  SqliteSubject() : store(open_store(directory.path())) {}

  Journal& journal() { return *store; }
  Archive& archive() { return *store; }
  Ledger& ledger() { return *store; }
  void restart() {
    store.reset();
    store = open_store(directory.path());
  }
  void forget_ledger() { damage(std::string(kToVersion3)); }
  void damage_event(model::EventSeq seq) {
    damage(
        fmt::format("UPDATE journal SET payload = CAST(substr(payload, 1, length(payload) - 1) "
                    "|| x'5a' AS BLOB) WHERE first_seq <= {0} AND first_seq + count > {0}",
                    seq.value));
  }
  void damage_snapshot(model::EventSeq upto) {
    damage(
        fmt::format("UPDATE snapshots SET state = CAST('x' || substr(state, 2) AS BLOB) "
                    "WHERE upto = {}",
                    upto.value));
  }
  void damage(const std::string& sql) {
    store.reset();
    run_sql(directory.path(), sql);
    store = open_store(directory.path());
  }

  TemporaryDirectory directory;
  std::unique_ptr<SqliteStore> store;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, StoreContract, SqliteSubject);
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, LedgerContract, SqliteSubject);

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status{};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST(SqliteStore, AStoreWhoseJobsWereDroppedIsSound) {
  const TemporaryDirectory directory;
  {
    const auto store = open_store(directory.path());
    base::Prng prng(3);
    std::vector<model::Job> jobs;
    for (std::uint64_t id = 1; id <= 9; ++id) jobs.push_back(random_job(id, prng));
    ASSERT_TRUE(append_events(*store, 1, 1, jobs));
    ASSERT_TRUE(store->drop_jobs(std::vector{model::JobId(2), model::JobId(9)}));
    ASSERT_TRUE(append_events(*store, 2, 2));
  }
  const auto report = check_store(directory.path());
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->is_sound()) << fmt::format("{}", fmt::join(report->damages, "; "));
  EXPECT_EQ(report->jobs, 7u);
}

TEST(SqliteStore, ADamagedJobIsDroppedLikeAnyOther) {
  SqliteSubject subject;
  base::Prng prng(4);
  const std::vector<model::Job> jobs = {random_job(1, prng), random_job(2, prng)};
  ASSERT_TRUE(append_events(subject.journal(), 1, 1, jobs));
  subject.damage("UPDATE jobs SET checksum = checksum + 1 WHERE id = 1");
  ASSERT_TRUE(subject.journal().drop_jobs(std::vector{model::JobId(1)}));
  EXPECT_EQ(subject.archive().job_count(), 1u);
  ASSERT_TRUE(append_events(subject.journal(), 2, 2)) << "and the journal goes on";
}

TEST(SqliteStore, FilesAreForTheirOwnerAlone) {
  const TemporaryDirectory directory;
  const auto dir = directory.path() / "made" / "here";
  const mode_t before = ::umask(0);
  const auto store = open_store(dir / "");
  ASSERT_TRUE(append_events(*store, 1, 1));
  ::umask(before);

  EXPECT_EQ(mode_of(dir), mode_t{0700});
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    EXPECT_EQ(mode_of(entry.path()), mode_t{0600}) << entry.path();
  }
}

TEST(SqliteStore, ADirectoryThatOthersMayPassLetsThemSeeNothing) {
  const TemporaryDirectory directory;
  SqliteOptions options = options_for(directory.path() / "made");
  options.others_may_pass = true;
  const mode_t before = ::umask(0);
  const auto store = SqliteStore::open(options);
  ::umask(before);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(mode_of(options.dir), mode_t{0711});
  for (const auto& entry : std::filesystem::directory_iterator(options.dir)) {
    EXPECT_EQ(mode_of(entry.path()), mode_t{0600}) << entry.path();
  }
}

TEST(SqliteStore, RefusesADirectoryThatEverybodyMayWriteTo) {
  const TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  const base::Error error = open_error(directory.path());
  EXPECT_EQ(error.code, base::ErrorCode::kPermissionDenied);
  EXPECT_TRUE(mentions(error, "777")) << error.message;
}

TEST(SqliteStore, ASecondUserOfTheDirectoryIsRefusedByName) {
  const TemporaryDirectory directory;
  auto store = open_store(directory.path());
  const base::Error error = open_error(directory.path());
  EXPECT_EQ(error.code, base::ErrorCode::kAlreadyExists);
  EXPECT_TRUE(mentions(error, fmt::format("in use by process {}", ::getpid()))) << error.message;
  EXPECT_TRUE(append_events(*store, 1, 1)) << "the first is not disturbed";

  store.reset();
  EXPECT_NE(open_store(directory.path()), nullptr);
}

TEST(SqliteStore, DroppedEnvironmentsLeaveNoTraceInTheFiles) {
  const TemporaryDirectory directory;
  auto store = open_store(directory.path());
  std::string many_pages;
  while (many_pages.size() < 50'000) many_pages += "TOKEN=xyzzy-plugh";
  ASSERT_TRUE(append_events(*store, 1, 1, {}, {{"a", "TOKEN=xyzzy-plugh"}, {"b", many_pages}}));
  ASSERT_TRUE(append_events(*store, 2, 2, {}, {}, {"a", "b"}));
  store.reset();
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    EXPECT_EQ(read_file(entry.path()).find("xyzzy-plugh"), std::string::npos) << entry.path();
  }
}

TEST(SqliteStore, ReadersSeeWholeBatchesWhileTheWriterGoesOn) {
  constexpr std::uint64_t kBatches = 200;
  const TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  std::atomic<bool> is_done = false;
  std::atomic<std::uint64_t> half_seen = 0;
  const auto read = [&] {
    while (!is_done) {
      const auto jobs = store->list({.user = "ann", .limit = 1000});
      // Every batch brings two jobs.
      if (!jobs || jobs->size() % 2 != 0) ++half_seen;
    }
  };
  std::array<std::thread, 6> readers;  // more than connections
  for (auto& reader : readers) reader = std::thread(read);
  for (std::uint64_t batch = 1; batch <= kBatches; ++batch) {
    EXPECT_TRUE(
        append_events(*store, batch, batch, {JobBuilder(2 * batch), JobBuilder(2 * batch + 1)}));
  }
  is_done = true;
  for (auto& reader : readers) reader.join();

  EXPECT_EQ(half_seen, 0u);
  EXPECT_EQ(store->list({.limit = 1000})->size(), 2 * kBatches);
}

TEST(SqliteStore, TheHeadRowCountsJobsThatEndedTwiceOnce) {
  const TemporaryDirectory directory;
  std::vector<model::Job> jobs;
  for (std::uint64_t id = 1; id <= 80; ++id) jobs.push_back(JobBuilder(id));
  auto store = open_store(directory.path());
  ASSERT_TRUE(append_events(*store, 1, 1, {jobs[5], jobs[70]}));
  ASSERT_TRUE(append_events(*store, 2, 2, jobs));
  store.reset();
  const auto report = check_store(directory.path());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->is_sound()) << report->damages.front();
  EXPECT_EQ(report->jobs, jobs.size());
}

TEST(SqliteStore, TheLogIsCopiedAndReusedRatherThanGrown) {
  const TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  const std::vector<Environment> bulk{{"e", std::string(1 << 20, 'x')}};
  for (std::uint64_t seq = 1; seq <= 60; ++seq) {
    ASSERT_TRUE(append_events(*store, seq, seq, {}, bulk));
  }
  EXPECT_LT(std::filesystem::file_size(directory.path() / "store.db-wal"), 16u << 20);
}

// ---- Versions ----

constexpr std::string_view kNextVersion =
    "ALTER TABLE jobs ADD COLUMN project TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX jobs_by_project ON jobs(project, id);";

std::vector<Migration> with_next(std::string_view sql) {
  std::vector<Migration> steps(migrations().begin(), migrations().end());
  steps.push_back({steps.back().version + 1, sql});
  return steps;
}

TEST(SqliteStore, UpgradesAnOlderDatabaseInPlace) {
  const TemporaryDirectory directory;
  const model::Job job = JobBuilder(3);
  ASSERT_TRUE(append_events(*open_store(directory.path()), 1, 5, {job}));

  const auto steps = with_next(kNextVersion);
  auto options = options_for(directory.path());
  options.migrations = steps;
  {
    auto store = SqliteStore::open(options);
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ(replayed(**store), bytes_of_events(1, 5));
    EXPECT_EQ((*store)->find(model::JobId(3)).value(), job);
    EXPECT_TRUE(append_events(**store, 6, 6, {JobBuilder(4)}));
  }
  auto database =
      Database::open((directory.path() / "store.db").string(), Database::Mode::kReadWrite);
  EXPECT_EQ(database->query_integer("PRAGMA user_version").value(),
            migrations().back().version + 1);
  EXPECT_EQ(database->query_text("SELECT group_concat(id || project) FROM jobs").value(), "3,4");
}

TEST(SqliteStore, AnUpgradeThatFailsChangesNothing) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(append_events(*open_store(directory.path()), 1, 5));
  const auto steps = with_next("CREATE TABLE extra(a); INSERT INTO no_such_table VALUES (1);");
  auto options = options_for(directory.path());
  options.migrations = steps;
  EXPECT_TRUE(mentions(open_error(options), "no_such_table"));

  EXPECT_EQ(replayed(*open_store(directory.path())), bytes_of_events(1, 5));
}

TEST(SqliteStore, RefusesADatabaseOfANewerProgram) {
  const TemporaryDirectory directory;
  const auto steps = with_next(kNextVersion);
  auto options = options_for(directory.path());
  options.migrations = steps;
  ASSERT_TRUE(SqliteStore::open(options));

  const base::Error error = open_error(directory.path());
  EXPECT_EQ(error.code, base::ErrorCode::kFailedPrecondition);
  EXPECT_TRUE(mentions(error, "schema version 5, written by a newer program")) << error.message;
}

TEST(SqliteStore, RefusesADatabaseFromBeforeTheFirstRelease) {
  const TemporaryDirectory directory;
  std::string tables;
  for (const Migration& step : migrations()) tables += step.sql;
  const std::vector<Migration> steps = {{2, tables}};
  auto options = options_for(directory.path());
  options.migrations = steps;
  ASSERT_TRUE(SqliteStore::open(options));

  const base::Error error = open_error(directory.path());
  EXPECT_EQ(error.code, base::ErrorCode::kFailedPrecondition);
  EXPECT_TRUE(mentions(error, "schema version 2, written by a program that was never released"))
      << error.message;
  EXPECT_TRUE(mentions(error, "Begin with an empty data directory")) << error.message;
}

}  // namespace
}  // namespace gpu_platform::store
