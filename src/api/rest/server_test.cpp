#include "api/rest/server.h"

#include <sys/stat.h>

#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/rest/server_fixture_test.h"
#include "api/rest/unix_listener.h"
#include "base/letters.h"

namespace gpu_platform::api {
namespace {

TEST_F(ServerTest, AnswersASubmissionWithTheJob) {
  start();
  const RawResponse created =
      ask("POST", "/v1/jobs", R"({"command":["true"],"gpus":2,"name":"x"})");
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.headers.at("location"), "/v1/jobs/1");
  EXPECT_EQ(created.headers.at("content-type"), "application/json");
  const auto job = parsed(created);
  EXPECT_EQ(job["id"], "1");
  EXPECT_EQ(job["state"], "QUEUED");
  EXPECT_EQ(job["spec"]["user"], user_);
  EXPECT_EQ(job["wait_reason"]["code"], "NOT_EVALUATED");
  const auto command = core_.commands().at(0);
  EXPECT_EQ(command.caller.uid, uid_);
  EXPECT_EQ(command.caller.role, uid_ == 0 ? model::Role::kAdmin : model::Role::kUser);
  EXPECT_EQ(std::get<model::SubmitJob>(command.body).spec.request.gpus, 2U);
  EXPECT_EQ(parsed(ask("GET", "/v1/jobs/1"))["spec"]["name"], "x");
}

TEST_F(ServerTest, AnswersARepeatedSubmissionWithTheFirstJob) {
  start();
  const std::string body = R"({"command":["true"],"request_id":"once"})";
  EXPECT_EQ(ask("POST", "/v1/jobs", body).status, 201);
  const RawResponse repeated = ask("POST", "/v1/jobs", body);
  EXPECT_EQ(repeated.status, 200);
  EXPECT_EQ(parsed(repeated)["id"], "1");
}

TEST_F(ServerTest, PassesOnTheCoresRefusal) {
  start();
  const RawResponse refused = ask("POST", "/v1/jobs", R"({"command":["true"],"gpus":9})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.headers.at("content-type"), "application/problem+json");
  const auto problem = parsed(refused);
  EXPECT_EQ(problem["field"], "gpus");
  EXPECT_EQ(problem["code"], "FAILED_PRECONDITION");
  EXPECT_FALSE(problem["request_id"].get<std::string>().empty());
}

TEST_F(ServerTest, TellsOfARefusedCallWithTheIdThatItsAnswerHas) {
  std::mutex mutex;
  std::vector<std::string> told;
  options_.notable = [&](const Peer& peer, const NotableCall& call) {
    const std::lock_guard lock(mutex);
    told.push_back(fmt::format("{} {} {} {}", call.request_id, call.call, call.status,
                               peer.caller.uid == uid_));
  };
  start();
  EXPECT_EQ(ask("GET", "/v1/jobs").status, 200);
  const RawResponse refused = ask("POST", "/v1/jobs", R"({"command":["true"],"gpus":9})");
  const RawResponse unknown = ask("GET", "/v1/nothing");
  const std::string first = parsed(refused)["request_id"];
  const std::string second = parsed(unknown)["request_id"];
  const std::lock_guard lock(mutex);
  EXPECT_THAT(
      told, testing::ElementsAre(first + " JobService.SubmitJob 409 true", second + "  404 true"));
}

TEST_F(ServerTest, AnswersPipelinedRequestsInTheirOrder) {
  core_.add_job(user_, uid_, "first");
  core_.add_job(user_, uid_, "second");
  start();
  RawClient client(options_.socket_path);
  client.send(request_text("GET", "/v1/jobs/1") +
              request_text("POST", "/v1/jobs", R"({"command":["third"]})") +
              request_text("GET", "/v1/jobs?limit=1") + request_text("GET", "/v1/jobs/2"));
  EXPECT_EQ(parsed(client.receive().value())["spec"]["name"], "first");
  EXPECT_EQ(parsed(client.receive().value())["spec"]["name"], "third");
  EXPECT_EQ(parsed(client.receive().value())["jobs"].size(), 1U);
  EXPECT_EQ(parsed(client.receive().value())["spec"]["name"], "second");
}

TEST_F(ServerTest, ReadsARequestThatComesByteByByte) {
  start();
  RawClient client(options_.socket_path);
  for (const char c : request_text("POST", "/v1/jobs", R"({"command":["true"]})")) {
    ASSERT_TRUE(client.send(std::string_view(&c, 1)));
  }
  EXPECT_EQ(client.receive()->status, 201);
}

TEST_F(ServerTest, ReadsAChunkedBody) {
  start();
  RawClient client(options_.socket_path);
  client.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json; charset=utf-8\r\n"
      "Transfer-Encoding: chunked\r\n\r\n9\r\n{\"command\r\nb\r\n\":[\"true\"]}\r\n0\r\n\r\n");
  EXPECT_EQ(client.receive()->status, 201);
}

TEST_F(ServerTest, AnswersWithTheFieldsThatAClientNames) {
  const std::string one = std::to_string(core_.add_job(user_, uid_).value);
  const std::string two = std::to_string(core_.add_job(user_, uid_).value);
  start();
  EXPECT_EQ(ask("GET", "/v1/jobs/" + one + "?fields=state,id").body,
            R"({"id":")" + one + R"(","state":"QUEUED"})");
  EXPECT_EQ(ask("GET", "/v1/jobs?fields=jobs.id").body,
            R"({"jobs":[{"id":")" + two + R"("},{"id":")" + one + R"("}],"next_page":null})");
  EXPECT_EQ(ask("GET", "/v1/version?fields=version").body, R"({"version":"1.2.3"})");
  const auto refused = [&](const std::string& target) {
    const RawResponse response = ask("GET", target);
    EXPECT_EQ(response.status, 400) << target;
    EXPECT_EQ(parsed(response)["field"], "fields") << target;
    return parsed(response)["detail"].get<std::string>();
  };
  EXPECT_THAT(refused("/v1/jobs/" + one + "?fields=stat"),
              testing::HasSubstr("did you mean 'state'?"));
  EXPECT_THAT(refused("/v1/jobs/" + one + "?fields=id&fields=state"),
              testing::HasSubstr("given twice"));
  EXPECT_THAT(refused("/v1/jobs?fields=next_page"), testing::HasSubstr("jobs.id"));
  refused("/v1/jobs/" + one + "?fields=");
  refused("/v1/queue?fields=jobs");
}

TEST_F(ServerTest, TellsAClientThatItHasTheAnswerAlready) {
  start();
  const RawResponse first = ask("GET", "/v1/version");
  const std::string tag = first.headers.at("etag");
  RawClient client(options_.socket_path);
  const auto again = [&](const std::string& tags) {
    return client.request("GET", "/v1/version", {}, "If-None-Match: " + tags + "\r\n");
  };
  for (const std::string& tags : {tag, "W/" + tag, "\"0123\", " + tag, std::string("*")}) {
    const auto same = again(tags);
    ASSERT_TRUE(same.has_value()) << tags;
    EXPECT_EQ(same->status, 304) << tags;
    EXPECT_EQ(same->headers.at("etag"), tag);
    EXPECT_FALSE(same->headers.contains("content-length"));
    EXPECT_EQ(same->body, "");
  }
  const auto other = again("\"0123456789abcdef\"");
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->status, 200);
  EXPECT_EQ(other->body, first.body);
  EXPECT_FALSE(ask("GET", "/v1/nothing").headers.contains("etag"));
}

TEST_F(ServerTest, ClosesWhenTheClientAsksForIt) {
  start();
  RawClient client(options_.socket_path);
  client.send("GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->headers.at("connection"), "close");
  EXPECT_TRUE(client.is_closed());
}

TEST_F(ServerTest, SpeaksToOldClients) {
  core_.add_job(user_, uid_);
  start();
  RawClient client(options_.socket_path);
  client.send("GET /v1/jobs HTTP/1.0\r\n\r\n");
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_FALSE(response->headers.contains("transfer-encoding"));
  EXPECT_EQ(parsed(*response)["jobs"].size(), 1U);
}

TEST_F(ServerTest, AnswersAClientThatOnlyStoppedSending) {
  for (int i = 0; i < 300; ++i) core_.add_job(user_, uid_);
  start();
  RawClient client(options_.socket_path);
  client.send(request_text("GET", "/v1/jobs"));
  client.finish_sending();
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_TRUE(response->is_complete);
  EXPECT_EQ(parsed(*response)["jobs"].size(), 300U);
}

TEST_F(ServerTest, RefusesABodyThatIsTooLargeSoThatTheClientSeesIt) {
  start();
  const std::string body = "{\"command\":[\"" + std::string((1 << 20) + 1, 'x') + "\"]}";
  const RawResponse refused = ask("POST", "/v1/jobs", body);
  EXPECT_EQ(refused.status, 413);
  // Announced, and not sent at all.
  RawClient client(options_.socket_path);
  client.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
      "2000000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive()->status, 413);
}

TEST_F(ServerTest, TellsAWaitingClientToGoOn) {
  start();
  RawClient client(options_.socket_path);
  client.send(
      "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
      "20\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive_head()->status, 100);
  client.send(R"({"command":["true"]})");
  EXPECT_EQ(client.receive()->status, 201);
}

TEST_F(ServerTest, RefusesAHeaderThatIsTooLarge) {
  start();
  const RawResponse refused =
      ask("GET", "/v1/health", {}, "X: " + std::string(20'000, 'x') + "\r\n");
  EXPECT_EQ(refused.status, 431);
}

TEST_F(ServerTest, RefusesWhatIsNoHttp) {
  start();
  for (const std::string& bytes :
       {std::string("hello\r\n\r\n"), std::string("\0\0\0\0\r\n\r\n", 8),
        std::string("GET\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string("POST /v1/jobs HTTP/1.1\r\nContent-Length: -1\r\n\r\n")}) {
    RawClient client(options_.socket_path);
    client.send(bytes);
    const auto response = client.receive();
    ASSERT_TRUE(response.has_value()) << bytes;
    EXPECT_EQ(response->status, 400) << bytes;
    EXPECT_TRUE(client.is_closed());
  }
}

TEST_F(ServerTest, RefusesOtherContent) {
  start();
  const std::string body = R"({"command":["true"]})";
  for (const char* type :
       {"Content-Type: text/plain\r\n", "Content-Type: application/jsonx\r\n", ""}) {
    RawClient client(options_.socket_path);
    client.send(fmt::format("POST /v1/jobs HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{}",
                            type, body.size(), body));
    EXPECT_EQ(client.receive()->status, 415) << type;
  }
}

TEST_F(ServerTest, NamesTheMethodsOfAPath) {
  start();
  const RawResponse refused = ask("DELETE", "/v1/jobs");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.headers.at("allow"), "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(ask("GET", "/v1/jobs/1/cancel").headers.at("allow"), "POST, OPTIONS");
  EXPECT_EQ(ask("GET", "/v1").status, 404);
  EXPECT_EQ(ask("GET", "/").status, 404);
}

TEST_F(ServerTest, GivesUpOnASlowRequest) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  options_.limits.request_time = std::chrono::milliseconds(50);
  start();
  RawClient client(options_.socket_path);
  client.send("POST /v1/jobs HTTP/1.1\r\nHost: x\r\n");
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 408);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(ServerTest, GivesUpOnAnIdleConnection) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  options_.limits.idle_time = std::chrono::milliseconds(50);
  start();
  RawClient client(options_.socket_path);
  EXPECT_TRUE(client.is_closed());
}

TEST_F(ServerTest, GivesUpOnAClientThatReadsNothing) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  options_.limits.write_time = std::chrono::milliseconds(100);
  core_.add_jobs(3'000, user_, uid_);
  start();
  RawClient client(options_.socket_path);
  client.send(request_text("GET", "/v1/jobs?limit=10000"));
  ASSERT_TRUE(eventually([&] { return server_->figures().requests == 1; }));
  EXPECT_TRUE(all_connections_gone());
  const auto cut = client.receive();
  ASSERT_TRUE(cut.has_value());
  EXPECT_FALSE(cut->is_complete);
}

TEST_F(ServerTest, SaysThatAnEndedJobCannotBeStopped) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job);
  core_.end_job(job, 0);
  start();
  const RawResponse answer = ask("POST", "/v1/jobs/1/cancel");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(parsed(answer)["changed"], false);
  EXPECT_EQ(parsed(answer)["job"]["state"], "COMPLETED");
  EXPECT_TRUE(core_.commands().empty());
}

TEST_F(ServerTest, StopsJobsGentlyAndAtOnce) {
  core_.start_job(core_.add_job(user_, uid_));
  core_.start_job(core_.add_job(user_, uid_));
  start();
  EXPECT_EQ(parsed(ask("POST", "/v1/jobs/1/cancel", "{}"))["changed"], true);
  EXPECT_EQ(parsed(ask("POST", "/v1/jobs/2/kill"))["job"]["state"], "STOPPING");
  const auto commands = core_.commands();
  EXPECT_EQ(std::get<model::ActOnJob>(commands.at(0).body).action, model::JobAction::kCancel);
  EXPECT_EQ(std::get<model::ActOnJob>(commands.at(1).body).action, model::JobAction::kKill);
}

TEST_F(ServerTest, ShowsTheCluster) {
  core_.add_job(user_, uid_);
  start();
  const auto status = parsed(ask("GET", "/v1/status"));
  EXPECT_EQ(status["total_gpus"], 8);
  EXPECT_EQ(status["available_gpus"], 8);
  EXPECT_EQ(status["utilization"], 0);
  EXPECT_EQ(status["queued_jobs"], 1);
  EXPECT_EQ(status["gpus"][3]["uuid"], "GPU-3");
  EXPECT_EQ(status["gpus"][3]["emulated"], true);
  EXPECT_EQ(parsed(ask("GET", "/v1/nodes"))["nodes"][0]["name"], "dgx-h100-1");
  EXPECT_EQ(parsed(ask("GET", "/v1/health"))["status"], "ok");
  EXPECT_EQ(parsed(ask("GET", "/v1/version"))["version"], "1.2.3");
  EXPECT_EQ(parsed(ask("GET", "/v1/queue?all=true"))["total"], 1);
}

TEST_F(ServerTest, SaysWhyItIsNotReady) {
  core_.readiness = [] {
    return base::fail(base::ErrorCode::kResourceExhausted, "the disk is full");
  };
  start();
  const RawResponse answer = ask("GET", "/v1/ready");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(parsed(answer)["detail"], "the disk is full");
}

TEST_F(ServerTest, ListsManyJobsInPieces) {
  core_.add_jobs(2'000, user_, uid_);  // less than a page may have bytes
  start();
  RawClient client(options_.socket_path);
  const auto all = client.request("GET", "/v1/jobs?limit=10000");
  ASSERT_TRUE(all.has_value());
  EXPECT_TRUE(all->is_complete);
  EXPECT_EQ(all->headers.at("transfer-encoding"), "chunked");
  EXPECT_EQ(parsed(*all)["jobs"].size(), 2'000U);
  // The connection goes on.
  const auto page = client.request("GET", "/v1/jobs?limit=10");
  EXPECT_EQ(parsed(*page)["next_page"], "1991");
}

// What stands beside variables in a path is no value of one.
TEST_F(ServerTest, PathThatIsWrittenOutIsNoJob) {
  start();
  const RawResponse response = ask("GET", "/v1/jobs/bulk");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.headers.at("allow"), "POST, OPTIONS");
  EXPECT_EQ(ask("GET", "/v1/jobs/bulky").status, 400);
}

TEST_F(ServerTest, DescribesItself) {
  start();
  const auto document = parsed(ask("GET", "/v1/openapi.json"));
  EXPECT_EQ(document["openapi"], "3.1.0");
  const auto& submit = document["paths"]["/v1/jobs"]["post"];
  EXPECT_NE(submit["description"].get<std::string>().find("Accepts a job."), std::string::npos);
  EXPECT_TRUE(submit["responses"].contains("201"));
  const auto& schema = document["components"]["schemas"]["JobSpec"]["properties"];
  EXPECT_EQ(schema["gpus"]["maximum"], 65535);
  EXPECT_EQ(schema["labels"]["maxProperties"], 64);
  EXPECT_EQ(submit["requestBody"]["content"]["application/json"]["schema"]["$ref"],
            "#/components/schemas/JobSpec");
  EXPECT_EQ(schema["environment"]["writeOnly"], true);
  EXPECT_FALSE(schema["environment"]["description"].get<std::string>().empty());
  const auto& output =
      document["paths"]["/v1/jobs/{id}/output"]["get"]["responses"]["200"]["content"];
  EXPECT_TRUE(output.contains("text/event-stream"));
  EXPECT_TRUE(output.contains("application/json"));
  // A repeat of a request is answered, too.
  EXPECT_TRUE(submit["responses"].contains("200"));
  EXPECT_TRUE(document["paths"].contains("/metrics"));
  EXPECT_EQ(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
  EXPECT_EQ(output["text/event-stream"]["schema"]["properties"]["data"]["contentSchema"]["$ref"],
            "#/components/schemas/OutputChunk");
  const auto& sizing = document["components"]["schemas"]["ServerSetting"];
  EXPECT_FALSE(sizing.contains("required"));  // of requests alone
  EXPECT_TRUE(document["components"]["schemas"]["GpuHealth"].contains("required"));
  for (const auto& [name, type] : document["components"]["schemas"].items()) {
    EXPECT_TRUE(type["type"] == "object" || type.contains("enum")) << name;
  }
}

// Makers of clients make types of their own from the names of calls and schemas, and many of them
// do not tell names apart that differ in case alone.
TEST_F(ServerTest, TheDocumentsNamesStayApartWhateverIsMadeOfThem) {
  start();
  const auto document = parsed(ask("GET", "/v1/openapi.json"));
  const auto folded = [](std::string name) {
    name = base::to_lower(name);
    for (const std::string_view end :
         {"request", "response", "params", "body", "api", "model", "dto", "client"}) {
      EXPECT_FALSE(name.ends_with(end)) << name;
    }
    return name;
  };
  std::set<std::string> names;
  for (const auto& [name, schema] : document["components"]["schemas"].items()) {
    EXPECT_TRUE(names.insert(folded(name)).second) << name;
  }
  for (const char* own : {"configuration", "error", "object", "file", "response", "status"}) {
    EXPECT_FALSE(names.contains(own)) << own;
  }
  std::set<std::string> tags;
  for (const auto& tag : document["tags"]) {
    EXPECT_TRUE(tags.insert(tag["name"]).second);
    EXPECT_FALSE(tag["description"].get<std::string>().empty()) << tag;
  }
  std::set<std::string> calls;
  for (const auto& [path, operations] : document["paths"].items()) {
    for (const auto& [method, operation] : operations.items()) {
      const std::string id = operation["operationId"];
      EXPECT_TRUE(calls.insert(folded(id)).second) << id;
      EXPECT_FALSE(names.contains(base::to_lower(id))) << id << " is a schema, too";
      EXPECT_FALSE(operation["summary"].get<std::string>().empty()) << id;
      EXPECT_TRUE(tags.contains(operation["tags"][0])) << id;
      EXPECT_TRUE(operation["responses"].contains("401")) << id;
    }
  }
  const auto& cancel = document["paths"]["/v1/jobs/{id}/cancel"]["post"]["responses"];
  for (const char* status : {"400", "403", "404", "409", "429", "503", "default"}) {
    ASSERT_TRUE(cancel.contains(status)) << status;
    const std::string target = cancel[status]["$ref"];
    EXPECT_TRUE(document["components"]["responses"].contains(
        target.substr(std::string_view("#/components/responses/").size())))
        << target;
  }
}

TEST_F(ServerTest, HeadHasTheHeadOfGetAndNoBody) {
  core_.add_job(user_, uid_);
  start();
  RawClient client(options_.socket_path);
  for (const char* target : {"/v1/jobs/1", "/v1/version", "/v1/openapi.json", "/metrics",
                             "/v1/jobs/99", "/no/such/path", "/v1/jobs/1/exec?command=true"}) {
    const RawResponse whole = client.request("GET", target).value();
    ASSERT_TRUE(client.send(request_text("HEAD", target)));
    const auto head = client.receive_head();
    ASSERT_TRUE(head.has_value()) << target;
    EXPECT_EQ(head->status, whole.status) << target;
    EXPECT_EQ(head->headers.at("content-type"), whole.headers.at("content-type")) << target;
    // Request ids and times have no fixed length.
    EXPECT_GT(std::stoul(head->headers.at("content-length")), 0U) << target;
    if (whole.headers.contains("etag") && std::string_view(target) == "/v1/version") {
      EXPECT_EQ(head->headers.at("etag"), whole.headers.at("etag"));
    }
  }
  // Lists and streams are begun for no reader.
  for (const char* target : {"/v1/jobs", "/v1/queue", "/v1/events", "/v1/jobs/1/events"}) {
    ASSERT_TRUE(client.send(request_text("HEAD", target)));
    const auto head = client.receive_head();
    ASSERT_TRUE(head.has_value()) << target;
    EXPECT_EQ(head->status, 200) << target;
    EXPECT_FALSE(head->headers.contains("transfer-encoding")) << target;
  }
  EXPECT_EQ(client.request("GET", "/v1/version")->status, 200) << "no body was left behind";
}

TEST_F(ServerTest, OptionsNamesTheMethodsOfAPath) {
  core_.add_job(user_, uid_);
  start();
  const std::pair<const char*, const char*> expected[] = {
      {"/v1/jobs", "GET, HEAD, POST, OPTIONS"},
      {"/v1/jobs/1", "GET, HEAD, OPTIONS"},
      {"/v1/jobs/1/cancel", "POST, OPTIONS"},
      {"/v1/jobs/bulk", "POST, OPTIONS"},
      {"/v1/teams/vision", "GET, HEAD, DELETE, OPTIONS"},
      {"/metrics", "GET, HEAD, OPTIONS"},
      {"/gpu_platform.v1.JobService/GetJob", "POST, OPTIONS"}};
  RawClient client(options_.socket_path);
  for (const auto& [path, methods] : expected) {
    const RawResponse answer = client.request("OPTIONS", path).value();
    EXPECT_EQ(answer.status, 204) << path;
    EXPECT_EQ(answer.headers.at("allow"), methods) << path;
    EXPECT_TRUE(answer.body.empty()) << path;
    EXPECT_FALSE(answer.headers.contains("content-length")) << path;
    const RawResponse refused = client.request("PUT", path).value();
    EXPECT_EQ(refused.status, 405) << path;
    EXPECT_EQ(refused.headers.at("allow"), methods) << path;
  }
  EXPECT_EQ(client.request("OPTIONS", "/no/such/path")->status, 404);
}

// Disconnects at every byte of a conversation, and whatever was under way goes with the client.
TEST_F(ServerTest, ForgetsClientsThatVanish) {
  core_.add_job(user_, uid_);
  start();
  const std::string submit = request_text("POST", "/v1/jobs", R"({"command":["true"]})");
  const std::string talk =
      submit + request_text("GET", "/v1/jobs/1/wait") + request_text("GET", "/v1/events");
  for (std::size_t length = 0; length <= talk.size(); ++length) {
    RawClient client(options_.socket_path);
    client.send(std::string_view(talk).substr(0, length));
    if (length >= submit.size() && length % 3 == 0) {
      EXPECT_EQ(client.receive()->status, 201);
    }
  }
  EXPECT_TRUE(all_connections_gone());
  EXPECT_EQ(ask("GET", "/v1/health").status, 200);
}

TEST_F(ServerTest, ForgetsAClientThatVanishesBeforeTheCoreAnswers) {
  start();
  core_.hold_commands(true);
  {
    RawClient client(options_.socket_path);
    client.send(request_text("POST", "/v1/jobs", R"({"command":["true"]})"));
    ASSERT_TRUE(eventually([&] { return core_.held_commands() == 1; }));
  }
  core_.hold_commands(false);
  EXPECT_TRUE(all_connections_gone());
  EXPECT_EQ(ask("GET", "/v1/jobs/1").status, 200);
}

TEST_F(ServerTest, LetsOneUserHaveSoManyConnections) {
  options_.budgets.connections = 3;
  start();
  RawClient one(options_.socket_path);
  RawClient two(options_.socket_path);
  RawClient three(options_.socket_path);
  EXPECT_EQ(one.request("GET", "/v1/health")->status, 200);
  EXPECT_EQ(three.request("GET", "/v1/health")->status, 200);
  RawClient four(options_.socket_path);
  EXPECT_EQ(four.receive()->status, 503);
  one.close();
  EXPECT_TRUE(eventually([&] { return server_->figures().connections == 2; }));
  EXPECT_EQ(ask("GET", "/v1/health").status, 200);
}

TEST_F(ServerTest, WorksOnSeveralThreads) {
  options_.io_threads = 2;
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job);
  start();
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      RawClient client(options_.socket_path);
      for (int i = 0; i < 50; ++i) {
        const auto created = client.request("POST", "/v1/jobs", R"({"command":["true"]})");
        ASSERT_TRUE(created.has_value());
        EXPECT_EQ(created->status, 201);
        EXPECT_EQ(client.request("GET", created->headers.at("location"))->status, 200);
      }
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_EQ(core_.commands().size(), 200U);
}

// ---- the end ----

TEST_F(ServerTest, RemovesItsPathAndLetsTheRequestUnderWayFinish) {
  start();
  core_.hold_commands(true);
  RawClient client(options_.socket_path);
  client.send(request_text("POST", "/v1/jobs", R"({"command":["true"]})"));
  ASSERT_TRUE(eventually([&] { return core_.held_commands() == 1; }));
  const std::jthread stopper([&] { server_->stop(); });
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(options_.socket_path); }));
  core_.hold_commands(false);
  const auto response = client.receive();
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 201);
  // The answer may have been under way before the connection heard of the stop.
  EXPECT_TRUE(client.is_closed());
}

TEST_F(ServerTest, SurvivesAnswersThatComeAfterItsEnd) {
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  options_.stop_grace = std::chrono::milliseconds(10);
  start();
  core_.hold_commands(true);
  RawClient client(options_.socket_path);
  client.send(request_text("POST", "/v1/jobs", R"({"command":["true"]})"));
  ASSERT_TRUE(eventually([&] { return core_.held_commands() == 1; }));
  server_.reset();
  core_.hold_commands(false);
  EXPECT_TRUE(eventually([&] { return core_.snapshot()->jobs.size() == 1; }));
  EXPECT_FALSE(client.receive().has_value());
}

// ---- the path ----

TEST_F(ServerTest, ListensForAllUsersAsSoonAsItsPathIsThere) {
  start();
  struct stat found{};
  ASSERT_EQ(::stat(options_.socket_path.c_str(), &found), 0);
  EXPECT_TRUE(S_ISSOCK(found.st_mode));
  EXPECT_EQ(found.st_mode & 0777, 0666U);
  EXPECT_FALSE(std::filesystem::exists(options_.socket_path + ".new"));
}

TEST_F(ServerTest, ReplacesWhatADeadDaemonLeft) {
  {
    auto dead = UnixListener::open(options_.socket_path);
    ASSERT_TRUE(dead.has_value());
    // Its path stays behind, as after a SIGKILL.
    std::filesystem::create_hard_link(options_.socket_path, options_.socket_path + ".kept");
  }
  std::filesystem::rename(options_.socket_path + ".kept", options_.socket_path);
  start();
  EXPECT_EQ(ask("GET", "/v1/health").status, 200);
}

TEST_F(ServerTest, LeavesALivingDaemonAlone) {
  start();
  const auto second = Server::start(options_, core_.access(), core_.hub());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, base::ErrorCode::kAlreadyExists);
  EXPECT_EQ(ask("GET", "/v1/health").status, 200);
}

TEST_F(ServerTest, LeavesOtherFilesAlone) {
  std::ofstream(options_.socket_path) << "precious";
  const auto server = Server::start(options_, core_.access(), core_.hub());
  ASSERT_FALSE(server.has_value());
  EXPECT_EQ(server.error().code, base::ErrorCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::is_regular_file(options_.socket_path));
}

TEST_F(ServerTest, RefusesAPathThatIsTooLong) {
  options_.socket_path = "/tmp/" + std::string(200, 'x');
  const auto server = Server::start(options_, core_.access(), core_.hub());
  ASSERT_FALSE(server.has_value());
  EXPECT_EQ(server.error().field, "socket");
}

TEST_F(ServerTest, DoesNotRemoveThePathOfItsSuccessor) {
  start();
  std::filesystem::remove(options_.socket_path);
  std::ofstream(options_.socket_path) << "successor";
  server_.reset();
  EXPECT_TRUE(std::filesystem::exists(options_.socket_path));
}

}  // namespace
}  // namespace gpu_platform::api
