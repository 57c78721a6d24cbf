#include "api/queue_writer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/convert/json_writer.h"
#include "api/job_names.h"
#include "api/list_page.h"
#include "api/predictions.h"
#include "model/job_spec.h"
#include "views/order_factors.h"

namespace gpu_platform::api {

namespace {

constexpr std::uint32_t kDefaultLimit = 1'000;
constexpr std::string_view kHead = R"({"jobs":[)";

void put_weights(const model::OrderWeights& weights, v1::OrderWeights& out) {
  out.set_age(weights.age);
  out.set_priority(weights.priority);
  out.set_fair_share(weights.fair_share);
  out.set_size(weights.size);
}

void put_factors(const scheduling::OrderFactors& factors, v1::OrderFactors& out) {
  out.set_age(factors.age_days);
  out.set_priority(factors.priority);
  out.set_fair_share(factors.fair_share);
  out.set_size(factors.size);
}

}  // namespace

QueueWriter::QueueWriter(const JobReader& reader, model::Caller caller, std::size_t max_bytes)
    : reader_(&reader),
      caller_(std::move(caller)),
      view_(reader.view_of(caller_)),
      max_bytes_(max_bytes) {}

base::Result<QueueWriter> QueueWriter::open(const JobReader& reader, model::Caller caller,
                                            const v1::GetQueueRequest& request,
                                            std::size_t max_bytes) {
  QueueWriter writer(reader, std::move(caller), max_bytes);
  writer.look();
  TRY(writer.choose(request));
  return writer;
}

void QueueWriter::look() {
  snapshot_ = reader_->core().snapshots.snapshot();
  explainer_ = reader_->explainer(snapshot_);
}

void QueueWriter::rest() {
  explainer_.reset();
  snapshot_.reset();
}

// All that the caller asks for, from the head.
std::vector<QueueWriter::Entry> QueueWriter::waiting(bool of_all) {
  std::vector<Entry> entries;
  const auto choose_one = [&](const model::Job& job, std::uint64_t position) {
    const bool is_wanted =
        of_all ? view_.sees(model::Sight::kJobs, *job.spec) : job.spec->uid == caller_.uid;
    if (is_wanted) entries.push_back({job.id, position, nullptr});
    if (of_all && !is_wanted) ++hidden_;
  };
  std::uint64_t position = 0;
  for (const model::JobId id : explainer_->order()) {
    ++position;
    if (const model::Job* job = snapshot_->jobs.find(id.value)) choose_one(*job, position);
  }
  for (const auto state : {model::JobState::kPending, model::JobState::kHeld}) {
    snapshot_->jobs.for_each([&](std::uint64_t, const model::Job& job) {
      if (job.state == state) choose_one(job, 0);
    });
  }
  return entries;
}

// A job that has left the queue since the page before: the page begins at its place.
base::Result<std::size_t> QueueWriter::begin_of_page(const v1::GetQueueRequest& request,
                                                     const std::vector<Entry>& all) {
  if (!request.has_page_token()) return 0;
  TRY_ASSIGN(const PageEnd before, parse_page_token(request.page_token()));
  const auto found = std::ranges::find_if(
      all, [&](const Entry& entry) { return fmt::format("{}", entry.job.value) == before.key; });
  if (found != all.end()) return static_cast<std::size_t>(found - all.begin()) + 1;
  return std::min(static_cast<std::size_t>(before.told) - 1, all.size());
}

base::Status QueueWriter::choose(const v1::GetQueueRequest& request) {
  std::vector<Entry> all = waiting(request.all());
  TRY_ASSIGN(begin_, begin_of_page(request, all));
  const QueueStarts starts = reader_->starts_of_queue(snapshot_, request.eta());
  const std::size_t limit = request.has_limit() ? request.limit() : kDefaultLimit;
  const std::size_t end = begin_ + std::min(limit, all.size() - begin_);
  for (std::size_t i = begin_; i < end; ++i) {
    all[i].expected_start = starts.of(all[i].job);
    entries_.push_back(std::move(all[i]));
  }
  rest_of_answer_.set_total(all.size());
  rest_of_answer_.set_hidden(hidden_);
  if (snapshot_->order->order == model::QueueOrder::kWeighted) {
    put_weights(snapshot_->order->weights, *rest_of_answer_.mutable_order_weights());
  } else {
    rest_of_answer_.mutable_order_weights();
  }
  if (request.eta()) add_scores(*snapshot_, *rest_of_answer_.mutable_scores());
  return {};
}

// What stands behind the jobs: the message without them.
std::string QueueWriter::tail() {
  const std::size_t told = begin_ + next_;
  if (next_ > 0 && told < rest_of_answer_.total()) {
    const std::string last = fmt::format("{}", entries_[next_ - 1].job.value);
    rest_of_answer_.set_next_page(to_page_token({static_cast<int>(told), last}));
  }
  return to_json(rest_of_answer_).substr(kHead.size());
}

bool QueueWriter::append(std::string& out, std::size_t enough) {
  if (snapshot_ == nullptr) look();
  const std::size_t begin = out.size();
  if (!std::exchange(is_begun_, true)) out += kHead;
  // One job at least, so that each page brings its reader on.
  const auto is_full = [&] {
    return next_ > 0 && written_bytes_ + out.size() - begin >= max_bytes_;
  };
  while (next_ < entries_.size() && !is_full()) {
    if (out.size() - begin >= enough) {
      written_bytes_ += out.size() - begin;
      return true;
    }
    append_entry(entries_[next_++], out);
  }
  out += tail();
  return false;
}

// One that waits no more since it was chosen is left out.
void QueueWriter::append_entry(const Entry& entry, std::string& out) {
  const model::Job* job = snapshot_->jobs.find(entry.job.value);
  if (job == nullptr || !is_explained(job->state)) return;
  v1::Job message;
  reader_->describe(view_, *job, snapshot_->nodes, message);
  to_proto(explainer_->explain(*job), JobNames(snapshot_, view_), *message.mutable_wait_reason());
  if (entry.position != 0) {
    message.set_queue_position(entry.position);
    put_factors(views::order_factors(*snapshot_, *job), *message.mutable_order_factors());
  }
  if (entry.expected_start != nullptr) message.MergeFrom(*entry.expected_start);
  if (std::exchange(has_written_one_, true)) out.push_back(',');
  append_json(out, message);
}

}  // namespace gpu_platform::api
