#include "api/rest/streams.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "api/convert/cluster.h"
#include "api/convert/json_writer.h"
#include "api/convert/problem.h"
#include "api/part_walls.h"
#include "model/job_spec.h"

namespace gpu_platform::api {

namespace {

constexpr std::size_t kEnoughBytes = 64 * 1024;
constexpr std::size_t kChangesAtOnce = 32;
// A file that cannot be watched is read this often, but only while a client follows it.
constexpr std::chrono::milliseconds kFallbackInterval{200};
constexpr std::chrono::milliseconds kBetweenLooks{100};

}  // namespace

void append_sse(std::string& out, std::string_view event, std::uint64_t id,
                const google::protobuf::Message& data) {
  fmt::format_to(std::back_inserter(out), "id: {}\nevent: {}\ndata: ", id, event);
  append_json(out, data);
  out += "\n\n";
}

BodySource::Next JobListSource::fill(std::string& out) {
  const auto more = writer_->append(out, kEnoughBytes);
  if (!more) return Next::kBroken;
  return *more ? Next::kMore : Next::kEnd;
}

BodySource::Next QueueSource::fill(std::string& out) {
  return writer_.append(out, kEnoughBytes) ? Next::kMore : Next::kEnd;
}

// ---- changes ----

ChangeStream::ChangeStream(StreamContext context, Options options)
    : context_(std::move(context)), options_(options) {
  subscription_ = context_.hub.subscribe(options_.job, context_.wake);
  cursor_ = options_.after.value_or(context_.hub.last_seq());
}

BodySource::Next ChangeStream::fill(std::string& out) {
  if (!std::exchange(is_begun_, true) && options_.job.valid() && !options_.after) {
    return append_current(out);
  }
  const EventHub::Changes changes = context_.hub.after(cursor_, options_.job, kChangesAtOnce);
  if (changes.missed) {
    cursor_ = changes.upto;
    if (options_.job.valid()) return append_current(out);
    append_reset(out);
    return Next::kMore;
  }
  sees_others_ =
      options_.all_users && context_.reader.view_of(context_.caller).sees_jobs_of_others();
  for (const ChangeRecord& record : changes.records) {
    // A few jobs may be as much as thousands of others.
    if (out.size() >= kEnoughBytes) return Next::kMore;
    cursor_ = record.seq;
    if (!append_change(record, out)) return Next::kEnd;
  }
  cursor_ = changes.upto;
  return changes.records.empty() ? Next::kWait : Next::kMore;
}

BodySource::Next ChangeStream::append_current(std::string& out) {
  const auto found = context_.reader.find(context_.caller, options_.job);
  if (!found) return Next::kBroken;
  v1::JobChange change;
  change.set_seq(cursor_.value);
  if (found->snapshot->at.is_set()) to_proto(found->snapshot->at, *change.mutable_at());
  change.set_change(v1::JOB_CHANGE_KIND_CURRENT);
  context_.reader.describe(context_.caller, *found->job, found->snapshot->nodes,
                           *change.mutable_job());
  context_.reader.explain(context_.caller, *found, *change.mutable_job());
  append_event(out, change);
  return model::is_ended(found->job->state) ? Next::kEnd : Next::kMore;
}

void ChangeStream::append_reset(std::string& out) {
  v1::JobChange change;
  change.set_seq(cursor_.value);
  change.set_change(v1::JOB_CHANGE_KIND_RESET);
  append_event(out, change);
}

bool ChangeStream::append_change(const ChangeRecord& record, std::string& out) {
  const model::Caller& caller = context_.caller;
  const bool is_wanted = options_.job.valid() || record.uid == caller.uid || sees_others_;
  if (!is_wanted) return true;
  const auto found = context_.reader.find(caller, record.job);
  // The job may not be seen, or cannot be read now: the stream goes on with the next change.
  if (!found) return true;
  v1::JobChange change;
  change.set_seq(record.seq.value);
  to_proto(record.at, *change.mutable_at());
  change.set_change(record.kind);
  context_.reader.describe(caller, *found->job, found->snapshot->nodes, *change.mutable_job());
  // Explaining every change of a busy queue would cost a look at all of it each time.
  if (options_.job.valid()) {
    context_.reader.explain(context_.caller, *found, *change.mutable_job());
  } else if (is_explained(found->job->state)) {
    to_proto(model::WaitReason{}, *change.mutable_job()->mutable_wait_reason());
  }
  append_event(out, change);
  return !(options_.job.valid() && record.kind == v1::JOB_CHANGE_KIND_ENDED);
}

void ChangeStream::append_event(std::string& out, const v1::JobChange& change) const {
  append_sse(out, "job", change.seq(), change);
}

// ---- GPUs ----

GpuStream::GpuStream(StreamContext context, Options options)
    : context_(std::move(context)), options_(std::move(options)) {
  subscription_ = context_.hub.subscribe_to(Topic::kNodes, context_.wake);
}

BodySource::Next GpuStream::fill(std::string& out) {
  while (next_ < changed_.size() || look()) {
    if (out.size() >= kEnoughBytes) return Next::kMore;
    append_gpu(changed_[next_], out);
  }
  return Next::kWait;
}

// Finds what is to be told. False: nothing is.
bool GpuStream::look() {
  const auto snapshot = context_.reader.core().snapshots.snapshot();
  const bool knows_all = !std::exchange(is_begun_, true) && options_.after == snapshot->seq;
  if (knows_all) nodes_ = snapshot->nodes;
  changed_.clear();
  next_ = 0;
  base::PersistentMap<model::Node>::for_each_difference(
      nodes_, snapshot->nodes,
      [&](std::uint64_t, const model::Node* before, const model::Node* after) {
        if (after == nullptr || (!options_.node.empty() && after->name != options_.node)) return;
        for (std::uint32_t i = 0; i < after->gpus.size(); ++i) {
          const bool is_same = before != nullptr && i < before->gpus.size() &&
                               before->gpus[i] == after->gpus[i] && before->state == after->state;
          if (!is_same) changed_.push_back({after->id, i});
        }
      });
  nodes_ = snapshot->nodes;
  at_ = snapshot->at;
  told_ = seq_;
  seq_ = snapshot->seq;
  return !changed_.empty();
}

// Only the last of the GPUs that changed together says that all up to then is told: a client that
// breaks off between them gets them again.
void GpuStream::append_gpu(const model::GpuRef& gpu, std::string& out) {
  ++next_;
  const model::Node& node = *nodes_.find(gpu.node.value);
  v1::GpuChange change;
  change.set_seq((next_ == changed_.size() ? seq_ : told_).value);
  if (at_.is_set()) to_proto(at_, *change.mutable_at());
  to_proto(node.gpus[gpu.index], node, gpu.index, nullptr, *change.mutable_gpu());
  // A job that has ended since is told of with the next change of the GPU.
  if (!change.gpu().parts().empty()) {
    put_walls(*context_.reader.core().snapshots.snapshot(), *change.mutable_gpu());
  }
  append_sse(out, "gpu", change.seq(), change);
}

// ---- output ----

OutputStream::OutputStream(StreamContext context, FileWatcher& watcher, boost::asio::io_context& io,
                           Options options)
    : context_(std::move(context)),
      watcher_(watcher),
      options_(options),
      attempt_(options.attempt.value_or(0)),
      offset_(options.offset),
      fallback_(io) {
  subscription_ = context_.hub.subscribe(options_.job, context_.wake);
}

BodySource::Next OutputStream::fill(std::string& out) {
  if (reading_ == nullptr) {
    auto found = context_.reader.find(context_.caller, options_.job);
    if (!found) {
      append_error(found.error(), out);
      return options_.is_plain ? Next::kBroken : Next::kEnd;
    }
    const model::Job& job = *found->job;
    if (const auto seen = context_.reader.check_sees_output(context_.caller, job); !seen) {
      append_error(seen.error(), out);
      return options_.is_plain ? Next::kBroken : Next::kEnd;
    }
    if (attempt_ == 0 && !job.attempts.empty()) attempt_ = job.attempts.back().number;
    if (attempt_ == 0) return at_end_of_attempt(*found, out);
    watch_file(job);
    begin_reading(*std::move(found));
  }
  if (!reading_->piece) return Next::kWait;
  return append_piece(std::move(*std::exchange(reading_, nullptr)), out);
}

// The job first, then its file: what ended before the look has printed all before the read.
void OutputStream::begin_reading(FoundJob found) {
  reading_ = std::make_shared<Reading>(std::move(found));
  const std::weak_ptr<Reading> weak = reading_;
  // The answer comes on the connection's thread, at once or in a turn of its own.
  context_.reader.outputs().read(*reading_->found.job, attempt_, {offset_, kEnoughBytes},
                                 context_.resume,
                                 [weak, wake = context_.wake](base::Result<OutputPiece> piece) {
                                   const auto reading = weak.lock();
                                   if (reading == nullptr) return;
                                   reading->piece = std::move(piece);
                                   if (reading->is_waited_for) wake();
                                 });
  reading_->is_waited_for = !reading_->piece;
}

BodySource::Next OutputStream::append_piece(Reading reading, std::string& out) {
  auto& piece = *reading.piece;
  if (!piece) {
    append_error(piece.error(), out);
    return options_.is_plain ? Next::kBroken : Next::kEnd;
  }
  if (piece->bytes.empty() && piece->has_more) return look_again();
  if (piece->bytes.empty()) return at_end_of_attempt(reading.found, out);
  v1::OutputChunk chunk;
  chunk.set_attempt(attempt_);
  chunk.set_offset(piece->offset);
  offset_ = piece->offset + piece->bytes.size();
  chunk.set_next_offset(offset_);
  chunk.set_data(std::move(piece->bytes));
  append_chunk(chunk, out);
  return Next::kMore;
}

BodySource::Next OutputStream::at_end_of_attempt(const FoundJob& found, std::string& out) {
  const model::Job& job = *found.job;
  const std::uint32_t latest = job.attempts.empty() ? 0 : job.attempts.back().number;
  const auto current = std::ranges::find(job.attempts, attempt_, &model::Attempt::number);
  const bool has_attempt_ended =
      attempt_ < latest || (current != job.attempts.end() && current->ended_at.is_set());
  if (!options_.attempt && attempt_ < latest && attempt_ != 0) {
    ++attempt_;
    offset_ = 0;
    return Next::kMore;
  }
  const bool is_all = model::is_ended(job.state) || (options_.attempt && has_attempt_ended);
  if (!is_all) return wait();
  v1::OutputChunk chunk;
  chunk.set_attempt(attempt_);
  chunk.set_offset(offset_);
  chunk.set_next_offset(offset_);
  chunk.set_ended(true);
  append_chunk(chunk, out);
  return Next::kEnd;
}

BodySource::Next OutputStream::wait() {
  const bool must_look = attempt_ != 0 && watch_ == nullptr;
  return must_look ? look_again() : Next::kWait;
}

BodySource::Next OutputStream::look_again() {
  fallback_.expires_after(kFallbackInterval);
  fallback_.async_wait([wake = context_.wake](const boost::system::error_code& error) {
    if (!error) wake();
  });
  return Next::kWait;
}

// A user's file may lie where even a look hangs: it is read again and again instead.
void OutputStream::watch_file(const model::Job& job) {
  if (!job.spec->output.empty()) return;
  if (watch_ != nullptr && watched_attempt_ == attempt_) return;
  watched_attempt_ = attempt_;
  watch_ = watcher_.watch(context_.reader.core().outputs.path(job, attempt_), context_.wake);
}

void OutputStream::append_chunk(const v1::OutputChunk& chunk, std::string& out) const {
  if (options_.is_plain) {
    out += chunk.data();
  } else {
    append_sse(out, "output", chunk.next_offset(), chunk);
  }
}

void OutputStream::append_error(const base::Error& error, std::string& out) const {
  if (options_.is_plain) return;
  out += "event: error\ndata: ";
  out += to_json(to_problem(error, {}));
  out += "\n\n";
}

// ---- waiting ----

JobWaiter::JobWaiter(const JobReader& reader, model::Caller caller, model::JobId job,
                     boost::asio::io_context& io, Done done)
    : reader_(reader),
      caller_(std::move(caller)),
      job_(job),
      done_(std::move(done)),
      io_(io),
      timer_(io) {}

void JobWaiter::begin(EventHub& hub, std::chrono::milliseconds timeout) {
  // Subscribed before the first look, so that no end falls between. The hub's thread never holds
  // more than a weak pointer: it must not be the one that destroys this.
  const std::weak_ptr<JobWaiter> weak = weak_from_this();
  subscription_ = hub.subscribe(job_, [weak, &io = io_] {
    boost::asio::post(io, [weak] {
      if (const auto self = weak.lock()) self->check(false);
    });
  });
  timer_.expires_after(timeout);
  timer_.async_wait([weak](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self != nullptr) self->check(true);
  });
  check(false);
}

void JobWaiter::check(bool is_time_up) {
  if (done_ == nullptr) return;
  auto found = reader_.find(caller_, job_);
  const bool is_over = !found || is_time_up || model::is_ended(found->job->state);
  if (!is_over) return;
  subscription_.reset();
  timer_.cancel();
  const Done done = std::exchange(done_, nullptr);
  if (!found) return done(std::unexpected(std::move(found).error()));
  v1::Job out;
  reader_.describe(caller_, *found->job, found->snapshot->nodes, out);
  reader_.explain(caller_, *found, out);
  done(std::move(out));
}

StartWaiter::StartWaiter(const PlanningCalls& planning, const JobReader& reader,
                         std::shared_ptr<const model::Job> job, boost::asio::io_context& io,
                         Done done)
    : planning_(planning),
      reader_(reader),
      job_(std::move(job)),
      done_(std::move(done)),
      io_(io),
      timer_(io),
      pause_(io) {}

void StartWaiter::begin(EventHub& hub, std::chrono::milliseconds timeout) {
  // As JobWaiter does, it subscribes before the first look, and the hub holds weak pointers.
  const std::weak_ptr<StartWaiter> weak = weak_from_this();
  if (timeout.count() > 0) {
    subscription_ = hub.subscribe_to(Topic::kAnything, [weak, &io = io_] {
      boost::asio::post(io, [weak] {
        if (const auto self = weak.lock()) self->look_later();
      });
    });
  }
  timer_.expires_after(timeout);
  timer_.async_wait([weak](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self != nullptr) self->answer();
  });
  look();
}

// A busy cluster changes thousands of times a second: one look for all changes of a short while.
void StartWaiter::look_later() {
  if (is_look_due_ || done_ == nullptr) return;
  is_look_due_ = true;
  pause_.expires_after(kBetweenLooks);
  pause_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || self == nullptr) return;
    self->is_look_due_ = false;
    self->look();
  });
}

void StartWaiter::look() {
  if (job_->state != model::JobState::kQueued) return;  // something else keeps it back
  if (reader_.planner().starts_now(reader_.core().snapshots.snapshot(), job_->spec)) answer();
}

void StartWaiter::answer() {
  if (done_ == nullptr) return;
  subscription_.reset();
  timer_.cancel();
  pause_.cancel();
  std::exchange(done_, nullptr)(planning_.check(*job_));
}

}  // namespace gpu_platform::api
