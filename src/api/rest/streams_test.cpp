#include "api/rest/streams.h"

#include <future>

#include <fmt/format.h>

#include "api/rest/server_fixture_test.h"
#include "api/rest/sse_reader_test.h"
#include "base/base64.h"

namespace gpu_platform::api {
namespace {

using StreamsTest = ServerTest;

std::string change_of(const std::optional<SseEvent>& event) {
  return event ? event->data["change"].get<std::string>() : "(end)";
}

std::string text_of(const std::optional<SseEvent>& event) {
  return event ? base::parse_base64(event->data["data"].get<std::string>()).value_or("(broken)")
               : "(end)";
}

std::vector<int> indices_of(const std::vector<SseEvent>& events) {
  std::vector<int> found;
  for (const SseEvent& event : events) found.push_back(event.data["gpu"]["index"]);
  return found;
}

TEST_F(StreamsTest, TellTheStateOfEveryGpuAndThenOfThoseThatChange) {
  start();
  SseReader reader(options_.socket_path, "/v1/gpus/events");
  ASSERT_EQ(reader.head().status, 200);
  const auto count = core_.access().snapshots.snapshot()->nodes.find(1)->gpus.size();
  ASSERT_GT(count, 1U);
  std::vector<SseEvent> events;
  for (std::size_t i = 0; i < count; ++i) events.push_back(reader.next().value());
  EXPECT_EQ(events[0].name, "gpu");
  EXPECT_EQ(events[0].data["gpu"]["state"], "AVAILABLE");
  for (std::size_t i = 0; i + 1 < count; ++i) {
    EXPECT_EQ(events[i].id, "0") << "not all is told yet";
    EXPECT_EQ(events[i].data["gpu"]["index"], i);
  }
  const std::string told = events.back().id;
  EXPECT_EQ(told, std::to_string(core_.last_seq()));

  core_.edit_node([](model::Node& node) {
    node.gpus[1].state = model::GpuState::kOffline;
    node.gpus[1].cause = "a fan is broken";
  });
  const auto change = reader.next();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->data["gpu"]["index"], 1);
  EXPECT_EQ(change->data["gpu"]["state"], "OFFLINE");
  EXPECT_EQ(change->data["seq"].get<std::uint64_t>(), core_.last_seq());

  // What is known is not told again; what is not known is told with all else.
  core_.start_job(core_.add_job(user_, uid_), {0});
  const std::string seq = std::to_string(core_.last_seq());
  SseReader resumed(options_.socket_path, "/v1/gpus/events", "Last-Event-ID: " + seq + "\r\n");
  core_.edit_node([](model::Node& node) { node.gpus[1].state = model::GpuState::kAvailable; });
  EXPECT_EQ(indices_of({resumed.next().value()}), std::vector<int>{1});
  SseReader late(options_.socket_path, "/v1/gpus/events?after_seq=" + told);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(late.next().value().data["gpu"]["index"], i);
  }
}

TEST_F(StreamsTest, TellOfEachPartOfAGpuWhatKeepsItsJobToIt) {
  start();
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job, {2});
  core_.edit_node([&](model::Node& node) {
    model::GpuHolder half{{job, 1}, base::GpuShare(3500), base::kGiB * 40};
    half.mode = model::ShareMode::kTimeSlice;
    node.gpus[2].holders = {half};
    model::settle(node.gpus[2]);
  });
  SseReader reader(options_.socket_path, "/v1/gpus/events");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(reader.next().value().data["gpu"]["parts"].empty());
  const auto gpu = reader.next().value().data["gpu"];
  EXPECT_EQ(gpu["free_share"], 0.5);
  ASSERT_EQ(gpu["parts"].size(), 1U);
  const auto& part = gpu["parts"][0];
  EXPECT_EQ(part["job"], std::to_string(job.value));
  EXPECT_EQ(part["share"], 0.5);
  EXPECT_EQ(part["memory_bytes"], std::uint64_t{40} << 30);
  EXPECT_EQ(part["mode"], "TIME_SLICE");
  // The wall is that of the job's own grant.
  EXPECT_EQ(part["memory_rung"], "HARDWARE");
  EXPECT_EQ(part["compute_rung"], "HARDWARE");
}

TEST_F(StreamsTest, GpusOfANodeThatIsNoneAreNotWatched) {
  start();
  EXPECT_EQ(SseReader(options_.socket_path, "/v1/gpus/events?node=none").head().status, 404);
  EXPECT_EQ(
      SseReader(options_.socket_path, "/v1/gpus/events", "Last-Event-ID: x\r\n").head().status,
      400);
}

TEST_F(StreamsTest, TellEveryChangeOfAJobUntilItsEnd) {
  const model::JobId job = core_.add_job(user_, uid_);
  start();
  SseReader reader(options_.socket_path, "/v1/jobs/1/events");
  EXPECT_EQ(reader.head().status, 200);
  EXPECT_EQ(reader.head().headers.at("content-type"), "text/event-stream");
  const auto current = reader.next();
  ASSERT_TRUE(current.has_value());
  EXPECT_EQ(current->name, "job");
  EXPECT_EQ(current->data["change"], "CURRENT");
  EXPECT_EQ(current->data["job"]["state"], "QUEUED");
  core_.start_job(job, {0, 1});
  EXPECT_EQ(change_of(reader.next()), "STARTING");
  const auto started = reader.next();
  EXPECT_EQ(change_of(started), "STARTED");
  EXPECT_EQ(started->data["job"]["gpus"].size(), 2U);
  core_.end_job(job, 3);
  EXPECT_EQ(change_of(reader.next()), "ATTEMPT_ENDED");
  const auto ended = reader.next();
  EXPECT_EQ(change_of(ended), "ENDED");
  EXPECT_EQ(ended->data["job"]["exit_code"], 3);
  EXPECT_EQ(ended->id, std::to_string(core_.last_seq()));
  EXPECT_TRUE(reader.is_at_end());
}

TEST_F(StreamsTest, EndAtOnceForAnEndedJob) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job);
  core_.end_job(job, 0);
  start();
  SseReader reader(options_.socket_path, "/v1/jobs/1/events");
  EXPECT_EQ(change_of(reader.next()), "CURRENT");
  EXPECT_TRUE(reader.is_at_end());
}

TEST_F(StreamsTest, ResumeAfterTheLastEventSeen) {
  const model::JobId job = core_.add_job(user_, uid_);
  const std::uint64_t seen = core_.last_seq();
  start();
  core_.start_job(job);
  core_.end_job(job, 0);
  SseReader reader(options_.socket_path, "/v1/jobs/1/events",
                   fmt::format("Last-Event-ID: {}\r\n", seen));
  EXPECT_EQ(change_of(reader.next()), "STARTING");
  EXPECT_EQ(change_of(reader.next()), "STARTED");
  EXPECT_EQ(change_of(reader.next()), "ATTEMPT_ENDED");
  EXPECT_EQ(change_of(reader.next()), "ENDED");
  EXPECT_TRUE(reader.is_at_end());
}

TEST_F(StreamsTest, TellChangesOfAllJobs) {
  start();
  SseReader reader(options_.socket_path, "/v1/events?all=true");
  EXPECT_EQ(reader.head().status, 200);
  core_.add_job(user_, uid_);
  core_.add_job(user_, uid_);
  EXPECT_EQ(reader.next()->data["job"]["id"], "1");
  EXPECT_EQ(reader.next()->data["job"]["id"], "2");
}

TEST_F(StreamsTest, SayWhenChangesWereMissed) {
  start();
  for (int i = 0; i < 300; ++i) core_.add_job(user_, uid_);
  SseReader reader(options_.socket_path, "/v1/events?after_seq=5");
  const auto reset = reader.next();
  EXPECT_EQ(change_of(reset), "RESET");
  EXPECT_TRUE(reset->data["job"].is_null());
  EXPECT_EQ(reset->data["seq"], core_.last_seq());
  core_.add_job(user_, uid_);
  EXPECT_EQ(change_of(reader.next()), "SUBMITTED");
}

TEST_F(StreamsTest, RefuseABrokenLastEventId) {
  core_.add_job(user_, uid_);
  start();
  for (const char* target : {"/v1/events", "/v1/jobs/1/events", "/v1/jobs/1/output?follow=true"}) {
    EXPECT_EQ(ask("GET", target, {}, "Last-Event-ID: x\r\n").status, 400) << target;
  }
}

TEST_F(StreamsTest, FollowOutputAsItIsPrinted) {
  const model::JobId job = core_.add_job(user_, uid_);
  start();
  SseReader reader(options_.socket_path, "/v1/jobs/1/output?follow=true");
  EXPECT_EQ(reader.head().status, 200);
  core_.start_job(job);
  core_.print(job, "one\n");
  EXPECT_EQ(text_of(reader.next()), "one\n");
  core_.print(job, std::string("\xff\x00two", 5));
  const auto second = reader.next();
  EXPECT_EQ(text_of(second), std::string("\xff\x00two", 5));
  EXPECT_EQ(second->id, "9");
  EXPECT_EQ(second->data["ended"], false);
  core_.print(job, "last");
  core_.end_job(job, 0);
  EXPECT_EQ(text_of(reader.next()), "last");
  const auto end = reader.next();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->data["ended"], true);
  EXPECT_EQ(end->data["next_offset"], 13);
  EXPECT_TRUE(reader.is_at_end());
}

TEST_F(StreamsTest, FollowAFileOfTheUsersAsWell) {
  const model::JobId job = core_.add_job_with_output(user_, uid_, "/home/out");
  start();
  SseReader reader(options_.socket_path, "/v1/jobs/1/output?follow=true");
  EXPECT_EQ(reader.head().status, 200);
  core_.start_job(job);
  core_.print(job, "one\n");
  EXPECT_EQ(text_of(reader.next()), "one\n");
  core_.print(job, "two");
  EXPECT_EQ(text_of(reader.next()), "two")
      << "no watch reports a change there: the file is read again and again";
  core_.print(job, "last");
  core_.end_job(job, 0);
  EXPECT_EQ(text_of(reader.next()), "last");
  const auto end = reader.next();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->data["ended"], true);
  EXPECT_TRUE(reader.is_at_end());
}

// The server has one thread. A client that asks for a file on a disk that is gone gets an error in
// the end.
TEST_F(StreamsTest, ADiskThatHangsKeepsNoOtherClientWaiting) {
  const model::JobId job = core_.add_job_with_output(user_, uid_, "/net/gone/out");
  core_.start_job(job);
  std::promise<void> is_back;
  core_.users_disk = [back = is_back.get_future().share()] { back.wait(); };
  start();
  RawClient waiting(options_.socket_path);
  waiting.send(request_text("GET", "/v1/jobs/1/output"));
  RawClient follower(options_.socket_path);
  follower.send(request_text("GET", "/v1/jobs/1/output?follow=true"));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask("GET", "/v1/jobs/1").status, 200);
  for (RawClient* const client : {&waiting, &follower}) {
    const auto answer = client->receive();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, 503);
    EXPECT_NE(answer->body.find("does not answer; try again"), std::string::npos) << answer->body;
  }
  is_back.set_value();
}

TEST_F(StreamsTest, FollowOutputOverAllAttempts) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job);
  core_.print(job, "first");
  start();
  SseReader reader(options_.socket_path, "/v1/jobs/1/output?follow=true");
  EXPECT_EQ(text_of(reader.next()), "first");
  core_.requeue_job(job);
  core_.start_job(job);
  core_.print(job, "second");
  const auto second = reader.next();
  EXPECT_EQ(text_of(second), "second");
  EXPECT_EQ(second->data["attempt"], 2);
  core_.end_job(job, 0);
  EXPECT_EQ(reader.next()->data["ended"], true);
}

TEST_F(StreamsTest, FollowOneAttemptToItsEnd) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job);
  core_.print(job, "first");
  core_.requeue_job(job);
  start();
  SseReader reader(options_.socket_path, "/v1/jobs/1/output?follow=true&attempt=1&offset=2");
  EXPECT_EQ(text_of(reader.next()), "rst");
  EXPECT_EQ(reader.next()->data["ended"], true);
  EXPECT_TRUE(reader.is_at_end());
  EXPECT_EQ(ask("GET", "/v1/jobs/1/output?follow=true&attempt=2").status, 404);
}

TEST_F(StreamsTest, ResumeOutputAfterTheLastEventSeen) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job);
  core_.print(job, "0123456789");
  start();
  SseReader reader(options_.socket_path, "/v1/jobs/1/output?follow=true", "Last-Event-ID: 4\r\n");
  EXPECT_EQ(text_of(reader.next()), "456789");
}

TEST_F(StreamsTest, GiveOutputAsItIsToThoseWhoAskForText) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job);
  core_.print(job, "plain\n");
  core_.end_job(job, 0);
  start();
  const RawResponse whole = ask("GET", "/v1/jobs/1/output", {}, "Accept: text/plain\r\n");
  EXPECT_EQ(whole.body, "plain\n");
  EXPECT_EQ(whole.headers.at("output-next-offset"), "6");
  EXPECT_EQ(whole.headers.at("output-ended"), "true");
  const RawResponse followed =
      ask("GET", "/v1/jobs/1/output?follow=true", {}, "Accept: text/plain\r\n");
  EXPECT_EQ(followed.body, "plain\n");
  EXPECT_TRUE(followed.is_complete);
}

TEST_F(StreamsTest, CarryMuchOutput) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job);
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i) text += fmt::format("line {}\n", i);
  core_.print(job, text);
  core_.end_job(job, 0);
  start();
  EXPECT_EQ(ask("GET", "/v1/jobs/1/output?follow=true", {}, "Accept: text/plain\r\n").body, text);
}

TEST_F(StreamsTest, EndWhenTheServerStops) {
  core_.add_job(user_, uid_);
  start();
  SseReader changes(options_.socket_path, "/v1/jobs/1/events");
  EXPECT_EQ(change_of(changes.next()), "CURRENT");
  RawClient waiter(options_.socket_path);
  waiter.send(request_text("GET", "/v1/jobs/1/wait"));
  ASSERT_TRUE(eventually([&] { return server_->figures().requests == 2; }));
  std::thread stopper([&] { server_->stop(); });
  EXPECT_TRUE(changes.is_at_end());
  const auto waited = waiter.receive();
  ASSERT_TRUE(waited.has_value());
  EXPECT_EQ(waited->status, 503);
  changes.close();
  waiter.close();
  stopper.join();
}

TEST_F(StreamsTest, FreeEverythingWhenTheClientGoes) {
  core_.add_job(user_, uid_);
  start();
  for (const char* target : {"/v1/jobs/1/events", "/v1/events", "/v1/jobs/1/output?follow=true"}) {
    SseReader reader(options_.socket_path, target);
    EXPECT_EQ(reader.head().status, 200);
    EXPECT_EQ(server_->figures().connections, 1U);
    reader.close();
    EXPECT_TRUE(all_connections_gone()) << target;
  }
}

// ---- waiting ----

TEST_F(StreamsTest, WaitUntilAJobHasEnded) {
  const model::JobId job = core_.add_job(user_, uid_);
  start();
  RawClient client(options_.socket_path);
  client.send(request_text("GET", "/v1/jobs/1/wait?timeout_seconds=600"));
  ASSERT_TRUE(eventually([&] { return server_->figures().requests == 1; }));
  core_.start_job(job);
  core_.end_job(job, 7);
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(parsed(*response)["exit_code"], 7);
  // The connection goes on.
  EXPECT_EQ(parsed(client.request("GET", "/v1/jobs/1/wait").value())["state"], "FAILED");
}

TEST_F(StreamsTest, WaitNoLongerThanAsked) {
  core_.add_job(user_, uid_);
  start();
  EXPECT_EQ(parsed(ask("GET", "/v1/jobs/1/wait?timeout_seconds=0.01"))["state"], "QUEUED");
  EXPECT_EQ(parsed(ask("GET", "/v1/jobs/1/wait?timeout_seconds=0"))["state"], "QUEUED");
}

TEST_F(StreamsTest, AnswerWhatWasSentWhileWaiting) {
  const model::JobId job = core_.add_job(user_, uid_);
  start();
  RawClient client(options_.socket_path);
  client.send(request_text("GET", "/v1/jobs/1/wait") + request_text("GET", "/v1/version"));
  ASSERT_TRUE(eventually([&] { return server_->figures().requests == 1; }));
  core_.start_job(job);
  core_.end_job(job, 0);
  EXPECT_EQ(parsed(client.receive().value())["state"], "COMPLETED");
  EXPECT_EQ(parsed(client.receive().value())["api"], "v1");
}

TEST_F(StreamsTest, ForgetAWaiterWhoGoes) {
  core_.add_job(user_, uid_);
  start();
  {
    RawClient client(options_.socket_path);
    client.send(request_text("GET", "/v1/jobs/1/wait?timeout_seconds=3600"));
    ASSERT_TRUE(eventually([&] { return server_->figures().requests == 1; }));
  }
  EXPECT_TRUE(all_connections_gone());
}

}  // namespace
}  // namespace gpu_platform::api
