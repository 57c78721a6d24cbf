#include "telemetry/spread_codec.h"

#include <algorithm>

#include "telemetry/rice_code.h"

namespace gpu_platform::telemetry {

namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t count_in(const std::map<std::int16_t, std::uint64_t>& buckets, int first, int last) {
  std::uint64_t count = 0;
  for (auto it = buckets.lower_bound(static_cast<std::int16_t>(first));
       it != buckets.end() && it->first <= last; ++it) {
    count += it->second;
  }
  return count;
}

// Numbers the values of [0, count] by their distance from the expected one: 0, 1 above, 1 below, …
std::uint64_t folded(std::uint64_t value, std::uint64_t expected, std::uint64_t count) {
  const std::uint64_t both = std::min(expected, count - expected);
  if (value > expected) {
    const std::uint64_t above = value - expected;
    return above <= both ? 2 * above - 1 : above + both;
  }
  const std::uint64_t below = expected - value;
  return below <= both ? 2 * below : below + both;
}

std::uint64_t unfolded(std::uint64_t number, std::uint64_t expected, std::uint64_t count) {
  const std::uint64_t both = std::min(expected, count - expected);
  number = std::min(number, count);
  if (number > 2 * both) {
    const std::uint64_t distance = number - both;
    return both == expected ? expected + distance : expected - distance;
  }
  return number % 2 == 1 ? expected + (number + 1) / 2 : expected - number / 2;
}

int halfway(int first, int last) {
  return first + (last - first) / 2;
}

}  // namespace

// The low bits that hold most of a distance of the mean.
int SpreadCodec::Distances::rice() const {
  return static_cast<int>(std::bit_width(sum * 3 / 4 / times));
}

void SpreadCodec::Distances::add(std::uint64_t distance) {
  constexpr std::uint64_t kBound = std::uint64_t{1} << 50;
  constexpr std::uint64_t kMemory = 48;
  sum += std::min(distance, kBound);
  if (++times < kMemory) return;
  sum /= 2;
  times /= 2;
}

SpreadCodec::Distances& SpreadCodec::distances_of(std::uint64_t count, std::uint64_t expected) {
  const auto width = [](std::uint64_t v) {
    return std::min(static_cast<std::size_t>(std::bit_width(v)), kWidths - 1);
  };
  return distances_[width(count) * kWidths + width(std::min(expected, count - expected))];
}

void SpreadCodec::remember(const Distribution& spread) {
  constexpr std::uint64_t kPart = 4;  // the newest has a part of the weight
  constexpr std::uint64_t kBound = std::uint64_t{1} << 40;
  for (auto it = before_.begin(); it != before_.end();) {
    it->second -= (it->second + kPart - 1) / kPart;
    it = it->second == 0 ? before_.erase(it) : std::next(it);
  }
  for (const auto& [bucket, times] : spread.buckets()) {
    before_[bucket] += std::min(times, kBound) * kPart;
  }
}

std::uint64_t SpreadCodec::expected(const Range& range, int middle) const {
  const std::uint64_t whole = count_in(before_, range.first, range.last);
  if (whole == 0) return range.count / 2;
  const std::uint64_t lower = count_in(before_, range.first, middle);
  return static_cast<std::uint64_t>((Wide{range.count} * lower + whole / 2) / whole);
}

void SpreadCodec::encode(const Distribution& spread, const Known& known, BitWriter& out) {
  if (known.first != known.last) {
    encode(spread, known, {known.first, known.last, known.count - 2}, out);
  }
  remember(spread);
}

void SpreadCodec::encode(const Distribution& spread, const Known& known, const Range& range,
                         BitWriter& out) {
  if (range.first == range.last || range.count == 0) return;
  const int middle = halfway(range.first, range.last);
  // The known value of the first bucket is left out; that of the last is never in a lower half.
  const std::uint64_t lower =
      count_in(spread.buckets(), range.first, middle) - (range.first == known.first ? 1 : 0);
  const std::uint64_t likely = expected(range, middle);
  const std::uint64_t number = folded(lower, likely, range.count);
  Distances& known_distances = distances_of(range.count, likely);
  put_rice(number, known_distances.rice(), out);
  known_distances.add(number);
  encode(spread, known, {range.first, middle, lower}, out);
  encode(spread, known, {middle + 1, range.last, range.count - lower}, out);
}

Distribution SpreadCodec::decode(BitReader& in, const Known& known) {
  Distribution spread;
  spread.add_bucket(known.first, 1);
  if (known.first == known.last) {
    spread.add_bucket(known.last, known.count - 1);
  } else {
    spread.add_bucket(known.last, 1);
    decode(in, {known.first, known.last, known.count - 2}, spread);
  }
  remember(spread);
  return spread;
}

void SpreadCodec::decode(BitReader& in, const Range& range, Distribution& spread) {
  if (range.count == 0 || !in.ok()) return;
  if (range.first == range.last) {
    spread.add_bucket(static_cast<std::int16_t>(range.first), range.count);
    return;
  }
  const int middle = halfway(range.first, range.last);
  const std::uint64_t likely = expected(range, middle);
  Distances& known_distances = distances_of(range.count, likely);
  const std::uint64_t number = take_rice(in, known_distances.rice());
  const std::uint64_t lower = unfolded(number, likely, range.count);
  known_distances.add(number);
  decode(in, {range.first, middle, lower}, spread);
  decode(in, {middle + 1, range.last, range.count - lower}, spread);
}

}  // namespace gpu_platform::telemetry
