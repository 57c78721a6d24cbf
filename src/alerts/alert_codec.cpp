#include "alerts/alert_codec.h"

#include "base/codec.h"

namespace gpu_platform::alerts {

namespace {

constexpr std::uint64_t kVersion = 1;

template <class Map>
void put_map(base::Encoder& out, const Map& map) {
  out.u64(map.size());
  for (const auto& [name, value] : map) {
    out.text(name);
    out.text(value);
  }
}

template <class Map>
void get_map(base::Decoder& in, Map& map) {
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
    std::string name(in.text());
    map.insert_or_assign(std::move(name), std::string(in.text()));
  }
}

template <class Enum>
Enum get_enum(base::Decoder& in, Enum last) {
  const std::uint64_t value = in.u64();
  if (value > static_cast<std::uint64_t>(last)) in.reject();
  return static_cast<Enum>(value);
}

void put(base::Encoder& out, const Alert& alert) {
  out.text(alert.fingerprint);
  out.text(alert.rule);
  out.u64(static_cast<std::uint64_t>(alert.severity));
  out.u64(static_cast<std::uint64_t>(alert.state));
  put_map(out, alert.labels);
  out.text(alert.summary);
  out.text(alert.advice);
  out.boolean(alert.value.has_value());
  out.i64(alert.value.value_or(0));
  out.i64(alert.since.unix_ns());
  out.i64(alert.fired.unix_ns());
  out.i64(alert.resolved.unix_ns());
  out.text(alert.acknowledged_by);
  out.text(alert.acknowledge_comment);
  out.u64(alert.told.size());
  for (const std::string& channel : alert.told) out.text(channel);
}

Alert get_alert(base::Decoder& in) {
  Alert alert;
  alert.fingerprint = in.text();
  alert.rule = in.text();
  alert.severity = get_enum(in, Severity::kCritical);
  alert.state = get_enum(in, State::kResolved);
  get_map(in, alert.labels);
  alert.summary = in.text();
  alert.advice = in.text();
  const bool has_value = in.boolean();
  const std::int64_t value = in.i64();
  if (has_value) alert.value = value;
  alert.since = base::Instant(in.i64());
  alert.fired = base::Instant(in.i64());
  alert.resolved = base::Instant(in.i64());
  alert.acknowledged_by = in.text();
  alert.acknowledge_comment = in.text();
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
    alert.told.emplace_back(in.text());
  }
  return alert;
}

base::Status check_end(const base::Decoder& in, std::uint64_t version) {
  if (in.ok() && in.at_end() && version == kVersion) return {};
  return base::fail(base::ErrorCode::kDataLoss, "a note of alerts cannot be read");
}

}  // namespace

std::string encode(const Tracked& tracked) {
  std::string bytes;
  base::Encoder out(bytes);
  out.u64(kVersion);
  put(out, tracked.alert);
  out.text(row_of(tracked.signal).name);
  out.text(tracked.source);
  out.text(tracked.subject);
  out.i64(tracked.held.value());
  return bytes;
}

std::string encode(const Silence& silence) {
  std::string bytes;
  base::Encoder out(bytes);
  out.u64(kVersion);
  out.u64(silence.id);
  put_map(out, silence.matchers);
  out.i64(silence.from.unix_ns());
  out.i64(silence.until.unix_ns());
  out.text(silence.by);
  out.text(silence.comment);
  return bytes;
}

base::Result<Tracked> decode_tracked(std::string_view bytes) {
  base::Decoder in(bytes);
  const std::uint64_t version = in.u64();
  Tracked tracked;
  tracked.alert = get_alert(in);
  const auto signal = parse_signal(in.text());
  if (!signal) in.reject();
  tracked.signal = signal.value_or(Signal::kGpuTemperature);
  tracked.source = in.text();
  tracked.subject = in.text();
  tracked.held = base::Duration(in.i64());
  TRY(check_end(in, version));
  return tracked;
}

base::Result<Silence> decode_silence(std::string_view bytes) {
  base::Decoder in(bytes);
  const std::uint64_t version = in.u64();
  Silence silence;
  silence.id = in.u64();
  get_map(in, silence.matchers);
  silence.from = base::Instant(in.i64());
  silence.until = base::Instant(in.i64());
  silence.by = in.text();
  silence.comment = in.text();
  TRY(check_end(in, version));
  return silence;
}

}  // namespace gpu_platform::alerts
