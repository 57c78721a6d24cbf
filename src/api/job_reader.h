#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/arena.h>

#include "api/convert/job.h"
#include "api/core_access.h"
#include "api/job_output.h"
#include "api/planner.h"
#include "api/snapshot_explainers.h"
#include "gpu_platform/v1/jobs.pb.h"

namespace gpu_platform::api {

// A job as it was found. Keeps alive what the pointer refers to.
struct FoundJob {
  std::shared_ptr<const controller::Snapshot> snapshot;
  std::shared_ptr<const model::Job> archived;  // null: it is in the snapshot
  const model::Job* job = nullptr;
  bool whole_array = false;  // it was named by the id of its array alone, of which it is the first
};

// Returns an error if it is a whole array and the call is about a single job.
base::Status check_is_one(const FoundJob& found);

struct MessagePlan;  // convert/field_plan.h

// Filters of a list, as the model knows them.
struct ListFilter {
  std::optional<std::string> user;
  std::optional<std::string> team;
  std::optional<std::string> name;
  std::optional<std::string> name_pattern;
  std::optional<std::string> node;      // of one of its attempts
  std::vector<model::JobState> states;  // empty: all
  std::vector<model::Label> labels;
  base::Instant since;
  base::Instant until;  // unset: no bound
  model::JobId before;
  std::size_t limit = 1000;
  // A page ends at the first job after this number of bytes; 0: no bound.
  std::size_t max_bytes = 0;
  bool with_ended = false;
  bool with_steps = false;
  bool with_gpu_use = false;
  bool with_cost = false;
  const MessagePlan* fields = nullptr;  // of each job; null: all
};
base::Result<ListFilter> to_model(const v1::ListJobsRequest& request, const model::Caller& caller);

// The predicted starts of waiting jobs.
struct QueueStarts {
  views::PlannedStarts planned_starts;
  views::PredictedQueue predicted;
  scheduling::StartCorrections corrections;
  model::JobId guaranteed;  // whose planned start is (planned_starts.h)

  // Returns them as fields of a job; null if there is no prediction.
  std::unique_ptr<v1::Job> of(model::JobId job) const;
};

// Finds jobs, in the snapshot first and then in the archive, and makes messages of them. Safe from
// any thread.
class JobReader {
 public:
  explicit JobReader(const CoreAccess& core) : core_(core), outputs_(core.outputs) {}

  // Questions about what would be.
  Planner& planner() const { return planner_; }

  // The one that all answers about the snapshot share; never null.
  std::shared_ptr<SnapshotExplainer> explainer(
      const std::shared_ptr<const controller::Snapshot>& snapshot) const {
    return explainers_.of(snapshot);
  }
  // Called every few seconds: memory that no one has asked for since the last call is let go.
  void forget_idle() const { explainers_.forget_idle(); }

  // The output of the jobs.
  const JobOutput& outputs() const { return outputs_; }

  const CoreAccess& core() const { return core_; }

  // Returns kNotFound also for a job that the caller may not see, so that its existence is not
  // revealed.
  base::Result<FoundJob> find(const model::Caller& caller, model::JobId id) const;

  base::Result<FoundJob> find(const model::Caller& caller, const JobRef& ref) const;
  // Finds a job by what people write: "42" or "40_3".
  base::Result<FoundJob> find(const model::Caller& caller, std::string_view text) const;
  // Finds a job that the call may change. One that the caller sees, and may not change, is refused.
  base::Result<FoundJob> find_to_change(const model::Caller& caller, std::string_view text) const;

  // The rules now; never null.
  std::shared_ptr<const model::AccessRules> rules() const;
  // What the caller sees of others now.
  model::View view_of(const model::Caller& caller) const { return {rules(), caller}; }
  // Refused if the caller may not read what the job prints.
  base::Status check_sees_output(const model::Caller& caller, const model::Job& job) const;

  // Fills the cleared message as the caller may see it; without wait_reason and queue_position.
  void describe(const model::Caller& caller, const model::Job& job, const Nodes& nodes,
                v1::Job& out) const;
  // The same for many jobs.
  void describe(const model::View& view, const model::Job& job, const Nodes& nodes,
                v1::Job& out) const;
  // The same without the specification.
  void describe_without_spec(const model::View& view, const model::Job& job, const Nodes& nodes,
                             v1::Job& out) const;
  // Adds what its latest attempt did on its GPUs.
  void add_gpu_use(const model::Job& job, v1::Job& out) const;
  // Adds wait_reason and queue_position, as the caller may see them. The job may have left the
  // newest snapshot by now.
  void explain(const model::Caller& caller, const FoundJob& found, v1::Job& out) const;

  // Returns the planned starts of waiting jobs: those of the last cycle, or those of all jobs on
  // request, which costs a look at the whole queue.
  QueueStarts starts_of_queue(const std::shared_ptr<const controller::Snapshot>& snapshot,
                              bool of_all) const;

 private:
  const CoreAccess& core_;
  JobOutput outputs_;
  std::shared_ptr<const model::AccessRules> root_alone_ =
      std::make_shared<const model::AccessRules>();
  mutable Planner planner_;
  mutable SnapshotExplainers explainers_;
};

// Returns true for jobs that a SnapshotExplainer can explain.
bool is_explained(model::JobState state);

// One page of a list, produced in pieces: "{"jobs":[", job after job, "],"next_page":…}". Fetches
// ended jobs in batches as they are reached, and ends the page where too many of them are of users
// whose jobs the caller does not see. It holds its parts of snapshot and archive while the
// pieces follow each other, and releases them in rest(): behind the last job written it begins
// anew.
class JobListWriter {
 public:
  JobListWriter(const JobReader& reader, model::Caller caller, ListFilter filter);

  // Fetches the first batch, so that an error can still be answered with a status.
  base::Status begin();
  // Appends at least `enough` bytes unless the end comes first; true when there is more. On an
  // error the text is cut off and the reader must be told so (nothing more is appended).
  base::Result<bool> append(std::string& out, std::size_t enough);
  void rest();

 private:
  bool matches(const model::Job& job) const;
  bool was_on_node(const model::Job& job) const;
  bool is_page_full() const;
  bool is_asked_for(std::string_view field) const;
  void append_job(std::string& out, const model::Job& job);
  base::Status fetch_archived();
  // The next job in descending order of id from either source; null at the end.
  base::Result<const model::Job*> take_next();

  const JobReader& reader_;
  model::Caller caller_;
  model::View view_;
  ListFilter filter_;
  std::shared_ptr<const controller::Snapshot> snapshot_;  // null while it rests
  std::shared_ptr<SnapshotExplainer> explainer_;          // null as well if no reason is asked for
  std::vector<const model::Job*> active_;
  std::size_t next_active_ = 0;
  std::vector<model::Job> archived_;
  std::size_t next_archived_ = 0;
  model::JobId archived_before_;
  bool is_archive_done_ = false;
  std::size_t written_ = 0;
  std::size_t written_bytes_ = 0;
  std::size_t passed_over_ = 0;  // ended jobs that are not shown
  model::JobId last_;            // that was looked at
  bool is_begun_ = false;
  // The memory in which the message of each job is made: its parts are not allocated one by one.
  alignas(std::max_align_t) std::array<char, 16 * 1024> block_;
  google::protobuf::Arena arena_{block_.data(), block_.size()};
  // What costs much is left out where it is not asked for.
  const bool has_spec_;
  const bool has_steps_;
  const bool has_gpu_use_;
  const bool has_cost_;
  const bool has_reason_;
};

}  // namespace gpu_platform::api
