#include "listener/rest/request_reader.h"

#include <gtest/gtest.h>

namespace gpu_platform::listener {
namespace {

std::string head(std::string_view line, std::string_view fields = {}) {
  return fmt::format("{}\r\nHost: gpu.example:8443\r\nAuthorization: Bearer gp_x\r\n{}\r\n", line,
                     fields);
}
const std::string kGet = head("GET /v1/jobs?limit=2 HTTP/1.1");

// The status of the refusal; 0: the request is read; -1: more is expected.
int read(std::string_view bytes) {
  RequestReader reader{RequestLimits()};
  reader.put(bytes);
  if (reader.refusal()) return reader.refusal()->status;
  return reader.is_done() ? 0 : -1;
}

Request request_of(const std::string& bytes) {
  RequestReader reader{RequestLimits()};
  EXPECT_EQ(reader.put(bytes), bytes.size());
  EXPECT_FALSE(reader.refusal().has_value()) << reader.refusal()->error.message;
  EXPECT_TRUE(reader.is_done());
  return reader.request();
}

TEST(RequestReader, ReadsARequest) {
  const Request request = request_of(kGet);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/v1/jobs?limit=2");
  EXPECT_EQ(request.bearer, "gp_x");
  EXPECT_TRUE(request.keeps_alive);
  EXPECT_FALSE(request.wants_websocket);
}

TEST(RequestReader, ReadsTheSameHoweverTheBytesCome) {
  const std::string chunked =
      head("POST /v1/jobs HTTP/1.1", "Transfer-Encoding: chunked\r\nContent-Type: a/b\r\n") +
      "3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
  const std::string sized = head("POST /v1/jobs HTTP/1.1", "Content-Length: 5\r\n") + "hello";
  for (const auto& [text, body] :
       {std::pair(chunked, "abc0123456789abcdef"), std::pair(sized, "hello")}) {
    EXPECT_EQ(request_of(text).body, body);
    for (std::size_t size : {1U, 2U, 3U, 7U}) {
      RequestReader reader{RequestLimits()};
      std::size_t at = 0;
      while (at < text.size() && !reader.is_done() && !reader.refusal()) {
        at += reader.put(std::string_view(text).substr(at, size));
      }
      ASSERT_TRUE(reader.is_done()) << size;
      EXPECT_EQ(reader.request().body, body);
      EXPECT_EQ(at, text.size());
    }
  }
}

TEST(RequestReader, LeavesTheNextRequestAlone) {
  for (const std::string& first :
       {kGet, head("POST /v1/jobs HTTP/1.1", "Content-Length: 2\r\n") + "{}",
        head("POST /v1/jobs HTTP/1.1", "Transfer-Encoding: chunked\r\n") +
            "2\r\n{}\r\n0\r\n\r\n"}) {
    RequestReader reader{RequestLimits()};
    EXPECT_EQ(reader.put(first + kGet), first.size());
    EXPECT_TRUE(reader.is_done());
  }
}

TEST(RequestReader, RefusesWhatTwoServersCouldReadInTwoManners) {
  const std::vector<std::string> shapes = {
      head("POST / HTTP/1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
      head("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
      head("POST / HTTP/1.1", "Content-Length: 5\r\nContent-Length: 6\r\n"),
      head("POST / HTTP/1.1", "Content-Length: 5\r\nContent-Length: 5\r\n"),
      head("POST / HTTP/1.1", "Content-Length: 5, 5\r\n"),
      head("POST / HTTP/1.1", "Content-Length: +5\r\n"),
      head("POST / HTTP/1.1", "Content-Length: 0x5\r\n"),
      head("POST / HTTP/1.1", "Content-Length: -1\r\n"),
      head("POST / HTTP/1.1", "Content-Length: 99999999999999999999\r\n"),
      head("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
      head("POST / HTTP/1.1", "Transfer-Encoding : chunked\r\n"),
      head("POST / HTTP/1.1", "Content-Length : 5\r\n"),
      head("GET / HTTP/1.1", "X-A: b\r\n c\r\n"),
      head("GET / HTTP/1.1", " X-A: b\r\n"),
      head("GET / HTTP/1.1", "X-A: b\nX-B: c\r\n"),
      head("GET / HTTP/1.1", "X-A: b\rX-B: c\r\n"),
      head("GET / HTTP/1.1", std::string("X-A: b\0c\r\n", 10)),
      head("GET / HTTP/1.1", "X-A: \x7f\r\n"),
      head("GET / HTTP/1.1", "no colon\r\n"),
      head("GET / HTTP/1.1", ": no name\r\n"),
      head("GET / HTTP/1.1", "X A: b\r\n"),
      head("GET / HTTP/1.1", "Host: other\r\n"),
      head("GET / HTTP/1.1", "Authorization: Bearer other\r\n"),
      head("GET  / HTTP/1.1"),
      head("GET / HTTP/1.1 "),
      head(" GET / HTTP/1.1"),
      head("\r\nGET / HTTP/1.1"),
      head("GET\t/ HTTP/1.1"),
      head("GET / HTTP/1,1"),
      head("GET / HTTP/11"),
      head("GET /"),
      "GET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost:\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  };
  for (const std::string& shape : shapes) EXPECT_EQ(read(shape), 400) << shape;
}

TEST(RequestReader, RefusesOddChunks) {
  const std::string begin = head("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n");
  for (const char* body :
       {"5;a=b\r\nhello\r\n0\r\n\r\n", "5;\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX-Late: 1\r\n\r\n", "fffffffffffffffff\r\n", "zz\r\n",
        "1000000000000000000000000000000000000000000000000000000000000000000000"}) {
    EXPECT_EQ(read(begin + body), 400) << body;
  }
  EXPECT_EQ(read(head("POST / HTTP/1.1", "Transfer-Encoding: gzip, chunked\r\n")), 501);
  EXPECT_EQ(read(head("POST / HTTP/1.1", "Transfer-Encoding: xchunked\r\n")), 501);
}

TEST(RequestReader, RefusesWhatIsTooLarge) {
  EXPECT_EQ(read("GET / HTTP/1.1\r\nX: " + std::string(17 * 1024, 'a')), 431);
  std::string fields;
  for (int i = 0; i < 101; ++i) fields += fmt::format("X-{}: 1\r\n", i);
  EXPECT_EQ(read(head("GET / HTTP/1.1", fields)), 431);
  EXPECT_EQ(read(head("POST / HTTP/1.1", "Content-Length: 1048577\r\n")), 413);
  EXPECT_EQ(read(head("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n") + "100001\r\n" +
                 std::string(0x100001, 'x')),
            413);
  EXPECT_EQ(read(head(fmt::format("GET /{} HTTP/1.1", std::string(9000, 'a')))), 400);
}

TEST(RequestReader, SpeaksOneVersion) {
  EXPECT_EQ(read(head("GET / HTTP/1.0")), 505);
  EXPECT_EQ(read("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400);
}

TEST(RequestReader, TakesTargetsInOneForm) {
  for (const char* target :
       {"http://gpu.example/v1/jobs", "//v1/jobs", "/v1//jobs", "/v1/./jobs", "/v1/../jobs", "/..",
        "/v1/%2e%2e/jobs", "/v1/%2E./jobs", "/v1%2fjobs", "/v1%5cjobs", "/v1\\jobs", "/v1/%00",
        "/v1/%0d%0aX", "/v1/%252e", "/v1#jobs", "*", "v1/jobs", "gpu.example:443"}) {
    EXPECT_EQ(read(head(fmt::format("GET {} HTTP/1.1", target))), 400) << target;
  }
  for (const char* target : {"/", "/v1/jobs", "/v1/jobs/7/", "/v1/a%20b", "/v1/a.b", "/v1/..a",
                             "/v1/jobs?path=../x//y"}) {
    EXPECT_EQ(read(head(fmt::format("GET {} HTTP/1.1", target))), 0) << target;
  }
}

TEST(RequestReader, RefusesACredentialInTheUrl) {
  for (const char* query : {"access_token=x", "limit=1&token=x", "Token=x", "api_key=x", "token"}) {
    RequestReader reader{RequestLimits()};
    reader.put(head(fmt::format("GET /v1/jobs?{} HTTP/1.1", query)));
    ASSERT_TRUE(reader.refusal().has_value()) << query;
    EXPECT_NE(reader.refusal()->error.message.find("Authorization: Bearer"), std::string::npos);
  }
  EXPECT_EQ(read(head("GET /v1/jobs?page_token=x HTTP/1.1")), 0);
}

TEST(RequestReader, TakesBearerAlone) {
  for (const char* value : {"Basic dXNlcjpwYXNz", "Bearer", "Bearer ", "gp_x", "Bearer a b"}) {
    EXPECT_EQ(read(fmt::format("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {}\r\n\r\n", value)),
              401)
        << value;
  }
  EXPECT_EQ(request_of("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: bearer gp_y\r\n\r\n").bearer,
            "gp_y");
}

TEST(RequestReader, ARequestIsWrittenAnewForTheDaemon) {
  const Request request = request_of(
      head("POST /v1/jobs HTTP/1.1",
           "Content-Type: application/json\r\nCookie: a=b\r\nX-Forwarded-For: 10.0.0.1\r\n"
           "Connection: keep-alive, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\n"
           "Upgrade: h2c\r\nTransfer-Encoding: chunked\r\n") +
      "2\r\n{}\r\n0\r\n\r\n");
  EXPECT_EQ(head_for_daemon(request),
            "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 2\r\n\r\n");
}

TEST(RequestReader, TheOnlyUpgradeIsToAWebSocket) {
  const std::string upgrade =
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: "
      "x\r\nSec-WebSocket-Version: 13\r\n";
  const Request request = request_of(head("GET /v1/jobs/1/exec HTTP/1.1", upgrade));
  EXPECT_TRUE(request.wants_websocket);
  EXPECT_EQ(head_for_daemon(request),
            "GET /v1/jobs/1/exec HTTP/1.1\r\nHost: localhost\r\nSec-WebSocket-Key: x\r\n"
            "Sec-WebSocket-Version: 13\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_EQ(read(head("POST / HTTP/1.1", upgrade)), 400);
  EXPECT_EQ(read(head("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: h2c\r\n")), 400);
}

}  // namespace
}  // namespace gpu_platform::listener
