#include "shims/submission/partition_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/answer.h"

namespace gpu_platform::shims {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Site a_site() {
  return site_in(*client::message_of<v1::SlurmNames>(R"({
    "partitions": [
      {"name": "batch", "is_default": true, "max_time_seconds": 86400, "default_time_seconds": 3600},
      {"name": "h100", "gpu_types": ["H100"], "priority": "LOW", "max_gpus": 8, "max_nodes": 2}],
    "qos": [{"name": "normal"},
            {"name": "urgent", "priority": "HIGH", "max_time_seconds": 7200, "max_gpus": 4}]})"));
}

struct Asked {
  std::string partition;
  std::string qos;
  Resources resources = {};
  std::optional<base::Duration> time_limit = {};
};

std::expected<SiteChoice, SiteRefusal> chosen(const Asked& asked, const Site& site = a_site()) {
  Settings settings;
  if (!asked.partition.empty()) settings.set(Option{"partition"}, asked.partition);
  if (!asked.qos.empty()) settings.set(Option{"qos"}, asked.qos);
  return choose(site, settings, asked.resources, asked.time_limit);
}

TEST(SiteChoice, OfNothingIsTheDefaultPartitionWithItsUsualTime) {
  const auto choice = chosen({});
  EXPECT_EQ(choice->partition, "batch");
  EXPECT_EQ(choice->qos, "normal");
  EXPECT_EQ(choice->priority, "");
  EXPECT_EQ(choice->time_limit, base::hours(1));
  EXPECT_TRUE(choice->gpu_types.empty());
}

TEST(SiteChoice, HasThePartitionsTypesAndTheQosPriority) {
  const auto choice = chosen({"h100", "", {.gpus = {4, ""}}});
  EXPECT_THAT(choice->gpu_types, ElementsAre("H100"));
  EXPECT_EQ(choice->priority, "LOW");
  EXPECT_FALSE(choice->time_limit);
  const auto urgent = chosen({"h100", "urgent", {.gpus = {4, ""}}});
  EXPECT_EQ(urgent->priority, "HIGH");
  EXPECT_EQ(urgent->time_limit, base::hours(2));
}

TEST(SiteChoice, OfSeveralPartitionsIsTheFirstThatTakesTheJob) {
  EXPECT_EQ(chosen({"h100,batch", "", {.gpus = {8, ""}}})->partition, "h100");
  EXPECT_EQ(chosen({"h100,batch", "", {.gpus = {16, ""}}})->partition, "batch");
  EXPECT_FALSE(chosen({"batch,nowhere", ""}));
}

TEST(SiteChoice, ThatCannotBeIsRefusedInSlurmsWords) {
  struct Case {
    Asked asked;
    std::string_view detail;
    std::string_view reason;
  };
  const Case cases[] = {
      {{"nowhere", ""}, "nowhere; there are: batch, h100", "Invalid partition name specified"},
      {{"", "gold"}, "gold; there are: normal, urgent", "Invalid qos specification"},
      {{"batch", "", {}, base::hours(25)}, "1-01:00:00 is more than 1-00:00:00", "Requested time"},
      {{"", "urgent", {}, base::hours(3)}, "of the QOS urgent", "Requested time"},
      {{"h100", "", {.gpus = {16, ""}}}, "the partition h100 allows 8", "Job violates"},
      {{"", "urgent", {.nodes = 3, .gpus = {2, ""}}}, "asks for 6 GPUs", "Job violates"},
      {{"h100", "", {.nodes = 3}}, "the partition h100 allows 2", "Node count"},
      {{"h100", "", {.gpus = {1, "a100"}}}, "it has H100", "Requested node configuration"},
  };
  for (const auto& [asked, detail, reason] : cases) {
    const auto choice = chosen(asked);
    ASSERT_FALSE(choice) << detail;
    EXPECT_THAT(choice.error().detail, HasSubstr(detail));
    EXPECT_THAT(choice.error().reason, HasSubstr(reason));
  }
  EXPECT_TRUE(chosen({"h100", "", {.gpus = {1, "h100-80gb"}}}));
}

TEST(SiteChoice, OfASiteWithoutNamesKeepsWhatWasNamedWithAWarning) {
  const auto choice = chosen({"debug", "gold"}, usual_site());
  EXPECT_EQ(choice->partition, "debug");
  EXPECT_EQ(choice->qos, "gold");
  EXPECT_THAT(choice->warnings, ElementsAre(HasSubstr("--partition=debug is kept as a name only"),
                                            HasSubstr("--qos=gold is ignored")));
  EXPECT_EQ(chosen({"gpu", "high"}, usual_site())->priority, "HIGH");
  EXPECT_TRUE(chosen({"gpu", "high"}, usual_site())->warnings.empty());
  EXPECT_FALSE(chosen({}, usual_site())->time_limit);
}

}  // namespace
}  // namespace gpu_platform::shims
