#pragma once

#include <cstddef>
#include <cstdint>

#include "register/registration.h"

namespace gpu_emulator {

// Processes that were entered on boards of ours, and the loads that they or their descendants state
// (stated_load.h). It depends on libc alone. One thread.
class FollowedProcesses {
 public:
  // Of more processes than there is room for, the later ones are left out.
  void add(const char* state_path, const char* uuids, std::uint64_t pid);
  bool is_empty() const { return count_ == 0; }
  // Reads the loads, changes boards where they differ, and forgets processes that are gone.
  void look();

 private:
  struct Followed {
    char state_path[1024];
    char uuids[1024];
    std::uint64_t pid;
    std::uint64_t start_ticks;
    StatedLoad shown;
  };
  static constexpr std::size_t kMaxFollowed = 256;

  void look(Followed& each);

  Followed all_[kMaxFollowed];
  std::size_t count_ = 0;
};

}  // namespace gpu_emulator
