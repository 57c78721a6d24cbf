#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

// Drives the real program from outside, as a user or a script does: its command line, its socket,
// its files and signals, and nothing else.

namespace gpu_platform::e2e {

// Two people: accounts that every Debian has.
inline constexpr const char* kAnn = "daemon";
inline constexpr const char* kBob = "backup";

struct Finished {
  int exit_code = -1;  // 128 + n for a signal
  std::string out;
  std::string err;
};

// Runs a command to its end. `environment` entries are added to this process's own.
Finished run_command(const std::vector<std::string>& command,
                     const std::vector<std::string>& environment = {},
                     const std::string& standard_input = {});

// An account that a command runs as.
struct Account {
  std::string user;
  std::string group = {};  // by name or number; empty: the one with the user's name
};
// The words that run the command as that account, without further groups. Needs root.
std::vector<std::string> as_account(const Account& account,
                                    const std::vector<std::string>& command);

// Path of a program of the build under test ("gpu-platform"): the one that this belongs to, or that
// of the folder that GP_PROGRAMS names (scripts/test runs attacks on sanitized programs so).
std::string program(const std::string& name);

// Waits until `condition` holds, looking again after twice the time that looking took, 5 to 100 ms.
// False when `limit` passes first.
bool eventually(const std::function<bool()>& condition,
                std::chrono::seconds limit = std::chrono::seconds(30));

// A directory of its own under the build folder's disk (never tmpfs), removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct DaemonOptions {
  std::string emulate = "dgx-h100";
  // YAML text. Unless it speaks of execution.min_uid, jobs of the system's accounts are added to
  // it: hosts have no other users that a test could be.
  std::string config;
  std::string data_dir;                // default: DIR/data
  std::vector<std::string> prefix;     // in front of the program: as_account(…)
  std::vector<std::string> arguments;  // further ones of serve
};

// One data directory and the daemons that serve it one after the other.
class Daemon {
 public:
  explicit Daemon(DaemonOptions options = {});
  ~Daemon();  // kills the daemon and everything that its jobs left

  // Starts it and waits until its socket answers. False (with the daemon's words in log()) if it
  // ends first.
  bool start();
  int terminate();  // SIGTERM; the exit code
  void kill_now();  // SIGKILL
  bool is_running();
  pid_t pid() const { return pid_; }
  // Waits for an exit of its own; the exit code.
  int wait_for_exit();

  const std::string& directory() const { return directory_.path(); }
  const std::string& data_dir() const { return data_dir_; }
  std::string node_folder() const { return data_dir_ + "/node"; }  // of the launcher it starts
  const std::string& socket() const { return socket_; }
  std::string log() const;  // everything the daemons have written on stderr

  // The command line with this daemon as server.
  Finished cli(const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment = {},
               const std::string& standard_input = {}) const;
  // The same with --json; null when it is not JSON or the command failed.
  nlohmann::json json(std::vector<std::string> arguments) const;
  // `submit` with these words: the job's id. A refusal fails the test.
  std::string submit(std::vector<std::string> arguments) const;
  // Returns whether the job comes to that state within a minute.
  bool reaches(const std::string& id, const std::string& state) const;
  nlohmann::json job(const std::string& id) const { return json({"jobs", "describe", id}); }

  // Pids of live processes of this program working for this data directory, by role
  // ("launcher", "gp-supervisor", "probe").
  std::vector<pid_t> processes(const std::string& role) const;
  // The relays of this daemon alone: they share the cgroup of its supervisors, of which one must
  // run.
  std::vector<pid_t> relays() const;

 private:
  TemporaryDirectory directory_;
  DaemonOptions options_;
  std::string data_dir_;
  std::string socket_;
  std::string log_path_;
  pid_t pid_ = -1;
};

// Whether this process could change mounts for itself alone. It cannot where its root is no mount
// of its own, as in a plain chroot.
bool may_have_private_mounts();
std::string read_file(const std::string& path);
// All that is below the folder, links not followed. What others remove meanwhile may be missing.
std::vector<std::filesystem::directory_entry> entries_below(const std::filesystem::path& folder);
// Of the regular files below the folder.
std::uintmax_t bytes_below(const std::filesystem::path& folder);
std::vector<std::string> lines_of(const std::string& text);
std::set<std::string> keys_of(const nlohmann::json& object);

}  // namespace gpu_platform::e2e
