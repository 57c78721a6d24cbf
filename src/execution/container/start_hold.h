#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execution/container/container_failure.h"
#include "execution/container/create_body.h"
#include "execution/container/start_signs.h"
#include "node/identity.h"
#include "os/descriptor.h"

// Holds a container's first process, and each command in it, before the job's program runs: the
// engine executes the platform's own program (start_main.cpp), which waits. The words that it waits
// for, and the users and groups that the container knows, lie in a folder that only root reaches on
// the host, and that the container has, to read, as kStartFolder. Needs root's rights.

namespace gpu_platform::execution {

// The folder on the host, by the absolute path of the attempt's cgroup and its name.
std::string start_folder(std::string_view cgroup, std::string_view attempt);

bool is_start_folder(std::string_view path);

// A word that a process waits for.
class StartWord {
 public:
  StartWord() = default;
  StartWord(StartWord&&) = default;
  StartWord& operator=(StartWord&& other) noexcept;
  ~StartWord() { remove(); }
  // Makes one with a unique name, in the folder of a container. An error is in errno.
  static StartWord make(const std::string& folder, const std::string& name);

  bool is_made() const { return file_.is_open(); }
  const std::string& name() const { return name_; }
  // What waits for it goes on.
  bool say_go() const;

 private:
  void remove();

  std::string name_;
  std::string path_;
  os::Descriptor file_;
};

class StartHold {
 public:
  StartHold() = default;
  StartHold(const StartHold&) = delete;
  StartHold& operator=(const StartHold&) = delete;
  ~StartHold() { remove(); }

  // `workdir` is kept for the commands that follow.
  ContainerDone<> make(const std::string& folder, const node::Identity& user,
                       const std::string& workdir);
  // What the engine is to mount, to read only.
  std::vector<OpenMount> mounts() const;
  bool say_go() const { return word_.say_go(); }
  // Returns why the first process, which has ended, did not come to execute the job's program;
  // nothing: it did.
  std::optional<StartOutcome> outcome() const;
  void remove();

 private:
  ContainerDone<> fill(const node::Identity& user, const std::string& workdir);

  std::string folder_;   // empty: there is none
  std::string program_;  // the path of start_main's
  StartWord word_;
  os::Descriptor outcome_;
};

// Removes the folder. A running container keeps its own mounts of what was in it.
void remove_start_folder(const std::string& folder);

// What a hold keeps in its folder for the commands that follow.
struct KeptStart {
  std::string folder;
  dev_t device = 0;  // of the program, which may be replaced on the host meanwhile
  ino_t inode = 0;
  std::string workdir;
  bool goes_on = false;  // the first process has been let go
};
// Nothing: it cannot be read.
std::optional<KeptStart> read_start(const std::string& folder);

// Returns whether the process executes that program: it waits, as what the engine has made it.
bool is_held(int pid, const KeptStart& start);
// Returns whether the container whose root that is ("/proc/PID/root") has the platform's files at
// their places: nothing of the image covers them or leads elsewhere.
bool has_our_files(const std::string& root, const KeptStart& start);

// The text of the container's /etc/passwd: the job's user alone, by a name that is no number.
std::string passwd_of(const node::Identity& user);
// The text of its /etc/group: the job's groups, each called as its number. An engine that looks a
// number up by name finds that number.
std::string group_of(const node::Identity& user);

}  // namespace gpu_platform::execution
