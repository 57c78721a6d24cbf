#include "execution/kubernetes/exporter/exporter_pods.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

Json exporter_pod(const std::string& name, const std::string& node, bool is_ready = true) {
  Json object;
  object["metadata"] = {{"name", name}, {"labels", {{"app", "nvidia-dcgm-exporter"}}}};
  object["spec"] = {{"nodeName", node}};
  object["status"] = {
      {"phase", "Running"},
      {"conditions", {{{"type", "Ready"}, {"status", is_ready ? "True" : "False"}}}}};
  return object;
}

std::string name_on(const ExporterPods& pods, std::string_view node) {
  const ExporterPods::Pod* const found = pods.pod_on(node);
  return found == nullptr ? std::string() : found->name;
}

TEST(ExporterPods, PrefersTheReadyOneOfANode) {
  ExporterPods pods(false);
  pods.put(exporter_pod("old", "n1", false));
  EXPECT_EQ(name_on(pods, "n1"), "old");
  EXPECT_FALSE(pods.pod_on("n1")->is_ready);
  pods.put(exporter_pod("z", "n1"));
  pods.put(exporter_pod("y", "n1"));
  EXPECT_EQ(name_on(pods, "n1"), "y");
  Json ending = exporter_pod("y", "n1");
  ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  pods.put(ending);
  EXPECT_EQ(name_on(pods, "n1"), "z");
  pods.remove(exporter_pod("z", "n1"));
  pods.remove(exporter_pod("y", "n1"));
  EXPECT_EQ(name_on(pods, "n1"), "old");
}

TEST(ExporterPods, HasThoseOfTheSelectorOrOfNvidia) {
  Json other = exporter_pod("other", "n1");
  other["metadata"]["labels"] = {{"app", "other"}};
  ExporterPods pods(false);
  pods.put(other);
  EXPECT_EQ(name_on(pods, "n1"), "");
  ExporterPods selected(true);
  selected.put(other);
  EXPECT_EQ(name_on(selected, "n1"), "other");
}

TEST(ExporterPods, LacksWhatHasEndedOrHasNoNode) {
  ExporterPods pods(false);
  Json failed = exporter_pod("a", "n1");
  failed["status"]["phase"] = "Failed";
  pods.put(failed);
  pods.put(exporter_pod("b", ""));
  for (const char* const text : {"null", "[]", "7", "{}", R"({"metadata":{"name":7}})"}) {
    pods.put(Json::parse(text));
    pods.remove(Json::parse(text));
  }
  EXPECT_EQ(name_on(pods, "n1"), "");
  EXPECT_EQ(name_on(pods, ""), "");
  EXPECT_EQ(pods.take_changed(), Names());
}

TEST(ExporterPods, ForgetsWhatANewListDoesNotHave) {
  ExporterPods pods(false);
  pods.begin_list();
  pods.put(exporter_pod("a", "n1"));
  pods.put(exporter_pod("b", "n2"));
  pods.end_list();
  EXPECT_EQ(pods.take_changed(), (Names{"n1", "n2"}));
  pods.begin_list();
  pods.put(exporter_pod("b", "n2"));
  EXPECT_EQ(name_on(pods, "n1"), "a") << "the list may break off";
  pods.end_list();
  EXPECT_EQ(name_on(pods, "n1"), "");
  EXPECT_EQ(name_on(pods, "n2"), "b");
  EXPECT_EQ(pods.take_changed(), (Names{"n1", "n2"}));
  EXPECT_EQ(pods.take_changed(), Names());
}

}  // namespace
}  // namespace gpu_platform::execution
