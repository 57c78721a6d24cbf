#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/mps/control_words.h"
#include "node/mps/front_end.h"
#include "node/protocol.h"
#include "os/descriptor.h"

namespace gpu_platform::node {

// The MPS control daemon of a user on a GPU, as its keeper knows it. Each call waits for the answer
// of the daemon, within `answer_ms`.
//
// The daemon is the process that listens at pipe/control and is in the cgroup: what answers there
// from anywhere else is not it. All that is in the cgroup is its own, and is killed with it.
class MpsDaemon {
 public:
  struct Options {
    int folder = -1;  // handle of MpsProgram::folder
    int cgroup = -1;
    const char* oom_score = nullptr;  // see LauncherHost::job_oom_score
    int answer_ms = 10'000;
  };
  // The handles must outlive it.
  explicit MpsDaemon(const Options& options) : o_(options) {}

  void set_program(MpsProgram program) { program_ = std::move(program); }
  // Readable when the daemon has ended; -1: there is none.
  int pidfd() const { return pidfd_.get(); }

  // Takes over the daemon that another keeper has started. Returns false if there is none.
  bool adopt();
  // Kills what is in the cgroup, starts a daemon and waits until it answers. Returns why it does
  // not; then nothing is left of it.
  std::string start(std::string_view gpu, const std::optional<BoardFiles>& board);
  // Returns why it is lost: it has ended, cannot be reached or hangs. Empty: it answers.
  std::string check();
  // Sets the limits of the next server and of the living ones, for their next clients, and reads
  // them back. Returns what was not taken.
  std::string set_limits(std::uint32_t percent, std::uint32_t memory_mib);
  // Ends its servers without clients; one that hangs is killed. Returns whether a server is left.
  bool end_idle_servers();
  // Ends it in its own way, and then all that is left in the cgroup.
  void end();
  // Keeps the file to which a daemon writes each question from growing.
  void trim_log() const;

 private:
  MpsAnswer ask(const std::string& commands) const;
  MpsPids servers() const;
  bool is_mine(int pid) const;
  int listener() const;
  int open_log(int flags) const;
  std::string last_words() const;
  std::string make_pipe_folder() const;
  std::string wait_until_it_answers(int pid);
  std::string set_limits_of(int server, std::uint32_t percent, std::uint32_t memory_mib) const;
  void end_server(int server) const;
  void forget();

  const Options o_;
  MpsProgram program_;
  int pid_ = -1;
  os::Descriptor pidfd_;
};

}  // namespace gpu_platform::node
