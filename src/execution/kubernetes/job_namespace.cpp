#include "execution/kubernetes/job_namespace.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/letters.h"
#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

namespace {

// In the namespace that the site names, it stands for the job's team.
constexpr std::string_view kTeam = "{team}";
constexpr std::size_t kMaxNamespaceName = 63;

bool may_be_in_dns_label(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}

}  // namespace

std::string namespace_of(const model::JobSpec& spec, const KubernetesSettings& settings) {
  std::string name = settings.namespace_name;
  const std::size_t at = name.find(kTeam);
  if (at == std::string::npos) return name;
  std::string team = base::to_lower(spec.team);
  std::ranges::replace_if(team, [](char c) { return !may_be_in_dns_label(c); }, '-');
  name.replace(at, kTeam.size(), team);
  name.resize(std::min(name.size(), kMaxNamespaceName));
  const std::size_t first = name.find_first_not_of('-');
  if (first == std::string::npos) return "none";
  return name.substr(first, name.find_last_not_of('-') - first + 1);
}

bool is_namespace_of_jobs(std::string_view name, const KubernetesSettings& settings) {
  const std::string_view pattern = settings.namespace_name;
  const std::size_t at = pattern.find(kTeam);
  if (at == std::string_view::npos) return name == pattern;
  // What follows the team may be cut off, and dashes at both ends are taken away.
  const std::string_view before = pattern.substr(0, at);
  return name.starts_with(before.substr(std::min(before.find_first_not_of('-'), before.size())));
}

bool is_of_platform(const nlohmann::json& object, const KubernetesSettings& settings) {
  if (text_at(object, {"metadata", "labels", kClusterLabel}) != settings.cluster) return false;
  if (text_at(object, {"metadata", "labels", kAdoptedLabel}) == settings.cluster) return true;
  return own_claim_of(object, settings.cluster) &&
         is_namespace_of_jobs(text_at(object, {"metadata", "namespace"}), settings);
}

}  // namespace gpu_platform::execution
