#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/prng.h"
#include "base/units.h"
#include "controller/core.h"
#include "execution/engine.h"
#include "execution/virtual_engine.h"
#include "simulation/clock.h"
#include "simulation/faults/findings.h"
#include "simulation/faults/ledger.h"
#include "simulation/faults/setup.h"

namespace gpu_platform::simulation {

// Everything between controller and engine, both ways: orders and news get lost, come late (so that
// others pass them) or twice. What it keeps to, as engine.h promises: news of one node come in
// their order, and an order to forget is passed by no earlier order of the same attempt.
//
// Checks on the way what may never leave the controller:
//   effect-before-sync  a start before its StartRequested is durable, a stop of an attempt before
//   its StopRequested or its end is, a time limit that the job was never
//                       given, a forget before its release, a reset before it is recorded
//   end-known           an attempt in pods ends in an unknown way, although a pod stays until its
//                       end was read
class Link final : public execution::Engine, public execution::ObservationSink {
 public:
  Link(base::Prng random, VirtualClock& clock, Findings& findings, Ledger& ledger, Plant plant)
      : random_(random), clock_(clock), findings_(findings), ledger_(ledger), plant_(plant) {}

  // Call it before anything else; the engine's sink is this link. Nothing goes wrong here on the
  // way to the engine of a cluster, which is a part of the daemon: null, there is none.
  void connect(execution::VirtualEngine& engine, execution::Engine* cluster) {
    engine_ = &engine;
    cluster_ = cluster;
  }
  void set_faults(const MessageFaults& orders, const MessageFaults& news) {
    order_faults_ = orders;
    news_faults_ = news;
  }

  // ---- from the controller
  void start(const execution::StartOrder& order) override;
  void stop(const execution::StopOrder& order) override;
  void set_limit(const execution::LimitOrder& order) override;
  void signal(const execution::SignalOrder& order) override;
  void forget(const execution::ForgetOrder& order) override;
  // Given or lost; never late, as the engine would refuse one whose GPU is in use again.
  void reset(const execution::ResetOrder& order) override;
  void adopt(const std::vector<execution::KnownAttempt>& known) override;

  // ---- from the engine
  void observe(execution::Observation observation) override;
  // From the engine of the cluster.
  void observe_cluster(execution::Observation observation);

  // The controller dies after so many more orders: later ones are not given.
  void die_after(std::size_t orders) { orders_left_ = orders; }
  // The controller is gone: news on their way to it are lost, orders on their way may arrive.
  void crash();

  // Hands orders that are due to the engine and news that are due to the controller.
  void deliver();
  std::vector<execution::Observation> take_news() { return std::exchange(inbox_, {}); }
  bool has_news() const { return !inbox_.empty(); }
  std::optional<base::Instant> next_delivery() const;

 private:
  // Of an attempt.
  using Order = std::variant<execution::StartOrder, execution::StopOrder, execution::LimitOrder,
                             execution::ForgetOrder, execution::SignalOrder>;
  template <class Message>
  using InFlight = std::map<std::pair<base::Instant, std::uint64_t>, Message>;

  bool is_on_cluster(const execution::StartOrder& order) const;
  execution::Engine& engine_of(model::AttemptId attempt);
  bool may_give_order();
  void pass(const Order& order);
  void hand_over(const Order& order);
  bool is_lost(const MessageFaults& faults, FaultKind kind);
  base::Instant some_time_later();
  void check(const Order& order);
  bool is_swallowed(const execution::Observation& observation);
  void set_wall_time(execution::Observation& observation) const;
  void rewrite(execution::Observation& observation);
  void pass_news(execution::Observation observation);

  base::Prng random_;
  VirtualClock& clock_;
  Findings& findings_;
  Ledger& ledger_;
  Plant plant_;
  execution::VirtualEngine* engine_ = nullptr;
  execution::Engine* cluster_ = nullptr;
  std::set<model::AttemptId> of_cluster_;  // attempts on its nodes
  MessageFaults order_faults_;
  MessageFaults news_faults_;
  std::optional<std::size_t> orders_left_;
  std::uint64_t last_number_ = 0;
  InFlight<Order> orders_;
  InFlight<execution::Observation> news_;
  std::vector<execution::Observation> inbox_;
  // Only the planted defects use them.
  std::vector<model::AttemptId> gone_;
  std::map<model::JobId, std::uint32_t> newest_;
};

}  // namespace gpu_platform::simulation
