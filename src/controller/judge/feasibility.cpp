#include "controller/judge/feasibility.h"

namespace gpu_platform::controller {

void Feasibility::forget() {
  known_.clear();
  empty_.reset();
}

base::Status Feasibility::check(const base::PersistentMap<model::Node>& nodes,
                                const model::ResourceRequest& request,
                                const model::Sharing& sharing) {
  for (const auto& [known, answer] : known_) {
    if (known == request) return answer;
  }
  constexpr std::size_t kRemembered = 64;
  if (known_.size() == kRemembered) known_.erase(known_.begin());
  known_.emplace_back(request, judge(nodes, request, sharing));
  return known_.back().second;
}

// Checks one part of a gang first, because its message says more.
base::Status Feasibility::judge(const base::PersistentMap<model::Node>& nodes,
                                const model::ResourceRequest& request,
                                const model::Sharing& sharing) {
  if (!request.cross_node) TRY(scheduling::could_ever_fit(nodes, request, sharing));
  if (!model::is_gang(request)) return {};
  if (!empty_) empty_.emplace(nodes);
  return empty_->could_ever_fit(request);
}

}  // namespace gpu_platform::controller
