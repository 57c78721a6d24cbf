#include "execution/engine_router.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpu_platform::execution {
namespace {

using model::EngineKind;
using Told = std::vector<std::string>;

// Writes down what it is told.
class FakeEngine final : public Engine {
 public:
  void start(const StartOrder& order) override { tell("start", order.attempt); }
  void stop(const StopOrder& order) override { tell("stop", order.attempt); }
  void set_limit(const LimitOrder& order) override { tell("limit", order.attempt); }
  void signal(const SignalOrder& order) override { tell("signal", order.attempt); }
  void forget(const ForgetOrder& order) override { tell("forget", order.attempt); }
  void reset(const ResetOrder& order) override { told_.push_back("reset " + order.node_name); }
  void adopt(const std::vector<KnownAttempt>& known) override {
    told_.emplace_back("adopt");
    for (const KnownAttempt& attempt : known) tell("known", attempt.order.attempt);
  }
  void adopt_conditions(const std::vector<EvidenceObserved>& lasting) override {
    for (const EvidenceObserved& each : lasting) told_.push_back("lasts on " + each.node_name);
  }

  Told take() { return std::exchange(told_, {}); }

 private:
  void tell(const std::string& what, model::AttemptId attempt) {
    told_.push_back(what + " " + std::to_string(attempt.job.value));
  }

  Told told_;
};

model::AttemptId attempt(std::uint64_t job) {
  return {model::JobId(job), 1};
}

StartOrder order(std::uint64_t job, EngineKind kind) {
  StartOrder order;
  order.attempt = attempt(job);
  order.nodes.emplace_back();
  order.nodes.back().engine = kind;
  return order;
}

class EngineRouterTest : public ::testing::Test {
 protected:
  FakeEngine processes_;
  FakeEngine kubernetes_;
  EngineRouter router_{
      {{EngineKind::kProcess, &processes_}, {EngineKind::kKubernetes, &kubernetes_}}};
};

TEST_F(EngineRouterTest, EveryOrderGoesToTheEngineThatStartedTheAttempt) {
  router_.start(order(1, EngineKind::kProcess));
  router_.start(order(2, EngineKind::kKubernetes));
  EXPECT_EQ(processes_.take(), Told{"start 1"});
  EXPECT_EQ(kubernetes_.take(), Told{"start 2"});
  router_.stop({.attempt = attempt(2)});
  router_.set_limit({attempt(2), base::minutes(1)});
  router_.signal({attempt(2), 10});
  router_.forget({attempt(2)});
  EXPECT_EQ(processes_.take(), Told{});
  EXPECT_EQ(kubernetes_.take(), (Told{"stop 2", "limit 2", "signal 2", "forget 2"}));
}

TEST_F(EngineRouterTest, EachEngineAdoptsItsOwnAttemptsAndHasThemFromThenOn) {
  router_.adopt({{order(1, EngineKind::kKubernetes)}, {order(2, EngineKind::kProcess)}});
  EXPECT_EQ(processes_.take(), (Told{"adopt", "known 2"}));
  EXPECT_EQ(kubernetes_.take(), (Told{"adopt", "known 1"}));
  router_.stop({.attempt = attempt(1)});
  EXPECT_EQ(processes_.take(), Told{});
  EXPECT_EQ(kubernetes_.take(), Told{"stop 1"});
}

TEST_F(EngineRouterTest, AResetGoesToTheEngineOfTheNode) {
  router_.reset({model::NodeId(1), "gpu-1", {"GPU-1"}, EngineKind::kProcess});
  router_.reset({model::NodeId(2), "pod-1", {"GPU-2"}, EngineKind::kKubernetes});
  EXPECT_EQ(processes_.take(), Told{"reset gpu-1"});
  EXPECT_EQ(kubernetes_.take(), Told{"reset pod-1"});
}

TEST_F(EngineRouterTest, AllEnginesAreToldWhichConditionsLast) {
  router_.adopt_conditions({{"pod-1", "", {}}});
  EXPECT_EQ(processes_.take(), Told{"lasts on pod-1"});
  EXPECT_EQ(kubernetes_.take(), Told{"lasts on pod-1"});
}

TEST_F(EngineRouterTest, AnEngineWithoutAttemptsIsAskedToo) {
  router_.adopt({});
  EXPECT_EQ(processes_.take(), Told{"adopt"});
  EXPECT_EQ(kubernetes_.take(), Told{"adopt"});
}

TEST_F(EngineRouterTest, AnAttemptThatIsForgottenOrNotKnownGoesToAllEngines) {
  router_.start(order(1, EngineKind::kProcess));
  router_.forget({attempt(1)});
  processes_.take();
  for (const std::uint64_t job : {1U, 7U}) {
    router_.forget({attempt(job)});
    EXPECT_EQ(processes_.take(), Told{"forget " + std::to_string(job)});
    EXPECT_EQ(kubernetes_.take(), Told{"forget " + std::to_string(job)});
  }
}

TEST_F(EngineRouterTest, AttemptsOfAnEngineThatIsNotThereAreNamedToNoEngine) {
  EngineRouter alone({{EngineKind::kProcess, &processes_}});
  alone.adopt({{order(1, EngineKind::kKubernetes)}});
  alone.stop({.attempt = attempt(1)});
  EXPECT_EQ(processes_.take(), Told{"adopt"});
}

}  // namespace
}  // namespace gpu_platform::execution
