#include "shims/views/billing_weights.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/parse.h"
#include "model/gpu_catalogue.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

constexpr std::int64_t kMicroOfCurrency = 1'000'000;
constexpr std::int64_t kMinutesOfHour = 60;

base::MicroUsd money_in(std::string_view text) {
  const auto amount = base::parse_money(text);
  return amount ? *amount : base::MicroUsd();
}

// "5.5" of 5.50: as weights are written in a slurm.conf.
std::string weight_text(base::MicroUsd weight) {
  std::string text = base::written(weight);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// A daemon that knows no parts sends no shares.
double part_of_gpu(const v1::GpuUse& gpu) {
  return gpu.share() > 0 ? gpu.share() : 1;
}

base::MicroUsd highest_weight(const BillingWeights& weights) {
  base::MicroUsd highest;
  for (const BillingWeight& weight : weights.gpus) highest = std::max(highest, weight.per_hour);
  return highest;
}

// Of a job that asks for no type: of all, since it may get any.
base::MicroUsd requested_weight(const v1::JobSpec& spec, const BillingWeights& weights) {
  base::MicroUsd highest;
  for (const std::string& type : spec.gpu_types())
    highest = std::max(highest, weight_of_type(weights, type));
  return spec.gpu_types().empty() ? highest_weight(weights) : highest;
}

// What the GPU costs; that of the request where its model is not known any more.
base::MicroUsd held_weight(const v1::GpuUse& gpu, const v1::JobSpec& spec,
                           const BillingWeights& weights) {
  if (!gpu.has_model()) return requested_weight(spec, weights);
  for (const BillingWeight& weight : weights.gpus) {
    if (std::ranges::find(weight.models, gpu.model()) != weight.models.end())
      return weight.per_hour;
  }
  return {};
}

double cost_of_cpus(const v1::Job& job, const BillingWeights& weights) {
  const double memory_gib =
      static_cast<double>(memory_of(job).value_or(0)) / static_cast<double>(base::kGiB.value());
  return static_cast<double>(cpus_of(job).value_or(1)) * currency_units(weights.core_hour) +
         memory_gib * currency_units(weights.gib_hour);
}

std::int64_t requested_billing(const v1::Job& job, const BillingWeights& weights) {
  if (weights.is_empty()) return cpus_of(job).value_or(1);
  const v1::JobSpec& spec = job.spec();
  const std::int64_t gpus = gpus_of_request(job);
  if (gpus == 0) return static_cast<std::int64_t>(cost_of_cpus(job, weights));
  const double share = spec.has_gpu_share() ? spec.gpu_share() : 1;
  return static_cast<std::int64_t>(static_cast<double>(gpus) * share *
                                   currency_units(requested_weight(spec, weights)));
}

std::int64_t held_billing(const v1::Job& job, const BillingWeights& weights) {
  const v1::Attempt* attempt = latest_attempt(job);
  if (weights.is_empty() || attempt == nullptr || attempt->gpus().empty())
    return requested_billing(job, weights);
  double billing = 0;
  for (const v1::GpuUse& gpu : attempt->gpus())
    billing += part_of_gpu(gpu) * currency_units(held_weight(gpu, job.spec(), weights));
  return static_cast<std::int64_t>(billing);
}

}  // namespace

bool BillingWeights::is_empty() const {
  return gpus.empty() && core_hour.value() == 0 && gib_hour.value() == 0;
}

BillingWeights billing_weights_in(const v1::SlurmNames& names) {
  BillingWeights weights;
  for (const v1::SlurmBillingWeight& told : names.billing_weights()) {
    weights.gpus.push_back(
        {told.gpu_type(), {told.models().begin(), told.models().end()}, money_in(told.per_hour())});
  }
  weights.core_hour = money_in(names.core_hour());
  weights.gib_hour = money_in(names.gib_hour());
  return weights;
}

base::MicroUsd weight_of_type(const BillingWeights& weights, std::string_view gpu_type) {
  const std::string wanted = model::canonical_gpu_type(gpu_type).value_or(std::string(gpu_type));
  base::MicroUsd highest;
  for (const BillingWeight& weight : weights.gpus) {
    if (model::gpu_type_matches(wanted, weight.gpu_type))
      highest = std::max(highest, weight.per_hour);
  }
  return highest;
}

std::string weights_text(const BillingWeights& weights, const std::vector<std::string>& types) {
  std::string text;
  const auto add = [&text](std::string_view name, base::MicroUsd weight, std::string_view unit) {
    text += fmt::format("{}{}={}{}", text.empty() ? "" : ",", name, weight_text(weight), unit);
  };
  for (const BillingWeight& weight : weights.gpus) {
    if (std::ranges::find(types, weight.gpu_type) != types.end())
      add("GRES/gpu:" + lower_case(weight.gpu_type), weight.per_hour, "");
  }
  if (weights.core_hour.value() > 0) add("CPU", weights.core_hour, "");
  if (weights.gib_hour.value() > 0) add("Mem", weights.gib_hour, "G");
  return text;
}

std::string requested_tres(const v1::Job& job, const BillingWeights& weights) {
  return trackable(job, requested_billing(job, weights));
}

std::string held_tres(const v1::Job& job, const BillingWeights& weights) {
  return trackable(job, held_billing(job, weights));
}

double currency_units(base::MicroUsd amount) {
  return static_cast<double>(amount.value()) / static_cast<double>(kMicroOfCurrency);
}

std::int64_t billing_minutes(std::string_view amount) {
  // An amount is at most 1,000,000,000 units: the product fits.
  return money_in(amount).value() * kMinutesOfHour / kMicroOfCurrency;
}

}  // namespace gpu_platform::shims
