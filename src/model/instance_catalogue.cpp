#include "model/instance_catalogue.h"

#include <algorithm>

#include "base/letters.h"

namespace gpu_platform::model {

namespace {

// Instances with a part of a GPU are left out: their price is not that of a GPU.
constexpr InstanceType kInstances[] = {
    {"g4dn.12xlarge", "aws", "T4-16GB", 4},
    {"g4dn.16xlarge", "aws", "T4-16GB", 1},
    {"g4dn.2xlarge", "aws", "T4-16GB", 1},
    {"g4dn.4xlarge", "aws", "T4-16GB", 1},
    {"g4dn.8xlarge", "aws", "T4-16GB", 1},
    {"g4dn.metal", "aws", "T4-16GB", 8},
    {"g4dn.xlarge", "aws", "T4-16GB", 1},
    {"g5.12xlarge", "aws", "A10G-24GB", 4},
    {"g5.16xlarge", "aws", "A10G-24GB", 1},
    {"g5.24xlarge", "aws", "A10G-24GB", 4},
    {"g5.2xlarge", "aws", "A10G-24GB", 1},
    {"g5.48xlarge", "aws", "A10G-24GB", 8},
    {"g5.4xlarge", "aws", "A10G-24GB", 1},
    {"g5.8xlarge", "aws", "A10G-24GB", 1},
    {"g5.xlarge", "aws", "A10G-24GB", 1},
    {"g6.12xlarge", "aws", "L4-24GB", 4},
    {"g6.16xlarge", "aws", "L4-24GB", 1},
    {"g6.24xlarge", "aws", "L4-24GB", 4},
    {"g6.2xlarge", "aws", "L4-24GB", 1},
    {"g6.48xlarge", "aws", "L4-24GB", 8},
    {"g6.4xlarge", "aws", "L4-24GB", 1},
    {"g6.8xlarge", "aws", "L4-24GB", 1},
    {"g6.xlarge", "aws", "L4-24GB", 1},
    {"g6e.12xlarge", "aws", "L40S-48GB", 4},
    {"g6e.16xlarge", "aws", "L40S-48GB", 1},
    {"g6e.24xlarge", "aws", "L40S-48GB", 4},
    {"g6e.2xlarge", "aws", "L40S-48GB", 1},
    {"g6e.48xlarge", "aws", "L40S-48GB", 8},
    {"g6e.4xlarge", "aws", "L40S-48GB", 1},
    {"g6e.8xlarge", "aws", "L40S-48GB", 1},
    {"g6e.xlarge", "aws", "L40S-48GB", 1},
    {"p3.16xlarge", "aws", "V100-16GB", 8},
    {"p3.2xlarge", "aws", "V100-16GB", 1},
    {"p3.8xlarge", "aws", "V100-16GB", 4},
    {"p3dn.24xlarge", "aws", "V100-32GB", 8},
    {"p4d.24xlarge", "aws", "A100-40GB", 8},
    {"p4de.24xlarge", "aws", "A100-80GB", 8},
    {"p5.48xlarge", "aws", "H100-80GB", 8},
    {"p5.4xlarge", "aws", "H100-80GB", 1},
    {"p5e.48xlarge", "aws", "H200-141GB", 8},
    {"p5en.48xlarge", "aws", "H200-141GB", 8},
    {"p6-b200.48xlarge", "aws", "B200-180GB", 8},
    {"Standard_NC24ads_A100_v4", "azure", "A100-80GB", 1},
    {"Standard_NC40ads_H100_v5", "azure", "H100-94GB", 1},
    {"Standard_NC48ads_A100_v4", "azure", "A100-80GB", 2},
    {"Standard_NC4as_T4_v3", "azure", "T4-16GB", 1},
    {"Standard_NC64as_T4_v3", "azure", "T4-16GB", 4},
    {"Standard_NC80adis_H100_v5", "azure", "H100-94GB", 2},
    {"Standard_NC96ads_A100_v4", "azure", "A100-80GB", 4},
    {"Standard_ND96amsr_A100_v4", "azure", "A100-80GB", 8},
    {"Standard_ND96asr_v4", "azure", "A100-40GB", 8},
    {"Standard_ND96isr_H100_v5", "azure", "H100-80GB", 8},
    {"Standard_ND96isr_H200_v5", "azure", "H200-141GB", 8},
    {"a2-highgpu-1g", "gcp", "A100-40GB", 1},
    {"a2-highgpu-2g", "gcp", "A100-40GB", 2},
    {"a2-highgpu-4g", "gcp", "A100-40GB", 4},
    {"a2-highgpu-8g", "gcp", "A100-40GB", 8},
    {"a2-megagpu-16g", "gcp", "A100-40GB", 16},
    {"a2-ultragpu-1g", "gcp", "A100-80GB", 1},
    {"a2-ultragpu-2g", "gcp", "A100-80GB", 2},
    {"a2-ultragpu-4g", "gcp", "A100-80GB", 4},
    {"a2-ultragpu-8g", "gcp", "A100-80GB", 8},
    {"a3-highgpu-8g", "gcp", "H100-80GB", 8},
    {"a3-megagpu-8g", "gcp", "H100-80GB", 8},
    {"a3-ultragpu-8g", "gcp", "H200-141GB", 8},
    {"a4-highgpu-8g", "gcp", "B200-180GB", 8},
    {"g2-standard-12", "gcp", "L4-24GB", 1},
    {"g2-standard-24", "gcp", "L4-24GB", 2},
    {"g2-standard-4", "gcp", "L4-24GB", 1},
    {"g2-standard-48", "gcp", "L4-24GB", 4},
    {"g2-standard-96", "gcp", "L4-24GB", 8},
};

}  // namespace

std::span<const InstanceType> instance_catalogue() {
  return kInstances;
}

const InstanceType* find_instance(std::string_view name) {
  const std::string wanted = base::to_lower(name);
  const auto* const found = std::ranges::find_if(kInstances, [&](const InstanceType& instance) {
    return base::to_lower(instance.name) == wanted;
  });
  return found == std::end(kInstances) ? nullptr : found;
}

}  // namespace gpu_platform::model
