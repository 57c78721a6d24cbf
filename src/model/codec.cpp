#include "model/codec.h"

#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/codec.h"

namespace gpu_platform::model {

namespace {

using base::Decoder;
using base::Encoder;

// fields(value, f) calls f on every member in its stored order. One list serves both directions.
// The order is the format: append only.

template <class F>
void fields(GpuClaim& v, F& f) {
  f(v.gpu_index, v.share, v.memory);
}
template <class F>
void fields(NodeAllocation& v, F& f) {
  f(v.node, v.claims, v.cpus, v.memory, v.level);
}
template <class F>
void fields(Allocation& v, F& f) {
  f(v.nodes, v.speed);
}
template <class F>
void fields(Priority& v, F& f) {
  f(v.priority_class, v.number);
}
template <class F>
void fields(ResourceRequest& v, F& f) {
  f(v.gpus, v.share_per_gpu, v.gpu_types, v.gpu_memory, v.cpus, v.memory, v.numa, v.nodes,
    v.cross_node, v.within, v.nodelist, v.exclude, v.gpu_speeds, v.window);
}
template <class F>
void fields(Label& v, F& f) {
  f(v.key, v.value);
}
template <class F>
void fields(LimitSignal& v, F& f) {
  f(v.signal, v.before, v.first_process_only);
}
template <class F>
void fields(TerminalSize& v, F& f) {
  f(v.columns, v.rows);
}
template <class F>
void fields(IndexRun& v, F& f) {
  f(v.first, v.last, v.step);
}
template <class F>
void fields(ArraySpec& v, F& f) {
  f(v.runs, v.limit);
}
template <class F>
void fields(DependencyTarget& v, F& f) {
  f(v.job, v.whole_array);
}
template <class F>
void fields(Dependency& v, F& f) {
  f(v.kind, v.on);
}
template <class F>
void fields(TargetOutcome& v, F& f) {
  f(v.open, v.failed, v.failed_as);
}
template <class F>
void fields(NewDependencies& v, F& f) {
  f(v.asked, v.waits_for, v.failure);
}
template <class F>
void fields(JobSpec& v, F& f) {
  f(v.name, v.user, v.uid, v.gid, v.team, v.project, v.priority, v.kind, v.command, v.workdir,
    v.output, v.umask, v.environment_ref, v.request, v.time_limit, v.retries, v.labels,
    v.request_id, v.limit_signal, v.error, v.truncate_output, v.notify, v.prolog, v.epilog,
    v.takes_input, v.terminal, v.idle_timeout, v.preemptible, v.begin, v.deadline, v.dependencies,
    v.array, v.per_gpu, v.expected_time, v.wait_timeout, v.complete_on_exit_zero);
}
template <class F>
void fields(Exit& v, F& f) {
  f(v.code, v.signal, v.lost);
}
template <class F>
void fields(Usage& v, F& f) {
  f(v.cpu_time, v.peak_memory);
}
template <class F>
void fields(StartForecast& v, F& f) {
  f(v.made_at, v.by_limits, v.p50, v.p90, v.basis, v.after);
}
template <class F>
void fields(Attempt& v, F& f) {
  f(v.number, v.state, v.why, v.allocation, v.boot_id, v.pid, v.requested_at, v.started_at,
    v.ended_at, v.released_at, v.exit, v.stop_reason, v.reason, v.kill_requested, v.by, v.detail,
    v.usage, v.time_limit, v.made_room, v.passed, v.is_borrowed, v.yields_at);
}
template <class F>
void fields(Job& v, F& f) {
  f(v.id, v.spec, v.state, v.submitted_at, v.eligible_at, v.ended_at, v.reason, v.by, v.detail,
    v.failures, v.losses, v.attempts, v.hold, v.prolog_failed_on, v.array_id, v.array_index,
    v.waits_for, v.dependency_failure, v.preemptions, v.overdue_since, v.forecast);
}
template <class F>
void fields(JobArray& v, F& f) {
  f(v.id, v.members, v.size, v.limit, v.outcome);
}
template <class F>
void fields(GpuInfo& v, F& f) {
  f(v.uuid, v.model, v.type, v.memory, v.pci_address, v.minor, v.numa_node);
}
template <class F>
void fields(GpuLink& v, F& f) {
  f(v.kind, v.nvlinks, v.nvlink_version);
}
template <class F>
void fields(NumaNode& v, F& f) {
  f(v.id, v.socket, v.cpus, v.memory);
}
template <class F>
void fields(NetworkPlace& v, F& f) {
  f(v.domain, v.rack, v.zone);
}
template <class F>
void fields(Topology& v, F& f) {
  f(v.numa_nodes, v.links);
}
template <class F>
void fields(NodeInfo& v, F& f) {
  f(v.name, v.emulated, v.boot_id, v.cpus, v.memory, v.driver_version, v.gpus, v.topology,
    v.network);
}
template <class F>
void fields(AttemptId& v, F& f) {
  f(v.job, v.attempt);
}
template <class F>
void fields(GpuRef& v, F& f) {
  f(v.node, v.index);
}
template <class F>
void fields(GpuHolder& v, F& f) {
  f(v.attempt, v.share, v.memory);
}
template <class F>
void fields(Gpu& v, F& f) {
  f(v.info, v.state, v.cause, v.holders, v.is_reported, v.strangers, v.avoid_strangers,
    v.changed_by, v.changed_at);
}
template <class F>
void fields(Node& v, F& f) {
  f(v.id, v.state, v.cause, v.name, v.emulated, v.boot_id, v.driver_version, v.cpus, v.memory,
    v.cpus_used, v.memory_used, v.gpus, v.topology, v.is_heard, v.prolog_failed_for,
    v.epilog_failed_for, v.network);
}
template <class F>
void fields(Quota& v, F& f) {
  f(v.max_gpus, v.max_running_jobs, v.max_queued_jobs, v.gpu_hours, v.guaranteed_gpus,
    v.borrow_limit, v.lend_limit);
}
template <class F>
void fields(Member& v, F& f) {
  f(v.user, v.shares);
}
template <class F>
void fields(Team& v, F& f) {
  f(v.name, v.parent, v.shares, v.members, v.quota);
}
template <class F>
void fields(NamedQuota& v, F& f) {
  f(v.name, v.quota);
}
template <class F>
void fields(Organisation& v, F& f) {
  f(v.teams, v.of_each_user, v.of_users, v.of_projects, v.period, v.allocation,
    v.reserved_thousandths);
}
template <class F>
void fields(GpuWeight& v, F& f) {
  f(v.type, v.thousandths);
}
template <class F>
void fields(FairShare& v, F& f) {
  f(v.half_life, v.interval, v.gpu_weights);
}
template <class F>
void fields(OrderWeights& v, F& f) {
  f(v.age, v.priority, v.fair_share, v.size);
}
template <class F>
void fields(Policy& v, F& f) {
  f(v.priority_points[0], v.priority_points[1], v.priority_points[2], v.priority_points[3],
    v.max_queue_size, v.max_time_limit, v.max_loss_retries, v.retry_backoff, v.max_retry_backoff,
    v.requeue_on_node_loss, v.auto_retry_failed_jobs, v.stop_grace, v.request_id_lifetime,
    v.allow_root_jobs, v.strangers, v.highest_user_priority, v.can_notify, v.reservation_depth,
    v.idle_timeout, v.organisation, v.fair_share, v.weights, v.order, v.allow_preemption,
    v.preempt_below, v.max_preemptions_per_job, v.preempt_min_runtime, v.max_array_size,
    v.overdue_after, v.backfill_by_prediction, v.audit_keep, v.max_audit_entries,
    v.max_queue_percent_per_user, v.max_specification_bytes, v.max_specification_bytes_per_user,
    v.percent_for_root, v.own_uid);
}
template <class F>
void fields(Claim& v, F& f) {
  f(v.beneficiary, v.allocation, v.victims, v.decided_at, v.reclaims);
}
template <class F>
void fields(WindowPart& v, F& f) {
  f(v.node, v.gpus, v.whole_node);
}
template <class F>
void fields(Window& v, F& f) {
  f(v.name, v.begin, v.end, v.maintenance, v.teams, v.users, v.parts, v.let_finish, v.made_by,
    v.made_at);
}
template <class F>
void fields(PolicyApplied& v, F& f) {
  f(v.policy, v.by);
}
template <class F>
void fields(NodeSeen& v, F& f) {
  f(v.node, v.info);
}
template <class F>
void fields(NodeStateChanged& v, F& f) {
  f(v.node, v.trigger, v.cause, v.by);
}
template <class F>
void fields(GpuStateChanged& v, F& f) {
  f(v.gpu, v.trigger, v.cause, v.by);
}
template <class F>
void fields(GpuStrangersChanged& v, F& f) {
  f(v.gpu, v.text, v.avoid);
}
template <class F>
void fields(JobSubmitted& v, F& f) {
  f(v.job, v.spec, v.hold, v.waits_for, v.dependency_failure, v.by);
}
template <class F>
void fields(Origin& v, F& f) {
  f(v.door, v.user, v.uid, v.pid);
}
template <class F>
void fields(JobOwner& v, F& f) {
  f(v.user, v.uid);
}
template <class F>
void fields(Refusal& v, F& f) {
  f(v.code, v.text);
}
template <class F>
void fields(AuditedCall& v, F& f) {
  f(v.by, v.action, v.owner, v.jobs, v.job_count, v.gpus, v.gpu_count, v.target, v.refusal,
    v.request_id, v.calls, v.since);
}
template <class F>
void fields(AuditEntry& v, F& f) {
  f(v.seq, v.at, v.call);
}
template <class F>
void fields(CallAudited& v, F& f) {
  f(v.call);
}
template <class F>
void fields(JobHoldChanged& v, F& f) {
  f(v.job, v.hold, v.by);
}
template <class F>
void fields(JobChanged& v, F& f) {
  f(v.job, v.priority, v.time_limit, v.name, v.labels, v.by, v.begin, v.deadline, v.dependencies,
    v.expected_time, v.preemptible);
}
template <class F>
void fields(JobEligible& v, F& f) {
  f(v.job);
}
template <class F>
void fields(StartRequested& v, F& f) {
  f(v.attempt, v.allocation, v.why, v.price_class, v.boot_id, v.passed, v.yields_at);
}
template <class F>
void fields(AttemptStarted& v, F& f) {
  f(v.attempt, v.pid, v.started_at);
}
template <class F>
void fields(StopRequested& v, F& f) {
  f(v.attempt, v.reason, v.without_grace, v.by);
}
template <class F>
void fields(AttemptEnded& v, F& f) {
  f(v.attempt, v.ended_at, v.exit, v.reason, v.detail, v.usage);
}
template <class F>
void fields(AttemptReleased& v, F& f) {
  f(v.attempt, v.epilog_failure);
}
template <class F>
void fields(JobRequeued& v, F& f) {
  f(v.job, v.eligible_at, v.preempted, v.counts_as_failure, v.asked_for, v.prolog_failed, v.holds);
}
template <class F>
void fields(JobEnded& v, F& f) {
  f(v.job, v.how, v.reason, v.by, v.detail);
}
template <class F>
void fields(UseCounted&, F&) {}
template <class F>
void fields(QuotaPeriodBegan& v, F& f) {
  f(v.begin);
}

template <class F>
void fields(JobOverdue& v, F& f) {
  f(v.job);
}
template <class F>
void fields(PreemptionDecided& v, F& f) {
  f(v.job, v.claimed, v.victims, v.reclaims);
}
template <class F>
void fields(ReservationMade& v, F& f) {
  f(v.window);
}
template <class F>
void fields(ReservationEnded& v, F& f) {
  f(v.name, v.by);
}
template <class F>
void fields(ClaimDropped& v, F& f) {
  f(v.job);
}
template <class F>
void fields(YieldPutOff& v, F& f) {
  f(v.attempt, v.yields_at);
}
template <class F>
void fields(StartForeseen& v, F& f) {
  f(v.job, v.forecast);
}

// Numbers of the journal's records: never reused, never changed.
template <class E>
constexpr std::uint64_t kRecordNumber = 0;
template <>
constexpr std::uint64_t kRecordNumber<PolicyApplied> = 1;
template <>
constexpr std::uint64_t kRecordNumber<NodeSeen> = 2;
template <>
constexpr std::uint64_t kRecordNumber<NodeStateChanged> = 3;
template <>
constexpr std::uint64_t kRecordNumber<GpuStateChanged> = 4;
template <>
constexpr std::uint64_t kRecordNumber<JobSubmitted> = 5;
template <>
constexpr std::uint64_t kRecordNumber<JobEligible> = 6;
template <>
constexpr std::uint64_t kRecordNumber<StartRequested> = 7;
template <>
constexpr std::uint64_t kRecordNumber<AttemptStarted> = 8;
template <>
constexpr std::uint64_t kRecordNumber<StopRequested> = 9;
template <>
constexpr std::uint64_t kRecordNumber<AttemptEnded> = 10;
template <>
constexpr std::uint64_t kRecordNumber<AttemptReleased> = 11;
template <>
constexpr std::uint64_t kRecordNumber<JobRequeued> = 12;
template <>
constexpr std::uint64_t kRecordNumber<JobEnded> = 13;
template <>
constexpr std::uint64_t kRecordNumber<GpuStrangersChanged> = 14;
template <>
constexpr std::uint64_t kRecordNumber<JobHoldChanged> = 15;
template <>
constexpr std::uint64_t kRecordNumber<JobChanged> = 16;
template <>
constexpr std::uint64_t kRecordNumber<UseCounted> = 17;
template <>
constexpr std::uint64_t kRecordNumber<QuotaPeriodBegan> = 18;
template <>
constexpr std::uint64_t kRecordNumber<PreemptionDecided> = 20;
template <>
constexpr std::uint64_t kRecordNumber<ReservationMade> = 21;
template <>
constexpr std::uint64_t kRecordNumber<ReservationEnded> = 22;
template <>
constexpr std::uint64_t kRecordNumber<ClaimDropped> = 23;
template <>
constexpr std::uint64_t kRecordNumber<JobOverdue> = 31;
template <>
constexpr std::uint64_t kRecordNumber<StartForeseen> = 24;
template <>
constexpr std::uint64_t kRecordNumber<YieldPutOff> = 25;
template <>
constexpr std::uint64_t kRecordNumber<CallAudited> = 32;

// How many values each stored enumeration has: a larger number in a record is damage.
template <class T>
constexpr std::size_t kValues = 0;
template <>
constexpr std::size_t kValues<JobState> = kJobStates;
template <>
constexpr std::size_t kValues<AllocationMode> = kAllocationModes;
template <>
constexpr std::size_t kValues<JobTrigger> = kJobTriggers;
template <>
constexpr std::size_t kValues<AttemptState> = kAttemptStates;
template <>
constexpr std::size_t kValues<LinkKind> = kLinkKinds;
template <>
constexpr std::size_t kValues<PlacementLevel> = kPlacementLevels;
template <>
constexpr std::size_t kValues<NumaPolicy> = kNumaPolicies;
template <>
constexpr std::size_t kValues<NetworkLevel> = kNetworkLevels;
template <>
constexpr std::size_t kValues<GpuState> = kGpuStates;
template <>
constexpr std::size_t kValues<GpuTrigger> = kGpuTriggers;
template <>
constexpr std::size_t kValues<NodeState> = kNodeStates;
template <>
constexpr std::size_t kValues<NodeTrigger> = kNodeTriggers;
template <>
constexpr std::size_t kValues<PriorityClass> = 4;
template <>
constexpr std::size_t kValues<JobKind> = 4;
template <>
constexpr std::size_t kValues<Lost> = 3;
template <>
constexpr std::size_t kValues<EndReason> = kEndReasons;
template <>
constexpr std::size_t kValues<NotifyOn> = kNotifyOns;
template <>
constexpr std::size_t kValues<Hold> = kHolds;
template <>
constexpr std::size_t kValues<StrangerPolicy> = kStrangerPolicies;
template <>
constexpr std::size_t kValues<StartWhy> = kStartWhys;
template <>
constexpr std::size_t kValues<DependencyKind> = kDependencyKinds;

template <>
constexpr std::size_t kValues<QueueOrder> = kQueueOrders;
template <>
constexpr std::size_t kValues<QuotaPeriod> = kQuotaPeriods;

template <>
constexpr std::size_t kValues<ForecastBasis> = kForecastBases;
template <>
constexpr std::size_t kValues<Door> = kDoors;
template <>
constexpr std::size_t kValues<AuditAction> = kAuditActions;

template <class T>
struct is_shared : std::false_type {};
template <class T>
struct is_shared<base::Shared<T>> : std::true_type {
  using Value = T;
};
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
concept HasValueMember = requires(T v) {
  { v.value } -> std::convertible_to<std::uint64_t>;
};
template <class T>
concept IsAmount = requires(const T v) {
  { v.value() } -> std::same_as<std::int64_t>;
  T(std::int64_t{0});
};

constexpr std::size_t kLengthBytes = 4;

struct Writer {
  std::string& out;
  Encoder encoder{out};

  template <class... T>
  void operator()(T&... v) {
    (write(v), ...);
  }

  template <class T>
  void write(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      encoder.boolean(v);
    } else if constexpr (std::is_enum_v<T>) {
      encoder.u64(static_cast<std::uint64_t>(v));
    } else if constexpr (std::is_unsigned_v<T>) {
      encoder.u64(v);
    } else if constexpr (std::is_integral_v<T>) {
      encoder.i64(v);
    } else if constexpr (std::is_same_v<T, std::string>) {
      encoder.text(v);
    } else if constexpr (std::is_same_v<T, base::Instant>) {
      encoder.i64(v.unix_ns());
    } else if constexpr (IsAmount<T>) {
      encoder.i64(v.value());
    } else if constexpr (HasValueMember<T>) {
      encoder.u64(v.value);
    } else if constexpr (is_vector<T>::value) {
      encoder.u64(v.size());
      for (auto& element : v) write(element);
    } else if constexpr (is_optional<T>::value) {
      encoder.boolean(v.has_value());
      if (v) write(*v);
    } else if constexpr (std::is_same_v<T, std::shared_ptr<const JobSpec>>) {
      write(const_cast<JobSpec&>(*v));  // fields() takes one signature for both directions
    } else if constexpr (is_shared<T>::value) {
      write(const_cast<typename is_shared<T>::Value&>(*v));
    } else {
      composite(v);
    }
  }

  // Length first, so that readers can skip what they do not know.
  template <class T>
  void composite(T& v) {
    const std::size_t at = out.size();
    out.append(kLengthBytes, '\0');
    fields(v, *this);
    const auto size = static_cast<std::uint32_t>(out.size() - at - kLengthBytes);
    std::memcpy(out.data() + at, &size, kLengthBytes);
  }
};

// Reads what Writer wrote. Input that ends early leaves defaults; input that is no such value sets
// bad.
struct Reader {
  Decoder decoder;
  bool bad = false;

  explicit Reader(std::string_view bytes) : decoder(bytes) {}

  template <class... T>
  void operator()(T&... v) {
    (read_unless_at_end(v), ...);
  }

  template <class T>
  void read_unless_at_end(T& v) {
    if (decoder.at_end() || bad) {
      // Whatever has a specification is never without one.
      if constexpr (std::is_same_v<T, std::shared_ptr<const JobSpec>>) {
        if (v == nullptr) v = std::make_shared<JobSpec>();
      }
      return;
    }
    read(v);
    if (!decoder.ok()) bad = true;
  }

  template <class T>
  void read_unsigned(T& v) {
    const std::uint64_t wide = decoder.u64();
    if (wide > std::numeric_limits<T>::max()) bad = true;
    v = static_cast<T>(wide);
  }

  template <class T>
  void read(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      v = decoder.boolean();
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> raw = 0;
      read_unsigned(raw);
      if (raw >= kValues<T>) bad = true;
      v = static_cast<T>(raw);
    } else if constexpr (std::is_unsigned_v<T>) {
      read_unsigned(v);
    } else if constexpr (std::is_integral_v<T>) {
      const std::int64_t wide = decoder.i64();
      if (wide < std::numeric_limits<T>::min() || wide > std::numeric_limits<T>::max()) bad = true;
      v = static_cast<T>(wide);
    } else if constexpr (std::is_same_v<T, std::string>) {
      v = decoder.text();
    } else if constexpr (std::is_same_v<T, base::Instant> || IsAmount<T>) {
      v = T(decoder.i64());
    } else if constexpr (HasValueMember<T>) {
      v.value = decoder.u64();
    } else if constexpr (is_vector<T>::value) {
      const std::size_t count = decoder.count();
      v.resize(count);
      for (auto& element : v) read(element);
    } else if constexpr (is_optional<T>::value) {
      v.reset();
      if (decoder.boolean()) read(v.emplace());
    } else if constexpr (std::is_same_v<T, std::shared_ptr<const JobSpec>>) {
      auto spec = std::make_shared<JobSpec>();
      read(*spec);
      v = std::move(spec);
    } else if constexpr (is_shared<T>::value) {
      typename is_shared<T>::Value value;
      read(value);
      v = std::move(value);
    } else {
      composite(v);
    }
  }

  template <class T>
  void composite(T& v) {
    const std::string_view body = decoder.fixed_length_text();
    if (!decoder.ok()) {
      bad = true;
      return;
    }
    Reader inner(body);
    fields(v, inner);
    if (inner.bad) bad = true;
  }
};

template <class T>
base::Result<T> decode_whole(std::string_view bytes, std::string_view what) {
  T value{};
  Reader reader(bytes);
  reader.read_unless_at_end(value);
  if (bytes.empty() || reader.bad || !reader.decoder.at_end()) {
    return base::fail(base::ErrorCode::kDataLoss,
                      fmt::format("stored {} of {} bytes cannot be read", what, bytes.size()));
  }
  return value;
}

template <class E>
bool read_event_as(std::uint64_t number, Reader& reader, Event& out) {
  if (number != kRecordNumber<E>) return false;
  reader.read_unless_at_end(out.emplace<E>());
  return true;
}

template <std::size_t... I>
bool read_event(std::uint64_t number, Reader& reader, Event& out, std::index_sequence<I...>) {
  return (read_event_as<std::variant_alternative_t<I, Event>>(number, reader, out) || ...);
}

}  // namespace

void append_record(const EventRecord& record, std::string& out) {
  const std::size_t at = out.size();
  out.append(kLengthBytes, '\0');
  Writer writer{out};
  writer.encoder.u64(record.seq.value);
  writer.encoder.i64(record.at.unix_ns());
  std::visit(
      [&](const auto& event) {
        using E = std::remove_cvref_t<decltype(event)>;
        static_assert(kRecordNumber<E> != 0, "every event needs a record number");
        writer.encoder.u64(kRecordNumber<E>);
        writer.write(const_cast<E&>(event));
      },
      record.event);
  const auto size = static_cast<std::uint32_t>(out.size() - at - kLengthBytes);
  std::memcpy(out.data() + at, &size, kLengthBytes);
}

base::Status for_each_record(std::string_view bytes,
                             const std::function<base::Status(const EventRecord&)>& visit) {
  Decoder batch(bytes);
  EventRecord record;
  while (!batch.at_end()) {
    Reader reader(batch.fixed_length_text());
    record.seq.value = reader.decoder.u64();
    record.at = base::Instant(reader.decoder.i64());
    const std::uint64_t number = reader.decoder.u64();
    const bool known = batch.ok() && reader.decoder.ok() &&
                       read_event(number, reader, record.event,
                                  std::make_index_sequence<std::variant_size_v<Event>>());
    if (!known || reader.bad) {
      return base::fail(
          base::ErrorCode::kDataLoss,
          fmt::format("event {} (record type {}) cannot be read", record.seq.value, number));
    }
    TRY(visit(record));
  }
  return {};
}

void append_job(const Job& job, std::string& out) {
  Writer{out}.write(const_cast<Job&>(job));
}

base::Result<Job> decode_job(std::string_view bytes) {
  TRY_ASSIGN(Job job, decode_whole<Job>(bytes, "job"));
  if (job.spec == nullptr) job.spec = std::make_shared<JobSpec>();
  return job;
}

void append_array(const JobArray& array, std::string& out) {
  Writer{out}.write(const_cast<JobArray&>(array));
}
base::Result<JobArray> decode_array(std::string_view bytes) {
  return decode_whole<JobArray>(bytes, "array");
}

void append_node(const Node& node, std::string& out) {
  Writer{out}.write(const_cast<Node&>(node));
}
base::Result<Node> decode_node(std::string_view bytes) {
  return decode_whole<Node>(bytes, "node");
}

void append_policy(const Policy& policy, std::string& out) {
  Writer{out}.write(const_cast<Policy&>(policy));
}
base::Result<Policy> decode_policy(std::string_view bytes) {
  return decode_whole<Policy>(bytes, "policy");
}

void append_claim(const Claim& claim, std::string& out) {
  Writer{out}.write(const_cast<Claim&>(claim));
}
base::Result<Claim> decode_claim(std::string_view bytes) {
  return decode_whole<Claim>(bytes, "claim");
}

void append_audit_entry(const AuditEntry& entry, std::string& out) {
  Writer{out}.write(const_cast<AuditEntry&>(entry));
}
base::Result<std::vector<AuditEntry>> decode_audit_entries(std::string_view bytes) {
  std::vector<AuditEntry> entries;
  Reader reader(bytes);
  while (!reader.decoder.at_end() && !reader.bad) reader.read(entries.emplace_back());
  if (reader.bad || !reader.decoder.ok()) {
    return base::fail(base::ErrorCode::kDataLoss, "stored audit entries cannot be read");
  }
  return entries;
}

void append_window(const Window& window, std::string& out) {
  Writer{out}.write(const_cast<Window&>(window));
}
base::Result<Window> decode_window(std::string_view bytes) {
  return decode_whole<Window>(bytes, "window");
}

}  // namespace gpu_platform::model
