#pragma once

#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "execution/engine_harness_fixture.h"
#include "execution/kubernetes/kubernetes_engine.h"
#include "kubernetes/testing/fake_api_server.h"
#include "kubernetes/testing/pod_runner.h"

namespace gpu_platform::execution::testing {

// Keeps what an engine tells, for the thread of a test.
class ToldByAttempt : public ObservationSink {
 public:
  void observe(Observation observation) override;
  Told of(model::AttemptId attempt) const;
  std::map<std::string, model::NodeInfo> nodes() const;
  // Why a GPU is not to give; empty: it is, or it was not told.
  std::string unavailable(const std::string& uuid) const;
  std::vector<ResetEnded> resets() const;
  std::vector<EvidenceObserved> evidence() const;
  void clear();
  // Waits until something new is told, or for a little while.
  void wait_a_little() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable news_;
  mutable bool is_new_ = false;
  std::map<model::AttemptId, Told> told_;
  std::map<std::string, model::NodeInfo> nodes_;
  std::map<std::string, std::string> unavailable_;  // by UUID
  std::vector<ResetEnded> resets_;
  std::vector<EvidenceObserved> evidence_;
};

// The Kubernetes engine, on an API server of the tests and a cluster that the test moves: one node
// with GPUs. Every wait moves the cluster meanwhile.
class KubernetesHarness : public EngineHarness {
 public:
  KubernetesHarness();
  ~KubernetesHarness() override;

  std::string open() override;
  std::string why_no_signals() const override { return "Kubernetes delivers no signals"; }
  std::string why_no_limit_while_away() const override {
    return "the engine itself keeps the time limit of a pod";
  }
  KubernetesEngine& engine() override { return *engine_; }
  void close() override { engine_.reset(); }
  void reopen() override;

  StartOrder order(std::uint64_t job, const Act& act) override;
  // The same on several nodes, a process on each.
  StartOrder gang(std::uint64_t job, const Act& act, std::uint32_t nodes);
  void let_end(model::AttemptId attempt) override { let_end_.insert(attempt); }
  void kill_supervisor(model::AttemptId attempt) override;

  bool wait_until(const std::function<bool()>& condition) override;
  Told told(model::AttemptId attempt) const override { return told_.of(attempt); }
  int runs(model::AttemptId attempt) const override;
  bool is_ready(model::AttemptId attempt) const override;
  bool is_over(model::AttemptId attempt) const override;
  bool is_forgotten(model::AttemptId attempt) const override { return pods_of(attempt).empty(); }

  kubernetes::FakeApiServer& server() { return server_; }
  kubernetes::PodRunner& runner() { return runner_; }
  ToldByAttempt& all_told() { return told_; }
  KubernetesEngineOptions& options() { return options_; }
  std::vector<nlohmann::json> pods_of(model::AttemptId attempt) const;
  // While false, the cluster moves only as the test says.
  void set_moves(bool moves) { moves_ = moves; }
  // One move of the cluster.
  void move();

 private:
  void move(const nlohmann::json& pod);

  class NoEnvironment : public EnvironmentSource {
    base::Result<std::string> environment(std::string_view) const override { return std::string(); }
  };

  std::string folder_;
  kubernetes::FakeApiServer server_;
  kubernetes::PodRunner runner_{server_};
  NoEnvironment environment_;
  ToldByAttempt told_;
  KubernetesEngineOptions options_;
  std::unique_ptr<KubernetesEngine> engine_;
  std::map<std::uint64_t, Act> acts_;  // by job
  std::set<model::AttemptId> let_end_;
  std::map<std::string, model::AttemptId> started_;  // by the uid of the pod
  bool moves_ = true;
};

}  // namespace gpu_platform::execution::testing
