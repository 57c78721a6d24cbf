#pragma once

#include <cstddef>

#include "telemetry/bit_stream.h"
#include "telemetry/block.h"

// The compressed form of the points of one metric: minimum and maximum as distances from the mean,
// the sum as the mean and what is left, distributions between the buckets of minimum and maximum.

namespace gpu_platform::telemetry {

// How many numbers a block may still have when it is decoded (kMaxBlockNumbers).
class NumberBudget {
 public:
  explicit NumberBudget(std::size_t numbers) : left_(numbers) {}
  // False if there are not so many left.
  bool take(std::size_t numbers) {
    if (numbers > left_) return false;
    left_ -= numbers;
    return true;
  }

 private:
  std::size_t left_;
};

// A block checks the sizes of the column's lists.
void encode_points(const Column& column, BitWriter& out);
// Fills the column's lists with `size` points, which end with the bits. False: the bits are none.
bool decode_points(BitReader& in, std::size_t size, const WantedColumns& wanted,
                   NumberBudget& budget, Column& column);

}  // namespace gpu_platform::telemetry
