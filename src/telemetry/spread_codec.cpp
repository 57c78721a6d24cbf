#include "telemetry/spread_codec.h"

#include <algorithm>

#include "telemetry/rice_code.h"

namespace gpu_platform::telemetry {

namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t count_in(const std::vector<Distribution::Bucket>& buckets, int first, int last) {
  std::uint64_t count = 0;
  for (auto it = std::ranges::lower_bound(buckets, first, {}, &Distribution::Bucket::number);
       it != buckets.end() && it->number <= last; ++it) {
    count += it->times;
  }
  return count;
}

// a * b / c, rounded to the nearest; the result has 64 bits. Division of 128 bits is slow, and
// numbers are nearly always small.
std::uint64_t scaled(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 31;
  if (a < kSmall && b < kSmall && c < kSmall) return (a * b + c / 2) / c;
  return static_cast<std::uint64_t>((Wide{a} * b + c / 2) / c);
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

}  // namespace

SpreadCodec::Distances& SpreadCodec::distances_of(std::uint64_t count, std::uint64_t expected) {
  const auto width = [](std::uint64_t v) {
    return std::min(static_cast<std::size_t>(std::bit_width(v)), kWidths - 1);
  };
  return distances_[width(count) * kWidths + width(std::min(expected, count - expected))];
}

void SpreadCodec::remember(const Distribution& spread) {
  constexpr std::uint64_t kPart = 4;  // the newest has a part of the weight
  constexpr std::uint64_t kBound = std::uint64_t{1} << 40;
  const auto faded = [](std::uint64_t weight) { return weight - (weight + kPart - 1) / kPart; };
  new_before_.resize(before_.size() + spread.buckets().size() + 1);
  auto end = new_before_.begin();
  std::uint64_t below = 0;
  const auto add = [&](int bucket, std::uint64_t weight) {
    *end = {bucket, weight, below};
    below += weight;
    if (weight > 0) ++end;
  };
  auto old = before_.begin();
  const auto old_end = before_.end() - 1;
  for (const auto& [bucket, times] : spread.buckets()) {
    for (; old != old_end && old->bucket < bucket; ++old) add(old->bucket, faded(old->weight));
    const bool is_known = old != old_end && old->bucket == bucket;
    const std::uint64_t kept = is_known ? faded((old++)->weight) : 0;
    add(bucket, kept + std::min(times, kBound) * kPart);
  }
  for (; old != old_end; ++old) add(old->bucket, faded(old->weight));
  add(kBehind, 0);
  new_before_.erase(end + 1, new_before_.end());
  before_.swap(new_before_);
}

SpreadCodec::Range SpreadCodec::whole(const Known& known) const {
  const auto begin = std::ranges::lower_bound(before_, int{known.first}, {}, &Weight::bucket);
  const auto end = std::ranges::upper_bound(before_, int{known.last}, {}, &Weight::bucket);
  return {.first = known.first,
          .last = known.last,
          .count = known.count - 2,
          .begin = static_cast<std::size_t>(begin - before_.begin()),
          .end = static_cast<std::size_t>(end - before_.begin())};
}

SpreadCodec::Cut SpreadCodec::cut(const Range& range) const {
  const int middle = range.first + (range.last - range.first) / 2;
  if (range.begin == range.end) return {middle, range.count / 2, range.begin};
  const auto places = std::span(before_).subspan(range.begin, range.end - range.begin);
  const auto above = std::ranges::upper_bound(places, middle, {}, &Weight::bucket);
  const std::size_t upper = range.begin + static_cast<std::size_t>(above - places.begin());
  const std::uint64_t below = before_[range.begin].below;
  return {middle,
          scaled(range.count, before_[upper].below - below, before_[range.end].below - below),
          upper};
}

void SpreadCodec::encode(const Distribution& spread, const Known& known, BitWriter& out) {
  if (known.first != known.last) encode(spread, known, whole(known), out);
  remember(spread);
}

void SpreadCodec::encode(const Distribution& spread, const Known& known, const Range& range,
                         BitWriter& out) {
  if (range.first == range.last || range.count == 0) return;
  const auto [middle, likely, upper] = cut(range);
  // The known value of the first bucket is left out; that of the last is never in a lower half.
  const std::uint64_t lower =
      count_in(spread.buckets(), range.first, middle) - (range.first == known.first ? 1 : 0);
  const std::uint64_t number = folded(lower, likely, range.count);
  Distances& known_distances = distances_of(range.count, likely);
  put_rice(number, known_distances.rice(), out);
  known_distances.add(number);
  encode(spread, known, {range.first, middle, lower, range.begin, upper}, out);
  encode(spread, known, {middle + 1, range.last, range.count - lower, upper, range.end}, out);
}

Distribution SpreadCodec::decode(BitReader& in, const Known& known) {
  decoded_.assign(1, {known.first, known.first == known.last ? known.count : 1});
  if (known.first != known.last) {
    decode(in, whole(known));
    add_decoded(known.last, 1);
  }
  Distribution spread(decoded_);
  remember(spread);
  return spread;
}

void SpreadCodec::add_decoded(int bucket, std::uint64_t times) {
  if (decoded_.back().number == bucket) {
    decoded_.back().times += times;
  } else {
    decoded_.push_back({static_cast<std::int16_t>(bucket), times});
  }
}

void SpreadCodec::decode(BitReader& in, const Range& range) {
  if (range.count == 0 || !in.ok()) return;
  if (range.first == range.last) return add_decoded(range.first, range.count);
  const auto [middle, likely, upper] = cut(range);
  Distances& known_distances = distances_of(range.count, likely);
  const std::uint64_t number = take_rice(in, known_distances.rice());
  const std::uint64_t lower = unfolded(number, likely, range.count);
  known_distances.add(number);
  decode(in, {range.first, middle, lower, range.begin, upper});
  decode(in, {middle + 1, range.last, range.count - lower, upper, range.end});
}

}  // namespace gpu_platform::telemetry
