#include "scheduling/books.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/job_spec.h"
#include "scheduling/testing/draw.h"
#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

using Names = std::vector<std::string_view>;

std::shared_ptr<const model::Policy> a_policy() {
  model::Policy policy;
  policy.organisation =
      model::Organisation{.teams = {{"lab", {}, 1, {}, {.max_gpus = 100, .guaranteed_gpus = 2}},
                                    {"other", {}, 1, {}, {}}},
                          .of_each_user = {.max_running_jobs = 50}};
  return std::make_shared<const model::Policy>(policy);
}

model::Job queued_job(std::uint64_t id, std::string team) {
  auto spec = std::make_shared<model::JobSpec>();
  spec->user = "user" + std::to_string(id % 2);
  spec->team = std::move(team);
  spec->request = gpus(1);
  spec->preemptible = id % 3 == 0;
  spec->time_limit = base::hours(1);
  model::Job job;
  job.id = model::JobId(id);
  job.spec = std::move(spec);
  job.state = model::JobState::kQueued;
  job.submitted_at = job.eligible_at = kNow + base::seconds(static_cast<std::int64_t>(id));
  return job;
}

void let_run(model::Job& job, std::uint64_t chance) {
  model::Attempt attempt;
  attempt.number = static_cast<std::uint32_t>(job.attempts.size() + 1);
  attempt.state = model::AttemptState::kRunning;
  attempt.requested_at = kNow + base::minutes(static_cast<std::int64_t>(chance % 5));
  attempt.started_at = attempt.requested_at;
  if (chance % 3 == 0) attempt.yields_at = attempt.started_at + base::minutes(10);
  attempt.allocation.nodes = {{model::NodeId(1),
                               {{static_cast<std::uint32_t>(chance % 8), base::kWholeGpu, {}}},
                               1,
                               {},
                               {}}};
  job.attempts.push_back(std::move(attempt));
  job.state = model::JobState::kRunning;
}

// Anything that may become of a job, from any cause.
void become(model::Job& job) {
  switch (draw(4)) {
    case 0:
      job.state = model::JobState::kHeld;
      break;
    case 1:
      if (job.attempts.empty()) let_run(job, draw(120));
      break;
    case 2:
      if (!job.attempts.empty()) job.attempts.back().state = model::AttemptState::kReleased;
      job.state = model::JobState::kQueued;
      break;
    default:
      ++job.preemptions;
  }
}

// Keeps books as their owner does when it reports events.
void tell_of(Books& books, base::PersistentMap<model::Job>& jobs,
             const Lending::Changes& borrowers) {
  for (const Lending::Change& each : borrowers) {
    model::Job& job = *jobs.find_mutable(each.attempt.job.value);
    model::Attempt& attempt = job.attempts.at(each.attempt.attempt - 1);
    attempt.is_borrowed = each.is_borrowed;
    if (model::holds_resources(attempt.state)) books.update_held(job, attempt);
  }
}

TEST(BooksProperty, EqualThoseThatAreWorkedOutAfresh) {
  EXPECT_TRUE(rc::check([] {
    const auto policy = a_policy();
    base::PersistentMap<model::Node> nodes;
    nodes.put(1, node(1).gpus(8));
    base::PersistentMap<model::Job> jobs;
    Books books = Books::of(jobs, nodes, {.policy = policy});
    for (std::uint64_t steps = draw(40); steps > 0; --steps) {
      const std::uint64_t id = 1 + draw(8);
      model::Job* job = jobs.find_mutable(id);
      if (job == nullptr) {
        books.put(jobs.put(id, queued_job(id, draw(2) == 0 ? "lab" : "other")));
        continue;
      }
      books.erase_waiting(*job);
      for (model::Attempt& each : job->attempts) {
        if (!model::holds_resources(each.state)) continue;
        tell_of(books, jobs, books.erase_held(*job, each));
      }
      if (draw(6) == 0) {
        jobs.erase(id);
        continue;
      }
      become(*job);
      books.put_waiting(*job);
      for (model::Attempt& each : job->attempts) {
        each.is_borrowed = false;
        if (!model::holds_resources(each.state)) continue;
        tell_of(books, jobs, books.put_held(*job, each));
      }
    }
    const Books afresh = Books::of(jobs, nodes, {.policy = policy});
    RC_ASSERT(Books::differences(books, afresh) == Names());
    RC_ASSERT(books == afresh);
  }));
}

TEST(Books, ChangeTheirVersionWithWhatAPlanCouldSeeAndNothingElse) {
  Books books = books_of({node(1).gpus(8)}, {}, {});
  model::Job job = queued_job(1, {});
  std::uint64_t before = books.version();
  const auto changed = [&] { return std::exchange(before, books.version()) != before; };
  books.put(model::Node(node(1).gpus(8)));
  EXPECT_FALSE(changed());
  books.put(model::Node(node(1).gpus(8).busy(0)));
  EXPECT_TRUE(changed());
  books.put(job);
  EXPECT_TRUE(changed());
  books.erase(job);
  EXPECT_TRUE(changed());
  let_run(job, 1);
  books.put(job);
  EXPECT_TRUE(changed());
  books.update_held(job, job.attempts[0]);
  EXPECT_FALSE(changed());
  books.erase_hold(model::JobId(9));
  EXPECT_FALSE(changed());
  books.put(model::PreemptionHold{.beneficiary = model::JobId(9)});
  EXPECT_TRUE(changed());
}

TEST(Books, NameWhatDiffers) {
  const Books empty;
  Books books;
  books.put(model::Node(node(1).gpus(8)));
  books.put(model::Reservation{.name = "w"});
  EXPECT_EQ(Books::differences(books, empty),
            (Names{"reservations", "free capacity", "the queue"}));
  EXPECT_FALSE(books == empty);
}

}  // namespace
}  // namespace gpu_platform::scheduling
