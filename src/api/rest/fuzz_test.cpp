#include "api/rest/server_fixture_test.h"
#include "base/prng.h"

// Damaged conversations: the server always answers or closes, and goes on serving others.

namespace gpu_platform::api {
namespace {

using FuzzTest = ServerTest;

std::string damaged(std::string text, base::Prng& random) {
  for (std::uint64_t i = 0, n = 1 + random.below(6); i < n && !text.empty(); ++i) {
    const std::size_t at = random.below(text.size());
    switch (random.below(5)) {
      case 0:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text.erase(at, random.below(40));
        break;
      case 2:
        text.insert(at, std::string(random.below(300), static_cast<char>(random.below(256))));
        break;
      case 3:
        text.insert(at, text.substr(random.below(text.size()), random.below(60)));
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

TEST_F(FuzzTest, NoBytesBringTheServerDown) {
  // It holds for the requests that must be answered, too; the wait at the end is as long once.
  options_.limits.request_time = std::chrono::seconds(2);
  core_.add_job(user_, uid_);
  start();
  const std::string talks[] = {
      request_text("POST", "/v1/jobs",
                   R"({"command":["sh","-c","x"],"gpus":1,"labels":{"a":"b"}})"),
      request_text("GET", "/v1/jobs?all=true&state=RUNNING&label=a%3Db&limit=5"),
      request_text("GET", "/v1/jobs/1") + request_text("GET", "/v1/status"),
      request_text("GET", "/v1/jobs/1/output?follow=true&offset=3", {}, "Last-Event-ID: 7\r\n"),
      "POST /v1/jobs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n0\r\n\r\n",
  };
  constexpr std::uint64_t kSeed = 20'260'701;
  base::Prng random(kSeed);
  for (int round = 0; round < 1'500; ++round) {
    RawClient client(options_.socket_path);
    ASSERT_TRUE(client.is_connected());
    std::string bytes;
    if (random.below(10) == 0) {
      for (std::uint64_t i = 0, n = random.below(2'000); i < n; ++i) {
        bytes.push_back(static_cast<char>(random.below(256)));
      }
    } else {
      bytes = damaged(talks[random.below(std::size(talks))], random);
    }
    // The server may close before it has read all.
    (void)client.send(bytes);
    if (round % 100 == 0) {
      ASSERT_EQ(ask("GET", "/v1/health").status, 200) << "seed " << kSeed << " round " << round;
    }
  }
  EXPECT_TRUE(all_connections_gone());
}

}  // namespace
}  // namespace gpu_platform::api
