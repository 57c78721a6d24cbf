#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "harness.h"

namespace gpu_platform::e2e {

// A program on a real pseudo terminal, as a person would use it.
class Terminal {
 public:
  // 80 columns and 24 rows.
  explicit Terminal(const std::vector<std::string>& command,
                    const std::vector<std::string>& environment = {});
  ~Terminal();  // kills what still runs
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& keys);
  void resize(unsigned short columns, unsigned short rows);
  // Reads until the text has been shown.
  bool shows(const std::string& text);
  const std::string& screen() const { return shown_; }
  void forget() { shown_.clear(); }
  // Reads until the program ends; its exit code, 128 + n for a signal.
  int wait();
  void signal(int number) const;
  // Returns whether the line discipline edits lines and echoes, as in a shell's hands.
  bool is_as_a_shell_has_it() const;

 private:
  bool read_some();

  pid_t pid_ = -1;
  int ours_ = -1;
  int theirs_ = -1;  // kept open, so that the modes can be looked at after the end
  std::string shown_;
};

}  // namespace gpu_platform::e2e
