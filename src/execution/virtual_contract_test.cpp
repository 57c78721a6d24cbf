// The suite of all engines on virtual time.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "execution/engine_contract.h"
#include "execution/virtual_engine.h"
#include "model/job_spec.h"

namespace gpu_platform::execution::testing {
namespace {

// What runs outlives the controller here as on a host, so the engine stays where it is closed, and
// only what it tells is not heard.
class VirtualHarness : public EngineHarness,
                       public ObservationSink,
                       public VirtualScript,
                       public VirtualWitness {
 public:
  std::string open() override {
    engine_.advance(base::Instant(1'700'000'000'000'000'000));
    model::NodeInfo node;
    node.name = "here";
    node.boot_id = "boot";
    engine_.put_node(node);
    return {};
  }
  std::string why_no_signals() const override {
    return "a job here is a script of times and ends, which takes no notice of other signals";
  }
  Engine& engine() override { return engine_; }
  void close() override { is_heard_ = false; }
  void reopen() override {
    is_heard_ = true;
    told_.clear();
  }

  StartOrder order(std::uint64_t job, const Act& act) override {
    StartOrder start;
    start.attempt = {model::JobId(job), 1};
    start.spec = std::make_shared<const model::JobSpec>();
    start.nodes.emplace_back();
    start.nodes.back().node_name = "here";
    start.boot_id = "boot";
    start.time_limit = base::hours(1000);
    start.stop_grace = base::seconds(30);
    acts_[start.attempt] = act;
    return start;
  }
  void let_end(model::AttemptId attempt) override {
    engine_.finish(attempt, by_code(acts_[attempt].code), model::EndReason::kNone);
  }
  void kill_supervisor(model::AttemptId attempt) override { engine_.lose_supervisor(attempt); }

  bool wait_until(const std::function<bool()>& condition) override {
    while (!condition()) {
      const auto next = engine_.next_event();
      if (!next) return false;
      engine_.advance(*next);
    }
    return true;
  }
  Told told(model::AttemptId attempt) const override { return of(told_, attempt); }
  int runs(model::AttemptId attempt) const override { return of(runs_, attempt); }
  bool is_ready(model::AttemptId attempt) const override { return runs(attempt) > 0; }
  bool is_over(model::AttemptId attempt) const override {
    return runs(attempt) > 0 && !is_live(attempt);
  }
  bool is_forgotten(model::AttemptId) const override { return engine_.remembered() == 0; }

 private:
  bool is_live(model::AttemptId attempt) const {
    const auto live = engine_.live_attempts();
    return std::ranges::find(live, attempt) != live.end();
  }
  template <class Map>
  static typename Map::mapped_type of(const Map& map, model::AttemptId attempt) {
    const auto found = map.find(attempt);
    return found == map.end() ? typename Map::mapped_type() : found->second;
  }
  static model::Exit by_code(std::uint8_t code) {
    return {.code = code, .signal = {}, .lost = model::Lost::kNo};
  }

  // ---- ObservationSink, VirtualScript, VirtualWitness
  void observe(Observation observation) override {
    if (!is_heard_) return;
    const auto note = [&](const auto* now) {
      if (now != nullptr) told_[now->attempt].note(*now);
    };
    note(std::get_if<Started>(&observation));
    note(std::get_if<Ended>(&observation));
    note(std::get_if<Cleaned>(&observation));
  }
  VirtualRun run_of(const StartOrder& start) override {
    const Act& act = acts_[start.attempt];
    VirtualRun run;
    run.start_delay = base::milliseconds(5);
    run.duration = act.kind == Act::Kind::kEnds ? base::milliseconds(1) : base::hours(2000);
    run.ignores_term = act.kind == Act::Kind::kIgnoresTerm;
    run.exit = by_code(act.code);
    if (act.kind == Act::Kind::kCrashes) {
      run.duration = base::milliseconds(1);
      run.exit = {.code = {}, .signal = std::uint8_t{11}, .lost = model::Lost::kNo};
    }
    if (act.kind == Act::Kind::kMissing) {
      run.exit = by_code(127);
      run.launch_error = "no such program";
    }
    return run;
  }
  void process_started(const StartOrder& start, base::Instant) override { ++runs_[start.attempt]; }
  void process_ended(model::AttemptId, const model::Exit&, base::Instant) override {}
  void processes_gone(model::AttemptId, base::Instant) override {}

  VirtualEngine engine_{*this, *this, this};
  bool is_heard_ = true;
  std::map<model::AttemptId, Act> acts_;
  std::map<model::AttemptId, Told> told_;
  std::map<model::AttemptId, int> runs_;
};

INSTANTIATE_TEST_SUITE_P(Virtual, EngineContract,
                         ::testing::Values(EngineUnderTest{
                             "Virtual",
                             []() -> std::unique_ptr<EngineHarness> {
                               return std::make_unique<VirtualHarness>();
                             }}),
                         name_of_engine);

}  // namespace
}  // namespace gpu_platform::execution::testing
