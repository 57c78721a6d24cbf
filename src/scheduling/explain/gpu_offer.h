#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/job.h"
#include "model/node.h"
#include "scheduling/gpu_layout.h"

namespace gpu_platform::scheduling {

// What a node has of the GPUs that a request asks for, all of an allocation being of one type.
struct GpuOffer {
  bool has_type = false;       // some GPU is of an acceptable type
  base::Bytes largest_memory;  // among GPUs of acceptable types
  std::uint32_t capable = 0;   // most GPUs of one acceptable type with enough memory, busy or not
  std::uint32_t free = 0;      // the same of those that are free
  // Likewise, where the request has several GPUs; of one type, within one NUMA node or socket.
  std::uint32_t capable_on_numa_node = 0;
  std::uint32_t capable_on_socket = 0;
  std::uint32_t free_on_socket = 0;
};

// Each type that the request would take as a request for that alone, in its order; the request
// itself where it names none.
std::vector<model::ResourceRequest> by_choice(const model::ResourceRequest& request);
// As its nodelist and what it excludes say.
bool may_use(const model::ResourceRequest& request, model::NodeId node);

// Whether the GPUs of such a node may lie on several sockets; as placement decides it.
bool may_cross_sockets(const model::ResourceRequest& request, const GpuOffer& offer);
// Whether the GPUs could be had there with nothing else running.
bool has_gpus_when_empty(const model::ResourceRequest& request, const GpuOffer& offer);

// Reads offers from nodes as the model has them; compares each name of a type once.
// The request must outlive it.
class GpuOffers {
 public:
  explicit GpuOffers(const model::ResourceRequest& request) : request_(request) {}

  GpuOffer of(const model::Node& node);

 private:
  struct PerType {
    std::string_view type;
    bool is_accepted = false;
    GpuMask capable = 0;
    GpuMask free = 0;
  };

  PerType& entry_of(std::string_view type);
  bool accepts(std::string_view type);
  void collect_domains(const model::Node& node);

  const model::ResourceRequest& request_;
  std::map<std::string, bool, std::less<>> accepted_;
  std::vector<PerType> types_;  // of the node at hand; kept for its storage, as is the next
  DomainCollector domains_;
};

}  // namespace gpu_platform::scheduling
