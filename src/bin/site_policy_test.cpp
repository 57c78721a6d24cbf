#include "bin/site_policy.h"

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

using config::Configuration;
using model::EngineKind;

TEST(SitePolicy, HasTheEnginesThatTheConfigurationNames) {
  Configuration site;
  model::Policy policy = policy_of(site, 990);
  EXPECT_TRUE(policy.has_engine(EngineKind::kProcess));
  EXPECT_FALSE(policy.has_engine(EngineKind::kKubernetes));
  EXPECT_EQ(policy.own_uid, 990U);
  site.local_engine = false;
  site.kubernetes_kubeconfig.path = "/etc/gpu-platform/kubeconfig";
  policy = policy_of(site, 0);
  EXPECT_FALSE(policy.has_engine(EngineKind::kProcess));
  EXPECT_TRUE(policy.has_engine(EngineKind::kKubernetes));
}

TEST(SitePolicy, AClusterIsNamedByAFileOrByBeingInIt) {
  Configuration site;
  EXPECT_FALSE(has_kubernetes(site));
  site.kubernetes_in_cluster = true;
  EXPECT_TRUE(has_kubernetes(site));
}

TEST(SitePolicy, HasTheFactsThatFollowFromOtherKeys) {
  Configuration site;
  site.policy.max_queue_size = 7;
  site.root_jobs = config::RootJobs::kRefuse;
  model::Policy policy = policy_of(site, 0);
  EXPECT_EQ(policy.max_queue_size, 7U);
  EXPECT_FALSE(policy.allow_root_jobs || policy.can_notify || policy.has_containers);
  EXPECT_TRUE(policy.pod_annotations.empty()) << "a site that names none passes none";
  site.root_jobs = config::RootJobs::kAllow;
  site.notify_command = "/usr/local/bin/tell";
  site.containers.path = "/etc/gpu-platform/containers.yaml";
  site.kubernetes_annotations.words = {"gpu-fraction", "nvidia.com/container.main.gpu-memory.*"};
  policy = policy_of(site, 0);
  EXPECT_TRUE(policy.allow_root_jobs && policy.can_notify && policy.has_containers);
  EXPECT_EQ(policy.pod_annotations, site.kubernetes_annotations.words);
}

TEST(SitePolicy, RulesOfHealthThatThereAreNotAreAProblemAtTheirEntry) {
  Configuration site;
  EXPECT_FALSE(problem_in_rules(site));
  site.policy.health_rules = {{"xid-31", "", "DEGRADE", ""}, {"xid-1000", "", "DRAIN", ""}};
  site.places = {{"health.rules", "", 2, 3, ""}, {"health.rules[1]", "gpus.yaml", 4, 7, ""}};
  const auto problem = problem_in_rules(site);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->key, "health.rules[1].rule");
  EXPECT_EQ(config::describe(*problem, "site.yaml")
                .find("gpus.yaml:4:7: health.rules[1].rule: \"xid-1000\" is no rule; "),
            0U)
      << problem->message;
}

TEST(SitePolicy, SignersCountWhereTheirKeysAreNamed) {
  Configuration site;
  site.openid_issuer.text = "https://login.example.org";
  EXPECT_EQ(signers_of(site).issuer, "") << "no keys, so no token is proven";
  EXPECT_FALSE(signers_of(site).has_authorities);
  site.openid_keys.path = "/etc/keys.json";
  site.tls_client_ca.path = "/etc/ca.pem";
  EXPECT_EQ(signers_of(site).issuer, "https://login.example.org");
  EXPECT_TRUE(signers_of(site).has_authorities);
}

TEST(SitePolicy, BudgetsAreThoseOfTheConfiguration) {
  Configuration site;
  site.api_connections = 11;
  site.api_streams_per_user = 13;
  const api::BudgetLimits budgets = budgets_of(site);
  EXPECT_EQ(budgets.connections, 11U);
  EXPECT_EQ(budgets.streams_per_user, 13U);
  EXPECT_EQ(budgets.percent_for_root, site.api_percent_for_root);
}

}  // namespace
}  // namespace gpu_platform::bin
