#include "api/rest/answer_head.h"

#include <gtest/gtest.h>

namespace gpu_platform::api {
namespace {

TEST(AnswerHead, SaysHowTheBodyFollows) {
  Reply reply;
  reply.body = "{}";
  std::string out;
  append_head(out, reply, {.has_length = true});
  EXPECT_EQ(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n");
  out.clear();
  append_head(out, reply, {.is_chunked = true, .keeps_alive = false});
  EXPECT_EQ(out,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
            "Connection: close\r\n\r\n");
  out.clear();
  reply.status = 304;
  append_head(out, reply, {.has_length = true, .is_http_1_0 = true});
  EXPECT_EQ(out,
            "HTTP/1.1 304 Not Modified\r\nContent-Type: application/json\r\n"
            "Connection: keep-alive\r\n\r\n");
}

TEST(AnswerHead, AClientThatHasTheAnswerIsNotSentItAgain) {
  Reply first;
  first.body = "{}";
  tag_reply(first, "");
  EXPECT_EQ(first.status, 200);
  ASSERT_EQ(first.headers.size(), 1U);
  Reply second;
  second.body = "{}";
  tag_reply(second, first.headers.front().second);
  EXPECT_EQ(second.status, 304);
  EXPECT_TRUE(second.body.empty());
  EXPECT_EQ(second.headers, first.headers);
}

}  // namespace
}  // namespace gpu_platform::api
