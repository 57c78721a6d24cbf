#include "smi/gpu_reset.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "board_changes.h"
#include "mig_files.h"
#include "smi/arguments.h"

namespace gpu_emulator {

namespace {

constexpr int kExitInUse = 19;
constexpr int kExitFailed = 255;
constexpr unsigned kHangSeconds = 3600;

// The board's state, mapped; null where there is none of this version.
class MappedBoard {
 public:
  explicit MappedBoard(const char* path)
      : path_(path), fd_(path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK)) {
    struct stat about{};
    if (fd_ < 0 || ::fstat(fd_, &about) != 0 || !S_ISREG(about.st_mode) ||
        about.st_size < static_cast<off_t>(sizeof(BoardState))) {
      return;
    }
    void* const memory =
        ::mmap(nullptr, sizeof(BoardState), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (memory == MAP_FAILED) return;
    state_ = static_cast<BoardState*>(memory);
    if (!is_valid(*state_)) state_ = nullptr;
  }
  MappedBoard(const MappedBoard&) = delete;
  MappedBoard& operator=(const MappedBoard&) = delete;
  ~MappedBoard() {
    if (fd_ >= 0) ::close(fd_);
  }

  BoardState* state() const { return state_; }

  GpuState* find(const std::string& uuid) const {
    for (std::uint32_t i = 0; i < state_->gpu_count && i < kMaxGpus; ++i) {
      if (std::string_view(state_->gpus[i].uuid) == uuid) return &state_->gpus[i];
    }
    return nullptr;
  }

  // What it does to the GPU: nothing where it fails.
  ResetFault reset(GpuState& gpu) {
    const auto fault = static_cast<ResetFault>(gpu.reset_fault.load(std::memory_order_relaxed));
    if (fault == ResetFault::kHangs) ::sleep(kHangSeconds);
    if (fault != ResetFault::kNone) return fault;
    {
      const Change change(fd_, gpu);
      reset_gpu(gpu);
      write_capabilities(path_, gpu);
    }
    wake_waiters(*state_);
    return fault;
  }

 private:
  const char* path_;
  int fd_;
  BoardState* state_ = nullptr;
};

bool is_in_use(const Gpu& gpu) {
  const auto processes = gpu.processes();
  return processes.status == kSuccess && !processes.value.empty();
}

ResetOutcome refused(const std::vector<Gpu>& gpus, const char* why, int exit_code) {
  ResetOutcome outcome{"The following GPUs could not be reset:\n", exit_code};
  for (const Gpu& gpu : gpus) outcome.text += fmt::format("  GPU {}: {}\n", gpu.bus_id(), why);
  return outcome;
}

ResetOutcome in_use(const std::vector<Gpu>& used) {
  ResetOutcome outcome = refused(used, "In use by another client", kExitInUse);
  outcome.text += fmt::format(
      "\n{} device{} currently being used by one or more other processes (e.g., Fabric Manager, "
      "CUDA application, graphics application such as an X server, or a monitoring application "
      "such as another instance of nvidia-smi). Please first kill all processes using {} device{} "
      "and all compute applications running in the system.\n",
      used.size(), used.size() == 1 ? " is" : "s are", used.size() == 1 ? "this" : "these",
      used.size() == 1 ? "" : "s");
  return outcome;
}

}  // namespace

ResetOutcome reset_emulated(const std::vector<Gpu>& gpus) {
  MappedBoard board(std::getenv("GPU_EMULATOR_STATE"));
  if (board.state() == nullptr) return refused(gpus, "Not Supported", kExitNotAvailable);
  std::vector<Gpu> used;
  for (const Gpu& gpu : gpus) {
    if (is_in_use(gpu)) used.push_back(gpu);
  }
  if (!used.empty()) return in_use(used);
  std::vector<Gpu> failed;
  ResetOutcome outcome;
  for (const Gpu& gpu : gpus) {
    GpuState* const state = board.find(gpu.text("nvmlDeviceGetUUID").value);
    if (state == nullptr || board.reset(*state) != ResetFault::kNone) {
      failed.push_back(gpu);
      continue;
    }
    outcome.text += fmt::format("GPU {} was successfully reset.\n", gpu.bus_id());
  }
  if (failed.empty()) return {outcome.text + "All done.\n", kExitOk};
  const ResetOutcome rest = refused(failed, "Unknown Error", kExitFailed);
  return {outcome.text + rest.text, rest.exit_code};
}

}  // namespace gpu_emulator
