#include "scheduling/gpu_names.h"

#include <algorithm>
#include <cstddef>

namespace gpu_platform::scheduling {

bool GpuNames::update(const model::Node& node, std::vector<std::string>& known) {
  const bool is_same = std::ranges::equal(
      node.gpus, known,
      [](const model::Gpu& gpu, const std::string& uuid) { return gpu.info.uuid == uuid; });
  if (is_same) return false;
  remove(node.id, known);
  known.clear();
  for (const model::Gpu& gpu : node.gpus) {
    const auto index = static_cast<std::uint32_t>(known.size());
    known.push_back(gpu.info.uuid);
    if (index < kMaxGpusPerNode && !gpu.info.uuid.empty()) {
      entries_.emplace(gpu.info.uuid, node.id, index);
    }
  }
  return true;
}

void GpuNames::remove(model::NodeId node, const std::vector<std::string>& known) {
  for (std::uint32_t index = 0; index < known.size(); ++index) {
    entries_.erase({known[index], node, index});
  }
}

template <class Visit>
void GpuNames::for_each_place(const std::string& uuid, const Visit& visit) const {
  auto entry = entries_.lower_bound({uuid, model::NodeId(), 0});
  for (; entry != entries_.end() && std::get<0>(*entry) == uuid; ++entry) {
    visit(std::get<1>(*entry), GpuMask{1} << std::get<2>(*entry));
  }
}

GpuNames::Masks GpuNames::masks_of(const std::vector<std::string>& uuids) const {
  Masks masks;
  for (const std::string& uuid : uuids) {
    for_each_place(uuid, [&](model::NodeId node, GpuMask gpu) { masks[node] |= gpu; });
  }
  return masks;
}

GpuMask GpuNames::mask_on(model::NodeId node, const std::vector<std::string>& uuids) const {
  GpuMask mask = 0;
  for (const std::string& uuid : uuids) {
    for_each_place(uuid, [&](model::NodeId at, GpuMask gpu) { mask |= at == node ? gpu : 0; });
  }
  return mask;
}

}  // namespace gpu_platform::scheduling
