#include "api/queue_writer.h"

#include <utility>

#include "api/convert/json_writer.h"
#include "api/predictions.h"
#include "scheduling/order/order_factors.h"

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

QueueWriter::QueueWriter(const JobReader& reader, model::Caller caller,
                         const v1::GetQueueRequest& request, std::size_t max_bytes)
    : reader_(&reader),
      caller_(std::move(caller)),
      view_(reader.view_of(caller_)),
      max_bytes_(max_bytes) {
  look();
  choose(request);
}

void QueueWriter::look() {
  snapshot_ = reader_->core().snapshots.snapshot();
  explainer_.emplace(snapshot_);
}

void QueueWriter::rest() {
  explainer_.reset();
  snapshot_.reset();
}

void QueueWriter::choose(const v1::GetQueueRequest& request) {
  const QueueStarts starts = reader_->starts_of_queue(snapshot_, request.eta());
  const std::uint32_t limit = request.has_limit() ? request.limit() : kDefaultLimit;
  v1::GetQueueResponse rest_of_answer;
  std::uint64_t total = 0;
  const auto choose_one = [&](const model::Job& job, std::uint64_t position) {
    const bool is_wanted =
        request.all() ? view_.sees(model::Sight::kJobs, *job.spec) : job.spec->uid == caller_.uid;
    if (!is_wanted || ++total > limit) return;
    entries_.push_back({job.id, position, starts.of(job.id)});
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
  rest_of_answer.set_total(total);
  if (snapshot_->order.order == model::QueueOrder::kWeighted) {
    put_weights(snapshot_->order.weights, *rest_of_answer.mutable_order_weights());
  } else {
    rest_of_answer.mutable_order_weights();
  }
  if (request.eta()) add_scores(*snapshot_, *rest_of_answer.mutable_scores());
  // The message without its jobs: what stands behind them.
  tail_ = to_json(rest_of_answer).substr(kHead.size());
}

bool QueueWriter::append(std::string& out, std::size_t enough) {
  if (snapshot_ == nullptr) look();
  const std::size_t begin = out.size();
  if (!std::exchange(is_begun_, true)) out += kHead;
  while (next_ < entries_.size() && written_bytes_ + (out.size() - begin) < max_bytes_) {
    if (out.size() - begin >= enough) {
      written_bytes_ += out.size() - begin;
      return true;
    }
    append_entry(entries_[next_++], out);
  }
  out += tail_;
  return false;
}

// One that waits no more since it was chosen is left out.
void QueueWriter::append_entry(const Entry& entry, std::string& out) {
  const model::Job* job = snapshot_->jobs.find(entry.job.value);
  if (job == nullptr || !is_explained(job->state)) return;
  v1::Job message;
  reader_->describe(view_, *job, snapshot_->nodes, message);
  to_proto(explainer_->explain(*job), *message.mutable_wait_reason());
  if (entry.position != 0) {
    message.set_queue_position(entry.position);
    put_factors(scheduling::order_factors(*job, snapshot_->order, snapshot_->at),
                *message.mutable_order_factors());
  }
  if (entry.expected_start != nullptr) message.MergeFrom(*entry.expected_start);
  if (std::exchange(has_written_one_, true)) out.push_back(',');
  append_json(out, message);
}

}  // namespace gpu_platform::api
