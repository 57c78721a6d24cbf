#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/result.h"
#include "board_changes.h"

// The state file of one emulated node, changed in place while libraries have it mapped.

namespace gpu_emulator {

template <class T>
using Result = gpu_platform::base::Result<T>;
using gpu_platform::base::Status;

// An open state. Changes hold a lock on the file, so several writers take turns.
class StateFile {
 public:
  enum class Access { kRead, kWrite };

  static Result<StateFile> open(const std::string& path, Access access);
  StateFile(StateFile&& other) noexcept;
  StateFile& operator=(StateFile&&) = delete;
  ~StateFile();

  const BoardState& state() const { return *state_; }

  // The fate of an entry when its process ends.
  enum class Presence { kWhileAlive, kLingering };

  // Enters a process on a GPU, or changes its use. Refused if the memory does not fit, if the GPU's
  // table is full, or if there is no such GPU. The entry of a process that does not exist lingers
  // too.
  Status load(std::uint32_t gpu, std::uint64_t pid, std::uint64_t memory_bytes,
              std::uint64_t utilization_percent, Presence presence = Presence::kWhileAlive,
              const InstanceId& instance = {});
  // Removes one process from a GPU (0: all of them).
  Status clear(std::uint32_t gpu, std::uint64_t pid = 0);
  // Sets the return code that every call on the GPU answers (0: true answers) and the time that a
  // call takes.
  Status set_answer(std::uint32_t gpu, std::uint32_t return_code, std::uint32_t delay_us);
  // Runs `edit` on the GPU's changing fields under the file's lock.
  Status change(std::uint32_t gpu, const std::function<void(GpuState&)>& edit);
  // Reports to processes that wait for events; `type` is one bit of nvmlEventType*.
  Status raise(std::uint32_t gpu, std::uint64_t type, std::uint64_t data,
               const InstanceId& instance = {});
  // Runs `edit` on the GPU's MIG instances under the file's lock. Programs that wait for such
  // changes are told, and the files of the capabilities follow.
  Result<MigResult> change_instances(std::uint32_t gpu,
                                     const std::function<MigResult(GpuState&)>& edit);

 private:
  StateFile(int fd, BoardState* state, std::string path)
      : fd_(fd), state_(state), path_(std::move(path)) {}
  Result<GpuState*> find(std::uint32_t gpu);

  int fd_ = -1;
  BoardState* state_ = nullptr;
  std::string path_;
};

}  // namespace gpu_emulator
