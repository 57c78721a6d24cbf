#include "listener/rest/policy.h"

#include <gtest/gtest.h>

#include "listener/connection_table.h"

namespace gpu_platform::listener {
namespace {

Request request(std::string method, std::string target) {
  Request made;
  made.method = std::move(method);
  made.target = std::move(target);
  made.bearer = "gp_x";
  return made;
}

int status(const Request& of, const Policy& policy = {}, const std::string& host = "a.example") {
  const auto refusal = judge(of, host, policy);
  return refusal ? refusal->status : 0;
}

TEST(Policy, ACredentialIsRequiredOfAllCallsButOne) {
  EXPECT_EQ(status(request("GET", "/v1/jobs")), 0);
  for (const char* target :
       {"/v1/jobs", "/v1/ready", "/v1/version", "/metrics", "/", "/v1/health2"}) {
    Request of = request("GET", target);
    of.bearer.clear();
    EXPECT_EQ(status(of), 401) << target;
    EXPECT_FALSE(own_answer(of).has_value()) << target;
  }
  Request health = request("GET", "/v1/health?x=1");
  health.bearer.clear();
  EXPECT_EQ(status(health), 0);
  EXPECT_EQ(own_answer(health)->status, 200);
  health.method = "POST";
  EXPECT_EQ(status(health), 401);
}

TEST(Policy, ARequestNamesThisServer) {
  const Policy policy{{"gpu.example"}, {}};
  EXPECT_EQ(status(request("GET", "/v1/jobs"), policy, "gpu.example"), 0);
  EXPECT_EQ(status(request("GET", "/v1/jobs"), policy, "evil.example"), 421);
}

TEST(Policy, WebPagesOfOtherSitesMayNotCall) {
  const Policy policy{{}, {"https://console.example"}};
  Request of = request("GET", "/v1/jobs");
  of.origin = "https://evil.example";
  EXPECT_EQ(status(of), 403);
  EXPECT_EQ(status(of, policy), 403);
  of.origin = "https://console.example";
  EXPECT_EQ(status(of, policy), 0);
  EXPECT_EQ(fields_for(of)[1].second, "https://console.example");
  of.origin = "null";
  EXPECT_EQ(status(of, policy), 403);
}

TEST(Policy, APageOfThisServerHasTheSchemeOfTheConnection) {
  Request of = request("GET", "/v1/jobs");
  of.authority = "gpu.example:8443";
  const auto with = [&](const std::string& origin, bool is_over_tls) {
    of.origin = origin;
    of.is_over_tls = is_over_tls;
    return status(of);
  };
  EXPECT_EQ(with("https://gpu.example:8443", true), 0);
  EXPECT_EQ(with("http://gpu.example:8443", true), 403)
      << "an attacker on the way may have written that page";
  EXPECT_EQ(with("http://gpu.example:8443", false), 0);
  EXPECT_EQ(with("https://gpu.example:8443", false), 403);
  for (const char* other : {"https://", "https://gpu.example", "https://gpu.example:84430",
                            "HTTPS://gpu.example:8443", "https://gpu.example:8443/", "null"}) {
    EXPECT_EQ(with(other, true), 403) << other;
  }
}

TEST(Policy, ACertificateDoesNotCountForPagesOfOtherSites) {
  const Policy policy{{}, {"https://console.example"}};
  Request of = request("GET", "/v1/jobs/1/exec");
  of.bearer.clear();
  of.authority = "gpu.example:8443";
  const auto with = [&](const std::string& site, const std::string& origin = {}) {
    of.fetch_site = site;
    of.origin = origin;
    const auto refusal = judge(of, "gpu.example", policy, true);
    return refusal ? refusal->status : 0;
  };
  for (const char* method : {"GET", "POST", "DELETE"}) {
    of.method = method;
    for (const char* site : {"", "none", "same-origin"}) EXPECT_EQ(with(site), 0) << site;
    for (const char* site : {"cross-site", "same-site", "Cross-Site", "?"}) {
      EXPECT_EQ(with(site), 403) << site;
      EXPECT_EQ(with(site, "https://gpu.example:8443"), 403) << site;
      EXPECT_EQ(with(site, "https://console.example"), 0) << "the site allows this page";
    }
  }
  EXPECT_EQ(with("same-origin", "https://gpu.example:8443"), 0);
  of.bearer = "gp_x";
  EXPECT_EQ(with("cross-site"), 0) << "a page that has a token was given it";
}

TEST(Policy, AnAllowedPageIsToldSoWithoutACredential) {
  const Policy policy{{}, {"https://console.example"}};
  Request of = request("OPTIONS", "/v1/jobs");
  of.bearer.clear();
  of.origin = "https://console.example";
  of.asks_for_method = true;
  EXPECT_EQ(status(of, policy), 0);
  EXPECT_EQ(own_answer(of)->status, 204);
  EXPECT_EQ(status(of), 403);
  of.origin.clear();
  EXPECT_EQ(status(of, policy), 401);
}

TEST(Policy, HeadAndOptionsNeedACredentialAsGetDoes) {
  for (const char* method : {"HEAD", "OPTIONS"}) {
    Request of = request(method, "/v1/jobs");
    EXPECT_EQ(status(of), 0) << method;
    of.bearer.clear();
    EXPECT_EQ(status(of), 401) << method;
  }
  Request health = request("HEAD", "/v1/health");
  health.bearer.clear();
  EXPECT_EQ(status(health), 0);
  EXPECT_EQ(own_answer(health)->status, 200);
}

TEST(Policy, OtherMethodsAreRefused) {
  for (const char* method : {"CONNECT", "TRACE", "head", "get", "PROPFIND"}) {
    EXPECT_EQ(status(request(method, "/v1/jobs")), 405) << method;
  }
}

TEST(ConnectionTable, OneAddressLeavesRoomForOthers) {
  ConnectionTable connection_table(
      {.connections = 5, .connections_per_address = 2, .body_bytes = 100});
  EXPECT_TRUE(connection_table.enter("a"));
  EXPECT_TRUE(connection_table.enter("a"));
  EXPECT_FALSE(connection_table.enter("a"));
  EXPECT_TRUE(connection_table.enter("b"));
  EXPECT_TRUE(connection_table.take_bytes("a", 25));
  EXPECT_FALSE(connection_table.take_bytes("a", 1));
  EXPECT_TRUE(connection_table.take_bytes("b", 25));
  connection_table.give_bytes("a", 25);
  connection_table.leave("a");
  EXPECT_TRUE(connection_table.enter("a"));
  EXPECT_TRUE(connection_table.enter("c"));
  EXPECT_TRUE(connection_table.enter("c"));
  EXPECT_FALSE(connection_table.enter("d")) << "the limit of all";
}

}  // namespace
}  // namespace gpu_platform::listener
