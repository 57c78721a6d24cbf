#pragma once

#include <cstddef>
#include <cstdint>

// The part of DCGM's binary interface that we use, declared anew: versions 3 and 4 have it alike.
// Fields are known by their numbers, because their names change between versions.

namespace gpu_platform::hardware {

// Return codes.
inline constexpr int kDcgmOk = 0;
inline constexpr int kDcgmErrorBadParameter = -1;
inline constexpr int kDcgmErrorUninitialized = -10;
inline constexpr int kDcgmErrorVersionMismatch = -12;
inline constexpr int kDcgmErrorConnectionNotValid = -21;

// A host engine or a connection to one, a group of GPUs, a group of fields.
using DcgmHandle = std::uintptr_t;
using DcgmGroup = std::uintptr_t;
using DcgmFieldGroup = std::uintptr_t;

inline constexpr int kDcgmCollectsByItself = 1;  // the mode in which it has threads for that
inline constexpr int kDcgmEmptyGroup = 1;
inline constexpr int kDcgmGpuEntity = 1;
inline constexpr unsigned kDcgmLiveData = 1;  // asks the driver now, also what is not watched
inline constexpr std::size_t kDcgmMaxGpus = 32;

// A value that DCGM does not have is one of 16 from here on, by the reason.
inline constexpr std::int64_t kDcgmBlankNumber = 0x7ffffffffffffff0;
inline constexpr double kDcgmBlankReal = 140'737'488'355'328.0;

inline constexpr std::uint16_t kDcgmFieldUuid = 54;
inline constexpr std::uint16_t kDcgmFieldMemoryTemperature = 140;
inline constexpr std::uint16_t kDcgmFieldEnergy = 156;
inline constexpr std::uint16_t kDcgmFieldGraphicsActive = 1001;
inline constexpr std::uint16_t kDcgmFieldSmActive = 1002;
inline constexpr std::uint16_t kDcgmFieldSmOccupancy = 1003;
inline constexpr std::uint16_t kDcgmFieldTensorActive = 1004;
inline constexpr std::uint16_t kDcgmFieldDramActive = 1005;
inline constexpr std::uint16_t kDcgmFieldFp64Active = 1006;
inline constexpr std::uint16_t kDcgmFieldFp32Active = 1007;
inline constexpr std::uint16_t kDcgmFieldFp16Active = 1008;

// The types of values.
inline constexpr std::uint16_t kDcgmReal = 'd';
inline constexpr std::uint16_t kDcgmNumber = 'i';
inline constexpr std::uint16_t kDcgmText = 's';

struct DcgmEntity {
  std::int32_t kind = kDcgmGpuEntity;
  std::uint32_t id = 0;
};

struct DcgmFieldValue {
  std::uint32_t version;
  std::int32_t entity_kind;
  std::uint32_t entity_id;
  std::uint16_t field;
  std::uint16_t type;
  std::int32_t status;  // a return code
  std::uint32_t unused;
  std::int64_t at_us;  // since 1970
  union {
    std::int64_t number;
    double real;
    char text[256];
    char bytes[4096];
  } value;
};
static_assert(sizeof(DcgmEntity) == 8);
static_assert(offsetof(DcgmFieldValue, at_us) == 24);
static_assert(sizeof(DcgmFieldValue) == 4128);

using DcgmPlainFunction = int (*)();
using DcgmStartFunction = int (*)(int mode, DcgmHandle* out);
using DcgmConnectFunction = int (*)(const char* address, DcgmHandle* out);
using DcgmEndFunction = int (*)(DcgmHandle handle);
using DcgmErrorStringFunction = const char* (*)(int code);
using DcgmListFunction = int (*)(DcgmHandle handle, unsigned* ids, int* count);
using DcgmGroupCreateFunction = int (*)(DcgmHandle handle, int kind, const char* name,
                                        DcgmGroup* out);
using DcgmGroupAddFunction = int (*)(DcgmHandle handle, DcgmGroup group, int kind, unsigned id);
using DcgmFieldGroupCreateFunction = int (*)(DcgmHandle handle, int count, std::uint16_t* fields,
                                             const char* name, DcgmFieldGroup* out);
using DcgmWatchFunction = int (*)(DcgmHandle handle, DcgmGroup group, DcgmFieldGroup fields,
                                  long long interval_us, double keep_seconds, int keep_count);
using DcgmLatestFunction = int (*)(DcgmHandle handle, DcgmEntity* entities, unsigned entity_count,
                                   std::uint16_t* fields, unsigned field_count, unsigned flags,
                                   DcgmFieldValue* out);

}  // namespace gpu_platform::hardware
