#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tool/state_file.h"

// The commands of gpu-emulator. Each returns the text to print.

namespace gpu_emulator {

struct GpuPlace {
  std::string node;
  std::uint32_t index = 0;
};

// "dgx-h100-1:3".
Result<GpuPlace> parse_gpu_place(const std::string& text);

struct CreateOptions {
  std::string board;
  std::string node_name;
  std::string dir;
};

struct LoadOptions {
  std::string gpu;  // NODE:INDEX
  std::uint64_t pid = 0;
  std::string memory = "0";
  std::uint32_t utilization_percent = 0;
  bool is_lingering = false;  // stays when the process ends, until it is cleared
  std::string instance;       // GI/CI; empty: the whole GPU
};

// Changes of MIG behind the back of the programs that use the board: without rights, and also under
// work.
enum class MigChange : std::uint8_t { kCreate, kDestroy, kOn, kOff };
struct MigOptions {
  MigChange change = MigChange::kCreate;
  std::string gpu;        // NODE:INDEX
  std::string profile;    // to create: "1g.10gb", or "1g.10gb@6" at that memory slice
  std::string instance;   // to destroy: GI or GI/CI
  bool is_alone = false;  // create no compute instance in it
};

enum class Fault {
  kXid,
  kEcc,
  kTemperature,
  kThrottle,
  kRecovery,
  kReplays,
  kLost,
  kVanish,
  kReturnLast,
  kSlow,
  kWork,
  kRemapPending,
  kRemapFailed,
  kRetired,
  kPcieWidth,
  kNvlinkErrors,
  kNvlinkDown,
  kRestartedCounters,
  kMemoryTemperature,
  kHang,
  kResetFail,
  kResetHang,
  kMigCreateFails,
  kMigComputeFails,
};

struct InjectOptions {
  Fault fault = Fault::kXid;
  std::string gpu;                 // NODE:INDEX
  std::uint32_t value = 0;         // XID, count, degrees, time, as the fault has it
  std::vector<std::string> words;  // reasons, kind of ECC error, action
  std::uint32_t times = 1;         // of an XID: raised so often
  std::string instance;            // of an XID: GI or GI/CI that it hits; empty: the whole GPU
};

struct RegisterOptions {
  std::string state_path;
  std::string uuids;  // separated by commas
  std::uint64_t pid = 0;
};

struct ClearOptions {
  std::string gpu;        // NODE:INDEX, empty for all
  std::string node;       // empty for all
  std::uint64_t pid = 0;  // 0: all processes, and the injected faults
};

enum class ShowAs { kTable, kJson };
enum class EnvAs { kLines, kExports };

Result<std::string> list_boards(const std::string& boards_dir, ShowAs as);
Result<std::string> create(const std::string& boards_dir, const CreateOptions& options);
Result<std::string> show(const std::string& data_dir, const std::string& node, ShowAs as);
Result<std::string> load(const std::string& data_dir, const LoadOptions& options);
Result<std::string> inject(const std::string& data_dir, const InjectOptions& options);
Result<std::string> change_mig(const std::string& data_dir, const MigOptions& options);
// What a reboot of the node does to its board: processes and instances are gone, lost GPUs are
// back.
Result<std::string> reboot(const std::string& data_dir, const std::string& node);
Result<std::string> register_process(const RegisterOptions& options);
Result<std::string> unregister_process(const RegisterOptions& options);
Result<std::string> clear(const std::string& data_dir, const ClearOptions& options);
// Writes what programs read beside NVML below `dir` (tool/layout.h).
Result<std::string> layout(const std::string& data_dir, const std::string& library_dir,
                           const std::string& node, const std::string& dir);
struct EmulatorPlaces {
  std::string libraries;  // the folder of libnvidia-ml.so.1
  std::string programs;   // the folder of nvidia-smi
};
Result<std::string> env(const std::string& data_dir, const EmulatorPlaces& places,
                        const std::string& node, EnvAs as);

}  // namespace gpu_emulator
