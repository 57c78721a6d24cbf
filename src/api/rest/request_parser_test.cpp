#include "api/rest/request_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace gpu_platform::api {
namespace {

void add(RequestParser& parser, std::string_view text) {
  parser.add(text.data(), text.size());
}

TEST(RequestParser, BytesBehindARequestWaitForTheNext) {
  const SessionLimits limits;
  RequestParser parser(limits);
  EXPECT_FALSE(parser.has_begun());
  add(parser, "GET /v1/jobs HTTP/1.1\r\nHost: a\r\n\r\nGET /v1/no");
  EXPECT_FALSE(parser.parse());
  ASSERT_TRUE(parser.is_done());
  EXPECT_EQ(std::string(parser.message().target()), "/v1/jobs");
  EXPECT_TRUE(parser.has_rest());
  parser.begin();
  EXPECT_TRUE(parser.has_begun());
  EXPECT_FALSE(parser.has_parsed_some());
  add(parser, "des HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_FALSE(parser.parse());
  ASSERT_TRUE(parser.is_done());
  EXPECT_EQ(std::string(parser.message().target()), "/v1/nodes");
  EXPECT_FALSE(parser.has_rest());
}

TEST(RequestParser, ARequestThatBreaksALimitIsRefusedWithItsStatus) {
  SessionLimits limits;
  limits.header_fields = 1;
  limits.body_bytes = 4;
  RequestParser parser(limits);
  add(parser, "GET / HTTP/1.1\r\nHost: a\r\nAccept: b\r\n\r\n");
  const auto fields = parser.parse();
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->status, 431);
  EXPECT_EQ(fields->error.message, "the header has 2 fields; the limit is 1");
  parser.begin();
  add(parser, "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n");
  const auto body = parser.parse();
  ASSERT_TRUE(body);
  EXPECT_EQ(body->status, 413);
  parser.drop_rest();
  parser.begin();
  add(parser, "no request\r\n\r\n");
  const auto text = parser.parse();
  ASSERT_TRUE(text);
  EXPECT_EQ(text->status, 400);
}

TEST(RequestParser, AClientThatAsksBeforeItsBodyIsToldOnce) {
  const SessionLimits limits;
  RequestParser parser(limits);
  add(parser, "POST / HTTP/1.1\r\nExpect: 100-continue\r\n");
  EXPECT_FALSE(parser.parse());
  EXPECT_FALSE(parser.takes_expectation()) << "its head is not there yet";
  add(parser, "Content-Length: 4\r\n\r\n");
  EXPECT_FALSE(parser.parse());
  EXPECT_TRUE(parser.takes_expectation());
  EXPECT_FALSE(parser.takes_expectation());
  add(parser, "work");
  EXPECT_FALSE(parser.parse());
  EXPECT_TRUE(parser.is_done());
  EXPECT_EQ(parser.bytes(), 4U);
  parser.drop_body();
  EXPECT_EQ(parser.bytes(), 0U);
}

}  // namespace
}  // namespace gpu_platform::api
