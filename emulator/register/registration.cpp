#include "register/registration.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "board_changes.h"
#include "mig_names.h"

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

// A GPU, or a compute instance of it.
struct ChosenDevice {
  std::uint32_t gpu = 0;
  InstanceId instance = {};
};

// Finds what has this UUID. Returns false if nothing has it.
bool find_device(const BoardState& state, const char* uuid, std::size_t length, ChosenDevice* out) {
  for (std::uint32_t i = 0; i < state.gpu_count && i < kMaxGpus; ++i) {
    const char* known = state.gpus[i].uuid;
    *out = {i, {}};
    if (strncmp(known, uuid, length) == 0 && known[length] == '\0') return true;
    if (find_mig_uuid(state.gpus[i], uuid, length, &out->instance)) return true;
  }
  return false;
}

void enter(int fd, GpuState& gpu, const ProcessReading& process, Entered* entered) {
  const Change change(fd, gpu);
  for (const ProcessEntry& entry : gpu.processes) {
    const ProcessReading now{entry.pid, entry.start_ticks, 0, 0, unpacked(entry.instance)};
    if (now.pid == process.pid && now.instance == process.instance && is_alive(now)) return;
  }
  std::uint64_t free_bytes = 0;
  *entered = enter_process(gpu, process, &free_bytes);
}

// Opens the state and looks up all GPUs and instances before the first is changed.
class DeviceChoice {
 public:
  DeviceChoice(const char* state_path, const char* uuids) : mapping_(state_path) {
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
      ChosenDevice found;
      if (!find_device(*state, at, length, &found)) {
        result_ = failed(kExitUnknownGpu, "no GPU \"%.*s\" on %s", static_cast<int>(length), at,
                         state->node_name);
        return;
      }
      if (count_ < kMaxChosen) chosen_[count_++] = found;
      at = at[length] == ',' ? at + length + 1 : nullptr;
    }
  }

  const RegistrationResult& result() const { return result_; }
  int fd() const { return mapping_.fd(); }
  std::uint32_t count() const { return count_; }
  const ChosenDevice& at(std::uint32_t place) const { return chosen_[place]; }
  GpuState& gpu(std::uint32_t place) const { return mapping_.state()->gpus[chosen_[place].gpu]; }

 private:
  static constexpr std::uint32_t kMaxChosen = kMaxGpus * kMaxMigDevices;

  Mapping mapping_;
  ChosenDevice chosen_[kMaxChosen];
  std::uint32_t count_ = 0;
  RegistrationResult result_;
};

}  // namespace

RegistrationResult change_registration(Registration what, const char* state_path, const char* uuids,
                                       std::uint64_t pid) {
  const DeviceChoice choice(state_path, uuids);
  if (choice.result().exit_code != kExitDone) return choice.result();
  // Read before any lock is taken: a process that ended meanwhile is one that does not exist.
  const std::uint64_t start_ticks = process_start_ticks(pid);
  if (what == Registration::kEnter && start_ticks == 0) return {};
  for (std::uint32_t i = 0; i < choice.count(); ++i) {
    GpuState& gpu = choice.gpu(i);
    Entered entered = Entered::kDone;
    if (what == Registration::kEnter) {
      enter(choice.fd(), gpu, {pid, start_ticks, 0, 0, choice.at(i).instance}, &entered);
    } else {
      const Change change(choice.fd(), gpu);
      remove_process(gpu, pid);
    }
    if (entered != Entered::kDone) {
      return failed(kExitRefused, "%u processes use GPU %u already", kMaxProcesses,
                    choice.at(i).gpu);
    }
  }
  return {};
}

RegistrationResult change_load(const char* state_path, const char* uuids, std::uint64_t pid,
                               std::uint64_t start_ticks, const StatedLoad& load) {
  const DeviceChoice choice(state_path, uuids);
  if (choice.result().exit_code != kExitDone) return choice.result();
  if (process_start_ticks(pid) != start_ticks) return {};
  for (std::uint32_t i = 0; i < choice.count(); ++i) {
    GpuState& gpu = choice.gpu(i);
    const Change change(choice.fd(), gpu);
    ProcessReading wanted{pid, start_ticks, load.memory_bytes, load.percent, choice.at(i).instance};
    std::uint64_t free_bytes = 0;
    if (enter_process(gpu, wanted, &free_bytes) != Entered::kOutOfMemory) continue;
    wanted.memory_bytes = free_bytes;
    enter_process(gpu, wanted, &free_bytes);
  }
  return {};
}

}  // namespace gpu_emulator
