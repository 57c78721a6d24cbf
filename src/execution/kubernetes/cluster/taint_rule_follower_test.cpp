#include "execution/kubernetes/cluster/taint_rule_follower.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/cluster/cluster_fixture.h"
#include "kubernetes/kubeconfig.h"
#include "kubernetes/testing/fake_api_server.h"

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;
using kubernetes::Misbehaviour;
using ::testing::ElementsAre;

constexpr const char* kRulesOfV1 = "/apis/resource.k8s.io/v1/devicetaintrules";

// The clock is the test's: it goes on by a tenth of a second with each turn.
class TaintRuleFollowerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto access = kubernetes::parse_kubeconfig(server_.kubeconfig(), "kubeconfig", "/tmp", "");
    ASSERT_TRUE(access.has_value());
    client_ = *kubernetes::Client::make(*access);
    kubernetes::FollowHandlers handlers;
    handlers.on_list_begin = [this] { rules_.clear(); };
    handlers.on_object = [this](const Json& rule) {
      rules_.insert(line_at(rule, {"metadata", "name"}));
    };
    handlers.on_deleted = [this](const Json& rule) {
      rules_.erase(line_at(rule, {"metadata", "name"}));
    };
    follower_ = std::make_unique<TaintRuleFollower>(
        *client_, handlers, [this](const std::string& line) { warnings_.push_back(line); });
  }

  void put_rule(const std::string& name) {
    server_.call("POST", kRulesOfV1, taint_rule_object(name, Json::object()));
  }
  template <class Condition>
  bool until(Condition&& condition) {
    for (int turn = 0; turn < 500 && !condition(); ++turn) {
      now_ns_ += base::milliseconds(100).value();
      follower_->advance(now_ns_);
      client_->poll(base::milliseconds(20));
    }
    return condition();
  }
  bool is_listed_in_time() {
    return until([&] { return follower_->is_listed(); });
  }
  void let_pass(base::Duration time) {
    follower_->advance(now_ns_);  // pauses begin here
    now_ns_ += time.value();
  }

  kubernetes::FakeApiServer server_;
  std::unique_ptr<kubernetes::Client> client_;
  std::unique_ptr<TaintRuleFollower> follower_;
  std::set<std::string> rules_;
  std::vector<std::string> warnings_;
  std::int64_t now_ns_ = 1;
};

TEST_F(TaintRuleFollowerTest, AnUpgradeOfTheClusterNeedsNoRestart) {
  ASSERT_TRUE(is_listed_in_time());
  server_.set_taint_rules("v1");
  put_rule("a");
  let_pass(base::minutes(10));
  EXPECT_TRUE(until([&] { return rules_.contains("a"); }));
  server_.set_taint_rules("");
  let_pass(base::minutes(10));
  EXPECT_TRUE(until([&] { return rules_.empty(); }));
  EXPECT_TRUE(follower_->is_listed());
}

TEST_F(TaintRuleFollowerTest, AServerThatDoesNotAnswerLeavesOpenWhetherThereAreRules) {
  server_.set_taint_rules("v1");
  put_rule("a");
  server_.misbehave({.what = Misbehaviour::What::kAnswerError,
                     .method = "GET",
                     .path = "/apis/*",
                     .times = 0,
                     .error = {.code = 500}});
  EXPECT_TRUE(until([&] { return server_.count("GET", "/apis/*") >= 3; }));
  EXPECT_FALSE(follower_->is_listed());
  server_.heal();
  ASSERT_TRUE(is_listed_in_time());
  EXPECT_THAT(rules_, ElementsAre("a"));
}

TEST_F(TaintRuleFollowerTest, ARightThatComesLaterIsFoundAndOneThatGoesIsNoEndOfTheRules) {
  server_.set_taint_rules("v1");
  put_rule("a");
  server_.forbid("GET", kRulesOfV1);
  ASSERT_TRUE(is_listed_in_time());
  EXPECT_TRUE(rules_.empty());
  let_pass(base::minutes(10));
  EXPECT_TRUE(until([&] { return server_.count("GET", kRulesOfV1) == 2; }));
  EXPECT_EQ(warnings_.size(), 1U);
  server_.heal();
  let_pass(base::minutes(10));
  ASSERT_TRUE(until([&] { return rules_.contains("a"); }));
  server_.forbid("GET", kRulesOfV1);
  server_.forget_requests();
  let_pass(base::minutes(10));
  EXPECT_TRUE(until([&] { return server_.count("GET", kRulesOfV1) > 0; }));
  EXPECT_THAT(rules_, ElementsAre("a"));
}

}  // namespace
}  // namespace gpu_platform::execution
