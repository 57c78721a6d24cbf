#include "simulation/faults/pod_engine.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "simulation/faults/pod_objects.h"

namespace gpu_platform::simulation {

namespace {

using execution::Call;
using execution::CallAnswer;
using execution::CallKind;
using execution::ClusterView;
using model::AttemptId;

constexpr int kAsItIs = -1;  // the status of an answer that is not replaced

execution::KubernetesSettings settings() {
  execution::KubernetesSettings settings;
  settings.cluster = "test";
  settings.namespace_name = "jobs";
  return settings;
}

}  // namespace

PodEngine::Life::Life(const execution::KubernetesSettings& settings)
    : view(settings),
      attempts(settings, [this](std::string_view node) { return view.boot_id_of(node); }) {}

void PodEngine::open() {
  ++life_number_;
  life_.emplace(settings());
  life_->pods.due = soon();
  life_->claims.due = soon();
  life_->nodes_due = soon();
}

// What was sent arrives or not; nothing hears the answer.
void PodEngine::crash() {
  life_.reset();
  answers_.clear();
  std::erase_if(calls_, [this](const auto&) { return random_.chance(1, 2); });
}

base::Instant PodEngine::soon() {
  const std::uint64_t max_ms = random_.chance(1, 30) ? 30'000 : 500;
  return now_ + base::milliseconds(static_cast<std::int64_t>(1 + random_.below(max_ms)));
}

bool PodEngine::happens(std::uint64_t thousandths, FaultKind kind) {
  if (!random_.chance(thousandths, 1000)) return false;
  findings_.count(kind);
  return true;
}

// ---- orders

void PodEngine::start(const execution::StartOrder& order) {
  life_->attempts.start(order, {}, now_);
}
void PodEngine::stop(const execution::StopOrder& order) {
  life_->attempts.stop(order);
}
void PodEngine::set_limit(const execution::LimitOrder& order) {
  life_->attempts.set_limit(order);
}
void PodEngine::forget(const execution::ForgetOrder& order) {
  life_->attempts.forget(order);
}
void PodEngine::adopt(const std::vector<execution::KnownAttempt>& known) {
  life_->attempts.adopt(known, now_);
}

// ---- time

void PodEngine::advance(base::Instant now) {
  cluster_.advance(now);
  now_ = std::max(now_, now);
  deliver_calls();
  if (!life_) return;
  deliver_answers();
  follow_pods();
  follow_claims();
  tell_nodes();
  work();
}

template <class Event>
std::optional<base::Instant> PodEngine::due_of(const Stream& stream,
                                               const std::vector<Event>& events) {
  if (stream.step != Step::kWatch) return stream.due;
  if (stream.position >= events.size()) return std::nullopt;
  return std::max(stream.due, events[stream.position].told_at);
}

std::optional<base::Instant> PodEngine::next_event() const {
  std::optional<base::Instant> next = cluster_.next_event();
  const auto at = [&](std::optional<base::Instant> due) {
    if (due && due->is_set()) next = next ? std::min(*next, *due) : *due;
  };
  if (!calls_.empty()) at(calls_.begin()->first.first);
  if (!life_) return next;
  if (!answers_.empty()) at(answers_.begin()->first.first);
  at(due_of(life_->pods, cluster_.pod_events()));
  at(due_of(life_->claims, cluster_.claim_events()));
  at(life_->nodes_due);
  if (!life_->nodes_due.is_set()) {
    for (const auto& [name, node] : cluster_.nodes()) {
      const auto told = life_->versions.find(name);
      if (told == life_->versions.end() || told->second != node.version) at(node.told_at);
    }
  }
  at(life_->attempts.next_due());
  if (life_->is_listed) at(life_->view.next_due());
  return next;
}

bool PodEngine::is_idle() const {
  const bool is_known =
      life_ && !life_->nodes_due.is_set() &&
      std::ranges::all_of(cluster_.nodes(), [this](const auto& node) {
        const auto told = life_->versions.find(node.first);
        return told != life_->versions.end() && told->second == node.second.version;
      });
  return is_known && cluster_.is_empty() && calls_.empty() && answers_.empty() &&
         life_->attempts.size() == 0;
}

// What is known leads to observations and calls, as in the real engine.
void PodEngine::work() {
  life_->attempts.advance(now_);
  for (const Call& call : life_->attempts.take_calls()) send(call);
  for (execution::Observation& observation : life_->attempts.take_observations()) {
    tell_(std::move(observation));
  }
  life_->attempts.take_changed_steps();
}

// ---- calls

PodRequest PodEngine::request_of(const Call& call) const {
  PodRequest request{call, life_->attempts.pod_uid_of(call.attempt, call.rank), {}};
  const bool is_making = call.kind == CallKind::kMakePod || call.kind == CallKind::kMakeClaim;
  if (is_making) request.order = *life_->attempts.order_of(call.attempt);
  if (call.kind == CallKind::kMakePod && plant_ == Plant::kRenamedStart) {
    request.call.name += fmt::format("-{}", life_number_);
  }
  return request;
}

CallAnswer PodEngine::refusal() {
  switch (random_.below(4)) {
    case 0:
      return {.status = 409, .reason = "Conflict", .text = "the object has been modified"};
    case 1:
      return {.status = 429, .reason = "TooManyRequests", .text = "try again later"};
    case 2:
      return {.status = 500, .reason = "InternalError", .text = "etcd has no leader"};
    default:
      return {.status = 503, .text = "apiserver is shutting down"};
  }
}

void PodEngine::send(const Call& call) {
  if (plant_ == Plant::kUnreleasedPod && call.kind == CallKind::kReleasePod) {
    answers_.emplace(std::pair{soon(), ++last_number_}, std::pair{call.id, CallAnswer{404}});
    return;
  }
  UnderWay under_way{request_of(call), life_number_, true, {.status = kAsItIs}};
  if (happens(faults_.call_lost, FaultKind::kCallLost)) {
    under_way.arrives = false;
    under_way.instead = {.status = 0, .text = "connection refused"};
  } else if (happens(faults_.answer_lost, FaultKind::kAnswerLost)) {
    under_way.instead = {.status = random_.chance(1, 2) ? 0 : 504, .text = "timeout"};
  } else if (happens(faults_.refused, FaultKind::kCallRefused)) {
    under_way.arrives = false;
    under_way.instead = refusal();
  }
  calls_.emplace(std::pair{soon(), ++last_number_}, std::move(under_way));
}

void PodEngine::deliver_calls() {
  while (!calls_.empty() && calls_.begin()->first.first <= now_) {
    const UnderWay under_way = std::move(calls_.begin()->second);
    calls_.erase(calls_.begin());
    CallAnswer answer;
    if (under_way.arrives) answer = cluster_.apply(under_way.request);
    if (under_way.instead.status != kAsItIs) answer = under_way.instead;
    if (under_way.life != life_number_ || !life_) continue;
    answers_.emplace(std::pair{soon(), ++last_number_},
                     std::pair{under_way.request.call.id, std::move(answer)});
  }
}

void PodEngine::deliver_answers() {
  while (!answers_.empty() && answers_.begin()->first.first <= now_) {
    const auto [call, answer] = std::move(answers_.begin()->second);
    answers_.erase(answers_.begin());
    life_->attempts.answer(call, answer, now_);
  }
}

// ---- lists and watches

// A list is asked for, read by the server, and then comes.
template <class OnAsk, class OnRead, class OnDeliver, class OnEvents>
void PodEngine::follow(Stream& stream, std::size_t events, const OnAsk& ask, const OnRead& read,
                       const OnDeliver& deliver, const OnEvents& watch) {
  if (stream.step == Step::kWatch || stream.due > now_) {
    if (stream.step == Step::kWatch) watch();
    return;
  }
  stream.due = soon();
  if (stream.step == Step::kAsk) {
    ask();
    stream.step = Step::kRead;
  } else if (stream.step == Step::kRead) {
    const bool fails = happens(faults_.call_lost, FaultKind::kCallLost);
    if (!fails) read();
    if (!fails) stream.position = stream.floor = events;
    stream.step = fails ? Step::kAsk : Step::kDeliver;
  } else {
    deliver();
    stream.step = Step::kWatch;
    stream.is_listed = true;
  }
}

void PodEngine::follow_pods() {
  Life& life = *life_;
  const bool is_late = plant_ == Plant::kLateList;
  follow(
      life.pods, cluster_.pod_events().size(),
      [&] {
        if (!is_late) life.attempts.begin_list();
      },
      [&] { life.listed_pods = cluster_.pods(); },
      [&] {
        if (is_late) life.attempts.begin_list();
        for (const execution::PodView& pod : life.listed_pods) life.attempts.see(pod);
        if (life.is_listed) life.attempts.listed();
      },
      [&] { watch_pods(life.pods); });
}

void PodEngine::follow_claims() {
  Life& life = *life_;
  follow(
      life.claims, cluster_.claim_events().size(), [&] { life.attempts.begin_claim_list(); },
      [&] { life.listed_claims = cluster_.claims(); },
      [&] {
        for (const execution::ClaimSeen& claim : life.listed_claims) life.attempts.see_claim(claim);
        life.attempts.claims_listed();
      },
      [&] { watch_claims(life.claims); });
}

// A watch ends, or goes back to what it has told already.
bool PodEngine::trips(Stream& stream) {
  if (happens(faults_.expired, FaultKind::kWatchExpired)) {
    stream.step = Step::kAsk;
    stream.due = soon();
    return true;
  }
  if (stream.position > stream.floor && happens(faults_.repeated, FaultKind::kWatchRepeated)) {
    const std::size_t back = std::min<std::size_t>(stream.position - stream.floor, 5);
    stream.position -= 1 + random_.below(back);
  }
  return false;
}

void PodEngine::see_pod(const PodEvent& event) {
  event.is_gone ? life_->attempts.see_gone(event.pod) : life_->attempts.see(event.pod);
}

void PodEngine::watch_pods(Stream& stream) {
  const std::vector<PodEvent>& events = cluster_.pod_events();
  while (stream.position < events.size() && events[stream.position].told_at <= now_) {
    if (trips(stream)) return;
    const std::size_t next = stream.position + 1;
    const bool may_swap =
        next < events.size() && events[next].pod.name != events[stream.position].pod.name;
    if (may_swap && happens(faults_.reordered, FaultKind::kWatchReordered)) {
      see_pod(events[next]);
      see_pod(events[stream.position]);
      stream.position += 2;
    } else {
      see_pod(events[stream.position++]);
    }
  }
}

void PodEngine::watch_claims(Stream& stream) {
  const std::vector<ClaimEvent>& events = cluster_.claim_events();
  while (stream.position < events.size() && events[stream.position].told_at <= now_) {
    if (trips(stream)) return;
    life_->attempts.see_claim(events[stream.position++].claim);
  }
}

// ---- nodes

void PodEngine::tell_nodes() {
  constexpr ClusterView::Kind kKinds[] = {
      ClusterView::Kind::kNode,     ClusterView::Kind::kSlice,       ClusterView::Kind::kClaim,
      ClusterView::Kind::kOtherPod, ClusterView::Kind::kLabelledPod, ClusterView::Kind::kTaintRule};
  Life& life = *life_;
  const bool is_list = life.nodes_due.is_set();
  if (is_list && life.nodes_due > now_) return;
  if (is_list) {
    for (const ClusterView::Kind kind : kKinds) life.view.begin_list(kind);
  }
  for (const auto& [name, node] : cluster_.nodes()) {
    if (is_list || (life.versions[name] != node.version && node.told_at <= now_)) put_node(node);
  }
  if (is_list) {
    for (const ClusterView::Kind kind : kKinds) life.view.end_list(kind);
    life.nodes_due = {};
  }
  for (auto& change : life.view.take_changes(now_)) {
    std::visit([this](auto& each) { tell_(std::move(each)); }, change);
  }
  if (life.is_listed || !life.pods.is_listed || !life.claims.is_listed) return;
  life.is_listed = true;
  life.attempts.listed();
}

void PodEngine::put_node(const PodNode& node) {
  Life& life = *life_;
  life.versions[node.info.name] = node.version;
  life.view.put(ClusterView::Kind::kNode, node_object(node));
  life.view.put(ClusterView::Kind::kSlice, slice_object(node));
  life.view.put(ClusterView::Kind::kOtherPod, others_pod(node));
  std::set<std::string>& lent = life.lent[node.info.name];
  for (const std::string& uuid : lent) {
    if (!node.lent.contains(uuid)) {
      life.view.remove(ClusterView::Kind::kClaim, others_claim(node, uuid));
    }
  }
  lent = node.lent;
  for (const std::string& uuid : lent) {
    life.view.put(ClusterView::Kind::kClaim, others_claim(node, uuid));
  }
}

}  // namespace gpu_platform::simulation
