#include "kubernetes/reflector.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kubernetes/back_off.h"
#include "kubernetes/line_splitter.h"
#include "kubernetes/resource_path.h"
#include "kubernetes/scripted_server_fixture.h"
#include "os/clock.h"

namespace gpu_platform::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string item(std::string_view name, int version) {
  return fmt::format(R"({{"metadata":{{"name":"{}","resourceVersion":"{}"}}}})", name, version);
}

std::string list(int version, const std::string& items, std::string_view next = "") {
  return fmt::format(
      R"({{"kind":"PodList","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
      version, next, items);
}

std::string event(std::string_view type, std::string_view name, int version) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, item(name, version));
}

std::string error_event(int code, std::string_view reason, std::string_view message) {
  return fmt::format(
      R"({{"type":"ERROR","object":{{"kind":"Status","code":{},"reason":"{}","message":"{}"}}}})"
      "\n",
      code, reason, message);
}

std::string status(std::string_view message) {
  return fmt::format(R"({{"kind":"Status","message":"{}"}})", message);
}

bool is_watch(const SeenRequest& request) {
  return request.has("watch=true");
}

void stay_open(Wire& wire) {
  wire.begin_stream();
  wire.hold();
}

// A server of which watches and lists are scripted apart; `count` counts each from 1.
struct ListAndWatch {
  using Script = std::function<void(int count, const SeenRequest& request, Wire& wire)>;

  ListAndWatch(Script of_lists, Script of_watches)
      : server([this, of_lists, of_watches](const SeenRequest& seen, Wire& wire) {
          is_watch(seen) ? of_watches(next(watches), seen, wire)
                         : of_lists(next(lists), seen, wire);
        }) {}

  int next(int& counter) {
    const std::scoped_lock lock(mutex);
    return ++counter;
  }
  std::vector<std::string> targets() const {
    std::vector<std::string> all;
    for (const SeenRequest& request : server.requests()) all.push_back(request.target);
    return all;
  }

  std::mutex mutex;
  int lists = 0;
  int watches = 0;
  ScriptedServer server;
};

// Follows pods there and writes down what is told.
class Follower {
 public:
  explicit Follower(const ScriptedServer& server, ReflectorOptions options = quick(),
                    std::string query = "") {
    ClusterAccess access;
    access.server = server.address();
    client_ = std::move(*Client::make(access));
    FollowHandlers handlers{
        .on_list_asked =
            [this] {
              if (on_asked) on_asked();
            },
        .on_list_begin = [this] { told.emplace_back("begin"); },
        .on_object = [this](const nlohmann::json& object) { told.push_back("+" + name(object)); },
        .on_deleted = [this](const nlohmann::json& object) { told.push_back("-" + name(object)); },
        .on_listed = [this] { told.emplace_back("listed"); },
        .on_trouble = [this](const std::string& why) { troubles.push_back(why); },
        .skips_changes =
            [this](std::string_view space, std::string_view name) {
              return fmt::format("{}/{}", space, name) == skipped;
            }};
    reflector_ = std::make_unique<Reflector>(*client_, Followed{"/api/v1/pods", std::move(query)},
                                             std::move(handlers), options);
  }

  static ReflectorOptions quick() {
    return {.first_pause = base::milliseconds(2), .longest_pause = base::milliseconds(20)};
  }

  // Until the condition holds. False: it did not in time.
  template <class Condition>
  bool follow_until(Condition&& condition) {
    const std::int64_t until = os::monotonic_ns() + kTimeout.value();
    while (!condition()) {
      const std::int64_t now = os::monotonic_ns();
      if (now >= until) return false;
      reflector_->advance(now);
      const std::int64_t due = reflector_->due_ns();
      const std::int64_t wait = due == 0 ? base::milliseconds(50).value() : due - now;
      client_->poll(base::Duration(std::clamp<std::int64_t>(wait, 0, 50'000'000)));
    }
    return true;
  }
  bool follow_until_told(const std::string& what) {
    return follow_until([&] { return std::ranges::find(told, what) != told.end(); });
  }
  Reflector& reflector() { return *reflector_; }
  void let_go() { reflector_.reset(); }
  Client& client() { return *client_; }

  std::function<void()> on_asked;
  std::string skipped;  // "namespace/name": its changes are not told
  std::vector<std::string> told;
  std::vector<std::string> troubles;

 private:
  static std::string name(const nlohmann::json& object) { return object["metadata"]["name"]; }

  std::unique_ptr<Client> client_;
  std::unique_ptr<Reflector> reflector_;
};

TEST(Reflector, ListsInPagesThenWatchesFromTheListsVersion) {
  ListAndWatch script(
      [](int count, const SeenRequest&, Wire& wire) {
        wire.answer(200, count == 1 ? list(7, item("a", 1), "t/1=") : list(7, item("b", 2)));
      },
      [](int, const SeenRequest&, Wire& wire) {
        wire.begin_stream();
        wire.piece(event("ADDED", "c", 8) + event("DELETED", "a", 9));
        wire.hold();
      });
  Follower follower(script.server, {.page = 2, .watch_time = base::seconds(9)},
                    "labelSelector=x%3Dy");
  EXPECT_FALSE(follower.reflector().is_listed());
  ASSERT_TRUE(follower.follow_until_told("-a"));
  EXPECT_TRUE(follower.reflector().is_listed());
  EXPECT_THAT(follower.told, ElementsAre("begin", "+a", "+b", "listed", "+c", "-a"));
  EXPECT_THAT(follower.troubles, ElementsAre());
  EXPECT_THAT(script.targets(),
              ElementsAre("/api/v1/pods?labelSelector=x%3Dy&limit=2",
                          "/api/v1/pods?labelSelector=x%3Dy&limit=2&continue=t%2F1%3D",
                          "/api/v1/pods?labelSelector=x%3Dy&watch=true&allowWatchBookmarks=true&"
                          "resourceVersion=7&timeoutSeconds=9"));
}

// What is made between the two is missing in the list, and is not gone.
TEST(Reflector, TellsThatAListIsAskedForBeforeTheServerReadsIt) {
  std::atomic<int> asked = 0;
  std::atomic<int> asked_when_read = 0;
  ListAndWatch script(
      [&](int, const SeenRequest&, Wire& wire) {
        asked_when_read = asked.load();
        wire.answer(200, list(7, ""));
      },
      [](int, const SeenRequest&, Wire& wire) { stay_open(wire); });
  Follower follower(script.server);
  follower.on_asked = [&] { ++asked; };
  ASSERT_TRUE(follower.follow_until_told("listed"));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(asked_when_read, 1);
}

TEST(Reflector, AWatchThatEndsSilentlyGoesOnFromTheLastVersion) {
  ListAndWatch script([](int, const SeenRequest&, Wire& wire) { wire.answer(200, list(7, "")); },
                      [](int count, const SeenRequest&, Wire& wire) {
                        if (count > 3) return stay_open(wire);
                        wire.begin_stream();
                        if (count == 1)
                          wire.piece(event("ADDED", "a", 8) + R"({"type":"ADDED","obj)");
                        if (count == 2) wire.piece(event("BOOKMARK", "", 20));
                        if (count == 3) wire.piece(event("MODIFIED", "b", 21));
                        count == 3 ? wire.drop() : wire.end_stream();
                      });
  Follower follower(script.server);
  ASSERT_TRUE(follower.follow_until([&] { return script.targets().size() == 5; }));
  EXPECT_THAT(follower.told, ElementsAre("begin", "listed", "+a", "+b"));
  EXPECT_THAT(follower.troubles, ElementsAre());
  const std::vector<std::string> targets = script.targets();
  EXPECT_THAT(targets.at(1), HasSubstr("resourceVersion=7&"));
  EXPECT_THAT(targets.at(2), HasSubstr("resourceVersion=8&"));
  EXPECT_THAT(targets.at(3), HasSubstr("resourceVersion=20&"));
  EXPECT_THAT(targets.at(4), HasSubstr("resourceVersion=21&"));
}

std::string written_event(std::string_view type, std::string_view name) {
  return fmt::format(R"({{"type":"{}","object":{{"kind":"Pod","apiVersion":"v1",)"
                     R"("metadata":{{"name":"{}","namespace":"ours","resourceVersion":"9"}}}}}})"
                     "\n",
                     type, name);
}

TEST(Reflector, ChangesOfASkippedObjectAreNotTold) {
  ListAndWatch script(
      [](int, const SeenRequest&, Wire& wire) { wire.answer(200, list(7, "")); },
      [](int, const SeenRequest&, Wire& wire) {
        wire.begin_stream();
        wire.piece(written_event("ADDED", "known") + written_event("MODIFIED", "known") +
                   written_event("MODIFIED", "known-2") + written_event("DELETED", "known"));
        wire.hold();
      });
  Follower follower(script.server);
  follower.skipped = "ours/known";
  ASSERT_TRUE(follower.follow_until_told("-known"));
  EXPECT_THAT(follower.told, ElementsAre("begin", "listed", "+known", "+known-2", "-known"));
}

// Only what is written as an API server writes it is skipped unread.
TEST(Reflector, AChangeThatIsWrittenInAnotherWayIsTold) {
  ListAndWatch script(
      [](int, const SeenRequest&, Wire& wire) { wire.answer(200, list(7, "")); },
      [](int, const SeenRequest&, Wire& wire) {
        wire.begin_stream();
        wire.piece(R"({"type":"MODIFIED","object":{"metadata":{"namespace":"ours","name":"a"}}})"
                   "\n"
                   R"({"type":"MODIFIED","object":{"metadata":{"name":"a"}}})"
                   "\n"
                   R"({"type":"MODIFIED", "object":{"metadata":{"name":"a","namespace":"ours"}}})"
                   "\n"
                   R"({"type":"DELETED","object":{"metadata":{"name":"a","namespace":"ours"}}})"
                   "\n");
        wire.hold();
      });
  Follower follower(script.server);
  follower.skipped = "ours/a";
  ASSERT_TRUE(follower.follow_until_told("-a"));
  EXPECT_THAT(follower.told, ElementsAre("begin", "listed", "+a", "+a", "+a", "-a"));
}

TEST(Reflector, SilenceEndsAWatchThatIsThenResumed) {
  ListAndWatch script([](int, const SeenRequest&, Wire& wire) { wire.answer(200, list(7, "")); },
                      [](int count, const SeenRequest&, Wire& wire) {
                        wire.begin_stream();
                        if (count == 2) wire.piece(event("ADDED", "a", 8));
                        wire.hold();
                      });
  ReflectorOptions options = Follower::quick();
  options.silence = base::seconds(1);  // in which the second watch must have been answered
  Follower follower(script.server, options);
  ASSERT_TRUE(follower.follow_until_told("+a"));
  EXPECT_THAT(follower.told, ElementsAre("begin", "listed", "+a"));
  EXPECT_THAT(follower.troubles, ElementsAre("watch /api/v1/pods: nothing came for 1 s", ""));
}

TEST(Reflector, AWatchThatWasSilentForAllItsTimeListsAnew) {
  ListAndWatch script([](int count, const SeenRequest&,
                         Wire& wire) { wire.answer(200, list(7, count == 1 ? "" : item("a", 1))); },
                      [](int, const SeenRequest& seen, Wire& wire) {
                        wire.begin_stream();
                        EXPECT_TRUE(seen.has("timeoutSeconds=1"));
                        os::rest_until(os::monotonic_ns() + base::seconds(1).value());
                        wire.end_stream();
                      });
  ReflectorOptions options = Follower::quick();
  options.watch_time = base::seconds(1);
  Follower follower(script.server, options);
  ASSERT_TRUE(follower.follow_until_told("+a"));
  EXPECT_THAT(follower.troubles, ElementsAre());
}

TEST(Reflector, A410InEitherFormListsAnewWithoutTrouble) {
  for (const bool is_status : {true, false}) {
    ListAndWatch script(
        [](int count, const SeenRequest&, Wire& wire) {
          wire.answer(200, list(count * 10, item(count == 1 ? "a" : "b", 1)));
        },
        [&](int count, const SeenRequest&, Wire& wire) {
          if (count > 1) return stay_open(wire);
          if (is_status) return wire.answer(410, status("too old"));
          wire.begin_stream();
          wire.piece(error_event(410, "Expired", "too old") + event("ADDED", "never", 12));
          wire.hold();
        });
    Follower follower(script.server);
    ASSERT_TRUE(follower.follow_until([&] { return script.targets().size() == 4; }));
    EXPECT_THAT(follower.told, ElementsAre("begin", "+a", "listed", "begin", "+b", "listed"));
    EXPECT_THAT(follower.troubles, ElementsAre());
    EXPECT_THAT(script.targets().at(3), HasSubstr("resourceVersion=20&"));
  }
}

TEST(Reflector, A410ForAPageBeginsAnewInOnePiece) {
  ListAndWatch script(
      [](int count, const SeenRequest&, Wire& wire) {
        if (count == 1) return wire.answer(200, list(1, item("a", 1), "next"));
        if (count == 2) return wire.answer(410, list(1, "", "other"));
        wire.answer(200, list(5, item("b", 2)));
      },
      [](int, const SeenRequest&, Wire& wire) { stay_open(wire); });
  Follower follower(script.server);
  ASSERT_TRUE(follower.follow_until_told("listed"));
  EXPECT_THAT(follower.told, ElementsAre("begin", "+a", "begin", "+b", "listed"));
  EXPECT_EQ(script.targets().at(2), "/api/v1/pods");
}

TEST(Reflector, AServerThatAlwaysAnswers410IsNotAskedWithoutPause) {
  ListAndWatch script([](int, const SeenRequest&, Wire& wire) { wire.answer(200, list(1, "")); },
                      [](int, const SeenRequest&, Wire& wire) { wire.answer(410, ""); });
  ReflectorOptions options;
  options.first_pause = base::milliseconds(40);
  options.longest_pause = base::milliseconds(640);
  Follower follower(script.server, options);
  const std::int64_t begin = os::monotonic_ns();
  // Pauses of at least 20, 40, 80, 160 ms lie between five lists.
  ASSERT_TRUE(follower.follow_until([&] { return script.targets().size() >= 9; }));
  EXPECT_GE(os::monotonic_ns() - begin, base::milliseconds(300).value());
}

// What is told of a first watch that sends this; the second stays open.
struct Broken {
  std::vector<std::string> told;
  std::vector<std::string> troubles;
};
Broken after_watch_of(const std::string& bytes, std::size_t max_line = 1000) {
  ListAndWatch script(
      [](int count, const SeenRequest&, Wire& wire) {
        wire.answer(200, list(1, item(fmt::format("l{}", count), 1)));
      },
      [&](int count, const SeenRequest&, Wire& wire) {
        if (count > 1) return stay_open(wire);
        wire.begin_stream();
        wire.piece(bytes);
        wire.hold();
      });
  ReflectorOptions options = Follower::quick();
  options.max_line = max_line;
  Follower follower(script.server, options);
  EXPECT_TRUE(follower.follow_until_told("+l2")) << bytes;
  EXPECT_TRUE(follower.follow_until([&] { return follower.troubles.size() == 2; })) << bytes;
  return {follower.told, follower.troubles};
}

TEST(Reflector, ALineThatIsNoEventEndsTheWatchAndListsAnew) {
  for (const std::string line :
       {"<html>\n", "{}\n", "[]\n", "null\n", "{\"type\":\"ADDED\"}\n", "{\"object\":{}}\n",
        "{\"type\":\"ADDED\",\"object\":[]}\n", "{\"type\":\"NEW\",\"object\":{}}\n",
        "{\"type\":7,\"object\":{}}\n", "{\"type\":\"ADDED\",\"object\":{\"a\":\"\xff\"}}\n"}) {
    const Broken broken =
        after_watch_of(event("ADDED", "good", 2) + line + event("ADDED", "never", 3));
    EXPECT_THAT(broken.told,
                AllOf(Not(::testing::Contains("+never")), ::testing::Contains("+good")))
        << line;
    ASSERT_EQ(broken.troubles.size(), 2U) << line;
    EXPECT_THAT(broken.troubles[0], HasSubstr("watch /api/v1/pods: "));
    EXPECT_EQ(broken.troubles[1], "");
  }
  EXPECT_EQ(after_watch_of("<h\x1b>\n").troubles[0],
            "watch /api/v1/pods: a line is not an event: <h?>");
}

TEST(Reflector, AHugeLineEndsTheWatch) {
  const Broken broken = after_watch_of(std::string(1001, 'x'));
  EXPECT_EQ(broken.troubles.at(0), "watch /api/v1/pods: a line is longer than 1000 bytes");
}

TEST(Reflector, AnotherErrorIsToldWithItsWordsAndListsAnew) {
  const Broken broken = after_watch_of(error_event(500, "InternalError", "etcd is away"));
  EXPECT_THAT(broken.troubles, ElementsAre("watch /api/v1/pods: etcd is away", ""));
  EXPECT_EQ(after_watch_of("{\"type\":\"ERROR\",\"object\":{}}\n").troubles.at(0),
            "watch /api/v1/pods: the server reports an error");
}

TEST(Reflector, ARefusalIsToldOnceInWordsAndTriedAgain) {
  struct Case {
    int code;
    std::string why;
  };
  for (const Case& one :
       {Case{403,
             "list /api/v1/pods: no; the account needs the verbs list and watch on pods (403)"},
        Case{404, "list /api/v1/pods: no; the server does not serve it (404)"},
        Case{401, "list /api/v1/pods: no; the server does not take the credentials (401)"},
        Case{500, "list /api/v1/pods: no"}}) {
    ListAndWatch script(
        [&](int count, const SeenRequest&, Wire& wire) {
          count < 4 ? wire.answer(one.code, status("no")) : wire.answer(200, list(1, ""));
        },
        [](int, const SeenRequest&, Wire& wire) { stay_open(wire); });
    Follower follower(script.server);
    ASSERT_TRUE(follower.follow_until_told("listed"));
    EXPECT_THAT(follower.troubles, ElementsAre(one.why, ""));
    EXPECT_THAT(follower.told, ElementsAre("begin", "listed"));
  }
}

TEST(Reflector, ARefusedWatchListsAnewButAServerThatIsBusyIsAskedForTheWatchAgain) {
  for (const int code : {403, 404, 400, 504, 503, 429}) {
    ListAndWatch script([](int, const SeenRequest&, Wire& wire) { wire.answer(200, list(1, "")); },
                        [&](int count, const SeenRequest&, Wire& wire) {
                          count > 1 ? stay_open(wire) : wire.answer(code, status("no"));
                        });
    Follower follower(script.server);
    ASSERT_TRUE(follower.follow_until([&] { return follower.troubles.size() == 2; }));
    EXPECT_THAT(follower.troubles, ElementsAre(HasSubstr("watch /api/v1/pods: no"), ""));
    const bool is_busy = code == 503 || code == 429;
    EXPECT_EQ(script.lists, is_busy ? 1 : 2) << code;
  }
}

TEST(Reflector, AWatchThatIsAlwaysRefusedIsToldOnceAlthoughListsAreGood) {
  ListAndWatch script([](int, const SeenRequest&, Wire& wire) { wire.answer(200, list(1, "")); },
                      [](int, const SeenRequest&, Wire& wire) { wire.answer(403, status("no")); });
  Follower follower(script.server);
  ASSERT_TRUE(follower.follow_until([&] { return script.targets().size() >= 8; }));
  EXPECT_THAT(follower.troubles, ElementsAre(HasSubstr("watch /api/v1/pods: no")));
}

TEST(Reflector, ADeadServerIsTroubleAndFoundAgain) {
  ListAndWatch script([](int count, const SeenRequest&,
                         Wire& wire) { count < 3 ? wire.drop() : wire.answer(200, list(1, "")); },
                      [](int, const SeenRequest&, Wire& wire) { stay_open(wire); });
  Follower follower(script.server);
  ASSERT_TRUE(follower.follow_until_told("listed"));
  EXPECT_THAT(follower.troubles, ElementsAre(HasSubstr("Empty reply"), ""));
}

TEST(Reflector, AnAnswerThatIsNoListIsTrouble) {
  const std::vector<std::string> bad = {"",
                                        "<html>",
                                        "[]",
                                        "{}",
                                        R"({"items":[]})",
                                        R"({"metadata":{"resourceVersion":"1"}})",
                                        R"({"metadata":{"resourceVersion":"1"},"items":7})",
                                        R"({"metadata":{},"items":[]})"};
  ListAndWatch script(
      [&](int count, const SeenRequest&, Wire& wire) {
        const auto at = static_cast<std::size_t>(count - 1);
        const std::string nothing = R"({"metadata":{"resourceVersion":"1"},"items":null})";
        wire.answer(200, at < bad.size() ? bad[at] : nothing);
      },
      [](int, const SeenRequest&, Wire& wire) { stay_open(wire); });
  Follower follower(script.server);
  ASSERT_TRUE(follower.follow_until_told("listed"));
  EXPECT_THAT(follower.told, ElementsAre("begin", "listed"));
  EXPECT_THAT(follower.troubles,
              ElementsAre("list /api/v1/pods: the server's answer is not a list of objects", ""));
}

TEST(Reflector, APageThatComesAgainAndAgainIsTrouble) {
  ListAndWatch script(
      [](int count, const SeenRequest&, Wire& wire) {
        wire.answer(200, count < 3 ? list(1, item("a", 1), "same") : list(1, ""));
      },
      [](int, const SeenRequest&, Wire& wire) { stay_open(wire); });
  Follower follower(script.server);
  ASSERT_TRUE(follower.follow_until_told("listed"));
  EXPECT_THAT(follower.troubles,
              ElementsAre("list /api/v1/pods: the server gives the same page again and again", ""));
}

TEST(Reflector, ToldNothingMoreOnceDestroyed) {
  ListAndWatch script([](int, const SeenRequest&, Wire& wire) { wire.answer(200, list(1, "")); },
                      [](int, const SeenRequest&, Wire& wire) {
                        wire.begin_stream();
                        for (int i = 2; !wire.is_dropped(); ++i) wire.piece(event("ADDED", "a", i));
                      });
  Follower follower(script.server);
  ASSERT_TRUE(follower.follow_until_told("+a"));
  follower.let_go();
  const std::size_t told = follower.told.size();
  follower.client().poll(base::milliseconds(20));
  EXPECT_EQ(follower.told.size(), told);
}

// ---- The parts ----

TEST(LineSplitter, GivesTheSameLinesHoweverTheBytesCome) {
  const std::string text = "a\n\nlong line\nrest";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    LineSplitter splitter(9);
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size(); at += size) {
      EXPECT_TRUE(
          splitter.feed(std::string_view(text).substr(at, size), [&](std::string_view line) {
            lines.emplace_back(line);
            return true;
          }));
    }
    EXPECT_THAT(lines, ElementsAre("a", "", "long line"));
  }
}

TEST(LineSplitter, RefusesALineThatIsTooLongHoweverItComes) {
  const auto take = [](std::string_view) { return true; };
  EXPECT_FALSE(LineSplitter(3).feed("abcd\n", take));
  EXPECT_FALSE(LineSplitter(3).feed("abcd", take));
  LineSplitter splitter(3);
  EXPECT_TRUE(splitter.feed("abc", take));
  EXPECT_FALSE(splitter.feed("d", take));
}

TEST(BackOff, GrowsToTheLongestWithJitterAndBeginsAnew) {
  BackOff back_off(base::milliseconds(100), base::milliseconds(350), 1);
  for (const std::int64_t most : {100, 200, 350, 350, 350}) {
    const base::Duration pause = back_off.next();
    EXPECT_GE(pause, base::milliseconds(most / 2));
    EXPECT_LE(pause, base::milliseconds(most));
  }
  back_off.reset();
  EXPECT_LE(back_off.next(), base::milliseconds(100));
}

TEST(ResourcePath, NamesWhatAnAdministratorsRulesName) {
  EXPECT_EQ(resource_of("/api/v1/pods"), "pods");
  EXPECT_EQ(resource_of("/api/v1/namespaces/lab/pods"), "pods in namespace lab");
  EXPECT_EQ(resource_of("/api/v1/namespaces"), "namespaces");
  EXPECT_EQ(resource_of("/apis/resource.k8s.io/v1/resourceslices"),
            "resourceslices.resource.k8s.io");
  EXPECT_EQ(resource_of("/apis/batch/v1/namespaces/lab/jobs"), "jobs.batch in namespace lab");
  EXPECT_EQ(resource_of("/version"), "version");
  EXPECT_EQ(resource_of(""), "");
}

TEST(ResourcePath, EscapesWhatAQueryCannotHold) {
  EXPECT_EQ(query_value("aZ09-_.~"), "aZ09-_.~");
  EXPECT_EQ(query_value("a=b&c d/\xc3\xa4"), "a%3Db%26c%20d%2F%C3%A4");
}

}  // namespace
}  // namespace gpu_platform::kubernetes
