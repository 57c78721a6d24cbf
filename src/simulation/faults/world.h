#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/prng.h"
#include "base/units.h"
#include "controller/controller.h"
#include "execution/virtual_engine.h"
#include "simulation/clock.h"
#include "simulation/faults/client.h"
#include "simulation/faults/findings.h"
#include "simulation/faults/ledger.h"
#include "simulation/faults/link.h"
#include "simulation/faults/lying_journal.h"
#include "simulation/faults/pod_cluster.h"
#include "simulation/faults/pod_engine.h"
#include "simulation/faults/setup.h"
#include "simulation/faults/truth.h"
#include "store/memory/memory_store.h"

namespace gpu_platform::simulation {

// One seed's world: a cluster on virtual time, people, the controller that the daemon runs, and
// everything that goes wrong between them. First the safety phase with faults, then the liveness
// phase without, in which every accepted job must end.
//   replay     what the journal gives, from its start or from a snapshot, is the live state
//   published  readers never see what is not durable
//   commit     a batch that the controller decided can be stored
//   recovery   a controller can always take over
//   spin       a controller that has nothing to do does not ask to be woken at once
//   obeyed     a stop asked for is carried out within a bounded time once nothing goes wrong
//   liveness   every accepted job ends, and nothing is held then
//   left       nothing is left in a cluster then
class World : private execution::VirtualScript {
 public:
  World(std::uint64_t seed, Plant plant, FaultCounts& counts);

  void run();

  const Findings& findings() const { return findings_; }
  std::uint64_t events() const { return ledger_.events(); }
  std::uint64_t hash() const;

 private:
  execution::VirtualRun run_of(const execution::StartOrder& order) override;
  execution::VirtualCheck check_of(const execution::StartOrder& order) override;
  execution::VirtualReset reset_of(const execution::ResetOrder& order,
                                   const std::string& gpu_uuid) override;

  store::Journal& journal();

  // ---- one turn of the controller
  void turn();
  bool decide_and_commit();
  bool publish_and_dispatch();
  bool commit();
  static void come_through_the_door(std::vector<controller::Input>& inputs);
  void plant_in_batch();
  void forget_requeues(std::vector<controller::Input>& inputs);
  static void lose_requeues(std::vector<model::EventRecord>& events);
  bool dies_at(FaultKind point);
  void check_turn();

  // ---- the end of a process and the next one
  void crash();
  void recover();
  bool recover_once();
  void let_time_pass(std::uint64_t max_seconds);
  void damage_snapshot();
  void check_replay_from_start();
  void check_stored_lines();

  // ---- actions
  void run_with_faults();
  void run_until(base::Instant boot);
  void step_to(base::Instant limit);
  void act();
  void stop_job();
  void change_job();
  void cross();
  void repeat_submission();
  void change_policy();
  void plan_crash();
  void plan_damaged_snapshot();
  void trouble_node();
  void reboot(std::size_t node, bool with_all_gpus);
  void shrink(model::NodeInfo& info);
  void shrink_node(std::size_t node);
  std::string boot_id(std::size_t node) const;
  void set_clock();
  void fill_or_free_disk();
  void lose_supervisor();
  void fault_mps_client();
  void operate();
  base::Instant drawn_end(model::GpuAction action) const;
  void reserve();
  void use_tokens();
  void manage_teams();
  void lift_limits_of_teams();
  void change_reservation(const model::Reservation& reservation, base::Prng& random);
  void bring_unmanaged_processes();
  void change_health(const std::string& node, const std::string& uuid, base::Prng& random);
  base::Instant time_of_evidence(base::Prng& random);
  void fault_gpu(const std::string& node, const std::string& uuid, base::Prng& random);
  void storm_of_xids(const std::string& node, const std::string& uuid, base::Prng& random);
  void move_gpus(std::size_t node);
  void reset_gpus(const std::string& node, std::uint32_t index, base::Prng& random);
  void put_back_gpu(const model::Node& node, std::uint32_t index);
  void change_cluster();
  void evict();
  void put_back();

  // ---- nodes that run pods
  void open_cluster();
  bool has_pods(std::size_t node) const;
  std::vector<model::AttemptId> live_attempts() const;
  bool finish(model::AttemptId attempt, const model::Exit& exit);

  // ---- liveness
  void heal();
  void run_to_the_end();
  bool is_done() const;
  void check_obeyed();
  void check_end();

  base::Prng random_;
  std::uint64_t seed_;
  Plant plant_;
  Setup setup_;
  Findings findings_;
  VirtualClock clock_;
  Truth truth_;
  Ledger ledger_;
  Link link_;
  execution::VirtualEngine engine_;
  std::optional<PodCluster> cluster_;  // where its nodes run pods
  std::optional<PodEngine> pods_;      // the engine of these pods
  store::MemoryStore store_;
  LyingJournal lying_;
  Client client_;
  std::optional<controller::Controller> controller_;

  model::Policy policy_;  // as configured now
  std::vector<controller::Input> commands_;
  bool is_faulty_ = true;
  std::optional<FaultKind> planned_crash_;
  store::SyncOutcome next_sync_ = store::SyncOutcome::kSynced;
  bool is_snapshot_to_be_damaged_ = false;
  bool dies_in_recovery_ = false;
  std::vector<std::uint64_t> boots_;  // of each node
  std::set<model::AttemptId> told_to_stop_;
  base::Instant obeyed_by_;
  model::JobId cut_short_;  // it was given next to no time, and is to be given more
};

}  // namespace gpu_platform::simulation
