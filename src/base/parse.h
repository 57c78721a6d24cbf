#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

// The written forms of durations, sizes and counts that people type: on the command line and in the
// configuration file. Nothing is rounded or cut: a value that does not fit is an error, and the
// message says what is allowed. Errors carry no field; the caller knows which one it was.

namespace gpu_platform::base {

// "90s", "15m", "2h", "1d", "HH:MM:SS" (hours may pass 24), "D-HH[:MM[:SS]]" as Slurm has it, or a
// bare number of minutes. Never negative.
Result<Duration> parse_duration(std::string_view text);

// The same, and milliseconds: "100ms".
Result<Duration> parse_short_duration(std::string_view text);

// "16G" and "16GiB" are 16 × 2^30, "16GB" is 16 × 10^9, a bare number is MiB; also K, M, T, P, and
// "512B" for bytes. Upper or lower case. Never negative.
Result<Bytes> parse_size(std::string_view text);

// Decimal digits alone, between the two bounds.
Result<std::uint64_t> parse_count(std::string_view text, std::uint64_t least, std::uint64_t most);

// A part of one GPU: "0.5". It is more than 0 and less than 1, with at most three decimals.
Result<GpuShare> parse_gpu_share(std::string_view text);

// An amount of money in the site's currency: "4.10", "0.526", with at most six decimals and at most
// 1,000,000,000. Never negative.
Result<MicroUsd> parse_money(std::string_view text);

// The same, and "-4.10".
Result<MicroUsd> parse_signed_money(std::string_view text);

// The shortest form that parse_duration reads back exactly: "90s", "15m", "2d". Whole seconds; the
// rest is dropped.
std::string written(Duration duration);

// The shortest form that parse_size reads back exactly: "16G", "512B", "1000GB" where that is
// shorter.
std::string written(Bytes size);

// The form that parse_signed_money reads back exactly, with two to six decimals: "4.10", "0.526".
std::string written(MicroUsd amount);

// "0.5", "1", "2.25": in GPUs, rounded to three decimals.
std::string written_share(GpuShare share);

// The forms that parse_short_duration reads back: "100ms", "10s". Whole milliseconds.
std::string written_short(Duration duration);

}  // namespace gpu_platform::base
