#include <algorithm>

#include "base/codec.h"
#include "telemetry/use_summary.h"

// The stored form of a summary. Levels and counters have their names there, because their places
// may differ between versions of the program; one that this program does not know is dropped.

namespace gpu_platform::telemetry {

namespace {

constexpr std::uint64_t kUseVersion = 1;

// Times and amounts beyond these are of damaged bytes, and would make sums overflow.
constexpr std::int64_t kMaxTime = std::int64_t{1} << 62;
constexpr std::int64_t kMaxDuration = base::hours(24 * 3'660).value();

bool is_time(base::Instant at) {
  return at >= base::Instant() && at <= base::Instant(kMaxTime);
}

bool is_plausible(const UseSummary& summary) {
  const auto has_times = [](const GpuUse& gpu) {
    return gpu.memory >= base::Bytes() &&
           std::ranges::all_of(gpu.counters, [](const CounterUse& counter) {
             return is_time(counter.first_at) && is_time(counter.last_at);
           });
  };
  return is_time(summary.from) && is_time(summary.to) &&
         summary.duration() <= base::Duration(kMaxDuration) &&
         summary.interval >= base::Duration() && std::ranges::all_of(summary.gpus, has_times);
}

void put(const LevelUse& level, base::Encoder& out) {
  out.u64(level.count);
  out.i64(level.min);
  out.i64(level.max);
  const auto sum = static_cast<LevelUse::Squares>(level.sum);
  for (const LevelUse::Squares number : {sum, level.squares}) {
    out.u64(static_cast<std::uint64_t>(number >> 64));
    out.u64(static_cast<std::uint64_t>(number));
  }
  out.u64(level.spread.buckets().size());
  for (const auto& [bucket, times] : level.spread.buckets()) {
    out.i64(bucket);
    out.u64(times);
  }
}

LevelUse::Squares take_wide(base::Decoder& in) {
  const LevelUse::Squares high = in.u64();
  return high << 64 | in.u64();
}

LevelUse take_level(base::Decoder& in) {
  LevelUse level;
  level.count = in.u64();
  level.min = in.i64();
  level.max = in.i64();
  level.sum = static_cast<LevelUse::Sum>(take_wide(in));
  level.squares = take_wide(in);
  for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
    const auto bucket = static_cast<std::int16_t>(in.i64());
    level.spread.add(Distribution::middle_of(bucket), in.u64());
  }
  return level;
}

void put(const CounterUse& counter, base::Encoder& out) {
  out.i64(counter.first);
  out.i64(counter.last);
  out.i64(counter.first_at.unix_ns());
  out.i64(counter.last_at.unix_ns());
  out.i64(counter.grown);
}

CounterUse take_counter(base::Decoder& in) {
  CounterUse counter;
  counter.first = in.i64();
  counter.last = in.i64();
  counter.first_at = base::Instant(in.i64());
  counter.last_at = base::Instant(in.i64());
  counter.grown = in.i64();
  return counter;
}

// Those of which `is_known` is true, each with its name.
template <class Uses, class Names, class IsKnown>
void put_named(const Uses& uses, const Names& names, const IsKnown& is_known, base::Encoder& out) {
  out.u64(static_cast<std::uint64_t>(std::ranges::count_if(uses, is_known)));
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (!is_known(uses[i])) continue;
    out.text(names[i]);
    put(uses[i], out);
  }
}

template <class Uses, class Names, class Take>
void take_named(base::Decoder& in, const Names& names, const Take& take, Uses& uses) {
  for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
    const std::string_view name = in.text();
    const auto value = take(in);
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) uses[static_cast<std::size_t>(found - names.begin())] = value;
  }
}

void put(const GpuUse& gpu, base::Encoder& out) {
  out.text(gpu.node);
  out.u64(gpu.index);
  out.text(gpu.uuid);
  out.text(gpu.model);
  out.i64(gpu.memory.value());
  out.boolean(gpu.is_part);
  out.u64(gpu.samples);
  put_named(gpu.levels, kUseLevels, [](const LevelUse& level) { return level.count > 0; }, out);
  put_named(
      gpu.counters, kUseCounters, [](const CounterUse& counter) { return counter.is_known(); },
      out);
  out.u64(gpu.throttled.size());
  for (const auto& [reason, count] : gpu.throttled) {
    out.u64(reason);
    out.u64(count);
  }
  out.u64(gpu.throttle_samples);
  out.u64(gpu.attributed_by.size());
  for (const auto& [way, count] : gpu.attributed_by) {
    out.i64(way);
    out.u64(count);
  }
}

GpuUse take_gpu(base::Decoder& in) {
  GpuUse gpu;
  gpu.node = in.text();
  gpu.index = static_cast<std::uint32_t>(in.u64());
  gpu.uuid = in.text();
  gpu.model = in.text();
  gpu.memory = base::Bytes(in.i64());
  gpu.is_part = in.boolean();
  gpu.samples = in.u64();
  take_named(in, kUseLevels, take_level, gpu.levels);
  take_named(in, kUseCounters, take_counter, gpu.counters);
  for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
    const std::uint64_t reason = in.u64();
    gpu.throttled[reason] = in.u64();
  }
  gpu.throttle_samples = in.u64();
  for (std::size_t n = in.count(); n > 0 && in.ok(); --n) {
    const std::int64_t way = in.i64();
    gpu.attributed_by[way] = in.u64();
  }
  return gpu;
}

}  // namespace

std::string encode_use(const UseSummary& summary) {
  std::string bytes;
  base::Encoder out(bytes);
  out.u64(kUseVersion);
  out.i64(summary.from.unix_ns());
  out.i64(summary.to.unix_ns());
  out.i64(summary.interval.value());
  out.boolean(summary.is_over);
  out.u64(summary.gpus.size());
  for (const GpuUse& gpu : summary.gpus) put(gpu, out);
  return bytes;
}

base::Result<UseSummary> decode_use(std::string_view bytes) {
  base::Decoder in(bytes);
  const auto damaged = [] {
    return base::fail(base::ErrorCode::kDataLoss, "the bytes are no summary of a job's use");
  };
  if (in.u64() != kUseVersion) return damaged();
  UseSummary summary;
  summary.from = base::Instant(in.i64());
  summary.to = base::Instant(in.i64());
  summary.interval = base::Duration(in.i64());
  summary.is_over = in.boolean();
  for (std::size_t n = in.count(); n > 0 && in.ok(); --n) summary.gpus.push_back(take_gpu(in));
  if (!in.ok() || !in.at_end() || !is_plausible(summary)) return damaged();
  return summary;
}

}  // namespace gpu_platform::telemetry
