#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/convert/audit.h"
#include "api/convert/cluster.h"
#include "api/convert/enums.h"
#include "api/convert/field_plan.h"
#include "api/convert/job.h"
#include "api/convert/json_writer.h"
#include "api/convert/problem.h"
#include "api/convert/reservation.h"
#include "api/convert/token.h"
#include "base/letters.h"
#include "model/job_spec.h"

namespace gpu_platform::api {
namespace {

using nlohmann::json;

Nodes one_node() {
  model::Node node;
  node.id = model::NodeId(1);
  node.name = "n1";
  node.cpus = 64;
  model::Gpu gpu;
  gpu.info.uuid = "GPU-a";
  gpu.info.model = "NVIDIA Quadro X";
  gpu.info.type = "NVIDIA Quadro X";
  gpu.info.memory = base::kGiB * 24;
  node.gpus = {gpu, gpu};
  Nodes nodes;
  nodes.put(1, node);
  return nodes;
}

const Account kAda{"ada", 1000, 100};

v1::JobSpec request() {
  v1::JobSpec out;
  out.add_command("/usr/bin/python3");
  return out;
}

// ---- reservations ----

TEST(Reservations, CountGpusThatJobsUseAsInService) {
  model::Node node;
  node.id = model::NodeId(1);
  node.state = model::NodeState::kUp;
  for (const auto state : {model::GpuState::kAvailable, model::GpuState::kInUse,
                           model::GpuState::kCleaning, model::GpuState::kOffline}) {
    node.gpus.emplace_back();
    node.gpus.back().state = state;
  }
  Nodes nodes;
  nodes.put(1, node);
  model::Reservation reservation;
  reservation.parts = {{.node = node.id, .gpus = 0b1111}};
  v1::Reservation out;
  to_proto(reservation, nodes, base::Instant(), out);
  EXPECT_EQ(out.gpus_in_service(), 3U);
}

// ---- tokens ----

TEST(Tokens, OfMessagesHaveNoEndOnlyWhereNoneIsGiven) {
  v1::CreateTokenRequest message;
  message.set_name("laptop");
  EXPECT_FALSE(to_model(message).expires_at.is_set());
  EXPECT_FALSE(to_model(message).role);
  message.mutable_expires_at()->set_seconds(0);
  EXPECT_TRUE(to_model(message).expires_at.is_set()) << "the beginning of 1970 is over, not absent";
  message.set_role(v1::TOKEN_ROLE_OPERATOR);
  EXPECT_EQ(to_model(message).role, model::Role::kOperator);
}

// ---- names ----

template <class ModelEnum>
void expect_same_names(const google::protobuf::Message& message, const char* field, int count) {
  const FieldPlan* plan = plan_of(*message.GetDescriptor()).find(field);
  ASSERT_NE(plan, nullptr);
  for (int i = 0; i < count; ++i) {
    const auto value = static_cast<ModelEnum>(i);
    EXPECT_EQ(enum_name(*plan, static_cast<int>(to_proto(value))), model::to_string(value));
  }
}

TEST(Enums, HaveTheModelsNames) {
  const v1::Job job;
  const v1::Attempt attempt;
  expect_same_names<model::JobState>(job, "state", model::kJobStates);
  expect_same_names<model::JobKind>(v1::JobSpec(), "kind", 4);
  expect_same_names<model::EndReason>(job, "reason", model::kEndReasons);
  expect_same_names<model::Lost>(job, "lost", 3);
  expect_same_names<model::AttemptState>(attempt, "state", model::kAttemptStates);
  expect_same_names<model::StartWhy>(attempt, "why", 3);
  expect_same_names<model::GpuState>(v1::Gpu(), "state", model::kGpuStates);
  expect_same_names<model::NodeState>(v1::Node(), "state", model::kNodeStates);
}

// In capitals, and back.
template <class ModelEnum>
void expect_upper_names(const google::protobuf::Message& message, const char* field,
                        std::size_t count) {
  const FieldPlan* plan = plan_of(*message.GetDescriptor()).find(field);
  ASSERT_NE(plan, nullptr);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<ModelEnum>(i);
    EXPECT_EQ(base::to_lower(enum_name(*plan, static_cast<int>(to_proto(value)))),
              model::to_string(value));
    EXPECT_EQ(to_model(to_proto(value)), value);
  }
}

TEST(Enums, WhoseNamesInTheModelAreSmallHaveThemInCapitals) {
  expect_upper_names<model::Repeat>(v1::Reservation(), "repeat", model::kRepeats);
  expect_upper_names<model::Role>(v1::Token(), "role", model::kRoles);
  expect_upper_names<model::AuditAction>(v1::AuditEntry(), "action", model::kAuditActions);
}

TEST(Enums, GoThereAndBack) {
  for (std::size_t i = 0; i < model::kJobStates; ++i) {
    const auto state = static_cast<model::JobState>(i);
    EXPECT_EQ(to_model(to_proto(state)), state);
  }
}

// ---- submissions ----

TEST(Submission, TakesDefaults) {
  const auto submit = to_model(request(), kAda, one_node());
  ASSERT_TRUE(submit.has_value()) << submit.error().message;
  const model::JobSpec& spec = submit->spec;
  EXPECT_EQ(spec.name, "python3");
  EXPECT_EQ(spec.user, "ada");
  EXPECT_EQ(spec.uid, 1000U);
  EXPECT_EQ(spec.gid, 100U);
  EXPECT_EQ(spec.priority, model::priority_of_class(model::PriorityClass::kMedium));
  EXPECT_EQ(spec.kind, model::JobKind::kBatch);
  EXPECT_EQ(spec.workdir, "/");
  EXPECT_EQ(spec.output, "");
  EXPECT_EQ(spec.umask, 022U);
  EXPECT_EQ(spec.request, model::ResourceRequest());
  EXPECT_EQ(spec.time_limit, base::Duration());
  EXPECT_EQ(submit->environment, "");
}

TEST(Submission, TakesEveryField) {
  v1::JobSpec message = request();
  message.set_name("n");
  message.set_team("t");
  message.set_project("p");
  message.set_priority("high");
  message.set_kind(v1::JOB_KIND_TRAINING);
  message.set_workdir("/home/ada");
  message.set_output("out/log");
  (*message.mutable_environment())["B"] = "2";
  (*message.mutable_environment())["A"] = "";
  message.set_umask(0);
  message.set_gpus(2);
  message.add_gpu_types("h100_80gb");
  message.add_gpu_types("a100");
  message.add_gpu_types("A100");
  message.set_gpu_memory_bytes(1 << 30);
  message.set_cpus(4);
  message.set_memory_bytes(1 << 20);
  message.set_time_limit_seconds(1.5);
  message.set_retries(3);
  (*message.mutable_labels())["z"] = "1";
  (*message.mutable_labels())["a"] = "2";
  message.set_request_id("once");
  const auto submit = to_model(message, kAda, one_node());
  ASSERT_TRUE(submit.has_value()) << submit.error().message;
  const model::JobSpec& spec = submit->spec;
  EXPECT_EQ(spec.priority.priority_class, model::PriorityClass::kHigh);
  EXPECT_EQ(spec.kind, model::JobKind::kTraining);
  EXPECT_EQ(spec.output, "/home/ada/out/log");
  EXPECT_EQ(submit->environment, std::string("A=\0B=2\0", 7));
  EXPECT_EQ(spec.umask, 0U);
  EXPECT_EQ(spec.request.gpus, 2U);
  EXPECT_EQ(spec.request.gpu_types, (std::vector<std::string>{"H100-80GB", "A100"}));
  EXPECT_EQ(spec.request.gpu_memory, base::kGiB);
  EXPECT_EQ(spec.request.cpus, 4U);
  EXPECT_EQ(spec.request.memory, base::kMiB);
  EXPECT_EQ(spec.time_limit, base::milliseconds(1500));
  EXPECT_EQ(spec.retries, 3U);
  EXPECT_EQ(spec.labels, (std::vector<model::Label>{{"a", "2"}, {"z", "1"}}));
  EXPECT_EQ(spec.request_id, "once");
}

TEST(Submission, TellsAnAddressOfPrintableCharactersWithoutBlanks) {
  v1::JobSpec message = request();
  message.add_notify(v1::NOTIFY_ON_END);
  for (const char* address :
       {"ada@example.org", "https://hooks.example.org/T0/B1?x=1&y=%20", "#ml"}) {
    message.set_notify_to(address);
    const auto submit = to_model(message, kAda, one_node());
    ASSERT_TRUE(submit.has_value()) << submit.error().message;
    EXPECT_EQ(submit->spec.notify_to, address);
  }
  for (const std::string& address :
       {std::string(), std::string("a b"), std::string("a\nb"), std::string("a\0b", 3),
        std::string("-oQ/tmp"), std::string("ad\u00e4"), std::string(257, 'a')}) {
    message.set_notify_to(address);
    const auto refused = to_model(message, kAda, one_node());
    ASSERT_FALSE(refused.has_value()) << address;
    EXPECT_EQ(refused.error().field, "notify_to") << address;
  }
}

TEST(Submission, ATerminalTakesInputAndHasASize) {
  v1::JobSpec message = request();
  message.set_terminal(true);
  message.set_columns(132);
  message.set_idle_timeout_seconds(0);
  const auto submit = to_model(message, kAda, one_node());
  ASSERT_TRUE(submit.has_value()) << submit.error().message;
  EXPECT_TRUE(submit->spec.takes_input);
  EXPECT_EQ(submit->spec.terminal, (model::TerminalSize{132, 24}));
  EXPECT_EQ(submit->spec.idle_timeout, base::Duration()) << "asked for, so not the site's";
}

TEST(Submission, WhatDoesNotGoWithATerminalOrInputIsNamed) {
  const auto field_refused = [](auto set) {
    v1::JobSpec message = request();
    set(message);
    const auto submit = to_model(message, kAda, one_node());
    return submit ? std::string() : submit.error().field;
  };
  using Message = v1::JobSpec;
  const auto terminal_with = [&](auto set) {
    return field_refused([&](Message& m) {
      m.set_terminal(true);
      set(m);
    });
  };
  EXPECT_EQ(terminal_with([](Message& m) { m.set_output("/out"); }), "output");
  EXPECT_EQ(terminal_with([](Message& m) { m.set_error("/err"); }), "error");
  EXPECT_EQ(terminal_with([](Message& m) { m.set_retries(1); }), "");
  EXPECT_EQ(field_refused([](Message& m) { m.set_rows(5); }), "columns");
  EXPECT_EQ(field_refused([](Message& m) { m.set_idle_timeout_seconds(5); }),
            "idle_timeout_seconds");
  EXPECT_EQ(field_refused([](Message& m) {
              m.set_takes_input(true);
              m.set_output("/out");
              m.set_idle_timeout_seconds(5);
            }),
            "idle_timeout_seconds");
  EXPECT_EQ(field_refused([](Message& m) {
              m.set_takes_input(true);
              m.set_retries(1);
            }),
            "retries");
}

TEST(Submission, KnowsATypeThatOnlyTheClusterHas) {
  v1::JobSpec message = request();
  message.set_gpus(1);
  message.add_gpu_types("nvidia-quadro-x");
  const auto known = to_model(message, kAda, one_node());
  ASSERT_TRUE(known.has_value()) << known.error().message;
  EXPECT_EQ(known->spec.request.gpu_types, std::vector<std::string>{"NVIDIA Quadro X"});
  const auto unknown = to_model(message, kAda, Nodes());
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().field, "gpu_types[0]");
}

TEST(Submission, CountsCommandAndEnvironmentTogether) {
  v1::JobSpec message;
  message.add_command(std::string(kMaxCommandAndEnvironmentBytes / 2, 'c'));
  const std::size_t used = kMaxCommandAndEnvironmentBytes / 2 + 1;
  // "A=", the value and its end.
  const std::size_t fits = kMaxCommandAndEnvironmentBytes - used - 3;
  (*message.mutable_environment())["A"] = std::string(fits, 'e');
  EXPECT_TRUE(to_model(message, kAda, Nodes()).has_value());
  (*message.mutable_environment())["A"] = std::string(fits + 1, 'e');
  const auto refused = to_model(message, kAda, Nodes());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "command");
}

TEST(Submission, ReadsPrioritiesInEverySpelling) {
  const auto priority = [](std::string_view text) {
    v1::JobSpec message = request();
    message.set_priority(std::string(text));
    const auto submit = to_model(message, kAda, Nodes());
    return submit ? std::optional(submit->spec.priority) : std::nullopt;
  };
  EXPECT_EQ(priority("0"), model::priority_of_number(0));
  EXPECT_EQ(priority("9"), model::priority_of_number(9));
  EXPECT_EQ(priority("Low"), model::priority_of_class(model::PriorityClass::kLow));
  for (const char* text : {"10", "-1", " 1", "lowest", "hig"})
    EXPECT_EQ(priority(text), std::nullopt);
}

TEST(Submission, RefusesNulWhereverItCouldSplitAString) {
  const std::string nul("a\0b", 3);
  v1::JobSpec in_value = request();
  (*in_value.mutable_environment())["A"] = nul;
  v1::JobSpec in_name = request();
  (*in_name.mutable_environment())[nul] = "x";
  v1::JobSpec in_command = request();
  in_command.add_command(nul);
  for (const auto& message : {in_value, in_name, in_command}) {
    EXPECT_FALSE(to_model(message, kAda, Nodes()).has_value());
  }
}

TEST(Submission, CutsALongDefaultNameBetweenCharacters) {
  v1::JobSpec message;
  std::string program = "/bin/x";
  for (int i = 0; i < 200; ++i) program += "ä";
  message.add_command(program);
  const auto submit = to_model(message, kAda, Nodes());
  ASSERT_TRUE(submit.has_value());
  EXPECT_EQ(submit->spec.name.size(), 255U);
  EXPECT_TRUE(submit->spec.name.ends_with("ä"));
}

// ---- jobs ----

model::Job running_job() {
  model::Job job;
  job.id = model::JobId(42);
  model::JobSpec spec;
  spec.name = "work";
  spec.user = "ada";
  spec.command = {"work"};
  spec.time_limit = base::milliseconds(1500);
  spec.request.gpus = 1;
  job.spec = std::make_shared<const model::JobSpec>(spec);
  job.state = model::JobState::kRunning;
  job.submitted_at = base::Instant(1'000'000'000);
  model::Attempt attempt;
  attempt.number = 1;
  attempt.state = model::AttemptState::kRunning;
  attempt.allocation.nodes = {
      {model::NodeId(1), {{1, base::GpuShare(3500), base::kGiB}}, 8, base::kGiB}};
  attempt.started_at = base::Instant(2'000'000'000);
  job.attempts = {attempt};
  return job;
}

json as_json(const model::Job& job, const Nodes& nodes) {
  v1::Job out;
  to_proto(job, nodes, out);
  return json::parse(to_json(out));
}

TEST(Jobs, ShowWhatTheLatestAttemptHas) {
  const json job = as_json(running_job(), one_node());
  EXPECT_EQ(job["state"], "RUNNING");
  EXPECT_EQ(job["spec"]["time_limit_seconds"], 1.5);
  EXPECT_EQ(job["started_at"], "1970-01-01T00:00:02.000Z");
  EXPECT_EQ(job["gpus"], json::array({{{"node", "n1"},
                                       {"index", 1},
                                       {"uuid", "GPU-a"},
                                       {"model", "NVIDIA Quadro X"},
                                       {"share", 0.5},
                                       {"memory_bytes", 1'073'741'824},
                                       {"mode", "NONE"},
                                       {"memory_rung", "HARDWARE"},
                                       {"compute_rung", "HARDWARE"},
                                       {"link", nullptr}}}));
  EXPECT_EQ(job["cpus"], 8);
  EXPECT_EQ(job["attempt"], 1);
  EXPECT_TRUE(job["exit_code"].is_null());
}

TEST(Jobs, KeepGpusAndExitAfterTheEnd) {
  model::Job ended = running_job();
  ended.state = model::JobState::kFailed;
  ended.attempts[0].exit.signal = 9;
  ended.attempts[0].ended_at = base::Instant(3'000'000'000);
  ended.attempts[0].reason = model::EndReason::kTimeLimit;
  ended.reason = model::EndReason::kTimeLimit;
  const json job = as_json(ended, one_node());
  EXPECT_EQ(job["gpus"].size(), 1U);
  EXPECT_EQ(job["signal"], "SIGKILL");
  EXPECT_TRUE(job["exit_code"].is_null());
  EXPECT_TRUE(job["lost"].is_null());
  EXPECT_EQ(job["reason"], "TIME_LIMIT");
  EXPECT_EQ(job["attempts"][0]["cpu_time_seconds"], 0);
}

TEST(Jobs, ShowNothingOfAnEarlierAttemptWhileTheyWait) {
  model::Job waiting = running_job();
  waiting.state = model::JobState::kQueued;
  waiting.attempts[0].exit.code = 1;
  waiting.attempts[0].ended_at = base::Instant(3'000'000'000);
  const json job = as_json(waiting, one_node());
  EXPECT_EQ(job["gpus"], json::array());
  EXPECT_TRUE(job["exit_code"].is_null());
  EXPECT_TRUE(job["started_at"].is_null());
  EXPECT_EQ(job["attempts"][0]["exit_code"], 1);
}

TEST(Jobs, NameGpusOfANodeThatIsGone) {
  const json job = as_json(running_job(), Nodes());
  EXPECT_EQ(job["gpus"][0]["node"], "node-1");
  EXPECT_TRUE(job["gpus"][0]["uuid"].is_null());
}

TEST(Jobs, ExplainWhyTheyWait) {
  model::WaitReason reason;
  reason.code = model::WaitCode::kNoCapacity;
  reason.counts = {{model::Shortage::kGpus, 2, 4}, {model::Shortage::kNodeState, 1, 0}};
  reason.jobs_ahead = 3;
  reason.blocked_by = model::JobId(7);
  v1::WaitReason out;
  to_proto(reason, out);
  const json document = json::parse(to_json(out));
  EXPECT_EQ(document["code"], "NO_CAPACITY");
  EXPECT_EQ(document["text"], model::describe(reason));
  const std::string gpus(model::to_string(model::Shortage::kGpus));
  EXPECT_EQ(document["counts"][gpus], 2);
  EXPECT_EQ(document["short_by"][gpus], 4);
  EXPECT_EQ(document["counts"]["jobs_ahead"], 3);
  EXPECT_EQ(document["blocked_by"], "7");
}

TEST(JobIds, AreDecimalNumbersFromOne) {
  EXPECT_EQ(to_job_id("42"), model::JobId(42));
  for (const char* id : {"", "0", "-1", "4x", " 4", "0x4", "18446744073709551616"}) {
    EXPECT_FALSE(to_job_id(id).has_value()) << id;
  }
}

// ---- the cluster ----

TEST(Status, CountsOnlyGpusThatCanTakeWork) {
  Nodes nodes = one_node();
  nodes.find_mutable(1)->gpus[0].holders = {
      {{model::JobId(5), 1}, base::GpuShare(3500), base::kGiB},
      {{model::JobId(6), 1}, base::GpuShare(3500), base::kGiB}};
  model::Node down = *nodes.find(1);
  down.id = model::NodeId(2);
  down.name = "n2";
  down.state = model::NodeState::kLost;
  down.gpus[0].holders.clear();
  nodes.put(2, down);
  v1::Status out;
  to_proto(nodes, [](std::string_view) { return nullptr; }, out);
  EXPECT_EQ(out.total_gpus(), 4U);
  EXPECT_EQ(out.available_gpus(), 1U);
  EXPECT_EQ(out.utilization(), 0.25);
  EXPECT_EQ(out.gpus(0).jobs_size(), 2);
  EXPECT_EQ(out.gpus(2).reason(), "node n2 is LOST");
  const json document = json::parse(to_json(out));
  for (const char* field :
       {"memory_used_bytes", "utilization_percent", "temperature_c", "power_watts"}) {
    EXPECT_TRUE(document["gpus"][0][field].is_null()) << field;
  }
}

// ---- problems ----

TEST(Problems, AreReadBackAsTheSameError) {
  for (int i = 0; i <= static_cast<int>(base::ErrorCode::kInternal); ++i) {
    const base::Error error{static_cast<base::ErrorCode>(i), "what is \"wrong\"",
                            i % 2 == 0 ? "gpus" : ""};
    const Problem problem = to_problem(error, "r1");
    EXPECT_EQ(to_error(problem.status, to_json(problem)), error);
    EXPECT_GE(problem.status, 400);
    EXPECT_NE(exit_code(error.code), 0);
  }
}

TEST(Problems, HaveEveryField) {
  const json document =
      json::parse(to_json(to_problem({base::ErrorCode::kFailedPrecondition, "no", {}}, "r7")));
  EXPECT_EQ(document, (json{{"type", "urn:gpu-platform:problem:failed-precondition"},
                            {"title", "Conflict"},
                            {"status", 409},
                            {"detail", "no"},
                            {"code", "FAILED_PRECONDITION"},
                            {"field", nullptr},
                            {"request_id", "r7"}}));
}

TEST(Problems, OfAnUnmanagedProcessBecomeInternal) {
  for (const char* body : {"", "<html>", "[]", "{}", R"({"code":7})", R"({"code":"NEW"})"}) {
    EXPECT_EQ(to_error(502, body).code, base::ErrorCode::kInternal) << body;
  }
  EXPECT_EQ(to_error(503, "").code, base::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace gpu_platform::api
