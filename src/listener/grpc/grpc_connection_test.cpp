#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "gpu_platform/v1/access.pb.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "listener/front_fixture.h"
#include "listener/testing/grpc_client.h"

namespace gpu_platform::listener {
namespace {

constexpr int kCodeInvalid = 3;
constexpr int kCodeDeadline = 4;
constexpr int kCodeNotFound = 5;
constexpr int kCodeExhausted = 8;
constexpr int kCodeUnimplemented = 12;
constexpr int kCodeUnavailable = 14;
constexpr int kCodeUnauthenticated = 16;

constexpr const char* kGetJob = "/gpu_platform.v1.JobService/GetJob";
constexpr const char* kWatchJob = "/gpu_platform.v1.JobService/WatchJob";
constexpr const char* kSubmitJob = "/gpu_platform.v1.JobService/SubmitJob";

class ListenerGrpc : public ListenerFront {
 protected:
  void SetUp() override { start(true, Door::kGrpc); }

  static std::string get_request(const std::string& id) {
    v1::GetJobRequest request;
    request.set_id(id);
    return request.SerializeAsString();
  }
  static std::string id_of(model::JobId job) { return std::to_string(job.value); }
  static v1::Job job_in(const GrpcClient::Call& call) {
    v1::Job job;
    EXPECT_EQ(call.status(), 0) << call.message();
    EXPECT_EQ(call.messages.size(), 1U);
    EXPECT_TRUE(!call.messages.empty() && job.ParseFromString(call.messages[0]));
    return job;
  }
};

TEST_F(ListenerGrpc, ACallIsTheUsersBehindTheToken) {
  const std::string anns = id_of(core_.add_job("ann", 5001));
  GrpcClient client(port_);
  ASSERT_TRUE(client.is_connected());
  EXPECT_EQ(job_in(client.call(kGetJob, get_request(anns), "ann")).spec().user(), "ann");
  const auto hidden = client.call(kGetJob, get_request(anns), "bob");
  EXPECT_EQ(hidden.status(), kCodeNotFound);
  EXPECT_NE(hidden.message().find("there is no job"), std::string::npos);
  EXPECT_FALSE(hidden.fields.at("request-id").empty());
  EXPECT_EQ(client.call(kGetJob, get_request(anns), "forged").status(), kCodeUnauthenticated);
  EXPECT_EQ(client.call(kGetJob, get_request(anns), "").status(), kCodeUnauthenticated);
  // Of one client, each call has the rights of its own token.
  EXPECT_EQ(job_in(client.call(kGetJob, get_request(anns), "ann")).spec().user(), "ann");
}

TEST_F(ListenerGrpc, ASubmissionAndItsErrorsAreThoseOfRest) {
  GrpcClient client(port_);
  v1::SubmitJobRequest request;
  request.mutable_spec()->add_command("true");
  (*request.mutable_spec()->mutable_environment())["SECRET"] = "x";
  EXPECT_EQ(job_in(client.call(kSubmitJob, request.SerializeAsString(), "ann")).spec().user(),
            "ann");
  const auto command = core_.commands().front();
  EXPECT_NE(std::get<model::SubmitJob>(command.body).environment.find("SECRET"), std::string::npos)
      << "fields that only requests have come through, too";
  request.mutable_spec()->set_gpus(1'000'000'000);
  const auto wrong = client.call(kSubmitJob, request.SerializeAsString(), "ann");
  EXPECT_EQ(wrong.status(), kCodeInvalid);
  EXPECT_EQ(wrong.fields.at("field"), "gpus");
}

TEST_F(ListenerGrpc, AStreamGoesOnUntilItsEndAndIsResumedByNumber) {
  const model::JobId job = core_.add_job("ann", 5001);
  core_.start_job(job);
  GrpcClient client(port_);
  v1::WatchJobRequest request;
  request.set_id(id_of(job));
  auto fields = GrpcClient::head(kWatchJob, "ann");
  const auto id = client.begin(fields, GrpcClient::framed(request.SerializeAsString()));
  ASSERT_TRUE(client.read_until([&] { return client.of(id).messages.size() == 1; }));
  v1::JobChange change;
  ASSERT_TRUE(change.ParseFromString(client.of(id).messages[0]));
  EXPECT_EQ(change.change(), v1::JOB_CHANGE_KIND_CURRENT);
  const std::string seen = std::to_string(change.seq());
  core_.end_job(job, 3);
  const auto& over = client.finish(id);
  EXPECT_EQ(over.status(), 0);
  ASSERT_TRUE(change.ParseFromString(over.messages.back()));
  EXPECT_EQ(change.change(), v1::JOB_CHANGE_KIND_ENDED);
  EXPECT_EQ(change.job().exit_code(), 3);

  const auto again =
      client.call(kWatchJob, request.SerializeAsString(), "ann", {{"last-event-id", seen}});
  EXPECT_EQ(again.status(), 0);
  ASSERT_FALSE(again.messages.empty());
  ASSERT_TRUE(change.ParseFromString(again.messages[0]));
  EXPECT_GT(change.seq(), std::stoull(seen)) << "what was seen is not sent again";
}

TEST_F(ListenerGrpc, ADeadlineAndACancellationEndTheCallAtTheDaemonToo) {
  const model::JobId job = core_.add_job("ann", 5001);
  GrpcClient client(port_);
  v1::WatchJobRequest request;
  request.set_id(id_of(job));
  // Two seconds, in which the first message comes.
  const auto late =
      client.call(kWatchJob, request.SerializeAsString(), "ann", {{"grpc-timeout", "2S"}});
  EXPECT_EQ(late.status(), kCodeDeadline);
  EXPECT_EQ(late.messages.size(), 1U) << "what came before stays";
  const auto id = client.begin(GrpcClient::head(kWatchJob, "ann"),
                               GrpcClient::framed(request.SerializeAsString()));
  ASSERT_TRUE(client.read_until([&] { return client.of(id).messages.size() == 1; }));
  nghttp2_submit_rst_stream(client.session(), 0, id, NGHTTP2_CANCEL);
  ASSERT_TRUE(client.flush());
  // Each call had a connection to the daemon, which counts: both are given back.
  EXPECT_TRUE(eventually([&] { return front_->connections() == 1; }));
  EXPECT_EQ(client.call(kWatchJob, "", "ann", {{"grpc-timeout", "1 hour"}}).status(), kCodeInvalid);
}

TEST_F(ListenerGrpc, ManyCallsAtOnceShareAConnection) {
  const std::string job = id_of(core_.add_job("ann", 5001));
  GrpcClient client(port_);
  std::set<std::int32_t> calls;
  for (int i = 0; i < 100; ++i) {
    calls.insert(
        client.begin(GrpcClient::head(kGetJob, "ann"), GrpcClient::framed(get_request(job))));
  }
  for (const std::int32_t id : calls) EXPECT_EQ(job_in(client.finish(id)).id(), job);
  EXPECT_TRUE(eventually([&] { return front_->connections() <= 5; })) << "four may wait";
}

TEST_F(ListenerGrpc, FieldsOfTheAnswerMayBeChosen) {
  const std::string id = id_of(core_.add_job("ann", 5001));
  GrpcClient client(port_);
  const auto job = job_in(client.call(kGetJob, get_request(id), "ann", {{"fields", "id"}}));
  EXPECT_EQ(job.id(), id);
  EXPECT_FALSE(job.has_spec());
  const auto wrong = client.call(kGetJob, get_request(id), "ann", {{"fields", "id&x=1 y"}});
  EXPECT_EQ(wrong.status(), kCodeInvalid);
}

TEST_F(ListenerGrpc, ReflectionAnswersEachQuestionOfAStream) {
  GrpcClient client(port_);
  grpc::reflection::v1::ServerReflectionRequest question;
  question.set_list_services("");
  const std::string one = GrpcClient::framed(question.SerializeAsString());
  for (const char* version : {"v1", "v1alpha"}) {
    const std::string path =
        fmt::format("/grpc.reflection.{}.ServerReflection/ServerReflectionInfo", version);
    const auto& call = client.finish(client.begin(GrpcClient::head(path, "ann"), one + one));
    EXPECT_EQ(call.status(), 0);
    EXPECT_EQ(call.messages.size(), 2U);
  }
  const auto id = client.begin(
      GrpcClient::head("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "ann"), one,
      false);
  EXPECT_TRUE(client.read_until([&] { return client.of(id).messages.size() == 1; }));
  EXPECT_FALSE(client.of(id).is_over);
}

using HealthStatus = grpc::health::v1::HealthCheckResponse;

std::string health_request(const std::string& service) {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  return request.SerializeAsString();
}

int health_in(const std::string& message) {
  HealthStatus answer;
  EXPECT_TRUE(answer.ParseFromString(message));
  return answer.status();
}

TEST_F(ListenerGrpc, HealthIsToldWithoutACredentialAndNothingElseIs) {
  constexpr const char* kCheck = "/grpc.health.v1.Health/Check";
  GrpcClient client(port_);
  for (const char* service : {"", "gpu_platform.v1.JobService", "grpc.health.v1.Health",
                              "grpc.reflection.v1.ServerReflection"}) {
    const auto answer = client.call(kCheck, health_request(service), "");
    EXPECT_EQ(answer.status(), 0) << service;
    ASSERT_EQ(answer.messages.size(), 1U);
    EXPECT_EQ(health_in(answer.messages[0]), HealthStatus::SERVING) << service;
  }
  EXPECT_EQ(client.call(kCheck, health_request("JobService"), "").status(), kCodeNotFound);
  EXPECT_EQ(client.call(kCheck, "\xff", "").status(), kCodeInvalid);
  EXPECT_EQ(client.finish(client.begin(GrpcClient::head(kCheck, ""), "")).status(), kCodeInvalid);
  EXPECT_EQ(client.call("/grpc.health.v1.Health/List", "", "").status(), kCodeUnauthenticated);
  EXPECT_EQ(client.call(kGetJob, get_request("1"), "").status(), kCodeUnauthenticated);
  EXPECT_EQ(upstream_.opened, 0) << "the daemon is asked nothing";
}

TEST_F(ListenerGrpc, AWatchOfHealthGoesOnUntilTheServerEnds) {
  constexpr const char* kWatch = "/grpc.health.v1.Health/Watch";
  GrpcClient client(port_);
  const auto begin = [&](const char* service) {
    const auto id =
        client.begin(GrpcClient::head(kWatch, ""), GrpcClient::framed(health_request(service)));
    EXPECT_TRUE(client.read_until([&] { return client.of(id).messages.size() == 1; }));
    return id;
  };
  const auto overall = begin("");
  EXPECT_EQ(health_in(client.of(overall).messages[0]), HealthStatus::SERVING);
  const auto unknown = begin("no.such.Service");
  EXPECT_EQ(health_in(client.of(unknown).messages[0]), HealthStatus::SERVICE_UNKNOWN);
  EXPECT_EQ(front_->connections(), 3U) << "each watch counts as a connection";
  nghttp2_submit_rst_stream(client.session(), 0, unknown, NGHTTP2_CANCEL);
  ASSERT_TRUE(client.flush());
  EXPECT_TRUE(eventually([&] { return front_->connections() == 2; }));
  std::thread ends([&] { front_->stop(std::chrono::seconds(20)); });
  const GrpcClient::Call over = client.finish(overall);
  client.transport().close();
  ends.join();
  ASSERT_EQ(over.messages.size(), 2U);
  EXPECT_EQ(health_in(over.messages[1]), HealthStatus::NOT_SERVING);
  EXPECT_EQ(over.status(), kCodeUnavailable);
}

TEST_F(ListenerGrpc, RequestsThatAreNoneAreRefused) {
  GrpcClient client(port_);
  const std::string body = GrpcClient::framed(get_request("1"));
  const auto refused = [&](GrpcClient::Fields fields, const std::string& bytes) {
    return client.finish(client.begin(std::move(fields), bytes));
  };
  const auto head = [](std::string path = kGetJob) {
    return GrpcClient::head(std::move(path), "ann");
  };
  EXPECT_EQ(refused(head("/gpu_platform.v1.JobService/NoCall"), body).status(), kCodeUnimplemented);
  EXPECT_EQ(refused(head("/v1/jobs"), body).status(), kCodeUnimplemented);
  EXPECT_EQ(refused(head("/gpu_platform.v1.JobService/../x"), body).status(), kCodeInvalid);
  EXPECT_EQ(refused(head(std::string(kGetJob) + "?token=x"), body).status(), kCodeInvalid);
  EXPECT_EQ(refused(head("/gpu_platform.v1.JobService/ExecInJob"), body).status(),
            kCodeUnimplemented);
  EXPECT_EQ(refused(head(), body + body).status(), kCodeInvalid) << "two messages";
  EXPECT_EQ(refused(head(), "").status(), kCodeInvalid) << "no message";
  EXPECT_EQ(refused(head(), body.substr(0, 6)).status(), kCodeInvalid) << "half a message";
  EXPECT_EQ(refused(head(), GrpcClient::framed("\xff")).status(), kCodeInvalid);
  EXPECT_EQ(refused(head(), "\1" + body.substr(1)).status(), kCodeInvalid) << "compressed";
  EXPECT_EQ(refused(head(), std::string("\0\x7f\xff\xff\xff", 5)).status(), kCodeExhausted);
  const auto with = [&](std::string name, std::string value) {
    auto fields = head();
    std::erase_if(fields, [&](const auto& one) { return one.first == name; });
    fields.insert(name.starts_with(':') ? fields.begin() : fields.end(), {name, value});
    return refused(std::move(fields), body);
  };
  EXPECT_EQ(with("content-type", "application/json").fields.at(":status"), "415");
  EXPECT_EQ(with("content-type", "application/grpc+json").fields.at(":status"), "415");
  EXPECT_EQ(with(":method", "GET").fields.at(":status"), "405");
  EXPECT_EQ(with("grpc-encoding", "gzip").status(), kCodeUnimplemented);
  EXPECT_EQ(with("authorization", "Basic YTpi").status(), kCodeUnauthenticated);
  EXPECT_EQ(with("origin", "https://evil.example").status(), 7);
  EXPECT_EQ(with(":authority", "a b").status(), -1);
  auto twice = head();
  twice.emplace_back("authorization", "Bearer bob");
  EXPECT_EQ(refused(twice, body).status(), kCodeInvalid);
  auto large = head();
  large.emplace_back("x-large", std::string(15'000, 'x'));
  large.emplace_back("x-larger", std::string(15'000, 'x'));
  EXPECT_EQ(refused(large, body).status(), -1);
  auto many = head();
  for (int i = 0; i < 200; ++i) many.emplace_back(fmt::format("x-{}", i), "1");
  EXPECT_EQ(refused(many, body).status(), -1);
  EXPECT_EQ(client.call(kGetJob, get_request("1"), "ann").status(), kCodeNotFound)
      << "the connection goes on";
}

TEST_F(ListenerGrpc, ADaemonThatIsGoneIsSaid) {
  GrpcClient client(port_);
  upstream_.server = nullptr;
  EXPECT_EQ(client.call(kGetJob, get_request("1"), "ann").status(), kCodeUnavailable);
}

// ---- floods

class ListenerGrpcFlood : public ListenerGrpc {
 protected:
  // Until the server ends the connection; returns what it says.
  static std::uint32_t goodbye_of(GrpcClient& client) {
    client.read_until([] { return false; });
    return client.goodbye().value_or(NGHTTP2_NO_ERROR);
  }
  // Sends the frames until the server takes no more.
  static void flood(GrpcClient& client, std::string_view frame) {
    std::string many;
    for (int i = 0; i < 500; ++i) many += frame;
    for (int i = 0; i < 200 && client.transport().send(many); ++i) continue;
  }
  static std::string frame(std::uint8_t type, std::uint8_t flags, std::string_view payload,
                           std::uint8_t stream = 0) {
    const auto size = static_cast<char>(payload.size());
    std::string out = {0, 0, size, static_cast<char>(type),  static_cast<char>(flags),
                       0, 0, 0,    static_cast<char>(stream)};
    return out.append(payload);
  }
  void expect_still_serves() {
    GrpcClient other(port_);
    EXPECT_EQ(other.call(kGetJob, get_request("77"), "ann").status(), kCodeNotFound);
    EXPECT_TRUE(eventually([&] { return front_->connections() <= 2; }));
  }
};

TEST_F(ListenerGrpcFlood, ResetsEndTheConnectionSoon) {
  core_.add_job("ann", 5001);
  GrpcClient client(port_);
  v1::WatchJobRequest request;
  request.set_id("1");
  const std::string body = GrpcClient::framed(request.SerializeAsString());
  int begun = 0;
  while (begun < 10'000 && !client.goodbye()) {
    const auto id = client.begin(GrpcClient::head(kWatchJob, "ann"), body);
    nghttp2_submit_rst_stream(client.session(), 0, id, NGHTTP2_CANCEL);
    if (!client.flush()) break;
    ++begun;
    if (begun % 50 == 0) {  // lets the goodbye be seen
      const auto seen = client.begin(GrpcClient::head("/x", "ann"), "");
      client.finish(seen);
    }
  }
  EXPECT_LT(begun, 1'000);
  EXPECT_EQ(goodbye_of(client), NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_LT(upstream_.opened, 1'000);
  expect_still_serves();
}

TEST_F(ListenerGrpcFlood, PingsSettingsAndEmptyPiecesEndTheConnection) {
  const std::string ping = frame(6, 0, "12345678");
  const std::string settings = frame(4, 0, "");
  const std::string priority = frame(2, 0, std::string(5, '\0'), 1);
  const std::string window = frame(8, 0, std::string("\0\0\0\1", 4));
  for (const std::string& one : {ping, settings, priority, window}) {
    GrpcClient client(port_);
    client.call(kGetJob, get_request("1"), "ann");
    flood(client, one);
    client.read_until([] { return false; });
    EXPECT_TRUE(client.transport().is_closed()) << static_cast<int>(one[3]);
  }
  GrpcClient client(port_);
  const auto id = client.begin(GrpcClient::head(kGetJob, "ann"), "", false);
  flood(client, frame(0, 0, "", static_cast<std::uint8_t>(id)));
  client.read_until([] { return false; });
  EXPECT_TRUE(client.transport().is_closed());
  expect_still_serves();
}

TEST_F(ListenerGrpcFlood, BytesThatAreNoHttp2EndTheConnection) {
  for (const std::string& bytes :
       {std::string("GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n"), std::string(4'096, '\xff'),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string(100, '\xff')}) {
    TlsClient raw(port_, {.protocols = "\x02h2"});
    ASSERT_TRUE(raw.is_connected());
    ASSERT_TRUE(raw.send(bytes));
    EXPECT_TRUE(raw.is_closed_in_the_end());
  }
  TlsClient other(port_, {.protocols = "\x08http/1.1"});
  EXPECT_FALSE(other.is_connected()) << "this door speaks h2 alone";
  expect_still_serves();
}

TEST_F(ListenerGrpcFlood, AHeadThatNeverEndsIsNotKept) {
  GrpcClient client(port_);
  client.call(kGetJob, get_request("1"), "ann");
  // HEADERS without their end, and CONTINUATION for ever: each with a field that is not indexed.
  std::string field(1, '\0');
  field += std::string(
               "\x01"
               "a\x50",
               3) +
           std::string(80, 'b');
  ASSERT_TRUE(client.transport().send(frame(1, 1, field, 9)));
  flood(client, frame(9, 0, field, 9));
  client.read_until([] { return false; });
  EXPECT_TRUE(client.transport().is_closed());
  expect_still_serves();
}

class ListenerGrpcTimes : public ListenerGrpc {
 protected:
  void SetUp() override {
    // In this time those who speak must have begun; the others do not care.
    front_options_.times.first_request = std::chrono::seconds(3);
    // layers allow expires: it is to pass; what is to succeed does not wait for it
    front_options_.times.request = std::chrono::milliseconds(300);
    // layers allow expires: it is to pass; what is to succeed does not wait for it
    front_options_.times.idle = std::chrono::milliseconds(300);
    ListenerGrpc::SetUp();
  }
};

TEST_F(ListenerGrpcTimes, SlowClientsAreEnded) {
  GrpcClient silent(port_);
  TlsClient half(port_, {.protocols = "\x02h2"});
  half.send("PRI * HTTP/2.0\r\n");
  GrpcClient slow(port_);
  const auto id = slow.begin(GrpcClient::head(kGetJob, "ann"), std::string(3, '\0'), false);
  EXPECT_EQ(slow.finish(id).status(), kCodeDeadline);
  silent.read_until([] { return false; });
  EXPECT_EQ(silent.goodbye(), NGHTTP2_NO_ERROR);
  EXPECT_TRUE(half.is_closed_in_the_end());
  GrpcClient idle(port_);
  EXPECT_EQ(idle.call(kGetJob, get_request("1"), "ann").status(), kCodeNotFound);
  idle.read_until([] { return false; });
  EXPECT_EQ(idle.goodbye(), NGHTTP2_NO_ERROR);
}

}  // namespace
}  // namespace gpu_platform::listener
