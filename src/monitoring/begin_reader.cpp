#include "monitoring/begin_reader.h"

#include <map>
#include <string>
#include <variant>

#include "model/event.h"

namespace gpu_platform::monitoring {

namespace {

using Questions = std::map<std::string, node::ReadNow>;  // by node

void add_questions(const controller::Snapshot& snapshot, const model::Attempt& attempt,
                   bool is_monitored, Questions& questions) {
  for (const model::NodeAllocation& part : attempt.allocation.nodes) {
    const model::Node* const node = snapshot.nodes.find(part.node.value);
    if (node == nullptr) continue;
    for (const model::GpuGrant& grant : part.grants) {
      if (grant.gpu_index >= node->gpus.size()) continue;
      const bool is_whole = grant.share == base::kWholeGpu;
      if (!is_whole && !is_monitored) continue;
      node::ReadNow& question = questions[node->name];
      question.uuids.push_back(node->gpus[grant.gpu_index].info.uuid);
      question.with_energy = question.with_energy || is_whole;
    }
  }
}

}  // namespace

void BeginReader::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
}

void BeginReader::published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                            std::span<const model::EventRecord> events,
                            const controller::DepartedJobs&) {
  Questions questions;
  for (const model::EventRecord& record : events) {
    const auto* const started = std::get_if<model::AttemptStarted>(&record.event);
    if (started == nullptr) continue;
    const model::Job* const job = snapshot->jobs.find(started->attempt.job.value);
    const bool runs = job != nullptr && job->attempts.size() == started->attempt.attempt &&
                      job->attempts.back().state == model::AttemptState::kRunning;
    if (!runs) continue;  // it has ended with the same batch
    add_questions(*snapshot, job->attempts.back(), is_monitored_(*job->spec), questions);
  }
  if (questions.empty()) return;
  // With the lock, so that nothing is asked after stop().
  const std::lock_guard lock(mutex_);
  if (is_stopped_) return;
  for (const auto& [node, question] : questions) read_now_(node, question);
}

}  // namespace gpu_platform::monitoring
