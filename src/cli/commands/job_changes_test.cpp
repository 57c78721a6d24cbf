#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kWouldDo =
    R"({"jobs":[{"id":"7","name":"sweep-1","user":"ada","state":"QUEUED","changed":true,"refused":null},)"
    R"({"id":"8","name":"sweep-\u001b2","user":"ada","state":"RUNNING","changed":false,"refused":"job 8 is RUNNING"}],)"
    R"("changed":1,"refused":1,"dry_run":true})";

// A person at a terminal who types the answer beforehand.
class JobChanges : public Cli {
 protected:
  JobChanges() {
    EXPECT_EQ(::openpty(&person_, &program_, nullptr, nullptr, nullptr), 0);
    around_.in_fd = program_;
  }
  ~JobChanges() override {
    ::close(person_);
    ::close(program_);
  }
  void type(std::string_view text) {
    EXPECT_EQ(::write(person_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  FakeServer::Handler remembering() {
    return [this](const Request& request) {
      if (request.method == "GET") {
        return json_answer(R"({"id":"7","array_id":"5","array_index":2})");
      }
      sent_.push_back(Json::parse(request.body));
      return json_answer(kWouldDo);
    };
  }
  std::vector<Json> sent_;
  int person_ = -1;
  int program_ = -1;
};

TEST_F(JobChanges, ShowWhatTheyAreAboutToDoAndDoExactlyThat) {
  FakeServer server(remembering());
  type("y\n");
  EXPECT_EQ(call(server, {"jobs", "hold", "--name", "sweep-*", "--state", "queued,running"}), 4);
  EXPECT_TRUE(has(err(), "1 job is to be held:\n  5_2  sweep-1  ada  QUEUED\nGo on? [y/N]"))
      << err();
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0], (Json{{"action", "HOLD"},
                            {"state", {"QUEUED", "RUNNING"}},
                            {"name", "sweep-*"},
                            {"dry_run", true}}));
  EXPECT_FALSE(sent_[1].contains("dry_run"));
  EXPECT_EQ(sent_[1]["ids"], Json({"7"}));
}

TEST_F(JobChanges, TheFirstNamedJobIsRaisedLastSoThatItIsOnTop) {
  std::vector<std::string> paths;
  FakeServer server([&](const Request& request) {
    paths.push_back(request.target);
    return json_answer(R"({"job":{"id":"7","state":"QUEUED"},"changed":true})");
  });
  EXPECT_EQ(call(server, {"jobs", "top", "7", "8"}), 0);
  EXPECT_EQ(paths, (std::vector<std::string>{"/v1/jobs/8/top", "/v1/jobs/7/top"}));
  EXPECT_TRUE(has(err(), "job 7 is raised above your other waiting jobs")) << err();
}

TEST_F(JobChanges, ASignalIsAskedForByName) {
  FakeServer server([&](const Request& request) {
    EXPECT_EQ(request.target, "/v1/jobs/7/signal");
    EXPECT_EQ(Json::parse(request.body), (Json{{"signal", "USR1"}}));
    return json_answer(R"({"job":{"id":"7","state":"RUNNING"},"changed":true})");
  });
  EXPECT_EQ(call(server, {"jobs", "signal", "7", "-s", "USR1"}), 0);
  EXPECT_TRUE(has(err(), "signal USR1 is sent to the processes of job 7")) << err();
  EXPECT_EQ(call(server, {"jobs", "signal", "7"}), 2);
  EXPECT_TRUE(has(err(), "--signal USR1")) << err();
}

TEST_F(JobChanges, AreNotDoneWithoutAYes) {
  FakeServer server(remembering());
  type("no\n");
  EXPECT_EQ(call(server, {"jobs", "cancel", "--all"}), 1);
  EXPECT_EQ(sent_.size(), 1U);
  EXPECT_TRUE(has(err(), "nothing was done")) << err();
}

// A daemon that does not know the field refuses the request: it would take `all` for all users.
TEST_F(JobChanges, OfAllUsersAreAskedForInSoManyWords) {
  FakeServer server(remembering());
  EXPECT_EQ(call(server, {"jobs", "kill", "--all", "--yes"}), 4);
  EXPECT_EQ(sent_.back()["all"], true);
  EXPECT_EQ(sent_.back()["all_users"], false);
  EXPECT_EQ(call(server, {"jobs", "kill", "--all-users", "--yes"}), 4);
  EXPECT_FALSE(sent_.back().contains("all"));
  EXPECT_EQ(sent_.back()["all_users"], true);
  type("no\n");
  EXPECT_EQ(call(server, {"jobs", "kill", "--all-users"}), 1);
  EXPECT_EQ(sent_.back()["dry_run"], true);
}

TEST_F(JobChanges, AskNobodyWithYes) {
  FakeServer server(remembering());
  EXPECT_EQ(call(server, {"jobs", "requeue", "--hold", "--label", "run=7", "--yes"}), 4);
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0]["action"], "REQUEUE_AND_HOLD");
  EXPECT_FALSE(sent_[0].contains("dry_run"));
  EXPECT_TRUE(has(err(), "job 8 is RUNNING")) << err();
}

TEST_F(JobChanges, SayWhichStatesThereAre) {
  FakeServer server(remembering());
  EXPECT_EQ(call(server, {"jobs", "cancel", "--state", "held,done", "--yes"}), 2);
  EXPECT_TRUE(has(err(), "--state: 'done' is not one of HELD, PENDING, QUEUED")) << err();
  EXPECT_TRUE(sent_.empty());
}

TEST_F(JobChanges, WhereNobodyIsThereNeedAYes) {
  around_.in_fd = interrupts_[0];
  FakeServer server(remembering());
  EXPECT_EQ(call(server, {"jobs", "cancel", "--all"}), 2);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(JobChanges, SendOnlyWhatWasGiven) {
  FakeServer server([this](const Request& request) {
    sent_.push_back(Json::parse(request.body));
    return json_answer(R"({"changed":true,"job":{"id":"7","state":"QUEUED"}})");
  });
  EXPECT_EQ(call(server, {"jobs", "update", "7", "--time", "90s", "--label", "a=b=c"}), 0);
  EXPECT_EQ(server.requests(), (std::vector<std::string>{"POST /v1/jobs/7/update"}));
  EXPECT_EQ(sent_[0], (Json{{"spec", {{"time_limit_seconds", 90.0}, {"labels", {{"a", "b=c"}}}}}}));
}

TEST_F(JobChanges, SendWhatTheJobIsToAskFor) {
  FakeServer server([this](const Request& request) {
    if (request.body.empty()) return json_answer(R"({"id":"8","spec":{"nodes":2}})");
    sent_.push_back(Json::parse(request.body));
    return json_answer(R"({"changed":true,"job":{"id":"7","state":"QUEUED"}})");
  });
  EXPECT_EQ(call(server, {"jobs", "update", "7", "--gpus-per-node", "2", "--gpu-type",
                          "H100:1,A100:0.5", "--cpus", "none", "--memory", "2G", "--nodelist",
                          "dgx-[1-2]", "--allow-cross-numa"}),
            0);
  EXPECT_EQ(sent_[0], (Json{{"spec",
                             {{"gpus", 2},
                              {"nodelist", {"dgx-[1-2]"}},
                              {"gpu_types", {"H100", "A100"}},
                              {"gpu_speeds", {1.0, 0.5}},
                              {"memory_bytes", 2147483648},
                              {"numa", "ALLOW_CROSS"}}},
                            {"clear", {"cpus"}}}));
  EXPECT_EQ(call(server, {"jobs", "update", "7", "--gpus", "8", "--nodes", "4"}), 0);
  EXPECT_EQ(sent_[1], (Json{{"spec", {{"gpus", 2}, {"nodes", 4}}}}));
  EXPECT_EQ(call(server, {"jobs", "update", "8", "--gpus", "8", "--gpu-type", "none"}), 0);
  EXPECT_EQ(sent_[2], (Json{{"spec", {{"gpus", 4}}}, {"clear", {"gpu_types"}}}))
      << "divided among the two nodes of the job";
  EXPECT_EQ(call(server, {"jobs", "update", "8", "--gpus", "5"}), 2);
  EXPECT_TRUE(has(err(), "5 GPUs cannot be divided among 2 nodes")) << err();
}

TEST_F(JobChanges, SayThatARequeuedJobIsQueuedAgain) {
  FakeServer server([](const Request&) {
    return json_answer(R"({"changed":true,"job":{"id":"7","state":"STOPPING"}})");
  });
  EXPECT_EQ(call(server, {"jobs", "requeue", "7"}), 0);
  EXPECT_TRUE(has(err(), "job 7 is queued again")) << err();
}

TEST_F(JobChanges, ClearWhatIsToHaveNoValue) {
  FakeServer server([this](const Request& request) {
    sent_.push_back(Json::parse(request.body));
    return json_answer(R"({"changed":true,"job":{"id":"7","state":"QUEUED"}})");
  });
  EXPECT_EQ(call(server, {"jobs", "update", "7", "--deadline", "none", "--dependency", "none",
                          "--no-preemptible", "--remove-label", "a"}),
            0);
  EXPECT_EQ(sent_[0], (Json{{"spec", {{"preemptible", false}}},
                            {"clear", {"deadline", "dependency"}},
                            {"remove_labels", {"a"}}}));
  EXPECT_EQ(call(server, {"jobs", "update", "7", "--preemptible", "--no-preemptible"}), 2);
  EXPECT_TRUE(has(err(), "--no-preemptible: cannot be used together with --preemptible")) << err();
  EXPECT_EQ(call(server, {"jobs", "update", "7"}), 2);
  EXPECT_TRUE(has(err(), "nothing to change: give --gpus, ")) << err();
}

}  // namespace
}  // namespace gpu_platform::cli
