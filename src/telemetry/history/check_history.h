#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace gpu_platform::telemetry {

// What is in the history's file.
struct HistoryCheck {
  std::uint64_t bytes = 0;           // of the file without its log
  std::uint64_t blocks = 0;          // sound ones
  std::uint64_t damaged_blocks = 0;  // answers leave these out
  std::uint64_t notes = 0;
  std::string problem;  // why the daemon cannot use the file as it is; empty: it can

  bool is_sound() const { return problem.empty() && damaged_blocks == 0; }
};

// Reads all of the history's file, which no daemon uses meanwhile, and changes nothing in it. None:
// there is no file.
std::optional<HistoryCheck> check_history(const std::filesystem::path& path);

}  // namespace gpu_platform::telemetry
