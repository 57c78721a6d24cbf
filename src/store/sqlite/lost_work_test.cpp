#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "base/testing/rounds.h"
#include "model/job_spec.h"
#include "store/sqlite/damage_fixture.h"
#include "store/sqlite/durable_mark.h"
#include "store/sqlite/repair.h"

// What was acknowledged is there, or its loss is noticed and named: a database or a log that is
// older than the mark of what was durable, copies that were put back, and every kind of damage to
// every file.

namespace gpu_platform::store {
namespace {

class LostWork : public Damage {
 protected:
  base::Result<std::unique_ptr<SqliteStore>> open_accepting(std::uint64_t seen_job = 0) const {
    SqliteOptions options = options_for(dir());
    options.accept_loss = true;
    options.seen_job = model::JobId(seen_job);
    return SqliteStore::open(options);
  }
  void expect_outdated(std::string_view mention) const {
    const base::Error error = open_error(dir());
    EXPECT_EQ(error.code, base::ErrorCode::kFailedPrecondition) << error.message;
    EXPECT_TRUE(mentions(error, mention)) << error.message;
    EXPECT_TRUE(mentions(error, "--accept-loss")) << error.message;
  }
  static std::size_t count_jobs(const SqliteStore& store) {
    const auto jobs = store.list({.limit = 1'000'000});
    EXPECT_TRUE(jobs) << jobs.error().message;
    return jobs ? jobs->size() : 0;
  }
  void put(const std::string& name, const std::string& bytes) const {
    remove("store.db-shm");
    write_file(path(name), bytes);
  }
};

TEST_F(LostWork, AnOlderDatabaseIsRefusedWithWhatIsMissingAndAcceptedByHand) {
  fill(30);
  const std::string backup = read_file(path("store.db"));
  fill_on(31, 60);
  write_file(path("store.db"), backup);
  expect_outdated("it ends with event 30");
  expect_outdated("event 60 was durable");
  expect_outdated("jobs 31 to 60");
  EXPECT_EQ(read_file(path("store.db")), backup) << "nothing was changed";
  const auto found = check_store(dir());
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->is_sound());

  {
    const auto accepted = open_accepting(75);
    ASSERT_TRUE(accepted) << accepted.error().message;
    EXPECT_NE((*accepted)->note().find("loss accepted"), std::string::npos);
    const auto events = all_events(**accepted);
    ASSERT_EQ(events.size(), 31u);
    EXPECT_EQ(std::get<model::StoreRepaired>(events.back().event).last_job_id, 75u);
    EXPECT_EQ(events.back().at, event_at(60).at);
  }
  const auto store = open_store(dir());
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->note().empty()) << store->note();
  EXPECT_TRUE(append_events(*store, 32, 40));
  EXPECT_TRUE(check_store(dir() / "nowhere").error().code == base::ErrorCode::kNotFound);
}

TEST_F(LostWork, RecoveryOfAnOlderDatabaseNamesWhatIsMissing) {
  fill(30);
  const std::string backup = read_file(path("store.db"));
  fill_on(31, 60);
  write_file(path("store.db"), backup);
  const auto recovery = recover_store(dir());
  ASSERT_TRUE(recovery) << recovery.error().message;
  EXPECT_EQ(recovery->lost,
            (std::vector<std::string>{
                "events 31 to 60, stored between 2023-11-14T22:13:20Z and "
                "2023-11-14T22:13:20Z",
                "jobs 31 to 60, submitted between 2023-11-14T22:13:20Z and "
                "2023-11-14T22:13:20Z: they are not known to have ended, and must be submitted "
                "again"}));
  EXPECT_EQ(recovery->next_job, model::JobId(61));
  EXPECT_NE(open_store(dir()), nullptr);
  EXPECT_TRUE(check_store(dir())->is_sound());
}

TEST_F(LostWork, ALogCutOffInTheMiddleIsRefused) {
  run_and_kill_before(61);
  const std::string wal = read_file(path("store.db-wal"));
  write_file(path("store.db-wal"), wal.substr(0, wal.size() / 2));
  remove("store.db-shm");
  expect_outdated("are missing");
  EXPECT_TRUE(open_accepting());
  EXPECT_NE(open_store(dir()), nullptr);
}

// SQLite would put the pages of the newer log over those of the older database.
TEST_F(LostWork, AnOlderDatabaseBesideANewerLogIsDamage) {
  fill(30);
  const std::string backup = read_file(path("store.db"));
  run_and_kill_before(601);
  const std::string log = read_file(path("store.db-wal"));
  ASSERT_GT(read_mark(path("store.marker"))->copied_seq, 30u) << "the log was copied";
  put("store.db", backup);
  write_file(path("store.db-wal"), log);
  expect_data_loss("is older than store.db-wal");
  remove("store.db-wal");
  write_file(path("lock"), "");
  expect_outdated("it ends with event 30");
}

TEST_F(LostWork, ADatabaseThatWentOnFromACopyIsRefused) {
  fill(30);
  std::filesystem::copy(dir(), dir().string() + "-copy");
  fill_on(31, 36);
  {
    auto other = SqliteStore::open(options_for(dir().string() + "-copy"));
    ASSERT_TRUE(other);
    for (std::uint64_t seq = 31; seq <= 60; ++seq) ASSERT_TRUE(append_events(**other, seq, seq));
  }
  write_file(path("store.db"), read_file(dir().string() + "-copy/store.db"));
  std::filesystem::remove_all(dir().string() + "-copy");
  expect_outdated("are not those that were durable");
  EXPECT_TRUE(open_accepting());
  EXPECT_NE(open_store(dir()), nullptr);
}

TEST_F(LostWork, AStoreWithoutAMarkIsReadAndGetsOne) {
  fill(30);
  write_file(path("store.marker"),
             "A gpu-platform store was made here; its database is store.db.\n");
  EXPECT_FALSE(check_store(dir())->has_mark);
  {
    const auto store = open_store(dir());
    ASSERT_NE(store, nullptr);
    EXPECT_NE(store->note().find("made anew"), std::string::npos);
  }
  EXPECT_TRUE(check_store(dir())->has_mark);
  const auto mark = read_mark(path("store.marker"));
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->last_seq, 30u);
  EXPECT_EQ(mark->last_job, 30u);
}

TEST_F(LostWork, AMarkThatLagsOrIsDamagedRefusesNothing) {
  fill(30);
  const std::string older = read_file(path("store.marker"));
  fill_on(31, 60);
  const std::string marker = read_file(path("store.marker"));
  ASSERT_EQ(marker.size(), 3 * 4096u);
  for (std::size_t at = 4096; at < 4096 + 80; at += 3) {
    for (const std::size_t place : {at, at + 4096}) {
      std::string bytes = marker;
      bytes[place] ^= 0x40;
      write_file(path("store.marker"), bytes);
      EXPECT_NE(open_store(dir()), nullptr) << place;
    }
  }
  for (const std::string& bytes :
       {older, std::string(), marker.substr(0, 5000), marker + "more", std::string(12288, '\0')}) {
    write_file(path("store.marker"), bytes);
    EXPECT_NE(open_store(dir()), nullptr) << bytes.size();
  }
  remove("store.marker");
  EXPECT_NE(open_store(dir()), nullptr);
}

// ---- Copies

// As sqlite3's .dump and .clone: the tables and their rows, without what the header says.
void clone(const std::filesystem::path& from, const std::filesystem::path& to, int page_bytes) {
  write_file(to, "");
  const auto database = Database::open(to.string(), Database::Mode::kReadWrite);
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute(fmt::format("PRAGMA page_size = {}", page_bytes)));
  ASSERT_TRUE(database->execute(fmt::format("ATTACH '{}' AS o", from.string())));
  std::vector<std::string> tables;
  auto schema = database->prepare("SELECT name, sql, type FROM o.sqlite_schema WHERE sql NOT NULL");
  ASSERT_TRUE(schema);
  std::vector<std::string> statements;
  while (*schema->step()) {
    statements.emplace_back(schema->text(1));
    if (schema->text(2) == "table") tables.emplace_back(schema->text(0));
  }
  schema->reset();
  for (const std::string& sql : statements) ASSERT_TRUE(database->execute(sql)) << sql;
  for (const std::string& table : tables) {
    ASSERT_TRUE(database->execute(fmt::format("INSERT INTO {0} SELECT * FROM o.{0}", table)));
  }
}

TEST_F(LostWork, EveryWayInWhichSqliteCopiesGivesAStore) {
  fill(30);
  const std::filesystem::path copy = dir() / "copy.db";
  const auto back_up = [&](int) {
    const auto from = Database::open(path("store.db").string(), Database::Mode::kReadOnly);
    write_file(copy, "");
    const auto to = Database::open(copy.string(), Database::Mode::kReadWrite);
    sqlite3_backup* backup = sqlite3_backup_init(to->handle(), "main", from->handle(), "main");
    ASSERT_NE(backup, nullptr);
    EXPECT_EQ(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    EXPECT_EQ(sqlite3_backup_finish(backup), SQLITE_OK);
  };
  const auto vacuum = [&](int) { run_sql(dir(), "VACUUM INTO '" + copy.string() + "'"); };
  const auto dump = [&](int page_bytes) { clone(path("store.db"), copy, page_bytes); };
  const std::string original = read_file(path("store.db"));
  const std::vector<std::pair<std::function<void(int)>, int>> ways = {
      {back_up, 0}, {vacuum, 0}, {dump, 4096}, {dump, 1024}, {dump, 65536}};
  for (const auto& [way, page_bytes] : ways) {
    SCOPED_TRACE(page_bytes);
    std::filesystem::remove(copy);
    way(page_bytes);
    write_file(path("store.db"), read_file(copy));
    remove("store.db-wal");
    remove("store.db-shm");
    const auto report = check_store(dir());
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_TRUE(report->is_sound()) << report->damages.front();
    {
      const auto store = open_store(dir());
      ASSERT_NE(store, nullptr);
      EXPECT_EQ(replayed(*store), bytes_of_events(1, 30));
      EXPECT_EQ(count_jobs(*store), 10u);
      EXPECT_TRUE(append_events(*store, 31, 33));
    }
    EXPECT_NE(open_store(dir()), nullptr);
    remove("store.marker");
    write_file(path("store.db"), original);
    EXPECT_NE(open_store(dir()), nullptr);
  }
}

// ---- Damage in the log

TEST_F(LostWork, AFlippedByteInTheLogCostsTheRecordThatItIsInAtMost) {
  const std::uint64_t last = run_and_kill_before(81);
  const std::string wal = read_file(path("store.db-wal"));
  const std::string database = read_file(path("store.db"));
  const std::string marker = read_file(path("store.marker"));
  constexpr std::uint64_t kSeed = 21;
  base::Prng prng(kSeed);
  for (std::uint64_t round = 0; round < base::rounds(40); ++round) {
    SCOPED_TRACE(fmt::format("seed {}, round {}", kSeed, round));
    std::string bytes = wal;
    bytes[32 + prng.below(bytes.size() / 2)] ^= static_cast<char>(1 + prng.below(255));
    put("store.db-wal", bytes);
    write_file(path("store.db"), database);
    write_file(path("store.marker"), marker);
    std::filesystem::remove_all(path("store.db.damaged-1"));
    std::filesystem::remove_all(path("store.db.damaged-1-wal"));
    if (SqliteStore::open(options_for(dir()))) continue;  // a byte that nothing reads
    const auto recovery = recover_store(dir());
    ASSERT_TRUE(recovery) << recovery.error().message;
    const auto store = open_store(dir());
    ASSERT_NE(store, nullptr);
    const std::size_t jobs = count_jobs(*store);
    EXPECT_GE(jobs + 1, last);
    if (recovery->lost.empty()) {
      EXPECT_EQ(replayed(*store), bytes_of_events(1, store->last_seq().value));
      EXPECT_GE(store->last_seq().value, last);
      EXPECT_GE(jobs, last);
    } else if (recovery->next_job.valid()) {
      EXPECT_GT(recovery->next_job.value, last / 3 * 3);
    } else {
      EXPECT_GE(store->last_seq().value, last) << "no event is lost";
    }
  }
}

// ---- Jobs behind a gap

// Events 1 to 30 as fill() has them, but no job ends.
TEST_F(LostWork, SubmissionsBehindALostRecordAreKept) {
  {
    const auto store = open_store(dir());
    for (std::uint64_t first = 1; first <= 30; first += 3) {
      ASSERT_TRUE(append_events(*store, first, first + 2));
    }
    std::vector<model::EventRecord> waiting{event_at(33)};
    waiting.front().seq = model::EventSeq(31);
    ASSERT_TRUE(store->append({waiting, {}, {}, {}}));
  }
  run_sql(dir(), "UPDATE journal SET payload = x'00' WHERE first_seq = 19");
  const auto recovery = recover_store(dir());
  ASSERT_TRUE(recovery) << recovery.error().message;
  std::map<std::uint64_t, model::Hold> restored;
  for (const model::EventRecord& record : all_events(*open_store(dir()))) {
    const auto* submitted = std::get_if<model::JobSubmitted>(&record.event);
    if (submitted == nullptr || record.seq.value <= 18) continue;
    restored[submitted->job.value] = submitted->hold;
    EXPECT_EQ(submitted->spec->name, "job-" + std::to_string(submitted->job.value));
  }
  EXPECT_EQ(restored, (std::map<std::uint64_t, model::Hold>{{24, model::Hold::kNone},
                                                            {27, model::Hold::kNone},
                                                            {30, model::Hold::kNone},
                                                            {33, model::Hold::kNone}}));
  EXPECT_EQ(recovery->next_job, model::JobId(34));
  EXPECT_TRUE(check_store(dir())->is_sound());
}

TEST_F(LostWork, AJobOfWhichEventsMayBeLostIsKeptHeld) {
  {
    const auto store = open_store(dir());
    for (std::uint64_t first = 1; first <= 30; first += 3) {
      ASSERT_TRUE(append_events(*store, first, first + 2));
    }
  }
  run_sql(dir(), "UPDATE journal SET payload = x'00' WHERE first_seq IN (19, 25)");
  const auto recovery = recover_store(dir());
  ASSERT_TRUE(recovery) << recovery.error().message;
  std::map<std::uint64_t, model::Hold> restored;
  for (const model::EventRecord& record : all_events(*open_store(dir()))) {
    const auto* submitted = std::get_if<model::JobSubmitted>(&record.event);
    if (submitted != nullptr && record.seq.value > 18) {
      restored[submitted->job.value] = submitted->hold;
    }
  }
  EXPECT_EQ(restored, (std::map<std::uint64_t, model::Hold>{{24, model::Hold::kByPlatform},
                                                            {30, model::Hold::kNone}}));
  EXPECT_EQ(recovery->lost.back(), "what happened to job 24: it is held, and may have run");
}

// ---- Every kind of damage to every file

struct Harm {
  std::string name;
  std::function<std::optional<std::string>(const std::string& bytes, const std::string& older)>
      doing;
};

std::string flipped(std::string bytes, std::size_t at) {
  if (!bytes.empty()) bytes[at % bytes.size()] ^= 0x20;
  return bytes;
}

const std::vector<Harm>& harms() {
  using Bytes = std::optional<std::string>;
  static const std::vector<Harm> all = {
      {"flipped in its first bytes", [](auto& b, auto&) -> Bytes { return flipped(b, 20); }},
      {"flipped in its first page", [](auto& b, auto&) -> Bytes { return flipped(b, 4000); }},
      {"flipped in a quarter", [](auto& b, auto&) -> Bytes { return flipped(b, b.size() / 4); }},
      {"flipped in the middle", [](auto& b, auto&) -> Bytes { return flipped(b, b.size() / 2); }},
      {"flipped near its end", [](auto& b, auto&) -> Bytes { return flipped(b, b.size() - 900); }},
      {"cut to nothing", [](auto&, auto&) -> Bytes { return std::string(); }},
      {"cut at a page",
       [](auto& b, auto&) -> Bytes { return b.substr(0, b.size() / 8192 * 4096); }},
      {"cut anywhere", [](auto& b, auto&) -> Bytes { return b.substr(0, b.size() * 2 / 3); }},
      {"cut by a byte", [](auto& b, auto&) -> Bytes { return b.substr(0, b.size() - 1); }},
      {"grown by a page", [](auto& b, auto&) -> Bytes { return b + std::string(4096, '\0'); }},
      {"grown by noise", [](auto& b, auto&) -> Bytes { return b + std::string(777, 'x'); }},
      {"removed", [](auto&, auto&) -> Bytes { return std::nullopt; }},
      {"swapped with an older one", [](auto&, auto& older) -> Bytes { return older; }},
  };
  return all;
}

using Files = std::map<std::string, std::string>;
constexpr const char* kFileNames[] = {"store.db", "store.db-wal", "store.db-shm", "store.marker",
                                      "lock"};

class DamageTable : public LostWork {
 protected:
  Files read_all() const {
    Files files;
    for (const char* name : kFileNames) files[name] = read_file(path(name));
    return files;
  }

  void put_all(const Files& files) const {
    std::filesystem::remove_all(dir());
    std::filesystem::create_directory(dir());
    std::filesystem::permissions(dir(), std::filesystem::perms::owner_all);
    for (const auto& [file, bytes] : files) write_file(path(file), bytes);
  }

  // Everything that was acknowledged is there, or a check says that it is not; then what a recovery
  // does not say is lost is there, and no id is given again. What is no damage inside of a record
  // is noticed at the start.
  void expect_there_or_named(std::uint64_t acknowledged, bool is_flip) {
    const auto found = check_store(dir());
    const bool is_sound = found && found->is_sound();
    auto opened = SqliteStore::open(options_for(dir()));
    if (opened) {
      EXPECT_TRUE(is_sound || is_flip) << found->damages.front();
      if (is_sound) return expect_all(**opened, acknowledged);
      opened->reset();
    } else {
      EXPECT_FALSE(is_sound);
      const auto code = opened.error().code;
      EXPECT_TRUE(code == base::ErrorCode::kDataLoss ||
                  code == base::ErrorCode::kFailedPrecondition)
          << opened.error().message;
    }
    const auto recovery = recover_store(dir());
    ASSERT_TRUE(recovery) << recovery.error().message;
    EXPECT_TRUE(check_store(dir())->is_sound());
    const auto store = open_store(dir());
    ASSERT_NE(store, nullptr);
    if (recovery->lost.empty()) return expect_all(*store, acknowledged);
    const auto mark = read_mark(path("store.marker"));
    ASSERT_TRUE(mark);
    EXPECT_GE(mark->last_job, acknowledged / 3 * 3) << "an id that was given";
  }

 private:
  static void expect_all(const SqliteStore& store, std::uint64_t acknowledged) {
    EXPECT_GE(store.last_seq().value, acknowledged);
    EXPECT_GE(kept_events(store).size(), acknowledged);
    EXPECT_GE(count_jobs(store), acknowledged);
  }
};

// The log goes on from an older database, and from one that has all but its last pages.
TEST_F(DamageTable, EveryFileDamagedInEveryWay) {
  run_and_kill_before(41);
  const Files older = read_all();
  std::uint64_t tried = 0;
  for (const std::uint64_t end : {61, 119}) {
    const std::uint64_t acknowledged = run_and_kill_before(end);
    const Files newer = read_all();
    for (const char* name : kFileNames) {
      for (const Harm& harm : harms()) {
        if (tried++ % base::every_how_many() != 0) continue;
        SCOPED_TRACE(fmt::format("{} of {} events {}", name, acknowledged, harm.name));
        put_all(newer);
        const auto bytes = harm.doing(newer.at(name), older.at(name));
        bytes ? write_file(path(name), *bytes) : remove(name);
        const bool is_gone = std::string_view(name) == "store.db" && (!bytes || bytes->empty());
        if (is_gone) {
          EXPECT_EQ(open_error(dir()).code, base::ErrorCode::kDataLoss);
          continue;
        }
        expect_there_or_named(acknowledged, harm.name.starts_with("flipped"));
        if (HasFatalFailure()) return;
      }
    }
    put_all(newer);
  }
}

// One record of each kind, in the database alone and in the log.
TEST_F(DamageTable, EveryKindOfRecordDamaged) {
  fill(60);
  const std::string sound = read_file(path("store.db"));
  const std::string marker = read_file(path("store.marker"));
  const char* const damages[] = {
      "UPDATE journal SET payload = x'00' WHERE first_seq = 31",
      "UPDATE journal SET checksum = 1 WHERE first_seq = 31",
      "UPDATE journal SET count = 9 WHERE first_seq = 31",
      "DELETE FROM journal WHERE first_seq = 31",
      "DELETE FROM journal WHERE first_seq > 31",
      "UPDATE jobs SET payload = x'00' WHERE id = 33",
      "UPDATE jobs SET user = 'eve' WHERE id = 33",
      "DELETE FROM jobs WHERE id = 33",
      "UPDATE audit SET payload = x'00' WHERE first_seq = 31",
      "DELETE FROM audit WHERE first_seq = 31",
      "UPDATE head SET last_seq = 30",
      "UPDATE head SET jobs = 3",
      "DELETE FROM head",
      "DROP INDEX jobs_by_end",
  };
  for (const char* const damage : damages) {
    SCOPED_TRACE(damage);
    for (const char* file :
         {"store.db-wal", "store.db-shm", "store.db.damaged-1", "store.db.damaged-2"}) {
      remove(file);
    }
    write_file(path("store.db"), sound);
    write_file(path("store.marker"), marker);
    write_file(path("lock"), "");
    run_sql(dir(), damage);
    const auto found = check_store(dir());
    if (std::string_view(damage).starts_with("DROP")) {
      EXPECT_FALSE(found);
    } else {
      ASSERT_TRUE(found) << found.error().message;
      EXPECT_FALSE(found->is_sound());
    }
    const auto recovery = recover_store(dir());
    ASSERT_TRUE(recovery) << recovery.error().message;
    const auto store = open_store(dir());
    ASSERT_NE(store, nullptr);
    const auto kept = kept_events(*store);
    const std::size_t jobs = count_jobs(*store);
    if (recovery->lost.empty()) {
      EXPECT_EQ(kept, bytes_of_events(1, 60));
      EXPECT_EQ(jobs, 20u);
    } else {
      EXPECT_TRUE(kept.size() < 60 || jobs < 20);
      EXPECT_GE(jobs, 19u);
    }
    const std::uint64_t last_job = recovery->next_job.valid()
                                       ? recovery->next_job.value - 1
                                       : read_mark(path("store.marker"))->last_job;
    EXPECT_GE(last_job, 60u);
  }
}

}  // namespace
}  // namespace gpu_platform::store
