#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

// The memory that every process of an emulated node shares: one file, mapped by each program that
// opens the emulated NVML library (read only) and by gpu-emulator (which writes). The layout is
// fixed by kVersion: a library refuses a file of another version, gpu-emulator makes a new one.
//
// Fixed fields are written once, before the file gets its name. Changing ones are atomics: a writer
// holds flock(LOCK_EX) on the file and makes `sequence` odd while it changes the processes of a
// GPU, a reader copies and tries again when `sequence` was odd or moved (see board_readings.h).
// Counters and injected values stand alone, so they need no sequence. No process waits for a writer
// that died: the next writer repairs the sequence, and a reader gives up after a bound.
//
// Every local user may write the file, as every user may open a real /dev/nvidia0; readers
// therefore bound each index and length that they take from it.
//
// All numbers are in the machine's byte order; texts end with NUL.

namespace gpu_emulator {

inline constexpr char kMagic[8] = {'G', 'P', 'U', 'B', 'O', 'A', 'R', 'D'};
inline constexpr std::uint32_t kVersion = 6;
inline constexpr std::uint32_t kMaxGpus = 16;
inline constexpr std::uint32_t kMaxNvLinks = 36;
inline constexpr std::uint32_t kMaxProcesses = 64;  // on one GPU
inline constexpr std::uint32_t kMaxNumaNodes = 16;
inline constexpr std::uint32_t kCpuWords = 32;  // 64 CPUs each
inline constexpr std::uint32_t kMaxMigProfiles = 8;
inline constexpr std::uint32_t kMaxGpuInstances = 15;     // ids 0 to 14, as the driver has them
inline constexpr std::uint32_t kMaxComputeInstances = 8;  // of one GPU instance
inline constexpr std::uint32_t kMaxMigDevices = 7;        // that programs see of one GPU
inline constexpr std::uint32_t kMaxRetiredPages = 64;     // the real table's size
inline constexpr std::uint32_t kMaxAccounted = 128;       // processes remembered of one GPU
inline constexpr std::uint32_t kMaxEvents = 256;  // a waiter this far behind loses the oldest

enum class Support : std::uint32_t { kUnsupported = 0, kOff = 1, kOn = 2 };

// Values of NVML's nvmlGpuTopologyLevel_t.
enum class TopologyLevel : std::uint8_t {
  kInternal = 0,
  kSingleSwitch = 10,
  kMultipleSwitches = 20,
  kHostBridge = 30,
  kNumaNode = 40,
  kSystem = 50,
};

enum class LinkPeer : std::uint8_t { kGpu = 0, kSwitch = 2 };  // of nvmlIntNvLinkDeviceType_t

struct PciAddress {
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t device_id;     // device in the upper half, vendor in the lower, as NVML gives it
  std::uint32_t subsystem_id;  // the same of the subsystem
};

struct NvLink {
  std::uint8_t active;
  std::uint8_t version;  // NVML's number, not the generation
  LinkPeer peer;
  std::uint8_t remote_link;  // the peer's number of this link
  PciAddress remote;
};

struct NumaNode {
  std::uint64_t cpus[kCpuWords];
  std::uint64_t memory_bytes;
  std::uint32_t socket;
  std::uint32_t reserved;
};

// A size of GPU partitions, as NVML lists it while MIG is off too.
struct MigProfile {
  char name[32];                // "1g.10gb"
  std::uint32_t profile;        // NVML_GPU_INSTANCE_PROFILE_*
  std::uint32_t id;             // what nvidia-smi calls it
  std::uint32_t slices;         // of compute, of 7
  std::uint32_t instances;      // at most
  std::uint32_t starts;         // bit n: may start at memory slice n
  std::uint32_t memory_slices;  // of 8
  std::uint32_t memory_mib;
  std::uint32_t multiprocessors;
  std::uint32_t copy_engines;
  std::uint32_t decoders;
  std::uint32_t jpeg_engines;
  std::uint32_t ofa_engines;
};

// A partition of the compute of a GPU instance, at its id.
struct ComputeInstance {
  std::atomic<std::uint32_t> slices;  // of compute; 0: there is no such instance
  std::atomic<std::uint32_t> start;   // the first compute slice within its GPU instance
};

// A partition of a GPU, at its id. A writer sets `profile` last, and clears it first.
struct GpuInstance {
  std::atomic<std::uint32_t>
      profile;                       // 1 + its place in mig_profiles; 0: there is no such instance
  std::atomic<std::uint32_t> start;  // the first memory slice
  ComputeInstance compute[kMaxComputeInstances];
};

// Names an instance of a GPU. Both ids are kNoId for the whole GPU, the second one alone for a GPU
// instance; NVML has the same value for them.
inline constexpr std::uint32_t kNoId = 0xffffffff;
struct InstanceId {
  std::uint32_t gpu_instance = kNoId;
  std::uint32_t compute_instance = kNoId;

  friend bool operator==(const InstanceId&, const InstanceId&) = default;
};

// One number for it, as the state has it.
constexpr std::uint64_t packed(const InstanceId& id) {
  return std::uint64_t{id.compute_instance} << 32 | id.gpu_instance;
}
constexpr InstanceId unpacked(std::uint64_t number) {
  return {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)};
}

// A process that uses a GPU. `pid` 0 marks a free entry. A process has an entry for each instance
// that it uses.
struct ProcessEntry {
  std::atomic<std::uint64_t> pid;
  // Clock ticks after boot at which the process started, so that a reused pid is not mistaken for
  // it; 0: the entry stays until it is cleared, also if the process ends.
  std::atomic<std::uint64_t> start_ticks;
  std::atomic<std::uint64_t> memory_bytes;
  std::atomic<std::uint64_t> utilization_percent;
  std::atomic<std::uint64_t> instance;  // packed InstanceId
};

// The values that grow with time and load. A process that may write the file brings them up to date
// now and then; between two such moments a reader adds what came since.
struct Integrals {
  std::atomic<std::uint32_t> sequence;  // odd while it is changed
  std::atomic<std::uint32_t> reserved;
  std::atomic<std::uint64_t> at_ns;  // CLOCK_BOOTTIME of the values below; 0: never
  std::atomic<std::uint64_t> energy_uj;
  std::atomic<std::uint64_t> busy_us;  // time × utilization
  std::atomic<std::uint64_t> power_capped_us;
  std::atomic<std::uint64_t> thermal_slowdown_us;
};

// The settings that administrators made. All are 0 on a new board.
struct Settings {
  std::atomic<std::uint32_t> power_limit_mw;
  std::atomic<std::uint32_t> application_sm_mhz;
  std::atomic<std::uint32_t> application_memory_mhz;
  std::atomic<std::uint32_t> locked_sm_min_mhz;
  std::atomic<std::uint32_t> locked_sm_max_mhz;
  std::atomic<std::uint32_t> locked_memory_min_mhz;
  std::atomic<std::uint32_t> locked_memory_max_mhz;
  std::atomic<std::uint32_t> persistence;  // Support
  std::atomic<std::uint32_t> compute_mode;
  std::atomic<std::uint32_t> ecc_pending;  // Support, from the next reset on
  std::atomic<std::uint32_t> accounts_processes;
  std::atomic<std::uint32_t> is_draining;
  std::atomic<std::uint32_t> are_clocks_for_all;  // application clocks need no root
  std::atomic<std::uint32_t> streams_metrics;     // GPM
};

// A process as accounting remembers it. `pid` 0 marks a free entry.
struct AccountedProcess {
  std::atomic<std::uint64_t> pid;
  std::atomic<std::uint64_t> start_ticks;
  std::atomic<std::uint64_t> from_us;   // since 1970, when it was first seen
  std::atomic<std::uint64_t> until_us;  // 0 while it runs
  std::atomic<std::uint64_t> busy_us;   // time × utilization
  std::atomic<std::uint64_t> max_memory_bytes;
};

struct RetiredPage {
  std::atomic<std::uint64_t> address;
  std::atomic<std::uint64_t> at_us;  // since 1970
  std::atomic<std::uint64_t> cause;  // nvmlPageRetirementCause_t
};

// An event on a GPU, for the processes that wait for it.
struct Event {
  // Number of the event that the entry holds, counted from 1; 0 while it is written.
  std::atomic<std::uint64_t> number;
  std::atomic<std::uint64_t> type;  // one bit, nvmlEventType*
  std::atomic<std::uint64_t> data;
  std::atomic<std::uint64_t> gpu;
  std::atomic<std::uint64_t> instance;  // packed InstanceId
};

enum EccClass : std::uint32_t { kEccCorrected = 0, kEccUncorrected = 1 };
enum EccSpan : std::uint32_t { kEccVolatile = 0, kEccAggregate = 1 };
enum class ResetFault : std::uint32_t { kNone = 0, kFails = 1, kHangs = 2 };
enum class Listing : std::uint32_t { kInPlace = 0, kNot = 1, kLast = 2 };
enum LinkError : std::uint32_t { kLinkCrc = 0, kLinkReplay = 1, kLinkRecovery = 2 };
inline constexpr std::uint32_t kLinkErrors = 3;
inline constexpr std::uint64_t kLongestHangNs = 3'600'000'000'000;

struct GpuState {
  // Fixed.
  char name[96];
  char uuid[80];
  char serial[32];
  char vbios_version[32];
  char part_number[32];
  char inforom_image[16];
  char inforom_oem[16];
  char inforom_ecc[16];  // empty where ECC is unsupported
  PciAddress pci;
  std::uint32_t minor;
  std::uint32_t brand;         // nvmlBrandType_t
  std::uint32_t architecture;  // nvmlDeviceArchitecture_t
  std::uint32_t compute_major;
  std::uint32_t compute_minor;
  std::uint32_t numa_node;
  std::uint32_t pcie_generation;
  std::uint32_t pcie_width;
  Support mig;  // as the board has it at first; see mig_mode
  Support ecc;
  Support persistence;
  std::uint32_t max_mig_devices;  // with MIG on
  std::uint32_t mig_profile_count;
  std::uint32_t multiprocessors;
  std::uint32_t cores;
  std::uint32_t memory_bus_bits;
  std::uint32_t module_id;  // on its baseboard, from 1; 0 without one
  // Listing: how programs find it that initialise NVML from now on. It may change.
  std::atomic<std::uint32_t> listing;
  std::uint32_t has_memory_temperature;
  std::uint32_t remap_banks;  // of memory that rows are remapped in; 0: pages are retired instead
  std::uint32_t has_fabric;   // is joined to others by a fabric manager
  std::uint64_t bar1_bytes;
  std::uint64_t memory_bytes;
  std::uint64_t reserved_bytes;
  std::uint32_t power_limit_mw;
  std::uint32_t power_limit_min_mw;
  std::uint32_t power_limit_max_mw;
  std::uint32_t power_idle_mw;
  std::uint32_t temperature_idle_c;
  std::uint32_t temperature_loaded_c;
  std::uint32_t temperature_slowdown_c;
  std::uint32_t temperature_shutdown_c;
  std::uint32_t clock_sm_idle_mhz;
  std::uint32_t clock_sm_max_mhz;
  std::uint32_t clock_memory_idle_mhz;
  std::uint32_t clock_memory_max_mhz;
  NvLink nvlinks[kMaxNvLinks];
  std::uint32_t nvlink_count;  // links the GPU has, active or not
  std::uint32_t nvlink_version;
  MigProfile mig_profiles[kMaxMigProfiles];

  // Changing.
  std::atomic<std::uint32_t> sequence;  // of the processes
  std::atomic<std::uint32_t> answer;  // NVML return code that calls on this GPU get; 0: none forced
  std::atomic<std::uint32_t> answer_delay_us;                // for which a call on this GPU waits
  std::atomic<std::uint32_t> answer_work_us;                 // CPU time that it takes
  std::atomic<std::uint32_t> injected_temperature_c;         // 0: as the load makes it
  std::atomic<std::uint32_t> injected_memory_temperature_c;  // 0: somewhat warmer than the GPU
  std::atomic<std::uint32_t> injected_pcie_width;            // lanes in use; 0: all
  std::atomic<std::uint32_t> recovery_action;                // nvmlDeviceGpuRecoveryAction_t
  std::atomic<std::uint32_t> last_xid;                       // 0: none
  std::atomic<std::uint32_t> pcie_replays;
  std::atomic<std::uint32_t> remap_pending;
  std::atomic<std::uint32_t> rows_to_remap;  // counted as remapped by the next reset
  std::atomic<std::uint32_t> remap_failed;
  std::atomic<std::uint32_t> remapped_rows[2];  // by EccClass
  std::atomic<std::uint32_t> retirement_pending;
  std::atomic<std::uint32_t> retired_count;
  std::atomic<std::uint32_t> reset_fault;      // ResetFault: what the next resets do
  std::atomic<std::uint64_t> answers_from_ns;  // CLOCK_BOOTTIME; calls before it wait until then
  std::atomic<std::uint64_t> nvlinks_down;     // bit n: link n, whatever the board says of it
  std::atomic<std::uint64_t> link_errors[kLinkErrors];  // of the first link, since the driver came
  std::atomic<std::uint64_t> injected_throttle;         // nvmlClocksEventReason* bits
  std::atomic<std::uint64_t> ecc_errors[2][2];          // by EccSpan, EccClass
  std::atomic<std::uint32_t> mig_mode;                  // Support, at this moment
  std::atomic<std::uint32_t> mig_pending;               // Support, from the next reset on
  std::atomic<std::uint32_t> failing_gpu_instances;     // so many creations fail
  std::atomic<std::uint32_t> failing_compute_instances;
  GpuInstance gpu_instances[kMaxGpuInstances];
  RetiredPage retired_pages[kMaxRetiredPages];
  Integrals integrals;
  Settings settings;
  std::atomic<std::uint64_t> accounted_count;  // ever; the next goes to [count % kMaxAccounted]
  AccountedProcess accounted[kMaxAccounted];
  ProcessEntry processes[kMaxProcesses];
};

struct BoardState {
  char magic[8];
  std::uint32_t version;
  std::uint32_t size;             // of the whole structure
  std::uint64_t board_file_hash;  // of the board file it was made from
  char board[64];
  char node_name[256];
  char driver_version[80];
  char nvml_version[80];
  std::uint32_t cuda_version;  // 12040 = 12.4
  std::uint32_t gpu_count;
  std::uint32_t numa_count;
  std::uint32_t driver_major;
  NumaNode numa_nodes[kMaxNumaNodes];
  TopologyLevel topology[kMaxGpus][kMaxGpus];
  GpuState gpus[kMaxGpus];

  // Changing. A futex word, changed after each event and each loss of a GPU.
  std::atomic<std::uint32_t> wake;
  std::atomic<std::uint32_t> reserved;
  std::atomic<std::uint64_t> event_count;  // event n lies in events[(n - 1) % kMaxEvents]
  Event events[kMaxEvents];
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");
static_assert(sizeof(NvLink) == 24);
static_assert(sizeof(ProcessEntry) == 40);
static_assert(offsetof(BoardState, numa_nodes) == 520);
static_assert(sizeof(BoardState) % 8 == 0);

}  // namespace gpu_emulator
