#include "accounting/exact_cost.h"

#include "base/check.h"

namespace gpu_platform::accounting {

namespace {

constexpr __int128 kMillisecondsPerHour = 3'600'000;
constexpr __int128 kBasisPoints = 10'000;
constexpr __int128 kMibPerGib = 1024;

__int128 multiply(__int128 a, __int128 b) {
  __int128 product = 0;
  CHECK(!__builtin_mul_overflow(a, b, &product));
  return product;
}

__int128 charged_points(std::uint32_t discount) {
  CHECK(discount <= kBasisPoints);
  return kBasisPoints - discount;
}

std::int64_t narrow(__int128 micros) {
  CHECK(micros <= INT64_MAX && micros >= INT64_MIN);
  return static_cast<std::int64_t>(micros);
}

}  // namespace

static_assert(kUnitsPerMicro ==
              base::kWholeGpu.value() * kMillisecondsPerHour * kBasisPoints * kMibPerGib);

ExactCost::ExactCost(base::MicroUsd amount) : units_(multiply(amount.value(), kUnitsPerMicro)) {}

ExactCost::ExactCost(const model::ExactAmount& stored)
    : units_(static_cast<__int128>((static_cast<unsigned __int128>(stored.high) << 64) |
                                   stored.low)) {}

model::ExactAmount ExactCost::stored() const {
  return {static_cast<std::int64_t>(units_ >> 64), static_cast<std::uint64_t>(units_)};
}

base::MicroUsd ExactCost::rounded() const {
  const __int128 half = kUnitsPerMicro / 2;
  const __int128 away = units_ < 0 ? units_ - half : units_ + half;
  return base::MicroUsd(narrow(away / kUnitsPerMicro));
}

base::MicroUsd ExactCost::floor() const {
  __int128 micros = units_ / kUnitsPerMicro;
  if (units_ % kUnitsPerMicro < 0) --micros;
  return base::MicroUsd(narrow(micros));
}

ExactCost& ExactCost::operator+=(ExactCost other) {
  CHECK(!__builtin_add_overflow(units_, other.units_, &units_));
  return *this;
}

ExactCost& ExactCost::operator-=(ExactCost other) {
  CHECK(!__builtin_sub_overflow(units_, other.units_, &units_));
  return *this;
}

ExactCost gpu_cost(base::GpuShare share, std::int64_t milliseconds, base::MicroUsd per_hour,
                   std::uint32_t discount_basis_points) {
  const __int128 gpu_time = multiply(share.value(), milliseconds);
  const __int128 list = multiply(gpu_time, per_hour.value());
  return ExactCost(multiply(multiply(list, charged_points(discount_basis_points)), kMibPerGib));
}

ExactCost cpu_cost(std::uint32_t cores, base::MicroUsd core_hour, std::int64_t memory_mib,
                   base::MicroUsd gib_hour, std::int64_t milliseconds,
                   std::uint32_t discount_basis_points) {
  const __int128 per_hour = multiply(multiply(cores, core_hour.value()), kMibPerGib) +
                            multiply(memory_mib, gib_hour.value());
  const __int128 list = multiply(multiply(per_hour, milliseconds), base::kWholeGpu.value());
  return ExactCost(multiply(list, charged_points(discount_basis_points)));
}

base::MicroUsd Rounder::next(ExactCost line) {
  exact_ += line;
  const base::MicroUsd total = exact_.rounded();
  const base::MicroUsd part = total - given_;
  given_ = total;
  return part;
}

}  // namespace gpu_platform::accounting
