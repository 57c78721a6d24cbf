#include "config/yaml/reader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "base/testing/rounds.h"
#include "config/other_names.h"
#include "config/retired_keys.h"
#include "config/schema.h"

namespace gpu_platform::config {
namespace {

std::vector<Problem> problems_of(std::string_view yaml) {
  const Checked checked = parse_configuration(yaml);
  return checked.has_value() ? std::vector<Problem>{} : checked.error();
}

bool mentions(const Problem& problem, std::string_view text) {
  return problem.message.find(text) != std::string::npos;
}

TEST(Configuration, OfAnEmptyFileIsTheDefaults) {
  for (const std::string_view yaml : {"", "# nothing\n", "---\n", "scheduling:\n", "{}"}) {
    const Checked checked = parse_configuration(yaml);
    ASSERT_TRUE(checked.has_value()) << yaml;
    EXPECT_EQ(*checked, Configuration{});
  }
}

TEST(Configuration, ARetiredKeyIsRefusedWithTheOneThatReplacesIt) {
  for (const RetiredKey& retired : kRetiredKeys) {
    const std::size_t dot = retired.path.find('.');
    const auto problems = problems_of(
        fmt::format("{}:\n  {}: 1\n", retired.path.substr(0, dot), retired.path.substr(dot + 1)));
    ASSERT_EQ(problems.size(), 1U) << retired.path;
    EXPECT_EQ(problems[0].line, 2);
    EXPECT_EQ(problems[0].key, retired.path);
    EXPECT_TRUE(mentions(problems[0], fmt::format("'{}' now", retired.instead)))
        << problems[0].message;
    EXPECT_NE(std::ranges::find(schema(), retired.instead, &Key::path), schema().end())
        << retired.instead;
  }
}

TEST(Configuration, ReadsEveryKindOfValue) {
  const Checked checked = parse_configuration(R"(
cluster:
  total_gpus: 32
scheduling:
  max_queue_size: 50
  priority_points:
    critical: 9000000
policies:
  max_job_duration_hours: 72
  stop_grace: 45s
fault_tolerance:
  auto_retry_failed_jobs: true
  retry_backoff: 2m
execution:
  root_jobs: refuse
  output_rotate_bytes: 1G
monitoring:
  interval_seconds: 1
)");
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "x");
  EXPECT_EQ(checked->total_gpus, 32U);
  EXPECT_EQ(checked->policy.max_queue_size, 50U);
  EXPECT_EQ(checked->policy.priority_points[0], 9'000'000);
  EXPECT_EQ(checked->policy.priority_points[1], 10'000);
  EXPECT_EQ(checked->policy.max_time_limit, base::hours(72));
  EXPECT_EQ(checked->policy.stop_grace, base::seconds(45));
  EXPECT_TRUE(checked->policy.auto_retry_failed_jobs);
  EXPECT_EQ(checked->policy.retry_backoff, base::minutes(2));
  EXPECT_EQ(checked->root_jobs, RootJobs::kRefuse);
  EXPECT_EQ(checked->output_rotate_bytes, base::kGiB);
  EXPECT_EQ(checked->monitoring_interval, base::seconds(1));
}

std::string fixture(const std::string& name) {
  return GP_SOURCE_DIR "/tests/fixtures/config/" + name;
}

TEST(Configuration, ReadsTheExampleOfDocumentA) {
  const Checked checked = read_configuration(fixture("cluster.yaml"));
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "cluster.yaml");
  EXPECT_EQ(checked->cluster_name.text, "GPU-Cluster-01");
  EXPECT_EQ(checked->total_gpus, 32U);
  EXPECT_EQ(checked->allocation, model::AllocationMode::kHybrid);
  EXPECT_EQ(checked->policy.order, model::QueueOrder::kFairShare);
  EXPECT_EQ(checked->max_gpus_per_user, 8U);
  EXPECT_TRUE(checked->policy.allow_preemption);
  EXPECT_TRUE(checked->policy.auto_retry_failed_jobs);
  EXPECT_EQ(checked->telemetry.keep_minutes, base::hours(24 * 30));
  EXPECT_EQ(checked->alert_temperature_c, 85U);
  EXPECT_EQ(checked->alert_utilization_percent, 95U);
  EXPECT_EQ(checked->alert_memory_percent, 90U);
  std::vector<std::string> noted;
  for (const Problem& note : checked->notes) noted.push_back(note.key);
  EXPECT_EQ(noted, (std::vector<std::string>{"fault_tolerance.enable_checkpointing",
                                             "fault_tolerance.checkpoint_interval_minutes"}))
      << "keys without effect are noted";
}

TEST(Configuration, ReadsDocumentDsPolicyOfPreemption) {
  const Checked checked = read_configuration(fixture("preemption.yaml"));
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "preemption.yaml");
  EXPECT_TRUE(checked->policy.allow_preemption);
  EXPECT_EQ(checked->policy.max_preemptions_per_job, 3U);
  EXPECT_EQ(checked->policy.preempt_below, model::PriorityClass::kMedium);
  EXPECT_TRUE(checked->notes.empty());
}

TEST(Configuration, CaseDoesNotCountInWordsAndAHyphenIsAnUnderscore) {
  for (const std::string_view word : {"fair_share", "fair-share", "FAIR_SHARE", "\"Fair-Share\""}) {
    const Checked checked = parse_configuration(fmt::format("scheduling: {{algorithm: {}}}", word));
    ASSERT_TRUE(checked.has_value()) << word;
    EXPECT_EQ(checked->policy.order, model::QueueOrder::kFairShare);
  }
  const Checked off = parse_configuration("policies: {enable_preemption: FALSE}");
  ASSERT_TRUE(off.has_value());
  EXPECT_FALSE(off->policy.allow_preemption);
}

TEST(Configuration, EveryOtherNameIsOneOfAKey) {
  for (const OtherName& other : kOtherNames) {
    EXPECT_NE(std::ranges::find(schema(), other.key, &Key::path), schema().end()) << other.key;
    EXPECT_EQ(std::ranges::find(schema(), other.path, &Key::path), schema().end()) << other.path;
  }
}

TEST(Configuration, AKeyMayNotStandThereUnderBothItsNames) {
  const auto problems = problems_of("scheduling:\n  order: fcfs\n  algorithm: fair-share\n");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].line, 3);
  EXPECT_TRUE(mentions(problems[0], "'scheduling.order' is set twice"));
}

TEST(Configuration, WhatTheProgramDoesNotDoIsRefusedWithWhatToUseInstead) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"scheduling: {default_priority: 2}", "use --priority"},
      {"policies: {checkpoint_before_preempt: false}", "use 'stop_grace: 0s'"},
      {"policies: {checkpoint_before_preempt: maybe}", "true or false"},
      {"monitoring: {metrics_retention_days: [1]}", "must be a value (1 to 3660)"},
      {"monitoring: {alert_thresholds: {memory: much}}", "'much'"},
      {"monitoring: {alert_thresholds: {memorie: 1}}", "unknown key"},
      {"scheduling: {algorithm: random}", "is not priority, fcfs, fair_share or weighted"},
  };
  for (const auto& [yaml, said] : cases) {
    const auto problems = problems_of(yaml);
    ASSERT_EQ(problems.size(), 1U) << yaml;
    EXPECT_TRUE(mentions(problems[0], said)) << problems[0].message;
  }
}

TEST(Configuration, NamesLineColumnAndTheKeyThatWasMeant) {
  const auto problems = problems_of("scheduling:\n  max_queue_sice: 5\n");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].line, 2);
  EXPECT_EQ(problems[0].column, 3);
  EXPECT_EQ(problems[0].key, "scheduling.max_queue_sice");
  EXPECT_TRUE(mentions(problems[0], "did you mean 'max_queue_size'?")) << problems[0].message;
  EXPECT_EQ(describe(problems[0], "site.yaml").substr(0, 14), "site.yaml:2:3:");
}

TEST(Configuration, ReportsAllProblemsInTheOrderOfTheFile) {
  const auto problems = problems_of(R"(nonsense: 1
scheduling:
  max_queue_size: many
  max_queue_size: 5
policies:
  stop_grace: 2d
execution:
  root_jobs: maybe
)");
  ASSERT_EQ(problems.size(), 5U);
  EXPECT_TRUE(mentions(problems[0], "known here: cluster")) << problems[0].message;
  EXPECT_TRUE(mentions(problems[1], "'many' is not a whole number")) << problems[1].message;
  EXPECT_TRUE(mentions(problems[2], "is set twice")) << problems[2].message;
  EXPECT_TRUE(mentions(problems[3], "0s to 1h is allowed")) << problems[3].message;
  EXPECT_TRUE(mentions(problems[4], "is not allow or refuse")) << problems[4].message;
  EXPECT_TRUE(std::ranges::is_sorted(problems, {}, &Problem::line));
}

struct BadValue {
  std::string_view yaml;
  std::string_view said;
};

TEST(Configuration, RefusesValuesOfTheWrongType) {
  const BadValue cases[] = {
      {"scheduling:\n  max_queue_size: \"5\"\n", "without quotes"},
      {"scheduling:\n  max_queue_size: !!int 5\n", "without quotes and tags"},
      {"scheduling:\n  max_queue_size: [5]\n", "not a list"},
      {"scheduling:\n  max_queue_size:\n", "must be a value"},
      {"scheduling:\n  max_queue_size: ~\n", "must be a value"},
      {"scheduling:\n  max_queue_size: -1\n", "not a whole number from 1"},
      {"scheduling:\n  max_queue_size: 1.5\n", "not a whole number"},
      {"scheduling:\n  max_queue_size: 99999999999999999999999\n", "out of range"},
      {"scheduling: 5\n", "is a section"},
      {"scheduling:\n  - 5\n", "is a section"},
      {"scheduling:\n  priority_points: 5\n", "is a section"},
      {"- 5\n", "must hold sections"},
      {"hello\n", "must hold sections"},
      {"? [a]\n: 5\n", "a key must be a word"},
      {"fault_tolerance:\n  requeue_on_node_loss: yes\n", "neither true nor false"},
      {"policies:\n  max_job_duration_hours: 48h\n", "whole number from 1 to 8760"},
      {"policies:\n  stop_grace: soon\n", "HH:MM:SS"},
      {"execution:\n  output_rotate_bytes: 1K\n", "64K to 1T"},
      {"a: 1\n---\nb: 2\n", "a second document"},
      {"---\n---\n", "a second document"},
      {", a\n", "not valid YAML"},
      {"--- , a\n", "a second document"},
      {"scheduling: {max_queue_size: 5\n", "not valid YAML"},
      {"\tscheduling:\n", "not valid YAML"},
      {"scheduling: *missing\n", "not valid YAML"},
      {std::string_view("sched\0uling:\n", 13), "NUL"},
  };
  for (const auto& [yaml, said] : cases) {
    const auto problems = problems_of(yaml);
    ASSERT_FALSE(problems.empty()) << yaml;
    EXPECT_TRUE(std::ranges::any_of(problems, [&](const Problem& p) { return mentions(p, said); }))
        << yaml << " -> " << problems[0].message;
  }
}

TEST(Configuration, ChecksKeysAgainstEachOtherAtTheirPlace) {
  const auto problems =
      problems_of("fault_tolerance:\n  retry_backoff: 1h\n  max_retry_backoff: 1m\n");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].line, 3);
  EXPECT_TRUE(mentions(problems[0], "must not be less")) << problems[0].message;
  EXPECT_EQ(problems_of("fault_tolerance:\n  retry_backoff: 1h\n").size(), 1U);
  EXPECT_EQ(problems_of("scheduling:\n  priority_points:\n    low: 20000\n").size(), 1U);
}

TEST(Configuration, AnnotationsOfPodsAreNamedByTheBeginningsOfTheirKeys) {
  const auto problems_with = [](std::string_view text) {
    return problems_of(fmt::format("engines: {{kubernetes: {{annotations: \"{}\"}}}}\n", text));
  };
  const Checked checked = parse_configuration(
      "engines:\n  kubernetes:\n    annotations: gpu-fraction nvidia.com/container.main.*\n");
  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(checked->kubernetes_annotations.words,
            (std::vector<std::string>{"gpu-fraction", "nvidia.com/container.main.*"}));
  for (const std::string_view wrong : {"*", "gpu-fraction */memory", "a=b", "a,b", "/a"}) {
    const auto problems = problems_with(wrong);
    ASSERT_EQ(problems.size(), 1U) << wrong;
    EXPECT_EQ(problems[0].key, "engines.kubernetes.annotations");
    EXPECT_TRUE(mentions(problems[0], "keys of annotations")) << problems[0].message;
  }
}

TEST(Configuration, ReadingsOfAClusterNeedAClusterANamespaceAndAPlainPath) {
  const auto key_of = [](std::string_view keys) {
    const auto problems = problems_of(fmt::format(
        "engines: {{kubernetes: {{in_cluster: true, readings: exporter, {}}}}}\n", keys));
    return problems.size() == 1 ? problems[0].key : fmt::format("{} problems", problems.size());
  };
  EXPECT_EQ(key_of("exporter: {namespace: monitoring, port: 9401, path: /metrics}"), "0 problems");
  EXPECT_EQ(key_of("exporter: {namespace: a/b}"), "engines.kubernetes.exporter.namespace");
  EXPECT_EQ(key_of("exporter: {path: metrics}"), "engines.kubernetes.exporter.path");
  EXPECT_EQ(key_of("exporter: {path: /../../nodes}"), "engines.kubernetes.exporter.path");
  EXPECT_EQ(key_of("exporter: {path: \"/metrics?a=b\"}"), "engines.kubernetes.exporter.path");
  EXPECT_EQ(key_of("exporter: {port: 0}"), "engines.kubernetes.exporter.port");
  const auto problems = problems_of("engines: {kubernetes: {readings: exporter}}\n");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].key, "engines.kubernetes.readings");
}

TEST(Configuration, ADefaultTimeLimitIsAtMostTheLongestAndGivesWayIfNoFileSetsIt) {
  const auto problems =
      problems_of("scheduling: {default_time_limit: 5h}\npolicies: {max_job_duration_hours: 4}\n");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].key, "scheduling.default_time_limit");
  EXPECT_TRUE(mentions(problems[0], "max_job_duration_hours")) << problems[0].message;
  EXPECT_EQ(problems_of("policies: {max_job_duration_hours: 1}\n"), std::vector<Problem>());
  EXPECT_EQ(Configuration().policy.default_time_limit, base::hours(4));
}

TEST(Configuration, ShowsNoControlCharactersOfAFileThatIsNotOne) {
  for (const Problem& problem :
       problems_of("\"\\e[31mred\": 1\nscheduling:\n  max_queue_size: \"\\e\"\n")) {
    EXPECT_EQ(problem.message.find('\x1b'), std::string::npos);
    EXPECT_EQ(problem.key.find('\x1b'), std::string::npos);
  }
}

TEST(Configuration, SaysThatAFileCannotBeRead) {
  const Checked checked = read_configuration("/nonexistent/gpu-platform.yaml");
  ASSERT_FALSE(checked.has_value());
  EXPECT_TRUE(mentions(checked.error()[0], "No such file")) << checked.error()[0].message;
}

TEST(Configuration, RefusesAFileThatIsTooLarge) {
  EXPECT_FALSE(parse_configuration(std::string(2 << 20, '#')).has_value());
}

TEST(ReferencePage, IsTheCommittedOne) {
  const std::string path = GP_SOURCE_DIR "/docs/configuration.md";
  std::stringstream committed;
  committed << std::ifstream(path).rdbuf();
  EXPECT_EQ(committed.str(), reference_page())
      << "write it anew: gpu-platform config reference > docs/configuration.md";
}

TEST(ReferencePage, HasAnExampleThatIsValid) {
  const std::string page = reference_page();
  const std::size_t begin = page.find("```yaml\n") + 8;
  const std::string yaml = page.substr(begin, page.find("```", begin) - begin);
  const Checked checked = parse_configuration(yaml);
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "page");
  Configuration values = *checked;
  values.places.clear();
  EXPECT_EQ(values, Configuration{});
}

// Random damage to a valid file: an answer always, never a crash, and never a configuration out of
// bounds.
TEST(Configuration, SurvivesDamagedFiles) {
  const std::string page = reference_page();
  const std::size_t begin = page.find("```yaml\n") + 8;
  const std::string valid = page.substr(begin, page.find("```", begin) - begin);
  constexpr std::string_view kPieces[] = {":",  "-",  "[", "]",     "{",    "}", "&a ", "*a",
                                          "!",  "|",  ">", "'",     "\"",   "#", "\n",  "  ",
                                          "\t", "<<", "?", "---\n", "\xff", "%", "0"};
  base::Prng random(42);
  for (std::uint64_t round = 0; round < base::rounds(3000); ++round) {
    std::string damaged = valid;
    for (std::uint64_t i = 1 + random.below(4); i > 0; --i) {
      const std::size_t at = random.below(damaged.size());
      if (random.chance(1, 2)) {
        damaged.insert(at, kPieces[random.below(std::size(kPieces))]);
      } else {
        damaged.erase(at, 1 + random.below(12));
      }
    }
    const Checked checked = parse_configuration(damaged);
    if (checked.has_value()) {
      EXPECT_GE(checked->api_threads, 1U) << damaged;
      EXPECT_GE(checked->policy.max_retry_backoff, checked->policy.retry_backoff) << damaged;
    } else {
      EXPECT_FALSE(checked.error().empty()) << damaged;
    }
  }
}

TEST(Configuration, SurvivesDeepNesting) {
  for (const char open : {'[', '{'}) {
    EXPECT_FALSE(parse_configuration(std::string(100'000, open)).has_value());
  }
  std::string nested;
  for (int depth = 0; depth < 3000; ++depth)
    nested += std::string(static_cast<std::size_t>(depth % 200), ' ') + "a:\n";
  EXPECT_FALSE(parse_configuration(nested).has_value());
}

// ---- included files

class Include : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& yaml) const {
    std::ofstream(folder_ + "/" + name) << yaml;
  }
  // The first problem, as it is shown; empty: there is none.
  std::string problem() const {
    const Checked checked = read_configuration(folder_ + "/site.yaml");
    return checked ? std::string() : describe(checked.error().front(), "site.yaml");
  }

  const std::string folder_ = testing::TempDir() + "/include_test";
};

TEST_F(Include, FilesCountAsIfTheyStoodThere) {
  write("site.yaml", "include: [teams.yaml, limits.yaml]\napi: {threads: 3}\n");
  write("teams.yaml", "teams: [{name: vision}]\n");
  write("limits.yaml", "scheduling: {max_queue_size: 7}\n");
  const Checked checked = read_configuration(folder_ + "/site.yaml");
  ASSERT_TRUE(checked) << problem();
  EXPECT_EQ(checked->policy.organisation->teams.size(), 1u);
  EXPECT_EQ(checked->policy.max_queue_size, 7u);
  EXPECT_EQ(checked->api_threads, 3u);
}

TEST_F(Include, ProblemsNameTheIncludedFile) {
  write("site.yaml", "include: more.yaml\n");
  write("more.yaml", "scheduling:\n  max_queue_sice: 7\n");
  EXPECT_TRUE(problem().starts_with(folder_ + "/more.yaml:2:3: unknown key")) << problem();
  write("more.yaml", "teams: [{name: a, shares: 0}]\n");
  EXPECT_TRUE(problem().starts_with(folder_ + "/more.yaml:1:")) << problem();
  write("more.yaml", "a: [\n");
  EXPECT_TRUE(problem().starts_with(folder_ + "/more.yaml:")) << problem();
  write("more.yaml", "include: site.yaml\n");
  EXPECT_THAT(problem(), testing::HasSubstr("an included file cannot include others"));
}

TEST_F(Include, KeyInTwoFilesIsRefusedWithBothPlaces) {
  write("site.yaml", "include: more.yaml\nscheduling: {max_queue_size: 5}\n");
  write("more.yaml", "scheduling:\n  max_queue_size: 7\n");
  EXPECT_EQ(problem(), folder_ +
                           "/more.yaml:2:3: 'scheduling.max_queue_size' is set in the including "
                           "file too, in line 2: set it once");
}

TEST_F(Include, FileThatIsNotThereOrNoNameIsRefused) {
  write("site.yaml", "include: nowhere.yaml\n");
  EXPECT_THAT(problem(), testing::HasSubstr("nowhere.yaml cannot be read"));
  write("site.yaml", "include: [[a]]\n");
  EXPECT_THAT(problem(), testing::HasSubstr("must be the path of a file or a list of them"));
}

}  // namespace
}  // namespace gpu_platform::config
