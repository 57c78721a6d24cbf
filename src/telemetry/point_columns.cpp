#include "telemetry/point_columns.h"

#include <limits>
#include <optional>
#include <vector>

#include "telemetry/series_codec.h"
#include "telemetry/spread_codec.h"

namespace gpu_platform::telemetry {

namespace {

using Numbers = std::vector<std::int64_t>;

// What the numbers of a column have in common. Points of real samples have all of it but the
// growth, which counters have; others are written longer, so that any block can be.
struct Shape {
  bool is_growth = false;       // max - min is the sum, of most points
  bool has_all_rests = false;   // the sum of some point is not what equal min and max say
  bool has_spread = false;      // there are distributions
  bool is_spread_free = false;  // some do not reach from the bucket of min to that of max
};

constexpr int kShapeBits = 4;

std::uint64_t bits_of(const Shape& shape) {
  return (shape.is_growth ? 1U : 0U) | (shape.has_all_rests ? 2U : 0U) |
         (shape.has_spread ? 4U : 0U) | (shape.is_spread_free ? 8U : 0U);
}

Shape shape_of(std::uint64_t bits) {
  return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
}

std::int64_t added(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// The mean rounded down, so that the rest lies in [0, count).
std::int64_t mean_of(std::int64_t sum, std::int64_t count) {
  if (count <= 1) return sum;
  const std::int64_t mean = sum / count;
  return sum % count < 0 ? mean - 1 : mean;
}

int rest_bits(std::int64_t count) {
  return count <= 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(count - 1));
}

std::optional<SpreadCodec::Known> known_of(const Column& column, std::size_t i) {
  const SpreadCodec::Known known{.first = Distribution::bucket_of(column.min[i]),
                                 .last = Distribution::bucket_of(column.max[i]),
                                 .count = static_cast<std::uint64_t>(column.count[i])};
  const std::int64_t least = known.first == known.last ? 1 : 2;
  if (known.last < known.first || column.count[i] < least) return std::nullopt;
  return known;
}

// Whether the distribution is what the point lets expect.
bool is_bounded(const Column& column, std::size_t i) {
  const auto known = known_of(column, i);
  const Distribution& spread = column.spread[i];
  const auto& buckets = spread.buckets();
  return known && spread.count() == known->count && buckets.front().number == known->first &&
         buckets.back().number == known->last;
}

void encode_free(const Distribution& spread, BitWriter& out) {
  out.number(spread.buckets().size());
  for (const auto& [bucket, times] : spread.buckets()) {
    out.put(static_cast<std::uint16_t>(bucket), 16);
    out.number(times);
  }
}

bool decode_free(BitReader& in, Distribution& spread) {
  int last = std::numeric_limits<std::int16_t>::min() - 1;
  for (std::uint64_t left = in.number(); left > 0; --left) {
    const auto bucket = static_cast<std::int16_t>(in.take(16));
    const std::uint64_t times = in.number();
    if (!in.ok() || bucket <= last || times == 0) return false;
    spread.add_bucket(bucket, times);
    last = bucket;
  }
  return in.ok();
}

Shape shape_of(const Column& column) {
  Shape shape{.has_spread = !column.spread.empty()};
  std::size_t grown = 0;
  for (std::size_t i = 0; i < column.values.size(); ++i) {
    const std::int64_t sum = column.values[i];
    if (difference(column.max[i], column.min[i]) == sum) ++grown;
    const std::int64_t mean = mean_of(sum, column.count[i]);
    if (column.min[i] == mean && column.max[i] == mean &&
        sum != product(mean, std::max<std::int64_t>(column.count[i], 1))) {
      shape.has_all_rests = true;
    }
    if (shape.has_spread && !is_bounded(column, i)) shape.is_spread_free = true;
  }
  shape.is_growth = grown * 2 > column.values.size();
  return shape;
}

// Of counters: where the span begins after the last one ended, how much it grew, and what a restart
// changed.
void encode_growth(const Column& column, BitWriter& out) {
  const std::size_t size = column.values.size();
  Numbers begins(size);
  Numbers restarts(size);
  for (std::size_t i = 0; i < size; ++i) {
    begins[i] = difference(column.min[i], i == 0 ? 0 : column.max[i - 1]);
    restarts[i] = difference(difference(column.max[i], column.min[i]), column.values[i]);
  }
  encode_series(column.values, out);
  encode_series(begins, out);
  encode_series(restarts, out);
}

void decode_growth(BitReader& in, Column& column) {
  Numbers restarts(column.values.size());
  decode_series(in, column.values);
  decode_series(in, column.min);
  decode_series(in, restarts);
  for (std::size_t i = 0; i < restarts.size(); ++i) {
    column.min[i] = added(column.min[i], i == 0 ? 0 : column.max[i - 1]);
    column.max[i] = added(added(restarts[i], column.values[i]), column.min[i]);
  }
}

bool has_rest(const Shape& shape, std::int64_t below, std::int64_t above) {
  return shape.has_all_rests || below != 0 || above != 0;
}

void encode_levels(const Column& column, const Shape& shape, BitWriter& out) {
  const std::size_t size = column.values.size();
  Numbers means(size);
  Numbers below(size);
  Numbers above(size);
  for (std::size_t i = 0; i < size; ++i) {
    means[i] = mean_of(column.values[i], column.count[i]);
    below[i] = difference(means[i], column.min[i]);
    above[i] = difference(column.max[i], means[i]);
  }
  encode_series(means, out);
  encode_series(below, out);
  encode_series(above, out);
  for (std::size_t i = 0; i < size; ++i) {
    if (!has_rest(shape, below[i], above[i])) continue;
    const std::int64_t count = std::max<std::int64_t>(column.count[i], 1);
    const std::int64_t rest = difference(column.values[i], product(means[i], count));
    out.put(static_cast<std::uint64_t>(rest), rest_bits(count));
  }
}

void decode_levels(BitReader& in, const Shape& shape, Column& column) {
  const std::size_t size = column.values.size();
  Numbers means(size);
  decode_series(in, means);
  decode_series(in, column.min);
  decode_series(in, column.max);
  for (std::size_t i = 0; i < size; ++i) {
    const std::int64_t count = std::max<std::int64_t>(column.count[i], 1);
    const std::int64_t rest = has_rest(shape, column.min[i], column.max[i])
                                  ? static_cast<std::int64_t>(in.take(rest_bits(count)))
                                  : 0;
    column.values[i] = added(product(means[i], count), rest);
    column.min[i] = difference(means[i], column.min[i]);
    column.max[i] = added(means[i], column.max[i]);
  }
}

bool decode_spreads(BitReader& in, const Shape& shape, NumberBudget& budget, Column& column) {
  constexpr std::size_t kNumbersOfBucket = 8;
  if (!budget.take(column.values.size() * kNumbersOfBucket)) return false;
  column.spread.resize(column.values.size());
  SpreadCodec codec;
  for (std::size_t i = 0; i < column.values.size(); ++i) {
    Distribution& spread = column.spread[i];
    if (shape.is_spread_free) {
      if (!decode_free(in, spread)) return false;
    } else {
      const auto known = known_of(column, i);
      if (!known) return false;
      spread = codec.decode(in, *known);
    }
    if (!in.ok() || !budget.take(spread.buckets().size() * kNumbersOfBucket)) return false;
  }
  return true;
}

}  // namespace

void encode_points(const Column& column, BitWriter& out) {
  const Shape shape = shape_of(column);
  out.put(bits_of(shape), kShapeBits);
  encode_series(column.count, out);
  if (shape.is_growth) {
    encode_growth(column, out);
  } else {
    encode_levels(column, shape, out);
  }
  SpreadCodec codec;
  for (std::size_t i = 0; i < column.spread.size(); ++i) {
    if (shape.is_spread_free) {
      encode_free(column.spread[i], out);
    } else {
      codec.encode(column.spread[i], *known_of(column, i), out);
    }
  }
}

bool decode_points(BitReader& in, std::size_t size, const WantedColumns& wanted,
                   NumberBudget& budget, Column& column) {
  constexpr std::size_t kNumbersOfPoint = 4;
  if (!budget.take(size * kNumbersOfPoint)) return false;
  for (auto* const numbers : {&column.values, &column.min, &column.max, &column.count}) {
    numbers->resize(size);
  }
  const Shape shape = shape_of(in.take(kShapeBits));
  decode_series(in, column.count);
  if (shape.is_growth) {
    decode_growth(in, column);
  } else {
    decode_levels(in, shape, column);
  }
  if (!in.ok()) return false;
  if (!shape.has_spread) return in.at_end();
  if (!wanted.wants_spread) return true;
  return decode_spreads(in, shape, budget, column) && in.at_end();
}

}  // namespace gpu_platform::telemetry
