#include <fstream>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/json_view.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kComputed =
    R"({"gpus":4,"gpu_memory_bytes":42000000000,"rule":"computed","tensor_parallel":4,"pipeline_parallel":1,"data_parallel":1,"context_parallel":1,"decode_context_parallel":1,"parameters":70000000000,"weights_bytes":35000000000,"cache_bytes":null,"overhead_bytes":7000000000,"notes":["the cache is not counted"],"unused":["--port"]})";

class ModelSizing : public Cli {
 protected:
  // What the command asks of the daemon.
  Json asked(const std::vector<std::string>& words) {
    Json body;
    FakeServer server([&](const Request& request) {
      body = Json::parse(request.body);
      return json_answer(std::string(kComputed));
    });
    EXPECT_EQ(call(server, words), 0) << err();
    return body;
  }
};

TEST_F(ModelSizing, SendsSettingsWithAllTheirValues) {
  const Json body = asked({"estimate", "llama-3-70b", "tp-size=1,2,4", "pp=[2]"});
  EXPECT_EQ(body["model"], "llama-3-70b");
  EXPECT_EQ(body["settings"][0]["name"], "tp-size");
  EXPECT_EQ(body["settings"][0]["values"], Json({"1", "2", "4"}));
  EXPECT_EQ(body["settings"][1]["values"], Json::array({"2"}));
}

TEST_F(ModelSizing, SendsTheCommandOfAServerAsItIs) {
  const Json body = asked({"estimate", "--", "vllm", "serve", "m", "--tp", "4"});
  EXPECT_EQ(body["command"], Json({"vllm", "serve", "m", "--tp", "4"}));
  EXPECT_FALSE(body.contains("model"));
}

TEST_F(ModelSizing, ReadsATaskFromAFile) {
  const std::string path = testing::TempDir() + "estimate-task.json";
  std::ofstream(path) << R"({"model":{"id_or_path":"llama-3-70b"},
                             "parameters":{"tp-size":[1,2,4],"dtype":"bfloat16"}})";
  const Json body = asked({"estimate", "--file", path, "pp-size=2"});
  EXPECT_EQ(body["model"], "llama-3-70b");
  EXPECT_EQ(body["settings"][0]["values"], Json({"1", "2", "4"}));
  EXPECT_EQ(body["settings"][1]["values"], Json::array({"bfloat16"}));
  EXPECT_EQ(body["settings"][2]["name"], "pp-size");
}

TEST_F(ModelSizing, ShowsTheNeedAndTheRule) {
  FakeServer server([](const Request&) { return json_answer(std::string(kComputed)); });
  EXPECT_EQ(call(server, {"estimate", "llama-3-70b", "tp=4"}), 0);
  EXPECT_EQ(
      out(),
      "4 GPUs, 39.1 GiB of memory each\n\n"
      "Parts         tensor 4 × pipeline 1 × largest of data 1, decode context 1, context 1\n"
      "Memory        computed: weights 32.6 GiB, key-value cache not known, overhead 6.5 GiB\n"
      "Ask for it    --gpus 4 --gpu-memory 42GB\n"
      "note: the cache is not counted\n"
      "note: these settings say nothing about the need: --port\n");
}

TEST_F(ModelSizing, SaysWhatIsWrongWithWhatItIsGiven) {
  FakeServer server([](const Request&) { return json_answer("{}"); });
  EXPECT_EQ(call(server, {"estimate", "a", "b"}), 2);
  EXPECT_TRUE(has(err(), "settings are written as tp-size=4"));
  EXPECT_EQ(call(server, {"estimate", "--file", "/does/not/exist"}), 2);
  EXPECT_TRUE(has(err(), "--file: /does/not/exist: No such file"));
}

}  // namespace
}  // namespace gpu_platform::cli
