#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nvml/board.h"

// Events that gpu-emulator injects. A process that waits for them sleeps on a futex in the state
// file, which gpu-emulator wakes; it takes no lock while it sleeps, so its other threads poll on.

namespace gpu_emulator {

struct EventSet {
  std::atomic<bool> is_used;
  std::atomic<std::uint64_t> types[kMaxGpus];  // registered per GPU
  std::atomic<std::uint64_t> from[kMaxGpus];   // number of the first event that counts
  std::atomic<bool> is_loss_told[kMaxGpus];
  std::atomic<std::uint64_t> next;  // number of the next event to look at
};

}  // namespace gpu_emulator

using gpu_emulator::board;
using gpu_emulator::BoardState;
using gpu_emulator::Event;
using gpu_emulator::EventData;
using gpu_emulator::EventSet;
using gpu_emulator::GpuState;
using gpu_emulator::kGpuIsLost;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kMaxEvents;
using gpu_emulator::kMaxGpus;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kTimeout;
using gpu_emulator::kUninitialized;
using gpu_emulator::Support;

namespace {

// nvmlEventType*
constexpr unsigned long long kEccEvents = 0x1 | 0x2;
constexpr unsigned long long kXid = 0x8;
constexpr unsigned long long kPstateAndClock = 0x4 | 0x10;
constexpr unsigned long long kRetirement = 0x400 | 0x800;
constexpr unsigned long long kUnavailable = 0x4000;
constexpr unsigned long long kRecoveryAction = 0x8000;

constexpr unsigned int kMaxSets = 64;
EventSet sets[kMaxSets];
pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;  // creation and freeing

bool is_set(const EventSet* set) {
  for (const EventSet& known : sets) {
    if (set == &known) return set->is_used.load(std::memory_order_acquire);
  }
  return false;
}

unsigned long long supported_types(const GpuState& gpu) {
  unsigned long long types = kXid | kPstateAndClock;
  if (gpu.ecc == Support::kOn) types |= kEccEvents;
  if (gpu_emulator::has_mig(gpu)) types |= gpu_emulator::kMigConfigChange;
  // Since the branch whose bindings have them first.
  if (board()->driver_major >= 570) types |= kRetirement | kUnavailable | kRecoveryAction;
  return types;
}

// Moves past the events of the ring until one is for this set. Two threads that wait on one set
// each get events of their own.
bool take_event(const BoardState& state, EventSet& set, EventData* out) {
  constexpr auto kAcquire = std::memory_order_acquire;
  while (true) {
    std::uint64_t number = set.next.load(kAcquire);
    const std::uint64_t last = state.event_count.load(kAcquire);
    if (number > last) return false;
    std::uint64_t at = number;
    if (last - at >= kMaxEvents) at = last - kMaxEvents + 1;  // the older ones are overwritten
    const Event& event = state.events[(at - 1) % kMaxEvents];
    const std::uint64_t type = event.type.load(kAcquire);
    const std::uint64_t data = event.data.load(kAcquire);
    const std::uint64_t gpu = event.gpu.load(kAcquire);
    const gpu_emulator::InstanceId instance = gpu_emulator::unpacked(event.instance.load(kAcquire));
    const bool is_whole = event.number.load(kAcquire) == at;
    if (!set.next.compare_exchange_strong(number, at + 1)) continue;
    if (!is_whole || gpu >= kMaxGpus) continue;
    const bool is_wanted = (set.types[gpu].load(kAcquire) & type) != 0;
    if (!is_wanted || at < set.from[gpu].load(kAcquire)) continue;
    *out = {gpu_emulator::handle_of(static_cast<std::uint32_t>(gpu)), type, data,
            instance.gpu_instance, instance.compute_instance};
    return true;
  }
}

// Returns true once for each loss of a registered GPU: a caller that asks again can wait for the
// others.
bool take_loss(const BoardState& state, EventSet& set) {
  for (std::uint32_t i = 0; i < kMaxGpus; ++i) {
    if (set.types[i].load(std::memory_order_acquire) == 0) continue;
    const bool is_lost = state.gpus[i].answer.load(std::memory_order_acquire) == kGpuIsLost;
    if (set.is_loss_told[i].exchange(is_lost) != is_lost && is_lost) return true;
  }
  return false;
}

void sleep_until_woken(const BoardState& state, std::uint32_t seen, std::uint64_t nanoseconds) {
  const timespec limit{static_cast<time_t>(nanoseconds / 1'000'000'000),
                       static_cast<long>(nanoseconds % 1'000'000'000)};
  // The word is shared with other processes, so the futex is not of the private kind.
  syscall(SYS_futex, &state.wake, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

nvmlReturn_t wait_for_event(EventSet* set, EventData* out, unsigned int timeout_ms) {
  const BoardState* state = board();
  if (state == nullptr) return kUninitialized;
  if (out == nullptr || !is_set(set)) return kInvalidArgument;
  const std::uint64_t end = gpu_emulator::now_ns(CLOCK_MONOTONIC) + timeout_ms * 1'000'000ull;
  while (true) {
    const std::uint32_t seen = state->wake.load(std::memory_order_acquire);
    if (take_event(*state, *set, out)) return kSuccess;
    if (take_loss(*state, *set)) return kGpuIsLost;
    const std::uint64_t now = gpu_emulator::now_ns(CLOCK_MONOTONIC);
    if (now >= end) return kTimeout;
    sleep_until_woken(*state, seen, end - now);
    if (!is_set(set)) return kInvalidArgument;
  }
}

}  // namespace

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* out) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  nvmlReturn_t result = gpu_emulator::kOutOfMemory;
  pthread_mutex_lock(&sets_lock);
  for (EventSet& set : sets) {
    if (set.is_used.load()) continue;
    for (std::uint32_t i = 0; i < kMaxGpus; ++i) {
      set.types[i].store(0);
      set.is_loss_told[i].store(false);
    }
    set.next.store(board()->event_count.load() + 1);
    set.is_used.store(true);
    *out = &set;
    result = kSuccess;
    break;
  }
  pthread_mutex_unlock(&sets_lock);
  return result;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  if (board() == nullptr) return kUninitialized;
  pthread_mutex_lock(&sets_lock);
  const nvmlReturn_t result = is_set(set) ? kSuccess : kInvalidArgument;
  if (result == kSuccess) set->is_used.store(false);
  pthread_mutex_unlock(&sets_lock);
  return result;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* types) {
  return gpu_emulator::get(device, types, supported_types);
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set) {
  if (board() == nullptr) return kUninitialized;
  if (!is_set(set)) return kInvalidArgument;
  return gpu_emulator::with_gpu(device, [&](const GpuState& gpu, std::uint32_t index) {
    if ((types & ~supported_types(gpu)) != 0) return kNotSupported;
    if (set->types[index].load() == 0) set->from[index].store(board()->event_count.load() + 1);
    set->types[index].fetch_or(types);
    return kSuccess;
  });
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, gpu_emulator::EventDataV1* data,
                              unsigned int timeout_ms) {
  EventData event{};
  const nvmlReturn_t result = wait_for_event(set, data == nullptr ? nullptr : &event, timeout_ms);
  if (result == kSuccess && data != nullptr)
    *data = {event.device, event.event_type, event.event_data};
  return result;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, EventData* data, unsigned int timeout_ms) {
  return wait_for_event(set, data, timeout_ms);
}
