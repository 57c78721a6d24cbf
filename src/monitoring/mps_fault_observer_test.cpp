#include "monitoring/mps_fault_observer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/job_spec.h"

namespace gpu_platform::monitoring {
namespace {

using model::AttemptId;
using model::EndReason;
using model::JobId;

constexpr std::uint32_t kPageFault = 31;
constexpr std::uint32_t kMemoryError = 48;
constexpr std::uint32_t kUid = 1000;

// Jobs 1, 2 and 3 share GPU "a" by MPS, and jobs 4 and 5 GPU "b" by time slices. Jobs 1, 2, 4 and 5
// are of one user, job 3 is of another. The process of job N has the pid 10 + N.
class MpsFaultObserverTest : public ::testing::Test {
 protected:
  MpsFaultObserverTest() {
    auto made = std::make_shared<controller::Snapshot>();
    model::Node node;
    node.id = model::NodeId(1);
    node.gpus.resize(2);
    node.gpus[0].info.uuid = "a";
    node.gpus[1].info.uuid = "b";
    made->nodes.put(1, node);
    for (const std::uint64_t id : {1, 2, 3, 4, 5}) {
      auto spec = std::make_shared<model::JobSpec>();
      spec->uid = id == 3 ? kUid + 1 : kUid;
      model::GpuGrant grant{.gpu_index = id > 3 ? 1U : 0U};
      grant.mode = id > 3 ? model::ShareMode::kTimeSlice : model::ShareMode::kMps;
      model::NodeAllocation part{.node = model::NodeId(1)};
      part.grants = {grant};
      model::Job job;
      job.id = JobId(id);
      job.spec = std::move(spec);
      model::Attempt& attempt = job.attempts.emplace_back();
      attempt.number = 1;
      attempt.started_at = now_ + base::minutes(-5);
      attempt.allocation.nodes = {part};
      made->jobs.put(id, job);
    }
    snapshot_ = std::move(made);
  }

  void log(std::uint32_t xid, std::uint32_t pid, const std::string& gpu = "a") {
    hardware::KernelLine line;
    line.code = xid;
    line.pid = pid;
    observer_.take_kernel_line(gpu, line);
  }
  execution::Ended failure(std::uint64_t job, EndReason reason = EndReason::kNone) {
    execution::Ended ended;
    ended.attempt = {JobId(job), 1};
    ended.at = now_;
    ended.exit.code = 1;
    ended.reason = reason;
    observer_.take_failure(ended);
    return ended;
  }
  // What is said when the gate lets the end pass.
  std::string fault_of(execution::Ended ended) {
    observer_.complete(ended);
    return ended.neighbour_fault;
  }

  const base::Instant now_ = base::Instant() + base::hours(1000);
  std::shared_ptr<const controller::Snapshot> snapshot_;
  MpsFaultObserver observer_{[this] { return snapshot_; },
                             [](const std::string&, std::uint32_t pid) -> std::optional<AttemptId> {
                               if (pid < 11 || pid > 15) return std::nullopt;
                               return AttemptId{JobId(pid - 10), 1};
                             },
                             [](std::uint32_t xid) { return xid == kPageFault; },
                             [this] { return now_; }};
};

TEST_F(MpsFaultObserverTest, TheClientThatTheDriverNamesIsToldOf) {
  const auto first = failure(1);
  const auto second = failure(2);
  log(kPageFault, 11);
  EXPECT_EQ(fault_of(first), "");
  EXPECT_EQ(fault_of(second),
            "job 1 on the same GPU had a fault, which ends all programs of its MPS server");
}

TEST_F(MpsFaultObserverTest, FailuresThatOverlapAreHeldAgainstNoJob) {
  const auto first = failure(1);
  const auto second = failure(2);
  for (const execution::Ended& ended : {first, second}) {
    EXPECT_EQ(fault_of(ended),
              "a job on the same GPU had a fault, which ends all programs of its MPS server; the "
              "driver does not say which");
  }
}

TEST_F(MpsFaultObserverTest, ALossOfTheServerIsToldOf) {
  observer_.take_server_loss("a", kUid);
  EXPECT_EQ(fault_of(failure(1)), "the MPS server of the GPU was lost");
}

TEST_F(MpsFaultObserverTest, AnEndWithoutATimeHasJustBeen) {
  execution::Ended ended;
  ended.attempt = {JobId(2), 1};
  ended.exit.lost = model::Lost::kUnknown;
  observer_.take_failure(ended);
  log(kPageFault, 11);
  EXPECT_NE(fault_of(ended), "");
}

TEST_F(MpsFaultObserverTest, OtherXidsAndProcessesNameNoClient) {
  log(kMemoryError, 11);
  log(kPageFault, 0);
  log(kPageFault, 99);
  log(kPageFault, 11, "b");
  EXPECT_EQ(fault_of(failure(2)), "");
}

TEST_F(MpsFaultObserverTest, TheServerOfAnotherUserIsAnotherOne) {
  const auto first = failure(1);
  const auto third = failure(3);
  log(kPageFault, 11);
  EXPECT_EQ(fault_of(first), "");
  EXPECT_EQ(fault_of(third), "");
}

TEST_F(MpsFaultObserverTest, JobsThatTakeTurnsFailByThemselves) {
  const auto fourth = failure(4);
  const auto fifth = failure(5);
  log(kPageFault, 14, "b");
  EXPECT_EQ(fault_of(fourth), "");
  EXPECT_EQ(fault_of(fifth), "");
}

TEST_F(MpsFaultObserverTest, AnEndWithAnotherCauseKeepsIt) {
  log(kPageFault, 11);
  EXPECT_EQ(fault_of(failure(2, EndReason::kOutOfMemory)), "") << "its own memory";
  auto short_of_memory = failure(2);
  short_of_memory.neighbour_fault = "job 1 on the same GPU used 70 GiB of the 20 GiB of its part";
  EXPECT_EQ(fault_of(short_of_memory), short_of_memory.neighbour_fault);
}

}  // namespace
}  // namespace gpu_platform::monitoring
