#pragma once

#include <cstdint>
#include <span>

#include "telemetry/bit_stream.h"

// The compressed form of a series of whole numbers, such as one metric over an hour.
//
// Values become steps from the first one in units of the greatest common divisor of all steps
// (power is read in watts, memory in pages of 2 MiB); a constant series ends there. Of each 64
// values the shortest of these forms is taken: unchanged; about a middle; differences; differences
// of differences. Their small numbers are Rice-coded, or only those are written that are not zero.

namespace gpu_platform::telemetry {

void encode_series(std::span<const std::int64_t> values, BitWriter& out);
// Fills `values`, as many as were written. in.ok() is false afterwards if the bits are no series.
void decode_series(BitReader& in, std::span<std::int64_t> values);

}  // namespace gpu_platform::telemetry
