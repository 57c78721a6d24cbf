#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "base/units.h"
#include "execution/engine.h"
#include "execution/kubernetes/cluster/cluster_view.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "simulation/faults/findings.h"
#include "simulation/faults/pod_cluster.h"
#include "simulation/faults/setup.h"

namespace gpu_platform::simulation {

// The daemon's part of the Kubernetes engine on virtual time: the pure classes that the real engine
// has, PodAttempts and ClusterView, and between them and the cluster calls and watches that are
// lost, late, repeated and refused. It ends with the daemon; calls on their way may still arrive.
// Ownership: refers to all that it is made with. Thread: one.
class PodEngine final : public execution::Engine {
 public:
  using Tell = std::function<void(execution::Observation)>;

  PodEngine(base::Prng random, PodCluster& cluster, Findings& findings, Plant plant, Tell tell)
      : random_(random),
        cluster_(cluster),
        findings_(findings),
        plant_(plant),
        tell_(std::move(tell)) {}

  // ---- the daemon's process begins and ends
  void open();
  void crash();
  void set_faults(const PodFaults& faults) { faults_ = faults; }

  // ---- Engine
  void start(const execution::StartOrder& order) override;
  void stop(const execution::StopOrder& order) override;
  void set_limit(const execution::LimitOrder& order) override;
  void signal(const execution::SignalOrder&) override {}  // Kubernetes delivers none
  void forget(const execution::ForgetOrder& order) override;
  void reset(const execution::ResetOrder&) override {}  // GPUs of a cluster are its own to reset
  void adopt(const std::vector<execution::KnownAttempt>& known) override;

  // ---- time, that of the cluster too
  void advance(base::Instant now);
  std::optional<base::Instant> next_event() const;

  // Nothing is known, under way or left in the cluster.
  bool is_idle() const;

 private:
  enum class Step : std::uint8_t { kAsk, kRead, kDeliver, kWatch };
  // A list and a watch of one kind of objects.
  struct Stream {
    Step step = Step::kAsk;
    base::Instant due;
    std::size_t position = 0;  // of the next event
    std::size_t floor = 0;     // of the first event after the list
    bool is_listed = false;
  };
  // What lives as long as the daemon's process.
  struct Life {
    explicit Life(const execution::KubernetesSettings& settings);
    execution::ClusterView view;
    execution::PodAttempts attempts;
    Stream pods;
    Stream claims;
    std::vector<execution::PodView> listed_pods;
    std::vector<execution::ClaimSeen> listed_claims;
    base::Instant nodes_due;                        // when all nodes are listed; unset: they are
    std::map<std::string, std::uint64_t> versions;  // of the nodes that were told
    std::map<std::string, std::set<std::string>> lent;
    bool is_listed = false;
  };
  struct UnderWay {
    PodRequest request;
    std::uint64_t life = 0;
    bool arrives = true;
    execution::CallAnswer instead;  // of the real answer, unless its status is -1
  };
  template <class Message>
  using InFlight = std::map<std::pair<base::Instant, std::uint64_t>, Message>;

  base::Instant soon();
  bool happens(std::uint64_t thousandths, FaultKind kind);
  void work();
  void send(const execution::Call& call);
  PodRequest request_of(const execution::Call& call) const;
  execution::CallAnswer refusal();
  void deliver_calls();
  void deliver_answers();
  template <class OnAsk, class OnRead, class OnDeliver, class OnEvents>
  void follow(Stream& stream, std::size_t events, const OnAsk& ask, const OnRead& read,
              const OnDeliver& deliver, const OnEvents& watch);
  void follow_pods();
  void follow_claims();
  void see_pod(const PodEvent& event);
  void watch_pods(Stream& stream);
  void watch_claims(Stream& stream);
  bool trips(Stream& stream);
  void tell_nodes();
  void put_node(const PodNode& node);
  template <class Event>
  static std::optional<base::Instant> due_of(const Stream& stream,
                                             const std::vector<Event>& events);

  base::Prng random_;
  PodCluster& cluster_;
  Findings& findings_;
  Plant plant_;
  Tell tell_;
  PodFaults faults_;
  base::Instant now_;
  std::uint64_t last_number_ = 0;
  std::uint64_t life_number_ = 0;
  std::optional<Life> life_;  // nothing: the daemon does not run
  InFlight<UnderWay> calls_;
  InFlight<std::pair<std::uint64_t, execution::CallAnswer>> answers_;  // by the call
};

}  // namespace gpu_platform::simulation
