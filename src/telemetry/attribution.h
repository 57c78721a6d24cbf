#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/gpu_part.h"
#include "model/ids.h"
#include "telemetry/frame.h"

// The use that each job makes of a GPU which it shares, as far as facts tell it.

namespace gpu_platform::telemetry {

// How the utilization of a shared GPU was split. The numbers are in the history's files, as values
// of the metric kUseAttributedBy.
enum class AttributedBy : std::uint8_t {
  kIdle = 0,       // the GPU did nothing
  kProcesses = 1,  // by the SM time of each process, as the driver counts it
  kTurns = 2,      // by the turns of the jobs that have processes on it, which are as long as their
                   // shares
  // 3 is kept for MIG instances, which no job has yet.
  kMemory = 4,  // by the memory of each process
};
std::string_view to_string(AttributedBy by);  // "PROCESSES"; "UNKNOWN" of another number

// One reading of a GPU that several attempts hold.
struct SharedGpu {
  struct Holder {
    model::AttemptId attempt;
    base::GpuShare share;
    model::ShareMode mode = model::ShareMode::kNone;
  };
  struct Process {
    std::optional<model::AttemptId> attempt;  // none, or no holder: its part is of no job
    std::optional<base::Bytes> memory;
    std::optional<std::uint32_t> sm_percent;
  };

  std::vector<Holder> holders;  // ascending by attempt, each once
  std::optional<std::uint32_t> utilization_percent;
  std::optional<base::Milliwatts> power;
  std::optional<base::Milliwatts> idle_power;     // of this GPU; none: it was not seen idle yet
  std::optional<std::vector<Process>> processes;  // none: not told
};

struct Use {
  model::AttemptId attempt;
  std::optional<std::uint32_t> utilization_percent;  // of the whole GPU
  std::optional<base::Bytes> memory;
  std::optional<base::Milliwatts> power;
  std::optional<AttributedBy> attributed_by;  // none: the utilization is not split

  friend bool operator==(const Use&, const Use&) = default;
};

// Returns the use of each holder, in their order. The parts of the utilization, with that of no
// job, are exactly the GPU's; so are those of the power, of which the idle power is split by share
// and the rest as the utilization. Memory is what the attempt's processes have; if that of one is
// withheld, it is not known. Cost: the processes times the logarithm of the holders.
std::vector<Use> attribute(const SharedGpu& gpu);

// The values of a frame of the use.
std::vector<Value> values_of(const Use& use);

}  // namespace gpu_platform::telemetry
