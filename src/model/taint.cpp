#include "model/taint.h"

#include <algorithm>
#include <utility>

namespace gpu_platform::model {

std::string_view to_string(TaintSource source) {
  constexpr std::string_view kNames[kTaintSources] = {"FORMER", "OPERATOR", "DRIVER"};
  return kNames[static_cast<std::size_t>(source)];
}

const Taint* find_taint(const Taints& taints, TaintSource source) {
  const auto found = std::ranges::find(taints, source, &Taint::source);
  return found == taints.end() ? nullptr : &*found;
}

void set_taint(Taints& taints, Taint taint) {
  lift_taint(taints, taint.source);
  const auto at = std::ranges::upper_bound(taints, taint.source, {}, &Taint::source);
  taints.insert(at, std::move(taint));
}

void lift_taint(Taints& taints, TaintSource source) {
  std::erase_if(taints, [&](const Taint& taint) { return taint.source == source; });
}

const Taint* worst_of(const Taints& taints) {
  const auto worst = std::ranges::max_element(taints, {}, &Taint::effect);
  return worst == taints.end() ? nullptr : &*worst;
}

std::string text_of(const Taints& taints) {
  const Taint* const worst = worst_of(taints);
  if (worst == nullptr) return {};
  std::string text = worst->text;
  for (const Taint& taint : taints) {
    if (&taint != worst) text += "; " + taint.text;
  }
  return text;
}

}  // namespace gpu_platform::model
