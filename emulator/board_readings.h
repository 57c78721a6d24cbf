#pragma once

#include <fcntl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "board_state.h"

// The readings of a GPU of an emulated board at this moment, computed from its state. Header only
// and without allocation, because the emulated library (which depends on libc alone) and
// gpu-emulator share it.

namespace gpu_emulator {

struct ProcessReading {
  std::uint64_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t utilization_percent = 0;
  InstanceId instance = {};
};

struct GpuReading {
  std::uint32_t process_count = 0;
  ProcessReading processes[kMaxProcesses];  // those that live
  std::uint64_t used_bytes = 0;             // without the reserved part
  std::uint64_t free_bytes = 0;
  std::uint32_t utilization_percent = 0;
  std::uint32_t memory_utilization_percent = 0;
  std::uint32_t temperature_c = 0;
  std::uint32_t memory_temperature_c = 0;
  std::uint32_t power_mw = 0;
  std::uint32_t clock_sm_mhz = 0;
  std::uint32_t clock_memory_mhz = 0;
  std::uint32_t performance_state = 0;
  std::uint32_t pcie_generation = 0;
  std::uint64_t throttle = 0;  // nvmlClocksEventReason* bits
};

// Reasons that hold the clocks down; the numbers are NVML's.
inline constexpr std::uint64_t kThrottleIdle = 0x1;
inline constexpr std::uint64_t kThrottleApplicationClocks = 0x2;
inline constexpr std::uint64_t kThrottlePowerCap = 0x4;
inline constexpr std::uint64_t kThrottleHwSlowdown = 0x8;
inline constexpr std::uint64_t kThrottleSwThermal = 0x20;
inline constexpr std::uint64_t kThrottleHwThermal = 0x40;
inline constexpr std::uint64_t kThrottlePowerBrake = 0x80;
inline constexpr std::uint64_t kThrottleThermal =
    kThrottleHwSlowdown | kThrottleSwThermal | kThrottleHwThermal;
inline constexpr std::uint64_t kThrottlePower = kThrottlePowerCap | kThrottlePowerBrake;

// Clock ticks after boot at which the process started; 0 when there is none (or /proc hides it).
inline std::uint64_t process_start_ticks(std::uint64_t pid) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%llu/stat", static_cast<unsigned long long>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = '\0';
  // The command's name may hold anything, so count from its closing parenthesis: the state is field
  // 3, the start time field 22.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || std::strlen(at) < 4) return 0;
  if (at[2] == 'Z' || at[2] == 'X') return 0;  // dead: its GPU memory is freed
  const char* value = at + 2;
  for (int field = 3; field < 22; ++field) {
    value = std::strchr(value, ' ');
    if (value == nullptr) return 0;
    ++value;
  }
  unsigned long long ticks = 0;
  return std::sscanf(value, "%llu", &ticks) == 1 ? ticks : 0;
}

inline bool is_alive(const ProcessReading& process) {
  return process.start_ticks == 0 || process_start_ticks(process.pid) == process.start_ticks;
}

// A copy of the processes at one moment. A writer that died while it wrote leaves an odd sequence.
// After the bound the copy is taken as it is; at worst that is a half-changed list until the next
// change.
inline std::uint32_t copy_processes(const GpuState& gpu, ProcessReading* out) {
  constexpr int kTries = 1000;
  constexpr auto kAcquire = std::memory_order_acquire;  // so that no load passes the ones before it
  std::uint32_t count = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const std::uint32_t before = gpu.sequence.load(kAcquire);
    count = 0;
    for (const ProcessEntry& entry : gpu.processes) {
      const std::uint64_t pid = entry.pid.load(kAcquire);
      if (pid == 0) continue;
      out[count++] = {pid, entry.start_ticks.load(kAcquire), entry.memory_bytes.load(kAcquire),
                      entry.utilization_percent.load(kAcquire),
                      unpacked(entry.instance.load(kAcquire))};
    }
    const bool is_stable = gpu.sequence.load(kAcquire) == before;
    if (is_stable && before % 2 == 0) break;
    sched_yield();
  }
  return count;
}

inline std::uint32_t between(std::uint32_t low, std::uint32_t high, std::uint32_t percent) {
  return low + static_cast<std::uint32_t>((std::uint64_t{high} - low) * percent / 100);
}

inline std::uint32_t value_of(const std::atomic<std::uint32_t>& value) {
  return value.load(std::memory_order_relaxed);
}

inline bool is_within(std::uint32_t low, std::uint32_t value, std::uint32_t high) {
  return low <= value && value <= high;
}

// The limit in force. What is set counts only within the board's bounds, also if the state has
// more.
inline std::uint32_t power_limit_mw(const GpuState& gpu) {
  const std::uint32_t set = value_of(gpu.settings.power_limit_mw);
  return is_within(gpu.power_limit_min_mw, set, gpu.power_limit_max_mw) ? set : gpu.power_limit_mw;
}

// Clocks that applications asked for; the greatest without any.
inline std::uint32_t application_sm_mhz(const GpuState& gpu) {
  const std::uint32_t set = value_of(gpu.settings.application_sm_mhz);
  return is_within(gpu.clock_sm_idle_mhz, set, gpu.clock_sm_max_mhz) ? set : gpu.clock_sm_max_mhz;
}
inline std::uint32_t application_memory_mhz(const GpuState& gpu) {
  const std::uint32_t set = value_of(gpu.settings.application_memory_mhz);
  const bool is_known = set == gpu.clock_memory_idle_mhz || set == gpu.clock_memory_max_mhz;
  return is_known ? set : gpu.clock_memory_max_mhz;
}

inline Support persistence_of(const GpuState& gpu) {
  const auto set = static_cast<Support>(value_of(gpu.settings.persistence));
  return set == Support::kOff || set == Support::kOn ? set : gpu.persistence;
}
inline Support ecc_after_reset(const GpuState& gpu) {
  const auto set = static_cast<Support>(value_of(gpu.settings.ecc_pending));
  return set == Support::kOff || set == Support::kOn ? set : gpu.ecc;
}

// The greatest temperature of operation: somewhat below the one at which the clocks fall.
inline std::uint32_t greatest_temperature_c(const GpuState& gpu) {
  constexpr std::uint32_t kBelowSlowdown = 2;
  return gpu.temperature_slowdown_c > kBelowSlowdown ? gpu.temperature_slowdown_c - kBelowSlowdown
                                                     : 0;
}

// A clock within what it is locked to; the lock counts only within what the GPU can do.
inline std::uint32_t locked(std::uint32_t mhz, std::uint32_t low, std::uint32_t high,
                            std::uint32_t greatest) {
  if (high == 0 || low > high || high > greatest) return mhz;
  return mhz < low ? low : mhz > high ? high : mhz;
}

// Clocks without slowdowns.
inline void read_clocks(const GpuState& gpu, bool is_awake, GpuReading& reading) {
  const Settings& set = gpu.settings;
  reading.clock_sm_mhz = is_awake ? application_sm_mhz(gpu) : gpu.clock_sm_idle_mhz;
  reading.clock_memory_mhz = is_awake ? application_memory_mhz(gpu) : gpu.clock_memory_idle_mhz;
  reading.clock_sm_mhz = locked(reading.clock_sm_mhz, value_of(set.locked_sm_min_mhz),
                                value_of(set.locked_sm_max_mhz), gpu.clock_sm_max_mhz);
  reading.clock_memory_mhz = locked(reading.clock_memory_mhz, value_of(set.locked_memory_min_mhz),
                                    value_of(set.locked_memory_max_mhz), gpu.clock_memory_max_mhz);
  const bool is_held = application_sm_mhz(gpu) < gpu.clock_sm_max_mhz ||
                       application_memory_mhz(gpu) < gpu.clock_memory_max_mhz;
  if (is_awake && is_held) reading.throttle |= kThrottleApplicationClocks;
}

// A link as it is now. `number` is below kMaxNvLinks.
inline NvLink link_of(const GpuState& gpu, std::uint32_t number) {
  NvLink link = gpu.nvlinks[number];
  const std::uint64_t down = gpu.nvlinks_down.load(std::memory_order_relaxed);
  if ((down >> number & 1) != 0) link.active = 0;
  return link;
}

// The lanes in use.
inline std::uint32_t pcie_width(const GpuState& gpu) {
  const std::uint32_t injected = value_of(gpu.injected_pcie_width);
  return is_within(1, injected, gpu.pcie_width) ? injected : gpu.pcie_width;
}

// Computes temperature, clocks and the reasons that hold them down, from the load that `reading`
// has already.
inline void read_condition(const GpuState& gpu, GpuReading& reading) {
  const std::uint32_t percent = reading.utilization_percent;
  const std::uint32_t injected = gpu.injected_temperature_c.load(std::memory_order_relaxed);
  reading.temperature_c =
      injected != 0 ? injected : between(gpu.temperature_idle_c, gpu.temperature_loaded_c, percent);
  constexpr std::uint32_t kMemoryWarmer = 6;
  const std::uint32_t memory_c = value_of(gpu.injected_memory_temperature_c);
  reading.memory_temperature_c = memory_c != 0 ? memory_c : reading.temperature_c + kMemoryWarmer;
  const std::uint32_t limit_mw = power_limit_mw(gpu);
  reading.power_mw =
      limit_mw < gpu.power_idle_mw ? limit_mw : between(gpu.power_idle_mw, limit_mw, percent);
  // A GPU with a process on it runs at full clocks, as real ones do once a context exists. An idle
  // GPU that lowers its memory clock is in P8, with its PCIe link slowed down.
  const bool is_awake = reading.process_count > 0;
  const bool is_asleep = !is_awake && gpu.clock_memory_idle_mhz < gpu.clock_memory_max_mhz;
  reading.performance_state = is_asleep ? 8 : 0;
  reading.pcie_generation = is_asleep ? 1 : gpu.pcie_generation;
  reading.throttle = gpu.injected_throttle.load(std::memory_order_relaxed);
  read_clocks(gpu, is_awake, reading);
  if (!is_awake) reading.throttle |= kThrottleIdle;
  if (percent == 100) reading.throttle |= kThrottlePowerCap;
  if (reading.temperature_c >= gpu.temperature_slowdown_c) {
    reading.throttle |= kThrottleHwSlowdown | kThrottleHwThermal;
  }
  const bool is_slow = (reading.throttle & (kThrottleThermal | kThrottlePowerBrake)) != 0;
  if (is_awake && is_slow) {
    const std::uint32_t slow_mhz = between(gpu.clock_sm_idle_mhz, gpu.clock_sm_max_mhz, 50);
    if (reading.clock_sm_mhz > slow_mhz) reading.clock_sm_mhz = slow_mhz;
    if (reading.power_mw > gpu.power_idle_mw) {
      reading.power_mw = between(gpu.power_idle_mw, reading.power_mw, 60);
    }
  }
}

inline GpuReading read_gpu(const GpuState& gpu) {
  GpuReading reading;
  const std::uint32_t entered = copy_processes(gpu, reading.processes);
  std::uint64_t busy = 0;
  for (std::uint32_t i = 0; i < entered; ++i) {
    if (!is_alive(reading.processes[i])) continue;
    reading.used_bytes += reading.processes[i].memory_bytes;
    busy += reading.processes[i].utilization_percent;
    reading.processes[reading.process_count++] = reading.processes[i];
  }
  const std::uint64_t usable = gpu.memory_bytes - gpu.reserved_bytes;
  if (reading.used_bytes > usable) reading.used_bytes = usable;
  reading.free_bytes = usable - reading.used_bytes;
  reading.utilization_percent = static_cast<std::uint32_t>(busy < 100 ? busy : 100);
  reading.memory_utilization_percent = reading.utilization_percent / 2;
  read_condition(gpu, reading);
  return reading;
}

inline std::uint64_t now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// The integrals at one moment.
struct Totals {
  std::uint64_t at_ns = 0;
  std::uint64_t energy_uj = 0;
  std::uint64_t busy_us = 0;
  std::uint64_t power_capped_us = 0;
  std::uint64_t thermal_slowdown_us = 0;
};

// Reads what was last written. Returns false if a writer was in the middle for too long.
inline bool copy_totals(const Integrals& from, Totals* out) {
  constexpr auto kAcquire = std::memory_order_acquire;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const std::uint32_t before = from.sequence.load(kAcquire);
    *out = {from.at_ns.load(kAcquire), from.energy_uj.load(kAcquire), from.busy_us.load(kAcquire),
            from.power_capped_us.load(kAcquire), from.thermal_slowdown_us.load(kAcquire)};
    if (before % 2 == 0 && from.sequence.load(kAcquire) == before) return true;
    sched_yield();
  }
  return false;
}

// Computes the values up to `now_ns` (CLOCK_BOOTTIME), as if the GPU had not changed since.
inline Totals totals_until(const GpuState& gpu, const GpuReading& now, std::uint64_t now_ns) {
  Totals totals;
  (void)copy_totals(gpu.integrals, &totals);
  // A state older than the boot has a time ahead of the clock: counting goes on from now.
  if (totals.at_ns == 0 || totals.at_ns > now_ns) totals.at_ns = now_ns;
  const std::uint64_t elapsed_us = (now_ns - totals.at_ns) / 1000;
  totals.at_ns += elapsed_us * 1000;
  totals.energy_uj += elapsed_us * now.power_mw / 1000;
  totals.busy_us += elapsed_us * now.utilization_percent / 100;
  if ((now.throttle & kThrottlePower) != 0) totals.power_capped_us += elapsed_us;
  if ((now.throttle & kThrottleThermal) != 0) totals.thermal_slowdown_us += elapsed_us;
  return totals;
}

inline bool is_record_of(const AccountedProcess& record, const ProcessReading& process) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  return record.pid.load(kRelaxed) == process.pid &&
         record.start_ticks.load(kRelaxed) == process.start_ticks &&
         record.until_us.load(kRelaxed) == 0;
}

// The running record of the process; a new one, in place of the oldest, when it has none.
inline AccountedProcess& record_of(GpuState& gpu, const ProcessReading& process,
                                   std::uint64_t now_us) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  for (AccountedProcess& record : gpu.accounted) {
    if (is_record_of(record, process)) return record;
  }
  AccountedProcess& record = gpu.accounted[gpu.accounted_count.fetch_add(1) % kMaxAccounted];
  record.pid.store(0, kRelaxed);
  record.start_ticks.store(process.start_ticks, kRelaxed);
  record.from_us.store(now_us, kRelaxed);
  record.until_us.store(0, kRelaxed);
  record.busy_us.store(0, kRelaxed);
  record.max_memory_bytes.store(0, kRelaxed);
  record.pid.store(process.pid, std::memory_order_release);
  return record;
}

// Brings the accounting up to date with the processes of this moment, which have been as they are
// for `elapsed_us`. The caller holds the file's lock.
inline void account(GpuState& gpu, const GpuReading& now, std::uint64_t elapsed_us) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  if (value_of(gpu.settings.accounts_processes) == 0) return;
  const std::uint64_t now_us = now_ns(CLOCK_REALTIME) / 1000;
  for (AccountedProcess& record : gpu.accounted) {
    if (record.pid.load(kRelaxed) == 0 || record.until_us.load(kRelaxed) != 0) continue;
    bool is_there = false;
    for (std::uint32_t i = 0; i < now.process_count; ++i) {
      is_there = is_there || is_record_of(record, now.processes[i]);
    }
    if (!is_there) record.until_us.store(now_us, kRelaxed);
  }
  for (std::uint32_t i = 0; i < now.process_count; ++i) {
    const ProcessReading& process = now.processes[i];
    AccountedProcess& record = record_of(gpu, process, now_us);
    record.busy_us.fetch_add(elapsed_us * process.utilization_percent / 100, kRelaxed);
    if (process.memory_bytes > record.max_memory_bytes.load(kRelaxed)) {
      record.max_memory_bytes.store(process.memory_bytes, kRelaxed);
    }
  }
}

// Writes the integrals up to now. The caller holds the file's lock.
inline void settle(GpuState& gpu) {
  constexpr auto kRelease = std::memory_order_release;
  Integrals& to = gpu.integrals;
  const GpuReading now = read_gpu(gpu);
  const std::uint64_t last_ns = to.at_ns.load(std::memory_order_relaxed);
  const Totals totals = totals_until(gpu, now, now_ns(CLOCK_BOOTTIME));
  const bool is_later = last_ns != 0 && totals.at_ns > last_ns;
  account(gpu, now, is_later ? (totals.at_ns - last_ns) / 1000 : 0);
  const std::uint32_t sequence = to.sequence.load(std::memory_order_relaxed) | 1;
  to.sequence.store(sequence, std::memory_order_relaxed);
  to.at_ns.store(totals.at_ns, kRelease);
  to.energy_uj.store(totals.energy_uj, kRelease);
  to.busy_us.store(totals.busy_us, kRelease);
  to.power_capped_us.store(totals.power_capped_us, kRelease);
  to.thermal_slowdown_us.store(totals.thermal_slowdown_us, kRelease);
  to.sequence.store(sequence + 1, kRelease);
}

template <std::size_t N>
bool ends(const char (&text)[N]) {
  return std::memchr(text, 0, N) != nullptr;
}

// Returns false if the fixed part of a GPU would lead a reader out of bounds.
inline bool is_valid(const GpuState& gpu, const BoardState& board) {
  bool are_texts_ended = ends(gpu.name) && ends(gpu.uuid) && ends(gpu.serial) &&
                         ends(gpu.vbios_version) && ends(gpu.part_number) &&
                         ends(gpu.inforom_image) && ends(gpu.inforom_oem) && ends(gpu.inforom_ecc);
  for (const MigProfile& profile : gpu.mig_profiles) {
    are_texts_ended = are_texts_ended && ends(profile.name);
  }
  return are_texts_ended && gpu.numa_node < board.numa_count && gpu.nvlink_count <= kMaxNvLinks &&
         gpu.mig_profile_count <= kMaxMigProfiles && gpu.reserved_bytes <= gpu.memory_bytes;
}

// Returns false if the memory, of at least sizeof(BoardState), holds no state of this version.
inline bool is_valid(const BoardState& state) {
  const bool is_ours = std::memcmp(state.magic, kMagic, sizeof kMagic) == 0 &&
                       state.version == kVersion && state.size == sizeof(BoardState);
  if (!is_ours || state.gpu_count > kMaxGpus || state.numa_count > kMaxNumaNodes) return false;
  for (std::uint32_t i = 0; i < state.gpu_count; ++i) {
    if (!is_valid(state.gpus[i], state)) return false;
  }
  for (std::uint32_t i = 0; i < state.numa_count; ++i) {
    if (state.numa_nodes[i].socket >= kMaxNumaNodes) return false;
  }
  return ends(state.board) && ends(state.node_name) && ends(state.driver_version) &&
         ends(state.nvml_version);
}

}  // namespace gpu_emulator
