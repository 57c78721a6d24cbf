#include "model/taint.h"

#include <algorithm>
#include <utility>

#include "base/utc.h"

namespace gpu_platform::model {

namespace {

int severity_of(TaintEffect effect) {
  switch (effect) {
    case TaintEffect::kAvoided:
      return 0;
    case TaintEffect::kDegraded:
      return 1;
    case TaintEffect::kNoNewWork:
      return 2;
    case TaintEffect::kOut:
      break;
  }
  return 3;
}

// Whose words come first among taints of one effect.
int precedence_of(TaintSource source) {
  if (source == TaintSource::kOperator) return 3;
  if (source == TaintSource::kConnection) return 2;
  return source == TaintSource::kHealth ? 1 : 0;
}

std::pair<int, int> weight_of(const Taint& taint) {
  return {severity_of(taint.effect), precedence_of(taint.source)};
}

std::string words_without_end(const Taint& taint) {
  switch (taint.source) {
    case TaintSource::kProcesses:
      return "unmanaged processes: " + taint.text;
    case TaintSource::kCluster:
      if (taint.effect == TaintEffect::kAvoided)
        return "not available to the platform: " + taint.text;
      return taint.text;
    default:
      return taint.text;
  }
}

std::string words_of(const Taint& taint) {
  std::string text = words_without_end(taint);
  if (!taint.until.is_set()) return text;
  text += " (until ";
  base::append_rfc3339(text, taint.until, base::Fraction::kNone);
  return text + ")";
}

void add_words(std::string& text, const Taint& taint) {
  if (!text.empty()) text += "; ";
  text += words_of(taint);
}

}  // namespace

std::string_view to_string(TaintSource source) {
  constexpr std::string_view kNames[kTaintSources] = {"FORMER",    "OPERATOR", "DRIVER",
                                                      "PROCESSES", "CLUSTER",  "CONNECTION",
                                                      "HOOKS",     "HEALTH",   "RESET"};
  return kNames[static_cast<std::size_t>(source)];
}

std::string_view to_string(TaintEffect effect) {
  constexpr std::string_view kNames[kTaintEffects] = {"NO_NEW_WORK", "OUT", "AVOIDED", "DEGRADED"};
  return kNames[static_cast<std::size_t>(effect)];
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

bool is_an_operators_to_lift(const Taint& taint) {
  if (taint.source == TaintSource::kHealth) {
    return taint.effect == TaintEffect::kNoNewWork || taint.effect == TaintEffect::kDegraded;
  }
  if (taint.source == TaintSource::kReset) return taint.effect == TaintEffect::kNoNewWork;
  return taint.source == TaintSource::kOperator || taint.source == TaintSource::kHooks;
}

const Taint* worst_of(const Taints& taints) {
  const auto worst = std::ranges::max_element(taints, {}, weight_of);
  return worst == taints.end() ? nullptr : &*worst;
}

bool decides_state(const Taint* taint) {
  return taint != nullptr && taint->effect != TaintEffect::kAvoided;
}

std::string text_of_avoided(const Taints& taints) {
  std::string text;
  for (const Taint& taint : taints) {
    if (!decides_state(&taint)) add_words(text, taint);
  }
  return text;
}

std::string text_of(const Taints& taints) {
  const Taint* const worst = worst_of(taints);
  if (!decides_state(worst)) return {};
  std::string text = words_of(*worst);
  for (const Taint& taint : taints) {
    if (&taint != worst && decides_state(&taint)) add_words(text, taint);
  }
  return text;
}

}  // namespace gpu_platform::model
