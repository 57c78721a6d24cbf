#include "cli/jobs/job_progress.h"

#include <gtest/gtest.h>

#include "base/utc.h"
#include "client/answer.h"

namespace gpu_platform::cli {
namespace {

std::string progress_at(std::string_view job) {
  return progress_text(*client::message_of<v1::Job>(job),
                       *base::parse_rfc3339("2026-07-01T12:01:20Z"));
}

TEST(JobProgress, SaysWhyAJobWaitsAndWhenItIsPlanned) {
  EXPECT_EQ(
      progress_at(
          R"({"id":"20","array_id":"15","array_index":5,"state":"QUEUED","submitted_at":"2026-07-01T12:00:00Z","queue_position":6,"wait_reason":{"text":"1 node is 8 GPUs short"},"estimated_start":"2026-07-01T14:01:20Z"})"),
      "job 15_5 is QUEUED for 1m20s, place 6: 1 node is 8 GPUs short; planned start in 2h00m");
}

TEST(JobProgress, NamesTheImageThatIsPulledAndForHowLong) {
  EXPECT_EQ(
      progress_at(
          R"({"id":"7","state":"STARTING","attempt":1,"detail":"pulling the image, 43 %","spec":{"image":"registry/train:3"},"attempts":[{"attempt":1,"requested_at":"2026-07-01T12:00:40Z"}]})"),
      "job 7 is STARTING for 40s: pulling registry/train:3, 43 %");
}

TEST(JobProgress, SaysHowLongAJobHasRunAndMayRun) {
  EXPECT_EQ(
      progress_at(
          R"({"id":"7","state":"RUNNING","attempt":1,"started_at":"2026-07-01T12:00:40Z","spec":{"time_limit_seconds":14400},"gpus":[{"node":"dgx-1","index":0}]})"),
      "job 7 is RUNNING for 40s of at most 4h00m on dgx-1:0");
  EXPECT_EQ(progress_at(R"({"id":"7","state":"FAILED"})"), "");
}

}  // namespace
}  // namespace gpu_platform::cli
