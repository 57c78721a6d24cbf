#include <gtest/gtest.h>

#include "api/rest/server_fixture_test.h"

// Questions about what would be, over the wire.

namespace gpu_platform::api {
namespace {

using PlanningTest = ServerTest;

TEST_F(PlanningTest, NeedsOfAServerFollowItsSettings) {
  start();
  const auto needs = parsed(ask("POST", "/v1/estimate",
                                R"({"model":"llama-3-70b","settings":[
                                    {"name":"tp-size","values":["1","2","4"]},
                                    {"name":"seed","values":["1"]}]})"));
  EXPECT_EQ(needs["gpus"], 4);
  EXPECT_EQ(needs["gpu_memory_bytes"], 20'000'000'000);
  EXPECT_EQ(needs["rule"], "by_name");
  EXPECT_EQ(needs["parameters"], 70'000'000'000);
  EXPECT_TRUE(needs["weights_bytes"].is_null());
  EXPECT_EQ(needs["unused"][0], "seed");
}

TEST_F(PlanningTest, NeedsOfAServerAreReadFromItsCommand) {
  start();
  const auto needs = parsed(ask(
      "POST", "/v1/estimate",
      R"({"command":["vllm","serve","llama-3-70b","--tensor-parallel-size","4","--dtype","bf16"]})"));
  EXPECT_EQ(needs["rule"], "computed");
  EXPECT_EQ(needs["weights_bytes"], 35'000'000'000);
  EXPECT_TRUE(needs["cache_bytes"].is_null());
}

TEST_F(PlanningTest, NeedsOfNothingAreRefused) {
  start();
  EXPECT_EQ(parsed(ask("POST", "/v1/estimate", "{}"))["field"], "settings");
  EXPECT_EQ(parsed(ask("POST", "/v1/estimate", R"({"model":"m","command":["x"]})"))["field"],
            "command");
  const RawResponse bad =
      ask("POST", "/v1/estimate", R"({"settings":[{"name":"tp_size","values":["0"]}]})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(parsed(bad)["field"], "tp_size");
}

}  // namespace
}  // namespace gpu_platform::api
