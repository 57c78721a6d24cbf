#include <string.h>

#include "nvml/board.h"
#include "nvml/rates.h"

// nvmlDeviceGetFieldValues: readings by number (NVML_FI_DEV_*).

using gpu_emulator::board;
using gpu_emulator::FieldValue;
using gpu_emulator::GpuReading;
using gpu_emulator::GpuState;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::NvLink;
using gpu_emulator::Support;
using gpu_emulator::Totals;

namespace {

// The parts of a GPU that one call needs.
struct Source {
  const GpuState& gpu;
  const GpuReading& now;
  const Totals& totals;
};

bool is_between(unsigned int id, unsigned int first, unsigned int last) {
  return first <= id && id <= last;
}

nvmlReturn_t put(FieldValue& field, std::uint32_t value) {
  field.value_type = gpu_emulator::kValueUint;
  field.value.uint_value = value;
  return kSuccess;
}

nvmlReturn_t put_long(FieldValue& field, std::uint64_t value) {
  field.value_type = gpu_emulator::kValueUllong;
  field.value.ullong_value = value;
  return kSuccess;
}

nvmlReturn_t put_signed(FieldValue& field, std::int32_t value) {
  field.value_type = gpu_emulator::kValueInt;
  field.value.int_value = value;
  return kSuccess;
}

nvmlReturn_t ecc_field(const Source& from, FieldValue& field) {
  const unsigned int id = field.field_id;
  if (from.gpu.ecc == Support::kUnsupported) return kNotSupported;
  if (id == 1) return put(field, from.gpu.ecc == Support::kOn ? 1 : 0);
  if (id == 2) return put(field, gpu_emulator::ecc_after_reset(from.gpu) == Support::kOn ? 1 : 0);
  if (from.gpu.ecc != Support::kOn) return kNotSupported;
  const auto count = [&](unsigned int span, unsigned int kind) {
    return put_long(field, from.gpu.ecc_errors[span][kind].load(std::memory_order_relaxed));
  };
  switch (id) {
    case 3:  // totals: volatile and aggregate, single and double bit
    case 4:
      return count(gpu_emulator::kEccVolatile, id - 3);
    case 5:
    case 6:
      return count(gpu_emulator::kEccAggregate, id - 5);
    case 11:  // of the device memory
    case 12:
      return count(gpu_emulator::kEccVolatile, id - 11);
    case 22:
    case 23:
      return count(gpu_emulator::kEccAggregate, id - 22);
    default:  // caches and registers, which are asked for one by one before Ampere only
      if (from.gpu.architecture >= gpu_emulator::kAmpere) return kNotSupported;
      return put_long(field, 0);
  }
}

nvmlReturn_t retirement_field(const Source& from, FieldValue& field) {
  if (from.gpu.remap_banks != 0) return kNotSupported;
  if (field.field_id == 31) {
    return put(field, from.gpu.retirement_pending.load(std::memory_order_relaxed));
  }
  std::uint32_t pages = 0;
  const std::uint32_t entered = from.gpu.retired_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < entered && i < gpu_emulator::kMaxRetiredPages; ++i) {
    const auto cause = from.gpu.retired_pages[i].cause.load(std::memory_order_relaxed);
    if (cause == field.field_id - 29) ++pages;  // 29 single bit, 30 double bit
  }
  return put(field, pages);
}

nvmlReturn_t remap_field(const Source& from, FieldValue& field) {
  const GpuState& gpu = from.gpu;
  if (gpu.remap_banks == 0) return kNotSupported;
  switch (field.field_id) {
    case 142:
    case 143:
      return put(field, gpu.remapped_rows[field.field_id - 142].load(std::memory_order_relaxed));
    case 144:
      return put(field, gpu.remap_pending.load(std::memory_order_relaxed));
    default:
      return put(field, gpu.remap_failed.load(std::memory_order_relaxed));
  }
}

// Adds up over the link named by the scope, or all of them for the scope of all ones. A link that
// is down keeps its count.
template <class Value>
nvmlReturn_t sum_links(const Source& from, FieldValue& field, Value value) {
  constexpr unsigned int kAll = 0xffffffff;
  const std::uint32_t links = link_count(from.gpu);
  if (links == 0) return kNotSupported;
  if (field.scope_id != kAll && field.scope_id >= links) return kInvalidArgument;
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < links; ++i) {
    if (field.scope_id == kAll || field.scope_id == i) sum += value(from.gpu.nvlinks[i]);
  }
  return put_long(field, sum);
}

nvmlReturn_t one_link_field(const Source& from, FieldValue& field) {
  const std::uint32_t links = link_count(from.gpu);
  if (links == 0) return kNotSupported;
  if (field.scope_id >= links) return kInvalidArgument;
  const NvLink link = gpu_emulator::link_of(from.gpu, field.scope_id);
  switch (field.field_id) {
    case 164:
      return put(field, link.active != 0 ? nvlink_megabytes_per_second(link) : 0);
    case 165:
      return put(field, link.active);
    case 166:
      return put(field, link.version);
    default:  // 146: the number that the peer gives this link
      return link.active != 0 ? put(field, link.remote_link) : kNotSupported;
  }
}

nvmlReturn_t speed_field(const GpuState& gpu, std::uint32_t number, FieldValue& field) {
  if (number >= link_count(gpu)) return kNotSupported;
  const NvLink link = gpu_emulator::link_of(gpu, number);
  return link.active != 0 ? put(field, nvlink_megabytes_per_second(link)) : kNotSupported;
}

// Counters that links have from the fifth generation on; the scope is the link.
nvmlReturn_t nvlink5_field(const Source& from, FieldValue& field) {
  constexpr std::uint32_t kFifth = 7;  // NVML's number of it
  constexpr std::uint64_t kPacketBytes = 256;
  if (link_count(from.gpu) == 0 || from.gpu.nvlink_version < kFifth) return kNotSupported;
  if (field.scope_id >= link_count(from.gpu)) return kInvalidArgument;
  const NvLink link = gpu_emulator::link_of(from.gpu, field.scope_id);
  if (link.active == 0) return kNotSupported;
  const std::uint64_t bytes = nvlink_kibibytes(link, from.totals.busy_us) * 1024;
  switch (field.field_id) {
    case 201:  // packets sent and received
    case 203:
      return put_long(field, bytes / kPacketBytes);
    case 202:  // bytes sent and received
    case 204:
      return put_long(field, bytes);
    default:  // errors, their rates and history, recoveries
      return put_long(field, 0);
  }
}

// Injected errors are of the first link: its counter and the sum of all links show them.
std::uint64_t link_errors(const GpuState& gpu, unsigned int id) {
  const auto count = [&](gpu_emulator::LinkError error) {
    return gpu.link_errors[error].load(std::memory_order_relaxed);
  };
  switch (id) {
    case 32:  // CRC errors of flits
    case 38:
      return count(gpu_emulator::kLinkCrc);
    case 46:
    case 52:
      return count(gpu_emulator::kLinkReplay);
    case 53:
    case 59:
      return count(gpu_emulator::kLinkRecovery);
    default:
      return 0;
  }
}

nvmlReturn_t nvlink_field(const Source& from, FieldValue& field) {
  const unsigned int id = field.field_id;
  const GpuState& gpu = from.gpu;
  if (link_count(gpu) == 0) return kNotSupported;
  std::uint32_t to_switches = 0;
  for (std::uint32_t i = 0; i < link_count(gpu); ++i) {
    const NvLink link = gpu_emulator::link_of(gpu, i);
    if (link.active != 0 && link.peer == gpu_emulator::LinkPeer::kSwitch) ++to_switches;
  }
  if (id == 90) return put(field, nvlink_megabytes_per_second(gpu_emulator::link_of(gpu, 0)));
  if (id == 91) return put(field, link_count(gpu));
  if (id == 147) return put(field, to_switches);
  if (id >= 138 && id <= 141) {  // payload sent and received, then with protocol
    return sum_links(from, field, [&](const NvLink& link) {
      const std::uint64_t data = nvlink_kibibytes(link, from.totals.busy_us);
      return id < 140 ? data : data + data / 8;
    });
  }
  if (is_between(id, 84, 89)) return speed_field(gpu, id - 84, field);
  if (is_between(id, 132, 137)) return speed_field(gpu, id - 132 + 6, field);
  return put_long(field, link_errors(gpu, id));
}

// The average over a second is there from Ampere on, but not on its GA100.
bool has_average_power(const GpuState& gpu) {
  const bool is_ga100 = gpu.compute_major == 8 && gpu.compute_minor == 0;
  return gpu.architecture >= gpu_emulator::kAmpere && !is_ga100;
}

// The scope is the GPU, its module (with a CPU) or its memory; the boards measure the first alone.
nvmlReturn_t power_field(const Source& from, FieldValue& field) {
  constexpr unsigned int kLastScope = 3;
  const GpuState& gpu = from.gpu;
  if (field.scope_id > kLastScope) return kInvalidArgument;
  if (field.scope_id != 0) return kNotSupported;
  switch (field.field_id) {
    case 185:  // average
      return has_average_power(gpu) ? put(field, from.now.power_mw) : kNotSupported;
    case 186:  // this instant
      return put(field, from.now.power_mw);
    case 187:
      return put(field, gpu.power_limit_min_mw);
    case 188:
    case 189:  // the default
      return put(field, gpu.power_limit_max_mw);
    default:  // 190 in force, 192 asked for
      return put(field, gpu_emulator::power_limit_mw(gpu));
  }
}

// Distances to the greatest temperature of operation, which these boards tell from Ada on.
nvmlReturn_t temperature_field(const Source& from, FieldValue& field) {
  const GpuState& gpu = from.gpu;
  if (gpu.architecture < gpu_emulator::kAda) return kNotSupported;
  const auto greatest = static_cast<std::int32_t>(gpu_emulator::greatest_temperature_c(gpu));
  switch (field.field_id) {
    case 193:
      return put_signed(field, greatest - static_cast<std::int32_t>(gpu.temperature_shutdown_c));
    case 194:
      return put_signed(field, greatest - static_cast<std::int32_t>(gpu.temperature_slowdown_c));
    case 195:
      return gpu.has_memory_temperature != 0 ? put_signed(field, 0) : kNotSupported;
    default:
      return put_signed(field, 0);
  }
}

// Returns how often the PCIe link failed, counted by kind. A replay follows a correctable error
// that the other end answers with a NAK.
nvmlReturn_t pcie_error_field(const Source& from, FieldValue& field) {
  if (from.gpu.architecture < gpu_emulator::kAmpere) return kNotSupported;
  const bool is_of_replays = field.field_id == 173 || field.field_id == 174;
  return put(field, is_of_replays ? from.gpu.pcie_replays.load(std::memory_order_relaxed) : 0);
}

nvmlReturn_t violation_field(const Source& from, FieldValue& field) {
  switch (field.field_id) {  // nanoseconds
    case 74:
      return put_long(field, from.totals.power_capped_us * 1000);
    case 75:
    case 270:
      return put_long(field, from.totals.thermal_slowdown_us * 1000);
    default:
      return put_long(field, 0);
  }
}

nvmlReturn_t read_field(const Source& from, FieldValue& field) {
  const unsigned int id = field.field_id;
  const GpuState& gpu = from.gpu;
  if (is_between(id, 1, 28)) return ecc_field(from, field);
  if (is_between(id, 29, 31)) return retirement_field(from, field);
  if (is_between(id, 142, 145)) return remap_field(from, field);
  if (id == 146 || is_between(id, 164, 166)) return one_link_field(from, field);
  if (is_between(id, 32, 59) || is_between(id, 84, 91) || is_between(id, 96, 119) ||
      is_between(id, 132, 141) || is_between(id, 147, 163)) {
    return nvlink_field(from, field);
  }
  if (is_between(id, 201, 222) || is_between(id, 235, 250)) return nvlink5_field(from, field);
  if (is_between(id, 74, 81) || is_between(id, 269, 271)) return violation_field(from, field);
  if (is_between(id, 173, 183)) return pcie_error_field(from, field);
  if (is_between(id, 193, 196)) return temperature_field(from, field);
  if (is_between(id, 185, 190) || id == 192) return power_field(from, field);
  const auto pcie_bytes = [&] { return from.totals.busy_us * pcie_kilobytes_per_second(gpu, 100); };
  switch (id) {
    case 82:  // the memory's temperature
      return gpu.has_memory_temperature != 0 ? put(field, from.now.memory_temperature_c)
                                             : kNotSupported;
    case 83:
    case 191:
      return put_long(field, from.totals.energy_uj / 1000);
    case 92:  // pages of single and double bit errors that wait for a reset
    case 93:
      if (gpu.remap_banks != 0) return kNotSupported;
      return put(field, gpu.retirement_pending.load(std::memory_order_relaxed));
    case 95:  // how often the counter of replays ran over
    case 169:
      return put(field, 0);
    case 167:  // of a link: full speed
      return gpu.nvlink_version >= 6 && field.scope_id < link_count(gpu) ? put(field, 0)
                                                                         : kNotSupported;
    case 184:  // MIG can be switched without a reset
      return gpu.mig == Support::kUnsupported ? kNotSupported
                                              : put(field, gpu.compute_major >= 9 ? 1 : 0);
    case 199:  // MIG can be asked about while it is off
      return put(field, gpu.mig == Support::kUnsupported ? 0 : 1);
    case 94:
      return put(field, gpu.pcie_replays.load(std::memory_order_relaxed));
    case 170:  // no links to a CPU
      return put(field, 0);
    case 197:  // PCIe bytes sent, received
      return put_long(field, pcie_bytes() / 4000);
    case 198:
      return put_long(field, pcie_bytes() / 1000);
    case 226:  // a reset is needed
    case 227:  // a reset is needed once the GPU is drained
      return put(field, gpu.recovery_action.load(std::memory_order_relaxed) == (id == 226 ? 1u : 4u)
                            ? 1
                            : 0);
    case 230:
      return put(field, gpu.recovery_action.load(std::memory_order_relaxed));
    default:
      return kNotSupported;
  }
}

// Returns the newest field that the board's driver knows, by the branches with known headers.
unsigned int last_field() {
  struct Branch {
    unsigned int major;
    unsigned int last;
  };
  constexpr Branch kBranches[] = {{615, 307}, {595, 295}, {575, 273}, {570, 268}, {550, 199}};
  for (const Branch& branch : kBranches) {
    if (board()->driver_major >= branch.major) return branch.last;
  }
  return 196;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, FieldValue* values) {
  if (board() == nullptr) return kUninitialized;
  if (values == nullptr || count <= 0) return kInvalidArgument;
  return gpu_emulator::with_gpu(device, [&](const GpuState& gpu, std::uint32_t index) {
    const GpuReading now = read_gpu(gpu);
    const Totals totals = gpu_emulator::totals_of(index);
    const Source from{gpu, now, totals};
    for (int i = 0; i < count; ++i) {
      FieldValue& field = values[i];
      memset(&field.value, 0, sizeof field.value);
      field.timestamp = static_cast<long long>(gpu_emulator::now_ns(CLOCK_REALTIME) / 1000);
      field.latency_usec = 0;
      field.value_type = gpu_emulator::kValueUint;
      const bool is_known = field.field_id != 0 && field.field_id <= last_field();
      field.nvml_return = is_known ? read_field(from, field) : kInvalidArgument;
    }
    return kSuccess;
  });
}
