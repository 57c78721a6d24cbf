#include "bin/core_part.h"

#include <map>
#include <optional>
#include <utility>

#include <spdlog/spdlog.h>

#include "bin/store_state.h"

namespace gpu_platform::bin {

base::Result<std::unique_ptr<CorePart>> CorePart::open(const Options& options,
                                                       const config::Configuration& configuration,
                                                       logging::Log& log) {
  store::SqliteOptions of_store;
  of_store.dir = options.data_dir;
  of_store.others_may_pass = options.others_may_pass;
  of_store.accept_loss = options.accept_loss;
  if (options.accept_loss) of_store.seen_job = last_job_with_output(options.data_dir);
  of_store.headroom.ballast = configuration.store_reserve_bytes;
  TRY_ASSIGN(auto store, store::SqliteStore::open(of_store));
  if (!store->note().empty()) spdlog::warn("store note=\"{}\"", store->note());
  return std::unique_ptr<CorePart>(new CorePart(options, std::move(store), log));
}

CorePart::CorePart(Options options, std::unique_ptr<store::SqliteStore> store, logging::Log& log)
    : options_(std::move(options)),
      log_(log),
      store_(std::move(store)),
      environments_(*store_),
      event_log_(log) {}

void CorePart::route_to(const EngineTable& engines) {
  std::map<model::EngineKind, execution::Engine*> orders;
  std::map<model::EngineKind, execution::AttemptAccess*> access;
  for (const auto& [kind, engine] : engines) {
    orders[kind] = engine.orders;
    access[kind] = engine.access;
  }
  engines_ = std::make_unique<execution::EngineRouter>(std::move(orders));
  engine_access_ = std::make_unique<execution::AccessRouter>(
      std::move(access), [this](model::NodeId id) -> std::optional<model::EngineKind> {
        const auto now = snapshot();
        const model::Node* node = now->nodes.find(id.value);
        return node != nullptr ? std::optional(node->engine) : std::nullopt;
      });
}

// In the order in which they hear of a batch.
void CorePart::make_listeners(const config::Configuration& configuration,
                              const model::Policy& policy) {
  hub_ = std::make_unique<api::EventHub>(controller_->core().state().seq);
  controller_->add_listener(&event_log_);
  team_follower_ = std::make_unique<TeamFollower>(
      log_, TeamFollower::Site{configuration.access, policy.own_uid}, *loop_->snapshot(),
      [this](model::AccessRules rules) { access_.set(std::move(rules)); });
  controller_->add_listener(team_follower_.get());
  controller_->add_listener(hub_.get());
  if (configuration.notify_command.empty()) return;
  notifier_ = std::make_unique<Notifier>(configuration.notify_command, log_);
  controller_->add_listener(notifier_.get());
}

base::Status CorePart::recover(const EngineTable& engines,
                               const config::Configuration& configuration, Start start) {
  route_to(engines);
  controller_ = std::make_unique<controller::Controller>(*store_, *engines_);
  loop_ = std::make_unique<controller::Loop>(*controller_, clock_, std::move(start.on_fatal));
  std::string note;
  store_->tell_of_replays(std::move(start.progress));
  const base::Status recovered = controller_->recover(clock_.now(), &note);
  store_->tell_of_replays({});
  TRY(recovered);
  if (!note.empty()) spdlog::warn("recovery note=\"{}\"", note);
  if (!configuration.cluster_name.text.empty()) {
    spdlog::info("cluster name=\"{}\"", configuration.cluster_name.text);
  }
  const controller::State& state = controller_->core().state();
  clock_.start_after(state.at);
  spdlog::info("recovered events={} jobs={} nodes={}", state.seq.value, state.jobs.size(),
               state.nodes.size());
  make_listeners(configuration, start.policy);
  loop_->observe(execution::MachineBooted{std::move(start.boot_id)});
  loop_->change_policy(std::move(start.policy), "configuration", std::move(start.origin));
  return {};
}

void CorePart::add_listener(controller::PublicationListener& listener) {
  controller_->add_listener(&listener);
}

void CorePart::start() {
  loop_->start();
  is_started_ = true;
}

void CorePart::start_retention(RetentionThread::OnDropped on_dropped) {
  retention_ =
      std::make_unique<RetentionThread>(*store_, *loop_, *engine_access_, std::move(on_dropped));
}

void CorePart::stop() {
  retention_.reset();
  if (!is_started_) return;
  is_started_ = false;
  loop_->stop();
  if (const base::Status stored = controller_->store_snapshot(); !stored) {
    spdlog::warn("no snapshot at the end: {}", stored.error().message);
  }
}

}  // namespace gpu_platform::bin
