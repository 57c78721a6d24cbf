#include "outbound/outbox.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>

#include <gtest/gtest.h>

#include "http/testing/scripted_server.h"
#include "os/testing/eventually.h"
#include "outbound/folder_fixture.h"
#include "outbound/queue.h"

namespace gpu_platform::outbound {
namespace {

using http::ScriptedServer;
using http::SeenRequest;
using http::Wire;
using os::eventually;

constexpr const char* kNowhere = "http://127.0.0.1:1/hook";  // where no program listens

const ScriptedServer::Script kAnswersOk = [](const SeenRequest& /*request*/, Wire& wire) {
  wire.answer(200, "");
};

Channel channel_to(const std::string& url, const std::string& name = "c") {
  return {.name = name,
          .kind = ChannelKind::kWebhook,
          .url = url,
          .timeout = base::minutes(10)};  // no test waits for it
}

Delivery delivery(int number, const std::string& channel = "c") {
  return {.channel = channel,
          .key = fmt::format("key-{}", number),
          .body = fmt::format("{}", number),
          .made = base::Instant(1'000'000'000 + number)};
}

std::vector<std::string> bodies_of(const ScriptedServer& server) {
  std::vector<std::string> bodies;
  for (const SeenRequest& request : server.requests()) bodies.push_back(request.body);
  return bodies;
}

std::vector<std::string> numbers(int first, int last) {
  std::vector<std::string> numbers;
  for (int number = first; number <= last; ++number) numbers.push_back(fmt::format("{}", number));
  return numbers;
}

class OutboxTest : public testing::Test {
 protected:
  Outbox::Options options() {
    return {.folder = folder_.path() + "/outbox",
            .first_wait = base::milliseconds(1),
            .longest_wait = base::milliseconds(5),
            .warn = [this](std::string_view line) {
              const std::lock_guard lock(mutex_);
              warnings_ += fmt::format("{}\n", line);
            }};
  }
  std::unique_ptr<Outbox> open(std::vector<Channel> channels) {
    return open(options(), std::move(channels));
  }
  static std::unique_ptr<Outbox> open(Outbox::Options options, std::vector<Channel> channels) {
    auto outbox = Outbox::open(std::move(options), std::move(channels));
    CHECK(outbox.has_value());
    return *std::move(outbox);
  }
  static void put(Outbox& outbox, const Delivery& delivery) {
    const base::Status status = outbox.put(delivery);
    EXPECT_TRUE(status) << status.error().message;
  }
  static ChannelState state(const Outbox& outbox, const std::string& name = "c") {
    for (ChannelState& state : outbox.states()) {
      if (state.channel == name) return state;
    }
    ADD_FAILURE() << "no channel " << name;
    return {};
  }
  static bool eventually_sent(const Outbox& outbox, std::uint64_t count) {
    return eventually([&] { return state(outbox).sent >= count; }, base::minutes(5));
  }
  bool has_warned(std::string_view words) {
    const std::lock_guard lock(mutex_);
    return warnings_.find(words) != std::string::npos;
  }

  // In a process of its own, which does this and is to be killed then.
  template <class Work>
  static pid_t in_child(Work work) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    work();
    while (true) ::pause();
  }
  static void kill_and_reap(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  Folder folder_;
  std::mutex mutex_;
  std::string warnings_;
};

TEST_F(OutboxTest, ALongFailureLosesAndDoublesAndReordersNothing) {
  const ScriptedServer server([](const SeenRequest& request, Wire& wire) {
    wire.answer(request.number <= 20 ? 500 : 200, "");
  });
  const auto outbox = open({channel_to(server.address() + "/hook")});
  for (int number = 1; number <= 5; ++number) put(*outbox, delivery(number));
  EXPECT_TRUE(eventually_sent(*outbox, 5));
  EXPECT_TRUE(eventually([&] { return state(*outbox).waiting == 0; }));
  EXPECT_EQ(state(*outbox).problem, "");
  std::vector<std::string> expected(20, "1");
  for (const std::string& number : numbers(1, 5)) expected.push_back(number);
  EXPECT_EQ(bodies_of(server), expected);
  EXPECT_TRUE(has_warned("status 500"));
}

TEST_F(OutboxTest, ARefusedMessageIsCountedAndTheNextGoes) {
  const ScriptedServer server([](const SeenRequest& request, Wire& wire) {
    wire.answer(request.body == "1" ? 400 : 200, "");
  });
  const auto outbox = open({channel_to(server.address())});
  put(*outbox, delivery(1));
  put(*outbox, delivery(2));
  EXPECT_TRUE(eventually_sent(*outbox, 1));
  EXPECT_EQ(state(*outbox).refused, 1U);
  EXPECT_EQ(bodies_of(server), numbers(1, 2));
  EXPECT_TRUE(has_warned("message=key-1 refused for good"));
}

TEST_F(OutboxTest, AHangingChannelHoldsUpNoOtherAndNotTheEnd) {
  const ScriptedServer hanging([](const SeenRequest& /*request*/, Wire& wire) { wire.hold(); });
  const ScriptedServer server(kAnswersOk);
  const auto outbox = open({channel_to(hanging.address(), "h"), channel_to(server.address(), "c")});
  put(*outbox, delivery(1, "h"));
  EXPECT_TRUE(eventually([&] { return hanging.requests().size() == 1; }));
  put(*outbox, delivery(1, "c"));
  EXPECT_TRUE(eventually_sent(*outbox, 1));
  EXPECT_EQ(state(*outbox, "h").waiting, 1U);
  // The end of the outbox would wait for the timeout of ten minutes.
}

TEST_F(OutboxTest, AKeyIsSentOnceAlsoAfterARestart) {
  const ScriptedServer server(kAnswersOk);
  {
    const auto outbox = open({channel_to(server.address())});
    put(*outbox, delivery(1));
    put(*outbox, delivery(1));
    EXPECT_TRUE(eventually_sent(*outbox, 1));
    EXPECT_TRUE(eventually([&] { return state(*outbox).waiting == 0; }));
    put(*outbox, delivery(1));
  }
  const auto outbox = open({channel_to(server.address())});
  put(*outbox, delivery(1));
  put(*outbox, delivery(2));
  EXPECT_TRUE(eventually_sent(*outbox, 1));
  EXPECT_EQ(bodies_of(server), numbers(1, 2));
}

TEST_F(OutboxTest, TheOldestGoWhereTooManyWait) {
  Outbox::Options small = options();
  small.max_waiting = 3;
  const auto outbox = open(small, {channel_to(kNowhere)});
  for (int number = 1; number <= 5; ++number) put(*outbox, delivery(number));
  EXPECT_EQ(state(*outbox).waiting, 3U);
  EXPECT_EQ(state(*outbox).dropped, 2U);
  EXPECT_EQ(state(*outbox).oldest, delivery(3).made);
  EXPECT_TRUE(has_warned("dropped=1"));
  const ScriptedServer server(kAnswersOk);
  outbox->set_channels({channel_to(server.address())});
  EXPECT_TRUE(eventually_sent(*outbox, 3));
  EXPECT_EQ(bodies_of(server), numbers(3, 5));
  EXPECT_EQ(state(*outbox).dropped, 2U) << "a changed channel forgets what it has counted";
}

TEST_F(OutboxTest, AFullFileRefusesUntilMessagesHaveGone) {
  Outbox::Options small = options();
  small.max_bytes = base::Bytes(256 * 1024);
  const auto outbox = open(small, {channel_to(kNowhere)});
  Delivery large = delivery(0);
  large.body.assign(8'000, 'x');
  int count = 0;
  base::Status status;
  for (; status && count < 100; ++count) {
    large.key = fmt::format("large-{}", count);
    status = outbox->put(large);
  }
  ASSERT_FALSE(status) << "100 messages fit into a file that is smaller";
  EXPECT_EQ(status.error().code, base::ErrorCode::kResourceExhausted) << status.error().message;
  const auto waiting = static_cast<std::uint64_t>(count - 1);
  EXPECT_EQ(state(*outbox).waiting, waiting);
  const ScriptedServer server(kAnswersOk);
  outbox->set_channels({channel_to(server.address())});
  EXPECT_TRUE(eventually_sent(*outbox, waiting));
  EXPECT_TRUE(eventually([&] { return state(*outbox).waiting == 0; }));
  put(*outbox, delivery(1));
  EXPECT_TRUE(eventually_sent(*outbox, waiting + 1));
}

TEST_F(OutboxTest, ADamagedFileIsPutAsideAndTold) {
  open({});
  folder_.write("outbox/outbox.db", std::string(8192, 'x'));
  const ScriptedServer server(kAnswersOk);
  const auto outbox = open({channel_to(server.address())});
  put(*outbox, delivery(1));
  EXPECT_TRUE(eventually_sent(*outbox, 1));
  EXPECT_EQ(folder_.read("outbox/outbox.db.damaged-1"), std::string(8192, 'x'));
  EXPECT_TRUE(has_warned("damaged"));
}

TEST_F(OutboxTest, TheFileIsItsOwnersAlone) {
  const auto outbox = open({channel_to(kNowhere)});
  put(*outbox, delivery(1));
  struct stat found{};
  ASSERT_EQ(stat((folder_.path() + "/outbox").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0700U);
  for (const char* name : {"outbox.db", "outbox.db-wal"}) {
    ASSERT_EQ(stat((folder_.path() + "/outbox/" + name).c_str(), &found), 0) << name;
    EXPECT_EQ(found.st_mode & 0777U, 0600U) << name;
  }
}

TEST_F(OutboxTest, TwoCannotDeliverFromOneFile) {
  const auto outbox = open({});
  const auto second = Outbox::open(options(), {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, base::ErrorCode::kAlreadyExists) << second.error().message;
}

TEST_F(OutboxTest, TenThousandMessagesGoInTheirOrder) {
  const ScriptedServer server(kAnswersOk);
  const auto outbox = open({channel_to(server.address())});
  for (int number = 1; number <= 10'000; ++number) put(*outbox, delivery(number));
  EXPECT_TRUE(eventually_sent(*outbox, 10'000));
  EXPECT_EQ(bodies_of(server), numbers(1, 10'000));
  EXPECT_EQ(state(*outbox).dropped, 0U);
}

TEST_F(OutboxTest, WhatWaitsForARemovedChannelIsDroppedAndTold) {
  const auto outbox = open({channel_to(kNowhere)});
  put(*outbox, delivery(1));
  put(*outbox, delivery(2));
  outbox->set_channels({});
  EXPECT_TRUE(has_warned("channel=c removed, dropped=2"));
  const base::Status status = outbox->put(delivery(3));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, base::ErrorCode::kNotFound);
  outbox->set_channels({channel_to(kNowhere)});
  EXPECT_EQ(state(*outbox).waiting, 0U);
}

TEST_F(OutboxTest, AClockThatIsSetBackChangesNoOrder) {
  const ScriptedServer server(kAnswersOk);
  const auto outbox = open({channel_to(kNowhere)});
  for (int number = 1; number <= 5; ++number) {
    Delivery earlier = delivery(number);
    earlier.made = base::Instant(1'000'000'000'000 - number * 3'600'000'000LL);
    put(*outbox, earlier);
  }
  outbox->set_channels({channel_to(server.address())});
  EXPECT_TRUE(eventually_sent(*outbox, 5));
  EXPECT_EQ(bodies_of(server), numbers(1, 5));
}

TEST_F(OutboxTest, MessagesThatCannotBeKeptAreRefused) {
  const auto outbox = open({channel_to(kNowhere)});
  Delivery large = delivery(1);
  large.body.assign(2UL * 1024 * 1024, 'x');
  EXPECT_EQ(outbox->put(large).error().field, "body");
  Delivery nameless = delivery(1);
  nameless.key.clear();
  EXPECT_EQ(outbox->put(nameless).error().field, "key");
  EXPECT_EQ(state(*outbox).waiting, 0U);
}

TEST_F(OutboxTest, ATryGoesPastTheQueueAndSaysHowItWent) {
  const ScriptedServer server([](const SeenRequest& request, Wire& wire) {
    wire.answer(request.body == "1" ? 200 : 403, "");
  });
  const auto outbox = open({channel_to(kNowhere, "n"), channel_to(server.address(), "c")});
  put(*outbox, delivery(7, "n"));
  EXPECT_TRUE(outbox->try_now(delivery(1)));
  EXPECT_EQ(outbox->try_now(delivery(2)).error().message, "the other side answers with status 403");
  EXPECT_EQ(outbox->try_now(delivery(3, "n")).error().code, base::ErrorCode::kUnavailable);
  EXPECT_EQ(outbox->try_now(delivery(3, "x")).error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(state(*outbox).waiting, 0U);
  EXPECT_EQ(state(*outbox, "n").waiting, 1U);
}

TEST_F(OutboxTest, WhatWasPutIsDeliveredAfterAKill) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = in_child([&] {
    const auto outbox = open({channel_to(kNowhere)});
    for (int number = 1; number <= 3; ++number) put(*outbox, delivery(number));
    (void)!::write(ready[1], "x", 1);
    ::pause();
  });
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  kill_and_reap(child);
  ::close(ready[0]);
  ::close(ready[1]);
  const ScriptedServer server(kAnswersOk);
  const auto outbox = open({channel_to(server.address())});
  EXPECT_TRUE(eventually_sent(*outbox, 3));
  EXPECT_EQ(bodies_of(server), numbers(1, 3));
}

// The other side has the message, and the sender is killed before it knows that.
TEST_F(OutboxTest, AMessageIsRepeatedWithItsKeyAfterAKill) {
  int address[2];
  ASSERT_EQ(::pipe(address), 0);
  // Before the server has threads.
  const pid_t child = in_child([&] {
    char url[64] = {};
    if (::read(address[0], url, sizeof url - 1) <= 0) ::_exit(1);
    const auto outbox = open({channel_to(url)});
    put(*outbox, delivery(1));
    ::pause();
  });
  const ScriptedServer server([&](const SeenRequest& request, Wire& wire) {
    if (request.number > 1) return wire.answer(200, "");
    ::kill(child, SIGKILL);
    wire.hold();
  });
  const std::string url = server.address() + "/hook";
  EXPECT_EQ(::write(address[1], url.data(), url.size()), static_cast<ssize_t>(url.size()));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(address[0]);
  ::close(address[1]);
  const auto outbox = open({channel_to(url)});
  EXPECT_TRUE(eventually_sent(*outbox, 1));
  const std::vector<SeenRequest> requests = server.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
  EXPECT_EQ(requests[0].body, requests[1].body);
}

TEST_F(OutboxTest, RecipientsOfAMessageOutliveTheProcess) {
  Delivery to_ann = delivery(1);
  to_ann.to = {"ann@example.org", "ops@example.org"};
  for (const bool is_first : {true, false}) {
    const auto queue = Queue::open({.folder = folder_.path() + "/queue", .warn = {}});
    ASSERT_TRUE(queue) << queue.error().message;
    if (is_first) {
      ASSERT_TRUE((*queue)->put(to_ann));
    }
    const auto front = (*queue)->front("c");
    ASSERT_TRUE(front);
    ASSERT_TRUE(front->has_value());
    EXPECT_EQ((*front)->delivery, to_ann);
  }
}

TEST_F(OutboxTest, AFileOfAnEarlierProgramIsTakenUp) {
  const std::string folder = folder_.path() + "/queue";
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open((folder + "/outbox.db").c_str(), &database), SQLITE_OK);
  const char* const sql =
      "CREATE TABLE messages ("
      " id INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, key TEXT NOT NULL,"
      " is_done INTEGER NOT NULL DEFAULT 0, made_ns INTEGER NOT NULL, content_type TEXT NOT NULL,"
      " subject TEXT NOT NULL, body BLOB NOT NULL, UNIQUE (channel, key));"
      "INSERT INTO messages (channel, key, made_ns, content_type, subject, body)"
      " VALUES ('c', 'key-1', 1000000001, '', '', x'31');";
  EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const auto queue = Queue::open({.folder = folder, .warn = {}});
  ASSERT_TRUE(queue) << queue.error().message;
  const auto front = (*queue)->front("c");
  ASSERT_TRUE(front);
  ASSERT_TRUE(front->has_value());
  EXPECT_EQ((*front)->delivery, delivery(1));
}

}  // namespace
}  // namespace gpu_platform::outbound
