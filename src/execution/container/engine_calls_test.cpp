#include "execution/container/engine_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/eventfd.h>

#include "execution/container/answer_fields.h"
#include "execution/container/engine_open.h"
#include "execution/container/fake_engine_test.h"
#include "os/descriptor.h"

namespace gpu_platform::execution {
namespace {

using ::testing::HasSubstr;

std::string kind_of(const Answered<>& answered) {
  return answered ? answered->dump() : answered.error().message;
}

// An engine, and what calls it.
struct CalledEngine {
  explicit CalledEngine(FakeEngine::Answer answer) : engine(std::move(answer)) {}
  FakeEngine engine;
  bool gives_up = true;
  os::Descriptor interrupt{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  EngineCalls calls{engine.socket(), interrupt.get(), [this] { return gives_up; }};
};

TEST(EngineCalls, TheVersionThatBothSpeakIsInEveryPath) {
  CalledEngine it(usual_answer);
  ASSERT_TRUE(it.calls.open());
  EXPECT_TRUE(it.calls.get("/info"));
  EXPECT_EQ(it.engine.requests().back().target, "/v1.41/info");
}

std::string pong(const std::string& headers) {
  return "HTTP/1.1 200 OK\r\n" + headers + "Content-Length: 2\r\n\r\nOK";
}

TEST(EngineCalls, APingThatSaysTheVersionIsEnough) {
  CalledEngine it([](const EngineRequest& request) {
    if (!request.is("GET /_ping")) return usual_answer(request);
    return pong("Api-Version: 1.43\r\nLibpod-Api-Version: 5.0.0\r\n");
  });
  ASSERT_TRUE(it.calls.open());
  EXPECT_EQ(it.engine.requests().size(), 1U);
  EXPECT_EQ(it.calls.api_minor(), 43);
  EXPECT_TRUE(it.calls.is_podman());
}

TEST(EngineCalls, AnEngineWhosePingIsNotEnoughIsAskedForItsVersion) {
  for (const char* const version : {"1.90", "1.30", "", "x"}) {
    CalledEngine it([&](const EngineRequest& request) {
      if (!request.is("GET /_ping")) return usual_answer(request);
      return pong(fmt::format("Api-Version: {}\r\n", version));
    });
    ASSERT_TRUE(it.calls.open()) << version;
    EXPECT_EQ(it.calls.api_minor(), 41) << version;
    EXPECT_FALSE(it.calls.is_podman());
  }
}

TEST(EngineCalls, AnEngineOfAnotherVersionIsRefusedAtOnce) {
  for (const char* const version : {R"({"ApiVersion":"1.30","MinAPIVersion":"1.12"})",
                                    R"({"ApiVersion":"1.90","MinAPIVersion":"1.60"})",
                                    R"({"ApiVersion":41})", "[]", "{}", "\"1.41\"", "<html>"}) {
    CalledEngine it([&](const EngineRequest&) { return http_answer(200, version); });
    const auto opened = it.calls.open();
    ASSERT_FALSE(opened) << version;
    EXPECT_FALSE(opened.error().is_away) << version;
  }
}

TEST(EngineCalls, AnswersThatAreNoneAreFailuresAndMayPass) {
  for (const char* const answer :
       {"", "HTTP/1.1", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"A",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    CalledEngine it([&](const EngineRequest&) { return std::string(answer); });
    const auto got = it.calls.get("/info");
    ASSERT_FALSE(got) << answer;
    EXPECT_TRUE(got.error().is_away) << answer << kind_of(got);
  }
}

TEST(EngineCalls, JsonThatIsCutOffIsNoJsonAndHasNoFields) {
  CalledEngine it([](const EngineRequest&) { return http_answer(200, R"({"Id":"ab)"); });
  const auto got = it.calls.get("/info");
  ASSERT_TRUE(got);
  EXPECT_EQ(text_field(*got, "Id"), "");
}

TEST(EngineCalls, FieldsOfAnotherKindAreEmpty) {
  const auto json = nlohmann::json::parse(R"({"Id":7,"Pid":"x","Running":1,"State":[]})");
  EXPECT_EQ(text_field(json, "Id"), "");
  EXPECT_EQ(number_field(json, "Pid", 3), 3);
  EXPECT_FALSE(flag_field(json, "Running"));
  EXPECT_FALSE(flag_field(field(json, "State"), "Running"));
}

TEST(EngineCalls, TheWordsOfAFailureAreTheEnginesAndShort) {
  CalledEngine it([](const EngineRequest& request) {
    if (request.is("GET /a")) return http_answer(500, R"({"cause":"x","message":"no room"})");
    return http_answer(500, std::string(1'000'000, 'x'));
  });
  EXPECT_EQ(it.calls.get("/a").error().message, "no room");
  EXPECT_EQ(it.calls.get("/a").error().status, 500);
  EXPECT_LE(it.calls.get("/b").error().message.size(), 300U);
}

TEST(EngineCalls, AnAnswerMayBeLongButNotEndless) {
  CalledEngine it([](const EngineRequest& request) {
    const std::size_t size = request.is("GET /long") ? 1'000'000 : kMaxAnswer + 1;
    return http_answer(200, "\"" + std::string(size, 'x') + "\"");
  });
  EXPECT_TRUE(it.calls.get("/long"));
  const auto endless = it.calls.get("/endless");
  ASSERT_FALSE(endless);
  EXPECT_THAT(endless.error().message, HasSubstr("too long"));
}

TEST(EngineCalls, ASignalEndsTheWaitForAnEngineThatHangs) {
  CalledEngine it([](const EngineRequest&) { return FakeEngine::kHang; });
  eventfd_write(it.interrupt.get(), 1);
  const auto got = it.calls.post_slow("/wait");
  ASSERT_FALSE(got);
  EXPECT_FALSE(got.error().is_away);
}

TEST(EngineCalls, AWaitWithoutAnEndIsOverWhenItIsHopeless) {
  CalledEngine it([](const EngineRequest&) { return FakeEngine::kHang; });
  int looks = 0;
  it.calls.set_hopeless([&] { return ++looks == 1; });
  const auto got = it.calls.post_slow("/wait");
  ASSERT_FALSE(got);
  EXPECT_TRUE(got.error().is_away);
  EXPECT_EQ(looks, 1);
}

// Takes what is told, and never gives up.
LongStep telling(std::vector<std::string>& told) {
  return {[&](const std::string& what) { told.push_back(what); },
          [](base::Duration) { return true; }};
}

TEST(EngineOpen, AnEngineThatIsAwayIsAskedAgain) {
  std::atomic<int> asked = 0;
  CalledEngine it([&](const EngineRequest& request) {
    const int count = ++asked;
    if (count == 1) return std::string();
    return count == 2 ? http_answer(503, "starting") : usual_answer(request);
  });
  std::vector<std::string> told;
  EXPECT_TRUE(open_engine(it.calls, it.engine.socket(), telling(told)));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_THAT(told[0], HasSubstr("waiting for the container engine at " + it.engine.socket()));
  EXPECT_THAT(told[1], HasSubstr("starting"));
}

TEST(EngineOpen, ItIsGivenUpInTheEndAndAtOnceForASignal) {
  EngineCalls no_engine("/nonexistent/engine.sock", -1, [] { return false; });
  std::vector<std::string> told;
  const auto opened = open_engine(no_engine, "/s", telling(told), base::Duration());
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().why, HasSubstr("the container engine at /s: nothing answers"));
  LongStep impatient = telling(told);
  impatient.wait = [](base::Duration) { return false; };
  EXPECT_FALSE(open_engine(no_engine, "/s", impatient));
}

}  // namespace
}  // namespace gpu_platform::execution
