#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "execution/engine.h"
#include "execution/process/attempt_files.h"
#include "execution/process/mps_sets.h"
#include "execution/process/preflights.h"
#include "execution/process/time_slice_sets.h"
#include "node/protocol.h"
#include "os/descriptor.h"

namespace gpu_platform::execution {

// How attempts share GPUs.
struct SharingOptions {
  base::Duration slice = base::seconds(10);  // see TimeSliceSets
  MpsSets::Options mps = {};
  base::Duration mps_timeout = base::seconds(30);  // a launch waits so long for its MPS server
  // Tells of an MPS server (GPU, user) that was lost; null: to none. Must not wait.
  std::function<void(const std::string& gpu, std::uint32_t uid)> tell_mps_loss = {};
};

// The engine's knowledge of each attempt and its next steps. Orders, notices, answers of the
// launcher and the disk go in; messages for the launcher, launches and observations come out. It
// has no thread, and touches only the attempts' records and handles of supervisors outside.
class Attempts {
 public:
  Attempts(std::string boot_id, ObservationSink& sink, SharingOptions sharing = {})
      : boot_id_(std::move(boot_id)),
        sink_(sink),
        turns_(sharing.slice),
        mps_(std::move(sharing.mps)),
        mps_timeout_(sharing.mps_timeout),
        tell_mps_loss_(std::move(sharing.tell_mps_loss)) {}

  // The launcher's, where the records are; before anything else.
  void use_folder(std::string folder) { folder_ = std::move(folder); }

  // `now` is nanoseconds on a steady clock, here and below.
  void start(const StartOrder& order);
  void stop(const StopOrder& order, std::int64_t now);
  void set_limit(const LimitOrder& order);
  void signal(const SignalOrder& order);
  void forget(const ForgetOrder& order);
  void adopt(const std::vector<KnownAttempt>& known, std::int64_t now);
  void use_time_slice(base::Duration slice) { turns_.use_slice(slice); }

  void notice(const node::Notice& notice);
  // An answer of the launcher; pidfd comes with Launched.
  void answer(const node::Message& message, os::Descriptor pidfd, std::int64_t now);
  // There is a new launcher: orders to its predecessor may or may not have been carried out.
  void launcher_is_new(std::int64_t now);
  // The process behind a watched handle has ended.
  void supervisor_ended(int pidfd, std::int64_t now);

  // Does everything that is due; returns when the next step is due, if there is one.
  std::optional<std::int64_t> do_due(std::int64_t now);

  // ---- what is to be sent, in this order
  std::deque<node::Message>& messages();
  // Attempts to launch; an entry may be stale: order_to_launch says null then.
  std::deque<model::AttemptId>& launches() { return launches_; }
  const StartOrder* order_to_launch(model::AttemptId id) const;
  // Returns the attempt as it was started, until nothing of it is left; null otherwise.
  const StartOrder* order_of(model::AttemptId id) const;
  // The same while its supervisor lives.
  const StartOrder* order_of_running(model::AttemptId id) const;
  // Returns the attempt if its GPUs are to be checked before it is launched; null otherwise. Its
  // check has begun then.
  const StartOrder* begin_check(model::AttemptId id);
  // It is launched now, unless a GPU is unfit or it was stopped meanwhile.
  void check_ended(const PreflightOutcome& outcome);
  // Returns whether the attempt is not to be launched yet, because its MPS server is being made
  // ready: it comes back among the launches then, or ends if there is no server in time.
  bool begin_mps(model::AttemptId id, std::int64_t now);
  // As MpsSets has it: what the attempt and the commands beside it need to be MPS clients.
  std::optional<MpsClient> mps_client_of(model::AttemptId id) const { return mps_.client_of(id); }
  void launch_sent(model::AttemptId id);
  // The launch cannot even be asked for. With an exit code it is the job's own fault.
  void launch_impossible(model::AttemptId id, std::optional<std::uint8_t> code, std::string why,
                         model::EndReason reason = model::EndReason::kLaunchFailed);

  // Handles to be watched since the last call.
  std::vector<int> take_new_handles() { return std::exchange(new_handles_, {}); }

 private:
  enum class Phase {
    kWaiting,   // to be launched
    kChecking,  // its GPUs are being checked before that
    kServing,   // its MPS server is being made ready before that
    kSent,      // the launcher has been asked
    kRunning,   // its supervisor lives and is watched
    kKilling,   // its supervisor is dead; what it left is being killed
    kOver,      // nothing of it is left; stays known until it is forgotten
  };
  enum class Due { kLook, kStop, kKill, kServe };
  enum class Asked { kAdopt, kNewLauncher, kOther };

  struct Attempt {
    Phase phase = Phase::kWaiting;
    std::optional<StartOrder> order;
    os::Descriptor supervisor;
    bool told_started = false;
    bool told_ended = false;
    std::string epilog_failure;  // of one that is over
    bool discard = false;  // the core does not know it: tell nothing, remove it when it is over
    std::optional<StopOrder> stop;
    bool stop_taken = false;
    std::int64_t give_up_stop_at = 0;
    std::uint32_t fruitless_launches = 0;
    std::string preflight;  // what the check of its GPUs did; empty: it was not checked yet
    std::int64_t delay = 0;
    std::optional<std::pair<std::int64_t, Due>> due;
  };

  void adopt_one(const KnownAttempt& known, std::int64_t now);
  void adopt_without_files(model::AttemptId id, Attempt& a, model::AttemptState state);
  void join_mps_again(model::AttemptId id);
  void discard_unknown(model::AttemptId id, std::int64_t now);
  void look(model::AttemptId id, Asked asked, std::int64_t now);
  void look_at_unbegun(model::AttemptId id, Attempt& a, Asked asked);
  bool watch(model::AttemptId id, Attempt& a, std::uint32_t pid);
  void keep_handle(model::AttemptId id, Attempt& a, os::Descriptor pidfd);
  void drop_handle(Attempt& a);
  void launched(model::AttemptId id, os::Descriptor pidfd, std::int64_t now);
  void take_mps_state(const node::MpsState& state);
  void send_stop(model::AttemptId id, Attempt& a, std::int64_t now);
  void begin_kill(model::AttemptId id, Attempt& a, std::int64_t now);
  void do_one(model::AttemptId id, Due due, std::int64_t now);
  void set_due(model::AttemptId id, Attempt& a, std::int64_t at, Due due);
  void clear_due(model::AttemptId id, Attempt& a);

  void tell(const Attempt& a, Observation observation);
  void tell_started(model::AttemptId id, Attempt& a, const node::StartedRecord& started);
  void tell_ended(model::AttemptId id, Attempt& a, const node::EndRecord& end);
  void tell_record(model::AttemptId id, Attempt& a, const node::Record& record);
  void lose(model::AttemptId id, Attempt& a, bool node_lost);
  void end_unstarted(model::AttemptId id, Attempt& a, std::optional<std::uint8_t> code,
                     std::string why, model::EndReason reason = model::EndReason::kLaunchFailed);
  void end_unfit(model::AttemptId id, Attempt& a, std::vector<UnfitGpu> gpus);
  void finish(model::AttemptId id, Attempt& a, std::string epilog_failure = {});
  Attempt* find(model::AttemptId id);
  void forget_again();

  std::string folder_;
  const std::string boot_id_;
  ObservationSink& sink_;
  std::map<model::AttemptId, Attempt> attempts_;
  std::map<int, model::AttemptId> by_handle_;
  std::set<std::pair<std::int64_t, model::AttemptId>> due_;
  TimeSliceSets turns_;
  MpsSets mps_;
  const base::Duration mps_timeout_;
  const std::function<void(const std::string& gpu, std::uint32_t uid)> tell_mps_loss_;
  std::deque<node::Message> messages_;
  std::deque<model::AttemptId> launches_;
  std::vector<int> new_handles_;
  bool has_adopted_ = false;
};

}  // namespace gpu_platform::execution
