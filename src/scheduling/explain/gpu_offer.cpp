#include "scheduling/explain/gpu_offer.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "model/gpu_catalogue.h"

namespace gpu_platform::scheduling {

std::vector<model::ResourceRequest> by_choice(const model::ResourceRequest& request) {
  std::vector<model::ResourceRequest> choices(std::max<std::size_t>(1, request.gpu_types.size()),
                                              request);
  for (std::size_t i = 0; i < request.gpu_types.size(); ++i) {
    choices[i].gpu_types = {request.gpu_types[i]};
  }
  return choices;
}

bool may_use(const model::ResourceRequest& request, model::NodeId node) {
  const bool is_named =
      request.nodelist.empty() || std::ranges::binary_search(request.nodelist, node);
  return is_named && !std::ranges::binary_search(request.exclude, node);
}

GpuOffer GpuOffers::of(const model::Node& node, GpuMask withheld) {
  GpuOffer offer;
  types_.clear();
  const bool names_gpus = model::names_gpus(request_);
  const std::size_t count = std::min(node.gpus.size(), kMaxGpusPerNode);
  for (std::size_t i = 0; i < count; ++i) {
    const model::Gpu& gpu = node.gpus[i];
    PerType& entry = entry_of(gpu.info.type);
    if (!entry.is_accepted) continue;
    if (names_gpus && !model::may_use_gpu(request_, gpu.info.uuid)) {
      offer.has_unnamed = true;
      continue;
    }
    offer.has_type = true;
    offer.largest_memory = std::max(offer.largest_memory, gpu.info.memory);
    if (gpu.info.memory < request_.gpu_memory) continue;
    entry.capable |= GpuMask{1} << i;
    if ((withheld >> i & 1) != 0) continue;
    const bool is_degraded = request_.accept_degraded && model::is_only_degraded(gpu);
    if (is_degraded || model::is_in_service(gpu)) entry.in_service |= GpuMask{1} << i;
    const bool is_free = is_degraded ? gpu.holders.empty() : model::is_free(gpu);
    if (is_free) entry.free |= GpuMask{1} << i;
  }
  const bool has_several = request_.gpus > 1;
  if (has_several && offer.has_type) collect_domains(node);
  const auto raise = [](std::uint32_t& most, std::uint32_t n) { most = std::max(most, n); };
  for (const PerType& entry : types_) {
    raise(offer.capable, static_cast<std::uint32_t>(std::popcount(entry.capable)));
    raise(offer.in_service, static_cast<std::uint32_t>(std::popcount(entry.in_service)));
    raise(offer.free, static_cast<std::uint32_t>(std::popcount(entry.free)));
    if (!has_several || !entry.is_accepted) continue;
    const GpuDomains& domains = domains_.domains();
    raise(offer.capable_on_numa_node, max_in_one(domains.numa, entry.capable));
    raise(offer.capable_on_socket, max_in_one(domains.sockets, entry.capable));
    raise(offer.in_service_on_socket, max_in_one(domains.sockets, entry.in_service));
    raise(offer.free_on_socket, max_in_one(domains.sockets, entry.free));
  }
  return offer;
}

void GpuOffers::collect_domains(const model::Node& node) {
  domains_.clear();
  const std::size_t count = std::min(node.gpus.size(), kMaxGpusPerNode);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t numa_node = node.gpus[i].info.numa_node;
    domains_.add(i, numa_node, model::socket_of(node.topology, numa_node));
  }
}

bool may_cross_sockets(const model::ResourceRequest& request, const GpuOffer& offer) {
  switch (model::numa_of(request)) {
    case model::NumaPolicy::kAllowCross:
      return true;
    case model::NumaPolicy::kStrict:
      return request.gpus < 2;  // one GPU lies on one socket
    case model::NumaPolicy::kDefault:
      return request.gpus < 2 || request.gpus > offer.capable_on_numa_node;
  }
  CHECK(false);
  std::unreachable();
}

std::uint32_t gpus_when_empty(const model::ResourceRequest& request, const GpuOffer& offer) {
  return may_cross_sockets(request, offer) ? offer.in_service : offer.in_service_on_socket;
}

bool has_gpus_when_empty(const model::ResourceRequest& request, const GpuOffer& offer) {
  const bool may_cross = may_cross_sockets(request, offer);
  return (may_cross ? offer.capable : offer.capable_on_socket) >= request.gpus;
}

GpuOffers::PerType& GpuOffers::entry_of(std::string_view type) {
  const auto known = std::ranges::find(types_, type, &PerType::type);
  if (known != types_.end()) return *known;
  return types_.emplace_back(PerType{.type = type, .is_accepted = accepts(type)});
}

bool GpuOffers::accepts(std::string_view type) {
  const auto& barred = request_.barred_types;
  if (std::ranges::find(barred, type) != barred.end()) return false;
  if (request_.gpu_types.empty()) return true;
  const auto known = accepted_.find(type);
  if (known != accepted_.end()) return known->second;
  const bool accepted = std::ranges::any_of(request_.gpu_types, [&](const std::string& wanted) {
    return model::gpu_type_matches(wanted, type);
  });
  accepted_.emplace(std::string(type), accepted);
  return accepted;
}

}  // namespace gpu_platform::scheduling
