#pragma once

#include <cstdint>

// The part of DCGM's binary interface that the library exports, declared by its numbers.

namespace gpu_emulator {

enum DcgmReturn : int {
  kDcgmOk = 0,
  kDcgmBadParameter = -1,
  kDcgmNotSupported = -6,
  kDcgmNvmlError = -8,
  kDcgmUninitialized = -10,
  kDcgmVersionMismatch = -12,
  kDcgmUnknownField = -13,
  kDcgmNotWatched = -16,
  kDcgmGpuIsLost = -18,
  kDcgmConnectionNotValid = -21,
  kDcgmMaxLimit = -24,
  kDcgmDuplicateKey = -26,
  kDcgmMultiPass = -38,
};

inline constexpr std::int64_t kDcgmBlank = 0x7ffffffffffffff0;
inline constexpr double kDcgmBlankReal = 140'737'488'355'328.0;  // 2^47
inline constexpr unsigned int kDcgmBlankNotSupported = 2;        // added to a blank

struct DcgmEntity {
  int kind;  // 1: a GPU
  unsigned int id;
};

struct DcgmValue {
  unsigned int version;  // 2 << 24 | size
  int entity_kind;
  unsigned int entity_id;
  unsigned short field;
  unsigned short type;  // 'd', 'i', 's'
  int status;
  unsigned int unused;
  std::int64_t at_us;
  union {
    std::int64_t i64;
    double dbl;
    char str[256];
    char blob[4096];
  } value;
};
static_assert(sizeof(DcgmValue) == 4128);

}  // namespace gpu_emulator

#pragma GCC visibility push(default)
extern "C" {

int dcgmInit();
int dcgmShutdown();
int dcgmStartEmbedded(int mode, std::uintptr_t* handle);
int dcgmStopEmbedded(std::uintptr_t handle);
int dcgmConnect(const char* address, std::uintptr_t* handle);
int dcgmDisconnect(std::uintptr_t handle);
int dcgmGetAllSupportedDevices(std::uintptr_t handle, unsigned int* ids, int* count);
int dcgmGroupCreate(std::uintptr_t handle, int type, const char* name, std::uintptr_t* group);
int dcgmGroupAddEntity(std::uintptr_t handle, std::uintptr_t group, int kind, unsigned int id);
int dcgmFieldGroupCreate(std::uintptr_t handle, int count, unsigned short* fields, const char* name,
                         std::uintptr_t* group);
int dcgmWatchFields(std::uintptr_t handle, std::uintptr_t group, std::uintptr_t fields,
                    long long interval_us, double keep_seconds, int keep_count);
int dcgmEntitiesGetLatestValues(std::uintptr_t handle, gpu_emulator::DcgmEntity* entities,
                                unsigned int entity_count, unsigned short* fields,
                                unsigned int field_count, unsigned int flags,
                                gpu_emulator::DcgmValue* values);
const char* errorString(int result);
}
#pragma GCC visibility pop
