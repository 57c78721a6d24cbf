#include "api/call_context.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include <nlohmann/json.hpp>

#include "api/convert/field_selection.h"
#include "api/fake_core_test.h"
#include "api/job_calls.h"
#include "api/peers_test.h"
#include "api/planning_calls.h"
#include "api/queue_writer.h"
#include "api/reservation_calls.h"
#include "api/site_calls.h"

namespace gpu_platform::api {
namespace {

class CallsTest : public testing::Test {
 protected:
  v1::GetJobRequest of(model::JobId id) {
    v1::GetJobRequest request;
    request.set_id(std::to_string(id.value));
    return request;
  }
  base::ErrorCode stop_error(model::JobId id, const Peer& peer) {
    auto code = base::ErrorCode::kInternal;
    jobs_.act(
        std::to_string(id.value), model::JobAction::kCancel, peer, [](auto) {},
        [&](base::Result<v1::ChangeJobResponse> result) {
          if (!result) code = result.error().code;
        });
    return code;
  }
  base::Result<v1::OutputChunk> output_of(const v1::GetOutputRequest& request, const Peer& peer) {
    std::promise<base::Result<v1::OutputChunk>> answer;
    jobs_.output(
        request, peer, [](auto proceed) { proceed(); },
        [&](base::Result<v1::OutputChunk> chunk) { answer.set_value(std::move(chunk)); });
    return answer.get_future().get();
  }
  nlohmann::json list(const v1::ListJobsRequest& request, const Peer& peer,
                      const MessagePlan* fields = nullptr) {
    auto filter = to_model(request, peer.caller);
    EXPECT_TRUE(filter.has_value());
    filter->fields = fields;
    JobListWriter writer(context_.reader, peer.caller, *filter);
    EXPECT_TRUE(writer.begin().has_value());
    std::string out;
    while (*writer.append(out, 100)) {
    }
    return nlohmann::json::parse(out);
  }
  std::vector<std::string> ids(const nlohmann::json& answer) {
    std::vector<std::string> out;
    for (const auto& job : answer["jobs"]) out.push_back(job["id"]);
    return out;
  }

  FakeCore core_;
  CoreAccess access_ = core_.access();
  CallContext context_{access_, {.version = "1.2.3"}};
  JobCalls jobs_{context_};
  ReservationCalls reservations_{context_};
  SiteCalls site_{context_};
};

TEST_F(CallsTest, HideTheJobsOfOthers) {
  const model::JobId job = core_.add_job("ada", 1000);
  EXPECT_TRUE(jobs_.get(of(job), kAda).has_value());
  EXPECT_TRUE(jobs_.get(of(job), kRoot).has_value());
  const auto hidden = jobs_.get(of(job), kBob);
  const auto absent = jobs_.get(of(model::JobId(99)), kBob);
  ASSERT_FALSE(hidden.has_value());
  EXPECT_EQ(hidden.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(absent.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(stop_error(job, kBob), base::ErrorCode::kNotFound);
  EXPECT_TRUE(core_.commands().empty());
  v1::GetOutputRequest output;
  output.set_id("1");
  EXPECT_EQ(output_of(output, kBob).error().code, base::ErrorCode::kNotFound);
}

TEST_F(CallsTest, SayWhatAStartWaitsFor) {
  core_.step = "ErrImagePull: no such host";
  const auto starting = jobs_.get(of(core_.add_starting_job("ada", 1000, "torch:2")), kAda);
  EXPECT_EQ(starting->detail(), core_.step);
  const model::JobId without_image = core_.add_starting_job("ada", 1000, "");
  EXPECT_EQ(jobs_.get(of(without_image), kAda)->detail(), "");
  const model::JobId waiting = core_.add_job("ada", 1000);
  EXPECT_EQ(jobs_.get(of(waiting), kAda)->detail(), "");
}

TEST_F(CallsTest, HideEndedJobsOfOthersToo) {
  const model::JobId job = core_.add_job("ada", 1000);
  core_.start_job(job);
  core_.end_job(job, 0);
  EXPECT_TRUE(jobs_.get(of(job), kAda).has_value());
  EXPECT_FALSE(jobs_.get(of(job), kBob).has_value());
  v1::ListJobsRequest everything;
  everything.set_all(true);
  EXPECT_TRUE(ids(list(everything, kBob)).empty());
  everything.set_user("ada");
  EXPECT_TRUE(ids(list(everything, kBob)).empty());
  EXPECT_EQ(ids(list(everything, kRoot)), std::vector<std::string>{"1"});
}

TEST_F(CallsTest, LetOnlyAnAdministratorSubmitForOthers) {
  v1::SubmitJobRequest request;
  request.mutable_spec()->add_command("true");
  request.mutable_spec()->set_user("root");
  std::optional<base::Error> error;
  const auto note = [&](base::Result<Created<v1::Job>> result) {
    if (!result) error = result.error();
  };
  jobs_.submit(request, kAda, [](auto) {}, note);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(error->field, "user");
  request.mutable_spec()->set_user("no-such-user-here");
  std::promise<base::Result<Created<v1::Job>>> answer;
  jobs_.submit(
      request, kRoot, [](auto proceed) { proceed(); },
      [&](base::Result<Created<v1::Job>> result) { answer.set_value(std::move(result)); });
  const auto refused = answer.get_future().get();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(refused.error().field, "user");
}

TEST_F(CallsTest, RefuseATeamWhereThereIsNoneExceptForSlurmsAccounts) {
  v1::SubmitJobRequest request;
  request.mutable_spec()->add_command("/bin/true");
  request.mutable_spec()->set_team("foo");
  std::optional<base::Error> error;
  const auto note = [&](base::Result<Created<v1::Job>> result) {
    error.reset();
    if (!result) error = result.error();
  };
  jobs_.submit(request, kAda, [](auto) {}, note);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->field, "team");
  EXPECT_EQ(error->code, base::ErrorCode::kNotFound);
  EXPECT_NE(error->message.find("there is no team 'foo'"), std::string::npos);
  EXPECT_TRUE(core_.commands().empty());
  (*request.mutable_spec()->mutable_labels())["slurm.partition"] = "gpu";
  jobs_.submit(request, kAda, [](auto) {}, note);
  EXPECT_EQ(core_.commands().size(), 1U);
}

TEST_F(CallsTest, RefuseJobsOfOthersWhereTheDaemonCannotStartThem) {
  const CallContext only_ada(access_, {.version = "1.2.3", .only_uid = kAda.caller.uid});
  const JobCalls own(only_ada);
  v1::SubmitJobRequest request;
  request.mutable_spec()->add_command("true");
  for (const Peer& peer : {kBob, kRoot}) {
    std::optional<base::Error> refused;
    own.submit(
        request, peer, [](auto work) { work(); },
        [&](base::Result<Created<v1::Job>> result) {
          if (!result) refused = result.error();
        });
    ASSERT_TRUE(refused.has_value()) << peer.caller.user;
    EXPECT_EQ(refused->code, base::ErrorCode::kPermissionDenied);
    EXPECT_EQ(refused->field, "user");
    EXPECT_NE(refused->message.find("runs as user id 1000"), std::string::npos);
  }
  std::promise<base::Result<Created<v1::Job>>> answer;
  own.submit(
      request, kAda, [](auto work) { work(); },
      [&](base::Result<Created<v1::Job>> result) { answer.set_value(std::move(result)); });
  const auto accepted = answer.get_future().get();
  EXPECT_TRUE(accepted) << accepted.error().message;
}

TEST_F(CallsTest, ListNewestFirstFromBothPlaces) {
  for (int i = 0; i < 4; ++i) core_.add_job("ada", 1000);
  core_.add_job("bob", 1001);
  core_.start_job(model::JobId(2));
  core_.end_job(model::JobId(2), 0);
  core_.start_job(model::JobId(3));
  v1::ListJobsRequest request;
  EXPECT_EQ(ids(list(request, kAda)), (std::vector<std::string>{"4", "3", "1"}));
  request.set_all(true);
  EXPECT_EQ(ids(list(request, kAda)), (std::vector<std::string>{"4", "3", "2", "1"}));
  EXPECT_EQ(ids(list(request, kRoot)), (std::vector<std::string>{"5", "4", "3", "2", "1"}));
  request.add_state(v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(ids(list(request, kAda)), std::vector<std::string>{"2"});
  request.clear_all();
  EXPECT_EQ(ids(list(request, kAda)), std::vector<std::string>{"2"});
}

// What is not asked for is not made either: what is asked for must not miss it.
TEST_F(CallsTest, ListEachFieldAloneAsInTheWholeList) {
  const model::JobId done = core_.add_job_with_output("ada", 1000, "/out");
  const model::JobId running = core_.add_job("ada", 1000);
  core_.add_job("ada", 1000);
  core_.start_job(done, {0});
  core_.end_job(done, 3);
  core_.start_job(running, {1});
  v1::ListJobsRequest request;
  request.set_all(true);
  request.set_steps(true);
  for (const Peer& peer : {kAda, kRoot}) {
    const auto whole = list(request, peer)["jobs"];
    ASSERT_EQ(whole.size(), 3U);
    ASSERT_TRUE(whole[0]["wait_reason"].is_object());
    for (const auto& [name, value] : whole[0].items()) {
      const auto selection =
          FieldSelection::parse("jobs." + name, *v1::ListJobsResponse::descriptor());
      ASSERT_TRUE(selection.has_value()) << name;
      const auto jobs = list(request, peer, selection->plan_of_field("jobs"))["jobs"];
      ASSERT_EQ(jobs.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(jobs[i], (nlohmann::json{{name, whole[i][name]}}));
      }
    }
  }
}

TEST_F(CallsTest, ListByEveryFilter) {
  core_.add_job("ada", 1000, "first");
  core_.add_job("ada", 1000, "second");
  v1::ListJobsRequest by_name;
  by_name.set_name("second");
  EXPECT_EQ(ids(list(by_name, kAda)), std::vector<std::string>{"2"});
  v1::ListJobsRequest by_label;
  by_label.add_label("run=7");
  EXPECT_EQ(ids(list(by_label, kAda)).size(), 2U);
  by_label.add_label("run=8");
  EXPECT_TRUE(ids(list(by_label, kAda)).empty());
  v1::ListJobsRequest by_pattern;
  by_pattern.set_name_pattern("f*t");
  EXPECT_EQ(ids(list(by_pattern, kAda)), std::vector<std::string>{"1"});
  v1::ListJobsRequest by_team;
  by_team.set_team("none");
  EXPECT_TRUE(ids(list(by_team, kAda)).empty());
}

TEST_F(CallsTest, ListTheJobsThatWereOnANode) {
  const model::JobId done = core_.add_job("ada", 1000);
  core_.add_job("ada", 1000);
  core_.start_job(done, {0});
  core_.end_job(done, 0);
  v1::ListJobsRequest request;
  request.set_node("dgx-h100-1");
  EXPECT_TRUE(ids(list(request, kAda)).empty());
  request.set_ended(true);
  EXPECT_EQ(ids(list(request, kAda)), std::vector<std::string>{"1"});
  request.set_node("dgx-h100-2");
  EXPECT_TRUE(ids(list(request, kAda)).empty());
}

TEST_F(CallsTest, ListWhatWasSubmittedUntilATime) {
  core_.add_job("ada", 1000);
  const auto job = core_.snapshot()->jobs.find(1);
  v1::ListJobsRequest request;
  to_proto(job->submitted_at, *request.mutable_until());
  EXPECT_TRUE(ids(list(request, kAda)).empty());
  to_proto(job->submitted_at + base::seconds(1), *request.mutable_until());
  EXPECT_EQ(ids(list(request, kAda)).size(), 1U);
}

TEST_F(CallsTest, ListATeamOfAllUsersThatTheCallerMaySee) {
  core_.add_job("ada", 1000);
  core_.add_job("bob", 1001);
  v1::ListJobsRequest request;
  request.set_team("");
  EXPECT_EQ(ids(list(request, kRoot)), (std::vector<std::string>{"2", "1"}));
  EXPECT_EQ(ids(list(request, kAda)), std::vector<std::string>{"1"});
}

TEST_F(CallsTest, RefuseAReservationForAUserWhoDoesNotExist) {
  v1::CreateReservationRequest request;
  request.set_name("course");
  request.set_gpus(1);
  request.add_users("root");
  request.add_users("no-such-user-here");
  std::promise<base::Result<v1::Reservation>> answer;
  reservations_.create(
      request, kRoot, [](auto proceed) { proceed(); },
      [&](base::Result<v1::Reservation> result) { answer.set_value(std::move(result)); });
  const auto refused = answer.get_future().get();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "users");
  EXPECT_NE(refused.error().message.find("no-such-user-here"), std::string::npos);
  EXPECT_TRUE(core_.commands().empty());
}

TEST_F(CallsTest, RefuseAChangeOfAReservationForAUserWhoDoesNotExist) {
  v1::UpdateReservationRequest request;
  request.set_name("course");
  request.add_users("no-such-user-here");
  std::promise<base::Result<v1::Reservation>> answer;
  reservations_.update(
      request, kRoot, [](auto proceed) { proceed(); },
      [&](base::Result<v1::Reservation> result) { answer.set_value(std::move(result)); });
  const auto refused = answer.get_future().get();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "users");
  EXPECT_TRUE(core_.commands().empty());
}

TEST_F(CallsTest, ListInPagesThatMissNothing) {
  for (int i = 0; i < 7; ++i) core_.add_job("ada", 1000);
  for (const int ended : {2, 5, 6}) {
    core_.start_job(model::JobId(static_cast<std::uint64_t>(ended)));
    core_.end_job(model::JobId(static_cast<std::uint64_t>(ended)), 0);
  }
  v1::ListJobsRequest request;
  request.set_all(true);
  request.set_limit(2);
  std::vector<std::string> seen;
  int pages = 0;
  for (;; ++pages) {
    const auto page = list(request, kAda);
    for (const std::string& id : ids(page)) seen.push_back(id);
    if (page["next_page"].is_null()) break;
    request.set_page_token(page["next_page"].get<std::string>());
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"7", "6", "5", "4", "3", "2", "1"}));
  EXPECT_EQ(pages, 3);
}

TEST_F(CallsTest, LeaveOutJobsThatEndedBeforeATime) {
  core_.add_job("ada", 1000);
  core_.add_job("ada", 1000);
  core_.start_job(model::JobId(1));
  core_.end_job(model::JobId(1), 0);
  v1::ListJobsRequest request;
  request.set_all(true);
  request.mutable_since()->set_seconds(4'000'000'000);
  EXPECT_EQ(ids(list(request, kAda)), std::vector<std::string>{"2"});
}

TEST_F(CallsTest, GiveOutputByPieces) {
  const model::JobId job = core_.add_job("ada", 1000);
  v1::GetOutputRequest request;
  request.set_id("1");
  auto chunk = output_of(request, kAda);
  ASSERT_TRUE(chunk.has_value());
  EXPECT_EQ(chunk->attempt(), 0U);
  EXPECT_FALSE(chunk->ended());
  core_.start_job(job);
  core_.print(job, "hello world");
  request.set_limit(5);
  chunk = output_of(request, kAda);
  EXPECT_EQ(chunk->data(), "hello");
  EXPECT_EQ(chunk->next_offset(), 5U);
  core_.end_job(job, 0);
  request.set_offset(5);
  request.set_limit(100);
  chunk = output_of(request, kAda);
  EXPECT_EQ(chunk->data(), " world");
  EXPECT_TRUE(chunk->ended());
  request.set_attempt(2);
  EXPECT_EQ(output_of(request, kAda).error().field, "attempt");
}

TEST_F(CallsTest, WaitForNoFileOfAUsers) {
  const model::JobId job = core_.add_job_with_output("ada", 1000, "/net/gone/out");
  core_.start_job(job);
  core_.print(job, "hello");
  std::promise<void> asked;
  std::promise<void> server_is_back;
  std::once_flag once;
  core_.users_disk = [&, back = server_is_back.get_future().share()] {
    std::call_once(once, [&] { asked.set_value(); });
    back.wait();
  };
  v1::GetOutputRequest request;
  request.set_id("1");
  std::promise<std::string> answer;
  jobs_.output(
      request, kAda, [](auto proceed) { proceed(); },
      [&](base::Result<v1::OutputChunk> chunk) { answer.set_value(chunk->data()); });
  asked.get_future().wait();  // this thread came back while the file hangs
  core_.users_disk = nullptr;
  server_is_back.set_value();
  EXPECT_EQ(answer.get_future().get(), "hello");
}

TEST_F(CallsTest, DoNothingByNameForACallerWhoseNameIsNotKnown) {
  Peer unnamed = kAda;
  unnamed.caller.user = "1000";
  unnamed.is_name_known = false;
  const model::JobId job = core_.add_job("ada", 1000);
  const auto refused = check_named(unnamed);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUnavailable);
  EXPECT_NE(refused.error().message.find("try again"), std::string::npos);
  v1::SubmitJobRequest submission;
  submission.mutable_spec()->add_command("/bin/true");
  auto code = base::ErrorCode::kInternal;
  jobs_.submit(
      submission, unnamed, [](auto) {},
      [&](base::Result<Created<v1::Job>> result) { code = result.error().code; });
  EXPECT_EQ(code, base::ErrorCode::kUnavailable);
  code = base::ErrorCode::kInternal;
  jobs_.act_on_many(
      {}, unnamed, [](auto) {},
      [&](base::Result<v1::ActOnJobsResponse> result) { code = result.error().code; });
  EXPECT_EQ(code, base::ErrorCode::kUnavailable);
  EXPECT_TRUE(core_.commands().empty());
  EXPECT_TRUE(jobs_.get(of(job), unnamed).has_value()) << "by number they are who they are";
}

TEST_F(CallsTest, ShowTheQueueFromItsHead) {
  core_.add_job("ada", 1000);
  core_.add_job("bob", 1001);
  core_.add_job("ada", 1000);
  const auto queue = [&](const Peer& peer, const v1::GetQueueRequest& request) {
    QueueWriter writer =
        QueueWriter::open(context_.reader, peer.caller, request, 1'000'000).value();
    std::string out;
    while (writer.append(out, 1)) writer.rest();
    return nlohmann::json::parse(out);
  };
  v1::GetQueueRequest request;
  const auto mine = queue(kAda, request);
  ASSERT_EQ(mine["jobs"].size(), 2U);
  EXPECT_EQ(mine["jobs"][0]["id"], "1");
  EXPECT_EQ(mine["jobs"][0]["queue_position"], 1);
  EXPECT_EQ(mine["jobs"][1]["queue_position"], 3);
  EXPECT_FALSE(mine["jobs"][1]["wait_reason"].is_null());
  request.set_all(true);
  request.set_limit(1);
  const auto all = queue(kRoot, request);
  EXPECT_EQ(all["jobs"].size(), 1U);
  EXPECT_EQ(all["total"], 3);
  EXPECT_EQ(all["hidden"], 0);
  EXPECT_TRUE(all["scores"].empty());
  // The second page begins behind the last job of the first, also if that has left the queue.
  request.set_page_token(all["next_page"].get<std::string>());
  request.set_limit(2);
  const auto second = queue(kRoot, request);
  EXPECT_EQ(second["jobs"][0]["id"], "2");
  EXPECT_EQ(second["jobs"][1]["id"], "3");
  EXPECT_EQ(second["total"], 3);
  EXPECT_TRUE(second["next_page"].is_null());
  request.set_page_token("1.77");
  EXPECT_EQ(queue(kRoot, request)["jobs"][0]["id"], "1");
  request.set_page_token("77.77");
  EXPECT_TRUE(queue(kRoot, request)["jobs"].empty());
  request.set_page_token("next");
  EXPECT_EQ(QueueWriter::open(context_.reader, kRoot.caller, request, 1).error().field,
            "page_token");
}

TEST_F(CallsTest, AnotherUsersJobThatIsNotShownIsCountedAndNotNamed) {
  core_.add_job("bob", 1001);
  core_.add_job("ada", 1000);
  v1::GetQueueRequest request;
  request.set_all(true);
  QueueWriter writer = QueueWriter::open(context_.reader, kAda.caller, request, 1'000'000).value();
  std::string out;
  while (writer.append(out, 1)) writer.rest();
  const auto queue = nlohmann::json::parse(out);
  EXPECT_EQ(queue["total"], 1);
  EXPECT_EQ(queue["hidden"], 1);
  v1::ExplainJobRequest about;
  about.set_id("2");
  const auto explanation = PlanningCalls(context_).explain(about, kAda);
  ASSERT_TRUE(explanation) << explanation.error().message;
  EXPECT_EQ(explanation->jobs_ahead(), 1U);
  EXPECT_EQ(explanation->hidden_ahead(), 1U);
  EXPECT_TRUE(explanation->first_ahead().empty());
  EXPECT_TRUE(explanation->job().wait_reason().blocked_by().empty());
  EXPECT_EQ(explanation->job().wait_reason().text().find("the first"), std::string::npos);
  const auto of_root = PlanningCalls(context_).explain(about, kRoot);
  ASSERT_TRUE(of_root) << of_root.error().message;
  EXPECT_EQ(of_root->first_ahead_size(), 1);
  EXPECT_EQ(of_root->hidden_ahead(), 0U);
}

// A page that ends for its size says where to go on, too.
TEST_F(CallsTest, APageOfTheQueueThatIsFullNamesTheNext) {
  for (int i = 0; i < 3; ++i) core_.add_job("ada", 1000);
  v1::GetQueueRequest request;
  std::vector<std::string> seen;
  for (int page = 0; page < 3; ++page) {
    QueueWriter writer = QueueWriter::open(context_.reader, kAda.caller, request, 1).value();
    std::string out;
    while (writer.append(out, 1)) continue;
    const auto answer = nlohmann::json::parse(out);
    ASSERT_EQ(answer["jobs"].size(), 1U);
    seen.push_back(answer["jobs"][0]["id"]);
    if (page < 2) request.set_page_token(answer["next_page"].get<std::string>());
    EXPECT_EQ(answer["next_page"].is_null(), page == 2);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"1", "2", "3"}));
}

TEST_F(CallsTest, TakeNoSubmissionOfWhoeverHasNoAccount) {
  Peer unmanaged_process = kAda;
  unmanaged_process.has_account = false;
  v1::SubmitJobRequest request;
  request.mutable_spec()->add_command("true");
  std::optional<base::Error> refused;
  jobs_.submit(
      request, unmanaged_process, [](auto work) { work(); },
      [&](base::Result<Created<v1::Job>> result) {
        if (!result) refused = result.error();
      });
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code, base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(refused->field, "user");
  EXPECT_NE(refused->message.find("uid 1000 has no account"), std::string::npos);
}

TEST_F(CallsTest, AreNotReadyWhenTheCoreIsNot) {
  EXPECT_TRUE(site_.readiness().has_value());
  access_.readiness = [] { return base::fail(base::ErrorCode::kResourceExhausted, "disk full"); };
  const auto refused = site_.readiness();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace gpu_platform::api
