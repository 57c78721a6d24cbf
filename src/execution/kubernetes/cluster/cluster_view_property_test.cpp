#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <string>

#include "base/prng.h"
#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/cluster/cluster_fixture.h"
#include "execution/kubernetes/cluster/cluster_view.h"

// After any history, a view says of the same objects what a new one says.

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;
using Kind = ClusterView::Kind;

constexpr Kind kKinds[] = {Kind::kNode,     Kind::kSlice,       Kind::kClaim,
                           Kind::kOtherPod, Kind::kLabelledPod, Kind::kTaintRule};
constexpr std::uint64_t kViewNodes = 4;

// What is known to a core that has heard all observations.
struct KnownObjects {
  model::NodeInfo info;
  TaintObserved taint;
  std::map<std::string, std::string> gpus;
  friend bool operator==(const KnownObjects&, const KnownObjects&) = default;
};

class Listener {
 public:
  void take(ClusterView& view, base::Instant now) {
    for (const ClusterObservation& one : view.take_changes(now)) {
      std::visit([this](const auto& seen) { on(seen); }, one);
    }
  }
  const std::map<std::string, KnownObjects>& known() const { return known_; }

 private:
  void on(const NodeObserved& seen) {
    KnownObjects& node = known_[seen.info.name];
    node.info = seen.info;
    std::erase_if(node.gpus, [&](const auto& entry) {
      return std::ranges::find(seen.info.gpus, entry.first, &model::GpuInfo::uuid) ==
             seen.info.gpus.end();
    });
  }
  void on(const NodeUnreachable& seen) { known_.erase(seen.node_name); }
  void on(const TaintObserved& seen) {
    KnownObjects& node = known_.at(seen.node_name);
    if (seen.gpu_uuid.empty()) {
      node.taint = seen;
    } else {
      node.gpus[seen.gpu_uuid] = seen.text;
    }
  }

  // A fault begins once on each machine and ends once, whatever else is told of its node.
  void on(const EvidenceObserved& seen) {
    const std::string fault = seen.node_name + seen.gpu_uuid + seen.evidence.text;
    const std::string& machine = known_.at(seen.node_name).info.boot_id;
    const auto begun = faults_.find(fault);
    if (seen.evidence.is_over) {
      EXPECT_NE(begun, faults_.end()) << fault;
      faults_.erase(fault);
    } else {
      EXPECT_TRUE(begun == faults_.end() || begun->second != machine) << fault;
      faults_[fault] = machine;
    }
  }

  std::map<std::string, KnownObjects> known_;
  std::map<std::string, std::string> faults_;  // by the machine on which they were told
};

// The objects of a cluster that changes at random, and what a watch tells of it.
class ViewWorld {
 public:
  ViewWorld(std::uint64_t seed, DeviceMode devices) : prng_(seed) {
    settings_.cluster = "lab";
    settings_.devices = devices;
    settings_.node_selector = {{"pool", "gpu"}};
  }

  void list(ClusterView& view, Kind kind) {
    view.begin_list(kind);
    for (const auto& [key, object] : objects_[kind]) view.put(kind, object);
    view.end_list(kind);
  }

  // Changes something and tells of it, or says nothing and lists everything of that kind anew.
  void step(ClusterView& view, Listener& listener, base::Instant now) {
    const Kind kind = kKinds[prng_.below(std::size(kKinds))];
    if (kind == Kind::kSlice) return change_pool(view, listener, now);
    const bool is_missed = prng_.chance(1, 6);
    // A pod is in one of the two lists.
    const std::string name =
        fmt::format("{}{}", kind == Kind::kLabelledPod ? "l" : "o", prng_.below(kViewNodes));
    const auto old = objects_[kind].find(name);
    if (old != objects_[kind].end() && prng_.chance(1, 4)) {
      if (!is_missed) view.remove(kind, old->second);
      objects_[kind].erase(old);
    } else {
      objects_[kind][name] = new_object(kind, name);
      if (!is_missed) view.put(kind, objects_[kind][name]);
    }
    if (is_missed) list(view, kind);
  }

  const KubernetesSettings& settings() const { return settings_; }

 private:
  std::string a_node() { return fmt::format("o{}", prng_.below(kViewNodes)); }

  Json new_object(Kind kind, const std::string& name) {
    if (kind == Kind::kClaim) {
      Json claim = claim_object(name, a_node(), fmt::format("gpu-{}", prng_.below(4)));
      if (prng_.chance(1, 3)) claim["status"].erase("allocation");
      if (prng_.chance(1, 3)) claim["metadata"]["labels"] = {{"gpu-platform/cluster", "lab"}};
      return claim;
    }
    if (kind == Kind::kTaintRule) {
      Json selector = Json::object();
      if (prng_.chance(1, 2)) selector["pool"] = a_node();
      if (prng_.chance(1, 2)) selector["device"] = fmt::format("gpu-{}", prng_.below(4));
      if (prng_.chance(1, 4)) selector["driver"] = "other.example.org";
      constexpr const char* kEffects[] = {"NoSchedule", "NoExecute", "None"};
      return taint_rule_object(name, selector, kEffects[prng_.below(std::size(kEffects))]);
    }
    if (kind == Kind::kOtherPod || kind == Kind::kLabelledPod) {
      Json pod = pod_object(name, a_node(),
                            {{"cpu", fmt::format("{}m", prng_.below(4000))},
                             {"memory", fmt::format("{}Mi", prng_.below(4000))},
                             {"nvidia.com/gpu", fmt::format("{}", prng_.below(3))}});
      if (prng_.chance(1, 4)) pod["status"]["phase"] = "Failed";
      if (kind == Kind::kLabelledPod) {
        pod["metadata"]["labels"]["gpu-platform/cluster"] = "lab";
        if (prng_.chance(1, 2)) pod["metadata"]["labels"]["gpu-platform/adopted"] = "lab";
      }
      return pod;
    }
    Json node = node_object(name);
    if (prng_.chance(1, 3)) node["status"]["conditions"][1]["status"] = "Unknown";
    if (prng_.chance(1, 2)) {
      node["status"]["conditions"][1]["lastTransitionTime"] = "2026-11-22T08:58:00Z";
    }
    if (!prng_.chance(1, 8)) node["metadata"]["labels"]["pool"] = "gpu";
    if (prng_.chance(1, 4)) node["spec"]["unschedulable"] = true;
    if (prng_.chance(1, 4)) {
      node["status"]["conditions"].push_back({{"type", "GpuXidError"}, {"status", "True"}});
    }
    if (prng_.chance(1, 4)) node["status"]["allocatable"]["nvidia.com/gpu"] = "5";
    node["metadata"]["uid"] = fmt::format("uid-{}", prng_.below(2));
    return node;
  }

  // A new generation of one or two slices, told one by one in any order, the old ones removed
  // before or after; or all slices go.
  void change_pool(ClusterView& view, Listener& listener, base::Instant now) {
    const std::string node = a_node();
    auto& slices = objects_[Kind::kSlice];
    std::vector<Json> gone;
    for (auto i = slices.begin(); i != slices.end();) {
      const bool is_of_pool = i->second["spec"]["nodeName"] == node;
      if (is_of_pool) gone.push_back(i->second);
      i = is_of_pool ? slices.erase(i) : std::next(i);
    }
    std::vector<Json> come;
    const std::uint64_t count = prng_.below(3);
    ++generation_;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string name = fmt::format("{}-{}", node, prng_.below(2) * 10 + i);
      std::vector<Json> devices;
      for (std::uint32_t minor = 0; minor < 2; ++minor) {
        if (!prng_.chance(1, 4))
          devices.push_back(gpu_device(node, static_cast<std::uint32_t>(i) * 2 + minor));
      }
      come.push_back(slice_object({name, node, generation_, static_cast<std::int64_t>(count)},
                                  std::move(devices)));
      slices[name] = come.back();
    }
    const bool removes_first = prng_.chance(1, 2);
    if (removes_first) remove_slices(view, gone, listener, now);
    for (const Json& slice : come) {
      view.put(Kind::kSlice, slice);
      if (prng_.chance(1, 2)) listener.take(view, now);
    }
    if (!removes_first) remove_slices(view, gone, listener, now);
  }

  // Those whose names are used again are not removed.
  void remove_slices(ClusterView& view, const std::vector<Json>& gone, Listener& listener,
                     base::Instant now) {
    for (const Json& slice : gone) {
      if (objects_[Kind::kSlice].contains(slice["metadata"]["name"].get<std::string>())) continue;
      view.remove(Kind::kSlice, slice);
      if (prng_.chance(1, 2)) listener.take(view, now);
    }
  }

  base::Prng prng_;
  KubernetesSettings settings_;
  std::int64_t generation_ = 0;
  std::map<Kind, std::map<std::string, Json>> objects_;
};

// Returns how many nodes are known in the end.
std::size_t run(std::uint64_t seed, DeviceMode devices) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  ViewWorld world(seed, devices);
  ClusterView view(world.settings());
  Listener listener;
  base::Instant now = parse_time("2026-11-22T09:00:00Z");
  for (const Kind kind : kKinds) world.list(view, kind);
  for (int i = 0; i < 60; ++i) {
    world.step(view, listener, now);
    now = now + base::seconds(5);
    if (i % 3 == 0) listener.take(view, now);
  }
  listener.take(view, now);
  ClusterView fresh(world.settings());
  Listener newcomer;
  for (const Kind kind : kKinds) world.list(fresh, kind);
  newcomer.take(fresh, now);
  EXPECT_EQ(listener.known(), newcomer.known());
  EXPECT_EQ(view.nodes(), fresh.nodes());
  EXPECT_EQ(view.next_due(), fresh.next_due());
  return newcomer.known().size();
}

TEST(ClusterViewProperty, TheWayToTheSameObjectsDoesNotMatter) {
  std::size_t known = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    known += run(seed, DeviceMode::kPinned);
    known += run(seed, DeviceMode::kCounts);
    if (HasFailure()) return;
  }
  EXPECT_GT(known, 100U);
}

TEST(ClusterViewProperty, FactsOfANodeAreTheSameWithoutWhatTheyDoNotRead) {
  base::Prng prng(3);
  Json whole = node_object("n1");
  whole["metadata"]["deletionTimestamp"] = "2026-11-22T08:36:36Z";
  whole["spec"] = Json::parse(R"({"unschedulable":true,"providerID":"p",
    "taints":[{"key":"a","value":"b","effect":"NoExecute"}]})");
  whole["status"]["images"] = Json::parse(R"([{"names":["i"],"sizeBytes":1}])");
  for (int i = 0; i < 4'000; ++i) {
    Json node = whole;
    for (std::uint64_t n = prng.below(4); n > 0; --n) spoil(node, prng);
    const std::string text = node.dump(-1, ' ', false, Json::error_handler_t::replace);
    EXPECT_EQ(facts_of_node(kubernetes::read_json(text, fields_of_nodes()), {}),
              facts_of_node(kubernetes::read_json(text), {}))
        << text;
  }
}

TEST(ClusterViewProperty, NoJsonEndsTheProgram) {
  base::Prng prng(7);
  KubernetesSettings settings;
  settings.cluster = "lab";
  ClusterView view(settings);
  for (const Kind kind : kKinds) {
    view.begin_list(kind);
    view.end_list(kind);
  }
  Json node = node_object("n1");
  node["spec"]["taints"] = Json::parse(R"([{"key":"a","value":"b","effect":"NoExecute"}])");
  const std::vector<std::pair<Kind, Json>> whole = {
      {Kind::kNode, node},
      {Kind::kSlice, slice_object({"s1", "n1"}, {gpu_device("n1", 0)})},
      {Kind::kClaim, claim_object("c", "n1", "gpu-0")},
      {Kind::kTaintRule,
       taint_rule_object("r", {{"driver", "gpu.nvidia.com"}, {"pool", "n1"}, {"device", "gpu-0"}})},
      {Kind::kOtherPod, pod_object("p", "n1", {{"cpu", "1"}, {"memory", "7Ei"}})}};
  std::size_t told = 0;
  for (int i = 0; i < 4'000; ++i) {
    auto [kind, object] = whole[prng.below(whole.size())];
    for (std::uint64_t n = prng.below(4); n > 0; --n) spoil(object, prng);
    if (prng.chance(1, 5)) {
      view.remove(kind, object);
    } else {
      view.put(kind, object);
    }
    told += view.take_changes(parse_time("2026-11-22T09:00:00Z")).size();
  }
  EXPECT_GT(told, 400U);
}

}  // namespace
}  // namespace gpu_platform::execution
