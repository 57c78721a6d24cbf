#pragma once

#include <cstdint>
#include <string>

namespace gpu_platform::node {

// A part of systemd's cgroup tree that we may divide. If systemd manages the tree, it alone decides
// which controllers go where, and it leaves out of the top those that none of its units asks for.
// Below a scope with Delegate=yes all of them are ours, and stay so through its reloads. The scope
// lies in system.slice and lasts as long as a process is in it: launcher, supervisor or job.
// systemd removes it after the last one, so nothing is left behind, and a launcher that is started
// anew finds the scope with the jobs in it. A service would not do: nothing can be started in one
// again while jobs are below it, since a cgroup that passes controllers on takes no process.
//
// The launcher asks for it with systemd-run(1), which talks to systemd without a message bus and
// without a shell. Because of a deadline, a systemd that does not answer cannot block the start.
class DelegatedScope {
 public:
  DelegatedScope() = default;
  ~DelegatedScope() { let_go(); }
  DelegatedScope(const DelegatedScope&) = delete;
  DelegatedScope& operator=(const DelegatedScope&) = delete;

  // Finds the scope NAME.scope or asks for it. Afterwards path() is its cgroup; if path() is empty,
  // why() says what failed.
  void open(const std::string& name);
  // The same if systemd manages the controllers of this host. Otherwise no scope is needed: path()
  // and why() stay empty.
  void open_for_controllers(const std::string& name);
  const std::string& path() const { return path_; }
  const std::string& why() const { return why_; }

  // Once the caller is in a cgroup below: the process that held a new scope until then ends. It has
  // to, because a cgroup with processes of its own passes no controllers on.
  void let_go();

 private:
  void find_or_ask(const std::string& name, const std::string& top);
  bool ask(const std::string& name, const std::string& expected);
  std::string wait_for_holder(int said);

  std::string path_;
  std::string why_;
  int holder_ = -1;  // pid of the process in a new scope; -1: none
  int line_ = -1;    // when it is closed, the holder ends
  int timeout_ms_ = 0;
  std::int64_t deadline_ms_ = 0;
};

}  // namespace gpu_platform::node
