#include "model/codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"

namespace gpu_platform::model {
namespace {

using base::Prng;

std::string draw_text(Prng& random) {
  std::string text;
  for (std::uint64_t n = random.below(20); n > 0; --n) {
    text.push_back(static_cast<char>(random.below(256)));
  }
  return text;
}

std::int64_t draw_number(Prng& random) {
  return static_cast<std::int64_t>(random.next()) >> random.below(64);
}

base::Instant draw_instant(Prng& random) {
  return base::Instant(draw_number(random));
}

template <class E>
E draw_enum(Prng& random, std::uint64_t values) {
  return static_cast<E>(random.below(values));
}

template <class T, class Draw>
std::vector<T> draw_list(Prng& random, Draw draw) {
  std::vector<T> list(random.below(4));
  for (T& element : list) element = draw(random);
  return list;
}

GpuClaim draw_claim(Prng& random) {
  return {static_cast<std::uint32_t>(random.next()), base::GpuShare(draw_number(random)),
          base::Bytes(draw_number(random))};
}

Allocation draw_allocation(Prng& random) {
  Allocation allocation;
  allocation.nodes = draw_list<NodeAllocation>(random, [](Prng& r) {
    return NodeAllocation{NodeId(r.next()), draw_list<GpuClaim>(r, draw_claim),
                          static_cast<std::uint32_t>(r.next()), base::Bytes(draw_number(r)),
                          draw_enum<PlacementLevel>(r, kPlacementLevels)};
  });
  return allocation;
}

Exit draw_exit(Prng& random) {
  Exit exit;
  if (random.chance(1, 2)) exit.code = static_cast<std::uint8_t>(random.below(256));
  if (random.chance(1, 2)) exit.signal = static_cast<std::uint8_t>(random.below(256));
  exit.lost = draw_enum<Lost>(random, 3);
  return exit;
}

JobSpec draw_spec(Prng& r) {
  JobSpec spec;
  spec.name = draw_text(r);
  spec.user = draw_text(r);
  spec.uid = static_cast<std::uint32_t>(r.next());
  spec.gid = static_cast<std::uint32_t>(r.next());
  spec.team = draw_text(r);
  spec.project = draw_text(r);
  spec.priority = {draw_enum<PriorityClass>(r, 4), static_cast<std::uint8_t>(r.below(10))};
  spec.kind = draw_enum<JobKind>(r, 4);
  spec.command = draw_list<std::string>(r, draw_text);
  spec.workdir = draw_text(r);
  spec.output = draw_text(r);
  spec.umask = static_cast<std::uint32_t>(r.below(0777));
  spec.environment_ref = draw_text(r);
  spec.request.gpus = static_cast<std::uint32_t>(r.next());
  spec.request.share_per_gpu = base::GpuShare(draw_number(r));
  spec.request.gpu_types = draw_list<std::string>(r, draw_text);
  spec.request.gpu_memory = base::Bytes(draw_number(r));
  spec.request.window = draw_text(r);
  if (r.chance(1, 2)) spec.request.cpus = static_cast<std::uint32_t>(r.next());
  if (r.chance(1, 2)) spec.request.memory = base::Bytes(draw_number(r));
  spec.time_limit = base::Duration(draw_number(r));
  spec.retries = static_cast<std::uint32_t>(r.next());
  spec.labels = draw_list<Label>(r, [](Prng& p) { return Label{draw_text(p), draw_text(p)}; });
  spec.request_id = draw_text(r);
  if (r.chance(1, 2)) {
    spec.limit_signal = {static_cast<std::uint8_t>(r.next()), base::Duration(draw_number(r)),
                         r.chance(1, 2)};
  }
  spec.error = draw_text(r);
  spec.truncate_output = r.chance(1, 2);
  spec.notify = draw_list<NotifyOn>(r, [](Prng& p) { return draw_enum<NotifyOn>(p, kNotifyOns); });
  spec.prolog = draw_text(r);
  spec.epilog = draw_text(r);
  spec.takes_input = r.chance(1, 2);
  if (r.chance(1, 2)) {
    spec.terminal = {static_cast<std::uint16_t>(r.next()), static_cast<std::uint16_t>(r.next())};
  }
  if (r.chance(1, 2)) spec.idle_timeout = base::Duration(draw_number(r));
  if (r.chance(1, 2)) spec.preemptible = r.chance(1, 2);
  if (r.chance(1, 2)) spec.expected_time = base::Duration(draw_number(r));
  if (r.chance(1, 2)) spec.wait_timeout = base::Duration(draw_number(r));
  spec.complete_on_exit_zero = r.chance(1, 2);
  return spec;
}

Attempt draw_attempt(Prng& r) {
  Attempt a;
  a.number = static_cast<std::uint32_t>(r.next());
  a.state = draw_enum<AttemptState>(r, kAttemptStates);
  a.why = draw_enum<StartWhy>(r, kStartWhys);
  a.allocation = draw_allocation(r);
  a.boot_id = draw_text(r);
  a.pid = r.next();
  a.requested_at = draw_instant(r);
  a.started_at = draw_instant(r);
  a.ended_at = draw_instant(r);
  a.released_at = draw_instant(r);
  a.exit = draw_exit(r);
  a.stop_reason = draw_enum<EndReason>(r, kEndReasons);
  a.reason = draw_enum<EndReason>(r, kEndReasons);
  a.kill_requested = r.chance(1, 2);
  a.by = draw_text(r);
  a.detail = draw_text(r);
  a.usage = {base::Duration(draw_number(r)), base::Bytes(draw_number(r))};
  a.time_limit = base::Duration(draw_number(r));
  a.is_borrowed = r.chance(1, 2);
  a.made_room = draw_list<JobId>(r, [](Prng& p) { return JobId(p.next()); });
  a.passed = JobId(r.next());
  a.yields_at = draw_instant(r);
  return a;
}

StartForecast draw_forecast(Prng& r) {
  StartForecast forecast{
      draw_instant(r), draw_instant(r), draw_instant(r), draw_instant(r), {}, {}};
  forecast.basis = draw_enum<ForecastBasis>(r, kForecastBases);
  forecast.after = draw_list<JobId>(r, [](Prng& p) { return JobId(p.next()); });
  return forecast;
}

Job draw_job(Prng& r) {
  Job job;
  job.id = JobId(r.next());
  job.spec = std::make_shared<const JobSpec>(draw_spec(r));
  job.state = draw_enum<JobState>(r, kJobStates);
  job.submitted_at = draw_instant(r);
  job.eligible_at = draw_instant(r);
  job.ended_at = draw_instant(r);
  job.reason = draw_enum<EndReason>(r, kEndReasons);
  job.by = draw_text(r);
  job.detail = draw_text(r);
  job.failures = static_cast<std::uint32_t>(r.next());
  job.losses = static_cast<std::uint32_t>(r.next());
  job.attempts = draw_list<Attempt>(r, draw_attempt);
  job.hold = draw_enum<Hold>(r, kHolds);
  job.prolog_failed_on = draw_list<NodeId>(r, [](Prng& p) { return NodeId(p.next()); });
  job.preemptions = static_cast<std::uint32_t>(r.next());
  if (r.chance(1, 2)) job.forecast = draw_forecast(r);
  return job;
}

GpuLink draw_link(Prng& r) {
  return {draw_enum<LinkKind>(r, kLinkKinds), static_cast<std::uint32_t>(r.next()),
          static_cast<std::uint32_t>(r.next())};
}

NumaNode draw_numa_node(Prng& r) {
  return {static_cast<std::uint32_t>(r.next()), static_cast<std::int32_t>(r.next()), draw_text(r),
          base::Bytes(draw_number(r))};
}

Topology draw_topology(Prng& r) {
  return {draw_list<NumaNode>(r, draw_numa_node), draw_list<GpuLink>(r, draw_link)};
}

GpuInfo draw_gpu_info(Prng& r) {
  return {draw_text(r),
          draw_text(r),
          draw_text(r),
          base::Bytes(draw_number(r)),
          draw_text(r),
          static_cast<std::uint32_t>(r.next()),
          static_cast<std::int32_t>(r.next())};
}

Node draw_node(Prng& r) {
  Node node;
  node.id = NodeId(r.next());
  node.state = draw_enum<NodeState>(r, kNodeStates);
  node.cause = draw_text(r);
  node.name = draw_text(r);
  node.emulated = r.chance(1, 2);
  node.boot_id = draw_text(r);
  node.driver_version = draw_text(r);
  node.cpus = static_cast<std::uint32_t>(r.next());
  node.memory = base::Bytes(draw_number(r));
  node.cpus_used = static_cast<std::uint32_t>(r.next());
  node.memory_used = base::Bytes(draw_number(r));
  node.gpus = draw_list<Gpu>(r, [](Prng& p) {
    Gpu gpu{draw_gpu_info(p), draw_enum<GpuState>(p, kGpuStates), draw_text(p), {}};
    gpu.holders = draw_list<GpuHolder>(p, [](Prng& q) {
      return GpuHolder{{JobId(q.next()), static_cast<std::uint32_t>(q.next())},
                       base::GpuShare(draw_number(q)),
                       base::Bytes(draw_number(q))};
    });
    gpu.is_reported = p.chance(1, 2);
    gpu.strangers = draw_text(p);
    gpu.avoid_strangers = p.chance(1, 2);
    gpu.changed_by = draw_text(p);
    gpu.changed_at = draw_instant(p);
    return gpu;
  });
  node.topology = draw_topology(r);
  node.is_heard = r.chance(1, 2);
  node.prolog_failed_for = JobId(r.next());
  node.epilog_failed_for = JobId(r.next());
  node.network = {draw_text(r), draw_text(r), draw_text(r)};
  return node;
}

Policy draw_policy(Prng& r) {
  Policy policy;
  for (std::int64_t& points : policy.priority_points) points = draw_number(r);
  policy.max_queue_size = r.next();
  policy.max_time_limit = base::Duration(draw_number(r));
  policy.max_loss_retries = static_cast<std::uint32_t>(r.next());
  policy.retry_backoff = base::Duration(draw_number(r));
  policy.max_retry_backoff = base::Duration(draw_number(r));
  policy.requeue_on_node_loss = r.chance(1, 2);
  policy.auto_retry_failed_jobs = r.chance(1, 2);
  policy.allow_root_jobs = r.chance(1, 2);
  policy.strangers = draw_enum<StrangerPolicy>(r, kStrangerPolicies);
  policy.reservation_depth = static_cast<std::uint32_t>(r.below(100));
  policy.highest_user_priority = draw_enum<PriorityClass>(r, 4);
  policy.can_notify = r.chance(1, 2);
  policy.stop_grace = base::Duration(draw_number(r));
  policy.request_id_lifetime = base::Duration(draw_number(r));
  policy.allow_preemption = r.chance(1, 2);
  policy.preempt_below = draw_enum<PriorityClass>(r, 4);
  policy.max_preemptions_per_job = static_cast<std::uint32_t>(r.next());
  policy.preempt_min_runtime = base::Duration(draw_number(r));
  policy.max_queue_percent_per_user = static_cast<std::uint32_t>(r.below(101));
  policy.max_specification_bytes = base::Bytes(draw_number(r));
  policy.max_specification_bytes_per_user = base::Bytes(draw_number(r));
  policy.percent_for_root = static_cast<std::uint32_t>(r.below(101));
  policy.own_uid = static_cast<std::uint32_t>(r.next());
  return policy;
}

std::vector<AttemptId> draw_attempts(Prng& r) {
  return draw_list<AttemptId>(
      r, [](Prng& p) { return AttemptId{JobId(p.next()), static_cast<std::uint32_t>(p.next())}; });
}

JobChanged draw_change(Prng& r) {
  JobChanged change;
  change.job = JobId(r.next());
  if (r.chance(1, 2)) change.priority = priority_of_number(static_cast<std::uint8_t>(r.below(10)));
  if (r.chance(1, 2)) change.time_limit = base::Duration(draw_number(r));
  if (r.chance(1, 2)) change.name = draw_text(r);
  if (r.chance(1, 2)) change.labels = {{draw_text(r), draw_text(r)}};
  change.by = draw_text(r);
  if (r.chance(1, 2)) change.preemptible = r.chance(1, 2);
  return change;
}

// One event of every kind, each field drawn.
Window draw_window(Prng& r) {
  const auto texts = [](Prng& from) { return draw_text(from); };
  return {draw_text(r),
          draw_instant(r),
          draw_instant(r),
          r.chance(1, 2),
          draw_list<std::string>(r, texts),
          draw_list<std::string>(r, texts),
          {{NodeId(r.next()), r.next(), r.chance(1, 2)}},
          draw_attempts(r),
          draw_text(r),
          draw_instant(r)};
}

Origin draw_origin(Prng& r) {
  return {draw_enum<Door>(r, kDoors), draw_text(r), static_cast<std::uint32_t>(r.next()), r.next()};
}

AuditedCall draw_call(Prng& r) {
  AuditedCall call;
  call.by = draw_origin(r);
  call.action = draw_enum<AuditAction>(r, kAuditActions);
  if (r.chance(1, 2)) call.owner = {draw_text(r), static_cast<std::uint32_t>(r.next())};
  call.jobs = {JobId(r.next()), JobId(r.next())};
  call.job_count = r.next();
  call.gpus = {draw_text(r)};
  call.gpu_count = r.next();
  call.target = draw_text(r);
  if (r.chance(1, 2)) call.refusal = {draw_text(r), draw_text(r)};
  call.request_id = draw_text(r);
  call.calls = r.next();
  call.since = draw_instant(r);
  return call;
}

std::vector<Event> draw_events(Prng& r) {
  const AttemptId attempt{JobId(r.next()), static_cast<std::uint32_t>(r.next())};
  const Node node = draw_node(r);
  NodeInfo info{node.name,
                node.emulated,
                node.boot_id,
                node.cpus,
                node.memory,
                node.driver_version,
                draw_list<GpuInfo>(r, draw_gpu_info),
                draw_topology(r),
                {draw_text(r), draw_text(r), draw_text(r)}};
  return {
      PolicyApplied{draw_policy(r), draw_text(r)},
      NodeSeen{node.id, std::move(info)},
      NodeStateChanged{node.id, draw_enum<NodeTrigger>(r, kNodeTriggers), draw_text(r),
                       draw_text(r)},
      GpuStateChanged{{node.id, static_cast<std::uint32_t>(r.next())},
                      draw_enum<GpuTrigger>(r, kGpuTriggers),
                      draw_text(r),
                      draw_text(r)},
      JobSubmitted{.job = attempt.job,
                   .spec = std::make_shared<JobSpec>(draw_spec(r)),
                   .hold = draw_enum<Hold>(r, kHolds),
                   .by = draw_origin(r)},
      JobEligible{attempt.job},
      StartRequested{attempt, draw_allocation(r), draw_enum<StartWhy>(r, kStartWhys), draw_text(r),
                     draw_text(r), JobId(r.next()), draw_instant(r)},
      AttemptStarted{attempt, r.next(), draw_instant(r)},
      StopRequested{attempt, draw_enum<EndReason>(r, kEndReasons), r.chance(1, 2), draw_text(r)},
      AttemptEnded{attempt,
                   draw_instant(r),
                   draw_exit(r),
                   draw_enum<EndReason>(r, kEndReasons),
                   draw_text(r),
                   {base::Duration(draw_number(r)), base::Bytes(draw_number(r))}},
      AttemptReleased{attempt, draw_text(r)},
      JobRequeued{attempt.job, draw_instant(r), r.chance(1, 2), r.chance(1, 2), r.chance(1, 2)},
      JobEnded{attempt.job, draw_enum<JobTrigger>(r, kJobTriggers),
               draw_enum<EndReason>(r, kEndReasons), draw_text(r), draw_text(r)},
      GpuStrangersChanged{
          {node.id, static_cast<std::uint32_t>(r.next())}, draw_text(r), r.chance(1, 2)},
      JobHoldChanged{attempt.job, draw_enum<Hold>(r, kHolds), draw_text(r)},
      draw_change(r),
      UseCounted{},
      QuotaPeriodBegan{draw_instant(r)},
      PreemptionDecided{attempt.job, draw_allocation(r), draw_attempts(r), r.chance(1, 2)},
      JobOverdue{attempt.job},
      ReservationMade{draw_window(r)},
      ReservationEnded{draw_text(r), draw_text(r)},
      ClaimDropped{attempt.job},
      StartForeseen{attempt.job, draw_forecast(r)},
      YieldPutOff{attempt, draw_instant(r)},
      CallAudited{draw_call(r)},
  };
}

std::string bytes_of(const EventRecord& record) {
  std::string bytes;
  append_record(record, bytes);
  return bytes;
}

TEST(ModelCodec, JobsNodesAndPoliciesComeBack) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Prng random(seed);
    const Job job = draw_job(random);
    std::string bytes;
    append_job(job, bytes);
    const auto job_again = decode_job(bytes);
    ASSERT_TRUE(job_again) << "seed " << seed;
    EXPECT_EQ(*job_again, job) << "seed " << seed;
    const Node node = draw_node(random);
    bytes.clear();
    append_node(node, bytes);
    const auto node_again = decode_node(bytes);
    ASSERT_TRUE(node_again) << "seed " << seed;
    EXPECT_EQ(*node_again, node) << "seed " << seed;
    const Claim claim{JobId(random.next()), draw_allocation(random), draw_attempts(random),
                      draw_instant(random)};
    bytes.clear();
    append_claim(claim, bytes);
    const auto claim_again = decode_claim(bytes);
    ASSERT_TRUE(claim_again) << "seed " << seed;
    EXPECT_EQ(*claim_again, claim) << "seed " << seed;
    const Policy policy = draw_policy(random);
    bytes.clear();
    append_policy(policy, bytes);
    const auto policy_again = decode_policy(bytes);
    ASSERT_TRUE(policy_again) << "seed " << seed;
    EXPECT_EQ(*policy_again, policy) << "seed " << seed;
  }
}

TEST(ModelCodec, AuditEntriesComeBack) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Prng random(seed);
    std::vector<AuditEntry> entries;
    std::string bytes;
    for (int i = 0; i < 3; ++i) {
      entries.push_back({EventSeq(random.next()), draw_instant(random), draw_call(random)});
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
    ASSERT_EQ(events.size(), std::variant_size_v<Event>);
    std::string batch;
    std::vector<std::string> expected;
    for (const Event& event : events) {
      const EventRecord record{EventSeq(random.next()), draw_instant(random), event};
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
  const Job job = draw_job(random);
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

// A new field breaks replay of old logs: not here.
TEST(ModelCodec, FieldsThatAnOlderVersionDidNotHaveKeepTheirDefaults) {
  Policy policy;
  policy.max_queue_size = 7;
  policy.own_uid = 7;  // the newest field, one byte
  std::string bytes;
  append_policy(policy, bytes);
  bytes.pop_back();
  set_length_at(bytes, 0, static_cast<std::uint32_t>(bytes.size() - 4));
  const auto again = decode_policy(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->max_queue_size, 7U);
  EXPECT_EQ(again->own_uid, 0U);
}

TEST(ModelCodec, APolicyKeepsItsOrganisation) {
  Policy policy;
  policy.organisation =
      Organisation{.teams = {{"research", {}, 3, {{"ann", 1}, {"bob", 2}}, {.max_gpus = 64}},
                             {"vision",
                              "research",
                              1,
                              {},
                              {.max_running_jobs = 0,
                               .gpu_hours = 7,
                               .guaranteed_gpus = 4,
                               .borrow_limit = 5,
                               .lend_limit = 6}}},
                   .of_each_user = {.max_gpus = 8},
                   .of_users = {{"ann", {.max_queued_jobs = 5}}},
                   .of_projects = {{"demo", {.gpu_hours = 100}}},
                   .period = QuotaPeriod::kMonth,
                   .allocation = AllocationMode::kHybrid,
                   .reserved_thousandths = 400};
  policy.fair_share = {base::hours(5), base::seconds(6), {{"H100", 2000}}};
  policy.weights = {1, 2, 3, 4};
  std::string bytes;
  append_policy(policy, bytes);
  const auto again = decode_policy(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, policy);
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
  Job job = draw_job(random);
  job.state = static_cast<JobState>(kJobStates);
  std::string bytes;
  append_job(job, bytes);
  EXPECT_FALSE(decode_job(bytes));
}

TEST(ModelCodec, DamagedBytesGiveAnErrorOrAValueAndNothingElse) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Prng random(seed);
    std::string bytes;
    append_job(draw_job(random), bytes);
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
      EXPECT_FALSE(again.empty());
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
