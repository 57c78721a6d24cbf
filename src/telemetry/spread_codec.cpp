#include "telemetry/spread_codec.h"

#include <algorithm>

#include "telemetry/rice_code.h"

namespace gpu_platform::telemetry {

namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t count_in(const Distribution& spread, int first, int last) {
  std::uint64_t count = 0;
  const auto& buckets = spread.buckets();
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

int middle_of(int first, int last) {
  return first + (last - first) / 2;
}

}  // namespace

// The least at which the mean of the distances takes no more than their low bits.
int SpreadCodec::rice_of(std::uint64_t count) const {
  const Distances& known = distances_[static_cast<std::size_t>(std::bit_width(count))];
  const int guess = static_cast<int>(std::bit_width(count)) / 2;
  if (known.times == 0) return guess;
  return static_cast<int>(std::bit_width(known.sum * 3 / 4 / known.times));
}

void SpreadCodec::learn(std::uint64_t count, std::uint64_t distance) {
  constexpr std::uint64_t kBound = std::uint64_t{1} << 50;
  constexpr std::uint64_t kMemory = 48;
  Distances& known = distances_[static_cast<std::size_t>(std::bit_width(count))];
  known.sum += std::min(distance, kBound);
  if (++known.times == kMemory) known = {known.sum / 2, known.times / 2};
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
  before_ = spread;
}

void SpreadCodec::encode(const Distribution& spread, const Known& known, const Range& range,
                         BitWriter& out) {
  if (range.first == range.last || range.count == 0) return;
  const int middle = middle_of(range.first, range.last);
  // The known value of the first bucket is left out; that of the last is never in a lower half.
  const std::uint64_t lower =
      count_in(spread, range.first, middle) - (range.first == known.first ? 1 : 0);
  const std::uint64_t number = folded(lower, expected(range, middle), range.count);
  put_rice(number, rice_of(range.count), out);
  learn(range.count, number);
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
  before_ = spread;
  return spread;
}

void SpreadCodec::decode(BitReader& in, const Range& range, Distribution& spread) {
  if (range.count == 0 || !in.ok()) return;
  if (range.first == range.last) {
    spread.add_bucket(static_cast<std::int16_t>(range.first), range.count);
    return;
  }
  const int middle = middle_of(range.first, range.last);
  const std::uint64_t number = take_rice(in, rice_of(range.count));
  const std::uint64_t lower = unfolded(number, expected(range, middle), range.count);
  learn(range.count, number);
  decode(in, {range.first, middle, lower}, spread);
  decode(in, {middle + 1, range.last, range.count - lower}, spread);
}

}  // namespace gpu_platform::telemetry
