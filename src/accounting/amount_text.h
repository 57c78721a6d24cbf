#pragma once

#include <cstdint>
#include <string>

// Amounts as texts. They are made of integers and never pass through a floating point number.

namespace gpu_platform::accounting {

// One millionth of a GPU-hour, in base::GpuShare × milliseconds: 7000 × 3,600,000 / 1,000,000.
inline constexpr std::int64_t kTimePerMicroHour = 25'200;

// Rounds GPU-time to millionths of an hour, so that the rows of a table add up to its total
// (Rounder does so for money).
class HourRounder {
 public:
  // `time` is in base::GpuShare × milliseconds, and not negative.
  std::int64_t next(__int128 time);

 private:
  __int128 exact_ = 0;
  std::int64_t given_ = 0;
};

// Rounds money or hours from millionths to hundredths, so that the rows of a table add up to its
// total.
class HundredthRounder {
 public:
  std::int64_t next(std::int64_t millionths);

 private:
  std::int64_t exact_ = 0;
  std::int64_t given_ = 0;
};

// "12.500000" of 12,500,000.
std::string six_decimals(std::int64_t millionths);
// "12.5" of the same, and "12": without zeros at its end.
std::string shortest(std::int64_t millionths);
// "12,345.67" of 1,234,567.
std::string with_hundredths(std::int64_t hundredths);

}  // namespace gpu_platform::accounting
