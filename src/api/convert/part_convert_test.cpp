#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "api/convert/cluster.h"
#include "api/convert/enums.h"
#include "base/letters.h"

namespace gpu_platform::api {
namespace {

Nodes shared_node() {
  model::Node node;
  node.id = model::NodeId(1);
  node.name = "n1";
  model::Gpu gpu;
  gpu.info.uuid = "GPU-a";
  gpu.info.type = "H100-80GB";
  gpu.info.memory = base::kGiB * 80;
  node.gpus = {gpu, gpu};
  Nodes nodes;
  nodes.put(1, node);
  return nodes;
}

TEST(Status, ShowsThePartsOfGpusAndWhatIsFree) {
  Nodes nodes = shared_node();
  model::GpuHolder half{{model::JobId(5), 1}, base::GpuShare(3500), base::kGiB * 40};
  half.mode = model::ShareMode::kTimeSlice;
  model::GpuHolder less{{model::JobId(6), 1}, base::GpuShare(1750), base::kGiB * 20};
  less.mode = model::ShareMode::kTimeSlice;
  nodes.find_mutable(1)->gpus[0].holders = {half, less};
  model::settle(nodes.find_mutable(1)->gpus[0]);
  v1::Status out;
  to_proto(nodes, [](std::string_view) { return nullptr; }, out);
  const v1::Gpu& gpu = out.gpus(0);
  ASSERT_EQ(gpu.parts_size(), 2);
  EXPECT_EQ(gpu.parts(0).job(), "5");
  EXPECT_DOUBLE_EQ(gpu.parts(0).share(), 0.5);
  EXPECT_EQ(gpu.parts(0).memory_bytes(), std::uint64_t{40} << 30);
  EXPECT_EQ(gpu.parts(1).mode(), v1::SHARE_MODE_TIME_SLICE);
  EXPECT_DOUBLE_EQ(gpu.free_share(), 0.25);
  EXPECT_EQ(out.available_gpus(), 1U) << "whole GPUs alone";
  EXPECT_DOUBLE_EQ(out.available_share(), 1.25);
  EXPECT_DOUBLE_EQ(out.nodes(0).available_share(), 1.25);
  EXPECT_EQ(out.gpus(1).parts_size(), 0);
  EXPECT_DOUBLE_EQ(out.gpus(1).free_share(), 1);
}

TEST(Enums, OfPartsHaveTheNamesOfTheModel) {
  const auto word = [](std::string name, std::string_view prefix) {
    EXPECT_TRUE(name.starts_with(prefix)) << name;
    name.erase(0, prefix.size());
    for (char& c : name) c = c == '_' ? '-' : base::to_lower(c);
    return name;
  };
  for (std::size_t i = 0; i < model::kShareModes; ++i) {
    const auto mode = static_cast<model::ShareMode>(i);
    EXPECT_EQ(word(v1::ShareMode_Name(to_proto(mode)), "SHARE_MODE_"), to_string(mode));
  }
  for (std::size_t i = 0; i < model::kRungs; ++i) {
    const auto rung = static_cast<model::Rung>(i);
    EXPECT_EQ(word(v1::Rung_Name(to_proto(rung)), "RUNG_"), to_string(rung));
  }
  for (std::size_t i = 0; i < model::kIsolations; ++i) {
    const auto isolation = static_cast<model::Isolation>(i);
    EXPECT_EQ(word(v1::RequiredIsolation_Name(to_proto(isolation)), "REQUIRED_ISOLATION_"),
              to_string(isolation));
  }
}

}  // namespace
}  // namespace gpu_platform::api
