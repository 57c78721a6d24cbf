#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "controller/controller.h"
#include "execution/virtual_engine.h"
#include "simulation/scenarios/scenario.h"
#include "simulation/scenarios/values.h"
#include "store/memory/memory_store.h"

namespace gpu_platform::simulation {

// When every scenario begins.
inline constexpr base::Instant kStart(1'700'000'000'000'000'000);

// The world of one scenario: everything that can happen at one moment has happened before the next
// statement is read. After each step all invariants are checked. An error names what did not hold;
// the caller adds the place.
class ScenarioRunner final : private execution::VirtualScript,
                             private execution::VirtualWitness,
                             private execution::ObservationSink {
 public:
  ScenarioRunner();

  base::Status run(const Statement& statement);
  // Call it after the last statement: the journal must give the state that is there.
  base::Status check_end();

 private:
  struct NamedJob {
    model::JobId id;  // invalid while no submission of it was accepted
    JobScript script;
    std::map<model::AttemptId, std::uint32_t> starts;  // processes, of all its members
    std::optional<model::ArraySpec> array;
  };
  struct Answer {
    base::Result<model::CommandReply> reply = model::CommandReply{};
    bool is_given = false;
  };
  using Action = base::Status (ScenarioRunner::*)(const Statement&);
  static const std::map<std::string, Action, std::less<>>& actions();

  // ---- the world
  execution::VirtualRun run_of(const execution::StartOrder& order) override;
  void process_started(const execution::StartOrder& order, base::Instant at) override;
  void process_ended(model::AttemptId, const model::Exit&, base::Instant) override {}
  void processes_gone(model::AttemptId, base::Instant) override {}
  void observe(execution::Observation observation) override;

  // ---- statements
  base::Status node(const Statement& statement);
  base::Status policy(const Statement& statement);
  base::Status sharing(const Statement& statement);
  base::Status organisation(const Statement& statement);
  base::Status engines(const Statement& statement);
  base::Status submit(const Statement& statement);
  base::Status at(const Statement& statement);
  base::Status after(const Statement& statement);
  base::Status end(const Statement& statement);
  base::Status cancel(const Statement& statement);
  base::Status kill(const Statement& statement);
  base::Status hold(const Statement& statement);
  base::Status release(const Statement& statement);
  base::Status requeue(const Statement& statement);
  base::Status update(const Statement& statement);
  base::Status all(const Statement& statement);
  base::Status reserve(const Statement& statement);
  base::Status change_reservation(const Statement& statement);
  base::Status unreserve(const Statement& statement);
  base::Status lose(const Statement& statement);
  base::Status return_node(const Statement& statement);
  base::Status reboot(const Statement& statement);
  base::Status drain(const Statement& statement);
  base::Status offline(const Statement& statement);
  base::Status online(const Statement& statement);
  base::Status change_gpus(const Statement& statement, model::GpuAction action);
  base::Status service(const Statement& statement);
  base::Status unavailable(const Statement& statement);
  base::Status degrade(const Statement& statement);
  base::Status disk(const Statement& statement);
  base::Status restart(const Statement& statement);
  base::Status mute(const Statement& statement);
  base::Status deliver(const Statement& statement);
  base::Status expect_start(const Statement& statement);
  base::Status expect_wait(const Statement& statement);
  base::Status expect_prediction(const Statement& statement);
  base::Status expect_predicted(const Statement& statement);
  base::Status expect_promise(const Statement& statement);
  base::Status expect_score(const Statement& statement);
  base::Status expect_state(const Statement& statement);
  base::Status expect_answer(const Statement& statement);
  base::Status expect_changed(const Statement& statement);
  base::Status expect_same(const Statement& statement);
  base::Status expect_free(const Statement& statement);
  base::Status expect_node(const Statement& statement);
  base::Status expect_gpu(const Statement& statement);
  base::Status expect_reserved(const Statement& statement);

  // "a", or "a_3" of an array.
  base::Result<model::DependencyTarget> find_target(const std::string& name) const;
  base::Status set_instant(const Statement& statement, std::string_view name,
                           base::Instant& value) const;
  // As the door does it: what has left the core is looked up in the archive.
  base::Status resolve(const std::string& text, std::vector<model::Dependency>& asked,
                       std::vector<model::EndedTarget>& ended) const;
  base::Result<model::TargetOutcome> archived_outcome(const model::DependencyTarget& target,
                                                      std::uint64_t size) const;
  base::Status act(const Statement& statement, model::JobAction action);
  // The user who gives a command about the job: `by`, else its owner.
  model::Caller caller_of(const Statement& statement, const std::string& job) const;
  base::Status command(model::Command command);
  base::Status start_daemon();
  base::Status settle();
  base::Status step();
  base::Status advance_to(base::Instant when);
  std::string names_of(const std::vector<model::JobId>& ids) const;  // "a,b", by name
  base::Result<model::Job> find_job(const std::string& name) const;
  base::Result<const model::NodeInfo*> find_info(const std::string& name) const;
  base::Result<const model::Node*> find_node(const std::string& name) const;
  base::Result<std::vector<model::NodeId>> find_nodes(const Statement& statement,
                                                      std::string_view name) const;
  base::Result<std::vector<std::string>> find_gpus(const Statement& statement,
                                                   std::string_view name) const;

  base::Instant now_;
  execution::VirtualEngine engine_;
  store::MemoryStore store_;
  std::optional<controller::Controller> controller_;
  // The configuration of a site where each user may have the whole queue and ask for any priority,
  // unless the scenario says otherwise. Limits of one user are absent; scenarios that are about
  // them set them.
  config::Configuration configuration_ = {
      .policy = {.max_queue_percent_per_user = 100,
                 .percent_for_root = 0,
                 .highest_user_priority = model::PriorityClass::kCritical}};
  std::map<std::string, model::NodeInfo> nodes_;
  std::map<std::string, std::uint32_t> boots_;
  std::map<std::string, NamedJob> jobs_;
  std::vector<controller::Input> inputs_;
  std::set<model::JobId> muted_;  // news of these jobs are kept back
  std::vector<execution::Observation> kept_back_;
  Answer answer_;
};

}  // namespace gpu_platform::simulation
