#include "sizing/llm_server.h"

#include <gtest/gtest.h>

#include "sizing/settings.h"

namespace gpu_platform::sizing {
namespace {

ServerNeeds needs(std::string model, std::vector<Setting> settings) {
  auto result = needs_of({std::move(model), std::move(settings)});
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
  return result.value_or(ServerNeeds());
}

base::Error error_of(std::vector<Setting> settings) {
  const auto result = needs_of({"m", std::move(settings)});
  return result ? base::Error() : result.error();
}

TEST(LlmServer, ListTakesItsLargestValue) {
  const ServerNeeds found =
      needs("llama-3-70b", {{"tp-size", {"1", "2", "4"}}, {"pp-size", {"1"}}, {"dp-size", {"1"}}});
  EXPECT_EQ(found.gpus, 4U);
  EXPECT_EQ(found.memory_per_gpu, base::Bytes(20'000'000'000));
  EXPECT_EQ(found.rule, MemoryRule::kByName);
}

TEST(LlmServer, EverySpellingMeansTheSame) {
  for (const char* name : {"tensor-parallel-size", "tensor_parallel_size", "--tensor-parallel-size",
                           "tp-size", "tp_size", "tp", "-tp", "TP"}) {
    EXPECT_EQ(needs("m", {{name, {"4"}}}).parallelism.tensor, 4U) << name;
  }
  for (const char* name : {"pipeline-parallel-size", "pp-size", "pp_size", "pp"}) {
    EXPECT_EQ(needs("m", {{name, {"3"}}}).parallelism.pipeline, 3U) << name;
  }
  for (const char* name : {"data-parallel-size", "dp-size", "dp_size", "dp"}) {
    EXPECT_EQ(needs("m", {{name, {"3"}}}).parallelism.data, 3U) << name;
  }
  for (const char* name : {"context-parallel-size", "cp-size", "cp_size", "cp"}) {
    EXPECT_EQ(needs("m", {{name, {"3"}}}).parallelism.context, 3U) << name;
  }
  for (const char* name : {"decode-context-parallel-size", "dcp-size", "dcp_size", "dcp"}) {
    EXPECT_EQ(needs("m", {{name, {"3"}}}).parallelism.decode_context, 3U) << name;
  }
}

TEST(LlmServer, WorldSizeTakesTheLargestOfDataAndContext) {
  EXPECT_EQ(world_size({.tensor = 2, .pipeline = 3, .data = 4, .context = 5, .decode_context = 1}),
            30U);
  EXPECT_EQ(world_size({.tensor = 2, .pipeline = 1, .data = 1, .context = 1, .decode_context = 8}),
            16U);
  EXPECT_EQ(world_size({}), 1U);
}

TEST(LlmServer, MemoryByNameFollowsTheSizeOfTheModel) {
  const auto memory = [](std::string model) {
    return needs(std::move(model), {}).memory_per_gpu.value() / 1'000'000;
  };
  EXPECT_EQ(memory("huggyllama/llama-65b"), 20'000);
  EXPECT_EQ(memory("Llama-3-70B-Instruct"), 20'000);
  EXPECT_EQ(memory("mistral-7b"), 12'000);
  EXPECT_EQ(memory("llama-2-13b-chat"), 12'000);
  EXPECT_EQ(memory("qwen2.5-0.5b"), 8'000);
  EXPECT_EQ(memory("my-model"), 8'000);
  EXPECT_EQ(memory(""), 8'000);
}

TEST(LlmServer, MemoryByNameSaysWhatTheWeightsAloneTake) {
  const ServerNeeds found = needs("llama-3-70b", {{"tp", {"4"}}});
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_NE(found.notes[0].find("35.0 GB of each GPU in 16 bits"), std::string::npos)
      << found.notes[0];
}

TEST(LlmServer, MemoryIsComputedWhereParametersAndPrecisionAreKnown) {
  const ServerNeeds found = needs("llama-3-70b", {{"tp", {"4"}}, {"dtype", {"bfloat16"}}});
  EXPECT_EQ(found.rule, MemoryRule::kComputed);
  ASSERT_TRUE(found.parts.has_value());
  EXPECT_EQ(found.parts->weights, base::Bytes(35'000'000'000));
  EXPECT_EQ(found.parts->overhead, base::Bytes(7'000'000'000));
  EXPECT_FALSE(found.parts->cache.has_value());
  EXPECT_EQ(found.memory_per_gpu, base::Bytes(42'000'000'000));
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_NE(found.notes[0].find("key-value cache is not counted"), std::string::npos);
}

// Llama 3 70B: 80 layers, 8 key-value heads of 128; 2 × 20 × 2 × 128 × 2 bytes × 8192 × 16.
TEST(LlmServer, CacheIsCountedWhereTheModelIsKnown) {
  const ServerNeeds found = needs("llama-3-70b", {{"tp", {"4"}},
                                                  {"pp", {"4"}},
                                                  {"dtype", {"bf16"}},
                                                  {"max-model-len", {"8192"}},
                                                  {"max_num_seqs", {"16"}},
                                                  {"num_hidden_layers", {"80"}},
                                                  {"num_key_value_heads", {"8"}},
                                                  {"head_dim", {"128"}}});
  ASSERT_TRUE(found.parts && found.parts->cache);
  EXPECT_EQ(*found.parts->cache, base::Bytes(std::int64_t{2} * 20 * 2 * 128 * 2 * 8192 * 16));
  EXPECT_EQ(found.memory_per_gpu,
            found.parts->weights + found.parts->overhead + *found.parts->cache);
  EXPECT_TRUE(found.notes.empty());
}

TEST(LlmServer, ContextParallelismDividesTheCacheAndNotTheWeights) {
  const std::vector<Setting> model = {{"dtype", {"fp16"}},
                                      {"max-model-len", {"1024"}},
                                      {"num-layers", {"32"}},
                                      {"num-kv-heads", {"8"}},
                                      {"head-dim", {"128"}}};
  std::vector<Setting> divided = model;
  divided.push_back({"cp", {"4"}});
  const ServerNeeds whole = needs("m-7b", model);
  const ServerNeeds parts = needs("m-7b", divided);
  EXPECT_EQ(parts.parts->weights, whole.parts->weights);
  EXPECT_EQ(parts.parts->cache->value() * 4, whole.parts->cache->value());
}

TEST(LlmServer, QuantizedWeightsCountInsteadOfTheTypeComputedWith) {
  const ServerNeeds found = needs("m-8b", {{"dtype", {"bfloat16"}}, {"quantization", {"awq"}}});
  EXPECT_EQ(found.parts->weights, base::Bytes(4'000'000'000));
}

TEST(LlmServer, PrecisionLeftOpenIsNotKnown) {
  EXPECT_EQ(needs("m-8b", {{"dtype", {"auto"}}}).rule, MemoryRule::kByName);
}

TEST(LlmServer, ParametersCanBeSaid) {
  const ServerNeeds found = needs("my-model", {{"parameters", {"8x7B"}}, {"dtype", {"fp8"}}});
  EXPECT_EQ(found.parameters, 56'000'000'000U);
  EXPECT_EQ(found.parts->weights, base::Bytes(56'000'000'000));
}

TEST(LlmServer, UnusedSettingsAreNamedOnce) {
  const ServerNeeds found =
      needs("m", {{"--port", {"80"}}, {"--enforce-eager", {}}, {"--port", {"81"}}});
  EXPECT_EQ(found.unused, (std::vector<std::string>{"--enforce-eager", "--port"}));
}

TEST(LlmServer, BadValuesAreRefusedByTheNameTheyWereGiven) {
  EXPECT_EQ(error_of({{"tp_size", {"0"}}}).field, "tp_size");
  EXPECT_EQ(error_of({{"tp_size", {"two"}}}).field, "tp_size");
  EXPECT_EQ(error_of({{"--pp", {"-1"}}}).field, "--pp");
  EXPECT_EQ(error_of({{"dp", {}}}).field, "dp");
  EXPECT_EQ(error_of({{"parameters", {"many"}}}).field, "parameters");
  EXPECT_EQ(error_of({{"tp", {"65536"}}, {"pp", {"2"}}}).field, "settings");
  const base::Error two = error_of({{"tp", {"2"}}, {"tensor-parallel-size", {"4"}}});
  EXPECT_EQ(two.message, "tp says 2 and tensor-parallel-size says 4: give one of them");
}

TEST(LlmServer, SettingsThatAreTooLargeOverflowNothing) {
  const ServerNeeds found = needs("m", {{"parameters", {"1000t"}},
                                        {"dtype", {"fp32"}},
                                        {"max-model-len", {"1000000000"}},
                                        {"max-num-seqs", {"1000000000"}},
                                        {"num-layers", {"1000000"}},
                                        {"num-kv-heads", {"1000000"}},
                                        {"head-dim", {"1000000"}}});
  EXPECT_GT(found.memory_per_gpu, found.parts->weights);
}

TEST(LlmServer, CommandLinesOfServersAreRead) {
  const std::string vllm[] = {"vllm",
                              "serve",
                              "meta/llama-3-70b",
                              "--tensor-parallel-size",
                              "4",
                              "--dtype=bfloat16",
                              "--enforce-eager"};
  const ServerDescription first = description_of(vllm);
  EXPECT_EQ(first.model, "meta/llama-3-70b");
  EXPECT_EQ(needs_of(first)->gpus, 4U);
  EXPECT_EQ(needs_of(first)->rule, MemoryRule::kComputed);
  const std::string sglang[] = {"python", "-m", "sglang.launch_server", "--model-path", "m-7b",
                                "--tp",   "2"};
  const ServerDescription second = description_of(sglang);
  EXPECT_EQ(second.model, "m-7b");
  EXPECT_EQ(needs_of(second)->gpus, 2U);
}

TEST(ParameterCount, NamesOfModelsTellIt) {
  EXPECT_EQ(parameter_count_in("Qwen3-30B-A3B"), 30'000'000'000U);
  EXPECT_EQ(parameter_count_in("mixtral-8x7b-v0.1"), 56'000'000'000U);
  EXPECT_EQ(parameter_count_in("qwen2.5-1.5b"), 1'500'000'000U);
  EXPECT_EQ(parameter_count_in("opt-350m"), 350'000'000U);
  EXPECT_EQ(parameter_count_in("llama-3"), std::nullopt);
  EXPECT_EQ(parameter_count_in("bert"), std::nullopt);
  EXPECT_EQ(parameter_count_in(""), std::nullopt);
}

TEST(ParameterCount, IsNoOtherText) {
  EXPECT_EQ(parameter_count("70B"), 70'000'000'000U);
  EXPECT_EQ(parameter_count("7000000000"), 7'000'000'000U);
  for (const char* bad :
       {"", "b", "x7b", "7x", "0b", "-1b", "7q", "1.5x7b", "99999999999999999999b"}) {
    EXPECT_EQ(parameter_count(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace gpu_platform::sizing
