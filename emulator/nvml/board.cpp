#include "nvml/board.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "board_changes.h"
#include "mig_files.h"

namespace gpu_emulator {

// Handles are told apart by their address alone.
struct DeviceHandle {
  char unused;
};
struct GpuInstanceHandle {
  char unused;
};
struct ComputeInstanceHandle {
  char unused;
};

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int attach_count = 0;                // under lock
const BoardState* mapped = nullptr;  // under lock; set once, never unmapped
BoardState* writable = nullptr;  // the same for settling; null where the file may not be written
int writable_fd = -1;            // under lock, for the file's lock
Totals told[kMaxGpus];           // under lock
std::atomic<const BoardState*> current{nullptr};
DeviceHandle handles[kMaxGpus];
constexpr std::uint32_t kInstancesOfGpu = kMaxGpuInstances * kMaxComputeInstances;
DeviceHandle instance_handles[kMaxGpus * kInstancesOfGpu];
ComputeInstanceHandle compute_instance_handles[kMaxGpus * kInstancesOfGpu];
GpuInstanceHandle gpu_instance_handles[kMaxGpus * kMaxGpuInstances];
int holding_fd = -1;  // under lock; its lock of kHeldByte says that NVML is initialised here
// Written under lock, while the library is not initialised.
std::uint32_t minors[kMaxGpus];  // by index on the board
std::uint32_t visible[kMaxGpus];
std::uint32_t visible_gpus = 0;

// The place of a handle in its array; `count` if it is not there.
template <class Handle>
std::uint32_t place_in(const Handle* all, std::uint32_t count, const Handle* handle) {
  const auto first = reinterpret_cast<std::uintptr_t>(all);
  const auto at = reinterpret_cast<std::uintptr_t>(handle);
  return at >= first && at - first < count ? static_cast<std::uint32_t>(at - first) : count;
}

std::uint32_t place_of(std::uint32_t index, const InstanceId& id) {
  return index * kInstancesOfGpu + id.gpu_instance * kMaxComputeInstances + id.compute_instance;
}

Device device_at(std::uint32_t place) {
  const std::uint32_t instance = place % kInstancesOfGpu;
  return {place / kInstancesOfGpu,
          {instance / kMaxComputeInstances, instance % kMaxComputeInstances}};
}

// A byte behind the end of the file. Each process that has NVML initialised holds a lock of it,
// which its readers share and which ends with the process.
constexpr off_t kHeldByte = off_t{1} << 40;

int lock_held_byte(int command, short* type) {
  struct flock wanted{};
  wanted.l_type = *type;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = kHeldByte;
  wanted.l_len = 1;
  const int result = fcntl(holding_fd, command, &wanted);
  *type = wanted.l_type;
  return result;
}

void hold_driver(short type) {
  lock_held_byte(F_OFD_SETLK, &type);
}

const char* device_folder() {
  const char* folder = getenv("GPU_EMULATOR_DEVICES");
  return folder == nullptr || *folder == '\0' ? nullptr : folder;
}

Return return_of_errno(int error) {
  return error == EACCES || error == EPERM ? kNoPermission : kDriverNotLoaded;
}

// A second mapping, so that all else in the library cannot write. It must be of the file that is
// mapped already, which a rename may have replaced meanwhile.
void map_for_settling(const char* path, const struct stat& mapped_file) {
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  struct stat status{};
  void* memory = MAP_FAILED;
  if (fstat(fd, &status) == 0 && status.st_ino == mapped_file.st_ino &&
      status.st_dev == mapped_file.st_dev) {
    memory = mmap(nullptr, sizeof(BoardState), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (memory == MAP_FAILED) {
    close(fd);
    return;
  }
  writable = static_cast<BoardState*>(memory);
  writable_fd = fd;
}

bool has_node(const char* folder, const char* name, std::uint32_t minor) {
  char path[4096];
  struct stat about{};
  const int size = snprintf(path, sizeof path, "%s/%s%u", folder, name, minor);
  return size > 0 && static_cast<std::size_t>(size) < sizeof path && stat(path, &about) == 0 &&
         S_ISCHR(about.st_mode);
}

void find_visible(const BoardState& state) {
  const char* folder = device_folder();
  visible_gpus = 0;
  std::uint32_t listed = 0;
  for (const bool is_last : {false, true}) {
    for (std::uint32_t i = 0; i < gpu_count(state); ++i) {
      const auto listing =
          static_cast<Listing>(state.gpus[i].listing.load(std::memory_order_relaxed));
      if (listing == Listing::kNot || (listing == Listing::kLast) != is_last) continue;
      minors[i] = listed++;
      if (folder == nullptr || has_node(folder, "nvidia", minors[i])) visible[visible_gpus++] = i;
    }
  }
}

Return map_state(const BoardState** out) {
  const char* path = getenv("GPU_EMULATOR_STATE");
  if (path == nullptr || *path == '\0') return kDriverNotLoaded;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return return_of_errno(errno);
  struct stat status{};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size < static_cast<off_t>(sizeof(BoardState))) {
    close(fd);
    return kLibRmVersionMismatch;
  }
  void* memory = mmap(nullptr, sizeof(BoardState), PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    close(fd);
    return kUnknown;
  }
  const auto* state = static_cast<const BoardState*>(memory);
  if (!is_valid(*state)) {
    munmap(memory, sizeof(BoardState));
    close(fd);
    return kLibRmVersionMismatch;
  }
  *out = state;
  holding_fd = fd;
  map_for_settling(path, status);
  return kSuccess;
}

Return return_of(MigResult result) {
  switch (result) {
    case MigResult::kDone:
      return kSuccess;
    case MigResult::kBadPlacement:
      return kInvalidArgument;
    case MigResult::kNoRoom:
      return kInsufficientResources;
    case MigResult::kInUse:
      return kInUse;
    case MigResult::kNotFound:
      return kNotFound;
    case MigResult::kFails:
      break;
  }
  return kUnknown;
}

bool is_ahead(const Totals& a, const Totals& b) {
  return a.energy_uj >= b.energy_uj && a.busy_us >= b.busy_us &&
         a.power_capped_us >= b.power_capped_us && a.thermal_slowdown_us >= b.thermal_slowdown_us;
}

// Called under the lock. It never waits for the file's lock: the process that holds it settles the
// GPU.
void settle_if_due(std::uint32_t index, std::uint64_t now) {
  constexpr std::uint64_t kEveryNs = 50'000'000;
  if (writable == nullptr) return;
  const std::uint64_t at = writable->gpus[index].integrals.at_ns.load(std::memory_order_relaxed);
  if (at <= now && now - at < kEveryNs) return;
  if (flock(writable_fd, LOCK_EX | LOCK_NB) != 0) return;
  settle(writable->gpus[index]);
  flock(writable_fd, LOCK_UN);
}

// One try, under lock.
bool try_change(std::uint32_t index, void (*edit)(void*, GpuState&), void* context) {
  if (flock(writable_fd, LOCK_EX | LOCK_NB) != 0) return false;
  GpuState& gpu = writable->gpus[index];
  settle(gpu);
  edit(context, gpu);
  flock(writable_fd, LOCK_UN);
  return true;
}

}  // namespace

Return attach() {
  pthread_mutex_lock(&lock);
  Return result = kSuccess;
  if (mapped == nullptr) result = map_state(&mapped);
  if (result == kSuccess) {
    if (attach_count == 0) {
      find_visible(*mapped);
      hold_driver(F_RDLCK);
    }
    ++attach_count;
    current.store(mapped, std::memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

Return detach() {
  pthread_mutex_lock(&lock);
  Return result = kUninitialized;
  if (attach_count > 0) {
    result = kSuccess;
    if (--attach_count == 0) {
      current.store(nullptr, std::memory_order_release);
      hold_driver(F_UNLCK);
    }
  }
  pthread_mutex_unlock(&lock);
  return result;
}

const BoardState* board() {
  return current.load(std::memory_order_acquire);
}

std::uint32_t visible_count() {
  return visible_gpus;
}

std::uint32_t visible_gpu(std::uint32_t place) {
  return visible[place];
}

std::uint32_t place_of_visible(std::uint32_t index) {
  std::uint32_t place = 0;
  while (place < visible_gpus && visible[place] != index) ++place;
  return place;
}

std::uint32_t minor_of(std::uint32_t index) {
  return minors[index];
}

DeviceHandle* handle_of(std::uint32_t index) {
  return &handles[index];
}

DeviceHandle* handle_of(std::uint32_t index, const InstanceId& id) {
  return &instance_handles[place_of(index, id)];
}

bool device_of(const DeviceHandle* handle, Device* device) {
  const std::uint32_t gpu = place_in(handles, kMaxGpus, handle);
  if (gpu < kMaxGpus) {
    *device = {gpu, {}};
    return true;
  }
  constexpr std::uint32_t kCount = kMaxGpus * kInstancesOfGpu;
  const std::uint32_t place = place_in(instance_handles, kCount, handle);
  if (place < kCount) *device = device_at(place);
  return place < kCount;
}

GpuInstanceHandle* handle_of_gpu_instance(std::uint32_t index, std::uint32_t gpu_instance) {
  return &gpu_instance_handles[index * kMaxGpuInstances + gpu_instance];
}

bool device_of(const GpuInstanceHandle* handle, Device* device) {
  constexpr std::uint32_t kCount = kMaxGpus * kMaxGpuInstances;
  const std::uint32_t place = place_in(gpu_instance_handles, kCount, handle);
  if (place < kCount) *device = {place / kMaxGpuInstances, {place % kMaxGpuInstances, kNoId}};
  return place < kCount;
}

ComputeInstanceHandle* handle_of_compute_instance(std::uint32_t index, const InstanceId& id) {
  return &compute_instance_handles[place_of(index, id)];
}

bool device_of(const ComputeInstanceHandle* handle, Device* device) {
  constexpr std::uint32_t kCount = kMaxGpus * kInstancesOfGpu;
  const std::uint32_t place = place_in(compute_instance_handles, kCount, handle);
  if (place < kCount) *device = device_at(place);
  return place < kCount;
}

bool is_instance_visible(const GpuState& gpu, const InstanceId& id) {
  const char* folder = device_folder();
  if (folder == nullptr) return true;
  constexpr char kNode[] = "nvidia-caps/nvidia-cap";
  return has_node(folder, kNode, capability_minor(gpu.minor, {id.gpu_instance, kNoId})) &&
         has_node(folder, kNode, capability_minor(gpu.minor, id));
}

bool instance_at(const GpuState& gpu, std::uint32_t place, InstanceId* id) {
  bool is_found = false;
  visit_compute_instances(gpu, [&](const InstanceId& each) {
    if (!is_instance_visible(gpu, each) || place-- != 0) return false;
    *id = each;
    is_found = true;
    return true;
  });
  return is_found;
}

bool may_configure_mig() {
  if (geteuid() == 0) return true;
  const char* folder = device_folder();
  char path[4096];
  const int size = snprintf(path, sizeof path, "%s/nvidia-caps/nvidia-cap%u",
                            folder == nullptr ? "" : folder, kMigConfigMinor);
  return folder != nullptr && size > 0 && static_cast<std::size_t>(size) < sizeof path &&
         access(path, R_OK) == 0;
}

bool is_driver_held() {
  pthread_mutex_lock(&lock);
  short type = F_WRLCK;
  const bool is_asked = lock_held_byte(F_OFD_GETLK, &type) == 0;
  pthread_mutex_unlock(&lock);
  return is_asked && type != F_UNLCK;
}

Return copy_field(const char* text, std::size_t field, char* out, unsigned int length) {
  if (out == nullptr) return kInvalidArgument;
  const size_t size = strnlen(text, field - 1);
  if (size + 1 > length) return kInsufficientSize;
  memcpy(out, text, size);
  out[size] = '\0';
  return kSuccess;
}

Return change_gpu(std::uint32_t index, void (*edit)(void* context, GpuState& gpu), void* context) {
  constexpr int kTries = 500;  // milliseconds: no call waits for ever for a lock that is kept
  for (int attempt = 0; attempt < kTries; ++attempt) {
    pthread_mutex_lock(&lock);
    const bool is_writable = writable != nullptr;
    const bool is_done = is_writable && try_change(index, edit, context);
    pthread_mutex_unlock(&lock);
    if (!is_writable) return kNoPermission;
    if (is_done) return kSuccess;
    wait_us(1000);
  }
  return kInUse;
}

Return change_mig(std::uint32_t index, MigResult (*edit)(void* context, GpuState& gpu),
                  void* context) {
  struct Job {
    MigResult (*edit)(void*, GpuState&);
    void* context;
    std::uint32_t index;
    MigResult result;
  } job{edit, context, index, MigResult::kDone};
  const Return changed = change(index, [&job](GpuState& gpu) {
    job.result = job.edit(job.context, gpu);
    if (job.result != MigResult::kDone) return;
    add_event(*writable, job.index, kMigConfigChange, 0, {});
    write_capabilities(getenv("GPU_EMULATOR_STATE"), gpu);
  });
  if (changed != kSuccess) return changed;
  if (job.result == MigResult::kDone) wake_waiters(*writable);
  return return_of(job.result);
}

Totals totals_of(std::uint32_t index) {
  const GpuState& gpu = board()->gpus[index];
  pthread_mutex_lock(&lock);
  const std::uint64_t now = now_ns(CLOCK_BOOTTIME);
  settle_if_due(index, now);
  const Totals totals = totals_until(gpu, read_gpu(gpu), now);
  // The reader cannot know how long a process ran that ended since the last settling.
  if (is_ahead(totals, told[index])) told[index] = totals;
  const Totals answer = told[index];
  pthread_mutex_unlock(&lock);
  return answer;
}

}  // namespace gpu_emulator
