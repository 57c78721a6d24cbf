#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "controller/test_support.h"
#include "model/budget.h"
#include "model/job_spec.h"
#include "model/policy.h"

namespace gpu_platform::controller::testing {

// What an engine knows of an attempt.
struct EngineRun {
  bool has_started = false;
  bool has_ended = false;
  std::optional<model::EndReason> stop;  // it was told to stop
};

// Draws what random histories of the ledger are made of.
class LedgerDraws {
 protected:
  explicit LedgerDraws(std::uint64_t seed)
      : random_(seed),
        spot_percent_(number_below(101)),
        second_type_(chance(1, 2) ? "A100-40GB" : "H100-80GB") {}

  std::uint64_t below(std::uint64_t n) { return random_.below(n); }
  std::uint32_t number_below(std::uint64_t n) { return static_cast<std::uint32_t>(below(n)); }
  bool chance(std::uint64_t n, std::uint64_t of) { return random_.chance(n, of); }
  base::Duration drawn_seconds(std::uint64_t most) {
    return base::seconds(static_cast<std::int64_t>(1 + below(most)));
  }
  template <class T, std::size_t N>
  T one_of(const T (&values)[N]) {
    return values[below(N)];
  }

  model::Price drawn_price(base::Instant now) {
    model::Price price;
    price.gpu_type = one_of<std::string>({"H100", "H100-80GB", "A100", "A100-40GB"});
    if (chance(1, 4)) price.capacity = static_cast<model::CapacityClass>(below(3));
    if (chance(1, 4)) price.node = "n" + std::to_string(below(2));
    if (chance(1, 4)) price.from = now + drawn_seconds(7200);
    if (chance(1, 4)) price.until = std::max(now, price.from) + drawn_seconds(7200);
    price.per_hour = base::MicroUsd(static_cast<std::int64_t>(below(9'000'000)));
    return price;
  }

  // A list has one price of each type, class and node.
  model::Billing drawn_billing(base::Instant now) {
    model::Billing billing;
    billing.spot_discount_percent = spot_percent_;
    for (std::uint64_t prices = below(4); prices > 0; --prices) {
      const model::Price price = drawn_price(now);
      const bool is_there = std::ranges::any_of(billing.prices, [&](const model::Price& other) {
        return other.gpu_type == price.gpu_type && other.capacity == price.capacity &&
               other.node == price.node;
      });
      if (!is_there) billing.prices.push_back(price);
    }
    billing.cpu = {base::MicroUsd(static_cast<std::int64_t>(below(50'000))),
                   base::MicroUsd(static_cast<std::int64_t>(below(5'000)))};
    if (chance(1, 2)) billing.discounts.push_back({"a", number_below(10'001)});
    if (chance(1, 3)) billing.discounts.push_back({"b", number_below(10'001)});
    billing.preempted_is_free = chance(1, 2);
    return billing;
  }

  std::vector<model::Budget> drawn_budgets() {
    const model::BudgetKey keys[] = {{model::QuotaHolder::kTeam, "a"},
                                     {model::QuotaHolder::kUser, "ann"},
                                     {model::QuotaHolder::kProject, "p"}};
    std::vector<model::Budget> budgets;
    for (const model::BudgetKey& key : keys) {
      model::Budget budget;
      budget.key = key;
      budget.amount = base::MicroUsd(static_cast<std::int64_t>(1 + below(100'000'000)));
      budget.act = static_cast<model::BudgetAct>(below(model::kBudgetActs));
      budgets.push_back(budget);
    }
    return budgets;
  }

  model::Policy drawn_policy(base::Instant now) {
    model::Policy policy;
    model::Organisation organisation;
    const std::vector<model::Member> members = {{"ann", 1}, {"bob", 1}};
    model::Quota owned;
    if (chance(1, 2)) owned.guaranteed_gpus = 1;
    organisation.teams = {
        {"a", {}, 1, members, {}}, {"b", "a", 1, members, {}}, {"c", {}, 1, members, owned}};
    policy.organisation = std::move(organisation);
    policy.billing = drawn_billing(now);
    policy.budgets = drawn_budgets();
    policy.highest_user_priority = model::PriorityClass::kCritical;
    policy.preempt_below = model::PriorityClass::kHigh;
    policy.preempt_min_runtime = {};
    policy.retry_backoff = base::seconds(1);
    policy.sharing.is_on = true;
    return policy;
  }

  // One more of that kind.
  model::GpuInfo drawn_gpu(const std::string& type) {
    model::NodeInfo info = node_info("gpu", 1);
    model::GpuInfo gpu = info.gpus.front();
    gpu.uuid = "GPU-" + std::to_string(++last_gpu_);
    gpu.type = type;
    gpu.minor = last_gpu_;
    return gpu;
  }

  std::vector<model::NodeInfo> drawn_nodes() {
    std::vector<model::NodeInfo> infos;
    for (std::uint32_t n = 0; n < 2; ++n) {
      model::NodeInfo info = node_info("n" + std::to_string(n), 0);
      info.capacity = static_cast<model::CapacityClass>(below(model::kCapacityClasses));
      for (std::uint64_t gpus = 1 + below(2); gpus > 0; --gpus) {
        info.gpus.push_back(drawn_gpu(n == 0 ? "H100-80GB" : second_type_));
      }
      if (chance(1, 2)) {
        info.share_modes = {model::ShareMode::kTimeSlice, model::ShareMode::kMps};
        info.watches_gpu_memory = true;
      }
      infos.push_back(std::move(info));
    }
    return infos;
  }

  model::JobSpec drawn_spec() {
    model::JobSpec spec = testing::spec(number_below(3));
    spec.user = one_of<std::string>({"ann", "bob"});
    spec.uid = spec.gid = spec.user == "ann" ? 1001 : 1002;
    spec.team = one_of<std::string>({"a", "b", "c"});
    if (chance(1, 2)) spec.project = "p";
    spec.request.cpus = 1 + number_below(3);
    spec.request.memory = base::Bytes(static_cast<std::int64_t>(1 + below(1 << 24)));
    if (spec.request.gpus == 1 && chance(1, 3)) {
      spec.request.share_per_gpu = base::GpuShare(one_of<std::int64_t>({3500, 1750, 1000}));
    } else if (spec.request.gpus == 1 && chance(1, 6)) {
      spec.request.nodes = 2;
    }
    spec.priority = model::priority_of_number(static_cast<std::uint8_t>(below(10)));
    if (chance(1, 2)) spec.preemptible = chance(3, 4);
    spec.complete_on_exit_zero = chance(1, 4);
    spec.time_limit = drawn_seconds(36'000);
    return spec;
  }

  // ---- what engines tell

  // It may be a little late, or of a clock that is slow.
  base::Instant drawn_past(base::Instant now) {
    return chance(2, 3) ? now : now + base::milliseconds(-static_cast<std::int64_t>(below(9000)));
  }

  execution::Ended drawn_end(const EngineRun& run, base::Instant now) {
    execution::Ended ended;
    ended.at = drawn_past(now);
    if (!run.has_started && !run.stop) {
      ended.reason =
          chance(2, 3) ? model::EndReason::kLaunchFailed : model::EndReason::kPrologFailed;
      // The command is missing: no fault of the host.
      const bool is_missing = ended.reason == model::EndReason::kLaunchFailed && chance(1, 2);
      if (is_missing) ended.exit.code = std::uint8_t{127};
      ended.detail = "it could not be started";
      return ended;
    }
    if (run.stop && chance(3, 4)) {
      ended.exit.signal = std::uint8_t{15};
      ended.reason = *run.stop;
      return ended;
    }
    switch (below(6)) {
      case 0:
        ended.exit.lost = model::Lost::kUnknown;
        ended.reason = model::EndReason::kSupervisorLost;
        break;
      case 1:
        ended.exit.signal = std::uint8_t{15};
        ended.reason = model::EndReason::kPreempted;
        break;
      case 2:
        ended.exit.code = std::uint8_t{1};
        break;
      default:
        ended.exit.code = std::uint8_t{0};
    }
    return ended;
  }

 private:
  base::Prng random_;
  std::uint32_t spot_percent_;  // the same all the time
  std::string second_type_;     // of the GPUs of the second node: of one type, gangs fit
  std::uint32_t last_gpu_ = 0;
};

}  // namespace gpu_platform::controller::testing
