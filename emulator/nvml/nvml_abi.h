#pragma once

#include <cstdint>

// NVML's return codes and structures, declared here by their layout (facts of the driver's
// interface, API 13; fields that the library leaves alone are grouped). Enumerations travel as
// unsigned int.

namespace gpu_emulator {

enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kLibRmVersionMismatch = 18,
  kInUse = 19,
  kOutOfMemory = 20,
  kNoData = 21,
  kInsufficientResources = 23,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

struct DeviceHandle;           // nvmlDevice_t points to one; the caller sees no inside
struct GpuInstanceHandle;      // the same for nvmlGpuInstance_t
struct ComputeInstanceHandle;  // and nvmlComputeInstance_t

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;  // with the reserved part
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
  unsigned int version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;  // without the reserved part
};
static_assert(sizeof(MemoryV2) == 40);
inline constexpr unsigned int kMemoryV2Version = sizeof(MemoryV2) | (2u << 24);

struct Utilization {
  unsigned int gpu;
  unsigned int memory;
};
static_assert(sizeof(Utilization) == 8);

struct PciInfoV1 {
  char bus_id[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pci_device_id;
};
static_assert(sizeof(PciInfoV1) == 32);

struct PciInfoV2 {
  char bus_id[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pci_device_id;
  unsigned int pci_subsystem_id;
  unsigned int reserved[4];
};
static_assert(sizeof(PciInfoV2) == 52);

struct PciInfo {  // _v3
  char bus_id_legacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pci_device_id;
  unsigned int pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct ProcessInfoV1 {
  unsigned int pid;
  unsigned long long used_gpu_memory;
};
static_assert(sizeof(ProcessInfoV1) == 16);

struct ProcessInfo {  // _v2 and _v3
  unsigned int pid;
  unsigned long long used_gpu_memory;
  unsigned int gpu_instance_id;
  unsigned int compute_instance_id;
};
static_assert(sizeof(ProcessInfo) == 24);

struct TemperatureV1 {
  unsigned int version;
  unsigned int sensor;
  int temperature;
};
static_assert(sizeof(TemperatureV1) == 12);
inline constexpr unsigned int kTemperatureV1Version = sizeof(TemperatureV1) | (1u << 24);

// Structures that carry their size and version in their first field.
template <class T>
constexpr unsigned int version_of(unsigned int version) {
  return static_cast<unsigned int>(sizeof(T)) | version << 24;
}

struct PowerValueV2 {
  unsigned int version;
  unsigned char scope;  // 0 the GPU, 1 its module, 2 its memory
  unsigned int power_mw;
};
static_assert(version_of<PowerValueV2>(2) == 0x0200000c);

struct Bar1Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(Bar1Memory) == 24);

struct ProcessUtilizationSample {
  unsigned int pid;
  unsigned long long time_stamp;
  unsigned int sm_util;
  unsigned int mem_util;
  unsigned int enc_util;
  unsigned int dec_util;
};
static_assert(sizeof(ProcessUtilizationSample) == 32);

struct ProcessUtilizationInfo {
  unsigned long long time_stamp;
  unsigned int pid;
  unsigned int sm_util;
  unsigned int mem_util;
  unsigned int enc_util;
  unsigned int dec_util;
  unsigned int jpg_util;
  unsigned int ofa_util;
};
static_assert(sizeof(ProcessUtilizationInfo) == 40);

struct ProcessesUtilizationInfo {
  unsigned int version;
  unsigned int count;
  unsigned long long last_seen_time_stamp;
  ProcessUtilizationInfo* processes;
};
static_assert(version_of<ProcessesUtilizationInfo>(1) == 0x01000018);

struct AccountingStats {
  unsigned int gpu_utilization;
  unsigned int memory_utilization;
  unsigned long long max_memory_usage;
  unsigned long long time;        // milliseconds; 0 while the process runs
  unsigned long long start_time;  // microseconds since 1970
  unsigned int is_running;
  unsigned int reserved[5];
};
static_assert(sizeof(AccountingStats) == 56);

struct ProcessDetail {
  unsigned int pid;
  unsigned long long used_gpu_memory;
  unsigned int gpu_instance_id;
  unsigned int compute_instance_id;
  unsigned long long used_protected_memory;
};
static_assert(sizeof(ProcessDetail) == 32);

struct ProcessDetailList {
  unsigned int version;
  unsigned int mode;  // 0 compute, 1 graphics, 2 MPS
  unsigned int count;
  ProcessDetail* processes;
};
static_assert(version_of<ProcessDetailList>(1) == 0x01000018);

union Value {
  double double_value;
  int int_value;
  unsigned int uint_value;
  unsigned long ulong_value;
  unsigned long long ullong_value;
  long long llong_value;
  unsigned short ushort_value;
};

enum ValueType : unsigned int {
  kValueDouble = 0,
  kValueUint = 1,
  kValueUlong = 2,
  kValueUllong = 3,
  kValueInt = 5,
};

struct FieldValue {
  unsigned int field_id;
  unsigned int scope_id;
  long long timestamp;     // microseconds since 1970
  long long latency_usec;  // what the reading took
  unsigned int value_type;
  int nvml_return;
  Value value;
};
static_assert(sizeof(FieldValue) == 40);

struct Sample {
  unsigned long long time_stamp;
  Value value;
};
static_assert(sizeof(Sample) == 16);

struct ViolationTime {
  unsigned long long reference_time;
  unsigned long long violation_time;
};
static_assert(sizeof(ViolationTime) == 16);

struct EccErrorCounts {
  unsigned long long l1_cache;
  unsigned long long l2_cache;
  unsigned long long device_memory;
  unsigned long long register_file;
};
static_assert(sizeof(EccErrorCounts) == 32);

struct EccSramErrorStatus {
  unsigned int version;
  unsigned long long counts[11];
  unsigned int is_threshold_exceeded;
};
static_assert(version_of<EccSramErrorStatus>(1) == 0x01000068);

struct RowRemapperHistogram {
  unsigned int max;
  unsigned int high;
  unsigned int partial;
  unsigned int low;
  unsigned int none;
};
static_assert(sizeof(RowRemapperHistogram) == 20);

struct EventSet;  // nvmlEventSet_t points to one; the caller sees no inside

struct EventData {  // nvmlEventSetWait_v2; the plain nvmlEventSetWait writes no instance ids
  DeviceHandle* device;
  unsigned long long event_type;
  unsigned long long event_data;
  unsigned int gpu_instance_id;
  unsigned int compute_instance_id;
};
static_assert(sizeof(EventData) == 32);

struct EventDataV1 {
  DeviceHandle* device;
  unsigned long long event_type;
  unsigned long long event_data;
};
static_assert(sizeof(EventDataV1) == 24);

struct PciInfoExt {
  unsigned int version;
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pci_device_id;
  unsigned int pci_subsystem_id;
  unsigned int base_class;
  unsigned int sub_class;
  char bus_id[32];
};
static_assert(version_of<PciInfoExt>(1) == 0x01000040);

struct GpuFabricInfo {
  unsigned char cluster_uuid[16];
  int status;
  unsigned int clique_id;
  unsigned char state;
};
static_assert(sizeof(GpuFabricInfo) == 28);

struct GpuFabricInfoV2 {
  unsigned int version;
  unsigned char cluster_uuid[16];
  int status;
  unsigned int clique_id;
  unsigned char state;
  unsigned int health_mask;
};
static_assert(version_of<GpuFabricInfoV2>(2) == 0x02000024);

struct GpuFabricInfoV3 {
  unsigned int version;
  unsigned char cluster_uuid[16];
  int status;
  unsigned int clique_id;
  unsigned char state;
  unsigned int health_mask;
  unsigned char health_summary;
};
static_assert(version_of<GpuFabricInfoV3>(3) == 0x03000028);

struct MarginTemperature {
  unsigned int version;
  int margin;
};
static_assert(version_of<MarginTemperature>(1) == 0x01000008);

struct DriverBranchInfo {
  unsigned int version;
  char branch[80];
};
static_assert(version_of<DriverBranchInfo>(1) == 0x01000054);

struct GpmSample;  // nvmlGpmSample_t points to one; the caller sees no inside

struct GpmMetric {
  unsigned int metric_id;
  int nvml_return;
  double value;
  const char* short_name;
  const char* long_name;
  const char* unit;
};
static_assert(sizeof(GpmMetric) == 40);

struct GpmMetricsGet {
  unsigned int version;
  unsigned int metric_count;
  GpmSample* sample1;
  GpmSample* sample2;
  GpmMetric metrics[1];  // as many as the caller says
};

struct GpmSupport {
  unsigned int version;
  unsigned int is_supported;
};
static_assert(sizeof(GpmSupport) == 8);

struct PlatformInfo {  // version 2
  unsigned int version;
  unsigned char ib_guid[16];
  unsigned char chassis_serial_number[16];
  unsigned char slot_number;
  unsigned char tray_index;
  unsigned char host_id;
  unsigned char peer_type;
  unsigned char module_id;
};
static_assert(version_of<PlatformInfo>(2) == 0x0200002c);

struct Pdi {
  unsigned int version;
  unsigned long long value;
};
static_assert(version_of<Pdi>(1) == 0x01000010);

struct AddressingMode {
  unsigned int version;
  unsigned int value;
};
static_assert(version_of<AddressingMode>(1) == 0x01000008);

struct C2cModeInfo {
  unsigned int is_enabled;
};
static_assert(sizeof(C2cModeInfo) == 4);

struct DeviceCapabilities {
  unsigned int version;
  unsigned int mask;
};
static_assert(version_of<DeviceCapabilities>(1) == 0x01000008);

struct RepairStatus {
  unsigned int version;
  unsigned int is_channel_repair_pending;
  unsigned int is_tpc_repair_pending;
};
static_assert(version_of<RepairStatus>(1) == 0x0100000c);

struct Uuid {
  unsigned int version;
  unsigned int type;  // 1 text, 2 binary
  char text[41];
};
static_assert(version_of<Uuid>(1) == 0x01000034);

struct FbcStats {
  unsigned int sessions;
  unsigned int average_fps;
  unsigned int average_latency;
};
static_assert(sizeof(FbcStats) == 12);

struct ConfComputeState {
  unsigned int environment;
  unsigned int feature;
  unsigned int dev_tools_mode;
};
static_assert(sizeof(ConfComputeState) == 12);

struct ConfComputeCapabilities {
  unsigned int cpu;
  unsigned int gpus;
};
static_assert(sizeof(ConfComputeCapabilities) == 8);

}  // namespace gpu_emulator
