#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

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

    int rice() const;
    void add(std::uint64_t distance);
  };
  struct Range {
    int first = 0;
    int last = 0;
    std::uint64_t count = 0;
  };

  Distances& distances_of(std::uint64_t count, std::uint64_t expected);
  void remember(const Distribution& spread);
  std::uint64_t expected(const Range& range, int middle) const;
  void encode(const Distribution& spread, const Known& known, const Range& range, BitWriter& out);
  void decode(BitReader& in, const Range& range, Distribution& spread);

  static constexpr std::size_t kWidths = 16;

  std::map<std::int16_t, std::uint64_t> before_;  // weights of buckets
  std::array<Distances, kWidths * kWidths> distances_;
};

}  // namespace gpu_platform::telemetry
