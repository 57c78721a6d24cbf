#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/slurm.pb.h"

// The site's prices in Slurm's terms. One billing for an hour is one unit of the site's currency:
// the weight of a GPU is its price for an hour, and a budget of 100 USD is 6000 billing minutes.
// Pure.

namespace gpu_platform::shims {

// The weight of a type of GPU.
struct BillingWeight {
  std::string gpu_type;             // "H100-80GB"
  std::vector<std::string> models;  // the driver's names of such GPUs
  base::MicroUsd per_hour;
};

struct BillingWeights {
  std::vector<BillingWeight> gpus;  // by type
  // Of jobs without GPUs alone; zero: they cost nothing.
  base::MicroUsd core_hour;
  base::MicroUsd gib_hour;

  // There are no prices: the billing of a job is its CPUs, as in a Slurm without weights.
  bool is_empty() const;
};

BillingWeights billing_weights_in(const v1::SlurmNames& names);

// Returns the highest weight of such GPUs, a type or a family; zero if there is none.
base::MicroUsd weight_of_type(const BillingWeights& weights, std::string_view gpu_type);

// "GRES/gpu:h100-80gb=5.5,CPU=0.02,Mem=0.005G": the weights of these types of GPUs, and of CPUs and
// memory. Empty without any.
std::string weights_text(const BillingWeights& weights, const std::vector<std::string>& types);

// What the job asks for and what it has, "cpu=8,mem=64G,node=1,billing=11,gres/gpu=2". The billing
// is what it costs in an hour, in whole units, the rest cut off. If it may run on GPUs of several
// types, the request has the highest price.
std::string requested_tres(const v1::Job& job, const BillingWeights& weights);
std::string held_tres(const v1::Job& job, const BillingWeights& weights);

// 5.5 of 5.50: an amount of money as a number.
double currency_units(base::MicroUsd amount);
// Minutes of billing of an amount of money, "100.00": 6000, cut off. Zero if the text is none.
std::int64_t billing_minutes(std::string_view amount);

}  // namespace gpu_platform::shims
