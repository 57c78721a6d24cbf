#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/event_hub.h"
#include "base/result.h"
#include "bin/adaptors.h"
#include "bin/engine_part.h"
#include "bin/event_log.h"
#include "bin/notifier.h"
#include "bin/reloaded.h"
#include "bin/retention_thread.h"
#include "bin/team_follower.h"
#include "config/configuration.h"
#include "controller/controller.h"
#include "controller/loop/clock.h"
#include "controller/loop/loop.h"
#include "execution/access_router.h"
#include "execution/engine_router.h"
#include "logging/log.h"
#include "model/access_rules.h"
#include "store/sqlite/sqlite_store.h"

namespace gpu_platform::bin {

// The part that decides and remembers: the store, the controller and its loop, and what listens to
// them. It is open with its store, recovered with its state, and takes commands once it is started.
//
// Ownership: refers to the log, and once it is recovered to the engines; they outlive stop().
// Thread: the one that starts and stops the daemon; what it hands out says who may use it.
class CorePart {
 public:
  struct Options {
    std::string data_dir;          // absolute; made if it is not there
    bool others_may_pass = false;  // they may search it (store::SqliteOptions)
    bool accept_loss = false;      // start although the store is older than work that was done
  };
  static base::Result<std::unique_ptr<CorePart>> open(const Options& options,
                                                      const config::Configuration& configuration,
                                                      logging::Log& log);

  struct Start {
    model::Policy policy;
    model::Origin origin;  // of this start, for the audit trail
    std::string boot_id;   // of this machine
    std::function<void(const base::Error&)> on_fatal;
    // Sees how much of the journal is read; may be empty.
    store::SqliteStore::ReplayProgress progress = {};
  };
  // Reads the state, tells the engines what is known, and makes the loop. What is observed and
  // asked from here on waits for start().
  base::Status recover(const EngineTable& engines, const config::Configuration& configuration,
                       Start start);
  // Before start().
  void add_listener(controller::PublicationListener& listener);
  void start();
  // Output and history of ended jobs go, from now on, when the site's policy says so.
  // `on_dropped` hears of jobs that leave the history, on the thread of the retention; may be
  // empty.
  void start_retention(RetentionThread::OnDropped on_dropped = {});

  // Ends its threads, inputs that have come included, and stores the state. What it hands out stays
  // until it is destroyed.
  void stop();

  const std::string& data_dir() const { return options_.data_dir; }
  store::SqliteStore& store() { return *store_; }
  const execution::EnvironmentSource& environments() const { return environments_; }
  controller::Loop& loop() { return *loop_; }
  // The newest published state. Any thread.
  std::shared_ptr<const controller::Snapshot> snapshot() const { return loop_->snapshot(); }
  const execution::AccessRouter& engine_access() const { return *engine_access_; }
  api::EventHub& hub() { return *hub_; }
  // Who is what here. Any thread.
  std::shared_ptr<const model::AccessRules> access() const { return access_.get(); }
  TeamFollower& team_follower() { return *team_follower_; }

 private:
  CorePart(Options options, std::unique_ptr<store::SqliteStore> store, logging::Log& log);
  void route_to(const EngineTable& engines);
  void make_listeners(const config::Configuration& configuration, const model::Policy& policy);

  const Options options_;
  logging::Log& log_;
  const std::unique_ptr<store::SqliteStore> store_;
  const StoredEnvironments environments_;
  std::unique_ptr<execution::EngineRouter> engines_;
  std::unique_ptr<execution::AccessRouter> engine_access_;
  controller::Clock clock_;
  std::unique_ptr<controller::Controller> controller_;
  EventLog event_log_;
  std::unique_ptr<Notifier> notifier_;  // null: the site has no such command
  std::unique_ptr<api::EventHub> hub_;
  Reloaded<model::AccessRules> access_;
  std::unique_ptr<TeamFollower> team_follower_;
  std::unique_ptr<controller::Loop> loop_;
  std::unique_ptr<RetentionThread> retention_;
  bool is_started_ = false;
};

}  // namespace gpu_platform::bin
