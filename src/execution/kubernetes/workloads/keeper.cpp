#include "execution/kubernetes/workloads/keeper.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/cluster/preflight.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "execution/kubernetes/workloads/requests.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;
using kubernetes::Answer;

constexpr base::Duration kRightsPause = base::seconds(20);

std::vector<NodeSize> sizes_of(const ClusterView& view) {
  std::vector<NodeSize> sizes;
  view.for_each_node([&](const model::NodeInfo& info, const ClusterView::Labels& labels) {
    const auto gpus = static_cast<std::uint32_t>(info.gpus.size());
    sizes.push_back({info.name, labels, gpus, info.cpus, info.memory});
  });
  return sizes;
}

std::string reason_in(const Answer& answer) {
  return std::string(text_at(Json::parse(answer.body, nullptr, false), {"reason"}));
}

}  // namespace

WorkloadKeeper::WorkloadKeeper(kubernetes::Client& client, const KubernetesSettings& settings,
                               const ClusterView& view, WorkloadPort* workload_port,
                               ObservationSink& sink,
                               std::function<void(const std::string& line)> warn)
    : client_(client),
      settings_(settings),
      view_(view),
      workload_port_(workload_port),
      sink_(sink),
      groups_(
          settings, [&view] { return sizes_of(view); },
          [this](const std::string& key) {
            using Admitted = WorkloadGroups::Admitted;
            if (attempts_.has_live_pods(key)) return Admitted::kLivePods;
            if (attempts_.awaits_pods(key)) return Admitted::kAwaited;
            return attempts_.has_attempt(key) ? Admitted::kOver : Admitted::kNothing;
          }),
      attempts_(
          settings, [&view](std::string_view node) { return view.boot_id_of(node); },
          [this](const std::string& key) { return groups_.ready_pods(key); }),
      warn_(std::move(warn)) {}

std::vector<WorkloadKeeper::Followed> WorkloadKeeper::followed() {
  const auto seen = [this](const Json& object, auto then) {
    if (auto pod = view_of_adopted_pod(object, settings_.cluster)) then(*pod);
  };
  std::vector<Followed> all;
  all.push_back(
      {{"/api/v1/pods", fmt::format("labelSelector=gpu-platform%2Fadopted%3D{}", settings_.cluster),
        fields_of_pods()},
       {.on_list_asked = [this] { attempts_.begin_list(); },
        .on_list_begin = {},
        .on_object =
            [this, seen](const Json& object) {
              seen(object, [this](const PodView& pod) { attempts_.see(pod); });
            },
        .on_deleted =
            [this, seen](const Json& object) {
              seen(object, [this](const PodView& pod) { attempts_.see_gone(pod); });
            },
        .on_listed =
            [this] {
              if (is_listed_) attempts_.listed();
            },
        .on_trouble = {}}});
  if (!settings_.admits_workloads) return all;
  all.push_back({{"/api/v1/namespaces", "labelSelector=gpu-platform%2Fqueue"},
                 {.on_list_asked = {},
                  .on_list_begin = [this] { groups_.begin_namespaces(); },
                  .on_object = [this](const Json& object) { see_namespace(object); },
                  .on_deleted = [this](const Json& object) { groups_.remove_namespace(object); },
                  .on_listed = [this] { groups_.namespaces_listed(); },
                  .on_trouble = {}}});
  // No pod with a gate has a node.
  all.push_back({{"/api/v1/pods", "fieldSelector=spec.nodeName%3D"},
                 {.on_list_asked = {},
                  .on_list_begin = [this] { groups_.begin_pods(); },
                  .on_object = [this](const Json& object) { groups_.see_pod(object); },
                  .on_deleted = [this](const Json& object) { groups_.remove_pod(object); },
                  .on_listed = [this] { groups_.pods_listed(); },
                  .on_trouble = {}}});
  return all;
}

void WorkloadKeeper::see_namespace(const Json& object) {
  groups_.see_namespace(object);
  const std::string name = line_at(object, {"metadata", "name"});
  if (groups_.is_queued(name) && !rights_.contains(name)) ask_for_rights(name);
}

void WorkloadKeeper::ask_for_rights(const std::string& namespace_name) {
  client_.send(review_of(right_of_queue(), namespace_name),
               [this, namespace_name](const Answer& answer) {
                 if (!answer.is_ok()) return;
                 const bool has_rights = is_allowed(answer);
                 const auto known = rights_.find(namespace_name);
                 const bool is_news = known == rights_.end() || known->second != has_rights;
                 rights_[namespace_name] = has_rights;
                 groups_.see_rights(namespace_name, has_rights);
                 if (has_rights || !is_news || !warn_) return;
                 warn_(
                     fmt::format("namespace {} has the label {}, and the platform may not admit "
                                 "its pods: bind the role gpu-platform-queue there "
                                 "(deploy/kubernetes/README.md)",
                                 namespace_name, kQueueLabel));
               });
}

// An administrator may bind the role after the label.
void WorkloadKeeper::ask_for_missing_rights(base::Instant now) {
  if (rights_asked_at_.is_set() && now < rights_asked_at_ + kRightsPause) return;
  rights_asked_at_ = now;
  for (const auto& [name, has_rights] : rights_) {
    if (!has_rights && groups_.is_queued(name)) ask_for_rights(name);
  }
}

void WorkloadKeeper::listed() {
  is_listed_ = true;
  attempts_.listed();
}

void WorkloadKeeper::tell(const WorkloadNews& news) {
  if (settings_.admits_workloads) return groups_.tell(news);
  // The site admits none any more: a job that waits would wait for ever.
  const bool waits = news.state == WorkloadNews::State::kWaiting;
  if (waits && workload_port_ != nullptr) workload_port_->withdraw(news.key, kWorkloadDeleted);
}

void WorkloadKeeper::work(base::Instant now) {
  // How large nodes are must be known before a job is made.
  if (is_listed_) groups_.advance(now);
  ask_for_missing_rights(now);
  for (const std::string& key : groups_.take_changed_keys()) attempts_.touch_workload(key);
  for (WorkloadSubmission& each : groups_.take_submissions())
    workload_port_->submit(std::move(each));
  for (WorkloadWithdrawal& each : groups_.take_withdrawals()) {
    workload_port_->withdraw(std::move(each.key), each.why);
  }
  for (const GroupCall& call : groups_.take_calls()) make(call, now);
  attempts_.advance(now);
  for (const WorkloadCall& call : attempts_.take_calls()) make(call);
  for (const std::string& key : attempts_.take_owner_questions()) ask_whether_finished(key);
  for (Observation& observation : attempts_.take_observations()) {
    sink_.observe(std::move(observation));
  }
  std::erase_if(said_admitted_, [this](model::AttemptId id) { return !attempts_.knows(id); });
  std::erase_if(admitted_, [this](const auto& pod) { return !attempts_.knows(pod.second); });
}

base::Instant WorkloadKeeper::next_due() const {
  const base::Instant a = is_listed_ ? groups_.next_due() : base::Instant();
  const base::Instant b = attempts_.next_due();
  if (!a.is_set() || !b.is_set()) return a.is_set() ? a : b;
  return std::min(a, b);
}

void WorkloadKeeper::make(WorkloadCall call) {
  if (!call.node.empty()) call.node = view_.host_name_of(call.node);
  client_.send(request_of(call, settings_), [this, call](const Answer& answer) {
    CallAnswer told{.status = answer.status};
    if (!answer.is_ok()) {
      told.reason = reason_in(answer);
      told.text = kubernetes::error_message_of(answer);
    }
    attempts_.answer(call.id, told, os::wall_now());
    if (answer.is_ok() && call.kind == WorkloadCallKind::kAdmitPod) say_admitted(call);
  });
}

// Without an answer, the attempt ends when no further pod came.
void WorkloadKeeper::ask_whether_finished(const std::string& key) {
  const auto workload = workload_of_key(key);
  const std::string path = workload ? owner_path(*workload) : std::string();
  if (path.empty()) return;
  client_.send({.path = path}, [this, key, workload = *workload](const Answer& answer) {
    const bool is_gone = answer.status == 404;
    if (!answer.is_ok() && !is_gone) return;
    const Json owner = answer.is_ok() ? Json::parse(answer.body, nullptr, false) : Json();
    const auto end = end_of_owner(facts_of_owner(owner, workload));
    if (end) attempts_.owner_ended(key, *end);
  });
}

// For people alone: what fails here is not repeated.
void WorkloadKeeper::say_admitted(const WorkloadCall& call) {
  GroupCall said;
  said.kind = GroupCallKind::kSetCondition;
  said.namespace_name = call.namespace_name;
  said.name = call.name;
  said.uid = call.uid;
  said.condition = {
      true, "Admitted",
      fmt::format("job {}, attempt {}{}{}", call.attempt.job.value, call.attempt.attempt,
                  call.node.empty() ? "" : ", on node ", call.node)};
  admitted_[call.uid] = call.attempt;
  set_condition(said);
  if (!said_admitted_.insert(call.attempt).second) return;
  said.kind = GroupCallKind::kMakeEvent;
  make(said, os::wall_now());
}

void WorkloadKeeper::set_condition(const GroupCall& call) {
  if (!call.condition.is_admitted && admitted_.contains(call.uid)) return;
  const auto under_way = conditions_.find(call.uid);
  if (under_way != conditions_.end()) {
    under_way->second = call;
    return;
  }
  conditions_[call.uid].reset();
  send_condition(call);
}

void WorkloadKeeper::send_condition(const GroupCall& call) {
  client_.send(request_of(call, os::wall_now()), [this, uid = call.uid](const Answer&) {
    const auto done = conditions_.find(uid);
    const std::optional<GroupCall> next = std::exchange(done->second, std::nullopt);
    if (next) return send_condition(*next);
    conditions_.erase(done);
  });
}

void WorkloadKeeper::make(const GroupCall& call, base::Instant now) {
  if (call.kind == GroupCallKind::kSetCondition) return set_condition(call);
  const bool is_read = call.kind == GroupCallKind::kReadOwner;
  client_.send(request_of(call, now), [this, is_read, key = call.key](const Answer& answer) {
    if (!is_read) return;
    const auto workload = workload_of_key(key);
    const bool is_answer = answer.is_ok() || answer.status == 404;
    if (!is_answer || !workload) return groups_.owner_seen(key, std::nullopt);
    const Json owner = answer.is_ok() ? Json::parse(answer.body, nullptr, false) : Json();
    groups_.owner_seen(key, facts_of_owner(owner, *workload));
  });
}

}  // namespace gpu_platform::execution
