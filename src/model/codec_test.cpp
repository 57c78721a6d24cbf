#include "model/codec.h"
#include "model/job_spec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/prng.h"
#include "model/testing/random_value.h"

namespace gpu_platform::model {
namespace {

using base::Prng;
using testing::draw;
using testing::drawn;

template <std::size_t... I>
std::vector<Event> draw_each(Prng& random, std::index_sequence<I...>) {
  return {Event(drawn<std::variant_alternative_t<I, AnyEvent>>(random))...};
}

// One event of every kind, each field drawn.
std::vector<Event> draw_events(Prng& random) {
  return draw_each(random, std::make_index_sequence<std::variant_size_v<AnyEvent>>());
}

std::string bytes_of(const EventRecord& record) {
  std::string bytes;
  append_record(record, bytes);
  return bytes;
}

template <class T>
void expect_back(void (*append)(const T&, std::string&),
                 base::Result<T> (*decode)(std::string_view)) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng random(seed);
    const T value = drawn<T>(random);
    std::string bytes;
    append(value, bytes);
    const auto again = decode(bytes);
    ASSERT_TRUE(again) << "seed " << seed;
    EXPECT_EQ(*again, value) << "seed " << seed;
  }
}

TEST(ModelCodec, EverythingThatIsStoredComesBack) {
  expect_back<Job>(append_job, decode_job);
  expect_back<JobArray>(append_array, decode_array);
  expect_back<Node>(append_node, decode_node);
  expect_back<Policy>(append_policy, decode_policy);
  expect_back<PreemptionHold>(append_preemption_hold, decode_preemption_hold);
  expect_back<Reservation>(append_reservation, decode_reservation);
  expect_back<Token>(append_token, decode_token);
  expect_back<RunTimeTeam>(append_run_time_team, decode_run_time_team);
}

TEST(ModelCodec, AuditEntriesComeBack) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Prng random(seed);
    std::vector<AuditEntry> entries;
    std::string bytes;
    for (int i = 0; i < 3; ++i) {
      entries.push_back(drawn<AuditEntry>(random));
      append_audit_entry(entries.back(), bytes);
    }
    const auto found = decode_audit_entries(bytes);
    ASSERT_TRUE(found) << "seed " << seed;
    EXPECT_EQ(*found, entries) << "seed " << seed;
    EXPECT_FALSE(decode_audit_entries(std::string_view(bytes).substr(0, bytes.size() - 1)));
  }
}

TEST(ModelCodec, EventsOfEveryKindComeBack) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Prng random(seed);
    const std::vector<Event> events = draw_events(random);
    ASSERT_EQ(events.size(), std::variant_size_v<AnyEvent>);
    std::string batch;
    std::vector<std::string> expected;
    for (const Event& event : events) {
      const EventRecord record{EventSeq(random.next()), drawn<base::Instant>(random), event};
      append_record(record, batch);
      expected.push_back(bytes_of(record));
    }
    std::vector<std::string> found;
    std::vector<std::string_view> names;
    const base::Status read = for_each_record(batch, [&](const EventRecord& record) {
      found.push_back(bytes_of(record));
      names.push_back(name_of(record.event));
      return base::Status();
    });
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(found, expected) << "seed " << seed;
    for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(names[i], name_of(events[i]));
  }
}

TEST(ModelCodec, EvidenceComesBackWithAllOfIt) {
  Prng random(3);
  Evidence piece = drawn<Evidence>(random);
  piece.kind = EvidenceKind::kXid;
  piece.code = 74;
  piece.value = -7;
  piece.registers = {1, 0, 0xFFFF'FFFF};
  const std::string bytes =
      bytes_of({EventSeq(3), base::Instant(5), EvidenceRecorded{NodeId(1), 2, piece}});
  std::optional<EvidenceRecorded> found;
  ASSERT_TRUE(for_each_record(bytes, [&](const EventRecord& record) {
    found = std::get<EvidenceRecorded>(record.event);
    return base::Status();
  }));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gpu, 2U);
  EXPECT_EQ(found->evidence, piece);
}

TEST(ModelCodec, ATaintOfAGpuAndOneOfANodeAreRecordsOfTheirOwn) {
  const auto number_of = [](const TaintChanged& change) {
    const std::string bytes = bytes_of({EventSeq(3), base::Instant(5), change});
    base::Decoder batch(bytes);
    base::Decoder record(batch.fixed_length_text());
    record.u64();
    record.i64();
    return record.u64();
  };
  EXPECT_EQ(number_of({NodeId(1), 2, {}, false}), 46U);
  EXPECT_EQ(number_of({NodeId(1), {}, {}, false}), 47U);
}

// Its length first, as composites and records have it.
std::string sized(const std::string& bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + bytes;
}

// Taints of former versions had no end.
TEST(ModelCodec, ATaintWithoutAnEndIsRead) {
  const Taint taint{TaintSource::kOperator, TaintEffect::kOut, "a fan", "ann", base::Instant(7)};
  std::string members;
  base::Encoder of_taint(members);
  of_taint.u64(static_cast<std::uint64_t>(taint.source));
  of_taint.u64(static_cast<std::uint64_t>(taint.effect));
  of_taint.text(taint.text);
  of_taint.text(taint.by);
  of_taint.i64(taint.at.unix_ns());
  std::string change;
  base::Encoder(change).u64(1);  // the node
  change += sized(members);
  base::Encoder(change).boolean(false);  // is_lifted
  std::string record;
  base::Encoder of_record(record);
  of_record.u64(3);
  of_record.i64(5);
  of_record.u64(47);
  record += sized(change);
  std::optional<Taint> found;
  const base::Status read = for_each_record(sized(record), [&](const EventRecord& one) {
    found = std::get<TaintChanged>(one.event).taint;
    return base::Status();
  });
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(found, taint);
}

TEST(ModelCodec, JobsThatShareASpecificationHaveTheSameBytesAsAlone) {
  Prng random(7);
  std::string together;
  std::string alone;
  JobAppender appender;
  std::shared_ptr<const JobSpec> shared;
  for (int i = 0; i < 200; ++i) {
    Job job = drawn<Job>(random);
    if (shared != nullptr && random.chance(2, 3)) job.spec = shared;
    shared = job.spec;
    appender.append(job, together);
    append_job(job, alone);
  }
  EXPECT_EQ(together, alone);
}

// ---- other versions

std::uint32_t length_at(const std::string& bytes, std::size_t at) {
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + at, sizeof length);
  return length;
}

void set_length_at(std::string& bytes, std::size_t at, std::uint32_t length) {
  std::memcpy(bytes.data() + at, &length, sizeof length);
}

TEST(ModelCodec, FieldsThatANewerVersionAppendedAreSkipped) {
  Prng random(5);
  const Job job = drawn<Job>(random);
  std::string bytes;
  append_job(job, bytes);
  bytes += "fields of the future";
  set_length_at(bytes, 0, static_cast<std::uint32_t>(bytes.size() - 4));
  const auto again = decode_job(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, job);

  // Inside a record, and with another record behind it.
  std::string batch = bytes_of({EventSeq(1), base::Instant(2), JobEligible{JobId(3)}});
  batch += std::string("\x07", 1);  // a field after the job's number
  set_length_at(batch, 0, length_at(batch, 0) + 1);
  // record: length, seq (1 byte), time (1), number (1), then the event's own length
  constexpr std::size_t kEventLength = 4 + 3;
  set_length_at(batch, kEventLength, length_at(batch, kEventLength) + 1);
  batch += bytes_of({EventSeq(2), base::Instant(2), JobEligible{JobId(4)}});
  std::vector<JobId> jobs;
  ASSERT_TRUE(for_each_record(batch, [&](const EventRecord& record) {
    jobs.push_back(job_of(record.event));
    return base::Status();
  }));
  EXPECT_EQ(jobs, (std::vector<JobId>{JobId(3), JobId(4)}));
}

// Of values that end with a composite: its length comes first. One that ends with another goes
// whole.
void drop_last_composite(std::string& bytes) {
  for (std::size_t at = 1; at + 4 <= bytes.size(); ++at) {
    std::uint32_t length = 0;
    std::memcpy(&length, bytes.data() + at, 4);
    if (length == bytes.size() - at - 4) return bytes.resize(at);
  }
  FAIL() << "no composite is last";
}

// A new field breaks replay of old logs: not here.
TEST(ModelCodec, FieldsThatAnOlderVersionDidNotHaveKeepTheirDefaults) {
  Policy policy;
  policy.max_queue_size = 7;
  policy.health_max_out_percent = 20;
  std::string bytes;
  append_policy(policy, bytes);
  bytes.resize(bytes.size() - 2);  // `ledger_keep`, the newest field, and `budgets`: an empty list
  drop_last_composite(bytes);      // `billing`
  drop_last_composite(bytes);      // `load_rules`
  bytes.resize(bytes.size() - 1);  // `pod_annotations`: an empty list
  drop_last_composite(bytes);      // `sharing`
  set_length_at(bytes, 0, static_cast<std::uint32_t>(bytes.size() - 4));
  auto again = decode_policy(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, policy);

  bytes.resize(bytes.size() - 3);  // the three before it, a byte each
  set_length_at(bytes, 0, static_cast<std::uint32_t>(bytes.size() - 4));
  again = decode_policy(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->max_queue_size, 7U);
  EXPECT_EQ(again->health_max_out_percent, Policy().health_max_out_percent);
}

TEST(ModelCodec, ATokenOfAnOlderVersionHoldsByNoNames) {
  Token token;
  token.id = TokenId(7);
  token.used_at = base::Instant(5);
  std::string bytes;
  append_token(token, bytes);
  bytes.pop_back();  // that it has names
  set_length_at(bytes, 0, static_cast<std::uint32_t>(bytes.size() - 4));
  const auto again = decode_token(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, token);
  EXPECT_FALSE(again->proven.has_value());
}

TEST(ModelCodec, ARecordTypeThatIsNotKnownIsDamageAndNamed) {
  std::string batch = bytes_of({EventSeq(9), base::Instant(2), JobEligible{JobId(3)}});
  batch[4 + 2] = 0x7f;
  const base::Status read =
      for_each_record(batch, [](const EventRecord&) { return base::Status(); });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, base::ErrorCode::kDataLoss);
  EXPECT_NE(read.error().message.find("event 9"), std::string::npos) << read.error().message;
}

TEST(ModelCodec, AnEnumeratorThatIsNotKnownIsDamage) {
  Prng random(5);
  Job job = drawn<Job>(random);
  job.state = static_cast<JobState>(kJobStates);
  std::string bytes;
  append_job(job, bytes);
  EXPECT_FALSE(decode_job(bytes));
}

TEST(ModelCodec, DamagedBytesGiveAnErrorOrAValueAndNothingElse) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Prng random(seed);
    std::string bytes;
    append_job(drawn<Job>(random), bytes);
    const std::size_t at = random.below(bytes.size());
    if (random.chance(1, 3)) {
      bytes.resize(at);
    } else {
      bytes[at] = static_cast<char>(random.below(256));
    }
    const auto decoded = decode_job(bytes);
    if (decoded) {
      std::string again;
      append_job(*decoded, again);
      const auto twice = decode_job(again);
      ASSERT_TRUE(twice) << seed;
      std::string bytes_again;
      append_job(*twice, bytes_again);
      EXPECT_EQ(bytes_again, again) << "seed " << seed;
    } else {
      EXPECT_EQ(decoded.error().code, base::ErrorCode::kDataLoss);
    }
  }
}

TEST(ModelCodec, AVisitorsErrorEndsTheReading) {
  std::string batch;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    append_record({EventSeq(i), base::Instant(2), JobEligible{JobId(i)}}, batch);
  }
  int visits = 0;
  const base::Status read = for_each_record(batch, [&](const EventRecord&) -> base::Status {
    ++visits;
    return base::fail(base::ErrorCode::kUnavailable, "enough");
  });
  EXPECT_EQ(visits, 1);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "enough");
}

}  // namespace
}  // namespace gpu_platform::model
