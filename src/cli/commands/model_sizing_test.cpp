#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kComputed =
    R"({"gpus":4,"gpu_memory_bytes":46666666667,"rule":"computed","tensor_parallel":4,"pipeline_parallel":1,"data_parallel":1,"context_parallel":1,"decode_context_parallel":1,"parameters":70000000000,"weights_bytes":35000000000,"cache_bytes":null,"overhead_bytes":7000000000,"notes":["the cache is not counted"],"unused":["--port"],"model":"","active_parameters":null,"weight_bits":16.0,"context_tokens":null,"sequences":null,"nodes":1,"ask_gpu_memory_bytes":47244640256,"holdings":[]})";
constexpr std::string_view kOnTwoNodes =
    R"({"gpus":16,"gpu_memory_bytes":20000000000,"rule":"by_name","tensor_parallel":8,"pipeline_parallel":2,"data_parallel":1,"context_parallel":1,"decode_context_parallel":1,"parameters":46702792704,"active_parameters":12900000000,"weight_bits":4.16,"model":"mixtral-8x7b","context_tokens":32768,"sequences":64,"nodes":2,"ask_gpu_memory_bytes":21474836480,"weights_bytes":1073741824,"cache_bytes":1073741824,"overhead_bytes":214748364,"holdings":[{"gpu_type":"T4-16GB","gpu_memory_bytes":17179869184,"gpus_per_node":4,"nodes":4,"fits":false,"tokens":null,"contexts":null},{"gpu_type":"H100-80GB","gpu_memory_bytes":85899345920,"gpus_per_node":8,"nodes":2,"fits":true,"tokens":1000000,"contexts":30},{"gpu_type":"H200-141GB","gpu_memory_bytes":151397597184,"gpus_per_node":16,"nodes":1,"fits":true,"tokens":2100000,"contexts":64}],"notes":[],"unused":[]})";

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

TEST_F(ModelSizing, TakesOptionsOfServersBesideSettings) {
  const Json body =
      asked({"estimate", "llama-3-70b", "--tensor-parallel-size", "4", "--max-model-len=8192",
             "--gpu-memory-utilization", "0.9", "--max-num-seqs", "64", "--dtype", "auto",
             "--quantization", "awq", "--kv-cache-dtype", "fp8", "pp=2"});
  EXPECT_EQ(body["model"], "llama-3-70b");
  std::map<std::string, Json> settings;
  for (const Json& each : body["settings"]) settings[each["name"]] = each["values"];
  EXPECT_EQ(settings,
            (std::map<std::string, Json>{{"--tensor-parallel-size", Json::array({"4"})},
                                         {"--max-model-len", Json::array({"8192"})},
                                         {"--gpu-memory-utilization", Json::array({"0.9"})},
                                         {"--max-num-seqs", Json::array({"64"})},
                                         {"--dtype", Json::array({"auto"})},
                                         {"--quantization", Json::array({"awq"})},
                                         {"--kv-cache-dtype", Json::array({"fp8"})},
                                         {"pp", Json::array({"2"})}}));
  EXPECT_EQ(asked({"estimate", "m", "--tp", "1,2"})["settings"],
            Json({{{"name", "--tensor-parallel-size"}, {"values", {"1", "2"}}}}));
}

TEST_F(ModelSizing, NamesTheOptionThatIsWrong) {
  EXPECT_EQ(call({"estimate", "m", "--tensor-paralel-size", "4"}), 2);
  EXPECT_TRUE(has(err(), "--tensor-parallel-size")) << err();
  EXPECT_EQ(call({"estimate", "m", "--dtype", ""}), 2);
  EXPECT_TRUE(has(err(), "--dtype: the value is empty")) << err();
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
  EXPECT_EQ(call(server, {"estimate", "foo-70b", "tp=4", "dtype=bf16"}), 0);
  EXPECT_EQ(out(),
            "4 GPUs, 44 GiB of memory each\n\n"
            "Model         70.0 billion parameters, 16 bits each\n"
            "Parts         tensor 4 × pipeline 1 × largest of data 1, decode context 1, context 1\n"
            "Memory        weights 32.6 GiB, key-value cache not known, overhead 6.5 GiB\n"
            "Ask for it    --gpus 4 --gpu-memory 44G\n"
            "note: the cache is not counted\n"
            "note: these settings have no effect on the need: --port\n");
}

TEST_F(ModelSizing, ShowsWhatTheRestHoldsAndAsksForNodes) {
  FakeServer server([](const Request&) { return json_answer(std::string(kOnTwoNodes)); });
  EXPECT_EQ(call(server, {"estimate", "mixtral-8x7b", "tp=8", "pp=2"}), 0);
  EXPECT_EQ(
      out(),
      "16 GPUs, 20 GiB of memory each\n\n"
      "Model         mixtral-8x7b: 46.7 billion parameters, 12.9 billion for each token, 4.16 bits "
      "each\n"
      "Parts         tensor 8 × pipeline 2 × largest of data 1, decode context 1, context 1\n"
      "Memory        by name: 18.6 GiB, the usual figure\n"
      "              computed: weights 1 GiB, key-value cache 1 GiB for one context of 32768 "
      "tokens, overhead 205 MiB\n"
      "Ask for it    --gpus 16 --nodes 2 --gpu-memory 20G\n\n"
      "Beside the weights there is room for this:\n"
      "  T4-16GB       too small, has 16 GiB\n"
      "  H100-80GB     on 2 nodes, 1000000 tokens: 30 sequences of full length; 64 sequences have "
      "15625 tokens each\n"
      "  H200-141GB    2100000 tokens: 64 sequences of full length; 64 sequences fit at full "
      "length\n");
}

TEST_F(ModelSizing, SaysThatTheMemoryIsNotKnown) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"gpus":4,"gpu_memory_bytes":null,"rule":"unknown","tensor_parallel":4,"pipeline_parallel":1,"data_parallel":1,"context_parallel":1,"decode_context_parallel":1,"parameters":null,"notes":["the size of 'mine' is not known: give parameters=70B"],"unused":[],"nodes":1,"ask_gpu_memory_bytes":null,"holdings":[]})");
  });
  EXPECT_EQ(call(server, {"estimate", "mine", "tp=4"}), 0);
  EXPECT_EQ(out(),
            "4 GPUs, the memory is not known\n\n"
            "Parts         tensor 4 × pipeline 1 × largest of data 1, decode context 1, context 1\n"
            "Memory        not known, because the model's size is not\n"
            "Ask for it    --gpus 4\n"
            "note: the size of 'mine' is not known: give parameters=70B\n");
}

// Answers by itself, with the known types of GPU, and says so.
TEST_F(ModelSizing, NeedsNoDaemon) {
  around_.environment.push_back("GPU_PLATFORM_SERVER=unix:/does/not/exist");
  EXPECT_EQ(call({"estimate", "moonshotai/Kimi-K2-Instruct"}), 0) << err();
  EXPECT_TRUE(begins(out(), "8 GPUs, ")) << out();
  EXPECT_TRUE(has(out(), "H100-80GB     16 GPUs (tensor 8 × pipeline 2), on 2 nodes, ")) << out();
  EXPECT_TRUE(has(out(), "note: no daemon answers: these are known types of GPU")) << out();
}

TEST_F(ModelSizing, RefusesWithoutADaemonWhatADaemonRefuses) {
  around_.environment.push_back("GPU_PLATFORM_SERVER=unix:/does/not/exist");
  EXPECT_EQ(call({"estimate", "mine"}), 2);
  EXPECT_TRUE(has(err(), "the size of 'mine' is not known: give parameters=70B")) << err();
  EXPECT_EQ(call({"estimate", "mine", "tp=0", "--json"}), 2);
  EXPECT_TRUE(has(err(), R"("field":"tp")")) << err();
  EXPECT_EQ(call({"--server", "unix:/does/not/exist", "estimate", "llama-3-8b"}), 5)
      << "the server that is named has the last word";
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
