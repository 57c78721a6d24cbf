#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execution/engine.h"
#include "execution/process/job_request.h"
#include "execution/process/launcher_link.h"
#include "node/protocol.h"
#include "os/descriptor.h"

namespace gpu_platform::execution {

// Where the board of a node is; nothing: its GPUs are real.
std::optional<node::BoardFiles> board_files_of(const BoardPlaces& boards, const std::string& node);

// The GPUs of an attempt on one node, to be checked before it starts.
struct CheckBeforeStart {
  model::AttemptId attempt;
  std::string node;
  std::vector<std::string> gpus;  // UUIDs, at most node::kMaxDriverGpus
  bool is_deep = false;
};

// Its answer.
struct CheckedBeforeStart {
  model::AttemptId attempt;
  std::string node;
  node::DriverAnswer answer;
};

// Resets of GPUs of this host and of its emulated boards: the probe lets go of the node's driver,
// the launcher has the driver program reset the GPUs, the probe looks again, and those that were
// reset are checked. A check alone needs no driver for itself, so the probe goes on. One order of a
// node is at work at a time. Never waits: the answers come on sockets. One thread.
class GpuResets {
 public:
  struct Options {
    BoardPlaces boards = {};  // empty: the GPUs are real
    // Has the probe of a node let go of its driver, or look at it again. Must not wait.
    std::function<void(const std::string& node, bool is_held)> hold_probe = {};
    std::uint64_t reset_limit_ms = 180'000;
    std::uint64_t check_limit_ms = 300'000;
    std::uint64_t deep_check_limit_ms = 1'800'000;
  };
  // Sends to the launcher; the socket stays the caller's.
  using Send = std::function<LauncherLink::Sent(const node::RunDriver& order, int socket)>;

  // The sink must outlive it.
  GpuResets(Options options, ObservationSink& sink);

  // GPUs that are at work, or wait, already are not taken in again: one answer comes for each.
  void add(const ResetOrder& order);
  // The answer comes by take_checked(), and not to the sink.
  void add(CheckBeforeStart check);
  // The checks of this attempt end soon, and are answered.
  void give_up(model::AttemptId attempt, std::int64_t now_ns);
  std::vector<CheckedBeforeStart> take_checked();
  // Sends what is to be sent now. Returns kBroken or kNotNow where something is left to send.
  LauncherLink::Sent go_on(const Send& send, std::int64_t now_ns);
  // Reads an answer. Returns whether the handle is one of ours.
  bool read(int handle);
  // Gives up what has no answer long after its limit. Returns when to look again.
  std::optional<std::int64_t> do_due(std::int64_t now_ns);
  // Handles to watch that were not told yet.
  std::vector<int> take_new_handles();

 private:
  enum class Stage : std::uint8_t { kReset, kCheck };
  struct Run {
    std::string node;
    std::vector<std::string> gpus;  // that have not failed
    bool without_reset = false;
    bool is_deep = false;
    Stage stage = Stage::kReset;
    os::Descriptor answer;                         // open: it was sent
    std::int64_t due_ns = 0;                       // of what was sent
    bool holds_probe = false;                      // since this run began
    std::optional<model::AttemptId> attempt = {};  // for which it is checked
    std::uint32_t lost_answers = 0;
  };

  static node::DriverAnswer no_answer(const Run& run, std::string_view why);
  bool is_known(const ResetOrder& order, const std::string& gpu) const;
  bool must_wait(std::size_t index) const;
  LauncherLink::Sent send(Run& run, const Send& send, std::int64_t now_ns);
  node::RunDriver request_of(const Run& run) const;
  void hold_probe(Run& run, bool is_held);
  void finish(std::size_t index, const node::DriverAnswer& answer);
  bool asks_again(Run& run);

  const Options options_;
  ObservationSink& sink_;
  std::vector<Run> runs_;  // in the order in which they came
  std::vector<CheckedBeforeStart> checked_;
  std::vector<int> new_handles_;
};

}  // namespace gpu_platform::execution
