#include "config/yaml/organisation.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "config/yaml/reader.h"

namespace gpu_platform::config {
namespace {

// The first problem as a person sees it; empty where there is none.
std::string problem_of(std::string_view yaml, const std::string& folder = ".") {
  const Checked checked = parse_configuration(yaml, folder);
  return checked ? std::string() : describe(checked.error().front(), "site.yaml");
}

TEST(Organisation, IsReadWithTeamsMembersSharesAndLimits) {
  const Checked checked = parse_configuration(R"(
teams:
  - name: research
    shares: 3
    max_gpus: 64
    gpu_types: {h100: {max_gpus: 16, guaranteed_gpus: 4, borrow_limit: 2, lend_limit: 1, gpu_hours: 500}, a100_40gb: {max_gpus: 8}, NVIDIA Foo: {}}
  - name: vision
    parent: research
    users: [ann, bob: 2]
    max_running_jobs: 20
    max_queued_jobs: 500
    gpu_hours: 10000
quotas:
  period: month
  user_default: {max_running_jobs: 10}
  users:
    cyd: {max_gpus: 16}
    ann: {}
  projects:
    demo: {gpu_hours: 100}
policies:
  max_gpus_per_user: 8
scheduling:
  order: fair_share
  fair_share:
    half_life: 2d
    gpu_weights: {h100: 2, t4_16gb: 0.25}
)");
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "site.yaml");
  const model::Organisation expected{
      .teams = {{"research",
                 {},
                 3,
                 {},
                 {.max_gpus = 64,
                  .gpu_types = {{"A100-40GB", 8}, {"H100", 16, 4, 2, 1, 500}, {"NVIDIA Foo", {}}}}},
                {"vision",
                 "research",
                 1,
                 {{"ann", 1}, {"bob", 2}},
                 {.max_running_jobs = 20, .max_queued_jobs = 500, .gpu_hours = 10'000}}},
      .of_each_user = {.max_gpus = 8, .max_running_jobs = 10},
      .of_users = {{"ann", {}}, {"cyd", {.max_gpus = 16}}},
      .of_projects = {{"demo", {.gpu_hours = 100}}},
      .period = model::QuotaPeriod::kThirtyDays};
  EXPECT_EQ(*checked->policy.organisation, expected);
  EXPECT_EQ(checked->policy.order, model::QueueOrder::kFairShare);
  EXPECT_EQ(checked->policy.fair_share.half_life, base::hours(48));
  EXPECT_EQ(checked->policy.fair_share.gpu_weights,
            (std::vector<model::GpuWeight>{{"H100", 2000}, {"T4-16GB", 250}}));
}

struct BadFile {
  std::string_view yaml;
  std::string_view said;
};

TEST(Organisation, IsRefusedWithThePlaceAndWhatIsAllowed) {
  const BadFile cases[] = {
      {"teams:\n  - name: a\n    parent: a\n", "site.yaml:2:5: team 'a' is its own parent"},
      {"teams:\n  - {name: a, parent: b}\n  - {name: b, parent: a}\n", ":2:5: team 'a' is below"},
      {"teams:\n  - {name: a}\n  - {name: a}\n", ":3:5: team 'a' is defined already"},
      {"teams:\n  - {name: vision}\n  - {name: b, parent: vison}\n", "mean 'vision'?"},
      {"teams:\n  - {name: a, shares: 0}\n", "'shares' in 'teams' must be a whole number from 1"},
      {"teams:\n  - {name: a, shares: -1}\n", "'shares' in 'teams' must be a whole number from 1"},
      {"teams:\n  - {name: a, users: [x, x]}\n", ":2:26: user 'x' is in this team already"},
      {"teams:\n  - {name: a, users: [x: 0]}\n", "'shares' in 'teams'"},
      {"teams:\n  - {name: a, users: x}\n", "must be a list"},
      {"teams:\n  - {name: a, gpu: 5}\n", "unknown key 'gpu' in 'teams'; known here: name"},
      {"teams:\n  - {name: a, max_gpu: 5}\n", "did you mean 'max_gpus'?"},
      {"teams:\n  - {shares: 5}\n", "a team without a name"},
      {"teams:\n  - {name: a, guaranteed_gpus: -1}\n", "'guaranteed_gpus' in 'teams' must be"},
      {"teams:\n  - {name: a, max_gpus: 3, guaranteed_gpus: 4}\n", "at most max_gpus, which is 3"},
      {"teams:\n  - {name: a, borrow_limit: 4}\n",
       "'borrow_limit' in 'teams' needs guaranteed_gpus"},
      {"teams:\n  - {name: a, lend_limit: 4}\n", "'lend_limit' in 'teams' needs guaranteed_gpus"},
      {"teams:\n  - {name: a, over_quota_weight: 4}\n", "write 'guaranteed_gpus: 0' for none"},
      {"teams:\n  - {name: a, guaranteed_gpus: 0, over_quota_weight: 1000001}\n",
       "'over_quota_weight' in 'teams' must be a whole number from 0 to 1000000"},
      {"quotas:\n  user_default: {guaranteed_gpus: 0, over_quota_weight: 2}\n", "by name"},
      {"teams:\n  - {name: a, guaranteed_gpus: 3, lend_limit: 4}\n", "at most guaranteed_gpus, "},
      {"teams:\n  - {name: a, gpu_types: {H100: {max: 4}}}\n", "unknown key 'max' in 'teams'"},
      {"teams:\n  - {name: a, gpu_types: {H100: {max_gpus: -4}}}\n", "'max_gpus' in 'teams' must"},
      {"teams:\n  - {name: a, gpu_types: {H100: {}, h100: {}}}\n", "'H100' has limits already"},
      {"teams:\n  - {name: a, gpu_types: [H100]}\n", "must be names with their values"},
      {"quotas:\n  users:\n    ann: {gpu_types: {H100: 4}}\n", "must be names with their values"},
      {"quotas:\n  users:\n    ann: {gpu_types: {H100: {gpu_hours: -4}}}\n",
       ":3:41: 'gpu_hours' in 'quotas.users' must be a whole number from 0"},
      {"quotas:\n  users:\n    ann: {gpu_types: {H100: {gpu_hour: 4}}}\n",
       "did you mean 'gpu_hours'?"},
      {"quotas:\n  users:\n    ann: {gpu_types: {H100: {max_running_jobs: 4}}}\n",
       "unknown key 'max_running_jobs' in 'quotas.users'; known here: max_gpus"},
      {"teams:\n  - {name: a, gpu_types: {H100: {guaranteed_gpus: x}}}\n",
       "'guaranteed_gpus' in 'teams' must be"},
      {"teams:\n  - {name: a, gpu_types: {H100: {max_gpus: 3, guaranteed_gpus: 4}}}\n",
       ":2:27: 'guaranteed_gpus' in 'gpu_types.H100' of 'teams' must be at most max_gpus, which is "
       "3"},
      {"teams:\n  - {name: a, gpu_types: {H100: {borrow_limit: 4}}}\n",
       "'borrow_limit' in 'gpu_types.H100' of 'teams' needs guaranteed_gpus"},
      {"teams:\n  - {name: a, gpu_types: {H100: {guaranteed_gpus: 3, lend_limit: 4}}}\n",
       "'lend_limit' in 'gpu_types.H100' of 'teams' must be at most guaranteed_gpus, which is 3"},
      {"teams:\n  - {name: a, guaranteed_gpus: 5, gpu_types: {H100: {guaranteed_gpus: 3}, T4: "
       "{guaranteed_gpus: 3}}}\n",
       "'guaranteed_gpus' of all 'gpu_types' in 'teams' add up to 6: at most guaranteed_gpus, "
       "which is 5"},
      {"teams:\n  - {name: a, max_gpus: 2, gpu_types: {H100: {guaranteed_gpus: 3}}}\n",
       "add up to 3: at most max_gpus, which is 2"},
      {"teams:\n  - {name: a, guaranteed_gpus: 5, lend_limit: 3, gpu_types: {H100: "
       "{guaranteed_gpus: 3}}}\n",
       "at most the part of guaranteed_gpus that is not in gpu_types, which is 2"},
      {"teams:\n  - {name: a, gpu_types: {A100: {guaranteed_gpus: 3}}}\n  - {name: b, gpu_types: "
       "{a100_40gb: {guaranteed_gpus: 3}}}\n",
       ":3:27: 'guaranteed_gpus' in 'gpu_types.A100-40GB' of 'teams': there are guarantees for "
       "'A100' too"},
      {"quotas:\n  user_default: {gpu_types: {H100: {guaranteed_gpus: 4}}}\n", "for users by name"},
      {"quotas:\n  projects:\n    x: {gpu_types: {H100: {guaranteed_gpus: 4}}}\n",
       "not for projects"},
      {"teams:\n  - {name: a, reclaim_min_runtime: soon}\n", "must be a time from 0s to 365d"},
      {"teams:\n  - {name: a, reclaim_min_runtime: 400d}\n", "must be a time from 0s to 365d"},
      {"teams:\n  - {name: a, max_reclaims_per_job: -1}\n", "'max_reclaims_per_job' in 'teams'"},
      {"quotas:\n  users:\n    ann: {max_reclaims_per_job: 1}\n", "unknown key"},
      {"teams:\n  - {name: a, preempt_min_runtime: -5m}\n", "must be a time from 0s to 365d"},
      {"teams:\n  - {name: a, default_time_limit: long}\n", "must be a time from 0s to 365d"},
      {"teams:\n  - {name: a, default_time_limit: 0s}\n",
       "'default_time_limit' in 'teams' must be"},
      {"teams:\n  - {name: a}\n  - {name: b, default_time_limit: 49h}\n",
       ":3:5: team 'b': default_time_limit is 49h, and the site's longest time limit is 2d"},
      {"quotas:\n  users:\n    ann: {default_time_limit: 1h}\n", "unknown key"},
      {"quotas:\n  user_default: {guaranteed_gpus: 4}\n", "for users by name"},
      {"quotas:\n  projects:\n    x: {guaranteed_gpus: 4}\n", "not for projects"},
      {"allocation: {reserved_ratio: 1.001}\n", "must be 0 to 1, with three decimals"},
      {"allocation: {reserved_ratio: -0.1}\n", "must be 0 to 1, with three decimals"},
      {"allocation: {mode: mixed}\n", "guaranteed, static, dynamic or hybrid"},
      {"teams:\n  - a\n", "must begin with '- name"},
      {"teams: 5\n", "must be a list of teams"},
      {"teams_file: nowhere.yaml\n", "nowhere.yaml cannot be read: No such file"},
      {"quotas:\n  users:\n    ann: 5\n", "must be names with their values"},
      {"quotas:\n  users:\n    ann: {max_gpus: many}\n", "site.yaml:3:21: 'max_gpus'"},
      {"quotas:\n  user_default: {max_gpus: 1, max_gpus: 2}\n", "twice"},
      {"quotas:\n  user_default: {max_gpus: 1}\npolicies:\n  max_gpus_per_user: 2\n",
       "is set already, by policies.max_gpus_per_user"},
      {"quotas:\n  period: year\n", "is not day, week or month"},
      {"scheduling:\n  order: random\n", "is not priority, fcfs, fair_share or weighted"},
      {"scheduling:\n  fair_share:\n    half_life: 0\n", "out of range: 1m to 365d is allowed"},
      {"scheduling:\n  fair_share:\n    gpu_weights: {H100: -1}\n", "must be 0.001 to 1000"},
      {"scheduling:\n  fair_share:\n    gpu_weights: {H100: 0.0001}\n", "must be 0.001 to 1000"},
      {"scheduling:\n  fair_share:\n    gpu_weights: {H100: 1, h100: 2}\n", "has a weight already"},
      {"scheduling:\n  weights: {age: 0, priority: 0, fair_share: 0, size: 0}\n",
       "the weights are all 0"},
  };
  for (const auto& [yaml, said] : cases) {
    const std::string problem = problem_of(yaml);
    EXPECT_NE(problem.find(said), std::string::npos) << yaml << "\n -> " << problem;
  }
}

TEST(Organisation, OfAnIncludedFileIsReadBesideTheConfigurationAndItsErrorsNameIt) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "organisation_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "teams.yaml") << "- name: vision\n  users: [ann]\n";
  std::ofstream(folder / "bad.yaml") << "- name: vision\n  shares: 0\n";
  std::ofstream(folder / "site.yaml") << "teams_file: teams.yaml\n";

  const Checked checked = read_configuration((folder / "site.yaml").string());
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "site.yaml");
  EXPECT_EQ(checked->policy.organisation->teams.size(), 1U);
  const std::string problem = problem_of("teams_file: bad.yaml\n", folder.string());
  EXPECT_EQ(problem, (folder / "bad.yaml").string() +
                         ":2:11: 'shares' in 'teams_file' must be a whole number from 1 to "
                         "1000000");
  const std::string both = problem_of("teams: []\nteams_file: teams.yaml\n", folder.string());
  EXPECT_NE(both.find("this file has the teams already"), std::string::npos) << both;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gpu_platform::config
