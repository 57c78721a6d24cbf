#include "controller/taint_ends.h"

namespace gpu_platform::controller {

namespace {

// Calls visit(end) for each of the node's taints that ends by itself.
template <class Visit>
void for_each_end(const model::Node& node, const Visit& visit) {
  const auto look_at = [&](const model::Taints& taints, std::optional<std::uint32_t> gpu) {
    const model::Taint* const own = model::find_taint(taints, model::TaintSource::kOperator);
    if (own != nullptr && own->until.is_set()) visit(TaintEnd{own->until, node.id, gpu});
  };
  look_at(node.taints, std::nullopt);
  for (std::uint32_t i = 0; i < node.gpus.size(); ++i) look_at(node.gpus[i].taints, i);
}

}  // namespace

void TaintEnds::enter(const model::Node& node) {
  for_each_end(node, [this](const TaintEnd& end) { ends_.insert(end); });
}

void TaintEnds::leave(const model::Node& node) {
  for_each_end(node, [this](const TaintEnd& end) { ends_.erase(end); });
}

std::optional<TaintEnd> TaintEnds::next() const {
  return ends_.empty() ? std::nullopt : std::optional(*ends_.begin());
}

}  // namespace gpu_platform::controller
