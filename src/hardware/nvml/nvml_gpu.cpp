#include "hardware/nvml/nvml_gpu.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "hardware/cpu_list.h"

namespace gpu_platform::hardware {
namespace {

constexpr unsigned kMaxProcesses = 4096;  // on one GPU; a driver that says more is not believed
constexpr unsigned kMaxNumaNodes = 1024;
constexpr std::size_t kBitsPerWord = 8 * sizeof(unsigned long);
constexpr unsigned kMaxRetiredPages = 1u << 20;
// What a driver says beyond these is no reading.
constexpr std::int32_t kMinDegrees = -100;
constexpr std::int32_t kMaxDegrees = 1000;
constexpr std::uint32_t kMaxMilliwatts = 100'000'000;

// A byte count that fits our signed one.
std::optional<base::Bytes> bytes(unsigned long long value) {
  if (value >> 63 != 0) return std::nullopt;
  return base::Bytes(static_cast<std::int64_t>(value));
}

std::string text_of(const char* field, std::size_t capacity) {
  return std::string(field, strnlen(field, capacity));
}

CpuSet set_bits(const std::vector<unsigned long>& words) {
  CpuSet bits;
  for (std::size_t i = 0; i < words.size() * kBitsPerWord; ++i) {
    if (words[i / kBitsPerWord] >> (i % kBitsPerWord) & 1) {
      bits.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return bits;
}

// A field's value where the driver gives one that is a count.
std::optional<std::uint64_t> count_of(const NvmlFieldValue& field) {
  if (field.result != kNvmlSuccess) return std::nullopt;
  const auto unless_negative = [](long long value) -> std::optional<std::uint64_t> {
    if (value < 0) return std::nullopt;
    return static_cast<std::uint64_t>(value);
  };
  switch (field.type) {
    case kNvmlUnsigned:
      if (field.value.number == kNvmlNumberNotAvailable) return std::nullopt;
      return field.value.number;
    case kNvmlUnsignedLong:
      if (field.value.word == kNvmlValueNotAvailable) return std::nullopt;
      return field.value.word;
    case kNvmlUnsignedLongLong:
      if (field.value.wide == kNvmlValueNotAvailable) return std::nullopt;
      return field.value.wide;
    case kNvmlSignedLongLong:
      return unless_negative(field.value.wide_signed);
    case kNvmlSigned:
      return unless_negative(field.value.number_signed);
    case kNvmlUnsignedShort:
      return field.value.half;
    default:
      return std::nullopt;
  }
}

std::optional<base::Bytes> kib_of(const NvmlFieldValue& field) {
  const auto kib = count_of(field);
  if (!kib || *kib > std::numeric_limits<std::int64_t>::max() / 1024) return std::nullopt;
  return base::Bytes(static_cast<std::int64_t>(*kib * 1024));
}

model::RecoveryAction recovery_action_of(std::uint64_t value) {
  return value < static_cast<std::uint64_t>(model::RecoveryAction::kUnknown)
             ? static_cast<model::RecoveryAction>(value)
             : model::RecoveryAction::kUnknown;
}

std::optional<base::Bytes> sum(std::optional<base::Bytes> a, std::optional<base::Bytes> b) {
  if (!a || !b) return std::nullopt;
  if (a->value() > std::numeric_limits<std::int64_t>::max() - b->value()) return std::nullopt;
  return *a + *b;
}

// One entry for each pid. A process is in one list once for each MIG instance that it uses, which
// adds up, and in several lists with the same memory, which does not.
std::vector<GpuProcess> combined(std::vector<GpuProcess> all) {
  const auto place = [](const GpuProcess& process) { return std::pair(process.pid, process.uses); };
  std::ranges::stable_sort(all, {}, place);
  std::vector<GpuProcess> out;
  std::uint32_t latest_use = 0;
  for (const GpuProcess& process : all) {
    if (out.empty() || out.back().pid != process.pid) {
      out.push_back(process);
    } else if (latest_use == process.uses) {
      out.back().memory = sum(out.back().memory, process.memory);
    } else {
      out.back().uses |= process.uses;
      if (!out.back().memory) out.back().memory = process.memory;
    }
    latest_use = process.uses;
  }
  return out;
}

}  // namespace

int NvmlGpu::judge(int code) {
  switch (code) {
    case kNvmlErrorGpuIsLost:
    case kNvmlErrorResetRequired:
    case kNvmlErrorUninitialized:
    case kNvmlErrorDriverNotLoaded:
    case kNvmlErrorTimeout:
      refusal_ = code;
      break;
    default:
      break;
  }
  return code;
}

// ---- single values

std::optional<std::string> NvmlGpu::text(NvmlTextFunction function) {
  char buffer[128] = {};
  if (!ok(function, buffer, static_cast<unsigned>(sizeof buffer))) return std::nullopt;
  return text_of(buffer, sizeof buffer);
}

std::optional<std::uint32_t> NvmlGpu::number(NvmlNumberFunction function) {
  unsigned value = 0;
  if (!ok(function, &value) || value == kNvmlNumberNotAvailable) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> NvmlGpu::number(NvmlSelectedNumberFunction function,
                                             unsigned selector) {
  unsigned value = 0;
  if (!ok(function, selector, &value) || value == kNvmlNumberNotAvailable) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> NvmlGpu::wide(NvmlWideNumberFunction function) {
  unsigned long long value = 0;
  if (!ok(function, &value) || value == kNvmlValueNotAvailable) return std::nullopt;
  return value;
}

std::optional<base::Milliwatts> NvmlGpu::milliwatts(NvmlNumberFunction function) {
  const auto value = number(function);
  if (!value || *value > kMaxMilliwatts) return std::nullopt;
  return base::Milliwatts(*value);
}

std::optional<bool> NvmlGpu::mode(NvmlTwoNumbersFunction function) {
  unsigned current = 0;
  unsigned pending = 0;
  if (!ok(function, &current, &pending)) return std::nullopt;
  return current != 0;
}

std::optional<std::string> NvmlGpu::pci_address() {
  NvmlPciInfoV3 v3{};
  if (ok(f_.pci_v3, &v3)) return text_of(v3.bus_id, sizeof v3.bus_id);
  NvmlPciInfoV2 v2{};
  if (ok(f_.pci_v2, &v2)) return text_of(v2.bus_id, sizeof v2.bus_id);
  return std::nullopt;
}

std::optional<PciPlace> NvmlGpu::pci_place() {
  NvmlPciInfoV3 v3{};
  if (ok(f_.pci_v3, &v3)) return PciPlace{v3.domain, v3.bus, v3.device};
  NvmlPciInfoV2 v2{};
  if (ok(f_.pci_v2, &v2)) return PciPlace{v2.domain, v2.bus, v2.device};
  return std::nullopt;
}

std::optional<ComputeCapability> NvmlGpu::compute_capability() {
  int major = 0;
  int minor = 0;
  if (!ok(f_.compute_capability, &major, &minor) || major < 0 || minor < 0) return std::nullopt;
  return ComputeCapability{static_cast<std::uint32_t>(major), static_cast<std::uint32_t>(minor)};
}

std::optional<CpuSet> NvmlGpu::cpus() {
  std::vector<unsigned long> words(kMaxCpus / kBitsPerWord);
  if (!ok(f_.cpu_affinity, static_cast<unsigned>(words.size()), words.data())) return std::nullopt;
  return set_bits(words);
}

// Known where the GPU is near exactly one. Not nvmlDeviceGetNumaNodeId: that is the node which the
// GPU's own memory makes up, on machines where it does (GH200).
std::optional<std::uint32_t> NvmlGpu::numa_node() {
  std::vector<unsigned long> words(kMaxNumaNodes / kBitsPerWord);
  if (!ok(f_.memory_affinity, static_cast<unsigned>(words.size()), words.data(),
          kNvmlAffinityScopeNode)) {
    return std::nullopt;
  }
  const CpuSet nodes = set_bits(words);
  if (nodes.size() != 1) return std::nullopt;
  return nodes.front();
}

// A driver that says 0 does not know it.
std::optional<std::int32_t> NvmlGpu::slowdown_temperature() {
  const auto degrees = number(f_.temperature_threshold, kNvmlThresholdSlowdown);
  if (!degrees || *degrees == 0 || *degrees > 1000) return std::nullopt;
  return static_cast<std::int32_t>(*degrees);
}

NvmlGpu::Memory NvmlGpu::memory() {
  NvmlMemoryV2 v2{};
  v2.version = nvml_version<NvmlMemoryV2>(2);
  if (ok(f_.memory_v2, &v2)) {
    // Computed, because drivers differ in whether `used` counts the reserved part in.
    const auto free = bytes(v2.free);
    const auto reserved = bytes(v2.reserved);
    if (!free || !reserved || !bytes(v2.total) || v2.free + v2.reserved > v2.total) {
      return {bytes(v2.total), std::nullopt, std::nullopt};
    }
    return {bytes(v2.total), bytes(v2.total - v2.free - v2.reserved), reserved};
  }
  NvmlMemoryV1 v1{};
  if (!ok(f_.memory_v1, &v1)) return {};
  const auto used = v1.used <= v1.total ? bytes(v1.used) : std::nullopt;
  return {bytes(v1.total), used, std::nullopt};
}

std::optional<std::int32_t> NvmlGpu::temperature() {
  NvmlTemperatureV1 v1{};
  v1.version = nvml_version<NvmlTemperatureV1>(1);
  v1.sensor = kNvmlTemperatureGpu;
  if (ok(f_.temperature_v, &v1)) {
    if (v1.temperature < kMinDegrees || v1.temperature > kMaxDegrees) return std::nullopt;
    return v1.temperature;
  }
  const auto degrees = number(f_.temperature, kNvmlTemperatureGpu);
  if (!degrees || *degrees > kMaxDegrees) return std::nullopt;
  return static_cast<std::int32_t>(*degrees);
}

std::optional<NvmlUtilization> NvmlGpu::utilization() {
  NvmlUtilization rates{};
  if (!ok(f_.utilization, &rates) || rates.gpu > 100 || rates.memory > 100) return std::nullopt;
  return rates;
}

std::optional<std::uint32_t> NvmlGpu::engine_percent(NvmlTwoNumbersFunction function) {
  unsigned percent = 0;
  unsigned period_us = 0;
  if (!ok(function, &percent, &period_us) || percent > 100) return std::nullopt;
  return percent;
}

std::optional<std::uint64_t> NvmlGpu::ecc(unsigned error, unsigned counter) {
  unsigned long long count = 0;
  if (!ok(f_.ecc_errors, error, counter, &count) || count == kNvmlValueNotAvailable) {
    return std::nullopt;
  }
  return count;
}

// While MIG is off drivers count 0 devices; how often the smallest instance fits tells what would
// be.
std::optional<std::uint32_t> NvmlGpu::max_mig_devices() {
  const auto most = number(f_.max_mig_devices);
  if (most && *most > 0) return most;
  NvmlGpuInstanceProfile smallest{};
  if (!ok(f_.mig_profile, kNvmlSmallestGpuInstance, &smallest)) return std::nullopt;
  return smallest.instance_count;
}

// ---- groups

void NvmlGpu::describe(GpuDescription& out) {
  out.uuid = text(f_.uuid);
  out.model = text(f_.name);
  out.serial = text(f_.serial);
  out.pci_address = pci_address();
  out.minor = number(f_.minor);
  out.memory = memory().total;
  out.numa_node = numa_node();
  out.cpus = cpus();
  out.power_limit = milliwatts(f_.power_limit);
  unsigned low_mw = 0;
  unsigned high_mw = 0;
  if (ok(f_.power_limit_range, &low_mw, &high_mw) && low_mw <= high_mw &&
      high_mw != kNvmlNumberNotAvailable) {
    out.power_limit_min = base::Milliwatts(low_mw);
    out.power_limit_max = base::Milliwatts(high_mw);
  }
  out.compute_capability = compute_capability();
  out.mig_enabled = mode(f_.mig_mode);
  if (out.mig_enabled) out.max_mig_devices = max_mig_devices();
  out.ecc_enabled = mode(f_.ecc_mode);
  if (const auto persistence = number(f_.persistence)) out.persistence_enabled = *persistence != 0;
  out.pcie_generation_max = number(f_.pcie_generation_max);
  out.pcie_width_max = number(f_.pcie_width_max);
  out.slowdown_c = slowdown_temperature();
}

void NvmlGpu::read(GpuReading& out) {
  if (const auto rates = utilization()) {
    out.utilization_percent = rates->gpu;
    out.memory_utilization_percent = rates->memory;
  }
  out.encoder_percent = engine_percent(f_.encoder);
  out.decoder_percent = engine_percent(f_.decoder);
  const Memory now = memory();
  out.memory_total = now.total;
  out.memory_used = now.used;
  out.memory_reserved = now.reserved;
  out.temperature_c = temperature();
  out.power = milliwatts(f_.power);
  out.clock_sm_mhz = number(f_.clock, kNvmlClockSm);
  out.clock_memory_mhz = number(f_.clock, kNvmlClockMemory);
  out.throttle_reasons = wide(f_.throttle_reasons);
  out.ecc_corrected = ecc(kNvmlEccCorrected, kNvmlEccVolatile);
  out.ecc_uncorrected = ecc(kNvmlEccUncorrected, kNvmlEccVolatile);
  read_fields(out);
  out.processes = processes();
}

void NvmlGpu::read_fields(GpuReading& out) {
  std::array<NvmlFieldValue, 2> fields{};
  fields[0].field = kNvmlFieldMemoryTemperature;
  fields[1].field = kNvmlFieldRecoveryAction;
  if (!ok(f_.fields, static_cast<int>(fields.size()), fields.data())) return;
  if (const auto degrees = count_of(fields[0]); degrees && *degrees > 0 && *degrees <= 1000) {
    out.memory_temperature_c = static_cast<std::int32_t>(*degrees);
  }
  if (const auto action = count_of(fields[1])) out.recovery_action = recovery_action_of(*action);
}

model::GpuSlowMetrics NvmlGpu::read_slow() {
  model::GpuSlowMetrics out;
  out.energy_mj = energy_mj();
  out.pcie_generation = number(f_.pcie_generation);
  out.pcie_width = number(f_.pcie_width);
  if (const auto replays = number(f_.pcie_replays)) out.pcie_replays = *replays;
  out.ecc_lifetime_corrected = ecc(kNvmlEccCorrected, kNvmlEccAggregate);
  out.ecc_lifetime_uncorrected = ecc(kNvmlEccUncorrected, kNvmlEccAggregate);
  read_memory_repairs(out);
  read_nvlinks(out);
  out.pcie_sent_bytes_per_second = pcie_bytes_per_second(kNvmlPcieSent);
  out.pcie_received_bytes_per_second = pcie_bytes_per_second(kNvmlPcieReceived);
  return out;
}

std::optional<std::uint64_t> NvmlGpu::energy_mj() {
  return wide(f_.energy);
}

// NVML counts thousands of bytes in each second, over the 20 ms for which the call blocks.
std::optional<std::uint64_t> NvmlGpu::pcie_bytes_per_second(unsigned direction) {
  const auto kilobytes = number(f_.pcie_throughput, direction);
  if (!kilobytes) return std::nullopt;
  return std::uint64_t{*kilobytes} * 1000;
}

void NvmlGpu::read_memory_repairs(model::GpuSlowMetrics& out) {
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned is_pending = 0;
  unsigned has_failed = 0;
  if (ok(f_.remapped_rows, &corrected, &uncorrected, &is_pending, &has_failed)) {
    out.remapped_rows_corrected = corrected;
    out.remapped_rows_uncorrected = uncorrected;
    out.remap_pending = is_pending != 0;
    out.remap_failed = has_failed != 0;
  }
  out.retired_pages_corrected = retired_pages(kNvmlRetiredCorrected);
  out.retired_pages_uncorrected = retired_pages(kNvmlRetiredUncorrected);
  if (const auto pending = number(f_.retirement_pending)) out.retirement_pending = *pending != 0;
}

// Asked for their number alone: without room for addresses the driver says how many there are.
std::optional<std::uint32_t> NvmlGpu::retired_pages(unsigned cause) {
  if (f_.retired_pages == nullptr || refusal_ != kNvmlSuccess) return std::nullopt;
  unsigned count = 0;
  const int code = judge(f_.retired_pages(device_, cause, &count, nullptr));
  const bool is_counted = code == kNvmlSuccess || code == kNvmlErrorInsufficientSize;
  if (!is_counted || count > kMaxRetiredPages) return std::nullopt;
  return count;
}

void NvmlGpu::read_nvlinks(model::GpuSlowMetrics& out) {
  for (unsigned link = 0; link < kNvmlMaxLinks && f_.nvlink_state != nullptr; ++link) {
    if (refusal_ != kNvmlSuccess) return;
    unsigned is_active = 0;
    const int code = judge(f_.nvlink_state(device_, link, &is_active));
    if (code == kNvmlErrorInvalidArgument) break;
    if (code == kNvmlSuccess)
      out.nvlinks_active = out.nvlinks_active.value_or(0) + (is_active != 0);
  }
  if (!out.nvlinks_active) return;  // no NVLink: nothing to count
  std::array<NvmlFieldValue, 6> fields{};
  constexpr unsigned kIds[] = {kNvmlFieldNvLinkCrcFlitErrors, kNvmlFieldNvLinkCrcDataErrors,
                               kNvmlFieldNvLinkReplays,       kNvmlFieldNvLinkRecoveries,
                               kNvmlFieldNvLinkSentKib,       kNvmlFieldNvLinkReceivedKib};
  for (std::size_t i = 0; i < fields.size(); ++i) fields[i].field = kIds[i];
  fields[4].scope = fields[5].scope = kNvmlAllLinks;
  if (!ok(f_.fields, static_cast<int>(fields.size()), fields.data())) return;
  const auto flit = count_of(fields[0]);
  const auto data = count_of(fields[1]);
  if (flit || data) out.nvlink_crc_errors = flit.value_or(0) + data.value_or(0);
  out.nvlink_replays = count_of(fields[2]);
  out.nvlink_recoveries = count_of(fields[3]);
  out.nvlink_sent = kib_of(fields[4]);
  out.nvlink_received = kib_of(fields[5]);
}

NvLinkPorts NvmlGpu::ports() {
  NvLinkPorts ports;
  ports.own = pci_place();
  for (unsigned link = 0; link < kNvmlMaxLinks && f_.nvlink_state != nullptr; ++link) {
    if (refusal_ != kNvmlSuccess) return {};
    unsigned is_active = 0;
    const int code = judge(f_.nvlink_state(device_, link, &is_active));
    if (code == kNvmlErrorInvalidArgument) break;
    if (code != kNvmlSuccess || is_active == 0) continue;
    NvLinkEnd end;
    if (const auto type = number(f_.nvlink_peer_type, link)) {
      end.peer = *type == kNvmlLinkPeerGpu      ? NvLinkPeer::kGpu
                 : *type == kNvmlLinkPeerSwitch ? NvLinkPeer::kSwitch
                                                : NvLinkPeer::kOther;
    }
    NvmlPciInfoV3 pci{};
    if (ok(f_.nvlink_peer_pci, link, &pci)) end.place = PciPlace{pci.domain, pci.bus, pci.device};
    end.version = number(f_.nvlink_version, link).value_or(0);
    ports.ends.push_back(end);
  }
  return ports;
}

// ---- processes

std::optional<std::vector<GpuProcess>> NvmlGpu::processes() {
  std::vector<GpuProcess> all;
  if (!add_processes(all, f_.processes_v2, f_.processes_v1, kComputeProcess)) return std::nullopt;
  add_processes(all, f_.graphics_v2, f_.graphics_v1, kGraphicsProcess);
  add_processes(all, f_.mps_v2, f_.mps_v1, kMpsProcess);
  return combined(std::move(all));
}

bool NvmlGpu::add_processes(std::vector<GpuProcess>& all, NvmlListFunction<NvmlProcessInfoV2> v2,
                            NvmlListFunction<NvmlProcessInfoV1> v1, std::uint32_t use) {
  return v2 != nullptr ? add_processes(all, v2, use) : add_processes(all, v1, use);
}

// The list may grow between the question for its length and the list itself, so a few tries.
template <class Info>
bool NvmlGpu::add_processes(std::vector<GpuProcess>& all, NvmlListFunction<Info> function,
                            std::uint32_t use) {
  if (function == nullptr || refusal_ != kNvmlSuccess) return false;
  unsigned capacity = 16;
  for (int attempt = 0; attempt < 4; ++attempt) {
    std::vector<Info> found(capacity);
    unsigned count = capacity;
    const int code = judge(function(device_, &count, found.data()));
    if (code == kNvmlSuccess && count <= capacity) {
      for (unsigned i = 0; i < count; ++i) {
        GpuProcess process{found[i].pid, std::nullopt, use};
        if (found[i].used_gpu_memory != kNvmlValueNotAvailable) {
          process.memory = bytes(found[i].used_gpu_memory);
        }
        all.push_back(process);
      }
      return true;
    }
    if (code != kNvmlErrorInsufficientSize || count > kMaxProcesses) return false;
    capacity = std::max(count, capacity) + 16;
  }
  return false;
}

// Asked with room for most cases at once, because each question costs a millisecond.
std::optional<std::vector<NvmlProcessSample>> NvmlGpu::process_samples(std::uint64_t seen_us) {
  unsigned capacity = 128;
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (f_.process_samples == nullptr || refusal_ != kNvmlSuccess) return std::nullopt;
    std::vector<NvmlProcessSample> samples(capacity);
    unsigned count = capacity;
    const int code = judge(f_.process_samples(device_, samples.data(), &count, seen_us));
    if (code == kNvmlSuccess && count <= capacity) {
      samples.resize(count);
      return samples;
    }
    if (code != kNvmlErrorInsufficientSize || count > kMaxProcesses) return std::nullopt;
    capacity = std::max(count, capacity) + 16;
  }
  return std::nullopt;
}

std::vector<ProcessLoad> NvmlGpu::loads(std::uint64_t& seen_us) {
  auto samples = process_samples(seen_us);
  if (!samples) return {};
  // Drivers leave places of the list empty or as they were.
  std::erase_if(*samples, [&](const NvmlProcessSample& sample) {
    return sample.pid == 0 || sample.sm > 100 || sample.timestamp <= seen_us;
  });
  const auto place = [](const NvmlProcessSample& sample) {
    return std::pair(sample.pid, sample.timestamp);
  };
  std::ranges::sort(*samples, {}, place);
  std::vector<ProcessLoad> loads;
  for (const NvmlProcessSample& sample : *samples) {
    if (!loads.empty() && loads.back().pid == sample.pid) loads.pop_back();
    loads.push_back({sample.pid, sample.sm});
    seen_us = std::max<std::uint64_t>(seen_us, sample.timestamp);
  }
  return loads;
}

}  // namespace gpu_platform::hardware
