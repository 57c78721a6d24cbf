#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "model/ids.h"
#include "model/node.h"
#include "scheduling/gpu_layout.h"

namespace gpu_platform::scheduling {

// The places of GPUs by UUID, for jobs that name GPUs. No decision about another job looks at it.
// A GPU without a UUID is not in it.
//
// Ownership: holds copies. Thread: one owner. Cost: update compares the node's UUIDs with the known
// ones; masks_of O(names × log GPUs).
class GpuNames {
 public:
  // GPUs by node.
  using Masks = std::map<model::NodeId, GpuMask>;

  // `known`: the node's UUIDs as they were last put; it becomes the present ones. Returns true if
  // they differ.
  bool update(const model::Node& node, std::vector<std::string>& known);
  void remove(model::NodeId node, const std::vector<std::string>& known);

  // Returns where these GPUs are; the unknown ones are left out.
  Masks masks_of(const std::vector<std::string>& uuids) const;
  // The part of it on one node.
  GpuMask mask_on(model::NodeId node, const std::vector<std::string>& uuids) const;

 private:
  // The UUID, and the GPU's place.
  using Entry = std::tuple<std::string, model::NodeId, std::uint32_t>;

  template <class Visit>
  void for_each_place(const std::string& uuid, const Visit& visit) const;

  std::set<Entry> entries_;
};

}  // namespace gpu_platform::scheduling
