#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/job.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/resource_request.h"
#include "model/wait_reason.h"
#include "scheduling/gpu_layout.h"

namespace gpu_platform::scheduling {

// The GPUs of a node that suit a request; all GPUs of an allocation are of one type.
struct GpuOffer {
  bool has_type = false;       // some GPU is of an acceptable type
  bool has_unnamed = false;    // some GPU is not among those that the request may use by name
  base::Bytes largest_memory;  // among GPUs of acceptable types
  std::uint32_t capable =
      0;  // the most GPUs of one acceptable type with enough memory, busy or not
  std::uint32_t in_service = 0;  // the most of them that take work, now or once a job has ended
  std::uint32_t free = 0;        // the most of them that are free
  // The same for a request of several GPUs: of one type, within one NUMA node or socket.
  std::uint32_t capable_on_numa_node = 0;
  std::uint32_t capable_on_socket = 0;
  std::uint32_t in_service_on_socket = 0;
  std::uint32_t free_on_socket = 0;
};

// What the GPUs of a node are to a part of one.
struct PartOffer {
  bool is_shared = false;          // some GPU with enough memory may be shared in such a way
  bool is_kept_from_root = false;  // one may be, but not with a job of root, as this one is
  bool is_in_service = false;      // one of those takes work
  // What the GPU lacks that comes furthest; kFits: it has room now.
  model::Shortage shortage = model::Shortage::kNotShared;
  std::uint32_t short_by = 0;
};

// Returns one request for each type that the request accepts, in its order; the request itself if
// it names no type.
std::vector<model::ResourceRequest> by_choice(const model::ResourceRequest& request);
// Returns whether the request's nodelist and its excluded nodes allow the node.
bool may_use(const model::ResourceRequest& request, model::NodeId node);

// Returns whether the GPUs of such a node may lie on several sockets, as placement decides it.
bool may_cross_sockets(const model::ResourceRequest& request, const GpuOffer& offer);
// Returns how many GPUs at once the node could give to the request once all its jobs have ended.
std::uint32_t gpus_when_empty(const model::ResourceRequest& request, const GpuOffer& offer);
// Returns whether the node could give the GPUs if nothing else ran there and all were in service.
bool has_gpus_when_empty(const model::ResourceRequest& request, const GpuOffer& offer);

// Reads offers from nodes as the model has them; compares each name of a type once.
// The request must outlive it.
class GpuOffers {
 public:
  explicit GpuOffers(const model::ResourceRequest& request) : request_(request) {}

  // GPUs of `withheld` count as out of service.
  GpuOffer of(const model::Node& node, GpuMask withheld = 0);
  // The same for a part of a GPU, by the site's rules.
  PartOffer part_of(const model::Node& node, const model::Sharing& rules, GpuMask withheld = 0);

 private:
  struct PerType {
    std::string_view type;
    bool is_accepted = false;
    GpuMask capable = 0;
    GpuMask in_service = 0;
    GpuMask free = 0;
  };

  PerType& entry_of(std::string_view type);
  bool accepts(std::string_view type);
  bool may_have(const model::Gpu& gpu);
  void collect_domains(const model::Node& node);

  const model::ResourceRequest& request_;
  std::map<std::string, bool, std::less<>> accepted_;
  std::vector<PerType> types_;  // of the present node; kept for its storage, as is the next
  DomainCollector domains_;
};

}  // namespace gpu_platform::scheduling
