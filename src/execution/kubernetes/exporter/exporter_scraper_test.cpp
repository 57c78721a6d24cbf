#include "execution/kubernetes/exporter/exporter_scraper.h"

#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/testing/scripted_server.h"
#include "os/clock.h"

namespace gpu_platform::execution {
namespace {

using http::ScriptedServer;
using http::SeenRequest;
using http::Wire;
using ::testing::HasSubstr;

// libcurl writes to connections that the server has closed.
[[maybe_unused]] const auto kFormerPipeHandler = ::signal(SIGPIPE, SIG_IGN);

constexpr std::size_t kMaxBody = 1 << 20;

struct PodOf {
  std::string name;
  std::string node;
  std::string label = R"("app":"nvidia-dcgm-exporter")";
  bool is_ready = true;
};

std::string pod_text(const PodOf& pod) {
  return fmt::format(
      R"({{"kind":"Pod","metadata":{{"name":"{}","namespace":"gpu-operator","resourceVersion":"2","labels":{{{}}}}},)"
      R"("spec":{{"nodeName":"{}"}},"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"{}"}}]}}}})",
      pod.name, pod.label, pod.node, pod.is_ready ? "True" : "False");
}

std::string page_of(std::string_view uuid, int utilization) {
  return fmt::format("DCGM_FI_DEV_GPU_UTIL{{gpu=\"0\",UUID=\"{}\"}} {}\n", uuid, utilization);
}

// A cluster with pods that come and go, and a script for the page of each.
class ExporterScraperTest : public ::testing::Test {
 protected:
  ~ExporterScraperTest() override {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }

  void change(std::string_view type, const PodOf& pod) {
    const std::lock_guard lock(mutex_);
    events_.push_back(fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, pod_text(pod)));
    changed_.notify_all();
  }
  void answer_with(const std::string& pod, std::function<void(Wire&)> page) {
    const std::lock_guard lock(mutex_);
    pages_[pod] = std::move(page);
  }

  void refuse_lists(std::string status) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(status);
  }

  void start(ExporterSettings settings = {}) {
    settings.interval = base::milliseconds(5);
    kubernetes::ClusterAccess access;
    access.server = server_.address();
    access.origin = "test";
    auto client = kubernetes::Client::make(access, {.max_body = kMaxBody});
    ASSERT_TRUE(client.has_value()) << client.error().message;
    client_ = *std::move(client);
    scraper_ = std::make_unique<ExporterScraper>(
        *client_, settings,
        [this](const std::string& node, std::map<std::string, model::GpuMetrics> gpus) {
          std::erase_if(gpus, [this](const auto& gpu) { return gpu.first == foreign_; });
          for (const auto& [uuid, metrics] : gpus) {
            taken_[node + " " + uuid].push_back(metrics.utilization_percent.value_or(0));
          }
          return gpus.size();
        },
        [this](const std::string& line) { warnings_.push_back(line); });
  }

  bool until(const std::function<bool()>& condition) {
    const std::int64_t end = os::monotonic_ns() + base::minutes(1).value();
    while (!condition()) {
      if (os::monotonic_ns() > end) return false;
      scraper_->advance(os::monotonic_ns());
      client_->poll(base::milliseconds(5));
    }
    return true;
  }
  bool until_why(const std::string& node, const std::string& part) {
    const bool is_so =
        until([&] { return scraper_->why_none(node).find(part) != std::string::npos; });
    if (!is_so) ADD_FAILURE() << "it says: " << scraper_->why_none(node);
    return is_so;
  }

  // The requests for pages of the pod.
  std::vector<std::string> asked_of(const std::string& pod) const {
    std::vector<std::string> targets;
    for (const SeenRequest& request : server_.requests()) {
      if (request.has("/pods/" + pod + ":")) targets.push_back(request.target);
    }
    return targets;
  }

  const std::string foreign_ = "GPU-of-others";
  std::map<std::string, std::vector<std::uint32_t>> taken_;  // by node and UUID
  std::vector<std::string> warnings_;

 private:
  void serve(const SeenRequest& request, Wire& wire) {
    if (request.has("/proxy/")) return serve_page(request, wire);
    if (request.has("watch=true")) return serve_watch(wire);
    const std::lock_guard lock(mutex_);
    if (!refusal_.empty()) return wire.answer(403, refusal_);
    wire.answer(200, R"({"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]})");
  }

  void serve_page(const SeenRequest& request, Wire& wire) {
    std::function<void(Wire&)> page;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [pod, each] : pages_) {
        if (request.has("/pods/" + pod + ":")) page = each;
      }
    }
    page ? page(wire) : wire.answer(503, "no endpoints");
  }

  void serve_watch(Wire& wire) {
    wire.begin_stream();
    std::size_t sent = 0;
    std::unique_lock lock(mutex_);
    while (!is_over_) {
      for (; sent < events_.size(); ++sent) wire.piece(events_[sent]);
      changed_.wait(lock, [&] { return is_over_ || sent < events_.size(); });
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::string refusal_;  // what is answered to a list, with 403; empty: a list
  std::vector<std::string> events_;
  std::map<std::string, std::function<void(Wire&)>> pages_;
  ScriptedServer server_{[this](const SeenRequest& request, Wire& wire) { serve(request, wire); }};
  std::unique_ptr<kubernetes::Client> client_;

 protected:
  std::unique_ptr<ExporterScraper> scraper_;  // before its client
};

TEST_F(ExporterScraperTest, ReadsThePageOfEachNodesPodAgainAndAgain) {
  answer_with("exporter-a", [](Wire& wire) { wire.answer(200, page_of("GPU-1", 40)); });
  answer_with("exporter-b", [](Wire& wire) { wire.answer(200, page_of("GPU-2", 60)); });
  change("ADDED", {"exporter-a", "n1"});
  change("ADDED", {"exporter-b", "n2", R"("app.kubernetes.io/name":"dcgm-exporter")"});
  start();
  ASSERT_TRUE(
      until([&] { return taken_["n1 GPU-1"].size() > 2 && taken_["n2 GPU-2"].size() > 2; }));
  EXPECT_EQ(taken_["n1 GPU-1"].back(), 40U);
  EXPECT_EQ(scraper_->why_none("n1"), "");
  EXPECT_EQ(scraper_->why_none("n3"), "there is no exporter's pod on n3");
  EXPECT_EQ(asked_of("exporter-a").front(),
            "/api/v1/namespaces/gpu-operator/pods/exporter-a:9400/proxy/metrics");
}

TEST_F(ExporterScraperTest, FollowsPodsThatComeAndGo) {
  for (const char* const pod : {"exporter-a", "exporter-b"}) {
    answer_with(pod, [](Wire& wire) { wire.answer(200, page_of("GPU-1", 40)); });
  }
  start();
  ASSERT_TRUE(until_why("n1", "there is no exporter's pod on n1"));
  change("ADDED", {.name = "exporter-a", .node = "n1", .is_ready = false});
  ASSERT_TRUE(until_why("n1", "the exporter's pod exporter-a is not ready"));
  EXPECT_TRUE(asked_of("exporter-a").empty());
  change("MODIFIED", {"exporter-a", "n1"});
  ASSERT_TRUE(until([&] { return !taken_["n1 GPU-1"].empty(); }));
  change("DELETED", {"exporter-a", "n1"});
  ASSERT_TRUE(until_why("n1", "there is no exporter's pod on n1"));
  change("ADDED", {"exporter-b", "n1"});
  ASSERT_TRUE(until([&] { return scraper_->why_none("n1").empty(); }));
  EXPECT_FALSE(asked_of("exporter-b").empty());
}

TEST_F(ExporterScraperTest, LeavesOtherPodsOfTheNamespaceAlone) {
  answer_with("exporter", [](Wire& wire) { wire.answer(200, page_of("GPU-1", 40)); });
  change("ADDED", {"other", "n1", R"("app":"nvidia-driver-daemonset")"});
  change("ADDED", {"exporter", "n2"});
  start();
  ASSERT_TRUE(until([&] { return !taken_["n2 GPU-1"].empty(); }));
  EXPECT_EQ(scraper_->why_none("n1"), "there is no exporter's pod on n1");
  EXPECT_TRUE(asked_of("other").empty());
}

TEST_F(ExporterScraperTest, TakesThePodsOfASelector) {
  answer_with("own", [](Wire& wire) { wire.answer(200, page_of("GPU-1", 40)); });
  change("ADDED", {"own", "n1", R"("app":"own")"});
  ExporterSettings settings;
  settings.namespace_name = "monitoring";
  settings.selector = "app=own";
  settings.port = 9999;
  settings.path = "/gpu/metrics";
  start(settings);
  ASSERT_TRUE(until([&] { return !taken_["n1 GPU-1"].empty(); }));
  EXPECT_EQ(asked_of("own").front(),
            "/api/v1/namespaces/monitoring/pods/own:9999/proxy/gpu/metrics");
}

TEST_F(ExporterScraperTest, SaysThatTheRightIsMissing) {
  answer_with("exporter", [](Wire& wire) {
    wire.answer(403, R"({"kind":"Status","message":"pods \"exporter:9400\" is forbidden"})");
  });
  change("ADDED", {"exporter", "n1"});
  start();
  ASSERT_TRUE(until_why("n1", "forbidden: "));
  EXPECT_THAT(scraper_->why_none("n1"), HasSubstr("get pods/proxy in namespace gpu-operator"));
  EXPECT_THAT(scraper_->why_none("n1"), HasSubstr("is forbidden"));
}

TEST_F(ExporterScraperTest, SaysThatThePodsCannotBeListed) {
  refuse_lists(R"({"kind":"Status","message":"pods is forbidden"})");
  start();
  ASSERT_TRUE(until_why("n1", "cannot be followed"));
  EXPECT_THAT(scraper_->why_none("n1"), HasSubstr("pods is forbidden"));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("in namespace gpu-operator cannot be followed"));
}

TEST_F(ExporterScraperTest, AHangingPageHoldsUpNoOtherNode) {
  answer_with("hangs", [](Wire& wire) { wire.hold(); });
  answer_with("works", [](Wire& wire) { wire.answer(200, page_of("GPU-2", 60)); });
  change("ADDED", {"hangs", "n1"});
  change("ADDED", {"works", "n2"});
  start();
  ASSERT_TRUE(until([&] { return !asked_of("hangs").empty() && taken_["n2 GPU-2"].size() > 2; }));
  EXPECT_NE(scraper_->why_none("n1"), "");
  change("DELETED", {"hangs", "n1"});
  ASSERT_TRUE(until_why("n1", "there is no exporter's pod on n1"));
}

TEST_F(ExporterScraperTest, GivesUpAPageThatIsTooLarge) {
  answer_with("exporter",
              [](Wire& wire) { wire.answer(200, std::string(std::size_t{10} << 20, '#')); });
  change("ADDED", {"exporter", "n1"});
  start();
  ASSERT_TRUE(until_why("n1", "larger than"));
  // It is asked again, and what it then has is taken.
  answer_with("exporter", [](Wire& wire) { wire.answer(200, page_of("GPU-1", 40)); });
  ASSERT_TRUE(until([&] { return scraper_->why_none("n1").empty(); }));
}

TEST_F(ExporterScraperTest, SaysThatAPageHasNoGpuOfTheNode) {
  answer_with("empty", [](Wire& wire) { wire.answer(200, "up 1\n"); });
  answer_with("foreign", [this](Wire& wire) { wire.answer(200, page_of(foreign_, 1)); });
  answer_with("broken", [](Wire& wire) { wire.answer(500, "it is broken"); });
  change("ADDED", {"empty", "n1"});
  change("ADDED", {"foreign", "n2"});
  change("ADDED", {"broken", "n3"});
  start();
  EXPECT_TRUE(until_why("n1", "the page of the exporter's pod empty has no GPU"));
  EXPECT_TRUE(until_why("n2", "has no GPU that the platform knows on n2"));
  EXPECT_TRUE(until_why("n3", "the exporter's pod broken does not answer: HTTP 500: it is broken"));
  EXPECT_TRUE(taken_.empty());
}

}  // namespace
}  // namespace gpu_platform::execution
