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
  struct Stated {
    std::uint64_t pid;
    std::uint64_t start_ticks;
    StatedLoad load;
  };
  // More processes of one job with loads of their own are left out.
  static constexpr std::size_t kMaxOthers = 15;

  struct Loads {
    Stated all[kMaxOthers + 1];
    std::size_t count = 0;
    int visits = 0;
  };

  struct Followed {
    char state_path[1024];
    char uuids[1024];
    std::uint64_t pid;
    std::uint64_t start_ticks;
    StatedLoad shown;
    Stated others[kMaxOthers];  // below it, that state a load beside the first one: as shown
    std::size_t other_count;
  };
  static constexpr std::size_t kMaxFollowed = 256;

  static void find_loads(std::uint64_t pid, Loads& loads);
  static void look(Followed& each);
  static void show_others(Followed& each, const Loads& loads);

  Followed all_[kMaxFollowed];
  std::size_t count_ = 0;
};

}  // namespace gpu_emulator
