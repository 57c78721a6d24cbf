#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "telemetry/bit_stream.h"
#include "telemetry/points.h"

// The compressed form of a series of distributions whose first and last buckets and count are known
// from minimum, maximum and count of their points.
//
// A range of buckets is cut in the middle, and what its lower half has is written; then each half
// in the same way, unless it is empty. What is expected is what the distributions before had of it,
// the last ones counting most. The distances from that are Rice-coded, as short as those before
// were for ranges of about as many values of which about as many were expected.

namespace gpu_platform::telemetry {

class SpreadCodec {
 public:
  struct Known {
    std::int16_t first = 0;  // buckets; each has a value at least
    std::int16_t last = 0;
    std::uint64_t count = 0;  // at least 1; 2 if the buckets are two
  };
  void encode(const Distribution& spread, const Known& known, BitWriter& out);
  // Returns some distribution of this count if the bits are none; in.ok() may be false then.
  Distribution decode(BitReader& in, const Known& known);

 private:
  // The distances that were alike.
  struct Distances {
    std::uint64_t sum = 4;
    std::uint64_t times = 1;

    // The low bits that hold most of a distance of the mean: those of sum * 3 / 4 / times.
    int rice() const {
      const std::uint64_t part = sum * 3 / 4;
      const int more = std::bit_width(part) - std::bit_width(times);
      if (more < 0) return 0;
      return part < times << more ? more : more + 1;
    }
    void add(std::uint64_t distance) {
      constexpr std::uint64_t kBound = std::uint64_t{1} << 50;
      constexpr std::uint64_t kMemory = 48;
      sum += std::min(distance, kBound);
      if (++times < kMemory) return;
      sum /= 2;
      times /= 2;
    }
  };
  // Buckets, of which before_ has those from `begin` to `end`.
  struct Range {
    int first = 0;
    int last = 0;
    std::uint64_t count = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  // How a range is cut: what is likely in its lower half, and where its upper one is in before_.
  struct Cut {
    int middle = 0;
    std::uint64_t likely = 0;
    std::size_t upper = 0;
  };
  // What the distributions before had of a bucket, and of all buckets below it.
  struct Weight {
    int bucket = 0;
    std::uint64_t weight = 0;
    std::uint64_t below = 0;
  };

  Distances& distances_of(std::uint64_t count, std::uint64_t expected);
  void remember(const Distribution& spread);
  Range whole(const Known& known) const;
  Cut cut(const Range& range) const;
  void encode(const Distribution& spread, const Known& known, const Range& range, BitWriter& out);
  void decode(BitReader& in, const Range& range);
  void add_decoded(int bucket, std::uint64_t times);

  static constexpr std::size_t kWidths = 16;
  static constexpr int kBehind = std::numeric_limits<int>::max();  // above all buckets

  // Ascending. The last one is no bucket: it has the sum of all.
  std::vector<Weight> before_ = {{.bucket = kBehind}};
  std::vector<Weight> new_before_;             // kept for its memory
  std::vector<Distribution::Bucket> decoded_;  // ascending
  std::array<Distances, kWidths * kWidths> distances_;
};

}  // namespace gpu_platform::telemetry
