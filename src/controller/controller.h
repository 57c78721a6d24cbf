#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "controller/core.h"
#include "controller/publication.h"
#include "execution/engine.h"
#include "model/command.h"
#include "store/store.h"

namespace gpu_platform::controller {

class LedgerMaker;

using CommandDone = std::function<void(base::Result<model::CommandReply>)>;

struct PolicyChange {
  model::Policy policy;
  std::string by;
  model::Origin origin = {};  // the origin in the audit trail
};

struct CommandInput {
  model::Command command;
  CommandDone done;  // called once, after what it led to is durable and published
};

// Tells when everything that came in before it is durable and published.
struct Barrier {
  std::function<void()> reached;
};

// These ended jobs leave the archive.
struct HistoryDrop {
  std::vector<model::JobId> jobs;
};

// One thing for the controller to take in.
using Input =
    std::variant<CommandInput, execution::Observation, PolicyChange, Barrier, HistoryDrop>;

struct ControllerOptions {
  std::uint64_t events_per_snapshot = 200'000;
  // The engine is asked for the state of every attempt this often, because news may have been lost.
  base::Duration reconcile_interval = base::seconds(30);
};

// Joins core, journal and engine in the one safe order: judge and apply, sync, publish,
// acknowledge, order. The daemon's loop and the fault simulation drive this same class; it has no
// clock and no thread. The phases are public so that the simulation can end the process between any
// two of them.
//
// Ownership: refers to journal and engine, which must outlive it. Thread: one owner.
class Controller {
 public:
  Controller(store::Journal& journal, execution::Engine& engine, ControllerOptions options = {});

  // Called with every published batch; added before recover(), must outlive the controller.
  void add_listener(PublicationListener* listener) { listeners_.push_back(listener); }

  // Reads snapshot and journal, then tells the engine what is known and repeats what may be lost.
  // Lines that the ledger lacks are made; where it lacks none, nothing is written. `note` receives
  // what a person should know (a damaged snapshot that was skipped).
  base::Status recover(base::Instant now, std::string* note = nullptr);

  // One turn: takes in the inputs, plans, and carries out the phases. An error means that the
  // journal failed: nothing was acknowledged, and the process must end and recover.
  base::Status step(std::span<Input> inputs, base::Instant now);

  // ---- the phases of a step, in order
  void decide(std::span<Input> inputs, base::Instant now);
  base::Status commit();
  void publish();
  void acknowledge();
  void dispatch();

  // When step() should be called although nothing came in; nothing when it need not.
  std::optional<base::Instant> next_wakeup() const;

  // Stores a snapshot of the state now, so that the next start replays little.
  base::Status store_snapshot();

  const Core& core() const { return core_; }
  std::shared_ptr<const Snapshot> snapshot() const { return published_; }
  void set_stage_observer(scheduling::StageObserver* observer) {
    observer_ = observer;
    core_.set_stage_observer(observer);
  }
  // The open batch, between decide() and dispatch().
  Batch& open_batch() { return batch_; }

 private:
  struct Acknowledgement {
    CommandDone done;
    base::Result<model::CommandReply> reply;
  };

  base::Status load_snapshot(const LedgerMaker& ledger, std::string* note);
  void take(Input& input, base::Instant now, store::Headroom headroom);
  base::Status check_batch() const;
  void reconcile();
  // Something may have come of an order that is not known yet.
  bool has_orders_out() const;
  void order(const Effect& effect);

  store::Journal& journal_;
  execution::Engine& engine_;
  ControllerOptions options_;
  Core core_;
  scheduling::StageObserver* observer_ = nullptr;  // of the core
  Batch batch_;
  std::vector<Acknowledgement> acknowledgements_;
  std::vector<model::JobId> leaving_;  // the archive, with this step
  std::vector<PublicationListener*> listeners_;
  std::shared_ptr<const Snapshot> published_;
  std::uint64_t events_since_snapshot_ = 0;
  base::Instant reconcile_at_;
  bool is_reconciling_ = false;  // in the step that is under way
};

}  // namespace gpu_platform::controller
