#include "store/ledger_codec.h"

#include <array>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "model/stored_fields.h"

namespace gpu_platform::store {

using model::LedgerKind;
using model::LedgerLine;

namespace {

constexpr unsigned kKindBits = 2;

// Names that repeat. The first one differs between the GPUs of an attempt.
template <class Line>
auto names(Line& v) {
  return std::tie(v.gpu_uuid, v.node, v.user, v.team, v.gpu_type);
}

// The order is the format: append only.
template <class Line>
auto values(Line& v) {
  return std::tie(v.rest, v.attempt, v.share, v.price, v.capacity, v.segment, v.mode, v.job_kind,
                  v.priority, v.project, v.job_name, v.labels, v.not_billed, v.discount, v.cpus,
                  v.memory_mib, v.core_hour, v.gib_hour, v.amount, v.text, v.by);
}

constexpr std::size_t kNames = std::tuple_size_v<decltype(names(std::declval<LedgerLine&>()))>;
constexpr std::size_t kNumbers = std::tuple_size_v<decltype(values(std::declval<LedgerLine&>()))>;
constexpr std::size_t kTimes = 4;
constexpr std::size_t kBits = kNames + kTimes + kNumbers;
static_assert(1 + kBits == std::tuple_size_v<decltype(model::fields(std::declval<LedgerLine&>()))>,
              "a member of a line is not written");

// Modulo 2^64, so that any times come back as they were. Spans repeat more often than moments.
using Times = std::array<std::uint64_t, kTimes>;

Times times_of(const LedgerLine& line) {
  const auto of = [](model::Millis at) { return static_cast<std::uint64_t>(at); };
  if (line.kind != LedgerKind::kHeld) {
    return {of(line.from), of(line.to) - of(line.from), of(line.started), of(line.ended)};
  }
  return {of(line.from), of(line.to) - of(line.ended), of(line.ended) - of(line.started),
          of(line.started) - of(line.from)};
}

void set_times(const Times& times, LedgerLine& line) {
  const auto set = [](model::Millis& at, std::uint64_t v) { at = static_cast<model::Millis>(v); };
  set(line.from, times[0]);
  if (line.kind != LedgerKind::kHeld) {
    set(line.to, times[0] + times[1]);
    set(line.started, times[2]);
    set(line.ended, times[3]);
    return;
  }
  set(line.started, times[0] + times[3]);
  set(line.ended, times[0] + times[3] + times[2]);
  set(line.to, times[0] + times[3] + times[2] + times[1]);
}

// ---- single members

template <class T>
concept Enumeration = std::is_enum_v<T>;

void put(base::Encoder& encoder, const std::string& v) {
  encoder.text(v);
}
void put(base::Encoder& encoder, std::uint32_t v) {
  encoder.u64(v);
}
void put(base::Encoder& encoder, std::int64_t v) {
  encoder.i64(v);
}
template <class Tag>
void put(base::Encoder& encoder, base::Amount<Tag> v) {
  encoder.i64(v.value());
}
template <Enumeration T>
void put(base::Encoder& encoder, T v) {
  encoder.u64(static_cast<std::uint64_t>(v));
}
void put(base::Encoder& encoder, const model::AttemptId& v) {
  encoder.u64(v.job.value);
  encoder.u64(v.attempt);
}
void put(base::Encoder& encoder, const std::vector<model::Label>& v) {
  encoder.u64(v.size());
  for (const model::Label& label : v) {
    encoder.text(label.key);
    encoder.text(label.value);
  }
}

void get(base::Decoder& decoder, std::string& v) {
  v = decoder.text();
}
void get(base::Decoder& decoder, std::uint32_t& v) {
  const std::uint64_t number = decoder.u64();
  if (number > std::numeric_limits<std::uint32_t>::max()) decoder.reject();
  v = static_cast<std::uint32_t>(number);
}
void get(base::Decoder& decoder, std::int64_t& v) {
  v = decoder.i64();
}
template <class Tag>
void get(base::Decoder& decoder, base::Amount<Tag>& v) {
  v = base::Amount<Tag>(decoder.i64());
}
template <Enumeration T>
void get(base::Decoder& decoder, T& v) {
  const std::uint64_t number = decoder.u64();
  if (number >= model::kValues<T>) decoder.reject();
  v = static_cast<T>(number);
}
void get(base::Decoder& decoder, model::AttemptId& v) {
  v.job.value = decoder.u64();
  get(decoder, v.attempt);
}
void get(base::Decoder& decoder, std::vector<model::Label>& v) {
  v.resize(decoder.count());
  for (model::Label& label : v) {
    get(decoder, label.key);
    get(decoder, label.value);
  }
}

// ---- lines

class LineWriter {
 public:
  explicit LineWriter(const NumberOfName& number_of) : number_of_(number_of) {
    former_.fill(&none_);
  }

  base::Status append(const LedgerLine& line) {
    changes_.clear();
    mask_ = 0;
    bit_ = 0;
    const LedgerLine& former = *std::exchange(former_[static_cast<std::size_t>(line.kind)], &line);
    TRY(add_names(line, former, std::make_index_sequence<kNames>()));
    add_times(times_of(line), times_of(former));
    add_values(line, former, std::make_index_sequence<kNumbers>());
    base::Encoder(payload_).u64(mask_ << kKindBits | static_cast<std::uint64_t>(line.kind));
    payload_ += changes_;
    return {};
  }

  std::string take() { return std::move(payload_); }

 private:
  // The next member, in the order of the bits.
  bool differs(bool is_other) {
    mask_ |= std::uint64_t{is_other} << bit_++;
    return is_other;
  }

  template <std::size_t... I>
  base::Status add_names(const LedgerLine& line, const LedgerLine& former,
                         std::index_sequence<I...>) {
    const auto now = names(line);
    const auto before = names(former);
    base::Status status;
    const auto add = [&](const std::string& name, const std::string& former_name) {
      if (!differs(name != former_name) || !status) return;
      base::Result<std::uint64_t> number = name.empty() ? 0 : number_of_(name);
      if (number) {
        base::Encoder(changes_).u64(*number);
      } else {
        status = std::unexpected(std::move(number).error());
      }
    };
    (add(std::get<I>(now), std::get<I>(before)), ...);
    return status;
  }

  void add_times(const Times& now, const Times& before) {
    base::Encoder encoder(changes_);
    for (std::size_t i = 0; i < kTimes; ++i) {
      if (!differs(now[i] != before[i])) continue;
      encoder.i64(static_cast<std::int64_t>(i == 0 ? now[i] - before[i] : now[i]));
    }
  }

  template <std::size_t... I>
  void add_values(const LedgerLine& line, const LedgerLine& former, std::index_sequence<I...>) {
    const auto now = values(line);
    const auto before = values(former);
    base::Encoder encoder(changes_);
    const auto add = [&](const auto& value, const auto& former_value) {
      if (differs(!(value == former_value))) put(encoder, value);
    };
    (add(std::get<I>(now), std::get<I>(before)), ...);
  }

  const NumberOfName& number_of_;
  const LedgerLine none_;
  std::array<const LedgerLine*, model::kLedgerKinds> former_{};
  std::string payload_;
  std::string changes_;  // of the line that is being written
  std::uint64_t mask_ = 0;
  unsigned bit_ = 0;
};

class LineReader {
 public:
  LineReader(std::string_view payload, const NameOfNumber& name_of)
      : decoder_(payload), name_of_(name_of) {
    for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i].kind = static_cast<LedgerKind>(i);
  }

  // Valid until the next call.
  base::Result<const LedgerLine*> next() {
    const std::uint64_t header = decoder_.u64();
    const std::uint64_t kind = header & ((1U << kKindBits) - 1);
    mask_ = header >> kKindBits;
    if (!decoder_.ok() || kind >= lines_.size() || mask_ >> kBits != 0) return damaged_lines();
    LedgerLine& line = lines_[kind];
    TRY(change_names(line, std::make_index_sequence<kNames>()));
    change_times(line);
    change_values(line, std::make_index_sequence<kNumbers>());
    if (!decoder_.ok()) return damaged_lines();
    return &line;
  }

  bool at_end() const { return decoder_.at_end(); }

  static std::unexpected<base::Error> damaged_lines() {
    return base::fail(base::ErrorCode::kDataLoss, "stored lines cannot be read");
  }

 private:
  bool differs() {
    const bool is_other = (mask_ & 1) != 0;
    mask_ >>= 1;
    return is_other;
  }

  template <std::size_t... I>
  base::Status change_names(LedgerLine& line, std::index_sequence<I...>) {
    const auto now = names(line);
    base::Status status;
    const auto change = [&](std::string& name) {
      if (!differs() || !status) return;
      const std::uint64_t number = decoder_.u64();
      name.clear();
      if (number == 0) return;
      const base::Result<std::string_view> found = name_of_(number);
      if (found) {
        name = *found;
      } else {
        status = std::unexpected(found.error());
      }
    };
    (change(std::get<I>(now)), ...);
    return status;
  }

  void change_times(LedgerLine& line) {
    Times times = times_of(line);
    for (std::size_t i = 0; i < kTimes; ++i) {
      if (!differs()) continue;
      const auto read = static_cast<std::uint64_t>(decoder_.i64());
      times[i] = i == 0 ? times[i] + read : read;
    }
    set_times(times, line);
  }

  template <std::size_t... I>
  void change_values(LedgerLine& line, std::index_sequence<I...>) {
    const auto now = values(line);
    const auto change = [&](auto& value) {
      if (differs()) get(decoder_, value);
    };
    (change(std::get<I>(now)), ...);
  }

  base::Decoder decoder_;
  const NameOfNumber& name_of_;
  std::array<LedgerLine, model::kLedgerKinds> lines_;  // the last one of each kind
  std::uint64_t mask_ = 0;                             // of the members that are still to be read
};

}  // namespace

base::Result<std::string> encode_lines(std::span<const LedgerLine> lines,
                                       const NumberOfName& number_of) {
  LineWriter writer(number_of);
  for (const LedgerLine& line : lines) TRY(writer.append(line));
  return writer.take();
}

base::Status visit_lines(std::string_view payload, std::uint64_t count, const NameOfNumber& name_of,
                         const std::function<base::Status(const LedgerLine&)>& visit) {
  LineReader reader(payload, name_of);
  for (std::uint64_t i = 0; i < count; ++i) {
    TRY_ASSIGN(const LedgerLine* line, reader.next());
    TRY(visit(*line));
  }
  if (!reader.at_end()) return LineReader::damaged_lines();
  return {};
}

}  // namespace gpu_platform::store
