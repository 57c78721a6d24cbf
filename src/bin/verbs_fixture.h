#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpu_platform::bin {

struct VerbRun {
  int code = 0;
  std::string out;
  std::string err;
};

// Runs a verb as main would, and keeps what it prints. `words`: without the verb's name.
inline VerbRun run_verb(int (*verb)(int, char**), std::vector<std::string> words) {
  words.insert(words.begin(), "verb");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  VerbRun run;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  run.code = verb(static_cast<int>(words.size()), arguments.data());
  run.out = ::testing::internal::GetCapturedStdout();
  run.err = ::testing::internal::GetCapturedStderr();
  return run;
}

}  // namespace gpu_platform::bin
