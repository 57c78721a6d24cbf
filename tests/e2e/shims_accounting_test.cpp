// Slurm's commands of accounts say what the ledger says.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "shims_fixture.h"

namespace gpu_platform::e2e {
namespace {

// A team of the caller's with a budget of 100.
class SlurmAccounts : public SlurmCommands {
 protected:
  SlurmAccounts()
      : SlurmCommands(
            {.config = "teams:\n  - name: science\n  - name: vision\n    parent: science\n"
                       "    users: [" +
                       caller() +
                       "]\naccounting:\n  budgets:\n    - {team: vision, amount: 100}\n"}) {}

  static std::string caller() {
    const std::string out = run_command({"/usr/bin/id", "-un"}, {}, {}).out;
    return out.substr(0, out.find('\n'));
  }

  // The id of a job whose cost changes no more.
  std::string ended_job(const std::vector<std::string>& words) const {
    std::string id = sbatch(words);
    EXPECT_TRUE(eventually([&] {
      const nlohmann::json job = daemon.job(id);
      return job.is_object() && job["cost"].is_object() && job["cost"]["running"] == false;
    })) << id;
    return id;
  }
};

// The figures of `usage` as sreport writes them in seconds: one billing for an hour is one unit.
std::string seconds_of_gpus(const nlohmann::json& figures) {
  return fmt::format("{}", std::llround(figures["gpu_hours"].get<double>() * 3600));
}

std::string seconds_of_billing(const nlohmann::json& figures) {
  const auto micro = std::llround(std::stod(figures["cost"].get<std::string>()) * 1e6);
  return fmt::format("{}", std::llround(static_cast<double>(micro) * 3600 / 1e6));
}

TEST_F(SlurmAccounts, SreportAndUsageSayTheSameOfAPeriod) {
  ended_job({"--gpus=2", "-A", "vision", "--wrap=sleep 1.2"});
  ended_job({"--gpus=1", "-A", "vision", "--wrap=sleep 0.3"});
  ended_job({"-c2", "-A", "vision", "--wrap=sleep 0.3"});
  const nlohmann::json usage = daemon.json({"usage", "--since", "1h", "--by", "team,user"});
  ASSERT_TRUE(usage.is_object());
  const auto group = std::ranges::find_if(usage["groups"], [&](const nlohmann::json& each) {
    return each["keys"] == nlohmann::json::array({"vision", caller()});
  });
  ASSERT_NE(group, usage["groups"].end()) << usage;
  const std::string gpus = seconds_of_gpus((*group)["figures"]);
  const std::string billing = seconds_of_billing((*group)["figures"]);
  EXPECT_GE(std::stol(gpus), 2) << usage;
  EXPECT_GE(std::stol(billing), 5) << "an H100 costs 5.50 an hour";

  const auto report = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"sreport", "-nP", "-t", "Seconds", "-T", "gres/gpu,billing"});
    words.insert(words.end(), {"start=now-1hours", "end=now+1hours"});
    return lines_of(out(words));
  };
  const std::string of_user = "vision|" + caller() + "|";
  EXPECT_EQ(
      report({"cluster", "AccountUtilizationByUser", "format=Account,Login,TresName,Used"}),
      (std::vector<std::string>{"root||gres/gpu|" + gpus, "root||billing|" + billing,
                                "science||gres/gpu|" + gpus, "science||billing|" + billing,
                                "vision||gres/gpu|" + gpus, "vision||billing|" + billing,
                                of_user + "gres/gpu|" + gpus, of_user + "billing|" + billing}));
  EXPECT_EQ(report({"user", "TopUsage", "format=Login,Used"}),
            (std::vector<std::string>{caller() + "|" + gpus, caller() + "|" + billing}));
  EXPECT_EQ(report({"cluster", "Utilization", "format=TresName,Allocated"}),
            (std::vector<std::string>{"gres/gpu|" + seconds_of_gpus(usage["total"]),
                                      "billing|" + seconds_of_billing(usage["total"])}));
  EXPECT_EQ(report({"cluster", "UserUtilizationByAccount", "format=Used", "accounts=vision"}),
            (std::vector<std::string>{gpus, billing}));
}

TEST_F(SlurmAccounts, PricesAreWeightsOfBilling) {
  const std::string id = ended_job({"--gpus=2", "-A", "vision", "--wrap=true"});
  EXPECT_NE(
      out({"scontrol", "show", "partition"}).find("TRESBillingWeights=GRES/gpu:h100-80gb=5.5"),
      std::string::npos);
  const std::string held = out({"sacct", "-nPX", "-j", id, "-o", "AllocTRES"});
  EXPECT_NE(held.find("billing=11,gres/gpu=2"), std::string::npos) << held;
  const std::string asked = out({"sacct", "-nPX", "-j", id, "-o", "ReqTRES"});
  EXPECT_NE(asked.find("billing=11,gres/gpu=2"), std::string::npos) << asked;
}

TEST_F(SlurmAccounts, ABudgetIsALimitOfBillingMinutes) {
  ended_job({"--gpus=1", "-A", "vision", "--wrap=true"});
  EXPECT_EQ(out({"sacctmgr", "-nP", "show", "assoc", "account=vision",
                 "user=", "format=account,grptresmins"}),
            "vision|billing=6000\n");
  const std::string limits =
      out({"sshare", "-nPa", "-A", "vision", "-o", "Account,User,GrpTRESMins,GrpTRESRaw"});
  EXPECT_TRUE(limits.starts_with("vision||billing=6000|billing=")) << limits;
  EXPECT_NE(limits.find("vision|" + caller() + "||\n"), std::string::npos) << limits;
}

}  // namespace
}  // namespace gpu_platform::e2e
