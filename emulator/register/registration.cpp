#include "register/registration.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "board_changes.h"

namespace gpu_emulator {
namespace {

template <class... Values>
RegistrationResult failed(int exit_code, const char* format, Values... values) {
  RegistrationResult result;
  result.exit_code = exit_code;
  snprintf(result.message, sizeof result.message, format, values...);
  return result;
}

// A mapped state, for the life of this short call.
class Mapping {
 public:
  explicit Mapping(const char* path) : fd_(open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status{};
    if (fd_ < 0) {
      error_ = errno;
      return;
    }
    if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size < static_cast<off_t>(sizeof(BoardState))) {
      return;
    }
    void* memory = mmap(nullptr, sizeof(BoardState), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (memory != MAP_FAILED) state_ = static_cast<BoardState*>(memory);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (state_ != nullptr) munmap(state_, sizeof(BoardState));
    if (fd_ >= 0) close(fd_);
  }

  int fd() const { return fd_; }
  int error() const { return error_; }
  BoardState* state() const { return state_; }

 private:
  int fd_ = -1;
  int error_ = 0;
  BoardState* state_ = nullptr;
};

// Returns the GPU with this UUID; -1 if there is none.
int find_gpu(const BoardState& state, const char* uuid, std::size_t length) {
  for (std::uint32_t i = 0; i < state.gpu_count && i < kMaxGpus; ++i) {
    const char* known = state.gpus[i].uuid;
    if (strncmp(known, uuid, length) == 0 && known[length] == '\0') return static_cast<int>(i);
  }
  return -1;
}

void enter(int fd, GpuState& gpu, std::uint64_t pid, std::uint64_t start_ticks, Entered* entered) {
  const Change change(fd, gpu);
  for (const ProcessEntry& entry : gpu.processes) {
    const ProcessReading now{entry.pid, entry.start_ticks, 0, 0};
    if (now.pid == pid && is_alive(now)) return;
  }
  std::uint64_t free_bytes = 0;
  *entered = enter_process(gpu, {pid, start_ticks, 0, 0}, &free_bytes);
}

// Opens the state and looks up all GPUs before the first is changed.
class GpuChoice {
 public:
  GpuChoice(const char* state_path, const char* uuids) : mapping_(state_path) {
    if (mapping_.error() != 0) {
      result_ = failed(kExitFailed, "open %s: %s", state_path, strerror(mapping_.error()));
      return;
    }
    BoardState* state = mapping_.state();
    if (state == nullptr || !is_valid(*state)) {
      result_ =
          failed(kExitFailed, "%s is not the state of an emulated board, or of another version",
                 state_path);
      return;
    }
    for (const char* at = uuids; at != nullptr;) {
      const std::size_t length = strcspn(at, ",");
      const int gpu = find_gpu(*state, at, length);
      if (gpu < 0) {
        result_ = failed(kExitUnknownGpu, "no GPU \"%.*s\" on %s", static_cast<int>(length), at,
                         state->node_name);
        return;
      }
      chosen_[gpu] = true;
      at = at[length] == ',' ? at + length + 1 : nullptr;
    }
  }

  const RegistrationResult& result() const { return result_; }
  int fd() const { return mapping_.fd(); }
  // Null: not chosen.
  GpuState* gpu(std::uint32_t index) const {
    return chosen_[index] ? &mapping_.state()->gpus[index] : nullptr;
  }

 private:
  Mapping mapping_;
  bool chosen_[kMaxGpus] = {};
  RegistrationResult result_;
};

}  // namespace

RegistrationResult change_registration(Registration what, const char* state_path, const char* uuids,
                                       std::uint64_t pid) {
  const GpuChoice choice(state_path, uuids);
  if (choice.result().exit_code != kExitDone) return choice.result();
  // Read before any lock is taken: a process that ended meanwhile is one that does not exist.
  const std::uint64_t start_ticks = process_start_ticks(pid);
  if (what == Registration::kEnter && start_ticks == 0) return {};
  for (std::uint32_t i = 0; i < kMaxGpus; ++i) {
    GpuState* gpu = choice.gpu(i);
    if (gpu == nullptr) continue;
    Entered entered = Entered::kDone;
    if (what == Registration::kEnter) {
      enter(choice.fd(), *gpu, pid, start_ticks, &entered);
    } else {
      const Change change(choice.fd(), *gpu);
      remove_process(*gpu, pid);
    }
    if (entered != Entered::kDone) {
      return failed(kExitRefused, "%u processes use GPU %u already", kMaxProcesses, i);
    }
  }
  return {};
}

RegistrationResult change_load(const char* state_path, const char* uuids, std::uint64_t pid,
                               std::uint64_t start_ticks, const StatedLoad& load) {
  const GpuChoice choice(state_path, uuids);
  if (choice.result().exit_code != kExitDone) return choice.result();
  if (process_start_ticks(pid) != start_ticks) return {};
  for (std::uint32_t i = 0; i < kMaxGpus; ++i) {
    GpuState* gpu = choice.gpu(i);
    if (gpu == nullptr) continue;
    const Change change(choice.fd(), *gpu);
    ProcessReading wanted{pid, start_ticks, load.memory_bytes, load.percent};
    std::uint64_t free_bytes = 0;
    if (enter_process(*gpu, wanted, &free_bytes) != Entered::kOutOfMemory) continue;
    wanted.memory_bytes = free_bytes;
    enter_process(*gpu, wanted, &free_bytes);
  }
  return {};
}

}  // namespace gpu_emulator
