#include "config/effective.h"

#include <gtest/gtest.h>

#include "config/yaml/reader.h"

namespace gpu_platform::config {
namespace {

Configuration read(std::string_view yaml) {
  Checked checked = parse_configuration(yaml);
  EXPECT_TRUE(checked.has_value());
  return checked.value_or(Configuration());
}

const EffectiveValue& value_of(const std::vector<EffectiveValue>& values, std::string_view key) {
  const auto found = std::ranges::find(values, key, &EffectiveValue::key);
  EXPECT_NE(found, values.end()) << key;
  return *found;
}

TEST(Effective, EachKeyHasItsValueAndTheLineThatSetsIt) {
  const auto values = effective_values(read("scheduling:\n  max_queue_size: 7\n"));
  EXPECT_EQ(values.size(), schema().size());
  EXPECT_EQ(value_of(values, "scheduling.max_queue_size").value, "7");
  EXPECT_EQ(value_of(values, "scheduling.max_queue_size").line, 2);
  EXPECT_EQ(value_of(values, "api.threads").line, 0);
}

TEST(Effective, ADifferenceTellsBothValuesAndWhenItApplies) {
  const auto found =
      differences(read("scheduling: {max_queue_size: 7}\napi: {threads: 2}\n"),
                  read("scheduling: {max_queue_size: 8}\napi: {threads: 3}\nteams: [{name: a}]\n"));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], (Difference{"scheduling.max_queue_size", "7", "8", Effect::kAnytime}));
  EXPECT_EQ(found[1], (Difference{"api.threads", "2", "3", Effect::kRestart}));
  EXPECT_EQ(found[2], (Difference{"teams", "", "", Effect::kAnytime}));
  EXPECT_TRUE(
      differences(read("teams: [{name: a}]\n"), read("# same\nteams: [{name: a}]\n")).empty());
}

TEST(Effective, WhatOnlyAStartChangesStaysInForce) {
  const InForce in_force = values_in_force(
      "site.yaml", read("scheduling: {max_queue_size: 7}\napi: {threads: 2}\n"),
      read("scheduling: {max_queue_size: 8}\n\napi: {threads: 3}\nteams: [{name: a}]\n"));
  const auto value = [&](std::string_view key) -> const InForce::Value& {
    return *std::ranges::find(in_force.values, key,
                              [](const InForce::Value& each) { return each.now.key; });
  };
  EXPECT_EQ(value("scheduling.max_queue_size").now.value, "8");
  EXPECT_EQ(value("scheduling.max_queue_size").next, "8");
  EXPECT_EQ(value("scheduling.max_queue_size").now.file, "site.yaml");
  EXPECT_EQ(value("api.threads").now.value, "2");
  EXPECT_EQ(value("api.threads").now.line, 2);
  EXPECT_EQ(value("api.threads").next, "3");
  EXPECT_EQ(value("scheduling.order").now.file, "");
  EXPECT_EQ(in_force.values.back().now.key, "teams");
}

}  // namespace
}  // namespace gpu_platform::config
