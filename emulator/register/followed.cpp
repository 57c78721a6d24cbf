#include "register/followed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "board_readings.h"
#include "stated_load.h"

namespace gpu_emulator {

namespace {

// Processes of one job that are looked at in one search.
constexpr int kMaxVisits = 64;

// Reads the file as a text; false if it cannot be read.
bool read_file(const char* path, char* text, std::size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = read(fd, text, size - 1);
  close(fd);
  if (got < 0) return false;
  text[got] = '\0';
  return true;
}

}  // namespace

// Finds the loads that the process and those below it state, the first of them first.
void FollowedProcesses::find_loads(std::uint64_t pid, Loads& loads) {
  if (++loads.visits > kMaxVisits || loads.count == kMaxOthers + 1) return;
  char path[96];
  char text[2048];
  const auto number = static_cast<unsigned long long>(pid);
  snprintf(path, sizeof path, "/proc/%llu/comm", number);
  if (!read_file(path, text, sizeof text)) return;
  StatedLoad load;
  if (read_stated_load(text, &load.memory_bytes, &load.percent)) {
    loads.all[loads.count++] = {pid, process_start_ticks(pid), load};
  }
  snprintf(path, sizeof path, "/proc/%llu/task/%llu/children", number, number);
  if (!read_file(path, text, sizeof text)) return;
  char* rest = nullptr;
  for (char* word = strtok_r(text, " \n", &rest); word != nullptr;
       word = strtok_r(nullptr, " \n", &rest)) {
    find_loads(strtoull(word, nullptr, 10), loads);
  }
}

void FollowedProcesses::add(const char* state_path, const char* uuids, std::uint64_t pid) {
  const std::uint64_t start_ticks = process_start_ticks(pid);
  if (start_ticks == 0 || count_ == kMaxFollowed) return;
  Followed& each = all_[count_];
  if (strlen(state_path) >= sizeof each.state_path || strlen(uuids) >= sizeof each.uuids) return;
  strcpy(each.state_path, state_path);
  strcpy(each.uuids, uuids);
  each.pid = pid;
  each.start_ticks = start_ticks;
  each.shown = {};
  each.other_count = 0;
  ++count_;
}

void FollowedProcesses::look() {
  for (std::size_t i = 0; i < count_;) {
    if (process_start_ticks(all_[i].pid) != all_[i].start_ticks) {
      all_[i] = all_[--count_];
    } else {
      look(all_[i++]);
    }
  }
}

// Without a stated load its entry stays as it is: it may have been given one by hand. The first
// load of a job is its first process's, whichever states it.
void FollowedProcesses::look(Followed& each) {
  Loads loads;
  find_loads(each.pid, loads);
  const StatedLoad first = loads.count == 0 ? StatedLoad{} : loads.all[0].load;
  const bool was_stated = each.shown.percent != 0 || each.shown.memory_bytes != 0;
  if ((loads.count != 0 || was_stated) && !(first == each.shown)) {
    const RegistrationResult changed =
        change_load(each.state_path, each.uuids, each.pid, each.start_ticks, first);
    if (changed.exit_code == kExitDone) each.shown = first;
  }
  show_others(each, loads);
}

// The board forgets those that have ended.
void FollowedProcesses::show_others(Followed& each, const Loads& loads) {
  std::size_t count = 0;
  Stated shown[kMaxOthers];
  for (std::size_t i = 1; i < loads.count; ++i) {
    const Stated& stated = loads.all[i];
    bool is_shown = false;
    for (std::size_t k = 0; k < each.other_count; ++k) {
      const Stated& before = each.others[k];
      is_shown =
          is_shown || (before.pid == stated.pid && before.start_ticks == stated.start_ticks &&
                       before.load == stated.load);
    }
    const bool is_done = is_shown || change_load(each.state_path, each.uuids, stated.pid,
                                                 stated.start_ticks, stated.load)
                                             .exit_code == kExitDone;
    if (is_done) shown[count++] = stated;
  }
  for (std::size_t k = 0; k < count; ++k) each.others[k] = shown[k];
  each.other_count = count;
}

}  // namespace gpu_emulator
