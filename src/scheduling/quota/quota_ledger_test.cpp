#include "scheduling/quota/quota_ledger.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "model/job_spec.h"

namespace gpu_platform::scheduling {
namespace {

using model::QuotaKind;

model::JobSpec spec_of(std::string user, std::string team, std::uint32_t gpus,
                       base::Duration limit = base::hours(1)) {
  model::JobSpec spec;
  spec.user = std::move(user);
  spec.team = std::move(team);
  spec.request.gpus = gpus;
  spec.time_limit = limit;
  return spec;
}

const model::Organisation kLab{.teams = {{"lab", {}, 1, {}, {.max_gpus = 8}},
                                         {"vision", "lab", 1, {}, {.max_running_jobs = 2}},
                                         {"speech", "lab", 1, {}, {}}},
                               .of_each_user = {.max_gpus = 4},
                               .of_users = {{"ann", {.gpu_hours = 10}}},
                               .of_projects = {{"demo", {.max_queued_jobs = 1}}}};

TEST(QuotaLedger, CountsAJobForItsTeamAndThoseAboveForItsUserAndItsProject) {
  model::JobSpec spec = spec_of("bob", "vision", 2);
  spec.project = "demo";
  std::vector<std::string> names;
  for (const QuotaLimit& limit : limits_of(kLab, spec)) names.push_back(limit.subject.name);
  EXPECT_EQ(names, (std::vector<std::string>{"vision", "lab", "bob", "demo"}));
  EXPECT_EQ(limits_of({}, spec).size(), 0U);
}

TEST(QuotaLedger, ATeamsLimitCountsAllBelowIt) {
  QuotaLedger ledger;
  const model::JobSpec ann = spec_of("ann", "vision", 6);
  ledger.add(kLab, ann, use_of_start(ann));
  const auto excess = excess_if_started(kLab, spec_of("bob", "speech", 3), ledger);
  ASSERT_TRUE(excess);
  EXPECT_EQ(describe(*excess),
            "team lab holds 6 GPUs and this job needs 3 more; the limit is 8 (max_gpus)");
  EXPECT_FALSE(excess_if_started(kLab, spec_of("bob", "speech", 2), ledger));
  ledger.remove(kLab, ann, use_of_start(ann));
  EXPECT_EQ(ledger, QuotaLedger());
}

TEST(QuotaLedger, AUsersOwnLimitsTakeThePlaceOfThoseOfEachUser) {
  EXPECT_TRUE(excess_if_started(kLab, spec_of("bob", "", 5), {}));
  EXPECT_FALSE(excess_if_started(kLab, spec_of("ann", "", 5), {}));
}

TEST(QuotaLedger, GpuHoursAreCommittedByTheTimeLimit) {
  QuotaLedger ledger;
  const model::JobSpec running = spec_of("ann", "", 4, base::hours(2));
  ledger.add(kLab, running, use_of_start(running));
  EXPECT_FALSE(excess_if_started(kLab, spec_of("ann", "", 2, base::hours(1)), ledger));
  const auto excess = excess_if_started(kLab, spec_of("ann", "", 2, base::minutes(61)), ledger);
  ASSERT_TRUE(excess);
  EXPECT_EQ(describe(*excess),
            "user ann has used or may still use 8 GPU-hours of this period and this job may use "
            "2.034 more; the limit is 10 (gpu_hours)");
  // Use by attempts that are over counts as well.
  ledger.remove(kLab, running, use_of_start(running));
  ledger.add_used(QuotaLimit{{model::QuotaHolder::kUser, "ann"}, {}},
                  gpu_time(base::kWholeGpu, base::hours(9)), "H100-80GB");
  EXPECT_TRUE(excess_if_started(kLab, spec_of("ann", "", 2, base::hours(1)), ledger));
  EXPECT_FALSE(excess_if_started(kLab, spec_of("ann", "", 1, base::hours(1)), ledger));
}

TEST(QuotaLedger, WhoAsksForNothingOfALimitPassesNoneOfIt) {
  QuotaLedger ledger;
  const model::JobSpec big = spec_of("cyd", "lab", 20);
  ledger.add(kLab, big, use_of_start(big));  // the limit was lowered since
  EXPECT_FALSE(excess_if_started(kLab, spec_of("bob", "lab", 0), ledger));
  EXPECT_TRUE(present_excess(limits_of(kLab, big).front(), ledger));
}

TEST(QuotaLedger, WaitingJobsHaveALimitOfTheirOwn) {
  model::JobSpec spec = spec_of("bob", "", 1);
  spec.project = "demo";
  QuotaLedger ledger;
  EXPECT_FALSE(excess_if_queued(kLab, spec, ledger));
  ledger.add(kLab, spec, {.waiting_jobs = 1});
  EXPECT_TRUE(excess_if_queued(kLab, spec, ledger));
  EXPECT_FALSE(excess_if_started(kLab, spec, ledger));
}

TEST(QuotaLedger, CountsAJobUnderTheTypeThatItGot) {
  const model::Organisation organisation{
      .teams = {{"lab", {}, 1, {}, {.max_gpus = 8, .gpu_types = {{"A100", 4}, {"H100", 2}}}}}};
  QuotaLedger ledger;
  const model::JobSpec two = spec_of("ann", "lab", 2);
  ledger.add(organisation, two, use_of_start(two), "H100-80GB");
  const auto excess = excess_on_type(organisation, two, "H100-80GB", ledger);
  ASSERT_TRUE(excess);
  EXPECT_EQ(describe(*excess),
            "team lab holds 2 GPUs of type H100 and this job needs 2 more; the limit is 2 "
            "(gpu_types.H100.max_gpus)");
  EXPECT_FALSE(excess_on_type(organisation, two, "A100-40GB", ledger)) << "a family has its own";
  ledger.add(organisation, two, use_of_start(two), "A100-40GB");
  EXPECT_FALSE(excess_on_type(organisation, two, "A100-80GB", ledger));
  ledger.add(organisation, two, use_of_start(two), "A100-80GB");
  EXPECT_TRUE(excess_on_type(organisation, two, "A100-40GB", ledger)) << "counts all its types";
  EXPECT_FALSE(excess_if_started(organisation, two, ledger)) << "6 of 8 in all";
  EXPECT_FALSE(excess_on_type(organisation, two, "T4-16GB", ledger));
  for (const char* type : {"H100-80GB", "A100-40GB", "A100-80GB"}) {
    ledger.remove(organisation, two, use_of_start(two), type);
  }
  EXPECT_EQ(ledger, QuotaLedger());
}

model::TypeQuota hours_of(std::string type, std::uint32_t hours) {
  return {.type = std::move(type), .max_gpus = {}, .gpu_hours = hours};
}

TEST(QuotaLedger, GpuHoursOfATypeAreThoseOfTheAttemptsThatGotIt) {
  const model::Organisation organisation{
      .of_users = {{"ann", {.gpu_types = {hours_of("A100", 6), hours_of("H100", 4)}}}}};
  QuotaLedger ledger;
  const model::JobSpec two = spec_of("ann", "", 2);
  ledger.add(organisation, two, use_of_start(two), "H100-80GB");
  ledger.add_used(organisation,
                  {.begin = {},
                   .used = {{{model::QuotaHolder::kUser, "ann"},
                             {{"H100-80GB", gpu_time(base::kWholeGpu, base::hours(1))},
                              {"T4-16GB", gpu_time(base::kWholeGpu, base::hours(9))}}}}});
  const auto excess = excess_on_type(organisation, two, "H100-80GB", ledger);
  ASSERT_TRUE(excess);
  EXPECT_EQ(
      describe(*excess),
      "user ann has used or may still use 3 H100 GPU-hours of this period and this job may use "
      "2 more; the limit is 4 (gpu_types.H100.gpu_hours)");
  EXPECT_FALSE(excess_on_type(organisation, spec_of("ann", "", 1), "H100-80GB", ledger));
  EXPECT_FALSE(excess_on_type(organisation, two, "A100-40GB", ledger));
  EXPECT_FALSE(excess_on_type(organisation, two, "T4-16GB", ledger));
  EXPECT_FALSE(excess_if_started(organisation, two, ledger));
}

TEST(QuotaLedger, GpuHoursOfASlowerTypeAreMore) {
  const model::Organisation organisation{
      .of_each_user = {.gpu_types = {hours_of("A100", 3), hours_of("H100", 2)}}};
  model::JobSpec spec = spec_of("ann", "", 2);
  spec.request.gpu_types = {"H100", "A100"};
  spec.request.gpu_speeds = {1000, 500};
  EXPECT_FALSE(excess_on_type(organisation, spec, "H100-80GB", {}));
  EXPECT_TRUE(excess_on_type(organisation, spec, "A100-40GB", {})) << "two hours on two GPUs";
}

TEST(QuotaLedger, LongerAttemptsCommitHoursOfTheirTypesAndOfAll) {
  const model::Organisation organisation{
      .of_each_user = {.gpu_hours = 8, .gpu_types = {hours_of("H100", 3)}}};
  const model::JobSpec spec = spec_of("ann", "", 2);
  QuotaLedger ledger;
  ledger.add(organisation, spec, use_of_start(spec), "H100-80GB");
  const auto excess_of_minutes = [&](std::int64_t minutes, std::string_view type) {
    QuotaLedger more;
    more.add(organisation, spec,
             {.committed = gpu_time(base::kWholeGpu * 2, base::minutes(minutes))}, type);
    return excess_of_hours(organisation, spec, ledger, more);
  };
  EXPECT_FALSE(excess_of_minutes(30, "H100-80GB"));
  EXPECT_EQ(excess_of_minutes(31, "H100-80GB")->gpu_type, "H100");
  EXPECT_FALSE(excess_of_minutes(180, "T4-16GB"));
  EXPECT_EQ(excess_of_minutes(181, "T4-16GB")->gpu_type, "");
}

TEST(QuotaLedger, BarsTheTypesWhoseLimitIsReachedAndNoOthers) {
  const model::Organisation organisation{.of_each_user = {.gpu_types = {{"H100", 1}}}};
  const std::map<std::string, std::uint64_t> cluster{{"A100-40GB", 8}, {"H100-80GB", 8}};
  model::JobSpec spec = spec_of("ann", "", 2);
  EXPECT_EQ(barred_types(organisation, spec, cluster, {}).types,
            std::vector<std::string>{"H100-80GB"});
  spec.request.gpu_types = {"A100"};
  EXPECT_TRUE(barred_types(organisation, spec, cluster, {}).types.empty());
  spec.request.gpu_types = {"H100"};
  spec.request.gpus = 0;
  EXPECT_TRUE(barred_types(organisation, spec, cluster, {}).types.empty());
}

// ---- against a count of everything, by hand

bool is_within(const model::Organisation& organisation, std::string team, const std::string& top) {
  while (!team.empty()) {
    if (team == top) return true;
    team = model::find_team(organisation, team)->parent;
  }
  return false;
}

// Whether all limits hold of these jobs.
bool holds(const model::Organisation& organisation, const std::vector<model::JobSpec>& jobs) {
  const auto check = [&](const model::Quota& quota, const auto& counts) {
    std::uint64_t gpus = 0;
    std::uint64_t count = 0;
    std::uint64_t gpu_minutes = 0;
    for (const model::JobSpec& job : jobs) {
      if (!counts(job)) continue;
      gpus += job.request.gpus;
      ++count;
      gpu_minutes += job.request.gpus *
                     static_cast<std::uint64_t>(job.time_limit.value() / base::minutes(1).value());
    }
    return (!quota.max_gpus || gpus <= *quota.max_gpus) &&
           (!quota.max_running_jobs || count <= *quota.max_running_jobs) &&
           (!quota.gpu_hours || gpu_minutes <= std::uint64_t{*quota.gpu_hours} * 60);
  };
  for (const model::Team& team : organisation.teams) {
    if (!check(team.quota, [&](const model::JobSpec& job) {
          return is_within(organisation, job.team, team.name);
        })) {
      return false;
    }
  }
  for (const std::string user : {"u0", "u1", "u2"}) {
    const auto own = std::ranges::find(organisation.of_users, user, &model::NamedQuota::name);
    const model::Quota& quota =
        own == organisation.of_users.end() ? organisation.of_each_user : own->quota;
    if (!check(quota, [&](const model::JobSpec& job) { return job.user == user; })) return false;
  }
  return true;
}

model::Quota draw_quota(base::Prng& random) {
  const auto sometimes = [&](std::uint64_t most) -> std::optional<std::uint32_t> {
    if (random.chance(1, 2)) return std::nullopt;
    return static_cast<std::uint32_t>(random.below(most));
  };
  return {sometimes(20), sometimes(6), {}, sometimes(30)};
}

// What is held and what may be used of one type, by hand.
struct OfType {
  std::uint32_t gpus = 0;
  std::uint64_t minutes = 0;  // of running jobs, by their limits, and of those that are over
};

// No limit on a type, nor on a family, is ever passed; and none keeps a job back that could start.
RC_GTEST_PROP(QuotaLedger, LetsAJobHaveATypeExactlyWhereItsLimitsHoldThen, ()) {
  base::Prng random(*rc::gen::arbitrary<std::uint64_t>());
  const auto sometimes = [&](std::uint64_t most) -> std::optional<std::uint32_t> {
    if (random.chance(1, 3)) return std::nullopt;
    return static_cast<std::uint32_t>(random.below(most));
  };
  model::Organisation organisation;
  for (const char* name : {"A100", "A100-40GB", "H100"}) {
    organisation.of_each_user.gpu_types.push_back(
        {.type = name, .max_gpus = sometimes(8), .gpu_hours = sometimes(30)});
  }
  const std::vector<std::string> types = {"A100-40GB", "A100-80GB", "H100-80GB", "T4-16GB"};
  QuotaLedger ledger;
  std::map<std::string, OfType> of;
  PeriodUse period;
  std::vector<std::pair<model::JobSpec, std::string>> running;
  const auto all_hold = [&] {
    return std::ranges::all_of(organisation.of_each_user.gpu_types, [&](const auto& limit) {
      OfType sum;
      for (const auto& [type, each] : of) {
        if (type != limit.type && !type.starts_with(limit.type + "-")) continue;
        sum.gpus += each.gpus;
        sum.minutes += each.minutes;
      }
      return sum.gpus <= limit.max_gpus.value_or(1000) &&
             sum.minutes <= std::uint64_t{limit.gpu_hours.value_or(100'000)} * 60;
    });
  };
  const auto minutes_of = [](const model::JobSpec& spec, std::int64_t divisor) {
    return spec.time_limit.value() / base::minutes(divisor).value() * spec.request.gpus;
  };
  for (int step = 0; step < 60; ++step) {
    if (!running.empty() && random.chance(1, 3)) {
      // It ends when half of its time is over.
      const auto gone = running.begin() + static_cast<std::ptrdiff_t>(random.below(running.size()));
      const auto& [spec, type] = *gone;
      ledger.remove(organisation, spec, use_of_start(spec), type);
      const auto used =
          gpu_time(gpu_share_of(spec.request), base::Duration(spec.time_limit.value() / 2));
      PeriodUse more;
      more.used[{model::QuotaHolder::kUser, "u"}][type] = used;
      period.used[{model::QuotaHolder::kUser, "u"}][type] += used;
      ledger.add_used(organisation, more);
      of[type].gpus -= spec.request.gpus;
      of[type].minutes -= static_cast<std::uint64_t>(minutes_of(spec, 2));
      running.erase(gone);
      continue;
    }
    const std::string& type = types[random.below(types.size())];
    model::JobSpec spec = spec_of("u", "", static_cast<std::uint32_t>(1 + random.below(3)));
    spec.time_limit = base::minutes(2 * static_cast<std::int64_t>(1 + random.below(120)));
    const OfType before = of[type];
    of[type].gpus += spec.request.gpus;
    of[type].minutes += static_cast<std::uint64_t>(minutes_of(spec, 1));
    const bool holds = all_hold();
    RC_ASSERT(holds == !excess_on_type(organisation, spec, type, ledger));
    if (!holds) {
      of[type] = before;
      continue;
    }
    ledger.add(organisation, spec, use_of_start(spec), type);
    running.emplace_back(spec, type);
  }
  QuotaLedger afresh;
  for (const auto& [spec, type] : running) afresh.add(organisation, spec, use_of_start(spec), type);
  afresh.add_used(organisation, period);
  RC_ASSERT(afresh == ledger);
}

RC_GTEST_PROP(QuotaLedger, LetsAJobStartExactlyWhereAllLimitsHoldThen, ()) {
  base::Prng random(*rc::gen::arbitrary<std::uint64_t>());
  model::Organisation organisation;
  for (std::uint64_t i = 0, n = random.below(4); i < n; ++i) {
    organisation.teams.push_back({"t" + std::to_string(i),
                                  i > 0 && random.chance(1, 2) ? "t" + std::to_string(i - 1) : "",
                                  1,
                                  {},
                                  draw_quota(random)});
  }
  organisation.of_each_user = draw_quota(random);
  if (random.chance(1, 2)) organisation.of_users = {{"u1", draw_quota(random)}};
  QuotaLedger ledger;
  std::vector<model::JobSpec> running;
  for (int step = 0; step < 60; ++step) {
    if (!running.empty() && random.chance(1, 3)) {
      const auto gone = running.begin() + static_cast<std::ptrdiff_t>(random.below(running.size()));
      ledger.remove(organisation, *gone, use_of_start(*gone));
      running.erase(gone);
      continue;
    }
    const std::uint64_t team = random.below(organisation.teams.size() + 1);
    const model::JobSpec spec =
        spec_of("u" + std::to_string(random.below(3)),
                team == organisation.teams.size() ? "" : "t" + std::to_string(team),
                static_cast<std::uint32_t>(1 + random.below(5)),
                base::minutes(static_cast<std::int64_t>(1 + random.below(240))));
    std::vector<model::JobSpec> then = running;
    then.push_back(spec);
    const bool may_start = !excess_if_started(organisation, spec, ledger);
    RC_ASSERT(may_start == holds(organisation, then));
    if (!may_start) continue;
    ledger.add(organisation, spec, use_of_start(spec));
    running = std::move(then);
  }
}

}  // namespace
}  // namespace gpu_platform::scheduling
