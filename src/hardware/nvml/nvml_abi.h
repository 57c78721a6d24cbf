#pragma once

#include <cstddef>
#include <cstdint>

// Our own declaration of the part of NVML's ABI that we call (API 13 and what came before). Names
// and layouts are facts of the driver's interface; enumerations travel as unsigned int.

namespace gpu_platform::hardware {

struct NvmlDevice;  // opaque; nvmlDevice_t is a pointer to it

struct NvmlEventSet;  // the pointer is nvmlEventSet_t

inline constexpr int kNvmlSuccess = 0;
inline constexpr int kNvmlErrorUninitialized = 1;
inline constexpr int kNvmlErrorInvalidArgument = 2;
inline constexpr int kNvmlErrorNotSupported = 3;
inline constexpr int kNvmlErrorNoPermission = 4;
inline constexpr int kNvmlErrorInsufficientSize = 7;
inline constexpr int kNvmlErrorDriverNotLoaded = 9;
inline constexpr int kNvmlErrorTimeout = 10;
inline constexpr int kNvmlErrorLibraryNotFound = 12;
inline constexpr int kNvmlErrorFunctionNotFound = 13;
inline constexpr int kNvmlErrorGpuIsLost = 15;
inline constexpr int kNvmlErrorResetRequired = 16;
inline constexpr int kNvmlErrorLibRmVersionMismatch = 18;
inline constexpr int kNvmlErrorGpuNotFound = 28;

inline constexpr unsigned kNvmlTemperatureGpu = 0;
inline constexpr unsigned kNvmlThresholdSlowdown = 1;
inline constexpr unsigned kNvmlClockSm = 1;
inline constexpr unsigned kNvmlClockMemory = 2;
inline constexpr unsigned kNvmlEccCorrected = 0;
inline constexpr unsigned kNvmlEccUncorrected = 1;
inline constexpr unsigned kNvmlEccVolatile = 0;
inline constexpr unsigned kNvmlEccAggregate = 1;
inline constexpr unsigned kNvmlAffinityScopeNode = 0;
inline constexpr unsigned kNvmlPcieSent = 0;
inline constexpr unsigned kNvmlPcieReceived = 1;
inline constexpr unsigned kNvmlRetiredCorrected = 0;    // several single-bit errors
inline constexpr unsigned kNvmlRetiredUncorrected = 1;  // a double-bit error
inline constexpr unsigned kNvmlLinkPeerGpu = 0;
inline constexpr unsigned kNvmlLinkPeerSwitch = 2;
inline constexpr unsigned kNvmlMaxLinks = 36;
inline constexpr unsigned kNvmlAllLinks = ~0u;  // scope of a field that counts for each link

// nvmlGpuTopologyLevel_t.
inline constexpr unsigned kNvmlTopologyInternal = 0;
inline constexpr unsigned kNvmlTopologySingleSwitch = 10;
inline constexpr unsigned kNvmlTopologyMultipleSwitches = 20;
inline constexpr unsigned kNvmlTopologyHostBridge = 30;
inline constexpr unsigned kNvmlTopologyNode = 40;
inline constexpr unsigned kNvmlTopologySystem = 50;

// Ids of nvmlDeviceGetFieldValues.
inline constexpr unsigned kNvmlFieldNvLinkCrcFlitErrors = 38;
inline constexpr unsigned kNvmlFieldNvLinkCrcDataErrors = 45;
inline constexpr unsigned kNvmlFieldNvLinkReplays = 52;
inline constexpr unsigned kNvmlFieldNvLinkRecoveries = 59;
inline constexpr unsigned kNvmlFieldMemoryTemperature = 82;
inline constexpr unsigned kNvmlFieldNvLinkSentKib = 138;
inline constexpr unsigned kNvmlFieldNvLinkReceivedKib = 139;
inline constexpr unsigned kNvmlFieldRecoveryAction = 230;

// nvmlEventType..., bits of a mask.
inline constexpr unsigned long long kNvmlEventEccCorrected = 0x1;
inline constexpr unsigned long long kNvmlEventEccUncorrected = 0x2;
inline constexpr unsigned long long kNvmlEventXid = 0x8;
inline constexpr unsigned long long kNvmlEventClock = 0x10;
inline constexpr unsigned long long kNvmlEventMigConfig = 0x100;
inline constexpr unsigned long long kNvmlEventEccStorm = 0x200;
inline constexpr unsigned long long kNvmlEventRetirement = 0x400;
inline constexpr unsigned long long kNvmlEventRetirementFailure = 0x800;
inline constexpr unsigned long long kNvmlEventPoison = 0x1000;
inline constexpr unsigned long long kNvmlEventFatalPoison = 0x2000;
inline constexpr unsigned long long kNvmlEventUnavailable = 0x4000;
inline constexpr unsigned long long kNvmlEventRecoveryAction = 0x8000;

// "not available" in unsigned fields of either size.
inline constexpr unsigned long long kNvmlValueNotAvailable = ~0ull;
inline constexpr unsigned kNvmlNumberNotAvailable = ~0u;

// Structures carry their own size and version in the first field.
template <class T>
constexpr unsigned nvml_version(unsigned version) {
  return static_cast<unsigned>(sizeof(T)) | version << 24;
}

struct NvmlMemoryV1 {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(NvmlMemoryV1) == 24);

struct NvmlMemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(NvmlMemoryV2) == 40 && offsetof(NvmlMemoryV2, total) == 8);
static_assert(nvml_version<NvmlMemoryV2>(2) == 0x02000028);

struct NvmlUtilization {
  unsigned gpu;
  unsigned memory;
};
static_assert(sizeof(NvmlUtilization) == 8);

// nvmlDeviceGetPciInfo_v3.
struct NvmlPciInfoV3 {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(NvmlPciInfoV3) == 68 && offsetof(NvmlPciInfoV3, bus_id) == 36);

// nvmlDeviceGetPciInfo_v2 and the plain name: the plain one writes only the first 32 bytes, so one
// structure serves both.
struct NvmlPciInfoV2 {
  char bus_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  unsigned reserved[4];
};
static_assert(sizeof(NvmlPciInfoV2) == 52);
static_assert(offsetof(NvmlPciInfoV2, domain) == offsetof(NvmlPciInfoV3, domain));

// nvmlDeviceGetComputeRunningProcesses_v2 and _v3.
struct NvmlProcessInfoV2 {
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};
static_assert(sizeof(NvmlProcessInfoV2) == 24 && offsetof(NvmlProcessInfoV2, used_gpu_memory) == 8);

// The plain nvmlDeviceGetComputeRunningProcesses.
struct NvmlProcessInfoV1 {
  unsigned pid;
  unsigned long long used_gpu_memory;
};
static_assert(sizeof(NvmlProcessInfoV1) == 16);

struct NvmlTemperatureV1 {
  unsigned version;
  unsigned sensor;
  int temperature;
};
static_assert(sizeof(NvmlTemperatureV1) == 12);
static_assert(nvml_version<NvmlTemperatureV1>(1) == 0x0100000c);

union NvmlValue {
  double real;
  unsigned number;
  unsigned long word;
  unsigned long long wide;
  long long wide_signed;
  int number_signed;
  unsigned short half;
};
static_assert(sizeof(NvmlValue) == 8);

enum NvmlValueType : unsigned {
  kNvmlDouble = 0,
  kNvmlUnsigned = 1,
  kNvmlUnsignedLong = 2,
  kNvmlUnsignedLongLong = 3,
  kNvmlSignedLongLong = 4,
  kNvmlSigned = 5,
  kNvmlUnsignedShort = 6,
};

struct NvmlFieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  unsigned type;
  int result;
  NvmlValue value;
};
static_assert(sizeof(NvmlFieldValue) == 40 && offsetof(NvmlFieldValue, type) == 24);
static_assert(offsetof(NvmlFieldValue, value) == 32);

// nvmlEventSetWait_v2; the plain one writes only the first 24 bytes.
inline constexpr unsigned kNvmlNoInstance = 0xffffffff;  // an event of no MIG instance
struct NvmlEventData {
  NvmlDevice* device;
  unsigned long long type;
  unsigned long long value;
  unsigned gpu_instance_id;
  unsigned compute_instance_id;
};
static_assert(sizeof(NvmlEventData) == 32 && offsetof(NvmlEventData, type) == 8);

// nvmlDeviceGetGpuInstanceProfileInfo.
struct NvmlGpuInstanceProfile {
  unsigned id;
  unsigned is_p2p_supported;
  unsigned slice_count;
  unsigned instance_count;
  unsigned multiprocessor_count;
  unsigned copy_engine_count;
  unsigned decoder_count;
  unsigned encoder_count;
  unsigned jpeg_count;
  unsigned ofa_count;
  unsigned long long memory_mib;
};
static_assert(sizeof(NvmlGpuInstanceProfile) == 48);
static_assert(offsetof(NvmlGpuInstanceProfile, memory_mib) == 40);
inline constexpr unsigned kNvmlGpuInstanceProfiles = 0x12;  // those that API 13 numbers
inline constexpr unsigned kNvmlSmallestGpuInstance = 0;     // one slice

struct NvmlGpuInstancePlacement {
  unsigned start;
  unsigned size;
};
static_assert(sizeof(NvmlGpuInstancePlacement) == 8);

struct NvmlGpmSupport {
  unsigned version;
  unsigned is_supported;
};
static_assert(sizeof(NvmlGpmSupport) == 8);
inline constexpr unsigned kNvmlGpmSupportVersion = 1;  // without the size, unlike others

struct NvmlGpmSample;  // opaque; the pointer is nvmlGpmSample_t

struct NvmlGpmMetric {
  unsigned metric;
  int result;
  double value;
  const char* short_name;
  const char* long_name;
  const char* unit;
};
static_assert(sizeof(NvmlGpmMetric) == 40 && offsetof(NvmlGpmMetric, value) == 8);

// As long as in API 13: a driver may touch all of it, whatever the count says.
inline constexpr unsigned kNvmlMaxGpmMetrics = 333;
struct NvmlGpmMetrics {
  unsigned version;
  unsigned count;
  NvmlGpmSample* first;
  NvmlGpmSample* second;
  NvmlGpmMetric metrics[kNvmlMaxGpmMetrics];
};
static_assert(offsetof(NvmlGpmMetrics, metrics) == 24);
inline constexpr unsigned kNvmlGpmMetricsVersion = 1;  // the same

// Ids of nvmlGpmMetricsGet, percentages.
inline constexpr unsigned kNvmlGpmGraphics = 1;
inline constexpr unsigned kNvmlGpmSm = 2;
inline constexpr unsigned kNvmlGpmOccupancy = 3;
inline constexpr unsigned kNvmlGpmAnyTensor = 5;
inline constexpr unsigned kNvmlGpmDram = 10;
inline constexpr unsigned kNvmlGpmFp64 = 11;
inline constexpr unsigned kNvmlGpmFp32 = 12;
inline constexpr unsigned kNvmlGpmFp16 = 13;

// nvmlDeviceGetProcessUtilization.
struct NvmlProcessSample {
  unsigned pid;
  unsigned long long timestamp;  // microseconds since 1970
  unsigned sm;                   // percent, as the next
  unsigned memory;
  unsigned encoder;
  unsigned decoder;
};
static_assert(sizeof(NvmlProcessSample) == 32 && offsetof(NvmlProcessSample, sm) == 16);

// Functions by the shape of their arguments; each returns an nvmlReturn_t.
using NvmlInitFunction = int (*)();
using NvmlErrorStringFunction = const char* (*)(int);
using NvmlSystemTextFunction = int (*)(char*, unsigned);
using NvmlSystemNumberFunction = int (*)(int*);
using NvmlCountFunction = int (*)(unsigned*);
using NvmlHandleByIndexFunction = int (*)(unsigned, NvmlDevice**);
using NvmlTextFunction = int (*)(NvmlDevice*, char*, unsigned);
using NvmlNumberFunction = int (*)(NvmlDevice*, unsigned*);
using NvmlTwoNumbersFunction = int (*)(NvmlDevice*, unsigned*, unsigned*);
using NvmlCapabilityFunction = int (*)(NvmlDevice*, int*, int*);
using NvmlSelectedNumberFunction = int (*)(NvmlDevice*, unsigned, unsigned*);
using NvmlBitsFunction = int (*)(NvmlDevice*, unsigned, unsigned long*);
using NvmlScopedBitsFunction = int (*)(NvmlDevice*, unsigned, unsigned long*, unsigned);
using NvmlEccFunction = int (*)(NvmlDevice*, unsigned, unsigned, unsigned long long*);
using NvmlWideNumberFunction = int (*)(NvmlDevice*, unsigned long long*);
using NvmlFourNumbersFunction = int (*)(NvmlDevice*, unsigned*, unsigned*, unsigned*, unsigned*);
using NvmlRetiredPagesFunction = int (*)(NvmlDevice*, unsigned, unsigned*, unsigned long long*);
using NvmlFieldsFunction = int (*)(NvmlDevice*, int, NvmlFieldValue*);
using NvmlCommonAncestorFunction = int (*)(NvmlDevice*, NvmlDevice*, unsigned*);
template <class T>
using NvmlSelectedStructFunction = int (*)(NvmlDevice*, unsigned, T*);
using NvmlPlacementsFunction = int (*)(NvmlDevice*, unsigned, NvmlGpuInstancePlacement*, unsigned*);
using NvmlEventSetCreateFunction = int (*)(NvmlEventSet**);
using NvmlEventSetFreeFunction = int (*)(NvmlEventSet*);
using NvmlEventSetWaitFunction = int (*)(NvmlEventSet*, NvmlEventData*, unsigned);
using NvmlRegisterEventsFunction = int (*)(NvmlDevice*, unsigned long long, NvmlEventSet*);
template <class T>
using NvmlStructFunction = int (*)(NvmlDevice*, T*);
template <class T>
using NvmlListFunction = int (*)(NvmlDevice*, unsigned*, T*);
using NvmlProcessSamplesFunction = int (*)(NvmlDevice*, NvmlProcessSample*, unsigned*,
                                           unsigned long long);
using NvmlGpmAllocFunction = int (*)(NvmlGpmSample**);
using NvmlGpmFreeFunction = int (*)(NvmlGpmSample*);
using NvmlGpmSampleFunction = int (*)(NvmlDevice*, NvmlGpmSample*);
using NvmlGpmMetricsFunction = int (*)(NvmlGpmMetrics*);

}  // namespace gpu_platform::hardware
