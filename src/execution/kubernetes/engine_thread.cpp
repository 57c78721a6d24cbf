#include "execution/kubernetes/engine_thread.h"

#include <algorithm>
#include <utility>

#include "model/job_spec.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

constexpr base::Duration kLongestSleep = base::seconds(1);

}  // namespace

EngineThread::EngineThread(KubernetesEngineOptions options, const EnvironmentSource& environment,
                           ObservationSink& sink, std::unique_ptr<kubernetes::Client> client,
                           kubernetes::Endpoint endpoint, OutputSpool spool)
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
      workloads_(*client_, options_.settings, view_, options_.workload_port, sink_, options_.warn),
      calls_({*client_, options_.settings, view_, configs_, spool_, output_, attempts_}),
      idle_watch_(attempts_, [this](const PodView& pod) { output_.follow(pod); }),
      awaited_output_(attempts_, [this](model::AttemptId attempt) { output_.forget(attempt); }),
      feed_(options_.settings, {view_, configs_, attempts_, workloads_.attempts()}),
      reflectors_(*client_, options_.warn),
      streams_(*client_, std::move(endpoint), attempts_, stream_hooks()) {
  follow_all();
  thread_ = std::thread([this] { run(); });
}

EngineThread::~EngineThread() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  client_->wake();
  thread_.join();
}

void EngineThread::post(EngineMessage message) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(message));
  }
  client_->wake();
}

bool EngineThread::awaits_output(model::AttemptId attempt) const {
  return awaited_output_.is_awaited(attempt, os::monotonic_ns());
}

void EngineThread::follow_all() {
  for (auto& [what, handlers] : feed_.followed()) {
    reflectors_.follow(std::move(what), std::move(handlers));
  }
  if (auto handlers = feed_.taint_rules()) reflectors_.follow_taint_rules(*std::move(handlers));
  for (auto& [what, handlers] : workloads_.followed()) {
    reflectors_.follow(std::move(what), std::move(handlers));
  }
}

ClientStreams::Hooks EngineThread::stream_hooks() {
  return {.ask_end = [this](EndQuestion question) { post(std::move(question)); },
          .on_input = [this](model::AttemptId attempt) { post(InputSeen{attempt}); }};
}

// ---- the loop

void EngineThread::run() {
  while (true) {
    std::vector<EngineMessage> messages;
    {
      const std::lock_guard lock(mutex_);
      if (is_stopping_) return;
      messages.swap(inbox_);
    }
    for (EngineMessage& message : messages) {
      std::visit([this](auto& each) { on(each); }, message);
    }
    const std::int64_t now_ns = os::monotonic_ns();
    reflectors_.advance(now_ns);
    lease_.advance(now_ns);
    output_.advance(now_ns);
    work();
    idle_watch_.advance(now_ns);
    client_->poll(sleep_time());
  }
}

// What is known leads to observations and calls, which may at once lead to more.
void EngineThread::work() {
  const base::Instant now = os::wall_now();
  tell_nodes(now);
  attempts_.advance(now);
  streams_.tell_ends();
  awaited_output_.drop_complete();
  for (const Call& call : attempts_.take_calls()) calls_.make(call);
  for (Observation& observation : attempts_.take_observations()) tell(std::move(observation));
  workloads_.work(now);
  status_.take_steps(attempts_);
  status_.take_steps(workloads_.attempts());
}

void EngineThread::tell(Observation observation) {
  const std::int64_t now_ns = os::monotonic_ns();
  if (const auto* started = std::get_if<Started>(&observation)) {
    idle_watch_.attempt_started(*started, now_ns);
  }
  if (const auto* ended = std::get_if<Ended>(&observation)) {
    streams_.attempt_ended(ended->attempt);
    awaited_output_.attempt_ended(ended->attempt, now_ns);
  }
  sink_.observe(std::move(observation));
}

void EngineThread::tell_nodes(base::Instant now) {
  for (auto& observation : view_.take_changes(now)) {
    std::visit([this](auto& each) { sink_.observe(std::move(each)); }, observation);
  }
  if (is_listed_ || !reflectors_.are_listed()) return;
  is_listed_ = true;
  feed_.all_listed();
  workloads_.listed();
  status_.nodes_told();
}

base::Duration EngineThread::sleep_time() const {
  const std::int64_t now_ns = os::monotonic_ns();
  const base::Instant now = os::wall_now();
  base::Duration sleep = kLongestSleep;
  for (const std::int64_t due : {reflectors_.due_ns(), lease_.due_ns(), output_.due_ns()}) {
    if (due != 0) sleep = std::min(sleep, base::nanoseconds(due - now_ns));
  }
  for (const base::Instant due : {attempts_.next_due(), workloads_.next_due(), view_.next_due()}) {
    if (due.is_set()) sleep = std::min(sleep, due - now);
  }
  return std::max(sleep, base::Duration());
}

// ---- messages

void EngineThread::on(StartOrder& order) {
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
    ended.detail = is_lost ? std::string(kEnvironmentLostDetail)
                           : "the job's environment cannot be read: " + environment.error().message;
    sink_.observe(std::move(ended));
    sink_.observe(Cleaned{order.attempt, {}});
    return;
  }
  attempts_.start(order, *std::move(environment), os::wall_now());
}

void EngineThread::on(StopOrder& order) {
  if (is_workload(order.attempt)) return workloads_.attempts().stop(order);
  attempts_.stop(order);
}

void EngineThread::on(LimitOrder& order) {
  workloads_.attempts().set_limit(order);
  attempts_.set_limit(order);
}

// Nothing is written to the cluster's nodes.
void EngineThread::on(ResetOrder& order) {
  for (std::string& gpu : order.gpu_uuids) {
    tell(ResetEnded{order.node_name,
                    std::move(gpu),
                    "the platform resets no GPUs of a cluster's nodes: have the cluster's operator "
                    "reset it, then bring it online",
                    {},
                    order.without_reset});
  }
}

void EngineThread::on(ForgetOrder& order) {
  if (is_workload(order.attempt)) return workloads_.attempts().forget(order);
  attempts_.forget(order);
  awaited_output_.attempt_forgotten(order.attempt);
}

void EngineThread::on(AdoptOrder& order) {
  const auto theirs = std::ranges::stable_partition(
      order.known, [](const KnownAttempt& known) { return known.order.spec->workload.empty(); });
  const std::vector<KnownAttempt> of_workloads(theirs.begin(), theirs.end());
  order.known.erase(theirs.begin(), theirs.end());
  attempts_.adopt(order.known, os::wall_now());
  workloads_.attempts().adopt(of_workloads, os::wall_now());
}

void EngineThread::on(AdoptConditions& order) {
  for (const EvidenceObserved& each : order.lasting) view_.adopt_fault(each);
}

void EngineThread::on(FollowOrder& order) {
  for (const PodView& pod : attempts_.pods_of(order.attempt)) output_.follow(pod);
}

void EngineThread::on(RemoveOrder& order) {
  for (const model::JobId job : order.jobs) spool_.remove(job);
}

void EngineThread::on(ChannelRequest& request) {
  streams_.open(request.order, std::move(request.done));
}

void EngineThread::on(WorkloadNews& news) {
  workloads_.tell(news);
}

void EngineThread::on(EndQuestion& question) {
  streams_.ask_end(std::move(question));
}

void EngineThread::on(InputSeen& input) {
  attempts_.note_activity(input.attempt, os::wall_now());
}

}  // namespace gpu_platform::execution
