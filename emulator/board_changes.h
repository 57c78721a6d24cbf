#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "board_mig.h"

// Changes the state of an emulated board. Header only and without allocation, because gpu-emulator
// and the small static program that registers processes share it. One file descriptor is for one
// thread: the lock belongs to the open file, not to the thread.

namespace gpu_emulator {

// Holds the file's lock while one GPU is changed; the sequence of its processes is odd meanwhile.
// First it brings up to date what grows with time, with the load as it was until now.
class Change {
 public:
  Change(int fd, GpuState& gpu) : fd_(fd), gpu_(gpu) {
    while (flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
    // A writer that died in the middle left it odd; settling reads the processes, so not yet here.
    settle(gpu_);
    const std::uint32_t now = gpu_.sequence.load(std::memory_order_relaxed);
    gpu_.sequence.store(now | 1, std::memory_order_relaxed);
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  ~Change() {
    const std::uint32_t now = gpu_.sequence.load(std::memory_order_relaxed);
    gpu_.sequence.store(now + 1, std::memory_order_release);
    flock(fd_, LOCK_UN);
  }

 private:
  int fd_;
  GpuState& gpu_;
};

enum class Entered { kDone, kTableFull, kOutOfMemory };

// Enters a process, or changes its entry. The caller holds a Change of the GPU; `free_bytes` gets
// what the other processes leave of the GPU, or of the GPU instance that the process uses.
inline Entered enter_process(GpuState& gpu, const ProcessReading& wanted,
                             std::uint64_t* free_bytes) {
  // Changes are stored in this order, so that none passes the sequence that announces it.
  constexpr auto kRelease = std::memory_order_release;
  std::uint64_t others = 0;
  ProcessEntry* own = nullptr;
  ProcessEntry* unused = nullptr;
  for (ProcessEntry& entry : gpu.processes) {
    const ProcessReading now{entry.pid, entry.start_ticks, entry.memory_bytes, 0,
                             unpacked(entry.instance)};
    if (now.pid == wanted.pid && now.instance == wanted.instance) {
      own = &entry;
    } else if (now.pid == 0 || !is_alive(now)) {
      unused = &entry;
    } else if (is_whole_gpu(wanted.instance) ||
               now.instance.gpu_instance == wanted.instance.gpu_instance) {
      others += now.memory_bytes;
    }
  }
  const std::uint64_t usable = usable_bytes(gpu, wanted.instance);
  *free_bytes = usable - (others < usable ? others : usable);
  ProcessEntry* entry = own != nullptr ? own : unused;
  if (entry == nullptr) return Entered::kTableFull;
  if (wanted.memory_bytes > *free_bytes) return Entered::kOutOfMemory;
  entry->start_ticks.store(wanted.start_ticks, kRelease);
  entry->memory_bytes.store(wanted.memory_bytes, kRelease);
  entry->utilization_percent.store(wanted.utilization_percent, kRelease);
  entry->instance.store(packed(wanted.instance), kRelease);
  entry->pid.store(wanted.pid, kRelease);
  return Entered::kDone;
}

// Removes a process (0: all). The caller holds a Change of the GPU.
inline void remove_process(GpuState& gpu, std::uint64_t pid) {
  for (ProcessEntry& entry : gpu.processes) {
    if (pid == 0 || entry.pid.load(std::memory_order_relaxed) == pid) {
      entry.pid.store(0, std::memory_order_release);
    }
  }
}

// Sets the counters back that count since the driver was loaded. The caller holds the file's lock.
inline void restart_counters(GpuState& gpu) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  for (auto& count : gpu.ecc_errors[kEccVolatile]) count.store(0, kRelaxed);
  for (auto& count : gpu.link_errors) count.store(0, kRelaxed);
  gpu.pcie_replays.store(0, kRelaxed);
}

// What a reset of the GPU does. MIG instances are gone, and its pending mode is there. Rows and
// pages that wait for it are out of use afterwards, links come up again, and the driver asks for
// nothing more. What is broken stays so: a remap that has failed, retired pages, a GPU that fell
// off the bus (which takes a reboot), a narrow link, heat. The caller holds a Change of the GPU, on
// which no process may be, and wakes the waiters after it.
inline void reset_gpu(GpuState& gpu) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  restart_counters(gpu);
  reset_mig(gpu);
  const std::uint32_t rows = gpu.rows_to_remap.exchange(0, kRelaxed);
  gpu.remapped_rows[kEccUncorrected].fetch_add(rows, kRelaxed);
  gpu.remap_pending.store(0, kRelaxed);
  gpu.retirement_pending.store(0, kRelaxed);
  gpu.recovery_action.store(0, kRelaxed);
  gpu.last_xid.store(0, kRelaxed);
  gpu.nvlinks_down.store(0, kRelaxed);
  // Limits and clocks that were set live in the driver, not in the GPU.
  Settings& set = gpu.settings;
  for (auto* value : {&set.power_limit_mw, &set.application_sm_mhz, &set.application_memory_mhz,
                      &set.locked_sm_min_mhz, &set.locked_sm_max_mhz, &set.locked_memory_min_mhz,
                      &set.locked_memory_max_mhz}) {
    value->store(0, kRelaxed);
  }
}

// Adds an event of a GPU; `type` is one bit of nvmlEventType*. The caller holds the file's lock,
// and wakes the waiters after it.
inline void add_event(BoardState& state, std::uint64_t gpu, std::uint64_t type, std::uint64_t data,
                      const InstanceId& instance) {
  constexpr auto kRelease = std::memory_order_release;
  const std::uint64_t number = state.event_count.load(std::memory_order_relaxed) + 1;
  Event& event = state.events[(number - 1) % kMaxEvents];
  event.number.store(0, std::memory_order_seq_cst);
  event.type.store(type, kRelease);
  event.data.store(data, kRelease);
  event.gpu.store(gpu, kRelease);
  event.instance.store(packed(instance), kRelease);
  event.number.store(number, kRelease);
  state.event_count.store(number, kRelease);
}

// Wakes all processes that wait for events.
inline void wake_waiters(BoardState& state) {
  constexpr int kAll = 0x7fffffff;
  state.wake.fetch_add(1, std::memory_order_release);
  // The word is shared with other processes, so the futex is not of the private kind.
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&state.wake), FUTEX_WAKE, kAll, nullptr,
          nullptr, 0);
}

}  // namespace gpu_emulator
