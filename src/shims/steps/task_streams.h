#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "base/result.h"

// The standard streams of a step's tasks as far as they pass through srun: its input for several
// tasks, and lines that get their task's number. One thread, that of the step's first process.

namespace gpu_platform::shims {

struct StreamRules {
  enum class Input {
    kInherited,  // the tasks have srun's own
    kCopied,     // each of `readers` gets all of it
  };
  Input input = Input::kInherited;
  std::vector<std::uint32_t> readers;
  bool is_labelled = false;
  bool is_unbuffered = false;  // programs write to a terminal of their own, so line by line
  std::uint32_t tasks = 1;
};

// The destination of the lines of a task.
struct Outlet {
  int output = 1;
  int error = 2;
};

class TaskStreams {
 public:
  explicit TaskStreams(StreamRules rules) : rules_(std::move(rules)) {}
  TaskStreams(const TaskStreams&) = delete;
  TaskStreams& operator=(const TaskStreams&) = delete;
  ~TaskStreams();

  bool carries_output() const { return rules_.is_labelled || rules_.is_unbuffered; }

  // Before the task is forked.
  base::Status open(std::uint32_t task, Outlet outlet);
  // Call it in the task: its ends become its standard streams.
  base::Status take(std::uint32_t task);
  // Call it in srun, after the fork.
  void forked(std::uint32_t task);

  // The descriptors to wait for are added; what became of them is handled.
  void add_to(std::vector<pollfd>& waiting) const;
  void handle(const std::vector<pollfd>& waiting);
  // What has been written so far and has not been passed on. Processes that a task has left behind
  // are not waited for.
  void finish();

 private:
  // A way from a task to where its lines go.
  struct Source {
    int fd = -1;
    int end_of_task = -1;  // until the fork
    int target = 1;
    std::uint32_t task = 0;
    std::string line;  // that has not come to its end
    bool is_error = false;
    bool is_in_line = false;  // of the last bytes passed on
  };
  // A way from srun's input to a task.
  struct Reader {
    int fd = -1;
    int end_of_task = -1;
    std::uint32_t task = 0;
    std::size_t at = 0;  // in the bytes that were read
  };

  base::Status open_source(std::uint32_t task, int target, bool is_error);
  void read_input();
  void write_input(Reader& reader);
  void read_source(Source& source);
  void pass_on(Source& source, std::string_view bytes);
  void end_line(Source& source);
  bool is_input_wanted() const;
  void forget_written();

  StreamRules rules_;
  std::vector<Source> sources_;
  std::vector<Reader> readers_;
  std::string input_;  // read, and not yet written to every reader
  bool is_input_over_ = false;
};

}  // namespace gpu_platform::shims
