#include "telemetry/series_codec.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "telemetry/rice_code.h"

namespace gpu_platform::telemetry {

namespace {

constexpr std::size_t kChunk = 64;
using Chunk = std::array<std::uint64_t, kChunk>;

// How a chunk is written. The numbers are in the history's files.
enum class Form : std::uint8_t {
  kSame = 0,       // all are the value before
  kMiddle = 1,     // distances from a middle
  kDelta = 2,      // differences to the value before
  kDelta2 = 3,     // differences of these differences
  kMiddleFew = 4,  // as kMiddle; only those that are not zero, with their places
  kDeltaFew = 5,
};
constexpr int kFormBits = 3;
constexpr int kPlaceBits = 6;
constexpr int kRiceBits = 6;

struct State {
  std::uint64_t last = 0;
  std::uint64_t last_delta = 0;
};

struct Plan {
  Form form = Form::kSame;
  int rice = 0;
  std::uint64_t bits = 0;
};

std::uint64_t rice_cost(std::uint64_t v, int rice) {
  const std::uint64_t high = v >> rice;
  return high < kRiceEscape ? high + 1 + static_cast<std::uint64_t>(rice) : kRiceEscape + 1 + 64;
}

std::uint64_t rice_cost(std::span<const std::uint64_t> numbers, int rice) {
  std::uint64_t bits = 0;
  for (const std::uint64_t v : numbers) bits += rice_cost(v, rice);
  return bits;
}

// The cheapest count of low bits: from that of the mean downwards, as spikes raise the mean.
Plan plan_rice(Form form, std::span<const std::uint64_t> numbers) {
  constexpr std::uint64_t kBound = std::uint64_t{1} << 57;  // 64 of these can be added
  std::uint64_t sum = 0;
  for (const std::uint64_t v : numbers) sum += std::min(v, kBound);
  Plan best{form, static_cast<int>(std::bit_width(sum / numbers.size())), 0};
  best.bits = rice_cost(numbers, best.rice);
  for (int rice = best.rice - 1; rice >= 0; --rice) {
    const std::uint64_t bits = rice_cost(numbers, rice);
    if (bits >= best.bits) break;
    best = {form, rice, bits};
  }
  best.bits += kRiceBits;
  return best;
}

std::span<std::uint64_t> without_zeros(std::span<const std::uint64_t> numbers, Chunk& few) {
  std::size_t count = 0;
  for (const std::uint64_t v : numbers) {
    if (v != 0) few[count++] = v - 1;
  }
  return {few.data(), count};
}

// Whether only the numbers that are not zero are cheaper to write than all, and how.
Plan plan_few(Form form, Form few_form, std::span<const std::uint64_t> numbers) {
  const Plan all = plan_rice(form, numbers);
  Chunk few;
  const auto others = without_zeros(numbers, few);
  if (others.empty() || others.size() * 4 > numbers.size()) return all;
  Plan plan = plan_rice(few_form, others);
  plan.bits += kPlaceBits * (others.size() + 1);
  return plan.bits < all.bits ? plan : all;
}

bool is_few(Form form) {
  return form == Form::kMiddleFew || form == Form::kDeltaFew;
}

void put_numbers(const Plan& plan, std::span<const std::uint64_t> numbers, BitWriter& out) {
  out.put(static_cast<std::uint64_t>(plan.rice), kRiceBits);
  if (!is_few(plan.form)) {
    for (const std::uint64_t v : numbers) put_rice(v, plan.rice, out);
    return;
  }
  out.put(static_cast<std::uint64_t>(std::ranges::count_if(numbers, [](auto v) { return v != 0; })),
          kPlaceBits);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0) continue;
    out.put(i, kPlaceBits);
    put_rice(numbers[i] - 1, plan.rice, out);
  }
}

void take_numbers(BitReader& in, Form form, std::span<std::uint64_t> numbers) {
  const int rice = static_cast<int>(in.take(kRiceBits));
  if (!is_few(form)) {
    for (std::uint64_t& v : numbers) v = take_rice(in, rice);
    return;
  }
  std::ranges::fill(numbers, 0);
  for (std::uint64_t left = in.take(kPlaceBits); left > 0; --left) {
    const std::uint64_t place = in.take(kPlaceBits);
    if (place >= numbers.size()) return in.reject();
    numbers[place] = take_rice(in, rice) + 1;
  }
}

std::uint64_t median_of(std::span<const std::uint64_t> values) {
  Chunk sorted;
  std::ranges::copy(values, sorted.begin());
  const auto signed_less = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
  };
  const std::size_t half = values.size() / 2;
  std::nth_element(sorted.begin(), sorted.begin() + half, sorted.begin() + values.size(),
                   signed_less);
  return sorted[half];
}

void encode_chunk(std::span<const std::uint64_t> values, State& state, BitWriter& out) {
  const State before = state;
  state.last = values.back();
  state.last_delta = values.back() - (values.size() > 1 ? values[values.size() - 2] : before.last);
  if (std::ranges::all_of(values, [&](std::uint64_t v) { return v == before.last; })) {
    return out.put(static_cast<std::uint64_t>(Form::kSame), kFormBits);
  }
  const std::size_t count = values.size();
  const std::uint64_t middle = median_of(values);
  Chunk distances;
  Chunk deltas;
  Chunk deltas2;
  State walk = before;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t delta = values[i] - walk.last;
    distances[i] = zigzag(values[i] - middle);
    deltas[i] = zigzag(delta);
    deltas2[i] = zigzag(delta - walk.last_delta);
    walk = {values[i], delta};
  }
  const std::uint64_t middle_step = zigzag(middle - before.last);
  Plan by_middle = plan_few(Form::kMiddle, Form::kMiddleFew, {distances.data(), count});
  by_middle.bits += 7 + static_cast<std::uint64_t>(std::bit_width(middle_step));
  const Plan by_delta = plan_few(Form::kDelta, Form::kDeltaFew, {deltas.data(), count});
  const Plan by_delta2 = plan_rice(Form::kDelta2, {deltas2.data(), count});
  const Plan best = std::min({by_delta, by_middle, by_delta2},
                             [](const Plan& a, const Plan& b) { return a.bits < b.bits; });
  out.put(static_cast<std::uint64_t>(best.form), kFormBits);
  const bool is_by_middle = best.form == by_middle.form;
  if (is_by_middle) out.number(middle_step);
  const Chunk& numbers = is_by_middle ? distances : best.form == Form::kDelta2 ? deltas2 : deltas;
  put_numbers(best, {numbers.data(), count}, out);
}

void decode_chunk(BitReader& in, State& state, std::span<std::uint64_t> values) {
  const auto form = static_cast<Form>(in.take(kFormBits));
  if (form > Form::kDeltaFew) return in.reject();
  State walk = state;
  if (form == Form::kSame) {
    std::ranges::fill(values, walk.last);
    state.last_delta = 0;
    return;
  }
  const bool is_by_middle = form == Form::kMiddle || form == Form::kMiddleFew;
  const std::uint64_t middle = is_by_middle ? walk.last + unzigzag(in.number()) : 0;
  take_numbers(in, form, values);
  if (is_by_middle) {
    for (std::uint64_t& v : values) v = middle + unzigzag(v);
    state.last_delta = values.back() - (values.size() > 1 ? values[values.size() - 2] : walk.last);
    state.last = values.back();
    return;
  }
  for (std::uint64_t& v : values) {
    walk.last_delta = unzigzag(v) + (form == Form::kDelta2 ? walk.last_delta : 0);
    v = walk.last += walk.last_delta;
  }
  state = walk;
}

std::uint64_t magnitude(std::int64_t v) {
  return v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
}

std::int64_t step_from(std::int64_t first, std::int64_t value) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) -
                                   static_cast<std::uint64_t>(first));
}

// The greatest common divisor of all steps from the first value; 0: all are equal.
std::uint64_t unit_of(std::span<const std::int64_t> values) {
  std::uint64_t unit = 0;
  for (const std::int64_t value : values) {
    const std::uint64_t step = magnitude(step_from(values.front(), value));
    if (step == 0 || (unit != 0 && step % unit == 0)) continue;
    unit = std::gcd(unit, step);
    if (unit == 1) break;
  }
  return unit;
}

std::uint64_t in_units(std::int64_t step, std::uint64_t unit) {
  if (unit == 1) return static_cast<std::uint64_t>(step);
  const std::uint64_t units = magnitude(step) / unit;
  return step < 0 ? 0 - units : units;
}

}  // namespace

void encode_series(std::span<const std::int64_t> values, BitWriter& out) {
  if (values.empty()) return;
  const std::int64_t first = values.front();
  const std::uint64_t unit = unit_of(values);
  out.number(zigzag(static_cast<std::uint64_t>(first)));
  out.number(unit);
  if (unit == 0) return;
  State state;
  Chunk chunk;
  for (; !values.empty(); values = values.subspan(std::min(kChunk, values.size()))) {
    const std::size_t count = std::min(kChunk, values.size());
    for (std::size_t i = 0; i < count; ++i) {
      chunk[i] = in_units(step_from(first, values[i]), unit);
    }
    encode_chunk({chunk.data(), count}, state, out);
  }
}

void decode_series(BitReader& in, std::span<std::int64_t> values) {
  if (values.empty()) return;
  const std::uint64_t first = unzigzag(in.number());
  const std::uint64_t unit = in.number();
  if (unit == 0) {
    std::ranges::fill(values, static_cast<std::int64_t>(first));
    return;
  }
  State state;
  Chunk chunk{};
  for (; !values.empty() && in.ok(); values = values.subspan(std::min(kChunk, values.size()))) {
    const std::size_t count = std::min(kChunk, values.size());
    decode_chunk(in, state, {chunk.data(), count});
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<std::int64_t>(first + chunk[i] * unit);
    }
  }
}

}  // namespace gpu_platform::telemetry
