#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/job_spec.h"
#include "store/archive_query.h"
#include "store/test_support.h"

// What every store promises. An implementation instantiates the suite with a subject:
//
//   struct Subject {
//     Journal& journal();
//     Archive& archive();
//     void restart();                               // the process ended and came back
//     void damage_event(model::EventSeq seq);       // in the stored record of that event
//     void damage_snapshot(model::EventSeq upto);
//   };

namespace gpu_platform::store {

template <class Subject>
class StoreContract : public testing::Test {
 protected:
  Journal& journal() { return subject_.journal(); }
  Archive& archive() { return subject_.archive(); }

  std::vector<std::uint64_t> ids_of(const ArchiveQuery& query) {
    std::vector<std::uint64_t> ids;
    const auto jobs = archive().list(query);
    EXPECT_TRUE(jobs) << jobs.error().message;
    if (!jobs) return ids;
    for (const auto& job : *jobs) ids.push_back(job.id.value);
    return ids;
  }

  // Batches of up to nine events; all entries that they make, ascending.
  std::vector<model::AuditEntry> fill_audit(std::size_t batches, base::Prng& prng,
                                            AuditKeep keep = {}) {
    std::vector<model::AuditEntry> made;
    std::uint64_t last_job = 0;
    for (std::size_t i = 0; i < batches; ++i) {
      const std::uint64_t first = journal().last_seq().value + 1;
      const auto events = audited_events(first, 1 + prng.below(9), last_job, prng);
      EXPECT_TRUE(journal().append({.events = events, .audit_keep = keep}));
      for (const auto& record : events) {
        if (auto entry = model::audit_entry(record)) made.push_back(*std::move(entry));
      }
    }
    return made;
  }
  std::vector<model::AuditEntry> audit_of(const model::AuditQuery& query) {
    const auto page = archive().audit(query);
    EXPECT_TRUE(page) << page.error().message;
    return page ? page->entries : std::vector<model::AuditEntry>();
  }
  // All of it, newest first, in pages of so many.
  std::vector<model::AuditEntry> whole_audit(std::size_t limit,
                                             std::size_t max_looked_at = SIZE_MAX) {
    std::vector<model::AuditEntry> all;
    model::AuditQuery query;
    query.limit = limit;
    query.max_looked_at = max_looked_at;
    do {
      const auto page = archive().audit(query);
      EXPECT_TRUE(page) << page.error().message;
      if (!page) return all;
      all.insert(all.end(), page->entries.begin(), page->entries.end());
      query.before = page->next;
    } while (query.before.valid());
    return all;
  }

  Subject subject_;
};

TYPED_TEST_SUITE_P(StoreContract);

TYPED_TEST_P(StoreContract, ANewStoreIsEmpty) {
  EXPECT_FALSE(this->journal().last_seq().valid());
  EXPECT_TRUE(replayed(this->journal()).empty());
  std::string damaged;
  const auto snapshot = this->journal().newest_snapshot(&damaged);
  ASSERT_TRUE(snapshot);
  EXPECT_FALSE(snapshot->has_value());
  EXPECT_EQ(damaged, "");
  EXPECT_EQ(this->ids_of({}), std::vector<std::uint64_t>{});
  EXPECT_EQ(this->journal().headroom(), Headroom::kAmple);
}

TYPED_TEST_P(StoreContract, ReplayGivesEveryEventInOrderFromAnyPlace) {
  ASSERT_TRUE(append_events(this->journal(), 1, 1));
  ASSERT_TRUE(append_events(this->journal(), 2, 6));
  ASSERT_TRUE(append_events(this->journal(), 7, 9));

  EXPECT_EQ(this->journal().last_seq(), model::EventSeq(9));
  for (std::uint64_t after = 0; after <= 9; ++after) {
    EXPECT_EQ(replayed(this->journal(), after), bytes_of_events(after + 1, 9)) << after;
  }
}

TYPED_TEST_P(StoreContract, ReplayStopsWithTheVisitorsError) {
  ASSERT_TRUE(append_events(this->journal(), 1, 5));
  std::uint64_t visited = 0;
  const auto status = this->journal().replay(
      model::EventSeq(0), [&](const model::EventRecord& record) -> base::Status {
        visited = record.seq.value;
        if (visited == 3) return base::fail(base::ErrorCode::kDataLoss, "enough");
        return {};
      });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "enough");
  EXPECT_EQ(visited, 3u);
}

TYPED_TEST_P(StoreContract, ReplayFromBeyondTheEndIsDataLoss) {
  ASSERT_TRUE(append_events(this->journal(), 1, 5));
  EXPECT_EQ(replayed(this->journal(), 6), std::vector<std::string>{"DATA_LOSS"});
}

TYPED_TEST_P(StoreContract, RefusesBatchesThatDoNotFollowAndGoesOn) {
  ASSERT_TRUE(append_events(this->journal(), 1, 3));
  auto with_a_hole = events_of(4, 6);
  with_a_hole.erase(with_a_hole.begin() + 1);

  EXPECT_FALSE(append_events(this->journal(), 5, 6));
  EXPECT_FALSE(append_events(this->journal(), 3, 4));
  EXPECT_FALSE(this->journal().append({with_a_hole, {}, {}, {}, {}}));
  EXPECT_FALSE(this->journal().append({}));
  ASSERT_TRUE(append_events(this->journal(), 4, 4));

  EXPECT_EQ(replayed(this->journal()), bytes_of_events(1, 4));
}

TYPED_TEST_P(StoreContract, KeepsEverythingOverARestart) {
  const model::Job job = JobBuilder(7).label("model", "bert");
  ASSERT_TRUE(append_events(this->journal(), 1, 4, {job}, {{"env-9", std::string("A=1\0", 4)}}));
  ASSERT_TRUE(this->journal().put_snapshot({model::EventSeq(3), "state"}));

  this->subject_.restart();

  EXPECT_EQ(replayed(this->journal()), bytes_of_events(1, 4));
  EXPECT_EQ(this->archive().find(model::JobId(7)).value(), job);
  EXPECT_EQ(this->journal().environment("env-9").value(), std::string("A=1\0", 4));
  EXPECT_EQ(this->journal().newest_snapshot(nullptr).value()->state, "state");
  ASSERT_TRUE(append_events(this->journal(), 5, 5));
  EXPECT_EQ(this->journal().last_seq(), model::EventSeq(5));
}

TYPED_TEST_P(StoreContract, NamesADamagedRecordAndVisitsNothingOfIt) {
  ASSERT_TRUE(append_events(this->journal(), 1, 4));
  ASSERT_TRUE(append_events(this->journal(), 5, 8));
  ASSERT_TRUE(append_events(this->journal(), 9, 9));
  this->subject_.damage_event(model::EventSeq(6));

  auto expected = bytes_of_events(1, 4);
  expected.emplace_back("DATA_LOSS");
  EXPECT_EQ(replayed(this->journal()), expected);
  const auto status = this->journal().replay(
      model::EventSeq(0), [](const model::EventRecord&) { return base::Status{}; });
  EXPECT_NE(status.error().message.find("table journal, record 5 (4 events)"), std::string::npos)
      << status.error().message;
  EXPECT_EQ(replayed(this->journal(), 8), bytes_of_events(9, 9)) << "what follows is readable";
}

TYPED_TEST_P(StoreContract, KeepsTheNewestTwoSnapshotsAndSkipsADamagedOne) {
  ASSERT_TRUE(append_events(this->journal(), 1, 9));
  for (const std::uint64_t upto : {2, 5, 9}) {
    ASSERT_TRUE(
        this->journal().put_snapshot({model::EventSeq(upto), "after " + std::to_string(upto)}));
  }
  std::string damaged;
  EXPECT_EQ(this->journal().newest_snapshot(&damaged).value()->state, "after 9");
  EXPECT_EQ(damaged, "");

  this->subject_.damage_snapshot(model::EventSeq(9));
  const auto older = this->journal().newest_snapshot(&damaged).value();
  ASSERT_TRUE(older.has_value());
  EXPECT_EQ(older->upto, model::EventSeq(5));
  EXPECT_EQ(older->state, "after 5");
  EXPECT_NE(damaged.find("after event 9"), std::string::npos) << damaged;

  this->subject_.damage_snapshot(model::EventSeq(5));
  EXPECT_FALSE(this->journal().newest_snapshot(&damaged).value().has_value())
      << "the third is not kept";
}

TYPED_TEST_P(StoreContract, RefusesASnapshotOfEventsItDoesNotHave) {
  ASSERT_TRUE(append_events(this->journal(), 1, 2));
  EXPECT_FALSE(this->journal().put_snapshot({model::EventSeq(3), "state"}));
  EXPECT_FALSE(this->journal().put_snapshot({model::EventSeq(0), "state"}));
  EXPECT_TRUE(this->journal().put_snapshot({model::EventSeq(2), std::string(1 << 20, 's')}));
  EXPECT_EQ(this->journal().newest_snapshot(nullptr).value()->state.size(), std::size_t{1} << 20);
}

TYPED_TEST_P(StoreContract, EnvironmentsAreThereUntilDropped) {
  const std::string bytes("A=1\0B=\xff\0", 8);
  ASSERT_TRUE(append_events(this->journal(), 1, 1, {}, {{"e1", bytes}, {"e2", ""}}));
  EXPECT_EQ(this->journal().environment("e1").value(), bytes);
  EXPECT_EQ(this->journal().environment("e2").value(), "");

  ASSERT_TRUE(append_events(this->journal(), 2, 2, {}, {}, {"e1", "never stored"}));
  const auto dropped = this->journal().environment("e1");
  ASSERT_FALSE(dropped);
  EXPECT_EQ(dropped.error().code, base::ErrorCode::kNotFound);
  EXPECT_TRUE(this->journal().environment("e2"));
}

TYPED_TEST_P(StoreContract, FindsEndedJobsById) {
  const model::Job job = JobBuilder(12).state(model::JobState::kFailed).label("a", "b");
  ASSERT_TRUE(append_events(this->journal(), 1, 1, {job}));
  EXPECT_EQ(this->archive().find(model::JobId(12)).value(), job);
  EXPECT_FALSE(this->archive().find(model::JobId(13)).value().has_value());
}

TYPED_TEST_P(StoreContract, AJobThatEndsAgainReplacesItsRecord) {
  ASSERT_TRUE(append_events(this->journal(), 1, 1, {JobBuilder(5).label("try", "1")}));
  const model::Job again = JobBuilder(5).user("bob").label("try", "2");
  ASSERT_TRUE(append_events(this->journal(), 2, 2, {again}));
  EXPECT_EQ(this->archive().find(model::JobId(5)).value(), again);
  EXPECT_EQ(this->ids_of({.labels = {{"try", "1"}}}), std::vector<std::uint64_t>{});
  EXPECT_EQ(this->ids_of({.labels = {{"try", "2"}}}), std::vector<std::uint64_t>{5});
  EXPECT_EQ(this->ids_of({.user = "ann"}), std::vector<std::uint64_t>{});
}

TYPED_TEST_P(StoreContract, AnyNumberOfJobsEndsAtOnceAndSomeOfThemAgain) {
  std::vector<model::Job> first;
  std::vector<model::Job> second;
  for (std::uint64_t id = 1; id <= 100; ++id) {
    second.push_back(JobBuilder(101 - id).user("bob").label("try", "2"));
    if (id % 7 == 0) first.push_back(JobBuilder(id).label("try", "1"));
  }
  ASSERT_TRUE(append_events(this->journal(), 1, 1, first));
  ASSERT_TRUE(append_events(this->journal(), 2, 2, second));

  for (const model::Job& job : second) EXPECT_EQ(this->archive().find(job.id).value(), job);
  EXPECT_EQ(this->ids_of({.user = "bob", .limit = 1000}).size(), second.size());
  EXPECT_EQ(this->ids_of({.labels = {{"try", "2"}}, .limit = 1000}).size(), second.size());
  EXPECT_EQ(this->ids_of({.user = "ann"}), std::vector<std::uint64_t>{});
  EXPECT_EQ(this->ids_of({.labels = {{"try", "1"}}}), std::vector<std::uint64_t>{});
}

TYPED_TEST_P(StoreContract, ListsExactlyTheJobsThatMatchNewestFirst) {
  constexpr std::uint64_t kSeed = 20240607;
  base::Prng prng(kSeed);
  std::vector<model::Job> jobs;
  for (std::uint64_t id = 1; id <= 150; ++id) jobs.push_back(random_job(id, prng));
  ASSERT_TRUE(append_events(this->journal(), 1, 1, jobs));

  for (int round = 0; round < 600; ++round) {
    const ArchiveQuery query = random_query(prng, jobs.size());
    std::vector<std::uint64_t> expected;
    for (auto job = jobs.rbegin(); job != jobs.rend() && expected.size() < query.limit; ++job) {
      if (matches(query, *job)) expected.push_back(job->id.value);
    }
    ASSERT_EQ(this->ids_of(query), expected) << "seed " << kSeed << ", round " << round;
  }
}

TYPED_TEST_P(StoreContract, PagesJoinToTheWholeList) {
  std::vector<model::Job> jobs;
  for (std::uint64_t id = 1; id <= 50; ++id) jobs.push_back(JobBuilder(id * 3));
  ASSERT_TRUE(append_events(this->journal(), 1, 1, jobs));

  std::vector<std::uint64_t> paged;
  ArchiveQuery query{.user = "ann", .limit = 7};
  for (auto page = this->ids_of(query); !page.empty(); page = this->ids_of(query)) {
    paged.insert(paged.end(), page.begin(), page.end());
    query.before = model::JobId(page.back());
  }
  EXPECT_EQ(paged, this->ids_of({.limit = 1000}));
  EXPECT_EQ(paged.size(), jobs.size());
}

// Jobs of any size: a reader has to hold no more of them than it asks for.
TYPED_TEST_P(StoreContract, APageEndsWithTheJobThatMakesItLarge) {
  std::vector<model::Job> jobs;
  for (std::uint64_t id = 1; id <= 9; ++id) {
    model::Job job = JobBuilder(id);
    auto spec = std::make_shared<model::JobSpec>(*job.spec);
    spec->command = {std::string(10'000, 'x')};
    job.spec = std::move(spec);
    jobs.push_back(std::move(job));
  }
  ASSERT_TRUE(append_events(this->journal(), 1, 1, jobs));
  EXPECT_EQ(this->ids_of({.max_bytes = 25'000}), (std::vector<std::uint64_t>{9, 8, 7}));
  EXPECT_EQ(this->ids_of({.max_bytes = 1}), (std::vector<std::uint64_t>{9})) << "one at least";
  EXPECT_EQ(this->ids_of({.limit = 2, .max_bytes = 25'000}), (std::vector<std::uint64_t>{9, 8}));
}

TYPED_TEST_P(StoreContract, TheAuditTrailIsWhatTheEventsSay) {
  base::Prng prng(11);
  auto made = this->fill_audit(40, prng);
  std::ranges::reverse(made);
  EXPECT_EQ(this->whole_audit(1'000), made);
  EXPECT_EQ(this->whole_audit(7), made) << "pages join to the whole";
  EXPECT_EQ(this->whole_audit(1'000, 5), made) << "so do pages that end because they looked enough";
  this->subject_.restart();
  EXPECT_EQ(this->whole_audit(1'000), made);
}

TYPED_TEST_P(StoreContract, ListsExactlyTheAuditEntriesThatMatchNewestFirst) {
  constexpr std::uint64_t kSeed = 20261122;
  base::Prng prng(kSeed);
  const auto made = this->fill_audit(60, prng);
  for (int round = 0; round < 600; ++round) {
    const model::AuditQuery query = random_audit_query(prng, this->journal().last_seq().value);
    std::vector<model::AuditEntry> expected;
    for (auto entry = made.rbegin(); entry != made.rend() && expected.size() < query.limit;
         ++entry) {
      if (model::matches(query, *entry)) expected.push_back(*entry);
    }
    ASSERT_EQ(this->audit_of(query), expected) << "seed " << kSeed << ", round " << round;
  }
}

TYPED_TEST_P(StoreContract, ABoundOnTheAuditTrailLetsTheOldestGo) {
  base::Prng prng(5);
  auto made = this->fill_audit(200, prng, {.max_entries = 50});
  const auto kept = this->whole_audit(1'000);
  EXPECT_LE(kept.size(), 50u + 9u);
  EXPECT_GE(kept.size(), 50u - 9u);
  std::ranges::reverse(made);
  made.resize(kept.size());
  EXPECT_EQ(kept, made) << "the newest stay, whole";
  // What has gone is found by no key.
  for (std::uint32_t uid = 1000; uid < 1004; ++uid) {
    model::AuditQuery query;
    query.seen_by = uid;
    query.limit = 1'000;
    for (const auto& entry : this->audit_of(query)) EXPECT_GE(entry.seq, kept.back().seq);
  }
}

TYPED_TEST_P(StoreContract, AuditEntriesGoWhenTheirTimeIsOver) {
  base::Prng prng(6);
  const auto early = this->fill_audit(20, prng);
  const base::Instant bound = early[early.size() / 2].at;
  this->fill_audit(40, prng, {.not_before = bound});
  const auto kept = this->whole_audit(1'000);
  EXPECT_LT(kept.size(), early.size() + 40 * 9);
  // A batch goes as a whole, when all but its first may still be wanted.
  model::AuditQuery before;
  before.until = base::Instant(bound.unix_ns() - 9'000);
  before.limit = 1'000;
  EXPECT_TRUE(this->audit_of(before).empty());
}

TYPED_TEST_P(StoreContract, DroppedJobsAreGoneFromEveryListAndTheOthersAreNot) {
  base::Prng prng(77);
  std::vector<model::Job> jobs;
  for (std::uint64_t id = 1; id <= 40; ++id) jobs.push_back(random_job(id, prng));
  ASSERT_TRUE(append_events(this->journal(), 1, 1, jobs));

  const std::vector<model::JobId> dropped = {model::JobId(3), model::JobId(17), model::JobId(999)};
  ASSERT_TRUE(this->journal().drop_jobs(dropped));
  ASSERT_TRUE(this->journal().drop_jobs(dropped)) << "once more";
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(this->archive().job_count(), 38u);
    for (const model::Job& job : jobs) {
      const bool is_gone = std::ranges::find(dropped, job.id) != dropped.end();
      const auto found = this->archive().find(job.id);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->has_value(), !is_gone) << job.id.value;
      for (const model::Label& label : job.spec->labels) {
        const auto ids = this->ids_of({.labels = {label}});
        EXPECT_EQ(std::ranges::count(ids, job.id.value), is_gone ? 0 : 1) << job.id.value;
      }
    }
    this->subject_.restart();
  }
  EXPECT_EQ(this->ids_of({.user = jobs[2].spec->user, .name = jobs[2].spec->name}).size(),
            static_cast<std::size_t>(std::ranges::count_if(jobs, [&](const model::Job& job) {
              return job.id.value != 3 && job.id.value != 17 &&
                     job.spec->user == jobs[2].spec->user && job.spec->name == jobs[2].spec->name;
            })));
}

TYPED_TEST_P(StoreContract, EndingsComeInTheOrderOfTimeAndGoOnBehindTheLast) {
  std::vector<model::Job> jobs;
  for (std::uint64_t id = 1; id <= 30; ++id) {
    model::Job job = JobBuilder(id);
    // Ten times, each of three jobs; later jobs ended earlier.
    job.ended_at = base::Instant(1'000 * static_cast<std::int64_t>(11 - (id + 2) / 3));
    jobs.push_back(std::move(job));
  }
  ASSERT_TRUE(append_events(this->journal(), 1, 1, jobs));
  std::vector<JobEnding> expected;
  for (const model::Job& job : jobs) expected.push_back({job.ended_at, job.id});
  std::ranges::sort(expected);
  for (const std::size_t limit : {std::size_t{1}, std::size_t{4}, std::size_t{100}}) {
    std::vector<JobEnding> all;
    while (true) {
      const auto page = this->archive().endings(all.empty() ? JobEnding() : all.back(), limit);
      ASSERT_TRUE(page);
      EXPECT_LE(page->size(), limit);
      if (page->empty()) break;
      all.insert(all.end(), page->begin(), page->end());
    }
    EXPECT_EQ(all, expected) << limit;
  }
}

TYPED_TEST_P(StoreContract, BeginsAtTheEarliestRecordThatIsKept) {
  EXPECT_EQ(*this->archive().begins_at(), base::Instant()) << "nothing is kept";
  base::Prng prng(7);
  std::vector<model::AuditEntry> entries;
  while (entries.empty()) entries = this->fill_audit(3, prng);
  EXPECT_EQ(*this->archive().begins_at(), entries.front().at);
  this->subject_.restart();
  EXPECT_EQ(*this->archive().begins_at(), entries.front().at);
}

REGISTER_TYPED_TEST_SUITE_P(
    StoreContract, ANewStoreIsEmpty, ReplayGivesEveryEventInOrderFromAnyPlace,
    ReplayStopsWithTheVisitorsError, ReplayFromBeyondTheEndIsDataLoss,
    RefusesBatchesThatDoNotFollowAndGoesOn, KeepsEverythingOverARestart,
    NamesADamagedRecordAndVisitsNothingOfIt, KeepsTheNewestTwoSnapshotsAndSkipsADamagedOne,
    RefusesASnapshotOfEventsItDoesNotHave, EnvironmentsAreThereUntilDropped, FindsEndedJobsById,
    AJobThatEndsAgainReplacesItsRecord, AnyNumberOfJobsEndsAtOnceAndSomeOfThemAgain,
    ListsExactlyTheJobsThatMatchNewestFirst, PagesJoinToTheWholeList,
    APageEndsWithTheJobThatMakesItLarge, TheAuditTrailIsWhatTheEventsSay,
    ListsExactlyTheAuditEntriesThatMatchNewestFirst, ABoundOnTheAuditTrailLetsTheOldestGo,
    AuditEntriesGoWhenTheirTimeIsOver, DroppedJobsAreGoneFromEveryListAndTheOthersAreNot,
    EndingsComeInTheOrderOfTimeAndGoOnBehindTheLast, BeginsAtTheEarliestRecordThatIsKept);

}  // namespace gpu_platform::store
