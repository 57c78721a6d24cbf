#include "nvml/board.h"

// Accounting: what the processes of a GPU used, while they run and after they ended.

using gpu_emulator::account;
using gpu_emulator::AccountedProcess;
using gpu_emulator::AccountingStats;
using gpu_emulator::board;
using gpu_emulator::get;
using gpu_emulator::GpuState;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotFound;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::set;
using gpu_emulator::value_of;

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

bool is_on(const GpuState& gpu) {
  return value_of(gpu.settings.accounts_processes) != 0;
}

void forget(GpuState& gpu, bool running_too) {
  for (AccountedProcess& record : gpu.accounted) {
    if (running_too || record.until_us.load(kRelaxed) != 0) record.pid.store(0, kRelaxed);
  }
}

// Runs `answer(gpu)` where accounting is on, with records that are up to date if this process may
// write them.
template <class Answer>
nvmlReturn_t with_records(nvmlDevice_t device, Answer answer) {
  return gpu_emulator::with_gpu(device, [&](const GpuState& gpu, std::uint32_t index) {
    if (!is_on(gpu)) return kNotSupported;
    (void)gpu_emulator::change(index, [](GpuState& to) { account(to, read_gpu(to), 0); });
    return answer(gpu);
  });
}

AccountingStats stats_of(const AccountedProcess& record) {
  const std::uint64_t from_us = record.from_us.load(kRelaxed);
  const std::uint64_t until_us = record.until_us.load(kRelaxed);
  const std::uint64_t end_us =
      until_us != 0 ? until_us : gpu_emulator::now_ns(CLOCK_REALTIME) / 1000;
  const std::uint64_t lived_us = end_us > from_us ? end_us - from_us : 0;
  const std::uint64_t busy_us = record.busy_us.load(kRelaxed);
  const std::uint64_t percent = lived_us == 0 ? 0 : busy_us / (lived_us / 100 + 1);
  AccountingStats stats{};
  stats.gpu_utilization = static_cast<unsigned int>(percent < 100 ? percent : 100);
  stats.memory_utilization = stats.gpu_utilization / 2;
  stats.max_memory_usage = record.max_memory_bytes.load(kRelaxed);
  stats.time = until_us == 0 ? 0 : lived_us / 1000;
  stats.start_time = from_us;
  stats.is_running = until_us == 0 ? 1 : 0;
  return stats;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, unsigned int* mode) {
  return get(device, mode, [](const GpuState& gpu) { return is_on(gpu) ? 1u : 0u; });
}

nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, unsigned int mode) {
  const auto check = [&](const GpuState& gpu) {
    if (gpu_emulator::is_mig_on(gpu)) return kNotSupported;
    return mode <= 1 ? kSuccess : kInvalidArgument;
  };
  return set(device, check, [&](GpuState& gpu) {
    gpu.settings.accounts_processes.store(mode, kRelaxed);
    if (mode == 0) forget(gpu, true);
    account(gpu, read_gpu(gpu), 0);
  });
}

nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int* size) {
  return get(device, size, [](const GpuState&) { return gpu_emulator::kMaxAccounted; });
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int* count,
                                         unsigned int* pids) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  return with_records(device, [&](const GpuState& gpu) {
    unsigned int found[gpu_emulator::kMaxAccounted];
    unsigned int known = 0;
    for (const AccountedProcess& record : gpu.accounted) {
      const auto pid = static_cast<unsigned int>(record.pid.load(kRelaxed));
      bool is_new = pid != 0;
      for (unsigned int i = 0; i < known; ++i) is_new = is_new && found[i] != pid;
      if (is_new) found[known++] = pid;
    }
    return gpu_emulator::list_of(count, pids, known,
                                 [&](unsigned int i, unsigned int* out) { *out = found[i]; });
  });
}

// Answers for the newest of several processes with one pid.
nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                          AccountingStats* stats) {
  if (board() == nullptr) return kUninitialized;
  if (stats == nullptr) return kInvalidArgument;
  return with_records(device, [&](const GpuState& gpu) {
    const AccountedProcess* newest = nullptr;
    for (const AccountedProcess& record : gpu.accounted) {
      if (pid == 0 || record.pid.load(kRelaxed) != pid) continue;
      if (newest == nullptr || record.from_us.load(kRelaxed) >= newest->from_us.load(kRelaxed)) {
        newest = &record;
      }
    }
    if (newest == nullptr) return kNotFound;
    *stats = stats_of(*newest);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t device) {
  return set(
      device, [](const GpuState& gpu) { return is_on(gpu) ? kSuccess : kNotSupported; },
      [](GpuState& gpu) { forget(gpu, false); });
}
