#include "execution/kubernetes/pods/output_follower.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "execution/kubernetes/pods/call_requests.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

using kubernetes::Answer;

// A stream of a pod that has ended ends soon, or its kubelet is in trouble.
constexpr base::Duration kEndTimeout = base::seconds(10);
// A job may print nothing for long.
constexpr base::Duration kSilence = base::hours(24);
constexpr std::size_t kMaxUnwritten = std::size_t{1} << 18;

Call call_for(const PodView& pod) {
  Call call;
  call.kind = CallKind::kFetchOutput;
  call.attempt = pod.attempt;
  call.rank = pod.rank;
  call.namespace_name = pod.namespace_name;
  call.name = pod.name;
  return call;
}

}  // namespace

void OutputFollower::follow(const PodView& pod) {
  const Key key{pod.attempt, pod.rank};
  if (!pod.started_at.is_set() || pod.is_over()) return;
  if (const auto known = streams_.find(key); known != streams_.end() && known->second.id != 0) {
    return;
  }
  Stream& stream = streams_[key];
  stream = Stream{.had = spool_.received(pod.attempt, pod.rank)};
  stream.id =
      client_.open_stream({.path = output_path_of(call_for(pod), 0, true), .timeout = kSilence},
                          {.on_bytes = [this, key](std::string_view bytes) { take(key, bytes); },
                           .on_end = [this, key](const Answer& answer) { end(key, answer); }});
}

// A kubelet sends each line by itself. What has come until the next advance() is written at once.
void OutputFollower::take(const Key& key, std::string_view bytes) {
  Stream& stream = streams_[key];
  // What a former stream has brought comes again.
  const std::uint64_t begins = stream.came;
  stream.came += bytes.size();
  if (stream.came <= stream.had) return;
  if (begins < stream.had) bytes.remove_prefix(stream.had - begins);
  stream.unwritten += bytes;
  unwritten_.insert(key);
  if (stream.unwritten.size() >= kMaxUnwritten) write(key);
}

void OutputFollower::write(Key key) {
  unwritten_.erase(key);
  const auto found = streams_.find(key);
  if (found == streams_.end() || found->second.unwritten.empty()) return;
  (void)spool_.append(key.first, key.second, std::exchange(found->second.unwritten, {}));
  on_output_(key.first);
}

void OutputFollower::end(const Key& key, const Answer& answer) {
  const auto found = streams_.find(key);
  if (found == streams_.end()) return;
  write(key);
  Stream& stream = found->second;
  stream.id = 0;
  stream.is_complete = answer.is_ok();
  if (!stream.done) return;
  const auto done = std::exchange(stream.done, nullptr);
  // What is missing is fetched once more; where nothing is, that stores nothing.
  fetch(stream.waiting, done);
}

void OutputFollower::complete(const Call& call, std::function<void(const CallAnswer&)> done) {
  const auto found = streams_.find({call.attempt, call.rank});
  if (found == streams_.end() || found->second.id == 0) return fetch(call, std::move(done));
  Stream& stream = found->second;
  stream.waiting = call;
  stream.done = std::move(done);
  stream.until_ns = os::monotonic_ns() + kEndTimeout.value();
  if (due_ns_ == 0 || stream.until_ns < due_ns_) due_ns_ = stream.until_ns;
}

void OutputFollower::advance(std::int64_t now_ns) {
  while (!unwritten_.empty()) write(*unwritten_.begin());
  if (due_ns_ == 0 || now_ns < due_ns_) return;
  due_ns_ = 0;
  for (auto& [key, stream] : streams_) {
    if (!stream.done || stream.id == 0) continue;
    if (stream.until_ns <= now_ns) {
      client_.close_stream(std::exchange(stream.id, 0));
      write(key);
      fetch(stream.waiting, std::exchange(stream.done, nullptr));
    } else if (due_ns_ == 0 || stream.until_ns < due_ns_) {
      due_ns_ = stream.until_ns;
    }
  }
}

void OutputFollower::fetch(const Call& call, std::function<void(const CallAnswer&)> done) {
  const std::uint64_t limit = spool_.limit() == 0 ? 0 : spool_.limit() + 1;
  client_.send({.path = output_path_of(call, limit, false),
                .turn = kubernetes::Turn::kNext,
                .timeout = base::minutes(2)},
               [this, call, done = std::move(done)](const Answer& answer) {
                 CallAnswer told{.status = answer.status};
                 if (answer.is_ok()) {
                   const auto stored = spool_.complete(call.attempt, call.rank, answer.body);
                   if (!stored) told = {.status = 500, .text = stored.error().message};
                 } else {
                   told.text = kubernetes::error_message_of(answer);
                 }
                 done(told);
               });
}

void OutputFollower::forget(model::AttemptId attempt) {
  for (auto it = streams_.lower_bound({attempt, 0});
       it != streams_.end() && it->first.first == attempt;) {
    if (it->second.id != 0) client_.close_stream(it->second.id);
    it = streams_.erase(it);
  }
  spool_.close(attempt);
}

}  // namespace gpu_platform::execution
