#include <string.h>

#include "dcgm/dcgm_abi.h"
#include "dcgm/engine.h"
#include "nvml/board.h"

// DCGM as a monitor uses it: a host engine in this process, or one that runs (GPU_EMULATOR_DCGM is
// host-engine), fields to watch, and their latest values, which follow from the board's state at
// the moment of the question. Only what is watched has a value, as in the original.

using gpu_emulator::board;
using gpu_emulator::DcgmEntity;
using gpu_emulator::DcgmValue;
using gpu_emulator::GpuState;

namespace {

constexpr std::uintptr_t kHandle = 1;
constexpr int kGpuEntity = 1;
constexpr unsigned int kLiveData = 1;

constexpr unsigned short kUuid = 54;
constexpr unsigned short kMemoryTemperature = 140;
constexpr unsigned short kEnergy = 156;

// The shares of the load that the boards' activity is, as in GPM.
struct Share {
  unsigned short field;
  double share;
};
constexpr Share kShares[] = {{1001, 1.0}, {1002, 0.9}, {1003, 0.5}, {1004, 0.5},
                             {1005, 0.5}, {1006, 0.0}, {1007, 0.2}, {1008, 0.1}};

bool is_initialised() {
  return board() != nullptr;
}

bool is_ours(std::uintptr_t handle) {
  return is_initialised() && handle == kHandle;
}

// DCGM numbers the GPUs as NVML does.
bool is_gpu(int kind, unsigned int id) {
  return kind == kGpuEntity && id < gpu_emulator::visible_count();
}

void put_number(DcgmValue& value, std::int64_t number) {
  value.type = 'i';
  value.value.i64 = number;
}

void put_real(DcgmValue& value, double number) {
  value.type = 'd';
  value.value.dbl = number;
}

void put_blank(DcgmValue& value, int status, unsigned int reason) {
  value.status = status;
  if (gpu_emulator::is_activity(value.field)) {
    put_real(value, gpu_emulator::kDcgmBlankReal + reason);
  } else {
    put_number(value, gpu_emulator::kDcgmBlank + reason);
  }
}

void put_activity(DcgmValue& value, const GpuState& gpu) {
  const double load = gpu_emulator::read_gpu(gpu).utilization_percent / 100.0;
  for (const Share& share : kShares) {
    if (share.field == value.field) put_real(value, load * share.share);
  }
}

// What the driver does not have is a blank whose status is good, as in the original.
void put_value(DcgmValue& value, const GpuState& gpu, std::uint32_t index) {
  if (value.field == kUuid) {
    value.type = 's';
    static_assert(sizeof gpu.uuid <= sizeof value.value.str);
    memcpy(value.value.str, gpu.uuid, sizeof gpu.uuid);
  } else if (value.field == kMemoryTemperature && gpu.has_memory_temperature == 0) {
    put_blank(value, gpu_emulator::kDcgmOk, gpu_emulator::kDcgmBlankNotSupported);
  } else if (value.field == kMemoryTemperature) {
    put_number(value, gpu_emulator::read_gpu(gpu).memory_temperature_c);
  } else if (value.field == kEnergy) {
    const std::uint64_t microjoules = gpu_emulator::totals_of(index).energy_uj;
    put_number(value, static_cast<std::int64_t>(microjoules / 1000));
  } else if (gpu_emulator::is_activity(value.field)) {
    put_activity(value, gpu);
  } else {
    put_blank(value, gpu_emulator::kDcgmUnknownField, 0);
  }
}

void answer(DcgmValue& value, unsigned int id, unsigned short field, bool is_live) {
  value = {};
  value.version = 2U << 24 | sizeof value;
  value.entity_kind = kGpuEntity;
  value.entity_id = id;
  value.field = field;
  value.at_us = static_cast<std::int64_t>(gpu_emulator::now_ns(CLOCK_REALTIME) / 1000);
  if (!is_live && !gpu_emulator::is_watched(id, field)) {
    value.at_us = 0;
    put_blank(value, gpu_emulator::kDcgmNotWatched, 0);
    return;
  }
  const std::uint32_t index = gpu_emulator::visible_gpu(id);
  const GpuState& gpu = board()->gpus[index];
  gpu_emulator::wait_for_answer(gpu);
  if (gpu_emulator::value_of(gpu.answer) != 0) {
    put_blank(value, gpu_emulator::kDcgmGpuIsLost, 0);
  } else {
    put_value(value, gpu, index);
  }
}

}  // namespace

int dcgmInit() {
  const gpu_emulator::Return result = gpu_emulator::attach();
  return result == gpu_emulator::kSuccess ? gpu_emulator::kDcgmOk : gpu_emulator::kDcgmNvmlError;
}

int dcgmShutdown() {
  gpu_emulator::clear_engine();
  return gpu_emulator::detach() == gpu_emulator::kSuccess ? gpu_emulator::kDcgmOk
                                                          : gpu_emulator::kDcgmUninitialized;
}

int dcgmStartEmbedded(int, std::uintptr_t* handle) {
  if (!is_initialised()) return gpu_emulator::kDcgmUninitialized;
  if (handle == nullptr) return gpu_emulator::kDcgmBadParameter;
  *handle = kHandle;
  return gpu_emulator::kDcgmOk;
}

int dcgmStopEmbedded(std::uintptr_t handle) {
  if (!is_ours(handle)) return gpu_emulator::kDcgmUninitialized;
  gpu_emulator::clear_engine();
  return gpu_emulator::kDcgmOk;
}

int dcgmConnect(const char* address, std::uintptr_t* handle) {
  if (!is_initialised()) return gpu_emulator::kDcgmUninitialized;
  if (address == nullptr || handle == nullptr) return gpu_emulator::kDcgmBadParameter;
  if (gpu_emulator::acts_as("mismatch")) return gpu_emulator::kDcgmVersionMismatch;
  if (!gpu_emulator::acts_as("host-engine")) return gpu_emulator::kDcgmConnectionNotValid;
  *handle = kHandle;
  return gpu_emulator::kDcgmOk;
}

int dcgmDisconnect(std::uintptr_t handle) {
  return dcgmStopEmbedded(handle);
}

int dcgmGetAllSupportedDevices(std::uintptr_t handle, unsigned int* ids, int* count) {
  if (!is_ours(handle)) return gpu_emulator::kDcgmUninitialized;
  if (ids == nullptr || count == nullptr) return gpu_emulator::kDcgmBadParameter;
  for (unsigned int id = 0; id < gpu_emulator::visible_count(); ++id) ids[id] = id;
  *count = static_cast<int>(gpu_emulator::visible_count());
  return gpu_emulator::kDcgmOk;
}

int dcgmGroupCreate(std::uintptr_t handle, int, const char* name, std::uintptr_t* group) {
  if (!is_ours(handle)) return gpu_emulator::kDcgmUninitialized;
  if (name == nullptr || group == nullptr) return gpu_emulator::kDcgmBadParameter;
  return gpu_emulator::add_group(group);
}

int dcgmGroupAddEntity(std::uintptr_t handle, std::uintptr_t group, int kind, unsigned int id) {
  if (!is_ours(handle)) return gpu_emulator::kDcgmUninitialized;
  if (!is_gpu(kind, id)) return gpu_emulator::kDcgmBadParameter;
  return gpu_emulator::add_to_group(group, id);
}

int dcgmFieldGroupCreate(std::uintptr_t handle, int count, unsigned short* fields, const char* name,
                         std::uintptr_t* group) {
  if (!is_ours(handle)) return gpu_emulator::kDcgmUninitialized;
  if (fields == nullptr || name == nullptr || group == nullptr) {
    return gpu_emulator::kDcgmBadParameter;
  }
  return gpu_emulator::add_fields(fields, count, name, group);
}

int dcgmWatchFields(std::uintptr_t handle, std::uintptr_t group, std::uintptr_t fields,
                    long long interval_us, double keep_seconds, int) {
  if (!is_ours(handle)) return gpu_emulator::kDcgmUninitialized;
  if (interval_us <= 0 || keep_seconds <= 0) return gpu_emulator::kDcgmBadParameter;
  return gpu_emulator::watch(group, fields);
}

int dcgmEntitiesGetLatestValues(std::uintptr_t handle, DcgmEntity* entities,
                                unsigned int entity_count, unsigned short* fields,
                                unsigned int field_count, unsigned int flags, DcgmValue* values) {
  gpu_emulator::wait_while_told();
  if (!is_ours(handle)) return gpu_emulator::kDcgmUninitialized;
  if (entities == nullptr || fields == nullptr || values == nullptr) {
    return gpu_emulator::kDcgmBadParameter;
  }
  for (unsigned int i = 0; i < entity_count; ++i) {
    if (!is_gpu(entities[i].kind, entities[i].id)) return gpu_emulator::kDcgmBadParameter;
    for (unsigned int j = 0; j < field_count; ++j) {
      answer(values[i * field_count + j], entities[i].id, fields[j], (flags & kLiveData) != 0);
    }
  }
  return gpu_emulator::kDcgmOk;
}

const char* errorString(int result) {
  switch (result) {
    case gpu_emulator::kDcgmOk:
      return "Success";
    case gpu_emulator::kDcgmVersionMismatch:
      return "API version mismatch";
    case gpu_emulator::kDcgmConnectionNotValid:
      return "The connection to the host engine is not valid any longer";
    case gpu_emulator::kDcgmNvmlError:
      return "NVML answered with an error";
    default:
      return nullptr;
  }
}
