#include "sizing/models.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "sizing/model_table.h"

namespace gpu_platform::sizing {
namespace {

std::string found(std::string_view name) {
  const auto model = find_model(name);
  if (!model) return "";
  return std::string(model->model->name) + (model->is_exact ? "" : "?");
}

std::uint64_t context_of(std::string_view name) {
  const auto model = find_model(name);
  return model ? model->context : 0;
}

TEST(ModelTable, HasAtLeastFortyModelsEachOnce) {
  EXPECT_GE(known_models().size(), 40U);
  EXPECT_EQ(
      std::ranges::adjacent_find(known_models(), std::ranges::greater_equal{}, &KnownModel::name),
      known_models().end())
      << "not ascending, or twice";
  EXPECT_EQ(std::ranges::adjacent_find(kAliases, std::ranges::greater_equal{}, &Alias::name),
            std::end(kAliases));
}

TEST(ModelTable, EveryRowIsComplete) {
  for (const KnownModel& model : known_models()) {
    SCOPED_TRACE(model.name);
    EXPECT_NE(model.source.find('/'), std::string_view::npos);
    EXPECT_GE(model.context, 2048U);
    EXPECT_GT(model.stack.layers, 0U);
    EXPECT_GT(model.attention.head_size, 0U);
    EXPECT_GT(model.attention.key_value_heads, 0U);
    EXPECT_EQ(model.attention.heads % model.attention.key_value_heads, 0U);
    EXPECT_LT(model.windows.layers, model.stack.layers);
    EXPECT_EQ(model.windows.layers > 0, model.windows.tokens > 0);
    EXPECT_EQ(find_model(model.name)->model, &model) << "found by its own name";
  }
}

std::uint64_t attention_parameters(const KnownModel& model) {
  const std::uint64_t hidden = model.stack.hidden;
  const auto& [heads, key_value_heads, head_size] = model.attention;
  if (model.latent.rank == 0) {
    return hidden * head_size * 2 * (std::uint64_t{heads} + key_value_heads);
  }
  const auto& [rank, rope, query_rank] = model.latent;
  const std::uint64_t queries = std::uint64_t{heads} * (head_size + rope);
  const std::uint64_t values = std::uint64_t{heads} * head_size;
  const std::uint64_t of_queries =
      query_rank == 0 ? hidden * queries : query_rank * (hidden + queries);
  return of_queries + hidden * (rank + rope) + rank * 2 * values + values * hidden;
}

// All parameters that follow from the shape, without norms and biases.
std::uint64_t derived_parameters(const KnownModel& model) {
  const LayerStack& stack = model.stack;
  const std::uint64_t hidden = stack.hidden;
  const std::uint64_t matrices = stack.form == FeedForward::kGated ? 3 : 2;
  const bool has_experts = model.experts.count > 0;
  const std::uint64_t dense_layers = has_experts ? model.experts.dense_layers : stack.layers;
  const std::uint64_t of_each_expert_layer =
      hidden * (3 * std::uint64_t{model.experts.shared_width} + model.experts.count);
  return embedding_parameters(model) + stack.layers * attention_parameters(model) +
         dense_layers * matrices * hidden * stack.feed_forward +
         (stack.layers - dense_layers) * of_each_expert_layer + expert_parameters(model) +
         model.vision;
}

// The published number is counted over the weights, the other one follows from the shape: a wrong
// number of layers, heads, key-value heads or experts makes more than half a percent.
TEST(ModelTable, PublishedParametersAreThoseOfTheShape) {
  for (const KnownModel& model : known_models()) {
    const auto published = static_cast<double>(model.parameters);
    const auto derived = static_cast<double>(derived_parameters(model));
    EXPECT_NEAR(derived / published, 1, 0.005) << model.name;
  }
}

// What is published leaves out the embedding for some models.
TEST(ModelTable, ActiveParametersAreThoseOfTheChosenExperts) {
  for (const KnownModel& model : known_models()) {
    const Experts& experts = model.experts;
    if (experts.count == 0) continue;
    const std::uint64_t all = expert_parameters(model);
    const std::uint64_t active =
        derived_parameters(model) - model.vision - all + all / experts.count * experts.per_token;
    EXPECT_NEAR(static_cast<double>(active) / static_cast<double>(experts.active), 1, 0.17)
        << model.name;
  }
}

TEST(ModelTable, AliasesStandForModelsAndForNoNameOfTheTable) {
  for (const Alias& alias : kAliases) {
    const auto model = find_model(alias.name);
    ASSERT_TRUE(model) << alias.name;
    EXPECT_EQ(model->model->name, alias.model) << alias.name;
    EXPECT_EQ(std::ranges::count(known_models(), alias.name, &KnownModel::name), 0) << alias.name;
  }
}

TEST(FindModel, OrganisationCaseSeparatorsAndDressingDoNotMatter) {
  EXPECT_EQ(found("llama-3-70b"), "llama-3-70b");
  EXPECT_EQ(found("meta-llama/Meta-Llama-3-70B-Instruct"), "llama-3-70b");
  EXPECT_EQ(found("/models/Llama-3.1-8B-Instruct/"), "llama-3.1-8b");
  EXPECT_EQ(found("llama3.1_8b"), "llama-3.1-8b");
  EXPECT_EQ(found("meta-llama/Llama-2-13b-chat-hf"), "llama-2-13b");
  EXPECT_EQ(found("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4"), "llama-3.1-70b");
  EXPECT_EQ(found("RedHatAI/Llama-3.3-70B-Instruct-quantized.w8a8"), "llama-3.3-70b");
  EXPECT_EQ(found("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4"), "qwen2.5-72b");
  EXPECT_EQ(found("TheBloke/Mixtral-8x7B-Instruct-v0.1-AWQ"), "mixtral-8x7b");
  EXPECT_EQ(found("mistralai/Mistral-7B-Instruct-v0.3"), "mistral-7b");
  EXPECT_EQ(found("mistralai/Mistral-Nemo-Instruct-2407"), "mistral-nemo");
  EXPECT_EQ(found("google/gemma-3-27b-it"), "gemma-3-27b");
  EXPECT_EQ(found("meta-llama/Llama-4-Scout-17B-16E-Instruct"), "llama-4-scout-17b-16e");
  EXPECT_EQ(found("deepseek-ai/DeepSeek-R1-0528"), "deepseek-v3");
  EXPECT_EQ(found("deepseek-ai/DeepSeek-R1-Distill-Llama-70B"), "llama-3.3-70b");
  EXPECT_EQ(found("CohereForAI/c4ai-command-r-plus-08-2024"), "command-r-plus");
  EXPECT_EQ(found("CohereForAI/c4ai-command-r-08-2024"), "command-r-08-2024");
  EXPECT_EQ(found("unsloth/gpt-oss-20b-BF16"), "gpt-oss-20b");
}

TEST(FindModel, TakesAModelOfUnknownNameForTheOneWithinIt) {
  EXPECT_EQ(found("NousResearch/Hermes-3-Llama-3.1-70B"), "llama-3.1-70b?");
  EXPECT_EQ(found("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B"), "qwen3-8b?");
}

TEST(FindModel, IsNotFooledBySimilarNames) {
  EXPECT_EQ(found("microsoft/Phi-4-multimodal-instruct"), "");
  EXPECT_EQ(found("CohereForAI/c4ai-command-r7b-12-2024"), "");
  EXPECT_EQ(found("Qwen/Qwen2.5-VL-7B-Instruct"), "");
  EXPECT_EQ(found("llama-3-70"), "");
  EXPECT_EQ(found("llama-3"), "");
  EXPECT_EQ(found("my-model"), "");
  EXPECT_EQ(found(""), "");
  EXPECT_EQ(found(std::string(10'000, '-') + "llama"), "");
}

TEST(FindModel, ContextIsThatOfTheVariant) {
  EXPECT_EQ(context_of("microsoft/Phi-3-mini-4k-instruct"), 4096U);
  EXPECT_EQ(context_of("microsoft/Phi-3-mini-128k-instruct"), 131'072U);
  EXPECT_EQ(context_of("Qwen/Qwen2.5-7B-Instruct-1M"), 1'048'576U);
  EXPECT_EQ(context_of("Qwen/Qwen3-30B-A3B"), 40'960U);
  EXPECT_EQ(context_of("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8"), 262'144U);
}

}  // namespace
}  // namespace gpu_platform::sizing
