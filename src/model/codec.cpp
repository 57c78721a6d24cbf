#include "model/codec.h"
#include "model/job_spec.h"

#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/codec.h"
#include "model/stored_fields.h"

namespace gpu_platform::model {

namespace {

using base::Decoder;
using base::Encoder;

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
constexpr std::uint64_t kRecordNumber<UnmanagedProcessesChanged> = 14;
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
constexpr std::uint64_t kRecordNumber<PreemptionHoldDropped> = 23;
template <>
constexpr std::uint64_t kRecordNumber<JobOverdue> = 31;
template <>
constexpr std::uint64_t kRecordNumber<StartPredicted> = 24;
template <>
constexpr std::uint64_t kRecordNumber<YieldPutOff> = 25;
template <>
constexpr std::uint64_t kRecordNumber<CallAudited> = 32;
template <>
constexpr std::uint64_t kRecordNumber<StoreRepaired> = 33;
template <>
constexpr std::uint64_t kRecordNumber<JobsRaised> = 34;
template <>
constexpr std::uint64_t kRecordNumber<SignalRequested> = 35;
template <>
constexpr std::uint64_t kRecordNumber<ReservationChanged> = 36;
template <>
constexpr std::uint64_t kRecordNumber<StepRecorded> = 37;
template <>
constexpr std::uint64_t kRecordNumber<TokenCreated> = 38;
template <>
constexpr std::uint64_t kRecordNumber<TokenRevoked> = 39;
template <>
constexpr std::uint64_t kRecordNumber<TokenUsed> = 40;
template <>
constexpr std::uint64_t kRecordNumber<TeamSet> = 41;
template <>
constexpr std::uint64_t kRecordNumber<TeamRemoved> = 42;
template <>
constexpr std::uint64_t kRecordNumber<GpuUnavailableChanged> = 43;
template <>
constexpr std::uint64_t kRecordNumber<NodeServiceChanged> = 44;
template <>
constexpr std::uint64_t kRecordNumber<NodeOthersChanged> = 45;
template <>
constexpr std::uint64_t kRecordNumber<StoredGpuTaint> = 46;
template <>
constexpr std::uint64_t kRecordNumber<StoredNodeTaint> = 47;
template <>
constexpr std::uint64_t kRecordNumber<EvidenceRecorded> = 48;
template <>
constexpr std::uint64_t kRecordNumber<VerdictWithheld> = 49;
template <>
constexpr std::uint64_t kRecordNumber<PriceSet> = 50;
template <>
constexpr std::uint64_t kRecordNumber<PriceWithdrawn> = 51;
template <>
constexpr std::uint64_t kRecordNumber<BudgetSet> = 52;
template <>
constexpr std::uint64_t kRecordNumber<BudgetRemoved> = 53;
template <>
constexpr std::uint64_t kRecordNumber<BudgetsCounted> = 54;
template <>
constexpr std::uint64_t kRecordNumber<LedgerCorrected> = 55;

constexpr std::size_t kLengthBytes = 4;

// The specification that was written last, and its bytes.
struct WrittenSpec {
  std::shared_ptr<const JobSpec>& spec;
  std::string& bytes;
};

struct Writer {
  std::string& out;
  WrittenSpec* last_spec = nullptr;
  Encoder encoder{out};

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
      specification(v);
    } else if constexpr (is_shared<T>::value) {
      write(const_cast<typename is_shared<T>::Value&>(*v));
    } else if constexpr (std::is_same_v<T, SpecPatch>) {
      patch(v);
    } else {
      composite(v);
    }
  }

  void specification(const std::shared_ptr<const JobSpec>& v) {
    if (last_spec != nullptr && last_spec->spec == v) {
      out.append(last_spec->bytes);
      return;
    }
    const std::size_t at = out.size();
    write(const_cast<JobSpec&>(*v));  // fields() serves both directions
    if (last_spec == nullptr) return;
    last_spec->spec = v;
    last_spec->bytes.assign(out, at);
  }

  // Writes the number of members, and then the number and value of each.
  void patch(const SpecPatch& v) {
    std::uint64_t count = 0;
    for_each_given(v, [&](const auto&) { ++count; });
    encoder.u64(count);
    JobSpec values = v.values();
    for_each_given(v, [&](const auto& field) {
      encoder.u64(field.number);
      write(field.of(values));
    });
  }

  // Length first, so that readers can skip what they do not know.
  template <IsListed T>
  void composite(T& v) {
    static_assert(lists_every_member<T>(), "a member of the struct is not in its list of fields");
    const std::size_t at = out.size();
    out.append(kLengthBytes, '\0');
    std::apply([this](auto&... member) { (this->write(member), ...); }, fields(v));
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

  template <class T>
  void read_unless_at_end(T& v) {
    if (decoder.at_end() || bad) {
      // A job with a specification always keeps it.
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
    } else if constexpr (std::is_same_v<T, SpecPatch>) {
      patch(v);
    } else {
      composite(v);
    }
  }

  void patch(SpecPatch& v) {
    for (std::size_t left = decoder.count(); left > 0 && !bad; --left) {
      const std::uint64_t number = decoder.u64();
      bool is_known = false;
      for_each_spec_field([&](const auto& field) {
        if (field.change == Change::kNever || field.number != number) return;
        is_known = true;
        typename std::remove_cvref_t<decltype(field)>::Type value{};
        read(value);
        v.set(field.member, std::move(value));
      });
      if (!is_known || !decoder.ok()) bad = true;
    }
  }

  template <IsListed T>
  void composite(T& v) {
    const std::string_view body = decoder.fixed_length_text();
    if (!decoder.ok()) {
      bad = true;
      return;
    }
    Reader inner(body);
    std::apply([&inner](auto&... member) { (inner.read_unless_at_end(member), ...); }, fields(v));
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
void write_event(Writer& writer, const E& event) {
  static_assert(kRecordNumber<E> != 0, "every event needs a record number");
  writer.encoder.u64(kRecordNumber<E>);
  writer.write(const_cast<E&>(event));
}

// One event with two records: a taint of a GPU is stored otherwise than one of a node.
void write_event(Writer& writer, const TaintChanged& event) {
  if (event.gpu) {
    write_event(writer, StoredGpuTaint{{event.node, *event.gpu}, event.taint, event.is_lifted});
  } else {
    write_event(writer, StoredNodeTaint{event.node, event.taint, event.is_lifted});
  }
}

template <class E>
bool read_event_as(std::uint64_t number, Reader& reader, Event& out) {
  if (number != kRecordNumber<E>) return false;
  reader.read_unless_at_end(out.emplace<E>());
  return true;
}

template <>
bool read_event_as<TaintChanged>(std::uint64_t number, Reader& reader, Event& out) {
  if (number == kRecordNumber<StoredGpuTaint>) {
    StoredGpuTaint stored;
    reader.read_unless_at_end(stored);
    out =
        TaintChanged{stored.gpu.node, stored.gpu.index, std::move(stored.taint), stored.is_lifted};
    return true;
  }
  if (number != kRecordNumber<StoredNodeTaint>) return false;
  StoredNodeTaint stored;
  reader.read_unless_at_end(stored);
  out = TaintChanged{stored.node, {}, std::move(stored.taint), stored.is_lifted};
  return true;
}

template <std::size_t... I>
bool read_event(std::uint64_t number, Reader& reader, Event& out, std::index_sequence<I...>) {
  return (read_event_as<std::variant_alternative_t<I, AnyEvent>>(number, reader, out) || ...);
}

}  // namespace

void append_record(const EventRecord& record, std::string& out) {
  const std::size_t at = out.size();
  out.append(kLengthBytes, '\0');
  Writer writer{out};
  writer.encoder.u64(record.seq.value);
  writer.encoder.i64(record.at.unix_ns());
  std::visit([&](const auto& event) { write_event(writer, event); }, record.event);
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
                                  std::make_index_sequence<std::variant_size_v<AnyEvent>>());
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

void JobAppender::append(const Job& job, std::string& out) {
  WrittenSpec last{spec_, spec_bytes_};
  Writer{out, &last}.write(const_cast<Job&>(job));
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

void append_preemption_hold(const PreemptionHold& hold, std::string& out) {
  Writer{out}.write(const_cast<PreemptionHold&>(hold));
}
base::Result<PreemptionHold> decode_preemption_hold(std::string_view bytes) {
  return decode_whole<PreemptionHold>(bytes, "preemption hold");
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

void append_reservation(const Reservation& reservation, std::string& out) {
  Writer{out}.write(const_cast<Reservation&>(reservation));
}
base::Result<Reservation> decode_reservation(std::string_view bytes) {
  return decode_whole<Reservation>(bytes, "reservation");
}

void append_token(const Token& token, std::string& out) {
  Writer{out}.write(const_cast<Token&>(token));
}
base::Result<Token> decode_token(std::string_view bytes) {
  return decode_whole<Token>(bytes, "token");
}

void append_run_time_team(const RunTimeTeam& team, std::string& out) {
  Writer{out}.write(const_cast<RunTimeTeam&>(team));
}
base::Result<RunTimeTeam> decode_run_time_team(std::string_view bytes) {
  return decode_whole<RunTimeTeam>(bytes, "team");
}

void append_price_book(const PriceBook& prices, std::string& out) {
  Writer{out}.write(const_cast<PriceBook&>(prices));
}
base::Result<PriceBook> decode_price_book(std::string_view bytes) {
  return decode_whole<PriceBook>(bytes, "prices");
}

void append_budget_state(const BudgetState& state, std::string& out) {
  Writer{out}.write(const_cast<BudgetState&>(state));
}
base::Result<BudgetState> decode_budget_state(std::string_view bytes) {
  return decode_whole<BudgetState>(bytes, "budget");
}

}  // namespace gpu_platform::model
