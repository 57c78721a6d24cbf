#include "listener/rest/answer_reader.h"

#include <gtest/gtest.h>

namespace gpu_platform::listener {
namespace {

const AnswerReader::Fields kAdded = {{"X-Added", "1"}};

// What the client gets of an answer that comes in pieces of this size.
std::string pass(std::string_view bytes, std::size_t size, bool& is_done) {
  AnswerReader reader(kAdded, {});
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    EXPECT_TRUE(reader.put(bytes.substr(at, size), out)) << at;
  }
  is_done = reader.is_done();
  return out;
}

TEST(AnswerReader, PassesAnAnswerOnAndFindsItsEnd) {
  const std::string sized = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n";
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";
  const std::string chunks = "00000003\r\nabc\r\n0\r\n\r\n";
  for (std::size_t size : {1U, 2U, 5U, 1000U}) {
    bool is_done = false;
    EXPECT_EQ(pass(sized + "\r\nhello", size, is_done), sized + "X-Added: 1\r\n\r\nhello");
    EXPECT_TRUE(is_done);
    EXPECT_EQ(pass(chunked + "\r\n" + chunks, size, is_done),
              chunked + "X-Added: 1\r\n\r\n" + chunks);
    EXPECT_TRUE(is_done);
    pass(sized + "\r\nhell", size, is_done);
    EXPECT_FALSE(is_done);
    pass(chunked + "\r\n00000003\r\nabc\r\n", size, is_done);
    EXPECT_FALSE(is_done);
  }
}

TEST(AnswerReader, AnAnswerWithoutABodyEndsWithItsHead) {
  bool is_done = false;
  pass("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n", 1000, is_done);
  EXPECT_TRUE(is_done);
}

TEST(AnswerReader, AnAnswerToHeadEndsWithItsHeadWhateverLengthItNames) {
  std::string out;
  AnswerReader reader({}, {.has_head_alone = true});
  EXPECT_TRUE(reader.put("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", out));
  EXPECT_TRUE(reader.is_done());
  EXPECT_NE(out.find("Content-Length: 5"), std::string::npos);
  EXPECT_FALSE(reader.put("hello", out));
}

TEST(AnswerReader, TellsTheClientOfTheEndOfItsOwnConnectionAlone) {
  const std::string answer =
      "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
  std::string out;
  AnswerReader kept({}, {});
  EXPECT_TRUE(kept.put(answer, out));
  EXPECT_EQ(out.find("close"), std::string::npos);
  EXPECT_TRUE(kept.daemon_closes());
  AnswerReader last({}, {.is_last = true});
  EXPECT_TRUE(last.put(answer, out));
  EXPECT_NE(out.find("Connection: close"), std::string::npos);
}

TEST(AnswerReader, MoreThanOneAnswerIsDamage) {
  std::string out;
  AnswerReader reader({}, {});
  EXPECT_FALSE(reader.put("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", out));
  AnswerReader chunked({}, {});
  EXPECT_FALSE(chunked.put("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx", out));
}

TEST(AnswerReader, AnAnswerThatIsCutIsNotWhole) {
  std::string out;
  AnswerReader reader({}, {});
  EXPECT_TRUE(reader.put("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", out));
  EXPECT_FALSE(reader.finish());
  AnswerReader none({}, {});
  EXPECT_FALSE(none.finish());
}

TEST(AnswerReader, AnAnswerWithoutALengthEndsWithTheConnection) {
  std::string out;
  AnswerReader reader({}, {});
  EXPECT_TRUE(reader.put("HTTP/1.1 200 OK\r\n\r\nhel", out));
  EXPECT_TRUE(reader.put("lo", out));
  EXPECT_FALSE(reader.is_done());
  EXPECT_TRUE(reader.finish());
  EXPECT_TRUE(reader.is_done());
  EXPECT_TRUE(out.ends_with("\r\n\r\nhello"));
}

TEST(AnswerReader, BehindASwitchOfProtocolsAllIsPassedOn) {
  const std::string head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n";
  std::string out;
  AnswerReader reader({}, {.is_last = true});
  EXPECT_TRUE(reader.put(head + "\x81\x01", out));
  EXPECT_TRUE(reader.is_switching());
  EXPECT_TRUE(reader.put("a", out));
  EXPECT_EQ(out, head + "\x81\x01" + "a");
  EXPECT_FALSE(reader.finish());
}

TEST(AnswerReader, WhatIsNoAnswerIsDamage) {
  for (const char* bytes :
       {"HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno field\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n"}) {
    std::string out;
    AnswerReader reader({}, {});
    EXPECT_FALSE(reader.put(bytes, out)) << bytes;
  }
}

TEST(AnswerReader, AHeadWithoutEndIsDamage) {
  std::string out;
  AnswerReader reader({}, {});
  EXPECT_TRUE(reader.put("HTTP/1.1 200 OK\r\nX: ", out));
  EXPECT_FALSE(reader.put(std::string(100'000, 'x'), out));
}

}  // namespace
}  // namespace gpu_platform::listener
