#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/gpu_metrics.h"

// The data that machines report about themselves, without judgement. Every datum that a driver may
// withhold is optional; zero never means unknown.

namespace gpu_platform::hardware {

// CPUs by their kernel number, ascending, without repeats.
using CpuSet = std::vector<std::uint32_t>;

struct NumaNode {
  std::uint32_t id = 0;
  CpuSet cpus;
  std::optional<base::Bytes> memory;
  std::optional<std::uint32_t> socket;  // the package that its CPUs lie in

  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

// A computer, or the one that an emulated board describes.
struct HostDescription {
  std::string name;
  std::string boot_id;  // of the kernel that really runs, also on emulated boards
  CpuSet cpus;          // those that we may use
  base::Bytes memory;
  std::vector<NumaNode> numa_nodes;      // ascending id; empty: not known
  std::optional<std::uint32_t> sockets;  // packages
  std::optional<std::uint32_t> cores;    // physical ones, of all sockets

  friend bool operator==(const HostDescription&, const HostDescription&) = default;
};

struct DriverDescription {
  std::optional<std::string> driver_version;
  std::optional<std::string> library_version;
  std::optional<std::uint32_t> cuda_version;  // 12040 = 12.4

  friend bool operator==(const DriverDescription&, const DriverDescription&) = default;
};

struct ComputeCapability {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;

  friend bool operator==(const ComputeCapability&, const ComputeCapability&) = default;
};

// The properties of a GPU that are fixed while the driver is loaded.
struct GpuDescription {
  std::uint32_t index = 0;  // the driver's, in PCI bus order
  std::optional<std::string> uuid;
  std::optional<std::string> model;
  std::optional<std::string> serial;
  std::optional<std::string> pci_address;  // as the driver writes it
  std::optional<std::uint32_t> minor;      // of /dev/nvidiaN
  std::optional<base::Bytes> memory;
  std::optional<std::uint32_t> numa_node;
  std::optional<CpuSet> cpus;                   // near it
  std::optional<base::Milliwatts> power_limit;  // in force
  std::optional<base::Milliwatts> power_limit_min;
  std::optional<base::Milliwatts> power_limit_max;
  std::optional<ComputeCapability> compute_capability;
  std::optional<bool> mig_enabled;               // none: the GPU cannot be divided
  std::optional<std::uint32_t> max_mig_devices;  // instances that it can be divided into
  std::optional<bool> ecc_enabled;
  std::optional<bool> persistence_enabled;
  std::optional<std::uint32_t> pcie_generation_max;
  std::optional<std::uint32_t> pcie_width_max;
  std::optional<std::int32_t> slowdown_c;  // from this temperature on it lowers its clocks
  std::string problem;  // why the driver refuses to speak of it ("GPU is lost"), else empty

  friend bool operator==(const GpuDescription&, const GpuDescription&) = default;
};

// The connection between two GPUs: NVLink, else how far up the PCI tree their paths meet. Ascending
// distance; the words are those of `nvidia-smi topo -m`.
enum class LinkKind : std::uint8_t {
  kNvLink,
  kPix,     // one PCIe switch
  kPxb,     // several PCIe switches, no host bridge
  kPhb,     // a host bridge
  kNode,    // host bridges of one NUMA node
  kSystem,  // another NUMA node or socket
};

// The link between GPU `a` and GPU `b`, by index, a < b.
struct GpuLink {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  LinkKind kind = LinkKind::kSystem;
  // The number of links of kNvLink. Through switches it is the links that both ends have to them,
  // because a GPU reaches every other one on its switches with all its links.
  std::uint32_t nvlinks = 0;
  std::uint32_t nvlink_version = 0;  // the driver's number: 4 is NVLink 3.0, 6 is 4.0; 0: not known

  friend bool operator==(const GpuLink&, const GpuLink&) = default;
};

// The uses of a GPU by a process, as bits: a process can be in several of the driver's lists.
inline constexpr std::uint32_t kComputeProcess = 1;
inline constexpr std::uint32_t kGraphicsProcess = 2;
inline constexpr std::uint32_t kMpsProcess = 4;

struct GpuProcess {
  std::uint32_t pid = 0;
  std::optional<base::Bytes> memory;
  std::uint32_t uses = kComputeProcess;
  std::optional<std::uint32_t> sm_percent = {};  // of the SMs' time, lately; see ProcessLoad

  friend bool operator==(const GpuProcess&, const GpuProcess&) = default;
};

// A process that computed lately, and what part of the SMs' time was its. The driver counts each
// process alone: together they may have more than 100 %.
struct ProcessLoad {
  std::uint32_t pid = 0;
  std::uint32_t sm_percent = 0;

  friend bool operator==(const ProcessLoad&, const ProcessLoad&) = default;
};

enum class GpuCondition : std::uint8_t {
  kAnswering,
  kLost,  // fell off the bus
  kResetRequired,
  kNotAnswering,  // any other refusal
};

// The readings of a GPU at one moment.
struct GpuReading : model::GpuMetrics {
  std::uint32_t index = 0;
  GpuCondition condition = GpuCondition::kAnswering;
  std::string problem;                               // the driver's words where it is not answering
  std::optional<std::vector<GpuProcess>> processes;  // ascending pid

  friend bool operator==(const GpuReading&, const GpuReading&) = default;
};

enum class GpuEventKind : std::uint8_t {
  kXid,  // a critical one
  kEccCorrected,
  kEccUncorrected,
  kClock,
  kMigChanged,
  kMemoryRetired,  // a row or page was replaced
  kPoison,
  kUnavailable,
  kRecoveryAction,
  kRetirementFailed,  // a row or page could not be replaced
  kOther,
};

// An event that the driver reported of its own accord.
struct GpuEvent {
  std::optional<std::uint32_t> index;  // none: the driver names no GPU that we know
  std::string uuid;
  GpuEventKind kind = GpuEventKind::kOther;
  std::uint64_t type = 0;   // the driver's own number of the kind
  std::uint64_t value = 0;  // of kXid the XID, of kRecoveryAction the action's number
  std::optional<std::uint32_t> gpu_instance;  // the MIG instance that the driver names
  std::uint32_t count = 1;                    // equal ones in a row, of which this is the first

  friend bool operator==(const GpuEvent&, const GpuEvent&) = default;
};

// Why a machine shows no GPUs.
enum class ProblemKind : std::uint8_t {
  kNoLibrary,       // the driver's library is not installed
  kNotNvml,         // the file is no NVML
  kNoDriver,        // the kernel module is not loaded
  kDriverMismatch,  // library and kernel module are of different versions
  kNoPermission,
  kNoGpu,
  kOther,
};

struct LibraryProblem {
  ProblemKind kind = ProblemKind::kOther;
  std::string message;  // a sentence that says what to do

  friend bool operator==(const LibraryProblem&, const LibraryProblem&) = default;
};

// All that discovery needs of one machine.
struct Inventory {
  HostDescription host;
  DriverDescription driver;
  std::vector<GpuDescription> gpus;       // by index
  std::vector<GpuLink> links;             // ascending (a, b); a pair that is missing is not known
  std::optional<LibraryProblem> problem;  // set where there are no GPUs
  std::string fallback;  // why another source than NVML was asked, empty where it was not

  friend bool operator==(const Inventory&, const Inventory&) = default;
};

}  // namespace gpu_platform::hardware
