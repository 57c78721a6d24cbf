#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulation/faults/fault_kind.h"
#include "simulation/faults/findings.h"

namespace gpu_platform::simulation {

struct FaultOptions {
  std::uint64_t seeds = 100;
  std::uint64_t first_seed = 1;
  Plant plant = Plant::kNone;
  std::size_t max_violations = 20;  // ends after so many worlds with a violation
  // Called before each world with its seed; may be empty.
  std::function<void(std::uint64_t seed)> before_seed;
};

struct FaultReport {
  std::uint64_t seeds = 0;  // worlds run
  std::uint64_t events = 0;
  FaultCounts faults = {};
  std::vector<Violation> violations;
  std::uint64_t hash = 0;  // of all that happened: equal runs have equal hashes
};

// With so many seeds every kind of fault must have occurred at least once; one that has not is a
// violation of the run: what is never tried is not tested.
inline constexpr std::uint64_t kSeedsThatTryEverything = 1000;

// Runs one world per seed, each with the whole controller on virtual time, the memory store and the
// virtual engine behind faulty links; some of them with nodes that run pods (pod_engine.h). Pure:
// the same options give the same report.
FaultReport run_faults(const FaultOptions& options);

// The command that repeats the world of a violation.
std::string repeat_command(const Violation& violation, Plant plant);

}  // namespace gpu_platform::simulation
