#include "execution/kubernetes/kubernetes_engine.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/cluster/cluster_view.h"
#include "execution/kubernetes/cluster/device_claims.h"
#include "execution/kubernetes/cluster/device_configs.h"
#include "execution/kubernetes/cluster/taint_rule_follower.h"
#include "execution/kubernetes/job_namespace.h"
#include "execution/kubernetes/lease/lease_keeper.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/call_requests.h"
#include "execution/kubernetes/pods/channel_target.h"
#include "execution/kubernetes/pods/output_follower.h"
#include "execution/kubernetes/pods/output_spool.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "execution/kubernetes/workloads/keeper.h"
#include "execution/process/kept_output.h"
#include "kubernetes/endpoint.h"
#include "kubernetes/json_reader.h"
#include "kubernetes/pod_streams.h"
#include "kubernetes/reflector.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

using kubernetes::Answer;
using kubernetes::Client;
using kubernetes::Followed;
using kubernetes::FollowHandlers;
using kubernetes::Reflector;
using Json = nlohmann::json;

constexpr base::Duration kLongestSleep = base::seconds(1);
constexpr base::Duration kOutputPatience = base::seconds(30);
constexpr base::Duration kFollowPause = base::seconds(5);

struct Adopt {
  std::vector<KnownAttempt> known;
};
struct Follow {
  model::AttemptId attempt;
};
struct Remove {
  std::vector<model::JobId> jobs;
};
// How the job's main process ended, for a client that is attached to it.
struct AskEnd {
  model::AttemptId attempt;
  kubernetes::PodStreamHooks::Done done;
};
// The client of a job has sent input.
struct Typed {
  model::AttemptId attempt;
};
struct OpenChannel {
  model::ChannelOrder order;
  KubernetesEngine::ChannelOpened done;
};
using Order = std::variant<StartOrder, StopOrder, LimitOrder, ForgetOrder, Adopt, Follow, Remove,
                           OpenChannel, WorkloadNews, AskEnd, Typed>;

std::string reason_of(const Answer& answer) {
  return std::string(text_at(kubernetes::read_json(answer.body, {"reason"}), {"reason"}));
}

std::string uid_of(const Answer& answer) {
  const Json object = kubernetes::read_json(answer.body, {"metadata.uid"});
  return std::string(text_at(object, {"metadata", "uid"}));
}

// A server without the feature drops the fields that it does not know, and says nothing.
bool has_allocation(const Answer& answer) {
  return at(kubernetes::read_json(answer.body), {"status", "allocation"}).is_object();
}

kubernetes::StreamEnd end_of_own_process(std::int32_t exit_code) {
  return {model::ChannelEnd::kExited, static_cast<std::uint8_t>(std::clamp(exit_code, 0, 255)), {}};
}

std::string selector(const KubernetesSettings& settings, std::string_view comparison) {
  // The label's '/' and '=' are encoded for a query.
  return fmt::format("labelSelector=gpu-platform%2Fcluster{}{}", comparison, settings.cluster);
}

}  // namespace

class KubernetesEngine::Worker {
 public:
  Worker(KubernetesEngineOptions options, const EnvironmentSource& environment,
         ObservationSink& sink, std::unique_ptr<Client> client, kubernetes::Endpoint endpoint,
         OutputSpool spool)
      : options_(std::move(options)),
        environment_(environment),
        sink_(sink),
        client_(std::move(client)),
        spool_(std::move(spool)),
        output_(
            *client_, spool_,
            [this](model::AttemptId attempt) { attempts_.note_activity(attempt, os::wall_now()); }),
        lease_(*client_, options_.lease,
               [this](const base::Error& error) {
                 if (options_.on_fatal) options_.on_fatal(error);
               }),
        view_(options_.settings),
        attempts_(options_.settings,
                  [this](std::string_view node) { return view_.boot_id_of(node); }),
        workloads_(*client_, options_.settings, view_, options_.workload_port, sink_,
                   options_.warn),
        streams_(std::move(endpoint)) {
    follow_all();
    thread_ = std::thread([this] { run(); });
  }

  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    client_->wake();
    thread_.join();
  }

  void post(Order order) {
    {
      const std::lock_guard lock(mutex_);
      orders_.push_back(std::move(order));
    }
    client_->wake();
  }

  bool wait_for_nodes(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return nodes_known_.wait_for(lock, time, [this] { return are_nodes_known_; });
  }

  std::string step_of(model::AttemptId attempt) const {
    const std::lock_guard lock(mutex_);
    const auto found = steps_.find(attempt);
    return found == steps_.end() ? std::string() : found->second;
  }

  bool awaits_output(model::AttemptId attempt) const {
    const std::lock_guard lock(mutex_);
    const auto found = awaited_output_.find(attempt);
    return found != awaited_output_.end() && os::monotonic_ns() < found->second;
  }

  const std::string& output_folder() const { return spool_.folder(); }

 private:
  void run() {
    while (true) {
      std::vector<Order> orders;
      {
        const std::lock_guard lock(mutex_);
        if (is_stopping_) return;
        orders.swap(orders_);
      }
      for (Order& order : orders) carry_out(order);
      const std::int64_t now_ns = os::monotonic_ns();
      for (const auto& reflector : reflectors_) reflector->advance(now_ns);
      if (taint_rules_) taint_rules_->advance(now_ns);
      lease_.advance(now_ns);
      output_.advance(now_ns);
      work();
      follow_idle_ones(now_ns);
      client_->poll(sleep_time());
    }
  }

  // What is known leads to observations and calls, which may at once lead to more.
  void work() {
    const base::Instant now = os::wall_now();
    tell_nodes(now);
    attempts_.advance(now);
    tell_ends();
    drop_awaited_output();
    for (const Call& call : attempts_.take_calls()) make(call);
    for (Observation& observation : attempts_.take_observations()) {
      if (const auto* started = std::get_if<Started>(&observation)) watch_idleness(*started);
      if (const auto* ended = std::get_if<Ended>(&observation)) {
        end_streams(ended->attempt);
        await_output(ended->attempt);
      }
      sink_.observe(std::move(observation));
    }
    workloads_.work(now);
    keep_steps(attempts_);
    keep_steps(workloads_.attempts());
  }

  // For readers on other threads.
  template <class Attempts>
  void keep_steps(Attempts& attempts) {
    const std::vector<model::AttemptId> changed = attempts.take_changed_steps();
    if (changed.empty()) return;
    const std::lock_guard lock(mutex_);
    for (const model::AttemptId attempt : changed) {
      std::string step = attempts.step_of(attempt);
      if (step.empty()) {
        steps_.erase(attempt);
      } else {
        steps_[attempt] = std::move(step);
      }
    }
  }

  void tell_nodes(base::Instant now) {
    for (auto& observation : view_.take_changes(now)) {
      std::visit([this](auto& each) { sink_.observe(std::move(each)); }, observation);
    }
    const bool all = std::ranges::all_of(reflectors_, [](const auto& r) { return r->is_listed(); });
    const bool has_rules = !taint_rules_ || taint_rules_->is_listed();
    if (!all || !has_rules || is_listed_) return;
    is_listed_ = true;
    attempts_.listed();
    workloads_.listed();
    const std::lock_guard lock(mutex_);
    are_nodes_known_ = true;
    nodes_known_.notify_all();
  }

  base::Duration sleep_time() const {
    const std::int64_t now_ns = os::monotonic_ns();
    const base::Instant now = os::wall_now();
    base::Duration sleep = kLongestSleep;
    const auto until_ns = [&](std::int64_t due) {
      if (due != 0) sleep = std::min(sleep, base::nanoseconds(due - now_ns));
    };
    const auto until = [&](base::Instant due) {
      if (due.is_set()) sleep = std::min(sleep, due - now);
    };
    for (const auto& reflector : reflectors_) until_ns(reflector->due_ns());
    if (taint_rules_) until_ns(taint_rules_->due_ns());
    until_ns(lease_.due_ns());
    until_ns(output_.due_ns());
    until(attempts_.next_due());
    until(workloads_.next_due());
    until(view_.next_due());
    return std::max(sleep, base::Duration());
  }

  // ---- orders

  void carry_out(Order& order) {
    std::visit([this](auto& each) { on(each); }, order);
  }
  bool is_workload(model::AttemptId attempt) const { return workloads_.attempts().knows(attempt); }

  void on(StartOrder& order) {
    if (!order.spec->workload.empty()) {
      return workloads_.attempts().start(order, os::wall_now());
    }
    const std::string& ref = order.spec->environment_ref;
    auto environment = ref.empty() ? std::string() : environment_.environment(ref);
    if (!environment) {
      Ended ended;
      ended.attempt = order.attempt;
      ended.at = os::wall_now();
      const bool is_lost = is_environment_lost(environment.error());
      ended.reason = is_lost ? model::EndReason::kEnvironmentLost : model::EndReason::kLaunchFailed;
      ended.detail = is_lost
                         ? std::string(kEnvironmentLostDetail)
                         : "the job's environment cannot be read: " + environment.error().message;
      sink_.observe(std::move(ended));
      sink_.observe(Cleaned{order.attempt, {}});
      return;
    }
    attempts_.start(order, *std::move(environment), os::wall_now());
  }
  void on(StopOrder& order) {
    if (is_workload(order.attempt)) return workloads_.attempts().stop(order);
    attempts_.stop(order);
  }
  void on(LimitOrder& order) {
    workloads_.attempts().set_limit(order);
    attempts_.set_limit(order);
  }
  void on(WorkloadNews& news) { workloads_.tell(news); }
  void on(ForgetOrder& order) {
    if (is_workload(order.attempt)) return workloads_.attempts().forget(order);
    attempts_.forget(order);
    forgotten_.insert(order.attempt);
  }
  void on(Adopt& order) {
    const auto theirs = std::ranges::stable_partition(
        order.known, [](const KnownAttempt& known) { return known.order.spec->workload.empty(); });
    const std::vector<KnownAttempt> of_workloads(theirs.begin(), theirs.end());
    order.known.erase(theirs.begin(), theirs.end());
    attempts_.adopt(order.known, os::wall_now());
    workloads_.attempts().adopt(of_workloads, os::wall_now());
  }
  void on(Follow& order) {
    for (const PodView& pod : attempts_.pods_of(order.attempt)) output_.follow(pod);
  }
  void on(Remove& order) {
    for (const model::JobId job : order.jobs) spool_.remove(job);
  }

  // The way to a pod is asked for with the credential that is good now.
  void on(OpenChannel& order) {
    const model::AttemptId attempt = order.order.attempt;
    const StartOrder* start = attempts_.order_of(attempt);
    auto stream = channel_target(order.order, attempts_.pods_of(attempt),
                                 start == nullptr ? nullptr : start->spec.get());
    if (!stream) return order.done(std::unexpected(std::move(stream).error()));
    const bool shows_latest = stream->is_attach() && !stream->without_output;
    if (!shows_latest) return open(attempt, *std::move(stream), std::move(order.done));
    // What it printed before is in the log alone. Without it, the channel is opened all the same.
    const std::string path = latest_output_path_of(stream->namespace_name, stream->pod);
    client_->send({.path = path}, [this, attempt, stream = *std::move(stream),
                                   done = std::move(order.done)](const Answer& answer) mutable {
      if (answer.is_ok()) stream.printed = answer.body;
      open(attempt, std::move(stream), std::move(done));
    });
  }

  void open(model::AttemptId attempt, kubernetes::PodStream stream,
            KubernetesEngine::ChannelOpened done) {
    client_->ask_credential([this, attempt, stream = std::move(stream), done = std::move(done)](
                                base::Result<kubernetes::Credential> credential) {
      if (!credential) return done(std::unexpected(std::move(credential).error()));
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return done(std::unexpected(base::system_error("make a channel", errno)));
      }
      streams_.run(stream, *std::move(credential), os::Descriptor(ends[0]), hooks_of(attempt));
      done(os::Descriptor(ends[1]));
    });
  }

  kubernetes::PodStreamHooks hooks_of(model::AttemptId attempt) {
    return {.ask_end =
                [this, attempt](kubernetes::PodStreamHooks::Done done) {
                  post(AskEnd{attempt, std::move(done)});
                },
            .on_input = [this, attempt] { post(Typed{attempt}); }};
  }

  // A job that may be idle is known by its output.
  void watch_idleness(const Started& started) {
    const StartOrder* order = attempts_.order_of(started.attempt);
    if (order == nullptr || !order->spec->idle_timeout) return;
    may_be_idle_.insert(started.attempt);
    follow_due_ns_ = os::monotonic_ns();
  }

  // A stream that broke is opened anew after a while.
  void follow_idle_ones(std::int64_t now_ns) {
    if (may_be_idle_.empty() || now_ns < follow_due_ns_) return;
    follow_due_ns_ = now_ns + kFollowPause.value();
    std::erase_if(may_be_idle_, [this](model::AttemptId attempt) {
      const std::vector<PodView> pods = attempts_.pods_of(attempt);
      for (const PodView& pod : pods) output_.follow(pod);
      return std::ranges::all_of(pods, is_dead);
    });
  }

  void on(Typed& order) { attempts_.note_activity(order.attempt, os::wall_now()); }
  // Before the end is told: who hears of it may ask.
  void await_output(model::AttemptId attempt) {
    if (!attempts_.awaits_output(attempt)) return;
    const std::lock_guard lock(mutex_);
    awaited_output_[attempt] = os::monotonic_ns() + kOutputPatience.value();
  }

  // A job that has no devices is forgotten before its output has come.
  void drop_awaited_output() {
    std::erase_if(forgotten_, [this](model::AttemptId attempt) {
      if (attempts_.awaits_output(attempt)) return false;
      output_.forget(attempt);
      return true;
    });
    const std::lock_guard lock(mutex_);
    std::erase_if(awaited_output_,
                  [this](const auto& each) { return !attempts_.awaits_output(each.first); });
  }

  // A node that is lost tells no client of its end.
  void end_streams(model::AttemptId attempt) {
    for (const PodView& pod : attempts_.pods_of(attempt)) {
      streams_.process_ended(pod.namespace_name, pod.name);
    }
  }

  void on(AskEnd& order) { waiting_for_end_.push_back(std::move(order)); }

  void tell_ends() {
    std::erase_if(waiting_for_end_, [this](const AskEnd& each) {
      const std::vector<PodView> pods = attempts_.pods_of(each.attempt);
      const bool runs = !pods.empty() && !is_dead(pods.front());
      if (runs) return false;
      const bool is_known = !pods.empty() && pods.front().exit_code;
      each.done(is_known ? std::optional(end_of_own_process(*pods.front().exit_code))
                         : std::nullopt);
      return true;
    });
  }

  // ---- calls

  CallContext context_of(const Call& call) const {
    CallContext context;
    context.order = attempts_.order_of(call.attempt);
    context.environment = attempts_.environment_of(call.attempt);
    context.output_bytes = spool_.limit();
    context.pod_uid = attempts_.pod_uid_of(call.attempt, call.rank);
    if (call.kind != CallKind::kAllocate || context.order == nullptr) return context;
    context.configs = &configs_;
    const Rank rank = ranks_of(*context.order)[call.rank];
    const std::string& node = context.order->nodes[rank.node].node_name;
    for (const LaunchGpu& gpu : rank.gpus) {
      if (auto device = view_.device_of(node, gpu.info.uuid)) context.devices.push_back(*device);
    }
    return context;
  }

  void make(const Call& call) {
    if (call.kind == CallKind::kFetchOutput) {
      return output_.complete(call, [this, id = call.id](const CallAnswer& answer) {
        attempts_.answer(id, answer, os::wall_now());
      });
    }
    auto request = request_of(call, context_of(call), options_.settings);
    if (!request) {
      return attempts_.answer(call.id, {.status = 422, .text = request.error().message},
                              os::wall_now());
    }
    client_->send(*std::move(request), [this, id = call.id,
                                        kind = call.kind](const Answer& answer) {
      const bool is_own = options_.settings.devices == DeviceMode::kOwned;
      if (is_own && kind == CallKind::kMakeClaim && answer.is_ok()) note_config_of(answer);
      CallAnswer told{.status = answer.status};
      if (kind == CallKind::kAllocate && answer.is_ok() && !has_allocation(answer)) {
        told = {.status = 422, .text = "the API server has dropped the allocation of the claim"};
      } else if (!answer.is_ok()) {
        told.reason = reason_of(answer);
        told.text = kubernetes::complaint_of(answer);
      } else if (kind == CallKind::kMakePod) {
        told.uid = uid_of(answer);
      }
      attempts_.answer(id, told, os::wall_now());
    });
  }

  // The watch may tell of the claim after it is allocated. Webhooks may have configured it.
  void note_config_of(const Answer& claim) {
    configs_.put(DeviceConfigs::Source::kClaim, kubernetes::read_json(claim.body));
  }

  // ---- what is followed

  void follow_all() {
    const KubernetesSettings& settings = options_.settings;
    follow({"/api/v1/nodes", {}, fields_of_nodes()}, of_view(ClusterView::Kind::kNode));
    // Bound pods of others that may still use something.
    follow({"/api/v1/pods",
            selector(settings, "!%3D") +
                "&fieldSelector=spec.nodeName%21%3D%2Cstatus.phase%21%3DSucceeded"
                "%2Cstatus.phase%21%3DFailed",
            fields_of_pods()},
           of_view(ClusterView::Kind::kOtherPod));
    if (settings.devices != DeviceMode::kCounts) {
      follow({"/apis/resource.k8s.io/v1/resourceslices",
              fmt::format("fieldSelector=spec.driver%3D{}", settings.driver)},
             of_view(ClusterView::Kind::kSlice));
      follow({"/apis/resource.k8s.io/v1/resourceclaims", {}, fields_of_claims(settings.devices)},
             of_claims());
      taint_rules_.emplace(*client_, of_view(ClusterView::Kind::kTaintRule), options_.warn);
    }
    if (settings.devices == DeviceMode::kOwned) {
      follow({"/apis/resource.k8s.io/v1/deviceclasses", {}}, of_classes());
    }
    follow({"/api/v1/pods", selector(settings, "%3D"), fields_of_pods()}, of_pods());
    for (auto& [what, handlers] : workloads_.followed()) {
      follow(std::move(what), std::move(handlers));
    }
  }

  void follow(Followed what, FollowHandlers handlers) {
    handlers.on_trouble = [this, path = what.path](const std::string& why) {
      if (!options_.warn) return;
      options_.warn(why.empty() ? fmt::format("{} can be followed again", path)
                                : fmt::format("{} cannot be followed: {}", path, why));
    };
    kubernetes::ReflectorOptions options;
    options.seed = reflectors_.size() + 1;
    reflectors_.push_back(
        std::make_unique<Reflector>(*client_, std::move(what), std::move(handlers), options));
  }

  FollowHandlers of_view(ClusterView::Kind kind) {
    return {.on_list_asked = {},
            .on_list_begin = [this, kind] { view_.begin_list(kind); },
            .on_object = [this, kind](const Json& object) { view_.put(kind, object); },
            .on_deleted = [this, kind](const Json& object) { view_.remove(kind, object); },
            .on_listed = [this, kind] { view_.end_list(kind); },
            .on_trouble = {}};
  }

  FollowHandlers of_classes() {
    constexpr auto kKind = DeviceConfigs::Source::kClass;
    return {.on_list_asked = {},
            .on_list_begin = [this] { configs_.begin_list(kKind); },
            .on_object = [this](const Json& object) { configs_.put(kKind, object); },
            .on_deleted = [this](const Json& object) { configs_.remove(kKind, object); },
            .on_listed = [this] { configs_.end_list(kKind); },
            .on_trouble = {}};
  }

  FollowHandlers of_claims() {
    FollowHandlers handlers = of_view(ClusterView::Kind::kClaim);
    handlers.on_list_begin = [this] {
      seen_claims_.clear();
      view_.begin_list(ClusterView::Kind::kClaim);
      configs_.begin_list(DeviceConfigs::Source::kClaim);
    };
    handlers.on_object = [this](const Json& object) {
      seen_claims_.erase(key_of(object));
      view_.put(ClusterView::Kind::kClaim, object);
      see_claim(object, true);
    };
    handlers.on_deleted = [this](const Json& object) {
      seen_claims_.erase(key_of(object));
      view_.remove(ClusterView::Kind::kClaim, object);
      see_claim(object, false);
    };
    if (options_.settings.devices == DeviceMode::kPinned) {
      // kube-scheduler fills in what the platform has asked for.
      handlers.skips_changes = [this](std::string_view namespace_name, std::string_view name) {
        return seen_claims_.contains(fmt::format("{}/{}", namespace_name, name));
      };
    }
    handlers.on_list_asked = [this] {
      attempts_.begin_claim_list();
      workloads_.attempts().begin_claim_list();
    };
    handlers.on_listed = [this] {
      view_.end_list(ClusterView::Kind::kClaim);
      configs_.end_list(DeviceConfigs::Source::kClaim);
      attempts_.claims_listed();
      workloads_.attempts().claims_listed();
    };
    return handlers;
  }

  void see_claim(const Json& object, bool is_there) {
    if (const auto theirs = adopted_claim_of(object, options_.settings.cluster)) {
      return workloads_.attempts().see_claim(
          {theirs->namespace_name, line_at(object, {"metadata", "name"}), theirs->attempt,
           theirs->rank},
          is_there);
    }
    const auto claim = own_claim_of(object, options_.settings.cluster);
    if (!claim || !is_namespace_of_jobs(claim->namespace_name, options_.settings)) return;
    if (is_there) seen_claims_.insert(key_of(object));
    constexpr auto kKind = DeviceConfigs::Source::kClaim;
    is_there ? configs_.put(kKind, object) : configs_.remove(kKind, object);
    attempts_.see_claim({claim->namespace_name, claim->attempt, claim->rank, is_there});
  }

  // All pods with the platform's label; users may have written it.
  FollowHandlers of_pods() {
    constexpr auto kKind = ClusterView::Kind::kLabelledPod;
    FollowHandlers handlers = of_view(kKind);
    handlers.on_list_asked = [this] { attempts_.begin_list(); };
    handlers.on_object = [this](const Json& object) {
      view_.put(kKind, object);
      if (const auto pod = pod_of_a_job(object)) attempts_.see(*pod);
    };
    handlers.on_deleted = [this](const Json& object) {
      view_.remove(kKind, object);
      if (const auto pod = pod_of_a_job(object)) attempts_.see_gone(*pod);
    };
    handlers.on_listed = [this] {
      view_.end_list(kKind);
      if (is_listed_) attempts_.listed();
    };
    return handlers;
  }

  std::optional<PodView> pod_of_a_job(const Json& object) const {
    std::optional<PodView> pod = view_of_pod(object, options_.settings.cluster);
    if (pod && !is_namespace_of_jobs(pod->namespace_name, options_.settings)) pod.reset();
    return pod;
  }

  const KubernetesEngineOptions options_;
  const EnvironmentSource& environment_;
  ObservationSink& sink_;
  const std::unique_ptr<Client> client_;
  OutputSpool spool_;
  OutputFollower output_;
  LeaseKeeper lease_;
  ClusterView view_;
  DeviceConfigs configs_;
  PodAttempts attempts_;
  WorkloadKeeper workloads_;
  std::vector<std::unique_ptr<Reflector>> reflectors_;
  std::optional<TaintRuleFollower> taint_rules_;    // absent: no single devices are known
  std::set<std::string, std::less<>> seen_claims_;  // of jobs of this platform, by "namespace/name"
  bool is_listed_ = false;
  std::vector<AskEnd> waiting_for_end_;
  std::set<model::AttemptId> may_be_idle_;
  std::set<model::AttemptId> forgotten_;  // and their output may still be awaited
  std::int64_t follow_due_ns_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable nodes_known_;
  bool is_stopping_ = false;  // guarded by mutex_, as all below
  bool are_nodes_known_ = false;
  std::vector<Order> orders_;
  std::map<model::AttemptId, std::string> steps_;
  std::map<model::AttemptId, std::int64_t> awaited_output_;  // of ended ones, and until when
  kubernetes::PodStreams streams_;                           // its thread posts orders
  std::thread thread_;                                       // last: it uses all others
};

namespace {

// Whether an engine may go on that has not seen its cluster.
base::Status check_may_wait(const KubernetesEngineOptions& options, base::Error error) {
  if (error.code != base::ErrorCode::kUnavailable) return std::unexpected(std::move(error));
  if (options.history == ClusterHistory::kKnown) return {};
  error.message +=
      "; a daemon that begins with this cluster must see first that no pods of another one are "
      "there: start it again when the cluster answers";
  return std::unexpected(std::move(error));
}

}  // namespace

KubernetesEngine::KubernetesEngine(std::unique_ptr<Worker> worker) : worker_(std::move(worker)) {}
KubernetesEngine::~KubernetesEngine() = default;

base::Result<std::unique_ptr<KubernetesEngine>> KubernetesEngine::open(
    KubernetesEngineOptions options, const EnvironmentSource& environment, ObservationSink& sink) {
  TRY_ASSIGN(OutputSpool spool,
             OutputSpool::open(options.output_folder, options.output_limit_bytes));
  TRY_ASSIGN(kubernetes::Endpoint endpoint, kubernetes::endpoint_of(options.access));
  TRY_ASSIGN(std::unique_ptr<Client> client, Client::make(options.access));
  const base::Status checked = check_cluster(*client, options.settings, options.lease,
                                             options.history, {options.patience, options.must_end});
  if (!checked) TRY(check_may_wait(options, checked.error()));
  if (!checked && options.warn) {
    options.warn("the cluster does not answer yet: " + checked.error().message);
  }
  return std::unique_ptr<KubernetesEngine>(new KubernetesEngine(
      std::make_unique<Worker>(std::move(options), environment, sink, std::move(client),
                               std::move(endpoint), std::move(spool))));
}

void KubernetesEngine::start(const StartOrder& order) {
  worker_->post(order);
}
void KubernetesEngine::stop(const StopOrder& order) {
  worker_->post(order);
}
void KubernetesEngine::set_limit(const LimitOrder& order) {
  worker_->post(order);
}
void KubernetesEngine::signal(const SignalOrder&) {}
void KubernetesEngine::forget(const ForgetOrder& order) {
  worker_->post(order);
}
void KubernetesEngine::adopt(const std::vector<KnownAttempt>& known) {
  worker_->post(Adopt{known});
}
void KubernetesEngine::open_channel(model::ChannelOrder order, ChannelOpened done) {
  worker_->post(OpenChannel{std::move(order), std::move(done)});
}
void KubernetesEngine::tell_workload(WorkloadNews news) {
  worker_->post(std::move(news));
}
bool KubernetesEngine::wait_for_nodes(std::chrono::milliseconds time) const {
  return worker_->wait_for_nodes(time);
}
std::string KubernetesEngine::step_of(model::AttemptId attempt) const {
  return worker_->step_of(attempt);
}
bool KubernetesEngine::awaits_output(model::AttemptId attempt) const {
  return worker_->awaits_output(attempt);
}
std::string KubernetesEngine::output_of(model::AttemptId attempt) const {
  return kept_output_path(worker_->output_folder(), attempt);
}
bool KubernetesEngine::has_output(model::JobId job) const {
  return has_kept_output(worker_->output_folder(), job);
}
void KubernetesEngine::follow_output(model::AttemptId attempt) {
  worker_->post(Follow{attempt});
}
void KubernetesEngine::remove_output(std::vector<model::JobId> jobs) {
  worker_->post(Remove{std::move(jobs)});
}

}  // namespace gpu_platform::execution
