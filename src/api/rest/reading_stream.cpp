#include "api/rest/reading_stream.h"

#include <algorithm>
#include <utility>

#include "gpu_platform/v1/telemetry.pb.h"

namespace gpu_platform::api {

namespace {

// Some 64 KiB.
constexpr std::size_t kFramesAtOnce = 32;

void append_reading(const ReadingView& view, const NumberedFrame& numbered, std::string& out) {
  v1::ReadingChange change;
  change.set_seq(numbered.seq);
  change.set_change(v1::READING_CHANGE_KIND_READING);
  view.put(numbered.frame(), *change.mutable_reading());
  append_sse(out, "reading", change.seq(), change);
}

// Its number is that of no reading: a client that resumes behind it begins anew.
void append_reset(std::string& out) {
  v1::ReadingChange change;
  change.set_change(v1::READING_CHANGE_KIND_RESET);
  append_sse(out, "reading", change.seq(), change);
}

}  // namespace

ReadingStream::ReadingStream(StreamContext context, ReadingHub& readings, Options options)
    : context_(std::move(context)), readings_(readings), options_(std::move(options)) {
  subscription_ = readings_.subscribe(context_.wake);
  if (options_.filter.is_for_jobs_alone()) {
    for (const model::JobId job : options_.filter.jobs) {
      jobs_.push_back(context_.hub.subscribe(job, context_.wake));
    }
  }
  if (!options_.after) return;
  is_begun_ = true;
  cursor_ = *options_.after;
  all_until_ = readings_.last_seq();
}

void ReadingStream::begin_with_latest(const ReadingView& view) {
  cursor_ = readings_.last_seq();
  latest_ = readings_.latest([&](const telemetry::Frame& frame) { return view.is_wanted(frame); });
  next_ = 0;
  std::ranges::sort(latest_, {}, &NumberedFrame::seq);
  // They are of one moment, which is not before the first look.
  if (!latest_.empty()) cursor_ = std::max(cursor_, latest_.back().seq);
}

bool ReadingStream::append_latest(const ReadingView& view, std::string& out) {
  if (next_ == latest_.size()) return false;
  const std::size_t end = std::min(latest_.size(), next_ + kFramesAtOnce);
  for (; next_ < end; ++next_) {
    // The client may have lost sight of a job since.
    if (view.is_wanted(latest_[next_].frame())) append_reading(view, latest_[next_], out);
  }
  if (next_ == latest_.size()) {
    latest_.clear();
    next_ = 0;
  }
  return true;
}

BodySource::Next ReadingStream::fill(std::string& out) {
  const ReadingView view(options_.filter, context_.reader, context_.caller);
  if (!std::exchange(is_begun_, true)) begin_with_latest(view);
  if (append_latest(view, out)) return Next::kMore;
  const ReadingHub::News news =
      readings_.after(cursor_, all_until_, kFramesAtOnce,
                      [&](const telemetry::Frame& frame) { return view.is_wanted(frame); });
  if (news.missed) {
    append_reset(out);
    begin_with_latest(view);
    return Next::kMore;
  }
  for (const NumberedFrame& numbered : news.frames) append_reading(view, numbered, out);
  cursor_ = news.upto;
  if (!news.frames.empty()) return Next::kMore;
  const bool is_over = options_.filter.is_for_jobs_alone() && view.have_all_jobs_ended();
  return is_over ? Next::kEnd : Next::kWait;
}

}  // namespace gpu_platform::api
