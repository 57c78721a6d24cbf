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

#include "board_readings.h"

namespace gpu_emulator {

struct DeviceHandle {
  char unused;  // handles are told apart by their address alone
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
// Written under lock, while the library is not initialised.
std::uint32_t minors[kMaxGpus];  // by index on the board
std::uint32_t visible[kMaxGpus];
std::uint32_t visible_gpus = 0;

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

bool has_node(const char* folder, std::uint32_t minor) {
  char path[4096];
  struct stat about{};
  const int size = snprintf(path, sizeof path, "%s/nvidia%u", folder, minor);
  return size > 0 && static_cast<std::size_t>(size) < sizeof path && stat(path, &about) == 0 &&
         S_ISCHR(about.st_mode);
}

void find_visible(const BoardState& state) {
  const char* folder = getenv("GPU_EMULATOR_DEVICES");
  const bool sees_all = folder == nullptr || *folder == '\0';
  visible_gpus = 0;
  std::uint32_t listed = 0;
  for (const bool is_last : {false, true}) {
    for (std::uint32_t i = 0; i < gpu_count(state); ++i) {
      const auto listing =
          static_cast<Listing>(state.gpus[i].listing.load(std::memory_order_relaxed));
      if (listing == Listing::kNot || (listing == Listing::kLast) != is_last) continue;
      minors[i] = listed++;
      if (sees_all || has_node(folder, minors[i])) visible[visible_gpus++] = i;
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
  close(fd);
  if (memory == MAP_FAILED) return kUnknown;
  const auto* state = static_cast<const BoardState*>(memory);
  if (!is_valid(*state)) {
    munmap(memory, sizeof(BoardState));
    return kLibRmVersionMismatch;
  }
  *out = state;
  map_for_settling(path, status);
  return kSuccess;
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
    if (attach_count == 0) find_visible(*mapped);
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
    if (--attach_count == 0) current.store(nullptr, std::memory_order_release);
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

bool index_of(const DeviceHandle* handle, std::uint32_t* index) {
  for (std::uint32_t i = 0; i < kMaxGpus; ++i) {
    if (handle == &handles[i]) {
      *index = i;
      return true;
    }
  }
  return false;
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
