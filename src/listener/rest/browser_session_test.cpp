#include "listener/rest/browser_session.h"

#include <gtest/gtest.h>

namespace gpu_platform::listener {
namespace {

Request from_browser(std::string method, std::string target = "/v1/jobs") {
  Request made;
  made.method = std::move(method);
  made.target = std::move(target);
  made.session = "gpt_1_x";
  made.authority = "gpu.example:8443";
  return made;
}

// 0: the session counts.
int outcome(Request request, const Policy& policy = {}) {
  const auto refusal = enter_session(request, policy);
  if (refusal) return refusal->status;
  EXPECT_EQ(request.bearer, "gpt_1_x");
  return 0;
}

TEST(BrowserSession, IsReadFromOneCookieOfThatName) {
  EXPECT_EQ(session_of("__Host-gpu-platform=gpt_1_x"), "gpt_1_x");
  EXPECT_EQ(session_of("a=b; __Host-gpu-platform=gpt_1_x; c=d"), "gpt_1_x");
  EXPECT_EQ(session_of("a=b;__Host-gpu-platform=gpt_1_x"), "gpt_1_x");
  for (const char* text : {"", "gpu-platform=x", "X__Host-gpu-platform=x", "__Host-gpu-platform",
                           "__Host-gpu-platform=a b", "__Host-gpu-platform=\"x\"",
                           "__Host-gpu-platform=x; __Host-gpu-platform=y", ";;=;"}) {
    EXPECT_EQ(session_of(text), "") << text;
  }
}

TEST(BrowserSession, CountsForPagesOfThisServer) {
  Request change = from_browser("POST");
  change.origin = "https://gpu.example:8443";
  EXPECT_EQ(outcome(change), 0);
  change.origin.clear();
  change.fetch_site = "same-origin";
  EXPECT_EQ(outcome(change), 0);
  Request page = from_browser("POST");
  page.origin = "https://console.example";
  EXPECT_EQ(outcome(page), 403);
  EXPECT_EQ(outcome(page, {{}, {"https://console.example"}}), 0);
}

TEST(BrowserSession, ChangesAndChannelsOfOtherSitesAreRefused) {
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    EXPECT_EQ(outcome(from_browser(method)), 403) << "says nothing of its page: " << method;
    for (const char* site : {"cross-site", "same-site", "none"}) {
      Request request = from_browser(method);
      request.fetch_site = site;
      EXPECT_EQ(outcome(request), 403) << method << ' ' << site;
    }
    Request request = from_browser(method);
    request.origin = "https://gpu.example";  // another port is another origin
    EXPECT_EQ(outcome(request), 403);
  }
  Request channel = from_browser("GET", "/v1/jobs/1/exec?command=sh");
  channel.wants_websocket = true;
  EXPECT_EQ(outcome(channel), 403);
  channel.origin = "https://evil.example";
  EXPECT_EQ(outcome(channel), 403);
  channel.origin = "https://gpu.example:8443";
  EXPECT_EQ(outcome(channel), 0);
}

TEST(BrowserSession, WhatTheBrowserSaysOfThePageCountsBeforeItsOrigin) {
  Request request = from_browser("POST");
  request.origin = "https://gpu.example:8443";
  request.fetch_site = "cross-site";
  EXPECT_EQ(outcome(request), 403);
  request.fetch_site = "same-origin";
  request.origin = "http://gpu.example:8443";
  EXPECT_EQ(outcome(request), 403);
  request.origin = "https://console.example";
  request.fetch_site = "cross-site";
  EXPECT_EQ(outcome(request, {{}, {"https://console.example"}}), 0);
}

TEST(BrowserSession, ReadsAreForOwnPagesAndWhatAPersonTypes) {
  EXPECT_EQ(outcome(from_browser("GET")), 0);
  for (const auto& [site, wanted] :
       {std::pair("none", 0), {"same-origin", 0}, {"same-site", 403}, {"cross-site", 403}}) {
    Request request = from_browser("GET");
    request.fetch_site = site;
    EXPECT_EQ(outcome(request), wanted) << site;
  }
}

TEST(BrowserSession, ATokenThatIsShownCountsFirst) {
  Request request = from_browser("POST");
  request.bearer = "gpt_2_y";
  EXPECT_FALSE(enter_session(request, {}).has_value());
  EXPECT_EQ(request.bearer, "gpt_2_y");
  request.session.clear();
  request.bearer.clear();
  EXPECT_FALSE(enter_session(request, {}).has_value());
  EXPECT_EQ(request.bearer, "");
}

TEST(BrowserSession, BeginsWithTheQuestionWhoItIsAndEndsHere) {
  Request begin = from_browser("POST", "/v1/session");
  begin.bearer = "gpt_1_x";
  begin.fields = {{"Content-Type", "application/json"}, {"Accept", "*/*"}};
  begin.body = "{}";
  ASSERT_TRUE(begin_session(begin));
  EXPECT_EQ(head_for_daemon(begin),
            "GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n");
  const auto fields = session_fields(begin);
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields[0].second,
            "__Host-gpu-platform=gpt_1_x; Path=/; Secure; HttpOnly; SameSite=Strict");
  begin.bearer = "a; Domain=evil.example";
  EXPECT_TRUE(session_fields(begin).empty());
  Request other = from_browser("GET", "/v1/session");
  EXPECT_FALSE(begin_session(other));
  EXPECT_FALSE(end_session(other).has_value());
  const auto ended = end_session(from_browser("DELETE", "/v1/session"));
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->status, 204);
  EXPECT_NE(ended->fields[0].second.find("Max-Age=0"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::listener
