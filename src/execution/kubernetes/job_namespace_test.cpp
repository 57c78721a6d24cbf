#include "execution/kubernetes/job_namespace.h"
#include "model/job_spec.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;

KubernetesSettings of_namespace(const std::string& name) {
  KubernetesSettings settings;
  settings.cluster = "lab";
  settings.namespace_name = name;
  return settings;
}

TEST(JobNamespaces, ATeamsNameBecomesADnsLabel) {
  model::JobSpec spec;
  spec.team = "vision";
  EXPECT_EQ(namespace_of(spec, of_namespace("jobs")), "jobs");
  EXPECT_EQ(namespace_of(spec, of_namespace("gp-{team}")), "gp-vision");
  spec.team = "ML.Research_";
  EXPECT_EQ(namespace_of(spec, of_namespace("gp-{team}")), "gp-ml-research");
  spec.team = std::string(80, 'x');
  EXPECT_EQ(namespace_of(spec, of_namespace("gp-{team}")).size(), 63U);
  spec.team = "__";
  EXPECT_EQ(namespace_of(spec, of_namespace("{team}")), "none");
}

TEST(JobNamespaces, AreThoseThatSomeTeamCouldHave) {
  EXPECT_TRUE(is_namespace_of_jobs("jobs", of_namespace("jobs")));
  EXPECT_FALSE(is_namespace_of_jobs("jobs-of-others", of_namespace("jobs")));
  EXPECT_TRUE(is_namespace_of_jobs("gp-vision", of_namespace("gp-{team}")));
  EXPECT_FALSE(is_namespace_of_jobs("vision", of_namespace("gp-{team}")));
  EXPECT_TRUE(is_namespace_of_jobs("any", of_namespace("{team}"))) << "that of a team of this name";
  EXPECT_TRUE(is_namespace_of_jobs("vision", of_namespace("-{team}")));
}

TEST(JobNamespaces, AnObjectIsThePlatformsByLabelsNameAndNamespaceTogether) {
  const KubernetesSettings settings = of_namespace("jobs");
  const Json ours = Json::parse(R"({"metadata": {"name": "gp-lab-7-2-0", "namespace": "jobs",
    "labels": {"gpu-platform/cluster": "lab", "gpu-platform/job": "7",
               "gpu-platform/attempt": "2", "gpu-platform/rank": "0"}}})");
  EXPECT_TRUE(is_of_platform(ours, settings));
  Json other = ours;
  other["metadata"]["namespace"] = "elsewhere";
  EXPECT_FALSE(is_of_platform(other, settings));
  other = ours;
  other["metadata"]["name"] = "mine";
  EXPECT_FALSE(is_of_platform(other, settings));
  other = ours;
  other["metadata"]["labels"]["gpu-platform/cluster"] = "another";
  EXPECT_FALSE(is_of_platform(other, settings));
  other = ours;
  other["metadata"]["labels"].erase("gpu-platform/rank");
  EXPECT_FALSE(is_of_platform(other, settings));
  for (const Json& odd : {Json(), Json(1), Json::array({ours}), Json{{"metadata", nullptr}}}) {
    EXPECT_FALSE(is_of_platform(odd, settings));
  }
}

TEST(JobNamespaces, AnAdmittedPodIsThePlatformsWhereverItIs) {
  const KubernetesSettings settings = of_namespace("jobs");
  Json pod = Json::parse(R"({"metadata": {"name": "train-x7k2p", "namespace": "ml",
    "labels": {"gpu-platform/cluster": "lab", "gpu-platform/adopted": "lab"}}})");
  EXPECT_TRUE(is_of_platform(pod, settings));
  pod["metadata"]["labels"].erase("gpu-platform/cluster");
  EXPECT_FALSE(is_of_platform(pod, settings)) << "what it uses of its node is not the job's";
}

}  // namespace
}  // namespace gpu_platform::execution
