#include "execution/container/image_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

#include "execution/container/fake_engine_test.h"

namespace gpu_platform::execution {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kDownloading =
    R"({"status":"Downloading","id":"a","progressDetail":{"current":43008,"total":102400}})"
    "\n";

// Fetches an image from an engine that has none.
struct Fetched {
  explicit Fetched(FakeEngine::Answer answer, ImageOrder order = {.image = "registry.org/a:1"})
      : engine([answer](const EngineRequest& request) {
          return request.is("POST /images/create") ? answer(request) : usual_answer(request);
        }) {
    EngineCalls calls(engine.socket(), -1, [] { return true; });
    const auto done =
        fetch_image(calls, order,
                    {[this](const std::string& what) { told.push_back(what); },
                     [this](base::Duration time) { return waits.push_back(time), true; }});
    if (!done) why = done.error().why;
  }
  std::size_t pulls() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        engine.requests(), [](const auto& request) { return request.is("POST /images/create"); }));
  }

  std::vector<std::string> told;
  std::vector<base::Duration> waits;
  FakeEngine engine;
  std::string why = {};
};

TEST(ImageFetch, ANameAloneIsItsLatestTag) {
  EXPECT_EQ(pull_query("busybox"), "fromImage=busybox&tag=latest");
  EXPECT_EQ(pull_query("registry:5000/a"), "fromImage=registry%3A5000%2Fa&tag=latest");
  EXPECT_EQ(pull_query("registry:5000/a:1"), "fromImage=registry%3A5000%2Fa%3A1");
  EXPECT_EQ(pull_query("a@sha256:00"), "fromImage=a%40sha256%3A00");
}

TEST(ImageFetch, ProgressIsTold) {
  const Fetched it([](const EngineRequest&) {
    return http_answer(200,
                       std::string(kDownloading) + R"({"status":"Download complete","id":"a"})");
  });
  EXPECT_THAT(it.why, IsEmpty());
  EXPECT_THAT(it.told, Contains("pulling the image, 42 %"));
}

TEST(ImageFetch, ProgressTellsTheSizeOfALargeImage) {
  const Fetched it([](const EngineRequest&) {
    return http_answer(
        200,
        R"({"status":"Downloading","id":"a","progressDetail":{"current":536870912,"total":1610612736}})"
        "\n"
        R"({"status":"Download complete","id":"a"})");
  });
  EXPECT_THAT(it.told, Contains("pulling the image, 33 % of 1.5 GiB"));
}

TEST(ImageFetch, ProgressOfSeveralLayersInPiecesNeverGoesBack) {
  PullProgress progress;
  EXPECT_EQ(progress.percent(), -1);
  const std::string line(kDownloading);
  EXPECT_TRUE(progress.take(line.substr(0, 20)));
  EXPECT_TRUE(progress.take(line.substr(20)));
  EXPECT_EQ(progress.percent(), 42);
  EXPECT_TRUE(progress.take(
      R"({"status":"Downloading","id":"b","progressDetail":{"current":0,"total":102400}})"
      "\n{\"status\":\"Pull complete\",\"id\":\"a\"}\n"));
  EXPECT_EQ(progress.percent(), 50);
  EXPECT_TRUE(progress.take(
      R"({"status":"Downloading","id":"c","progressDetail":{"current":-7,"total":"x"}})"
      "\ngarbage\n[1]\n"));
  EXPECT_EQ(progress.percent(), 50);
  EXPECT_FALSE(progress.take(std::string(2'000'000, 'x')));
}

TEST(ImageFetch, WhatMayPassIsTriedAgainAndWhatStaysIsNot) {
  const Fetched busy([](const EngineRequest&) {
    return http_answer(200, R"({"error":"toomanyrequests: slow down"})");
  });
  EXPECT_EQ(busy.pulls(), 4U);
  EXPECT_THAT(busy.waits, ElementsAre(base::seconds(1), base::seconds(2), base::seconds(4)));
  EXPECT_THAT(busy.why, HasSubstr("fetching image registry.org/a:1: toomanyrequests: slow down"));
  for (const char* const words :
       {"manifest unknown", "denied: not yours", "unauthorized",
        R"(Head "http://registry.org:5503/v2/a/manifests/1": no basic auth credentials)",
        "no basic auth credentials; 503",
        "tag 1.503 of sha256:a502 on registry.org:504/a is odd"}) {
    const Fetched denied([&](const EngineRequest&) {
      return http_answer(200, nlohmann::json({{"error", words}}).dump());
    });
    EXPECT_EQ(denied.pulls(), 1U) << words;
    EXPECT_THAT(denied.why, HasSubstr(words));
  }
  for (const char* const words : {"status code 503", "StatusCode: 502, busy", "(504)", "429"}) {
    EXPECT_TRUE(may_pass(words)) << words;
  }
}

TEST(ImageFetch, AFetchThatBreaksOffIsTriedAgain) {
  std::atomic<int> pulls = 0;
  const Fetched it([&](const EngineRequest&) {
    return ++pulls == 1 ? std::string("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}")
                        : http_answer(200, "{}");
  });
  EXPECT_THAT(it.why, IsEmpty());
  EXPECT_EQ(pulls, 2);
}

TEST(ImageFetch, FailuresOfTheEngineItselfHaveItsWords) {
  const Fetched it(
      [](const EngineRequest&) { return http_answer(500, R"({"message":"manifest unknown"})"); });
  EXPECT_EQ(it.pulls(), 1U);
  EXPECT_THAT(it.why, HasSubstr("manifest unknown"));
}

// With the password "opensesame".
RegistryCredentials secret_credentials() {
  return find_credentials(R"({"auths": {"registry.org": {"auth": "YW5uOm9wZW5zZXNhbWU="}}})",
                          "registry.org/a:1", "x");
}

TEST(ImageFetch, CredentialsAreAHeaderAndNothingElse) {
  for (const char* const words : {"denied: opensesame", "503: YW5uOm9wZW5zZXNhbWU="}) {
    const Fetched it(
        [&](const EngineRequest&) {
          return http_answer(200, std::string(R"({"error":")") + words + "\"}");
        },
        {.image = "registry.org/a:1", .credentials = secret_credentials});
    const std::string header = secret_credentials().header;
    const EngineRequest request = it.engine.requests().back();
    EXPECT_THAT(request.head, HasSubstr("\r\nX-Registry-Auth: " + header));
    std::vector<std::string> said = it.told;
    said.push_back(request.target);
    said.push_back(it.why);
    EXPECT_THAT(it.why, HasSubstr("***"));
    for (const std::string& secret : {header, std::string("opensesame"), std::string("YW5uOm9")}) {
      EXPECT_THAT(said, Not(Contains(HasSubstr(secret))));
    }
  }
}

TEST(ImageFetch, ADeniedFetchSaysWhyThereAreNoCredentials) {
  const auto credentials = [] {
    return find_credentials(R"({"credsStore": "pass"})", "registry.org/a:1", "~/x.json");
  };
  const auto why = [&](const std::string& words) {
    const Fetched it(
        [&](const EngineRequest&) { return http_answer(500, "{\"message\":\"" + words + "\"}"); },
        {.image = "registry.org/a:1", .credentials = credentials});
    return it.why;
  };
  EXPECT_THAT(why("unauthorized"), HasSubstr("unauthorized; ~/x.json leaves the credentials"));
  EXPECT_THAT(why("no basic auth credentials"), HasSubstr("; ~/x.json leaves the credentials"));
  EXPECT_THAT(why("manifest unknown"), Not(HasSubstr("~/x.json")));
}

TEST(ImageFetch, TheWantedPlatformIsAskedFor) {
  EXPECT_EQ(pull_query("a:1", "linux/arm64/v8"), "fromImage=a%3A1&platform=linux%2Farm64%2Fv8");
}

// An engine with an image for arm64, until it fetches another.
struct OfAnotherPlatform {
  explicit OfAnotherPlatform(std::string fetched) : after(std::move(fetched)) {}
  ContainerDone<ImageOnHost> fetch(model::ImagePull pull, const std::string& platform) {
    EngineCalls calls(engine.socket(), -1, [] { return true; });
    return fetch_image(calls, {.image = "a:1", .pull = pull, .platform = platform},
                       {[](const std::string&) {}, [](base::Duration) { return true; }});
  }
  std::size_t pulls() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        engine.requests(), [](const auto& request) { return request.is("POST /images/create"); }));
  }

  std::string after;
  std::atomic<bool> is_fetched = false;
  FakeEngine engine{[this](const EngineRequest& request) {
    if (request.is("POST /images/create")) is_fetched = true;
    if (!request.is("GET /images/a:1/json")) return http_answer(200, "{}");
    return http_answer(200, R"({"Id":"1","Os":"linux","Architecture":")" +
                                (is_fetched ? after : std::string("arm64")) + "\"}");
  }};
};

TEST(ImageFetch, AnImageOfAnotherPlatformIsFetchedAgainOrRefused) {
  OfAnotherPlatform right("amd64");
  const auto unasked = right.fetch(model::ImagePull::kMissing, "");
  ASSERT_TRUE(unasked);
  EXPECT_EQ(unasked->platform, "linux/arm64");
  EXPECT_EQ(right.pulls(), 0U);
  const auto never = right.fetch(model::ImagePull::kNever, "linux/amd64");
  ASSERT_FALSE(never);
  EXPECT_THAT(never.error().why, HasSubstr("is here for linux/arm64 and not for linux/amd64"));
  const auto fetched = right.fetch(model::ImagePull::kMissing, "linux/amd64");
  ASSERT_TRUE(fetched);
  EXPECT_EQ(fetched->platform, "linux/amd64");
  EXPECT_EQ(right.pulls(), 1U);
  OfAnotherPlatform wrong("s390x");
  const auto refused = wrong.fetch(model::ImagePull::kMissing, "linux/amd64");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().why,
              HasSubstr("is for linux/s390x, and --platform asks for linux/amd64"));
}

TEST(ImageFetch, NeverIsNever) {
  const Fetched it([](const EngineRequest&) { return http_answer(200, "{}"); },
                   {.image = "a", .pull = model::ImagePull::kNever});
  EXPECT_EQ(it.pulls(), 0U);
  EXPECT_THAT(it.why, HasSubstr("--pull never"));
}

}  // namespace
}  // namespace gpu_platform::execution
