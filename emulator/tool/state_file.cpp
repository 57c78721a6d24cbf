#include "tool/state_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "mig_files.h"

namespace gpu_emulator {
namespace {

using gpu_platform::base::ErrorCode;
using gpu_platform::base::fail;
using gpu_platform::base::system_error;

constexpr auto kRelease = std::memory_order_release;

// Says what is wrong with a file that does not have this layout.
std::string foreign_state(int fd, const std::string& path) {
  struct {
    char magic[sizeof kMagic];
    std::uint32_t version;
  } head{};
  const ssize_t size = ::pread(fd, &head, sizeof head, 0);
  const bool is_board = size == static_cast<ssize_t>(sizeof head) &&
                        std::memcmp(head.magic, kMagic, sizeof kMagic) == 0;
  if (!is_board) return fmt::format("{} is not the state of an emulated board", path);
  if (head.version == kVersion) {
    return fmt::format(
        "{} is the state of an emulated board, but damaged; make the node again with "
        "gpu-emulator create",
        path);
  }
  return fmt::format(
      "{} has layout {} of an emulated board's state, this program has {}; make the "
      "node again with gpu-emulator create",
      path, head.version, kVersion);
}

}  // namespace

Result<StateFile> StateFile::open(const std::string& path, Access access) {
  const bool is_writer = access == Access::kWrite;
  const int fd = ::open(path.c_str(), (is_writer ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const ErrorCode code = errno == ENOENT                     ? ErrorCode::kNotFound
                           : errno == EACCES || errno == EROFS ? ErrorCode::kPermissionDenied
                                                               : ErrorCode::kInternal;
    return fail(code, system_error("open " + path, errno).message);
  }
  struct stat status{};
  if (fstat(fd, &status) != 0) status = {};
  void* memory = MAP_FAILED;
  if (S_ISREG(status.st_mode) && status.st_size >= static_cast<off_t>(sizeof(BoardState))) {
    memory = mmap(nullptr, sizeof(BoardState), is_writer ? PROT_READ | PROT_WRITE : PROT_READ,
                  MAP_SHARED, fd, 0);
  }
  if (memory == MAP_FAILED) {
    const std::string what = foreign_state(fd, path);
    ::close(fd);
    return fail(ErrorCode::kDataLoss, what);
  }
  StateFile file(fd, static_cast<BoardState*>(memory), path);
  if (!is_valid(file.state())) return fail(ErrorCode::kDataLoss, foreign_state(fd, path));
  return file;
}

StateFile::StateFile(StateFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      state_(std::exchange(other.state_, nullptr)),
      path_(std::move(other.path_)) {}

StateFile::~StateFile() {
  if (state_ != nullptr) munmap(state_, sizeof(BoardState));
  if (fd_ >= 0) ::close(fd_);
}

Result<GpuState*> StateFile::find(std::uint32_t gpu) {
  if (gpu < state_->gpu_count) return &state_->gpus[gpu];
  return fail(ErrorCode::kNotFound, fmt::format("{} has no GPU {}: its GPUs are 0 to {}",
                                                state_->node_name, gpu, state_->gpu_count - 1));
}

Status StateFile::load(std::uint32_t gpu_index, std::uint64_t pid, std::uint64_t memory_bytes,
                       std::uint64_t utilization_percent, Presence presence,
                       const InstanceId& instance) {
  TRY_ASSIGN(GpuState * gpu, find(gpu_index));
  const std::uint64_t start_ticks = presence == Presence::kLingering ? 0 : process_start_ticks(pid);
  const Change change(fd_, *gpu);
  if (!is_there(*gpu, instance)) {
    return fail(ErrorCode::kNotFound,
                fmt::format("GPU {} has no instance {}/{}", gpu_index, instance.gpu_instance,
                            instance.compute_instance));
  }
  std::uint64_t free_bytes = 0;
  switch (enter_process(*gpu, {pid, start_ticks, memory_bytes, utilization_percent, instance},
                        &free_bytes)) {
    case Entered::kDone:
      return {};
    case Entered::kTableFull:
      return fail(ErrorCode::kResourceExhausted,
                  fmt::format("{} processes use the GPU already", kMaxProcesses));
    case Entered::kOutOfMemory:
      break;
  }
  return fail(ErrorCode::kResourceExhausted,
              fmt::format("out of memory: {} MiB wanted, {} MiB free", memory_bytes >> 20,
                          free_bytes >> 20));
}

Status StateFile::clear(std::uint32_t gpu_index, std::uint64_t pid) {
  TRY_ASSIGN(GpuState * gpu, find(gpu_index));
  const Change change(fd_, *gpu);
  remove_process(*gpu, pid);
  return {};
}

Status StateFile::set_answer(std::uint32_t gpu_index, std::uint32_t return_code,
                             std::uint32_t delay_us) {
  TRY(change(gpu_index, [&](GpuState& gpu) {
    gpu.answer.store(return_code, kRelease);
    gpu.answer_delay_us.store(delay_us, kRelease);
  }));
  wake_waiters(*state_);
  return {};
}

Status StateFile::change(std::uint32_t gpu_index, const std::function<void(GpuState&)>& edit) {
  TRY_ASSIGN(GpuState * gpu, find(gpu_index));
  const Change change(fd_, *gpu);
  edit(*gpu);
  return {};
}

Status StateFile::raise(std::uint32_t gpu_index, std::uint64_t type, std::uint64_t data,
                        const InstanceId& instance) {
  TRY(change(gpu_index, [&](GpuState&) { add_event(*state_, gpu_index, type, data, instance); }));
  wake_waiters(*state_);
  return {};
}

Result<MigResult> StateFile::change_instances(std::uint32_t gpu_index,
                                              const std::function<MigResult(GpuState&)>& edit) {
  MigResult result = MigResult::kDone;
  TRY(change(gpu_index, [&](GpuState& gpu) {
    result = edit(gpu);
    if (result != MigResult::kDone) return;
    add_event(*state_, gpu_index, kMigConfigChange, 0, {});
    write_capabilities(path_.c_str(), gpu);
  }));
  wake_waiters(*state_);
  return result;
}

}  // namespace gpu_emulator
