#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The texts of MPS: percentages and limits as its commands and its environment have them. The
// forms, and what becomes of wrong ones, are those of NVIDIA's program (535). Pure.

namespace gpu_emulator {

// MiB that a client may have on a device, by the device's number. A device without a row has no
// limit.
using PinnedLimits = std::map<std::uint32_t, std::uint64_t>;

// What holds a client of a server.
struct MpsLimits {
  double percentage = 100;  // of active threads: more than 0, at most 100
  PinnedLimits pinned_mib;

  friend bool operator==(const MpsLimits&, const MpsLimits&) = default;
};

// The words of a line, separated by spaces.
std::vector<std::string> words_of(std::string_view line);

// Returns the number at the start of the text; 0 without one.
long long number_at(std::string_view text);

// Nothing unless it lies in (0, 100].
std::optional<double> parse_percentage(const std::string& text);
std::string written_percentage(double percentage);  // "33.3"

// MiB of "3G", "512M" and a bare number of MiB. Any other unit is not looked at: "3T" is 3 MiB.
// Returns 0, which means no limit, for a text that has no number, and for one that is negative.
std::uint64_t parse_pinned_limit(std::string_view text);
// As it is read back: whole GiB from 1 GiB on ("1536M" is read back as "1G"), else MiB.
std::string written_pinned_limit(std::uint64_t mib);

// "0=3G,1=512M", as in CUDA_MPS_PINNED_DEVICE_MEM_LIMIT. Wrong parts are left out.
PinnedLimits parse_pinned_limits(std::string_view text);
// Returns a text that parse_pinned_limits reads back exactly.
std::string written_pinned_limits(const PinnedLimits& limits);

// Returns the lower one of each limit.
MpsLimits narrower(const MpsLimits& a, const MpsLimits& b);

}  // namespace gpu_emulator
