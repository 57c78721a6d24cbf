#include "telemetry/block.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/codec.h"
#include "base/hash.h"
#include "telemetry/bit_stream.h"
#include "telemetry/point_columns.h"
#include "telemetry/series_codec.h"

// The bytes: the version, a head, a body, and the hash of all of that. The head names the tier, the
// columns, and the size of each part of the body: the times, the lists of places (each once, as
// slow metrics have the same), and the columns, so that a column is decoded without the others.

namespace gpu_platform::telemetry {

namespace {

constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kHashBytes = 8;

std::uint64_t unsigned_of(base::Instant at) {
  return static_cast<std::uint64_t>(at.unix_ns());
}

std::string hash_of(std::string_view content) {
  std::string bytes;
  std::uint64_t hash = base::hash64(content);
  for (std::size_t i = 0; i < kHashBytes; ++i, hash >>= 8) {
    bytes.push_back(static_cast<char>(hash & 0xff));
  }
  return bytes;
}

// Readings come at a pace: what is left are their distances from it.
std::int64_t pace_of(std::span<const base::Instant> times) {
  if (times.size() < 2) return 0;
  std::vector<std::int64_t> steps;
  steps.reserve(times.size() - 1);
  for (std::size_t i = 1; i < times.size(); ++i) {
    steps.push_back(static_cast<std::int64_t>(unsigned_of(times[i]) - unsigned_of(times[i - 1])));
  }
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::ranges::nth_element(steps, middle);
  return *middle;
}

void encode_times(std::span<const base::Instant> times, BitWriter& out) {
  const auto pace = static_cast<std::uint64_t>(pace_of(times));
  out.number(zigzag(pace));
  std::vector<std::int64_t> distances(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    distances[i] = static_cast<std::int64_t>(unsigned_of(times[i]) - i * pace);
  }
  encode_series(distances, out);
}

void decode_times(BitReader& in, std::span<base::Instant> times) {
  const std::uint64_t pace = unzigzag(in.number());
  std::vector<std::int64_t> distances(times.size());
  decode_series(in, distances);
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i] = base::Instant(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(distances[i]) + i * pace));
  }
}

using Places = std::vector<std::uint32_t>;

void encode_places(const Places& places, BitWriter& out) {
  std::vector<std::int64_t> gaps(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    gaps[i] = i == 0 ? places[i] : std::int64_t{places[i]} - places[i - 1];
  }
  out.number(places.size());
  encode_series(gaps, out);
}

// In `places` are those of one column or more. Ascending, and below `times`.
bool decode_places(BitReader& in, std::size_t times, Places& places) {
  const std::uint64_t size = in.number();
  if (!in.ok() || size == 0 || size > times) return false;
  std::vector<std::int64_t> gaps(size);
  decode_series(in, gaps);
  std::int64_t place = -1;
  for (std::size_t i = 0; i < size; ++i) {
    const std::int64_t least = i == 0 ? 0 : 1;
    if (gaps[i] < least || gaps[i] >= static_cast<std::int64_t>(times)) return false;
    place = i == 0 ? gaps[i] : place + gaps[i];
    if (place >= static_cast<std::int64_t>(times)) return false;
    places.push_back(static_cast<std::uint32_t>(place));
  }
  return in.at_end();
}

void check_column(const Block& block, const Column& column) {
  const std::size_t size = column.values.size();
  CHECK(size == (column.places.empty() ? block.times.size() : column.places.size()));
  CHECK(column.places.empty() || column.places.back() < block.times.size());
  CHECK(std::ranges::adjacent_find(column.places, std::greater_equal<>()) == column.places.end());
  const std::size_t points = block.tier == Tier::kRaw ? 0 : size;
  CHECK(column.min.size() == points && column.max.size() == points);
  CHECK(column.count.size() == points);
  CHECK(column.spread.empty() || column.spread.size() == points);
}

// Writes the parts of the body, and their sizes as they end.
class BodyWriter {
 public:
  template <class Encode>
  std::size_t add(const Encode& encode) {
    const std::size_t before = bytes_.size();
    BitWriter bits(bytes_);
    encode(bits);
    bits.finish();
    return bytes_.size() - before;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct ColumnPlace {
  std::string_view metric;
  std::size_t places = 0;  // 0: all times; else one more than the list's place
  std::string_view bytes;
};

struct Parts {
  Tier tier = Tier::kRaw;
  std::size_t times = 0;
  std::string_view time_bytes;
  std::vector<std::string_view> places;
  std::vector<ColumnPlace> columns;
};

// The bytes without their hash; none if it is another one.
std::optional<std::string_view> checked(std::string_view bytes) {
  if (bytes.size() < kHashBytes) return std::nullopt;
  const std::string_view content = bytes.substr(0, bytes.size() - kHashBytes);
  return bytes.substr(content.size()) == hash_of(content) ? std::optional(content) : std::nullopt;
}

std::optional<Parts> parts_of(std::string_view bytes) {
  base::Decoder whole(bytes);
  const std::uint64_t version = whole.u64();
  base::Decoder head(whole.text());
  std::string_view body = whole.text();
  if (!whole.ok() || !whole.at_end() || version != kVersion) return std::nullopt;
  const auto part = [&]() {
    const std::uint64_t size = head.u64();
    if (size > body.size()) head.reject();
    const std::string_view taken = body.substr(0, head.ok() ? size : 0);
    body.remove_prefix(taken.size());
    return taken;
  };
  Parts parts;
  const std::uint64_t tier = head.u64();
  parts.times = head.u64();
  if (tier > static_cast<std::uint64_t>(Tier::kQuarterHour)) head.reject();
  if (parts.times > kMaxBlockTimes) head.reject();
  parts.tier = static_cast<Tier>(tier);
  parts.time_bytes = part();
  parts.places.resize(head.count());
  for (std::string_view& places : parts.places) places = part();
  parts.columns.resize(std::min(head.count(), kMaxBlockColumns + 1));
  if (parts.columns.size() > kMaxBlockColumns) head.reject();
  for (ColumnPlace& column : parts.columns) {
    column.metric = head.text();
    column.places = head.u64();
    if (column.places > parts.places.size()) head.reject();
    column.bytes = part();
  }
  if (!head.ok() || !head.at_end() || !body.empty()) return std::nullopt;
  return parts;
}

bool decode_column(const Parts& parts, const ColumnPlace& place, const WantedColumns& wanted,
                   NumberBudget& budget, Column& column) {
  column.metric = place.metric;
  if (place.places > 0) {
    BitReader in(parts.places[place.places - 1]);
    if (!budget.take(parts.times) || !decode_places(in, parts.times, column.places)) return false;
  }
  const std::size_t size = place.places > 0 ? column.places.size() : parts.times;
  BitReader in(place.bytes);
  if (parts.tier != Tier::kRaw) return decode_points(in, size, wanted, budget, column);
  if (!budget.take(size)) return false;
  column.values.resize(size);
  decode_series(in, column.values);
  return in.at_end();
}

base::Result<Block> damaged() {
  return base::fail(base::ErrorCode::kDataLoss, "A block of the history is damaged.");
}

}  // namespace

std::string encode_block(const Block& block) {
  CHECK(block.times.size() <= kMaxBlockTimes && block.columns.size() <= kMaxBlockColumns);
  BodyWriter body;
  std::string head_bytes;
  base::Encoder head(head_bytes);
  head.u64(static_cast<std::uint64_t>(block.tier));
  head.u64(block.times.size());
  head.u64(body.add([&](BitWriter& out) { encode_times(block.times, out); }));
  std::vector<const Places*> lists;
  std::vector<std::size_t> list_of;
  for (const Column& column : block.columns) {
    check_column(block, column);
    const auto found =
        std::ranges::find_if(lists, [&](const Places* list) { return *list == column.places; });
    list_of.push_back(column.places.empty() ? 0
                                            : static_cast<std::size_t>(found - lists.begin()) + 1);
    if (list_of.back() > lists.size()) lists.push_back(&column.places);
  }
  head.u64(lists.size());
  for (const Places* const list : lists) {
    head.u64(body.add([&](BitWriter& out) { encode_places(*list, out); }));
  }
  head.u64(block.columns.size());
  for (std::size_t i = 0; i < block.columns.size(); ++i) {
    const Column& column = block.columns[i];
    head.text(column.metric);
    head.u64(list_of[i]);
    head.u64(body.add([&](BitWriter& out) {
      if (block.tier == Tier::kRaw) return encode_series(column.values, out);
      encode_points(column, out);
    }));
  }
  std::string bytes;
  base::Encoder out(bytes);
  out.u64(kVersion);
  out.text(head_bytes);
  out.text(body.bytes());
  bytes += hash_of(bytes);
  return bytes;
}

base::Result<Block> decode_block(std::string_view bytes, const WantedColumns& wanted) {
  const auto content = checked(bytes);
  if (!content) return damaged();
  const auto parts = parts_of(*content);
  if (!parts) return damaged();
  Block block{.tier = parts->tier, .times = {}, .columns = {}};
  block.times.resize(parts->times);
  BitReader in(parts->time_bytes);
  decode_times(in, block.times);
  if (!in.at_end()) return damaged();
  NumberBudget budget(kMaxBlockNumbers);
  for (const ColumnPlace& place : parts->columns) {
    const bool is_wanted = wanted.metrics.empty() ||
                           std::ranges::find(wanted.metrics, place.metric) != wanted.metrics.end();
    if (!is_wanted) continue;
    Column& column = block.columns.emplace_back();
    if (!decode_column(*parts, place, wanted, budget, column)) return damaged();
  }
  return block;
}

}  // namespace gpu_platform::telemetry
