#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gpu_platform::model {

// A machine with GPUs that a cloud rents out. Source: the providers' pages of instance types.
struct InstanceType {
  std::string_view name;      // "p5.48xlarge"
  std::string_view provider;  // "aws"
  std::string_view gpu_type;  // of the catalogue of GPUs
  std::uint32_t gpus = 0;
};

// By provider and name.
std::span<const InstanceType> instance_catalogue();

// Returns null if the catalogue has no such instance. Case does not matter.
const InstanceType* find_instance(std::string_view name);

}  // namespace gpu_platform::model
