#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "node/mps/front_end.h"

namespace gpu_platform::node {

// Lets the work of a job's MPS clients end before the job is killed: a client that is killed while
// the GPU runs its work takes the other clients of the server with it, and leaves a server at which
// later ones hang. A process of its own asks the server's daemon to end them; what it does, and
// whether it hangs, is waited for no longer than kTimeoutMs.
class MpsDrain {
 public:
  static constexpr std::int64_t kTimeoutMs = 3000;

  // `daemon`: whose servers the job is a client of; nothing: it is none.
  explicit MpsDrain(std::optional<MpsProgram> daemon) : daemon_(std::move(daemon)) {}
  ~MpsDrain();
  MpsDrain(const MpsDrain&) = delete;
  MpsDrain& operator=(const MpsDrain&) = delete;

  // Asked before each kill of the processes in the cgroup. Returns whether they may be killed now:
  // at once for a job that is no client, else once its clients have ended or the time is over. The
  // first call begins.
  bool is_over(int cgroup, std::int64_t now_ms);

 private:
  void begin(int cgroup, std::int64_t now_ms);
  [[noreturn]] void drain(int cgroup) const;

  const std::optional<MpsProgram> daemon_;
  int child_ = -1;             // a handle of the process; -1: none
  std::int64_t until_ms_ = 0;  // 0: not begun
};

}  // namespace gpu_platform::node
