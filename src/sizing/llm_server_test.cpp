#include "sizing/llm_server.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sizing/known_gpus.h"

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
    return needs(std::move(model), {}).memory_per_gpu.value_or(base::Bytes()).value() / 1'000'000;
  };
  EXPECT_EQ(memory("huggyllama/llama-65b"), 20'000);
  EXPECT_EQ(memory("Llama-3-70B-Instruct"), 20'000);
  EXPECT_EQ(memory("mistral-7b"), 12'000);
  EXPECT_EQ(memory("llama-2-13b-chat"), 12'000);
  EXPECT_EQ(memory("qwen2.5-0.5b"), 8'000);
}

// The overhead of vLLM: 1833 MiB and, for 8,192 batched tokens, 1290 MiB.
constexpr std::int64_t kOverhead = std::int64_t{3123} << 20;

base::Bytes whole_gib(double bytes) {
  return base::kGiB * static_cast<std::int64_t>(std::ceil(bytes / 1'073'741'824));
}

// Weights 70,553,706,496 × 2 / 4; with the overhead and the cache of 8192 tokens (20 × 4 = 80
// layers × 2 × 2 heads × 128 × 2 bytes) / 0.9.
TEST(LlmServer, MemoryByNameAsksForNoLessThanItsParts) {
  const ServerNeeds found = needs("llama-3-70b", {{"tp", {"4"}}});
  EXPECT_EQ(found.rule, MemoryRule::kByName);
  EXPECT_EQ(found.memory_per_gpu, base::Bytes(20'000'000'000));
  ASSERT_TRUE(found.parts.has_value());
  EXPECT_EQ(found.parts->weights, base::Bytes(35'276'853'248));
  EXPECT_EQ(found.memory_to_ask_for, whole_gib((35'276'853'248.0 + kOverhead + 671'088'640) / 0.9));
}

TEST(LlmServer, MemoryIsComputedWhereParametersAndPrecisionAreKnown) {
  const ServerNeeds found = needs("foo-70b", {{"tp", {"4"}}, {"dtype", {"bfloat16"}}});
  EXPECT_EQ(found.rule, MemoryRule::kComputed);
  ASSERT_TRUE(found.parts.has_value());
  EXPECT_EQ(found.parts->weights, base::Bytes(35'000'000'000));
  EXPECT_EQ(found.parts->overhead, base::Bytes(kOverhead));
  EXPECT_FALSE(found.parts->cache.has_value());
  EXPECT_EQ(found.memory_to_ask_for, whole_gib((35e9 + kOverhead) / 0.9));
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_NE(found.notes[0].find("key-value cache is not counted"), std::string::npos);
}

// https://openai.com/index/introducing-gpt-oss and the manual of Kimi-K2: the smallest unit for its
// weights of 8 bits and 128k tokens are 16 GPUs. An H100 of 80 GB has 81,559 MiB.
TEST(LlmServer, ModelsFitWhereTheirMakersSaySo) {
  const GpuKind h100[] = {{"H100-80GB", base::Bytes(std::int64_t{81'559} << 20), 8}};
  const auto asked = [&](std::string model, std::vector<Setting> settings) {
    const auto found = needs_of({std::move(model), std::move(settings)}, h100);
    EXPECT_TRUE(found && found->holdings.front().fits && found->nodes <= 2);
    EXPECT_LE(found->memory_to_ask_for, h100[0].memory) << "a submission must find the GPU";
    return found->gpus;
  };
  EXPECT_EQ(asked("openai/gpt-oss-120b", {}), 1U);
  EXPECT_EQ(asked("openai/gpt-oss-120b", {{"dtype", {"auto"}}, {"tp", {"1"}}}), 1U);
  EXPECT_EQ(asked("openai/gpt-oss-120b", {{"engine", {"sglang"}}}), 1U);
  EXPECT_EQ(asked("openai/gpt-oss-120b", {{"engine", {"trtllm"}}}), 1U);
  EXPECT_EQ(asked("moonshotai/Kimi-K2-Instruct", {}), 16U);
  EXPECT_EQ(asked("moonshotai/Kimi-K2-Instruct", {{"dtype", {"auto"}}, {"tp", {"16"}}}), 16U);
  EXPECT_EQ(asked("moonshotai/Kimi-K2-Instruct",
                  {{"tp", {"8"}}, {"pp", {"2"}}, {"kv-cache-dtype", {"fp8"}}}),
            16U);
}

// What vLLM wrote for Llama-3-8B on one H100: 14.96 GiB of weights, 53.29 GiB left for the cache.
TEST(LlmServer, RoomForTheCacheIsWhatAServerMeasured) {
  const GpuKind kinds[] = {{"H100-80GB", base::Bytes(std::int64_t{81'121} << 20), 8}};
  const auto found = needs_of({"meta-llama/Meta-Llama-3-8B", {{"dtype", {"auto"}}}}, kinds);
  ASSERT_TRUE(found && found->holdings.front().tokens);
  const double gib = static_cast<double>(*found->holdings.front().tokens) / 8192;  // 1 GiB each
  EXPECT_NEAR(gib, 53.29, 0.05);
}

TEST(LlmServer, EngineIsReadFromItsCommandAndItsSpelling) {
  const std::string sglang[] = {"python3", "-m", "sglang.launch_server", "--model-path", "m-7b"};
  EXPECT_EQ(needs_of(description_of(sglang))->engine, Engine::kSglang);
  const std::string trtllm[] = {"trtllm-serve", "serve", "m-7b"};
  EXPECT_EQ(needs_of(description_of(trtllm))->engine, Engine::kTensorrtLlm);
  EXPECT_EQ(needs("m-7b", {{"mem-fraction-static", {"0.8"}}}).engine, Engine::kSglang);
  EXPECT_EQ(needs("m-7b", {}).engine, Engine::kVllm);
  EXPECT_EQ(error_of({{"engine", {"steam"}}}).field, "engine");
}

// SGLang keeps 9.5 GiB and half a GiB for each GPU free on one of 80 GB; TensorRT-LLM gives the
// cache 0.9 of what weights and 2,266 MiB leave.
TEST(LlmServer, EnginesDivideAGpuInTheirOwnWays) {
  const double weights = 2 * 8'030'261'248.0;
  const double cache = 1'073'741'824;
  const auto memory = [](const char* engine, const char* share) {
    std::vector<Setting> settings = {{"dtype", {"auto"}}, {"engine", {engine}}, {"tp", {"1"}}};
    if (*share != '\0') settings.push_back({"gpu-memory-utilization", {share}});
    return static_cast<double>(needs("llama-3-8b", settings).memory_per_gpu->value());
  };
  EXPECT_NEAR(memory("vllm", ""), (weights + cache + kOverhead) / 0.9, 2);
  EXPECT_NEAR(memory("sglang", ""), weights + cache + 2969.0 * 1'048'576, 2) << "fits on 24 GB";
  EXPECT_NEAR(memory("sglang", "0.5"), (weights + cache) / 0.5, 2);
  EXPECT_NEAR(memory("tensorrt-llm", "0.5"), weights + 2266.0 * 1'048'576 + cache / 0.5, 2);
}

TEST(LlmServer, BareNameGetsTheSmallestSetOfEachKind) {
  const auto found = needs_of({"moonshotai/Kimi-K2-Instruct", {}}, known_gpus());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gpus, 8U);
  EXPECT_EQ(found->parallelism, (Parallelism{.tensor = 8})) << "of B200-180GB";
  EXPECT_LE(*found->memory_to_ask_for, base::kGiB * 180);
  for (const Holding& holding : found->holdings) {
    if (holding.kind.name != "H100-80GB") continue;
    EXPECT_TRUE(holding.fits);
    EXPECT_EQ(holding.gpus, 16U);
    EXPECT_EQ(holding.nodes, 2U);
    EXPECT_EQ(holding.parallelism, (Parallelism{.tensor = 8, .pipeline = 2}));
  }
  EXPECT_NE(found->notes.back().find("--tensor-parallel-size 8"), std::string::npos);
}

TEST(LlmServer, SetsAreOfPowersOfTwoThatDivideTheHeads) {
  const GpuKind small[] = {{"T4-16GB", base::Bytes(std::int64_t{15'360} << 20), 8}};
  const auto found = needs_of({"qwen2-7b", {{"dtype", {"auto"}}}}, small);  // 28 heads
  EXPECT_EQ(found->parallelism, (Parallelism{.tensor = 2}));
  const auto large = needs_of({"qwen2-57b-a14b", {{"dtype", {"auto"}}}}, small);  // 28 heads
  EXPECT_EQ(large->parallelism.tensor, 4U);
  EXPECT_GT(large->parallelism.pipeline, 1U);
  EXPECT_TRUE(large->holdings.front().fits);
}

TEST(LlmServer, ReplicasMultiplyTheSmallestSet) {
  const auto found = needs_of({"llama-3.1-70b", {{"dp", {"2"}}}}, known_gpus());
  const auto one = needs_of({"llama-3.1-70b", {}}, known_gpus());
  EXPECT_EQ(found->gpus, 2 * one->gpus);
}

TEST(LlmServer, WhereNoKindHoldsItAKnownOneThatDoesIsNamed) {
  const GpuKind tiny[] = {{"K80-12GB", base::kGiB * 2, 1}};
  const auto found = needs_of({"llama-3.1-8b", {{"dtype", {"auto"}}}}, tiny);
  ASSERT_EQ(found->holdings.size(), 2U);
  EXPECT_FALSE(found->holdings[0].fits);
  EXPECT_TRUE(found->holdings[1].fits);
  EXPECT_NE(found->notes.back().find("no type of GPU here holds it"), std::string::npos);
}

TEST(LlmServer, UnknownSizeIsNotSmall) {
  for (const char* model : {"my-model", "", "llama-3", "/models/Phi-3-mini-4k-of-mine"}) {
    const ServerNeeds found = needs(model, {{"tp", {"1", "2", "4"}}});
    if (found.parameters) continue;  // the last is taken for phi-3-mini
    EXPECT_EQ(found.rule, MemoryRule::kUnknown) << model;
    EXPECT_EQ(found.gpus, 4U);
    EXPECT_FALSE(found.memory_per_gpu || found.memory_to_ask_for);
    EXPECT_NE(found.notes.front().find("give parameters=70B"), std::string::npos);
  }
  const auto bare = needs_of({"my-model", {}});
  ASSERT_FALSE(bare);
  EXPECT_EQ(bare.error().field, "model");
  EXPECT_NE(bare.error().message.find("'my-model' is not known: give parameters=70B"),
            std::string::npos);
}

TEST(LlmServer, ShareOfTheMemoryCanBeSaid) {
  const std::vector<Setting> settings = {
      {"dtype", {"bf16"}}, {"gpu-memory-utilization", {"0.5"}}, {"tp", {"1"}}};
  EXPECT_EQ(needs("foo-10b", settings).memory_per_gpu,
            base::Bytes(2 * (20'000'000'000 + kOverhead)));
  EXPECT_EQ(error_of({{"gpu-memory-utilization", {"1.1"}}}).field, "gpu-memory-utilization");
  EXPECT_EQ(error_of({{"gpu-memory-utilization", {"0"}}}).field, "gpu-memory-utilization");
  EXPECT_EQ(error_of({{"gpu-memory-utilization", {"0.9x"}}}).field, "gpu-memory-utilization");
}

// 80 layers in 4 stages, 8 key-value heads on 4 GPUs: 20 × 2 × 2 × 128 × 2 bytes × 8192.
TEST(LlmServer, CacheIsThatOfOneContextHoweverManySequencesThereMayBe) {
  const ServerNeeds found = needs("foo-70b", {{"tp", {"4"}},
                                              {"pp", {"4"}},
                                              {"dtype", {"bf16"}},
                                              {"max-model-len", {"8192"}},
                                              {"max_num_seqs", {"256"}},
                                              {"num_hidden_layers", {"80"}},
                                              {"num_key_value_heads", {"8"}},
                                              {"head_dim", {"128"}}});
  ASSERT_TRUE(found.parts && found.parts->cache);
  EXPECT_EQ(*found.parts->cache, base::Bytes(std::int64_t{2} * 20 * 2 * 128 * 2 * 8192));
  EXPECT_EQ(found.sequences, 256U);
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
  EXPECT_EQ(found.parts->weights, base::Bytes(4'160'000'000));
}

TEST(LlmServer, QuantizationIsReadFromTheName) {
  EXPECT_EQ(needs("m-8b-AWQ", {}).parts->weights, base::Bytes(4'160'000'000));
  EXPECT_EQ(needs("m-8b-AWQ", {}).rule, MemoryRule::kComputed);
  EXPECT_EQ(needs("m-8b-FP8", {{"dtype", {"auto"}}}).parts->weights, base::Bytes(8'000'000'000));
  EXPECT_EQ(needs("m-8b-GPTQ-Int8", {{"quantization", {"gptq_marlin"}}}).parts->weights,
            base::Bytes(8'000'000'000));
  EXPECT_EQ(needs("m-8b-AWQ", {{"quantization", {"fp8"}}}).parts->weights,
            base::Bytes(8'000'000'000));
}

TEST(LlmServer, PrecisionLeftOpenIsTheModelsOwn) {
  const ServerNeeds unknown = needs("m-8b", {{"dtype", {"auto"}}});
  EXPECT_EQ(unknown.rule, MemoryRule::kComputed);
  EXPECT_EQ(unknown.parts->weights, base::Bytes(16'000'000'000));
  EXPECT_NE(unknown.notes[0].find("16 bits are assumed"), std::string::npos);
  const ServerNeeds fp8 = needs("deepseek-v3", {{"dtype", {"auto"}}});
  EXPECT_EQ(fp8.precision->centibits, 800U);
  EXPECT_EQ(needs("deepseek-v3", {{"dtype", {"bfloat16"}}}).precision->centibits, 800U);
}

TEST(LlmServer, CacheIsSmallerInFp8) {
  const auto cache = [](std::string type) {
    return needs("llama-3-8b", {{"kv-cache-dtype", {std::move(type)}}}).parts->cache->value();
  };
  EXPECT_EQ(cache("fp8"), cache("auto") / 2);
  EXPECT_EQ(cache("fp8_e5m2"), cache("auto") / 2);
}

struct HandFigure {
  std::string model;
  std::vector<Setting> settings;
  std::int64_t weights;  // of each GPU
  std::int64_t cache;    // of one context, of each GPU
};

// Worked out by hand from the pages of the models. If the weights take less than 16 bits, the
// embedding and the output matrix keep them: 2 × vocabulary × width.
TEST(LlmServer, FiguresOfPublishedModelsAreThoseWorkedOutByHand) {
  const Setting open = {"dtype", {"auto"}};
  const auto tp = [](std::string n) { return Setting{"tp", {std::move(n)}}; };
  const auto length = [](std::string n) { return Setting{"max-model-len", {std::move(n)}}; };
  const HandFigure figures[] = {
      // 6,738,415,616 × 2; 32 layers × 2 × 32 heads × 128 × 2 bytes × 4096 tokens
      {"meta-llama/Llama-2-7b-chat-hf", {open}, 13'476'831'232, 2'147'483'648},
      // 70,553,706,496 × 2 / 4; 80 × 2 × 2 × 128 × 2 × 8192
      {"Llama-3.1-70B-Instruct", {open, tp("4"), length("8192")}, 35'276'853'248, 671'088'640},
      // (405,853,388,800 + 4,202,692,608 of the embeddings once more) / 8; 126 × 2 × 128 × 2 ×
      // 131072
      {"Meta-Llama-3.1-405B-Instruct-FP8", {open, tp("8")}, 51'257'010'176, 8'455'716'864},
      // 7,241,732,096 × 2; 32 × 2 × 8 × 128 × 2 × 32768
      {"Mistral-7B-Instruct-v0.2", {open}, 14'483'464'192, 4'294'967'296},
      // 46,702,792,704 × 2 / 2; 32 × 2 × 4 × 128 × 2 × 32768
      {"Mixtral-8x7B-Instruct-v0.1", {open, tp("2")}, 46'702'792'704, 2'147'483'648},
      // (140,227,418,112 × 4.16 / 8 + 402,653,184 × 2) / 4; 56 × 2 × 2 × 128 × 2 × 65536
      {"Mixtral-8x22B-Instruct-v0.1-AWQ", {open, tp("4")}, 18'430'890'947, 3'758'096'384},
      // 32,763,876,352 + 1,557,135,360; 64 × 2 × 8 × 128 × 2 × 32768
      {"Qwen2.5-32B-Instruct-GPTQ-Int8", {open}, 34'321'011'712, 8'589'934'592},
      // 3,821,079,552 × 2; 32 × 2 × 32 × 96 × 2 × 4096, and × 32 for 131072
      {"Phi-3-mini-4k-instruct", {open}, 7'642'159'104, 1'610'612'736},
      {"Phi-3-mini-128k-instruct", {open}, 7'642'159'104, 51'539'607'552},
      // 27,432,406,640 × 2 / 2; 10 layers hold 131072 tokens and 52 hold 1024 + 8192;
      // × 2 × 8 × 128 × 2
      {"gemma-3-27b-it", {open, tp("2")}, 27'432'406'640, 7'331'643'392},
      // (671,026,419,200 + 1,853,358,080) / 8; 61 × (512 + 64) × 2 × 163840, on each GPU
      {"DeepSeek-V3-0324", {open, tp("8")}, 84'109'972'160, 11'513'364'480},
      // 41,303,293,952 × 2 / 4; 60 × 2 × 2 × 64 × 2 × 2048
      {"falcon-40b-instruct", {open, tp("4")}, 20'651'646'976, 62'914'560},
      // 114,661,785,600 of experts × 4.25 / 8 + 2,167,371,072 × 2 (published: 60.8 GiB);
      // (18 × 131072 + 18 × (128 + 8192)) × 2 × 8 × 64 × 2
      {"openai/gpt-oss-120b", {open}, 65'248'815'744, 5'138'546'688},
      // 103,810,674,688 × 2 / 8; 64 × 2 × 1 × 128 × 2 × 131072
      {"c4ai-command-r-plus", {open, tp("8")}, 25'952'668'672, 4'294'967'296},
      // 108,641,793,536 × 2 / 8; 48 × 2 × 1 × 128 × 2 × 131072
      {"Llama-4-Scout-17B-16E-Instruct",
       {open, tp("8"), length("128K")},
       27'160'448'384,
       3'221'225'472},
      // 176,247,271,424 × 2 / 8; 70 × 2 × 14 × 128 × 2 × 2048
      {"bigscience/bloom", {open, tp("8")}, 44'061'817'856, 1'027'604'480},
      // 8,170,848,256 × 2; 40 × 2 × 8 × 128 × 2 × 131072
      {"granite-3.1-8b-instruct", {open}, 16'341'696'512, 21'474'836'480},
  };
  for (const HandFigure& figure : figures) {
    SCOPED_TRACE(figure.model);
    const ServerNeeds found = needs(figure.model, figure.settings);
    ASSERT_TRUE(found.parts && found.parts->cache);
    EXPECT_EQ(found.rule, MemoryRule::kComputed);
    EXPECT_EQ(found.parts->weights.value(), figure.weights);
    EXPECT_EQ(found.parts->cache->value(), figure.cache);
  }
}

// 80 GiB × 0.9 − 16,060,522,496 − 3123 MiB = 53.99 GiB; one context of 8192 takes 1 GiB: 32 layers
// × 2 × 8 × 128 × 2 bytes × 8192.
TEST(LlmServer, RestOfTheMemoryHoldsFurtherContexts) {
  const GpuKind kinds[] = {{"T4-16GB", base::kGiB * 16, 4}, {"H100-80GB", base::kGiB * 80, 8}};
  const auto found = needs_of(
      {"llama-3-8b", {{"dtype", {"auto"}}, {"max-num-seqs", {"256"}}, {"tp", {"1"}}}}, kinds);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->holdings.size(), 2U);
  EXPECT_FALSE(found->holdings[0].fits);
  EXPECT_FALSE(found->holdings[0].tokens);
  EXPECT_TRUE(found->holdings[1].fits);
  EXPECT_EQ(found->holdings[1].contexts, 53U);
  EXPECT_EQ(*found->holdings[1].tokens / 8192, 53U);
  EXPECT_EQ(found->memory_to_ask_for, base::kGiB * 22);  // (14.96 + 3.05 + 1) / 0.9 = 21.1
}

TEST(LlmServer, AGpuThatIsNotThereCanBeDescribed) {
  const auto found = needs_of(
      {"llama-3-8b",
       {{"dtype", {"auto"}}, {"gpu-memory", {"24G"}}, {"gpus-per-node", {"2"}}, {"dp", {"8"}}}},
      {});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->holdings.size(), 1U);
  EXPECT_TRUE(found->holdings[0].fits);
  EXPECT_EQ(found->nodes, 4U);
}

TEST(LlmServer, MoreGpusThanANodeHasTakeSeveralNodes) {
  const GpuKind kinds[] = {{"H100-80GB", base::kGiB * 80, 8}};
  const auto nodes = [&](std::string tensor, std::string pipeline) {
    return needs_of({"m", {{"tp", {std::move(tensor)}}, {"pp", {std::move(pipeline)}}}}, kinds)
        ->nodes;
  };
  EXPECT_EQ(nodes("8", "1"), 1U);
  EXPECT_EQ(nodes("8", "2"), 2U);
  EXPECT_EQ(nodes("4", "3"), 2U);  // six on each
  EXPECT_EQ(nodes("11", "1"), 11U);
  const auto crossing = needs_of({"m", {{"tp", {"16"}}}}, kinds);
  EXPECT_NE(crossing->notes.back().find("crosses nodes"), std::string::npos);
  EXPECT_EQ(needs("m", {{"tp", {"16"}}}).nodes, 1U) << "nothing is known of the nodes";
}

TEST(LlmServer, NodesAreThoseOfAKindThatFits) {
  const GpuKind kinds[] = {{"T4-16GB", base::kGiB * 16, 16}, {"H100-80GB", base::kGiB * 80, 4}};
  const auto found = needs_of(
      {"llama-3.1-70b", {{"dtype", {"auto"}}, {"max-model-len", {"8192"}}, {"tp", {"8"}}}}, kinds);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->holdings[0].fits);
  EXPECT_EQ(found->nodes, 2U);
}

TEST(LlmServer, NormalCommandNeedsWhatServesOneContext) {
  const std::string vllm[] = {"vllm",           "serve", "meta-llama/Llama-3.1-70B-Instruct",
                              "--max-num-seqs", "256",   "--max-model-len",
                              "32768",          "--tp",  "4"};
  const auto found = needs_of(description_of(vllm));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rule, MemoryRule::kComputed);
  // (35,276,853,248 + 3123 MiB + 80 × 2 × 2 × 128 × 2 × 32768) / 0.9 = 42.7 GiB
  EXPECT_EQ(found->memory_to_ask_for, base::kGiB * 43);
}

TEST(LlmServer, SmallNamesGiveNoSmallFigures) {
  const ServerNeeds found = needs("Phi-3-mini-4k", {{"dtype", {"bfloat16"}}});
  EXPECT_EQ(found.parameters, 3'821'079'552U);
  EXPECT_EQ(found.known_as, "phi-3-mini");
  EXPECT_EQ(error_of({{"model", {"foo-mini-4k"}}, {"dtype", {"bfloat16"}}}).field, "model");
}

TEST(LlmServer, ModelsTakenForOthersAndBoundsAreNoted) {
  EXPECT_NE(needs("Hermes-3-Llama-3.1-70B", {{"dtype", {"auto"}}}).notes[0].find("llama-3.1-70b"),
            std::string::npos);
  EXPECT_NE(needs("foo-8x7b", {{"dtype", {"bf16"}}}).notes[0].find("fewer parameters"),
            std::string::npos);
}

TEST(LlmServer, ParametersCanBeSaid) {
  const ServerNeeds found = needs("my-model", {{"parameters", {"8x7B"}}, {"dtype", {"fp8"}}});
  EXPECT_EQ(found.parameters, 56'000'000'000U);
  EXPECT_EQ(found.parts->weights, base::Bytes(56'000'000'000));
}

TEST(LlmServer, UnusedSettingsAreNamedOnce) {
  const ServerNeeds found =
      needs("m-7b", {{"--port", {"80"}}, {"--enforce-eager", {}}, {"--port", {"81"}}});
  EXPECT_EQ(found.unused, (std::vector<std::string>{"--enforce-eager", "--port"}));
}

TEST(LlmServer, BadValuesAreRefusedByTheNameTheyWereGiven) {
  EXPECT_EQ(error_of({{"tp_size", {"0"}}}).field, "tp_size");
  EXPECT_EQ(error_of({{"tp_size", {"two"}}}).field, "tp_size");
  EXPECT_EQ(error_of({{"--pp", {"-1"}}}).field, "--pp");
  EXPECT_EQ(error_of({{"dp", {}}}).field, "dp");
  EXPECT_EQ(error_of({{"parameters", {"many"}}}).field, "parameters");
  EXPECT_EQ(error_of({{"--dtype", {"soup"}}}).field, "--dtype");
  EXPECT_NE(error_of({{"kv-cache-dtype", {"fp9"}}})
                .message.find("kv-cache-dtype: 'fp9' is not one of auto, float32"),
            std::string::npos);
  EXPECT_EQ(error_of({{"tp", {"65536"}}, {"pp", {"2"}}}).field, "settings");
  const base::Error two = error_of({{"tp", {"2"}}, {"tensor-parallel-size", {"4"}}});
  EXPECT_EQ(two.message, "tp is 2 and tensor-parallel-size is 4: give one of them");
}

TEST(LlmServer, SettingsThatAreTooLargeOverflowNothing) {
  const ServerNeeds found = needs("m", {{"parameters", {"1000t"}},
                                        {"dtype", {"fp32"}},
                                        {"max-model-len", {"1000000000"}},
                                        {"max-num-seqs", {"1000000000"}},
                                        {"num-layers", {"1000000"}},
                                        {"num-kv-heads", {"1000000"}},
                                        {"head-dim", {"1000000"}}});
  EXPECT_GT(*found.memory_per_gpu, found.parts->weights);
  const GpuKind kinds[] = {{"huge", base::Bytes(std::int64_t{1} << 60), 8}};
  EXPECT_TRUE(needs_of({"m-7b", {{"dtype", {"auto"}}, {"max-model-len", {"1000000000"}}}}, kinds));
}

TEST(LlmServer, LengthsAreReadAsServersReadThem) {
  const auto context = [](std::string length) {
    return needs("llama-3-8b", {{"max-model-len", {std::move(length)}}}).context;
  };
  EXPECT_EQ(context("32k"), 32'000U);
  EXPECT_EQ(context("32K"), 32'768U);
  EXPECT_EQ(context("1M"), 1'048'576U);
  EXPECT_EQ(error_of({{"max-model-len", {"k"}}}).field, "max-model-len");
  EXPECT_EQ(error_of({{"max-model-len", {"32kk"}}}).field, "max-model-len");
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
  const std::string later[] = {"vllm", "serve", "--tp=2", "m-7b", "--seed", "1"};
  EXPECT_EQ(description_of(later).model, "m-7b");
  const ServerDescription second = description_of(sglang);
  EXPECT_EQ(second.model, "m-7b");
  EXPECT_EQ(needs_of(second)->gpus, 2U);
}

}  // namespace
}  // namespace gpu_platform::sizing
