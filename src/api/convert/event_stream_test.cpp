#include "api/convert/event_stream.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::api {
namespace {

std::vector<ServerEvent> read_all(EventReader& reader) {
  std::vector<ServerEvent> events;
  while (auto event = reader.next()) events.push_back(*event);
  return events;
}

std::vector<ServerEvent> read_whole(std::string_view stream) {
  EventReader reader;
  reader.feed(stream);
  return read_all(reader);
}

constexpr std::string_view kStream =
    "\xef\xbb\xbf: hello\n\nid: 7\nevent: output\ndata: {\"a\":1}\n\n"
    "data:two\r\ndata: lines\r\n\r\n:\rdata\r\rretry: 10\nunknown: x\nevent: gone\n\nid\ndata: "
    "\xe6\x97\xa5\n\n";

const std::vector<ServerEvent> kEvents = {{"output", "{\"a\":1}", "7"},
                                          {"message", "two\nlines", "7"},
                                          {"message", "", "7"},
                                          {"message", "\xe6\x97\xa5", ""}};

TEST(EventReader, ReadsFieldsCommentsAndAllLineEnds) {
  EXPECT_EQ(read_whole(kStream), kEvents);
}

TEST(EventReader, DoesNotCareWhereTheStreamIsCutInTwo) {
  for (std::size_t cut = 0; cut <= kStream.size(); ++cut) {
    EventReader reader;
    reader.feed(kStream.substr(0, cut));
    reader.feed(kStream.substr(cut));
    EXPECT_EQ(read_all(reader), kEvents) << "cut at " << cut;
  }
}

TEST(EventReader, DoesNotCareAboutManyPieces) {
  base::Prng random(11);
  for (int round = 0; round < 500; ++round) {
    EventReader reader;
    for (std::size_t at = 0; at < kStream.size();) {
      const std::size_t size = random.below(4);
      reader.feed(kStream.substr(at, size));
      at += size;
    }
    EXPECT_EQ(read_all(reader), kEvents);
  }
}

TEST(EventReader, TakesTheTwoHalvesOfALineEndTogetherAndNoMore) {
  EventReader reader;
  for (const std::string_view piece : {"data: x\r", "\n", "", "\n", "data: y\r", "", "\n", "\r"}) {
    reader.feed(piece);
  }
  const std::vector<ServerEvent> expected = {{"message", "x", ""}, {"message", "y", ""}};
  EXPECT_EQ(read_all(reader), expected);
}

TEST(EventReader, NeverYieldsHalfAnEvent) {
  EXPECT_TRUE(read_whole("event: output\ndata: {\"ended\":true}\n").empty());
  EXPECT_TRUE(read_whole("data: x").empty());
}

}  // namespace
}  // namespace gpu_platform::api
