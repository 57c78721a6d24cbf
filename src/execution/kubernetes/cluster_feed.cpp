#include "execution/kubernetes/cluster_feed.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/cluster/device_claims.h"
#include "execution/kubernetes/cluster/node_facts.h"
#include "execution/kubernetes/job_namespace.h"

namespace gpu_platform::execution {

namespace {

using kubernetes::FollowHandlers;
using Json = nlohmann::json;

std::string selector(const KubernetesSettings& settings, std::string_view comparison) {
  // The label's '/' and '=' are encoded for a query.
  return fmt::format("labelSelector=gpu-platform%2Fcluster{}{}", comparison, settings.cluster);
}

}  // namespace

ClusterFeed::ClusterFeed(const KubernetesSettings& settings, Parts parts)
    : settings_(settings), parts_(parts) {}

std::vector<ClusterFeed::Followed> ClusterFeed::followed() {
  std::vector<Followed> all;
  all.push_back({{"/api/v1/nodes", {}, fields_of_nodes()}, of_view(ClusterView::Kind::kNode)});
  // Bound pods of others that may still use something.
  all.push_back({{"/api/v1/pods",
                  selector(settings_, "!%3D") +
                      "&fieldSelector=spec.nodeName%21%3D%2Cstatus.phase%21%3DSucceeded"
                      "%2Cstatus.phase%21%3DFailed",
                  fields_of_pods()},
                 of_view(ClusterView::Kind::kOtherPod)});
  if (settings_.devices != DeviceMode::kCounts) {
    all.push_back({{"/apis/resource.k8s.io/v1/resourceslices",
                    fmt::format("fieldSelector=spec.driver%3D{}", settings_.driver)},
                   of_view(ClusterView::Kind::kSlice)});
    all.push_back(
        {{"/apis/resource.k8s.io/v1/resourceclaims", {}, fields_of_claims(settings_.devices)},
         of_claims()});
  }
  if (settings_.devices == DeviceMode::kOwned) {
    all.push_back({{"/apis/resource.k8s.io/v1/deviceclasses", {}}, of_classes()});
  }
  all.push_back({{"/api/v1/pods", selector(settings_, "%3D"), fields_of_pods()}, of_pods()});
  return all;
}

std::optional<FollowHandlers> ClusterFeed::taint_rules() {
  if (settings_.devices == DeviceMode::kCounts) return std::nullopt;
  return of_view(ClusterView::Kind::kTaintRule);
}

void ClusterFeed::all_listed() {
  is_all_listed_ = true;
  parts_.attempts.listed();
}

FollowHandlers ClusterFeed::of_view(ClusterView::Kind kind) {
  return {.on_list_asked = {},
          .on_list_begin = [this, kind] { parts_.view.begin_list(kind); },
          .on_object = [this, kind](const Json& object) { parts_.view.put(kind, object); },
          .on_deleted = [this, kind](const Json& object) { parts_.view.remove(kind, object); },
          .on_listed = [this, kind] { parts_.view.end_list(kind); },
          .on_trouble = {}};
}

FollowHandlers ClusterFeed::of_classes() {
  constexpr auto kKind = DeviceConfigs::Source::kClass;
  return {.on_list_asked = {},
          .on_list_begin = [this] { parts_.configs.begin_list(kKind); },
          .on_object = [this](const Json& object) { parts_.configs.put(kKind, object); },
          .on_deleted = [this](const Json& object) { parts_.configs.remove(kKind, object); },
          .on_listed = [this] { parts_.configs.end_list(kKind); },
          .on_trouble = {}};
}

FollowHandlers ClusterFeed::of_claims() {
  FollowHandlers handlers = of_view(ClusterView::Kind::kClaim);
  handlers.on_list_begin = [this] {
    seen_claims_.clear();
    parts_.view.begin_list(ClusterView::Kind::kClaim);
    parts_.configs.begin_list(DeviceConfigs::Source::kClaim);
  };
  handlers.on_object = [this](const Json& object) {
    seen_claims_.erase(key_of(object));
    parts_.view.put(ClusterView::Kind::kClaim, object);
    see_claim(object, true);
  };
  handlers.on_deleted = [this](const Json& object) {
    seen_claims_.erase(key_of(object));
    parts_.view.remove(ClusterView::Kind::kClaim, object);
    see_claim(object, false);
  };
  if (settings_.devices == DeviceMode::kPinned) {
    // kube-scheduler fills in what the platform has asked for.
    handlers.skips_changes = [this](std::string_view namespace_name, std::string_view name) {
      return seen_claims_.contains(fmt::format("{}/{}", namespace_name, name));
    };
  }
  handlers.on_list_asked = [this] {
    parts_.attempts.begin_claim_list();
    parts_.workload_attempts.begin_claim_list();
  };
  handlers.on_listed = [this] {
    parts_.view.end_list(ClusterView::Kind::kClaim);
    parts_.configs.end_list(DeviceConfigs::Source::kClaim);
    parts_.attempts.claims_listed();
    parts_.workload_attempts.claims_listed();
  };
  return handlers;
}

void ClusterFeed::see_claim(const Json& object, bool is_there) {
  if (const auto theirs = adopted_claim_of(object, settings_.cluster)) {
    return parts_.workload_attempts.see_claim(
        {theirs->namespace_name, line_at(object, {"metadata", "name"}), theirs->attempt,
         theirs->rank},
        is_there);
  }
  const auto claim = own_claim_of(object, settings_.cluster);
  if (!claim || !is_namespace_of_jobs(claim->namespace_name, settings_)) return;
  if (is_there) seen_claims_.insert(key_of(object));
  constexpr auto kKind = DeviceConfigs::Source::kClaim;
  is_there ? parts_.configs.put(kKind, object) : parts_.configs.remove(kKind, object);
  parts_.attempts.see_claim({claim->namespace_name, claim->attempt, claim->rank, is_there});
}

// All pods with the platform's label.
FollowHandlers ClusterFeed::of_pods() {
  constexpr auto kKind = ClusterView::Kind::kLabelledPod;
  FollowHandlers handlers = of_view(kKind);
  handlers.on_list_asked = [this] { parts_.attempts.begin_list(); };
  handlers.on_object = [this](const Json& object) {
    parts_.view.put(kKind, object);
    if (const auto pod = pod_of_a_job(object)) parts_.attempts.see(*pod);
  };
  handlers.on_deleted = [this](const Json& object) {
    parts_.view.remove(kKind, object);
    if (const auto pod = pod_of_a_job(object)) parts_.attempts.see_gone(*pod);
  };
  handlers.on_listed = [this] {
    parts_.view.end_list(kKind);
    if (is_all_listed_) parts_.attempts.listed();
  };
  return handlers;
}

std::optional<PodView> ClusterFeed::pod_of_a_job(const Json& object) const {
  std::optional<PodView> pod = view_of_pod(object, settings_.cluster);
  if (pod && !is_namespace_of_jobs(pod->namespace_name, settings_)) pod.reset();
  return pod;
}

}  // namespace gpu_platform::execution
