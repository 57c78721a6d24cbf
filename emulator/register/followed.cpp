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

// Finds the first load that the process or one below it states.
bool find_load(std::uint64_t pid, int* visits, StatedLoad* load) {
  if (++*visits > kMaxVisits) return false;
  char path[96];
  char text[2048];
  const auto number = static_cast<unsigned long long>(pid);
  snprintf(path, sizeof path, "/proc/%llu/comm", number);
  if (!read_file(path, text, sizeof text)) return false;
  if (read_stated_load(text, &load->memory_bytes, &load->percent)) return true;
  snprintf(path, sizeof path, "/proc/%llu/task/%llu/children", number, number);
  if (!read_file(path, text, sizeof text)) return false;
  char* rest = nullptr;
  for (char* word = strtok_r(text, " \n", &rest); word != nullptr;
       word = strtok_r(nullptr, " \n", &rest)) {
    if (find_load(strtoull(word, nullptr, 10), visits, load)) return true;
  }
  return false;
}

}  // namespace

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

// Without a stated load its entry stays as it is: it may have been given one by hand.
void FollowedProcesses::look(Followed& each) {
  int visits = 0;
  StatedLoad load;
  const bool is_stated = find_load(each.pid, &visits, &load);
  const bool was_stated = each.shown.percent != 0 || each.shown.memory_bytes != 0;
  if (!is_stated && !was_stated) return;
  if (load.percent == each.shown.percent && load.memory_bytes == each.shown.memory_bytes) return;
  const RegistrationResult changed =
      change_load(each.state_path, each.uuids, each.pid, each.start_ticks, load);
  if (changed.exit_code == kExitDone) each.shown = load;
}

}  // namespace gpu_emulator
