#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gpu_platform::bin {

// Tells emulated boards of the processes that use their GPUs, as a driver would see for itself: by
// lines to one gpu-emulator-register that runs as long as we do. The boards are the daemon's own,
// so nothing with more rights is asked to. Best effort: a board that is not told shows fewer
// processes. One thread.
class BoardRegistrar {
 public:
  // `program`: gpu-emulator-register. `boards`: the folder of the boards' folders.
  BoardRegistrar(std::string program, std::string boards)
      : program_(std::move(program)), boards_(std::move(boards)) {}
  ~BoardRegistrar();
  BoardRegistrar(const BoardRegistrar&) = delete;
  BoardRegistrar& operator=(const BoardRegistrar&) = delete;

  // Never waits.
  void enter(const std::string& node, const std::vector<std::string>& uuids, std::uint32_t pid);

 private:
  bool start();
  void stop();

  const std::string program_;
  const std::string boards_;
  pid_t child_ = -1;
  int pipe_ = -1;
};

}  // namespace gpu_platform::bin
