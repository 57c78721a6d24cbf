#pragma once

#include <array>
#include <cstdint>
#include <string_view>

// Keys of other programs' files that this one accepts, so that such a file can be used as it is.

namespace gpu_platform::config {

// A second name of a key.
struct OtherName {
  std::string_view path;
  std::string_view key;
};

inline constexpr std::array kOtherNames = {
    OtherName{"allocation.strategy", "allocation.mode"},
    OtherName{"scheduling.algorithm", "scheduling.order"},
    OtherName{"policies.enable_preemption", "policies.allow_preemption"},
    OtherName{"gpu_selection.enable_gpu_selection", "gpu_selection.enabled"},
};

// A key that sets nothing. A value that describes what the program does is accepted silently. For
// other values the program prints a note or refuses the file.
enum class Says : std::uint8_t { kBoolean, kNumber };
struct PassiveKey {
  std::string_view path;
  Says says = Says::kNumber;
  std::string_view done;    // the values that the program implements, separated by blanks
  std::string_view others;  // why other values are refused; empty: they are noted
  std::string_view note;
};

inline constexpr std::array kPassiveKeys = {
    PassiveKey{"scheduling.default_priority",
               Says::kNumber,
               "5 medium",
               "a job that sets no priority is MEDIUM (5); use --priority for another",
               {}},
    PassiveKey{"policies.checkpoint_before_preempt",
               Says::kBoolean,
               "true",
               "a preempted job always gets SIGTERM and policies.stop_grace to save its state; use "
               "'stop_grace: 0s' to give it no time",
               {}},
    PassiveKey{"fault_tolerance.enable_checkpointing",
               Says::kBoolean,
               "false",
               {},
               "it has no effect: jobs save their state themselves, when they get SIGTERM or "
               "the signal of --signal"},
    PassiveKey{"fault_tolerance.checkpoint_interval_minutes",
               Says::kNumber,
               {},
               {},
               "it has no effect: jobs save their state themselves, at intervals of their own"},
};

}  // namespace gpu_platform::config
