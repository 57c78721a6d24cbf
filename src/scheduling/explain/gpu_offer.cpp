#include "scheduling/explain/gpu_offer.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "model/gpu_catalogue.h"
#include "scheduling/free_of.h"
#include "scheduling/load_levels.h"
#include "scheduling/part_rules.h"

namespace gpu_platform::scheduling {

namespace {

// Processes of no job leave it too little for the request, so it counts as out of service.
bool is_too_loaded(const model::Gpu& gpu, const model::ResourceRequest& request) {
  return gpu.load && !is_of_use(gpu.load->memory_free, request);
}

}  // namespace

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
    if ((withheld >> i & 1) != 0 || is_too_loaded(gpu, request_)) continue;
    const bool is_degraded = request_.accept_degraded && model::is_only_degraded(gpu);
    if (is_degraded || model::is_in_service(gpu)) entry.in_service |= GpuMask{1} << i;
    const GpuUse use = use_of(gpu);
    const bool is_free =
        use == GpuUse::kFree || (use == GpuUse::kFreeDegraded && request_.accept_degraded);
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

namespace {

using model::Shortage;

std::uint32_t rounded_up(std::int64_t amount, std::int64_t unit) {
  return static_cast<std::uint32_t>((amount - 1) / unit + 1);
}

// What a GPU that jobs have parts of lacks for one more.
std::pair<Shortage, std::uint32_t> shortage_of(const model::Gpu& gpu,
                                               const model::ResourceRequest& request,
                                               const std::vector<model::ShareMode>& modes,
                                               const model::Sharing& rules) {
  const PartState state = part_state_of(gpu);
  const bool is_mode = std::ranges::find(modes, state.mode) != modes.end();
  if (!is_mode || !may_join(state, request.tenant, rules.between_users, rules.max_jobs)) {
    return {Shortage::kSharedByOthers, 0};
  }
  const base::GpuShare share = request.share_per_gpu;
  if (share > state.free_share) {
    constexpr std::int64_t kThousandth = base::kWholeGpu.value() / 1000;
    return {Shortage::kGpuShare, rounded_up((share - state.free_share).value(), kThousandth)};
  }
  const base::Bytes memory = memory_of_part(request, gpu.info.memory);
  if (memory > state.free_memory) {
    return {Shortage::kGpuPartMemory,
            rounded_up((memory - state.free_memory).value(), base::kMiB.value())};
  }
  return {Shortage::kFits, 0};
}

}  // namespace

bool GpuOffers::may_have(const model::Gpu& gpu) {
  return accepts(gpu.info.type) && gpu.info.memory >= request_.gpu_memory &&
         (!model::names_gpus(request_) || model::may_use_gpu(request_, gpu.info.uuid));
}

PartOffer GpuOffers::part_of(const model::Node& node, const model::Sharing& rules,
                             GpuMask withheld) {
  PartOffer offer;
  const PartTerms terms = part_terms_of(rules, node);
  std::vector<model::ShareMode> modes = modes_for(rules, request_);
  const bool is_for_users = std::ranges::any_of(modes, [&](model::ShareMode mode) {
    const auto& wall = terms.walls[static_cast<std::size_t>(mode)];
    return wall && is_strong_enough(*wall, request_);
  });
  std::erase_if(modes, [&](model::ShareMode mode) {
    const model::Wall* wall = terms.wall(mode, request_.tenant);
    return wall == nullptr || !is_strong_enough(*wall, request_);
  });
  const std::size_t count = std::min(node.gpus.size(), kMaxGpusPerNode);
  for (std::size_t i = 0; i < count && is_for_users; ++i) {
    const model::Gpu& gpu = node.gpus[i];
    std::vector<model::ShareMode> of_gpu = modes;
    std::erase_if(of_gpu,
                  [&](model::ShareMode mode) { return (terms.gpus_in(mode) >> i & 1) == 0; });
    const bool is_shared = (terms.gpus >> i & 1) != 0 && (modes.empty() || !of_gpu.empty());
    if (!is_shared || !may_have(gpu)) continue;
    offer.is_shared = !modes.empty();
    offer.is_kept_from_root = modes.empty();
    if (modes.empty()) break;
    if ((withheld >> i & 1) != 0 || is_too_loaded(gpu, request_)) continue;
    const bool is_degraded = request_.accept_degraded && model::is_only_degraded(gpu);
    if (!is_degraded && !model::is_in_service(gpu)) continue;
    offer.is_in_service = true;
    std::pair<Shortage, std::uint32_t> lacks{Shortage::kGpus, 1};
    const GpuUse use = use_of(gpu);
    if (use == GpuUse::kFree || use == GpuUse::kFreeDegraded) lacks = {Shortage::kFits, 0};
    if (use == GpuUse::kShared && model::is_in_service(gpu)) {
      lacks = shortage_of(gpu, request_, of_gpu, rules);
    }
    const bool is_further = lacks.first > offer.shortage ||
                            (lacks.first == offer.shortage && lacks.second < offer.short_by);
    if (is_further) std::tie(offer.shortage, offer.short_by) = lacks;
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
