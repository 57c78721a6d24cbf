#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "model/channel.h"
#include "node/idle_limit.h"
#include "node/protocol.h"
#include "node/supervisor/output_pump.h"
#include "node/terminal.h"

namespace gpu_platform::node {

// The supervisor's part in an interactive job. It holds the other side of the job's terminal, or of
// its stdin, passes the job's output to the pump and to the attached client, and takes that
// client's input. For a job that takes no input it does nothing at all.
//
// One client is attached at a time; a new one takes the place of the old one. The last kRing bytes
// are kept and shown to a client that attaches. Output waits for a client that does not take it,
// but not for long; then the client is detached and the job goes on. Input is bounded as on any
// channel.
//
// Never waits. Times are nanoseconds on the boot clock; 0: never. Thread: the supervisor's one.
class Session {
 public:
  static constexpr std::size_t kRing = 64 * 1024;
  static constexpr std::int64_t kTimeout = 10'000'000'000;  // with a client that takes nothing
  static constexpr std::size_t kHandles = 4;

  struct Options {
    model::AttemptId attempt;
    const LaunchRequest* request = nullptr;
    int run = -1;                // NodeFolders::run
    OutputPump* pump = nullptr;  // open; null: the job prints into files of its own
  };
  explicit Session(const Options& options);
  ~Session();  // hangs up, and removes the socket
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Call it before the start of the job. Returns why it failed, or nothing.
  std::string open();
  // The job gets these in the place of /dev/null and of the pump's pipe; -1: nothing.
  int job_input() const { return job_input_; }
  int job_output() const { return job_output_; }
  void begin(std::int64_t now);  // the job runs, and has them

  // kHandles entries to wait for, and until when.
  void watch(pollfd* handles) const;
  std::int64_t wake_at() const;
  // All that can be done now.
  void work(std::int64_t now);
  // Shows a line of ours to the attached client, if there is one.
  void note(const std::string& words, std::int64_t now);
  // True once when nothing was typed or printed for too long.
  bool is_idle(std::int64_t now);
  // The job is frozen between its turns, or is not: only the time awake counts for is_idle(). May
  // be repeated.
  void job_stands_still(bool is_so, std::int64_t now);
  // True once after a client has come, or has sent something for the job.
  bool has_called() { return std::exchange(has_called_, false); }

  // The job's main process has ended. Its output goes to the pump at once; the attached client is
  // told after it has got the rest. No client can attach any more.
  void end(model::ChannelEnd how, std::uint8_t value, std::int64_t now);
  // A client has not got all of it yet; work() ends that one way or the other.
  bool is_talking() const { return has_ended_ && person_ >= 0; }

 private:
  std::string open_terminal_pair();
  std::string open_pipes();
  bool has_arrival();
  void take_arrival(std::int64_t now);
  void take_last_arrivals(std::int64_t now);
  void welcome(int channel, std::int64_t now);
  void part(std::string_view why);
  void hang_up();
  void read_frames(std::int64_t now);
  bool take(const model::Frame& frame, std::int64_t now);
  bool take_input(std::string_view bytes, std::int64_t now);
  void feed_input();
  void has_taken(std::size_t bytes);
  void close_input();
  bool has_space() const;
  bool read_source(std::int64_t now);
  void keep(std::string_view bytes, std::int64_t now);
  void store(std::string_view bytes);
  void append(std::string_view bytes, std::int64_t now);
  void show(std::int64_t now);
  void announce_idleness(std::int64_t now);
  void resize(model::TerminalSize size) const;
  void send(const model::Frame& frame) const;

  const Options options_;
  IdleLimit idle_;
  int listener_ = -1;
  int arriving_ = -1;  // a launcher that has not yet passed its channel on
  int person_ = -1;    // the channel of the attached client
  bool wants_output_ = false;
  int job_input_ = -1;
  int job_output_ = -1;
  int terminal_ = -1;  // our side; input_ and source_ are the same
  int input_ = -1;
  int source_ = -1;
  std::string waiting_;  // input that the job has not taken
  bool input_ends_ = false;
  std::uint32_t taken_ = 0;     // of the person's input, not told yet
  std::uint64_t received_ = 0;  // input of all clients
  std::string text_;            // the newest output
  std::size_t shown_ = 0;       // of text_, to the person
  std::int64_t progress_at_ = 0;
  bool has_called_ = false;
  bool has_ended_ = false;
  model::EndFrame end_;
};

}  // namespace gpu_platform::node
