#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "simulation/scenarios/scenario.h"

namespace gpu_platform::simulation {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(GP_SCENARIOS)) {
    if (entry.path().extension() == ".scn") {
      files.push_back(fs::relative(entry.path(), GP_SCENARIOS).string());
    }
  }
  std::ranges::sort(files);
  return files;
}

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class ScenarioFile : public testing::TestWithParam<std::string> {};

TEST_P(ScenarioFile, Holds) {
  const auto scenario =
      parse_scenario(read(fs::path(GP_SCENARIOS) / GetParam()), "tests/scenarios/" + GetParam());
  ASSERT_TRUE(scenario) << scenario.error().message;
  const bool expects = std::ranges::any_of(scenario->statements, [](const Statement& statement) {
    return statement.verb.starts_with("expect");
  });
  EXPECT_TRUE(expects) << "a scenario that expects nothing cannot fail";
  EXPECT_EQ(run_scenario(*scenario), "");
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioFile, testing::ValuesIn(scenario_files()),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(Scenarios, AreThere) {
  EXPECT_GE(scenario_files().size(), 25U);
}

// ---- the language itself

struct Case {
  std::string text;
  std::string message;  // a part of it
};

TEST(ScenarioText, ErrorsNameFileLineAndWhatIsAllowed) {
  const Case cases[] = {
      {"node n1\nsumbit a", "x.scn:2: the statement 'sumbit' is unknown; did you mean 'submit'?"},
      {"submit a gpu=1", "x.scn:1: the option 'gpu' is unknown; did you mean 'gpus'?"},
      {"submit", "x.scn:1: 0 words follow 'submit'; it is written 'submit JOB'"},
      {"submit a b", "x.scn:1: 2 words follow 'submit'"},
      {"expect", "x.scn:1: expect what?"},
      {"\n\nexpect strat a n1", "x.scn:3: the statement 'expect strat' is unknown"},
      {"submit a gpus=1 gpus=2", "x.scn:1: the option 'gpus' is given twice"},
      {"expect wait a text=\"open", "x.scn:1: a quotation mark is not closed"},
      {"cancel a because=x", "x.scn:1: the option 'because' is unknown"},
      {"submit a limit=1h", "x.scn:1: the option 'limit' is called 'time'"},
      {"submit a gpus=1 wait_timeout=1m", "the option 'wait_timeout' is called 'wait-timeout'"},
      {"update a retries=1", "x.scn:1: the option 'retries' is unknown"},
      {"policy stop_grace=1m", "the option 'stop_grace' is called 'policies.stop_grace'"},
      {"policy points=4,3,2,1", "is called 'scheduling.priority_points.critical'"},
  };
  for (const Case& each : cases) {
    const auto parsed = parse_scenario(each.text, "x.scn");
    ASSERT_FALSE(parsed) << each.text;
    EXPECT_NE(parsed.error().message.find(each.message), std::string::npos)
        << parsed.error().message;
  }
}

TEST(ScenarioText, WhatDoesNotHoldIsToldWithItsLine) {
  const Case cases[] = {
      {"node n1 gpus=1\nsubmit a gpus=1\nexpect wait a",
       "x.scn:3: expected job waiting, found run"},
      {"node n1 gpus=1\nsubmit a gpus=2\nexpect answer ok",
       "x.scn:3: expected answer ok, found failed_precondition (gpus 2: the largest node"},
      {"node n1 gpus=1 model=zx80", "x.scn:1: 'zx80' is not a GPU type"},
      {"node n1\nsubmit a gpus=many", "x.scn:2: gpus: "},
      {"node n1\nsubmit a time=soon", "x.scn:2: time: "},
      {"policy policies.stop_grace=soon", "x.scn:1: policies.stop_grace: "},
      {"policy scheduling.order=alphabet", "x.scn:1: scheduling.order: 'alphabet' is not priority"},
      {"node n1\nsubmit a gpus=3 nodes=2", "x.scn:2: gpus: cannot be divided"},
      {"node n1\nlose n2", "x.scn:2: there is no node 'n2'"},
      {"node n1\nexpect state a running", "x.scn:2: there is no job 'a'"},
      {"node n1 gpus=1\nsubmit a gpus=1\nexpect start a n1 because=backfill",
       "x.scn:3: expected because backfill, found immediate"},
      {"node n1 gpus=1\nsubmit a gpus=1\nexpect state a running exit=0",
       "x.scn:3: expected exit 0, found none"},
      {"node n1\nafter 2m\nat 1m", "x.scn:3: this time has passed"},
  };
  for (const Case& each : cases) {
    const auto parsed = parse_scenario(each.text, "x.scn");
    ASSERT_TRUE(parsed) << parsed.error().message;
    const std::string result = run_scenario(*parsed);
    EXPECT_NE(result.find(each.message), std::string::npos) << each.text << "\n" << result;
  }
}

TEST(ScenarioText, CommentsBlankLinesAndQuotesAreRead) {
  const auto parsed = parse_scenario(
      "# a comment\n\n  submit a gpus=1  # behind\nexpect wait a text=\"a # b\"", "x");
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->statements.size(), 2U);
  EXPECT_EQ(parsed->statements[0].line, 3U);
  EXPECT_EQ(parsed->statements[1].options.at("text"), "a # b");
}

}  // namespace
}  // namespace gpu_platform::simulation
