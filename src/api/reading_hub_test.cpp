#include "api/reading_hub.h"

#include <gtest/gtest.h>

namespace gpu_platform::api {
namespace {

using telemetry::Frame;
using telemetry::Frames;
using telemetry::Of;

Frame of_gpu(std::string uuid, std::int64_t value) {
  return {{.of = Of::kGpu, .node = "n", .uuid = std::move(uuid)},
          base::Instant(1),
          {{telemetry::MetricId{0}, value}}};
}

Frame of_use(std::string uuid, std::uint64_t job) {
  return {{.of = Of::kUse, .node = "n", .uuid = std::move(uuid), .attempt = {model::JobId(job), 1}},
          base::Instant(1),
          {}};
}

Frames reading(std::vector<Frame> frames) {
  return std::make_shared<const std::vector<Frame>>(std::move(frames));
}

bool all(const Frame&) {
  return true;
}

std::vector<std::uint64_t> numbers(const std::vector<NumberedFrame>& frames) {
  std::vector<std::uint64_t> seqs;
  for (const NumberedFrame& frame : frames) seqs.push_back(frame.seq);
  return seqs;
}

using Numbers = std::vector<std::uint64_t>;

TEST(ReadingHub, NumbersFramesFromItsBeginOn) {
  ReadingHub hub(100);
  hub.take(reading({of_gpu("A", 1), of_gpu("B", 2)}));
  EXPECT_EQ(hub.last_seq(), 102U);
  const ReadingHub::News news = hub.after(100, 0, 10, all);
  EXPECT_FALSE(news.missed);
  EXPECT_EQ(numbers(news.frames), (Numbers{101, 102}));
  EXPECT_EQ(news.upto, 102U);
  EXPECT_EQ(news.frames[1].frame().subject.uuid, "B");
}

TEST(ReadingHub, GivesASlowReaderTheNewestOfEachAndOneThatResumesAll) {
  ReadingHub hub(0);
  for (int i = 0; i < 3; ++i) hub.take(reading({of_gpu("A", i), of_gpu("B", i)}));
  EXPECT_EQ(numbers(hub.after(0, 0, 10, all).frames), (Numbers{5, 6}));
  EXPECT_EQ(numbers(hub.after(0, 4, 10, all).frames), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(numbers(hub.after(0, 3, 10, all).frames), (Numbers{1, 2, 3, 5, 6}));
}

TEST(ReadingHub, GoesOnBehindTheLastFrameThatItGave) {
  ReadingHub hub(0);
  hub.take(reading({of_gpu("A", 0), of_gpu("B", 0), of_gpu("C", 0)}));
  const ReadingHub::News first = hub.after(0, 0, 2, all);
  EXPECT_EQ(numbers(first.frames), (Numbers{1, 2}));
  EXPECT_EQ(first.upto, 2U);
  EXPECT_EQ(numbers(hub.after(first.upto, 0, 2, all).frames), (Numbers{3}));
}

TEST(ReadingHub, GivesOnlyWhatIsWantedAndPassesOverTheRest) {
  ReadingHub hub(0);
  hub.take(reading({of_gpu("A", 0), of_gpu("B", 0)}));
  const auto is_b = [](const Frame& frame) { return frame.subject.uuid == "B"; };
  EXPECT_EQ(numbers(hub.after(0, 0, 10, is_b).frames), (Numbers{2}));
  const auto none = [](const Frame&) { return false; };
  EXPECT_EQ(hub.after(0, 0, 10, none).upto, 2U);
  EXPECT_EQ(numbers(hub.latest(is_b)), (Numbers{2}));
}

TEST(ReadingHub, SaysThatFramesAreForgottenOrWereNeverThere) {
  // A frame of one value takes two places.
  ReadingHub hub(50, {.values = 6});
  for (int i = 0; i < 5; ++i) hub.take(reading({of_gpu("A", i)}));
  EXPECT_TRUE(hub.after(51, 0, 10, all).missed);
  EXPECT_FALSE(hub.after(52, 0, 10, all).missed);
  EXPECT_TRUE(hub.after(56, 0, 10, all).missed) << "of a later daemon, or made up";
  EXPECT_TRUE(hub.after(49, 0, 10, all).missed) << "of an earlier daemon";
  EXPECT_EQ(numbers(hub.latest(all)), (Numbers{55}));
}

TEST(ReadingHub, KeepsTheLatestOfABoundedNumberOfSubjects) {
  ReadingHub hub(0, {.values = 1000, .subjects = 2});
  hub.take(reading({of_gpu("A", 0), of_gpu("B", 0), of_gpu("C", 0)}));
  EXPECT_EQ(numbers(hub.latest(all)), (Numbers{2, 3}));
}

TEST(ReadingHub, ForgetsTheUseOfAJobThatSharesAGpuNoLonger) {
  ReadingHub hub(0);
  hub.take(reading({of_gpu("A", 0), of_use("A", 7), of_use("A", 8), of_use("B", 9)}));
  hub.take(reading({of_gpu("A", 0), of_use("A", 8)}));
  std::vector<std::uint64_t> jobs;
  for (const NumberedFrame& numbered : hub.latest(all)) {
    if (numbered.frame().subject.of == Of::kUse) {
      jobs.push_back(numbered.frame().subject.attempt.job.value);
    }
  }
  EXPECT_EQ(jobs, (Numbers{8, 9})) << "B was not read this time";
}

TEST(ReadingHub, WakesReadersUntilTheyLeave) {
  ReadingHub hub(0);
  int woken = 0;
  auto subscription = hub.subscribe([&] { ++woken; });
  hub.take(reading({of_gpu("A", 0)}));
  EXPECT_EQ(woken, 1);
  subscription.reset();
  hub.take(reading({of_gpu("A", 1)}));
  EXPECT_EQ(woken, 1);
}

}  // namespace
}  // namespace gpu_platform::api
