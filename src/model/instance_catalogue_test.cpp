#include "model/instance_catalogue.h"

#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>

#include "model/gpu_catalogue.h"

namespace gpu_platform::model {
namespace {

TEST(InstanceCatalogue, NamesGpusOfTheCatalogueOfGpus) {
  for (const InstanceType& instance : instance_catalogue()) {
    const auto types = gpu_catalogue();
    EXPECT_NE(std::ranges::find(types, instance.gpu_type, &GpuType::name), types.end())
        << instance.name;
    EXPECT_GT(instance.gpus, 0U) << instance.name;
  }
}

TEST(InstanceCatalogue, IsInOrderWithEachNameOnce) {
  const auto all = instance_catalogue();
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_LT(std::tie(all[i - 1].provider, all[i - 1].name),
              std::tie(all[i].provider, all[i].name));
  }
}

TEST(InstanceCatalogue, KnowsTheBoardsOfInstances) {
  const auto boards = [](std::string_view name) {
    const InstanceType* const instance = find_instance(name);
    return instance == nullptr ? std::pair<std::string_view, std::uint32_t>()
                               : std::pair(instance->gpu_type, instance->gpus);
  };
  using Boards = std::pair<std::string_view, std::uint32_t>;
  EXPECT_EQ(boards("p4d.24xlarge"), Boards("A100-40GB", 8));
  EXPECT_EQ(boards("p4de.24xlarge"), Boards("A100-80GB", 8));
  EXPECT_EQ(boards("P5.48xlarge"), Boards("H100-80GB", 8));
  EXPECT_EQ(boards("g6e.48xlarge"), Boards("L40S-48GB", 8));
  EXPECT_EQ(boards("g5.xlarge"), Boards("A10G-24GB", 1));
  EXPECT_EQ(boards("g4dn.metal"), Boards("T4-16GB", 8));
  EXPECT_EQ(boards("p3.2xlarge"), Boards("V100-16GB", 1));
  EXPECT_EQ(find_instance("p9.metal"), nullptr);
}

}  // namespace
}  // namespace gpu_platform::model
