#include "client/follow.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/client_names.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

struct EndCase {
  std::string_view state;
  std::string_view how;
  int exit_code;
};

TEST(ExitCodeOfJob, IsTheProgramsOrSaysThatThereIsNone) {
  const EndCase cases[] = {
      {"COMPLETED", R"("exit_code":0)", 0},
      {"FAILED", R"("exit_code":3)", 3},
      {"FAILED", R"("exit_code":null,"signal":"SIGKILL")", 137},
      {"CANCELLED", R"("exit_code":null,"signal":"SIGTERM")", 250},
      {"TIMED_OUT", R"("exit_code":null,"signal":"SIGKILL")", 250},
      {"TIMED_OUT", R"("exit_code":4)", 4},
      {"CANCELLED", R"("exit_code":0)", 0},
      {"CANCELLED", R"("exit_code":null,"signal":null)", 250},
      {"FAILED", R"("exit_code":null,"signal":null,"lost":"NODE_LOST")", 250},
      {"TIMED_OUT", R"("exit_code":null,"signal":null)", 250},
  };
  for (const auto& [state, how, expected] : cases) {
    EXPECT_EQ(client::exit_code_of_job(*client::message_of<v1::Job>(ended_job(state, how))),
              expected)
        << state << how;
  }
}

// A daemon with one job: what it prints and how it ends.
class OneJob {
 public:
  std::function<std::string(const Request&)> output;
  std::string end = ended_job("COMPLETED", R"("exit_code":0)");

  std::string operator()(const Request& request) {
    if (request.method == "POST" && request.target == "/v1/jobs") return json_answer(kJob, 201);
    if (has(request.target, "/output")) return output(request);
    return json_answer(end);
  }
};

TEST_F(Cli, RunPassesTheOutputByteForByteAndExitsAsTheProgram) {
  std::string bytes;
  for (int i = 0; i < 512; ++i) bytes.push_back(static_cast<char>(i));
  OneJob job;
  job.end = ended_job("FAILED", R"("exit_code":3)");
  job.output = [&](const Request&) {
    return stream_head() + stream_event(chunk(0, 0, "")) + stream_event(chunk(1, 0, bytes)) +
           stream_event(chunk(1, bytes.size(), "end", true)) + stream_end();
  };
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"run", "--gpus", "1", "--", "true"}), 3);
  EXPECT_EQ(out(), bytes + "end");
  EXPECT_EQ(err(), "gpu-platform: job 42\n");
}

TEST_F(Cli, RunSaysWhyThereIsNoExitCode) {
  OneJob job;
  job.end = ended_job("TIMED_OUT", R"("exit_code":null,"reason":"TIME_LIMIT")");
  job.output = [](const Request&) {
    return stream_head() + stream_event(chunk(1, 0, "x", true)) + stream_end();
  };
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"run", "--gpus", "1", "--", "true"}), 250);
  EXPECT_TRUE(has(err(), "job 42 TIMED_OUT (TIME_LIMIT)")) << err();
}

// As of an --output that only its owner can read, or that is no file.
TEST_F(Cli, RunExitsAsTheProgramThoughItsOutputCannotBeShown) {
  OneJob job;
  job.end = ended_job("FAILED", R"("exit_code":7)");
  job.output = [](const Request&) {
    return json_answer(
        R"({"detail":"open /home/bob/out: Permission denied","code":"PERMISSION_DENIED"})", 403);
  };
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"run", "--gpus", "1", "--output", "out", "--", "false"}), 7);
  EXPECT_TRUE(has(err(),
                  "warning: the output is not shown: open /home/bob/out: Permission denied; "
                  "the job goes on"))
      << err();
  job.output = [](const Request&) {
    return stream_head() + stream_event(chunk(1, 0, "x")) +
           stream_event(
               R"({"status":409,"detail":"it is not a file","code":"FAILED_PRECONDITION"})",
               "error") +
           stream_end();
  };
  FakeServer later(std::ref(job));
  EXPECT_EQ(call(later, {"run", "--gpus", "1", "--", "false"}), 7);
}

TEST_F(Cli, RunTellsRefusalAndAbsenceApartFromTheProgramsCodes) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"detail":"no node has 9 GPUs","field":"gpus","code":"FAILED_PRECONDITION"})", 409);
  });
  EXPECT_EQ(call(server, {"run", "--gpus", "9", "--", "true"}), 251);
  EXPECT_TRUE(has(err(), "error: --gpus: no node has 9 GPUs")) << err();
  EXPECT_EQ(call({"--server", "unix:/nonexistent/s", "run", "--gpus", "1", "--", "true"}), 252);
  EXPECT_EQ(call(server, {"submit", "--wait", "--gpus", "9", "--", "true"}), 251);
  EXPECT_EQ(call(server, {"submit", "--gpus", "9", "--", "true"}), 4);
}

TEST_F(Cli, FollowGoesOnAtTheByteWhereTheConnectionBroke) {
  std::vector<std::string> targets;
  OneJob job;
  job.output = [&](const Request& request) {
    targets.push_back(request.target);
    if (targets.size() == 1) return stream_head() + stream_event(chunk(1, 0, "hello "));
    if (targets.size() == 2) return std::string();  // dies before it answers
    // Sends two bytes again, as a daemon may.
    return stream_head() + stream_event(chunk(1, 4, "o world", true)) + stream_end();
  };
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"jobs", "logs", "--follow", "42"}), 0);
  EXPECT_EQ(out(), "hello world");
  ASSERT_EQ(targets.size(), 3U);
  EXPECT_EQ(targets[0], "/v1/jobs/42/output?follow=true");
  EXPECT_EQ(targets[2], "/v1/jobs/42/output?offset=6&attempt=1&follow=true");
  EXPECT_TRUE(has(err(), "trying again for 2m")) << err();
  EXPECT_TRUE(has(err(), "the daemon is back")) << err();
}

TEST_F(Cli, FollowGivesUpOnADaemonThatStaysAway) {
  int streams = 0;
  OneJob job;
  job.output = [&](const Request&) {
    return ++streams == 1 ? stream_head() + stream_event(chunk(1, 0, "x")) : std::string();
  };
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"jobs", "logs", "-f", "42"}), 1);
  EXPECT_GE(clock_, base::minutes(2));
  EXPECT_LT(clock_, base::minutes(3));
  EXPECT_TRUE(has(err(), "error: the connection to the daemon ended")) << err();
}

TEST_F(Cli, FollowDoesNotWaitForADaemonThatWasNeverThere) {
  EXPECT_EQ(call({"--server", "unix:/nonexistent/s", "jobs", "logs", "-f", "42"}), 5);
  EXPECT_EQ(call({"--server", "unix:/nonexistent/s", "jobs", "wait", "42"}), 5);
  EXPECT_EQ(pauses_, 0);
}

// A daemon whose job fails once and is retried. A stream that names an attempt ends with it, as the
// real one's does; a stream that names none goes on.
std::string stream_of_two_attempts(const Request& request) {
  if (has(request.target, "attempt=1")) {
    return stream_head() + stream_event(chunk(1, 5, "", true)) + stream_end();
  }
  if (has(request.target, "attempt=2")) {
    return stream_head() + stream_event(chunk(2, 0, "second", true)) + stream_end();
  }
  return stream_head() + stream_event(chunk(1, 0, "first")) + stream_event(chunk(2, 0, "second")) +
         stream_event(chunk(2, 6, "", true)) + stream_end();
}

TEST_F(Cli, FollowGoesOnToTheNextAttempt) {
  OneJob job;
  job.output = stream_of_two_attempts;
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"jobs", "logs", "-f", "42"}), 0);
  EXPECT_EQ(out(), "firstsecond");
  EXPECT_TRUE(has(err(), "attempt 2 begins")) << err();
}

TEST_F(Cli, FollowFindsTheNextAttemptThatBeganWhileTheDaemonWasAway) {
  for (const int latest : {2, 1}) {  // with 1 the job still waits for its retry
    bool broke = false;
    OneJob job;
    job.end = fmt::format(R"({{"id":"42","state":"QUEUED","attempt":{}}})", latest);
    job.output = [&](const Request& request) {
      if (std::exchange(broke, true)) return stream_of_two_attempts(request);
      return stream_head() + stream_event(chunk(1, 0, "first"));
    };
    FakeServer server(std::ref(job));
    const std::size_t seen = out().size();
    EXPECT_EQ(call(server, {"jobs", "logs", "-f", "42"}), 0);
    EXPECT_EQ(out().substr(seen), "firstsecond") << latest;
  }
}

TEST_F(Cli, RunReadsAnAttemptThatWasOverBeforeItLooked) {
  OneJob job;
  job.end = R"({"id":"42","state":"COMPLETED","attempt":2,"exit_code":0})";
  job.output = [](const Request& request) {
    if (has(request.target, "attempt=1")) {
      return stream_head() + stream_event(chunk(1, 0, "first")) +
             stream_event(chunk(1, 5, "", true)) + stream_end();
    }
    return stream_head() + stream_event(chunk(2, 0, "second")) +
           stream_event(chunk(2, 6, "", true)) + stream_end();
  };
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"run", "--gpus", "1", "--", "true"}), 0);
  EXPECT_EQ(out(), "firstsecond");
}

TEST_F(Cli, LogsOfOneAttemptEndWithIt) {
  OneJob job;
  job.output = [](const Request& request) {
    EXPECT_TRUE(has(request.target, "attempt=1"));
    return stream_head() + stream_event(chunk(1, 0, "first")) +
           stream_event(chunk(1, 5, "", true)) + stream_end();
  };
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"jobs", "logs", "-f", "--attempt", "1", "42"}), 0);
  EXPECT_EQ(out(), "first");
}

TEST_F(Cli, FollowReportsAProblemInTheMiddleOfTheStream) {
  OneJob job;
  job.output = [](const Request&) {
    return stream_head() + stream_event(chunk(1, 0, "x")) +
           stream_event(R"({"status":404,"detail":"the output is gone","code":"NOT_FOUND"})",
                        "error") +
           stream_end();
  };
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"jobs", "logs", "-f", "42"}), 3);
  EXPECT_TRUE(has(err(), "error: the output is gone")) << err();
}

TEST_F(Cli, FollowSaysWhatRotationHasDropped) {
  OneJob job;
  job.output = [](const Request&) {
    return stream_head() + stream_event(chunk(1, 1000, "tail", true)) + stream_end();
  };
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"jobs", "logs", "-f", "42"}), 0);
  EXPECT_EQ(out(), "tail");
  EXPECT_TRUE(has(err(), "1000 bytes of output are gone")) << err();
}

TEST_F(Cli, LogsReadsAllPieces) {
  const std::string all(1000, 'a');
  OneJob job;
  job.output = [&](const Request& request) {
    const std::size_t offset = request.target.find("offset=");
    const std::size_t at =
        offset == std::string::npos ? 0 : std::stoul(request.target.substr(offset + 7));
    return json_answer(chunk(1, at, std::string_view(all).substr(at, 300)));
  };
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"jobs", "logs", "42"}), 0);
  EXPECT_EQ(out(), all);
}

TEST_F(Cli, LogsOfAJobThatDoesNotExistIs3) {
  FakeServer server([](const Request&) {
    return json_answer(R"({"detail":"no job 7","code":"NOT_FOUND"})", 404);
  });
  EXPECT_EQ(call(server, {"jobs", "logs", "7"}), 3);
  EXPECT_EQ(call(server, {"jobs", "logs", "-f", "7"}), 3);
  EXPECT_EQ(pauses_, 0);
}

// A job that runs until it is told to stop as often as `stops`.
class StubbornJob {
 public:
  StubbornJob(int stops, std::function<void()> interrupt)
      : stops_(stops), interrupt_(std::move(interrupt)) {}

  std::string operator()(const Request& request) {
    if (has(request.target, "/output")) {
      send_text(request.fd, stream_head() + stream_event(chunk(1, 0, "on ")));
      for (int stop = 1; stop <= stops_; ++stop) {
        interrupt_();
        std::unique_lock lock(mutex_);
        const bool came =
            told_.wait_for(lock, std::chrono::seconds(60), [&] { return stopped_ >= stop; });
        if (!came) return {};
      }
      return stream_event(chunk(1, 3, "off", true)) + stream_end();
    }
    if (request.method == "POST" && request.target != "/v1/jobs") {
      const std::lock_guard lock(mutex_);
      ++stopped_;
      told_.notify_all();
      return json_answer(R"({"changed":true,"job":{}})");
    }
    if (request.method == "POST") return json_answer(kJob, 201);
    return json_answer(
        ended_job("CANCELLED", R"("signal":"SIGTERM","reason":"CANCELLED_BY","ended_by":"ada")"));
  }

 private:
  int stops_;
  std::function<void()> interrupt_;
  std::mutex mutex_;
  std::condition_variable told_;
  int stopped_ = 0;
};

TEST_F(Cli, ControlCCancelsTheJobAndShowsItsLastWords) {
  StubbornJob job(1, [this] { interrupt(); });
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"run", "--gpus", "1", "--", "sleep", "9"}), 250);
  EXPECT_EQ(out(), "on off");
  EXPECT_TRUE(has(err(), "cancelling job 42")) << err();
  EXPECT_EQ(server.requests()[2], "POST /v1/jobs/42/cancel");
}

TEST_F(Cli, ControlCTwiceKillsTheJob) {
  StubbornJob job(2, [this] { interrupt(); });
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"run", "--gpus", "1", "--", "sleep", "9"}), 250);
  EXPECT_EQ(server.requests()[2], "POST /v1/jobs/42/cancel");
  EXPECT_EQ(server.requests()[3], "POST /v1/jobs/42/kill");
}

TEST_F(Cli, SubmitRepeatsARequestWhoseAnswerWasLostWithTheSameKey) {
  std::vector<std::string> keys;
  FakeServer server([&](const Request& request) {
    keys.push_back(text_at(*parse_object(request.body), "request_id"));
    return keys.size() == 1 ? std::string() : json_answer(kJob, 201);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus", "1", "--", "true"}), 0);
  EXPECT_EQ(out(), "42\n");
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0], keys[1]);
  EXPECT_FALSE(keys[0].empty());
}

TEST_F(Cli, SubmitSaysThatItDoesNotKnowWhenNoAnswerEverComes) {
  FakeServer server([](const Request&) { return std::string(); });
  EXPECT_EQ(call(server, {"submit", "--gpus", "1", "--request-id", "mine", "--", "true"}), 1);
  EXPECT_TRUE(has(err(), "not known: repeat with --request-id mine")) << err();
}

TEST_F(Cli, WaitIs0OnlyWhenAllCompleted) {
  FakeServer server([](const Request& request) {
    const bool first = has(request.target, "/v1/jobs/1/");
    return json_answer(first ? R"({"id":"1","state":"COMPLETED","exit_code":0})"
                             : R"({"id":"2","state":"FAILED","exit_code":9})");
  });
  EXPECT_EQ(call(server, {"jobs", "wait", "1"}), 0);
  EXPECT_EQ(call(server, {"jobs", "wait", "2", "1"}), 1);
  EXPECT_TRUE(has(err(), "job 2 FAILED: exit code 9")) << err();
}

TEST_F(Cli, WaitGivesUpAfterItsTimeWith124) {
  std::vector<std::string> targets;
  FakeServer server([&](const Request& request) {
    targets.push_back(request.target);
    clock_ += base::seconds(60);  // the daemon held the answer back
    return json_answer(kJob);
  });
  EXPECT_EQ(call(server, {"jobs", "wait", "42", "--timeout", "90s"}), 124);
  EXPECT_EQ(targets, (std::vector<std::string>{"/v1/jobs/42/wait?timeout_seconds=60.000",
                                               "/v1/jobs/42/wait?timeout_seconds=30.000"}));
}

TEST_F(Cli, WaitOutlastsARestartOfTheDaemon) {
  int calls = 0;
  FakeServer server([&](const Request&) {
    ++calls;
    if (calls == 1) return json_answer(kJob);
    if (calls == 2) return std::string();
    if (calls == 3) return json_answer(R"({"detail":"starting","code":"UNAVAILABLE"})", 503);
    return json_answer(ended_job("COMPLETED", R"("exit_code":0)"));
  });
  EXPECT_EQ(call(server, {"jobs", "wait", "42"}), 0);
  EXPECT_EQ(pauses_, 2);
  EXPECT_TRUE(has(err(), "the daemon is back")) << err();
}

TEST_F(Cli, SubmitWaitExitsAsTheProgram) {
  OneJob job;
  job.end = ended_job("FAILED", R"("exit_code":7)");
  FakeServer server(std::ref(job));
  EXPECT_EQ(call(server, {"submit", "--wait", "--gpus", "1", "--", "true"}), 7);
  EXPECT_EQ(out(), "42\n");
}

}  // namespace
}  // namespace gpu_platform::cli
