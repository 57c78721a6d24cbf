#pragma once

#include <string>
#include <vector>

#include "node/user_switch.h"

namespace gpu_platform::node {

// A program of MPS that a child of ours becomes. All of it is made ready before the child is.
struct MpsStart {
  std::vector<std::string> words;        // the program's arguments, its absolute path first
  std::vector<std::string> environment;  // NAME=VALUE, and nothing else
  UserSwitch* user = nullptr;            // that it becomes first; null: it stays ours
  int input = -1;                        // its descriptor 0; -1: /dev/null
  int output = -1;                       // 1 and 2
  const char* oom_score = nullptr;       // see LauncherHost::job_oom_score; null: ours
  bool ends_with_us = false;             // it is killed when its parent ends
};

// Called in a child. It leads a session of its own, blocks and ignores no signal, gains no rights
// by executing anything and has no other descriptor of ours. If it cannot become the program, the
// line "Cannot …" comes on its output.
[[noreturn]] void become_mps_program(const MpsStart& start);

}  // namespace gpu_platform::node
