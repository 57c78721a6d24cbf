#include "api/reading_hub.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace gpu_platform::api {

void ReadingHub::take(const telemetry::Frames& frames) {
  const std::lock_guard lock(mutex_);
  forget_ended_uses(*frames);
  for (std::size_t i = 0; i < frames->size(); ++i) remember({++last_, frames, i});
  for (const Subscription* reader : readers_) reader->wake_();
}

// A reading of a GPU without a use says that the attempt shares it no longer: what it used last is
// not what it uses now.
void ReadingHub::forget_ended_uses(const std::vector<telemetry::Frame>& frames) {
  std::set<std::string_view> read;
  std::set<telemetry::Subject> used;
  for (const telemetry::Frame& frame : frames) {
    if (frame.subject.of == telemetry::Of::kGpu) read.insert(frame.subject.uuid);
    if (frame.subject.of == telemetry::Of::kUse) used.insert(frame.subject);
  }
  // Uses of one node stand beside each other, and a reading is of one node.
  if (frames.empty()) return;
  auto it = latest_.lower_bound({.of = telemetry::Of::kUse, .node = frames.front().subject.node});
  while (it != latest_.end() && it->first.node == frames.front().subject.node) {
    const bool is_over = read.contains(it->first.uuid) && !used.contains(it->first);
    it = is_over ? latest_.erase(it) : std::next(it);
  }
}

void ReadingHub::remember(const NumberedFrame& numbered) {
  const telemetry::Frame& frame = numbered.frame();
  latest_.insert_or_assign(frame.subject, numbered);
  if (latest_.size() > bounds_.subjects) {
    latest_.erase(
        std::ranges::min_element(latest_, {}, [](const auto& entry) { return entry.second.seq; }));
  }
  ring_.push_back(numbered);
  // A frame without values takes room, too.
  values_ += frame.values.size() + 1;
  while (values_ > bounds_.values && ring_.size() > 1) {
    values_ -= ring_.front().frame().values.size() + 1;
    forgotten_ = ring_.front().seq;
    ring_.pop_front();
  }
}

ReadingHub::Subscription::~Subscription() {
  const std::lock_guard lock(hub_.mutex_);
  std::erase(hub_.readers_, this);
}

std::unique_ptr<ReadingHub::Subscription> ReadingHub::subscribe(std::function<void()> wake) {
  std::unique_ptr<Subscription> subscription(new Subscription(*this, std::move(wake)));
  const std::lock_guard lock(mutex_);
  readers_.push_back(subscription.get());
  return subscription;
}

ReadingHub::News ReadingHub::after(std::uint64_t seq, std::uint64_t all_until, std::size_t most,
                                   const IsWanted& is_wanted) const {
  const std::lock_guard lock(mutex_);
  News news;
  news.missed = seq < forgotten_ || seq > last_;
  news.upto = last_;
  if (news.missed) return news;
  auto it = std::ranges::upper_bound(ring_, seq, {}, &NumberedFrame::seq);
  for (; it != ring_.end(); ++it) {
    const telemetry::Frame& frame = it->frame();
    if (!is_wanted(frame)) continue;
    const auto newest = latest_.find(frame.subject);
    const bool is_newest = newest != latest_.end() && newest->second.seq == it->seq;
    if (!is_newest && it->seq > all_until) continue;
    if (news.frames.size() == most) {
      news.upto = news.frames.back().seq;
      return news;
    }
    news.frames.push_back(*it);
  }
  return news;
}

std::vector<NumberedFrame> ReadingHub::latest(const IsWanted& is_wanted) const {
  const std::lock_guard lock(mutex_);
  std::vector<NumberedFrame> found;
  for (const auto& [subject, numbered] : latest_) {
    if (is_wanted(numbered.frame())) found.push_back(numbered);
  }
  return found;
}

std::uint64_t ReadingHub::last_seq() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace gpu_platform::api
