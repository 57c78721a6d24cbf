#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/jobs/output_cursor.h"
#include "cli/text/line_writer.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

std::uint64_t number_in(const std::string& target, const std::string& key, std::uint64_t absent) {
  const std::size_t at = target.find(key + "=");
  return at == std::string::npos ? absent : std::stoull(target.substr(at + key.size() + 1));
}

// A daemon with jobs that print.
class Jobs {
 public:
  struct One {
    std::string state = "COMPLETED";
    std::string text;
    std::string more;  // of the job: its array, its reason
    int attempt = 1;
    std::size_t begin = 0;  // what is before it was rotated away
  };
  std::map<std::string, One> jobs;
  std::function<void(const Request&)> on_request;

  std::string operator()(const Request& request) {
    const std::lock_guard lock(mutex_);
    if (on_request) on_request(request);
    if (request.target.starts_with("/v1/jobs?")) return json_answer(list());
    std::string id = request.target.substr(std::string_view("/v1/jobs/").size());
    id = id.substr(0, id.find_first_of("/?"));
    if (id.starts_with("15_")) id = fmt::format("{}", 15 + std::stoi(id.substr(3)));
    if (!jobs.contains(id)) {
      return json_answer(R"({"detail":"there is no job","code":"NOT_FOUND"})", 404);
    }
    const One& job = jobs[id];
    if (!has(request.target, "/output")) return json_answer(document(id, job));
    return json_answer(output(job, request.target));
  }

 private:
  static std::string document(const std::string& id, const One& job) {
    return fmt::format(R"({{"id":"{}","state":"{}","attempt":{}{}}})", id, job.state, job.attempt,
                       job.more);
  }
  std::string list() const {
    std::string text = R"({"jobs":[)";
    for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
      text += (job == jobs.rbegin() ? "" : ",") + document(job->first, job->second);
    }
    return text + "]}";
  }
  static std::string output(const One& job, const std::string& target) {
    const std::size_t offset = std::max(number_in(target, "offset", 0), job.begin);
    const std::size_t limit = number_in(target, "limit", 262'144);
    const std::string piece =
        offset < job.text.size() ? job.text.substr(offset, limit) : std::string();
    const bool is_over = job.state == "COMPLETED" && offset + piece.size() >= job.text.size();
    return chunk(job.attempt, offset, piece, is_over);
  }
  std::mutex mutex_;
};

std::string member(int index, int size) {
  return fmt::format(R"(,"array_id":"15","array_index":{},"array_size":{})", index, size);
}

std::string reason(std::string_view code, std::string_view text) {
  return fmt::format(R"(,"wait_reason":{{"code":"{}","text":"{}"}})", code, text);
}

std::string numbered_lines(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += fmt::format("line {}\n", i);
  return text;
}

TEST_F(Cli, TailShowsTheLastLinesWhateverTheLength) {
  Jobs jobs;
  jobs.jobs["42"].text = numbered_lines(200'000);  // more than two megabytes
  FakeServer server(std::ref(jobs));
  EXPECT_EQ(call(server, {"jobs", "logs", "--tail", "2", "42"}), 0);
  EXPECT_EQ(out(), "line 199999\nline 200000\n");
  EXPECT_LT(server.requests().size(), 20U) << "it reads no more than it needs";
}

TEST_F(Cli, TailCountsALineWithoutItsEnd) {
  Jobs jobs;
  jobs.jobs["42"].text = "one\ntwo\nthree";
  FakeServer server(std::ref(jobs));
  EXPECT_EQ(call(server, {"jobs", "logs", "--tail", "2", "42"}), 0);
  EXPECT_EQ(out(), "two\nthree");
}

TEST_F(Cli, TailOfFewLinesAndOfRotatedOutputIsAllThatThereIs) {
  Jobs jobs;
  jobs.jobs["42"].text = "one\ntwo\n";
  jobs.jobs["43"] = {.text = std::string(700'000, 'x') + "\nlast\n", .more = "", .begin = 650'000};
  FakeServer server(std::ref(jobs));
  EXPECT_EQ(call(server, {"jobs", "logs", "--tail", "9", "42"}), 0);
  EXPECT_EQ(out(), "one\ntwo\n");
  EXPECT_EQ(call(server, {"jobs", "logs", "--tail", "9", "43"}), 0);
  EXPECT_EQ(out().size(), 8U + 50'000 + 6);
}

TEST_F(Cli, TailOf0ShowsNothing) {
  Jobs jobs;
  jobs.jobs["42"].text = "one\ntwo\n";
  FakeServer server(std::ref(jobs));
  EXPECT_EQ(call(server, {"jobs", "logs", "--tail", "0", "42"}), 0);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(err(), "");
}

TEST_F(Cli, LogsOfAnArrayAreThoseOfItsMembersWithTheirNames) {
  Jobs jobs;
  jobs.jobs["15"] = {.text = "a\nb", .more = member(0, 2)};
  jobs.jobs["16"] = {.text = "c\n", .more = member(1, 2)};
  FakeServer server(std::ref(jobs));
  EXPECT_EQ(call(server, {"jobs", "logs", "15"}), 0);
  EXPECT_EQ(out(), "15_0: a\n15_0: b\n15_1: c\n");
}

TEST_F(Cli, LogsByLabelAskForTheCallersJobsInAllStates) {
  Jobs jobs;
  jobs.jobs["42"].text = "a\n";
  jobs.jobs["43"].text = "b\n";
  std::string asked;
  jobs.on_request = [&](const Request& request) {
    if (request.target.starts_with("/v1/jobs?")) asked = request.target;
  };
  FakeServer server(std::ref(jobs));
  EXPECT_EQ(call(server, {"jobs", "logs", "-l", "run=7"}), 0);
  EXPECT_EQ(out(), "42: a\n43: b\n");
  EXPECT_TRUE(has(asked, "label=run%3D7")) << asked;
  EXPECT_TRUE(has(asked, "state=QUEUED") && has(asked, "state=TIMED_OUT")) << asked;
  EXPECT_FALSE(has(asked, "all=true")) << asked;
}

TEST_F(Cli, FollowingAnArrayWaitsForMembersThatHaveNotStarted) {
  Jobs jobs;
  jobs.jobs["15"] = {.state = "RUNNING", .text = "a\n", .more = member(0, 2)};
  jobs.jobs["16"] = {.state = "QUEUED", .more = member(1, 2), .attempt = 0};
  FakeServer server(std::ref(jobs));
  on_pause_ = [&] {  // the first ends, the second starts and ends
    jobs.jobs["15"].state = "COMPLETED";
    jobs.jobs["16"] = {.state = "COMPLETED", .text = "b\n", .more = member(1, 2)};
  };
  EXPECT_EQ(call(server, {"jobs", "logs", "-f", "15"}), 0);
  EXPECT_EQ(out(), "15_0: a\n15_1: b\n");
  EXPECT_TRUE(has(err(), "1 of 2 jobs have not started; waiting for them")) << err();
}

TEST_F(Cli, AnArrayWithOneUnreadableMemberShowsTheOthers) {
  Jobs jobs;
  jobs.jobs["15"] = {.text = "a\n", .more = member(0, 2)};
  jobs.jobs["16"] = {.text = "b\n", .more = member(1, 2)};
  FakeServer server([&](const Request& request) {
    if (!has(request.target, "/v1/jobs/15_0/output")) return jobs(request);
    return json_answer(R"({"detail":"the output was removed","code":"NOT_FOUND"})", 404);
  });
  EXPECT_EQ(call(server, {"jobs", "logs", "15"}), 3);
  EXPECT_EQ(out(), "15_1: b\n");
  EXPECT_TRUE(has(err(), "15_0: the output was removed")) << err();
}

TEST_F(Cli, LogsOfAWaitingJobSayWhyItWaits) {
  Jobs jobs;
  jobs.jobs["42"] = {.state = "QUEUED", .more = reason("NO_CAPACITY", "1 GPU short"), .attempt = 0};
  FakeServer server(std::ref(jobs));
  EXPECT_EQ(call(server, {"jobs", "logs", "42"}), 0);
  EXPECT_EQ(err(),
            "gpu-platform: job 42 is QUEUED: 1 GPU short; 'gpu-platform jobs logs -f 42' waits for "
            "it\n");
}

TEST_F(Cli, FollowingAWaitingJobSaysWhyAndSaysItAgainWhenTheReasonChanges) {
  Jobs jobs;
  auto& job = jobs.jobs["42"];
  job = {.state = "QUEUED", .more = reason("NO_CAPACITY", "1 GPU short"), .attempt = 0};
  FakeServer server([&](const Request& request) {
    if (!has(request.target, "follow=true")) return jobs(request);
    return stream_head() + stream_event(chunk(1, 0, "begun\n", true)) + stream_end();
  });
  on_pause_ = [&] {
    if (pauses_ == 1) job.more = reason("NO_CAPACITY", "2 GPUs short");  // the same kind
    if (pauses_ == 2) job.more = reason("PRIORITY", "1 job ahead");
    if (pauses_ == 3) job = {.state = "COMPLETED"};
  };
  EXPECT_EQ(call(server, {"jobs", "logs", "-f", "42"}), 0);
  EXPECT_EQ(out(), "begun\n");
  EXPECT_EQ(err(),
            "gpu-platform: job 42 is QUEUED: 1 GPU short; waiting for it to start\n"
            "gpu-platform: job 42 is QUEUED: 1 job ahead; waiting for it to start\n");
}

TEST_F(Cli, TimestampsAreThoseOfTheArrivalAndUnknownBefore) {
  const InUtc utc;
  Jobs jobs;
  auto& job = jobs.jobs["42"];
  job = {.state = "RUNNING", .text = "old\n"};
  FakeServer server(std::ref(jobs));
  on_pause_ = [&] { job = {.state = "COMPLETED", .text = "old\nnew\n"}; };
  EXPECT_EQ(call(server, {"jobs", "logs", "-f", "--timestamps", "42"}), 0);
  EXPECT_EQ(out(), "- old\n2026-07-01 12:03:12 +0000 new\n");
}

TEST_F(Cli, TimestampsOfKeptOutputAreRefused) {
  EXPECT_EQ(call({"jobs", "logs", "--timestamps", "42"}), 2);
  EXPECT_TRUE(has(err(), "--timestamps: kept output has no times")) << err();
}

TEST_F(Cli, SinceLeavesOutJobsThatEndedBefore) {
  Jobs jobs;
  jobs.jobs["15"] = {.text = "a\n", .more = member(0, 2) + R"(,"ended_at":"2026-07-01T09:00:00Z")"};
  jobs.jobs["16"] = {.text = "b\n", .more = member(1, 2) + R"(,"ended_at":"2026-07-01T12:00:00Z")"};
  FakeServer server(std::ref(jobs));
  EXPECT_EQ(call(server, {"jobs", "logs", "--since", "1h", "15"}), 0);
  EXPECT_TRUE(has(out(), "b\n") && !has(out(), "a\n")) << out();
  EXPECT_EQ(call(server, {"jobs", "logs", "--since", "1m", "15"}), 0);
  EXPECT_TRUE(has(err(), "all 2 jobs ended before")) << err();
}

TEST_F(Cli, LogsNameNoPathThatTheUserCannotOpen) {
  Jobs jobs;
  jobs.jobs["42"].more = R"(,"output":"/var/lib/gpu-platform/node/output/42/1.log")";
  jobs.jobs["43"].more = R"(,"output":"/home/ada/43.log","spec":{"output":"%j.log"})";
  FakeServer server(std::ref(jobs));
  EXPECT_EQ(call(server, {"jobs", "logs", "42"}), 0);
  EXPECT_EQ(call(server, {"jobs", "logs", "43"}), 0);
  EXPECT_EQ(err(),
            "gpu-platform: job 42 has printed nothing\n"
            "gpu-platform: nothing was written to /home/ada/43.log\n");
}

TEST_F(Cli, LogsWantAJobOrALabel) {
  EXPECT_EQ(call({"jobs", "logs"}), 2);
  EXPECT_TRUE(has(err(), "ID: name a job, or give --label KEY=VALUE")) << err();
  EXPECT_EQ(call({"jobs", "logs", "-l", "run=7", "42"}), 2);
}

}  // namespace
}  // namespace gpu_platform::cli
