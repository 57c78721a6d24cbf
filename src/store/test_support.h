#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/prng.h"
#include "model/codec.h"
#include "model/event.h"
#include "model/job.h"
#include "model/job_spec.h"
#include "store/store.h"

// Builders for the tests of every store.

namespace gpu_platform::store {

// A directory of its own, removed with the object. In memory where it can be: these tests end
// processes, not power, so thousands of waits for a disk would prove nothing more.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = "/dev/shm/gp-store-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      name = (std::filesystem::temp_directory_path() / "gp-store-XXXXXX").string();
      CHECK(::mkdtemp(name.data()) != nullptr);
    }
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The event that belongs at place `seq`: the same content whenever it is asked for.
inline model::EventRecord event_at(std::uint64_t seq) {
  model::EventRecord record;
  record.seq = model::EventSeq(seq);
  record.at = base::Instant(1'700'000'000'000'000'000 + static_cast<std::int64_t>(seq) * 1'000'000);
  const model::AttemptId attempt{model::JobId(seq), 1};
  switch (seq % 3) {
    case 0: {
      model::JobSpec spec;
      spec.name = "job-" + std::to_string(seq);
      spec.user = "ann";
      spec.command = {"/bin/true", std::to_string(seq)};
      record.event = model::JobSubmitted{.job = model::JobId(seq),
                                         .spec = std::make_shared<model::JobSpec>(std::move(spec)),
                                         .by = {model::Door::kUnixSocket, "root", 0, seq}};
      break;
    }
    case 1:
      record.event = model::AttemptStarted{attempt, 1000 + seq, record.at};
      break;
    default:
      record.event = model::AttemptEnded{attempt, record.at, {.code = std::uint8_t{0}}, {}, "", {}};
      break;
  }
  return record;
}

// Events `first` to `last`.
inline std::vector<model::EventRecord> events_of(std::uint64_t first, std::uint64_t last) {
  std::vector<model::EventRecord> events;
  for (std::uint64_t seq = first; seq <= last; ++seq) events.push_back(event_at(seq));
  return events;
}

inline std::string bytes_of(const model::EventRecord& record) {
  std::string bytes;
  model::append_record(record, bytes);
  return bytes;
}

struct JobBuilder {
  model::JobSpec spec;
  model::Job job;

  explicit JobBuilder(std::uint64_t id) {
    job.id = model::JobId(id);
    job.state = model::JobState::kCompleted;
    job.ended_at = base::Instant(1'700'000'000'000'000'000 + static_cast<std::int64_t>(id));
    job.attempts.push_back({.number = 1, .exit = {.code = std::uint8_t{0}}});
    spec.name = "train";
    spec.user = "ann";
    spec.team = "vision";
    spec.command = {"/bin/true"};
  }
  JobBuilder& user(std::string v) { return spec.user = std::move(v), *this; }
  JobBuilder& team(std::string v) { return spec.team = std::move(v), *this; }
  JobBuilder& name(std::string v) { return spec.name = std::move(v), *this; }
  JobBuilder& state(model::JobState v) { return job.state = v, *this; }
  JobBuilder& ended_at(std::int64_t ns) { return job.ended_at = base::Instant(ns), *this; }
  JobBuilder& label(std::string key, std::string value) {
    return spec.labels.push_back({std::move(key), std::move(value)}), *this;
  }
  operator model::Job() {  // NOLINT: the builder's last step
    job.spec = std::make_shared<model::JobSpec>(spec);
    return job;
  }
};

// A batch of events `first` to `last` with the jobs that end in it.
inline base::Status append_events(Journal& journal, std::uint64_t first, std::uint64_t last,
                                  const std::vector<model::Job>& ended = {},
                                  const std::vector<Environment>& environments = {},
                                  const std::vector<std::string>& dropped = {}) {
  const auto events = events_of(first, last);
  return journal.append({events, ended, {}, environments, dropped});
}

// Every event after `after`, as bytes; an error as the last element.
inline std::vector<std::string> replayed(const Journal& journal, std::uint64_t after = 0) {
  std::vector<std::string> bytes;
  const base::Status status =
      journal.replay(model::EventSeq(after), [&](const model::EventRecord& record) -> base::Status {
        bytes.push_back(bytes_of(record));
        return {};
      });
  if (!status) bytes.push_back(std::string(to_string(status.error().code)));
  return bytes;
}

inline std::vector<std::string> bytes_of_events(std::uint64_t first, std::uint64_t last) {
  std::vector<std::string> bytes;
  for (std::uint64_t seq = first; seq <= last; ++seq) bytes.push_back(bytes_of(event_at(seq)));
  return bytes;
}

// Jobs and queries with few distinct values, so that every filter finds some and misses some.
inline model::Job random_job(std::uint64_t id, base::Prng& prng) {
  constexpr model::JobState kEnded[] = {model::JobState::kCompleted, model::JobState::kFailed,
                                        model::JobState::kCancelled, model::JobState::kTimedOut};
  JobBuilder builder(id);
  builder.user("user" + std::to_string(prng.below(4)))
      .team("team" + std::to_string(prng.below(3)))
      .name("name" + std::to_string(prng.below(6)))
      .state(prng.chance(1, 2) ? model::JobState::kCompleted : kEnded[prng.below(4)])
      .ended_at(static_cast<std::int64_t>(1 + prng.below(1000)));
  if (prng.chance(1, 2)) builder.label("model", "m" + std::to_string(prng.below(3)));
  if (prng.chance(1, 3)) builder.label("stage", "s" + std::to_string(prng.below(2)));
  return builder;
}

inline ArchiveQuery random_query(base::Prng& prng, std::uint64_t max_id) {
  constexpr model::JobState kEnded[] = {model::JobState::kCompleted, model::JobState::kFailed,
                                        model::JobState::kCancelled, model::JobState::kTimedOut};
  ArchiveQuery query;
  if (prng.chance(1, 3)) query.user = "user" + std::to_string(prng.below(5));
  if (prng.chance(1, 3)) query.team = "team" + std::to_string(prng.below(4));
  if (prng.chance(1, 3)) query.name = "name" + std::to_string(prng.below(7));
  for (const auto state : kEnded) {
    if (prng.chance(1, 4)) query.states.push_back(state);
  }
  if (prng.chance(1, 4)) query.labels.push_back({"model", "m" + std::to_string(prng.below(4))});
  if (prng.chance(1, 4)) query.labels.push_back({"stage", "s" + std::to_string(prng.below(3))});
  if (prng.chance(1, 3)) {
    query.ended_since = base::Instant(static_cast<std::int64_t>(1 + prng.below(1100)));
  }
  if (prng.chance(1, 3)) query.before = model::JobId(1 + prng.below(max_id + 2));
  query.limit = prng.chance(1, 2) ? 1000 : prng.below(10);
  return query;
}

// Events that add to the audit trail, of few users, jobs and outcomes: those of a batch that begins
// at `first`. `last_job` goes on with each submission.
inline std::vector<model::EventRecord> audited_events(std::uint64_t first, std::size_t count,
                                                      std::uint64_t& last_job, base::Prng& prng) {
  std::vector<model::EventRecord> events;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t seq = first + i;
    model::EventRecord record{model::EventSeq(seq),
                              base::Instant(1'000'000 + static_cast<std::int64_t>(seq) * 1'000),
                              model::UseCounted{}};
    const auto uid = static_cast<std::uint32_t>(1000 + prng.below(4));
    const model::Origin by{model::Door::kUnixSocket, "user" + std::to_string(uid), uid, seq};
    const std::uint64_t kind = prng.below(4);
    if (kind == 0) {
      model::JobSpec spec;
      spec.uid = static_cast<std::uint32_t>(1000 + prng.below(4));
      spec.user = "user" + std::to_string(spec.uid);
      if (prng.chance(1, 3)) spec.array = model::ArraySpec{{{0, 4, 1}}, 0};
      const std::uint64_t jobs = spec.array ? 5 : 1;
      record.event = model::JobSubmitted{.job = model::JobId(last_job + 1),
                                         .spec = std::make_shared<model::JobSpec>(std::move(spec)),
                                         .by = by};
      last_job += jobs;
    } else if (kind < 3) {
      model::AuditedCall call;
      call.by = by;
      call.action = static_cast<model::AuditAction>(prng.below(model::kAuditActions));
      if (prng.chance(1, 2)) {
        call.jobs = {model::JobId(1 + prng.below(40)), model::JobId(50 + prng.below(9))};
        call.job_count = 2;
        const auto owner = static_cast<std::uint32_t>(1000 + prng.below(4));
        call.owner = {"user" + std::to_string(owner), owner};
      }
      if (prng.chance(1, 3)) call.refusal = {prng.chance(1, 2) ? "NOT_FOUND" : "INTERNAL", "no"};
      record.event = model::CallAudited{std::move(call)};
    }
    events.push_back(std::move(record));
  }
  return events;
}

inline model::AuditQuery random_audit_query(base::Prng& prng, std::uint64_t last_seq) {
  model::AuditQuery query;
  query.max_looked_at = SIZE_MAX;
  if (prng.chance(1, 3)) query.seen_by = static_cast<std::uint32_t>(1000 + prng.below(5));
  if (prng.chance(1, 4)) query.user = "user" + std::to_string(1000 + prng.below(5));
  if (prng.chance(1, 4)) query.owner = "user" + std::to_string(1000 + prng.below(5));
  if (prng.chance(1, 5)) {
    query.action = static_cast<model::AuditAction>(prng.below(model::kAuditActions));
  }
  if (prng.chance(1, 4)) query.outcome = static_cast<model::AuditOutcome>(prng.below(3));
  if (prng.chance(1, 6)) query.code = "NOT_FOUND";
  if (prng.chance(1, 3)) {
    query.first_job = model::JobId(1 + prng.below(70));
    query.last_job = model::JobId(query.first_job.value + prng.below(3));
  }
  const auto moment = [&] {
    return base::Instant(1'000'000 + static_cast<std::int64_t>(prng.below(last_seq + 2)) * 1'000);
  };
  if (prng.chance(1, 4)) query.since = moment();
  if (prng.chance(1, 4)) query.until = moment();
  if (prng.chance(1, 3)) query.before = model::EventSeq(1 + prng.below(last_seq + 2));
  query.limit = prng.chance(1, 2) ? 1'000 : 1 + prng.below(6);
  return query;
}

}  // namespace gpu_platform::store
