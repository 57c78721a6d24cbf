#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpu_emulator {

// The program's exit codes: those of NVML where there is one.
inline constexpr int kExitOk = 0;
inline constexpr int kExitBadArgument = 2;
inline constexpr int kExitNotAvailable = 3;
inline constexpr int kExitNotFound = 6;
inline constexpr int kExitNoDriver = 9;
inline constexpr int kExitNoLibrary = 12;

enum class SmiTask : std::uint8_t {
  kTable,
  kList,    // -L
  kReport,  // -q
  kQueryGpus,
  kQueryProcesses,
  kTopology,
  kMigProfiles,
  kMigPlacements,
  kMigInstances,         // mig -lgi
  kMigComputeProfiles,   // mig -lcip
  kMigComputeInstances,  // mig -lci
  kMigCreate,            // mig -cgi
  kMigCreateCompute,     // mig -cci
  kMigDestroy,           // mig -dgi
  kMigDestroyCompute,    // mig -dci
  kMigMode,              // -mig
  kHelp,
  kHelpQueryGpus,
  kHelpQueryProcesses,
  kVersions,
  kReset,  // -r
};

struct SmiArguments {
  SmiTask task = SmiTask::kTable;
  std::string ids;                // of -i; empty: all GPUs
  std::string fields;             // of a query
  std::string format;             // of a query
  std::string displays;           // of -d
  std::string profiles;           // of mig -cgi and -cci: names, ids or "id:start"
  std::string gpu_instances;      // of mig -gi; empty: all
  std::string compute_instances;  // of mig -ci; empty: all
  bool has_compute = false;       // mig -C: with a compute instance in each GPU instance
  bool is_mig_on = false;         // of -mig
  bool is_xml = false;
  std::string file;                          // of -f; empty: standard output
  std::optional<std::uint64_t> interval_ms;  // of -l and -lms
};

// An error is what to print.
gpu_platform::base::Result<SmiArguments> read_arguments(std::span<const std::string> words);

std::string help_text();

}  // namespace gpu_emulator
