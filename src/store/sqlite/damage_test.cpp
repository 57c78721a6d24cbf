#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "base/testing/rounds.h"
#include "store/sqlite/damage_fixture.h"
#include "store/sqlite/repair.h"

// What the store says of files that are missing, cut off, swapped or changed, and what a recovery
// saves.

namespace gpu_platform::store {
namespace {

TEST_F(Damage, WhatWasAcknowledgedSurvivesSigkillAtAnyMoment) {
  constexpr std::uint64_t kSeed = 7;
  base::Prng prng(kSeed);
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t acknowledged = run_and_kill(1 + prng.below(60));

    const auto store = open_store(dir());
    ASSERT_NE(store, nullptr) << "seed " << kSeed << ", round " << round;
    const std::uint64_t last = store->last_seq().value;
    ASSERT_GE(last, acknowledged);
    ASSERT_LE(last, acknowledged + 1) << "at most the batch in flight is more";
    ASSERT_EQ(replayed(*store), bytes_of_events(1, last));
    const auto jobs = store->list({.limit = 1'000'000});
    ASSERT_TRUE(jobs) << jobs.error().message;
    ASSERT_EQ(jobs->size(), last);
    const auto snapshot = store->newest_snapshot(nullptr).value();
    ASSERT_LE(last / 20 * 20, (snapshot ? snapshot->upto.value : 0) + 20);
  }
}

TEST_F(Damage, AKilledHolderGivesUpTheDirectory) {
  run_and_kill(1);
  EXPECT_NE(open_store(dir()), nullptr);
}

// ---- Missing and foreign files ----

TEST_F(Damage, AMissingDatabaseIsNotReplacedByAnEmptyOne) {
  fill(9);
  std::filesystem::remove(path("store.db"));
  expect_data_loss("store.marker shows that there was one");
  EXPECT_FALSE(std::filesystem::exists(path("store.db")));

  // Nor when the marker has gone as well.
  std::filesystem::remove(path("store.marker"));
  expect_data_loss("shows that there was one");
}

TEST_F(Damage, AnEmptyFileIsNoDatabase) {
  fill(9);
  write_file(path("store.db"), "");
  expect_data_loss("only 0 bytes long");
  EXPECT_EQ(std::filesystem::file_size(path("store.db")), 0u);
}

TEST_F(Damage, ForeignFilesAreRefused) {
  fill(9);
  write_file(path("store.db"), std::string(8192, 'x'));
  expect_data_loss("not an SQLite database");

  std::filesystem::remove(path("store.db"));
  write_file(path("store.db"), "");
  run_sql(dir(), "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; CREATE TABLE t(a);");
  expect_data_loss("another program");
}

TEST_F(Damage, ACutOffDatabaseIsNoticedAtOnce) {
  fill(300);
  std::filesystem::resize_file(path("store.db"),
                               std::filesystem::file_size(path("store.db")) - 4096);
  expect_data_loss("pages of 4096 are due");
}

TEST_F(Damage, RecoverySavesWhatACutOffDatabaseStillHas) {
  fill(900);
  std::filesystem::resize_file(path("store.db"),
                               std::filesystem::file_size(path("store.db")) / 4096 / 2 * 4096);
  const auto recovery = recover_store(dir());
  ASSERT_TRUE(recovery) << recovery.error().message;
  const auto kept = kept_events(*open_store(dir()));
  EXPECT_GT(kept.size(), 100u);
  EXPECT_EQ(kept, bytes_of_events(1, kept.size()));
}

TEST_F(Damage, AMissingLogOfAKilledProgramIsNoticed) {
  run_and_kill_before(11);
  std::filesystem::remove(path("store.db-wal"));
  expect_data_loss("store.db-wal is missing");
}

TEST_F(Damage, AnInterruptedCreationStartsOver) {
  std::filesystem::create_directories(dir());
  write_file(path("store.db.creating"), "half a database");
  write_file(path("store.db.creating-wal"), "half a log");
  EXPECT_NE(open_store(dir()), nullptr);
  EXPECT_FALSE(std::filesystem::exists(path("store.db.creating")));
}

// ---- The log ----

constexpr std::size_t kFrame = 24 + 4096;

TEST_F(Damage, ALogThatACrashCutOffLosesTheUnfinishedBatchAlone) {
  run_and_kill_before(9);
  const std::string wal = read_file(path("store.db-wal"));
  const std::string database = read_file(path("store.db"));
  remove("store.marker");  // it would say that the batch was acknowledged
  ASSERT_GT(wal.size(), 6 * kFrame);
  for (std::size_t size = wal.size(); size > wal.size() - 3 * kFrame; size -= 1021) {
    write_file(path("store.db"), database);
    write_file(path("store.db-wal"), wal.substr(0, size));
    std::filesystem::remove(path("store.db-shm"));
    remove("store.marker");
    const auto store = open_store(dir());
    ASSERT_NE(store, nullptr) << size;
    EXPECT_EQ(replayed(*store), bytes_of_events(1, store->last_seq().value)) << size;
    EXPECT_GE(store->last_seq().value, 6u) << size;
  }
}

TEST_F(Damage, AFlippedByteInTheLogIsNotTakenForItsEnd) {
  run_and_kill_before(13);
  std::string wal = read_file(path("store.db-wal"));
  ASSERT_GT(wal.size(), 20 * kFrame);
  wal[32 + 3 * kFrame + 1000] ^= 0x10;
  write_file(path("store.db-wal"), wal);
  expect_data_loss("frame 4 does not verify");

  wal[32 + 3 * kFrame + 1000] ^= 0x10;
  wal[17] ^= 1;
  write_file(path("store.db-wal"), wal);
  expect_data_loss("the header does not verify");

  wal[17] ^= 1;
  write_file(path("store.db-wal"), wal);
  EXPECT_NE(open_store(dir()), nullptr) << "the log as it was";
}

// ---- Flipped bytes anywhere ----

// Every answer is the right one or an error that says what is wrong.
void expect_right_or_refused(const std::filesystem::path& dir, std::uint64_t last, bool in_version,
                             int& noticed) {
  auto opened = SqliteStore::open(options_for(dir));
  if (!opened) {
    ++noticed;
    const auto code = opened.error().code;
    // A flipped version number looks like a newer program's.
    EXPECT_TRUE(code == base::ErrorCode::kDataLoss ||
                (in_version && code == base::ErrorCode::kFailedPrecondition))
        << opened.error().message;
    return;
  }
  const SqliteStore& store = **opened;
  EXPECT_EQ(store.last_seq().value, last);
  auto events = replayed(store);
  const auto expected = bytes_of_events(1, last);
  const bool is_journal_damaged = !events.empty() && events.back() == "DATA_LOSS";
  if (is_journal_damaged) {
    ++noticed;
    events.pop_back();
    EXPECT_TRUE(std::equal(events.begin(), events.end(), expected.begin()));
  } else {
    EXPECT_EQ(events, expected);
  }
  const auto snapshot = store.newest_snapshot(nullptr);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  if (*snapshot) {
    EXPECT_EQ((*snapshot)->state, "state of 6");
  }
  for (std::uint64_t id = 3; id <= last; id += 3) {
    const auto job = store.find(model::JobId(id));
    if (job && *job) {
      EXPECT_EQ(**job, model::Job(JobBuilder(id)));
    } else if (!job) {
      EXPECT_EQ(job.error().code, base::ErrorCode::kDataLoss) << job.error().message;
    }
    const auto environment = store.environment("env-" + std::to_string(id - 2));
    if (environment) {
      EXPECT_EQ(*environment, "A=1");
    }
  }
  const auto jobs = store.list({.user = "ann", .limit = 1000});
  if (jobs) {
    for (const auto& job : *jobs) EXPECT_EQ(job, model::Job(JobBuilder(job.id.value)));
  }
  const auto trail = store.audit({.limit = 1000});
  if (trail) {
    for (const auto& entry : trail->entries) {
      EXPECT_EQ(entry, model::audit_entry(event_at(entry.seq.value)));
    }
  } else {
    noticed += is_journal_damaged ? 0 : 1;
    EXPECT_EQ(trail.error().code, base::ErrorCode::kDataLoss) << trail.error().message;
  }
}

TEST_F(Damage, FlippedBytesNeverGiveWrongAnswers) {
  constexpr std::uint64_t kLast = 150;
  constexpr std::uint64_t kSeed = 11;
  // Of fewer, the part that is noticed says little.
  const std::uint64_t all = std::max<std::uint64_t>(base::rounds(250), 100);
  fill(kLast);
  const std::string sound = read_file(path("store.db"));
  base::Prng prng(kSeed);
  int noticed = 0;
  for (std::uint64_t round = 0; round < all; ++round) {
    std::string bytes = sound;
    bool in_version = false;
    for (std::uint64_t flips = 1 + prng.below(4); flips > 0; --flips) {
      // Half of them where the structure is: in the first bytes of a page.
      const std::uint64_t page = prng.below(bytes.size() / 4096) * 4096;
      const std::uint64_t at = page + (prng.chance(1, 2) ? prng.below(120) : prng.below(4096));
      bytes[at] = static_cast<char>(bytes[at] ^ (1 + prng.below(255)));
      in_version = in_version || (at >= 60 && at < 64);
    }
    write_file(path("store.db"), bytes);
    std::filesystem::remove(path("store.db-wal"));
    std::filesystem::remove(path("store.db-shm"));
    write_file(path("lock"), "");
    SCOPED_TRACE(fmt::format("seed {}, round {}", kSeed, round));
    expect_right_or_refused(dir(), kLast, in_version, noticed);
    if (HasFailure()) return;
  }
  EXPECT_GT(noticed, static_cast<int>(all / 4)) << "most damage must be noticed";
}

// ---- Check and recover ----

TEST_F(Damage, CheckFindsNothingInASoundStore) {
  fill(30);
  const auto report = check_store(dir());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->is_sound()) << report->damages.front();
  EXPECT_EQ(report->first_event, model::EventSeq(1));
  EXPECT_EQ(report->last_event, model::EventSeq(30));
  EXPECT_EQ(report->jobs, 10u);
  EXPECT_EQ(report->snapshots, 1u);
  EXPECT_EQ(report->environments, 10u);
  EXPECT_EQ(recover_store(dir()).error().code, base::ErrorCode::kFailedPrecondition);
}

TEST_F(Damage, CheckAndRecoverNeedTheDirectoryForThemselves) {
  const auto store = open_store(dir());
  EXPECT_EQ(check_store(dir()).error().code, base::ErrorCode::kAlreadyExists);
  EXPECT_EQ(recover_store(dir()).error().code, base::ErrorCode::kAlreadyExists);
}

TEST_F(Damage, CheckWithoutAStoreSaysSoAndMakesNone) {
  EXPECT_EQ(check_store(dir() / "nowhere").error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(check_store(dir()).error().code, base::ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(dir() / "nowhere"));
  EXPECT_FALSE(std::filesystem::exists(path("store.db")));
}

TEST_F(Damage, RecoveryKeepsEverythingUpToTheDamagedRecord) {
  fill(30);
  run_sql(dir(), "UPDATE journal SET payload = x'00' WHERE first_seq = 19; DELETE FROM snapshots;");
  EXPECT_EQ(replayed(*open_store(dir())).back(), "DATA_LOSS");
  const auto found = check_store(dir());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->damages, (std::vector<std::string>{
                                "table journal, record 19 (3 events): the checksum does not match",
                                "table journal: events 19 to 21 are not there"}));
  const std::string damaged = read_file(path("store.db"));

  const auto recovery = recover_store(dir());

  ASSERT_TRUE(recovery) << recovery.error().message;
  EXPECT_EQ(recovery->put_aside, path("store.db.damaged-1"));
  EXPECT_EQ(read_file(recovery->put_aside), damaged);
  EXPECT_EQ(recovery->lost,
            (std::vector<std::string>{
                "events 19 to 21, stored between 2023-11-14T22:13:20Z and "
                "2023-11-14T22:13:20Z",
                "the state is that after event 18: of the intact events after the lost "
                "ones, submissions, ended jobs and the audit trail are kept"}));
  EXPECT_EQ(recovery->kept.jobs, 10u);
  EXPECT_EQ(recovery->next_job, model::JobId(31));
  const auto store = open_store(dir());
  const std::vector<model::EventRecord> events = all_events(*store);
  ASSERT_EQ(events.size(), 23u) << "18, the audit entries of 4 submissions, and what is known";
  for (std::uint64_t seq = 1; seq <= 18; ++seq) {
    EXPECT_EQ(bytes_of(events[seq - 1]), bytes_of(event_at(seq)));
  }
  const auto& repaired = std::get<model::StoreRepaired>(events.back().event);
  EXPECT_EQ(repaired.last_job_id, 30u);
  std::vector<std::uint64_t> ended;
  for (const model::ArchivedEnd& end : repaired.ended) ended.push_back(end.job.value);
  EXPECT_EQ(ended, (std::vector<std::uint64_t>{21, 24, 27, 30}));
  for (std::uint64_t id = 3; id <= 30; id += 3) {
    EXPECT_TRUE(store->find(model::JobId(id)).value().has_value()) << id;
  }
  EXPECT_TRUE(store->environment("env-28"));
  EXPECT_TRUE(append_events(*store, 24, 24));
}

TEST_F(Damage, RecoveryKeepsTheAuditTrailPastTheDamage) {
  fill(30);
  const auto before = open_store(dir())->audit({.limit = 100})->entries;
  run_sql(dir(), "UPDATE journal SET payload = x'00' WHERE first_seq = 19; DELETE FROM snapshots;");
  ASSERT_TRUE(recover_store(dir()));
  const auto after = open_store(dir())->audit({.limit = 100})->entries;
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].call, before[i].call);
    EXPECT_EQ(after[i].at, before[i].at);
  }
  EXPECT_TRUE(check_store(dir())->is_sound());
}

// The first record is damaged, and a kill has left no snapshot: no state can be computed at all.
TEST_F(Damage, RecoveryWithoutAnyStateKeepsEveryEndedJob) {
  run_and_kill_before(16);
  run_sql(dir(), "UPDATE journal SET payload = x'00' WHERE first_seq = 1; DELETE FROM snapshots;");
  const auto found = check_store(dir());
  ASSERT_TRUE(found);
  const std::uint64_t jobs = found->jobs;
  ASSERT_GE(jobs, 15u);
  const auto recovery = recover_store(dir());
  ASSERT_TRUE(recovery) << recovery.error().message;
  EXPECT_EQ(recovery->kept.jobs, jobs);
  EXPECT_EQ(recovery->next_job, model::JobId(jobs + 1));
  EXPECT_EQ(open_store(dir())->list({.limit = 1000})->size(), jobs);
  EXPECT_TRUE(check_store(dir())->is_sound());
}

TEST_F(Damage, IdsOfJobsInADamagedRecordAreNotGivenAgain) {
  fill(9);
  const auto events = events_of(10, 12);
  ASSERT_TRUE(open_store(dir())->append({events, {}, {}, {}}));
  run_sql(dir(), "UPDATE journal SET payload = x'00' WHERE first_seq = 10");
  const auto recovery = recover_store(dir());
  ASSERT_TRUE(recovery) << recovery.error().message;
  EXPECT_EQ(recovery->next_job, model::JobId(13)) << "the audit trail names job 12";
  EXPECT_EQ(recovery->lost.back(),
            "job 12, submitted between 2023-11-14T22:13:20Z and 2023-11-14T22:13:20Z: it "
            "is not known to have ended, and must be submitted again");
}

TEST_F(Damage, WhereIdsMayBeUnknownManyAreLeftOut) {
  fill(9);
  const auto events = events_of(10, 12);
  ASSERT_TRUE(open_store(dir())->append({events, {}, {}, {}}));
  run_sql(dir(),
          "UPDATE journal SET payload = x'00' WHERE first_seq = 10;"
          "UPDATE audit SET payload = x'00' WHERE first_seq = 10");
  remove("store.marker");
  const auto recovery = recover_store(dir());
  ASSERT_TRUE(recovery) << recovery.error().message;
  EXPECT_EQ(recovery->next_job, model::JobId(1'000'010));
}

TEST_F(Damage, WhatARecoveryFoundSurvivesTheNextOne) {
  fill(30);
  run_sql(dir(), "UPDATE journal SET payload = x'00' WHERE first_seq = 19; DELETE FROM snapshots;");
  ASSERT_TRUE(recover_store(dir()));
  run_sql(dir(), "UPDATE journal SET payload = x'00' WHERE first_seq = 4");
  const auto recovery = recover_store(dir());
  ASSERT_TRUE(recovery) << recovery.error().message;
  EXPECT_EQ(recovery->kept.jobs, 10u);
  EXPECT_EQ(recovery->next_job, model::JobId(31));
}

TEST_F(Damage, RecoveryGoesOnFromASnapshotBehindTheDamage) {
  fill(30);
  run_sql(dir(), "DELETE FROM journal WHERE first_seq = 4");
  const auto recovery = recover_store(dir());
  ASSERT_TRUE(recovery) << recovery.error().message;
  EXPECT_EQ(recovery->lost,
            (std::vector<std::string>{"events 1 to 6; their outcome is in a snapshot"}));

  const auto store = open_store(dir());
  EXPECT_EQ(store->last_seq(), model::EventSeq(30));
  EXPECT_EQ(store->newest_snapshot(nullptr).value()->state, "state of 6");
  EXPECT_EQ(replayed(*store, 6), bytes_of_events(7, 30));
  EXPECT_EQ(replayed(*store, 0), std::vector<std::string>{"DATA_LOSS"});
  EXPECT_EQ(store->list({})->size(), 10u);
  EXPECT_TRUE(append_events(*store, 31, 31));
}

TEST_F(Damage, RecoverySavesWhatLiesOnEitherSideOfADamagedPage) {
  constexpr std::uint64_t kLast = 900;
  fill(kLast);
  std::string bytes = read_file(path("store.db"));
  // A leaf of table journal: the page that holds the record of event 400.
  std::string record;
  model::append_record(event_at(400), record);
  const std::size_t at = bytes.find(record);
  ASSERT_NE(at, std::string::npos);
  for (std::size_t i = 0; i < 16; ++i) bytes[at / 4096 * 4096 + i] = '\x55';
  write_file(path("store.db"), bytes);

  const auto recovery = recover_store(dir());

  ASSERT_TRUE(recovery) << recovery.error().message;
  EXPECT_TRUE(check_store(dir())->is_sound());
  const auto kept = kept_events(*open_store(dir()));
  EXPECT_GT(kept.size(), 100u);
  EXPECT_LT(kept.size(), 400u);
  EXPECT_EQ(kept, bytes_of_events(1, kept.size()));
}

TEST_F(Damage, RecoveryAfterALostLogKeepsWhatTheDatabaseHas) {
  fill(30);
  run_and_kill_before(36);
  std::filesystem::remove(path("store.db-wal"));
  std::filesystem::remove(path("store.db-shm"));
  const auto recovery = recover_store(dir());
  ASSERT_TRUE(recovery) << recovery.error().message;
  EXPECT_EQ(kept_events(*open_store(dir())), bytes_of_events(1, 30));
  EXPECT_GE(recovery->next_job, model::JobId(34)) << "the mark knows of the jobs in the log";
}

TEST_F(Damage, AnInterruptedRecoveryIsCompletedByTheNext) {
  fill(30);
  const std::string sound = read_file(path("store.db"));
  run_sql(dir(), "UPDATE journal SET payload = x'00' WHERE first_seq = 19");
  std::filesystem::rename(path("store.db"), path("store.db.damaged-1"));
  write_file(path("store.db.recovered"), sound);
  expect_data_loss("recovery was interrupted");

  const auto recovery = recover_store(dir());
  ASSERT_TRUE(recovery) << recovery.error().message;
  EXPECT_EQ(recovery->put_aside, path("store.db.damaged-1"));
  EXPECT_EQ(replayed(*open_store(dir())), bytes_of_events(1, 30));
}

TEST_F(Damage, RecoveryOfNothingSaysSoAndChangesNothing) {
  fill(9);
  const std::string noise(40960, 'x');
  write_file(path("store.db"), noise);
  const auto recovery = recover_store(dir());
  ASSERT_FALSE(recovery);
  EXPECT_EQ(recovery.error().code, base::ErrorCode::kDataLoss);
  EXPECT_TRUE(mentions(recovery.error(), "backup")) << recovery.error().message;
  EXPECT_EQ(read_file(path("store.db")), noise);
}

TEST(ChooseEvents, TakesTheLatestStateThatCanBeComputed) {
  using Runs = std::vector<EventRange>;
  EXPECT_EQ(choose_events({}, {}), (EventRange{1, 0}));
  EXPECT_EQ(choose_events(Runs{{1, 9}}, {}), (EventRange{1, 9}));
  EXPECT_EQ(choose_events(Runs{{1, 9}, {12, 20}}, {}), (EventRange{1, 9}));
  EXPECT_EQ(choose_events(Runs{{1, 9}, {12, 20}}, {10}), (EventRange{11, 10}))
      << "a snapshot alone";
  EXPECT_EQ(choose_events(Runs{{1, 9}, {12, 20}}, {11}), (EventRange{12, 20}));
  EXPECT_EQ(choose_events(Runs{{1, 9}, {12, 20}}, {15}), (EventRange{12, 20}));
  EXPECT_EQ(choose_events(Runs{{1, 9}}, {30}), (EventRange{31, 30}));
  EXPECT_EQ(choose_events(Runs{{5, 9}}, {}), (EventRange{1, 0})) << "no way to event 4";
  EXPECT_EQ(choose_events(Runs{{1, 9}}, {9, 4}), (EventRange{1, 9})) << "all history";
}

}  // namespace
}  // namespace gpu_platform::store
