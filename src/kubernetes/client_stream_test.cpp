#include "kubernetes/client_fixture.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/testing/eventually.h"

namespace gpu_platform::kubernetes {
namespace {

TEST(ClientStream, TellsBytesAsTheyComeAndItsEnd) {
  std::atomic<int> may_go_on = 0;
  ScriptedServer server([&](const SeenRequest&, Wire& wire) {
    wire.begin_stream();
    EXPECT_TRUE(os::eventually([&] { return may_go_on >= 1; }));
    wire.piece("one\n");
    EXPECT_TRUE(os::eventually([&] { return may_go_on >= 2; }));
    wire.piece("two\n");
    wire.end_stream();
  });
  const auto client = client_of(access_to(server));
  Told told;
  client->open_stream({.path = "/watch"}, told.handlers());
  ASSERT_TRUE(poll_until(*client, [&] { return told.opened == 1; }));
  EXPECT_EQ(told.bytes, "");
  may_go_on = 1;
  ASSERT_TRUE(poll_until(*client, [&] { return told.bytes == "one\n"; }));
  EXPECT_FALSE(told.end.has_value());
  may_go_on = 2;
  ASSERT_TRUE(poll_until(*client, [&] { return told.end.has_value(); }));
  EXPECT_EQ(told.bytes, "one\ntwo\n");
  EXPECT_EQ(told.opened, 1);
  EXPECT_EQ(told.end->status, 200);
  EXPECT_EQ(client->pending(), 0U);
}

TEST(ClientStream, ARefusalComesWithItsBodyAndWithoutBytes) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) { wire.answer(410, "gone"); });
  const auto client = client_of(access_to(server));
  Told told;
  client->open_stream({.path = "/watch"}, told.handlers());
  ASSERT_TRUE(poll_until(*client, [&] { return told.end.has_value(); }));
  EXPECT_EQ(told.end->status, 410);
  EXPECT_EQ(told.end->body, "gone");
  EXPECT_EQ(told.opened, 0);
  EXPECT_EQ(told.bytes, "");
}

TEST(ClientStream, SilenceEndsItButBytesKeepItAlive) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) {
    wire.begin_stream();
    wire.piece("a");
    wire.hold();
  });
  const auto client = client_of(access_to(server));
  Told told;
  client->open_stream({.path = "/watch", .timeout = base::seconds(2)}, told.handlers());
  ASSERT_TRUE(poll_until(*client, [&] { return told.end.has_value(); }));
  EXPECT_EQ(told.bytes, "a");
  EXPECT_EQ(told.end->status, 0);
  EXPECT_EQ(told.end->failure, "nothing came for 2 s");
}

TEST(ClientStream, IsGivenUpWithAllConnectionsWhenTheServerHasFallenSilent) {
  ScriptedServer server([](const SeenRequest& seen, Wire& wire) {
    if (seen.has("watch")) {
      wire.begin_stream();
      wire.piece("a");
    }
    wire.hold();
  });
  for (const bool is_long : {true, false}) {
    const base::Duration dead_after = is_long ? base::milliseconds(200) : base::seconds(5);
    const auto client = client_of(access_to(server), {.dead_after = dead_after});
    Told told;
    client->open_stream({.path = "/watch", .timeout = base::minutes(5)}, told.handlers());
    ASSERT_TRUE(poll_until(*client, [&] { return !told.bytes.empty(); }));
    // layers allow expires: it is to pass; what is to succeed does not wait for it
    EXPECT_EQ(ask(*client, {.path = "/", .timeout = base::milliseconds(200)}).status, 0);
    if (is_long) {
      ASSERT_TRUE(poll_until(*client, [&] { return told.end.has_value(); }));
      EXPECT_EQ(told.end->status, 0);
    }
    client->poll(base::milliseconds(50));
    EXPECT_EQ(told.end.has_value(), is_long);
  }
}

TEST(ClientStream, AConnectionThatBreaksIsAnEndWithoutStatus) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) {
    wire.begin_stream();
    wire.piece("a");
    wire.drop();
  });
  const auto client = client_of(access_to(server));
  Told told;
  client->open_stream({.path = "/watch"}, told.handlers());
  ASSERT_TRUE(poll_until(*client, [&] { return told.end.has_value(); }));
  EXPECT_EQ(told.bytes, "a");
  EXPECT_EQ(told.end->status, 0);
  EXPECT_NE(told.end->failure, "");
}

TEST(ClientStream, ClosedByItsOwnHandlerItTellsNothingMore) {
  ScriptedServer server([](const SeenRequest&, Wire& wire) {
    wire.begin_stream();
    while (!wire.is_dropped()) wire.piece(std::string(10'000, 'x'));
  });
  const auto client = client_of(access_to(server));
  int told = 0;
  bool has_ended = false;
  StreamId stream = 0;
  stream =
      client->open_stream({.path = "/watch"}, {.on_bytes =
                                                   [&](std::string_view) {
                                                     ++told;
                                                     client->close_stream(stream);
                                                   },
                                               .on_end = [&](const Answer&) { has_ended = true; }});
  ASSERT_TRUE(poll_until(*client, [&] { return told > 0; }));
  client->poll(base::milliseconds(50));
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(has_ended);
}

TEST(ClientStream, StreamsDoNotCountAsRequestsInFlight) {
  ScriptedServer server([](const SeenRequest& seen, Wire& wire) {
    if (!seen.has("watch")) return wire.answer(200, "");
    wire.begin_stream();
    wire.hold();
  });
  const auto client = client_of(access_to(server), {.max_in_flight = 1});
  Told told;
  for (int i = 0; i < 5; ++i) client->open_stream({.path = "/watch"}, told.handlers());
  EXPECT_EQ(ask(*client, "/a").status, 200);
}

}  // namespace
}  // namespace gpu_platform::kubernetes
