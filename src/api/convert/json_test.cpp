#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/convert/json_reader.h"
#include "api/convert/json_writer.h"
#include "api/convert/message_limits.h"
#include "api/convert/text_forms.h"
#include "base/base64.h"
#include "base/prng.h"
#include "base/testing/rounds.h"
#include "base/utc.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/job_spec.h"

namespace gpu_platform::api {
namespace {

using nlohmann::json;

base::Error error_of(std::string_view text) {
  v1::JobSpec request;
  const base::Status read = read_json(text, request);
  if (!read) return read.error();
  const base::Status checked = check_limits(request);
  return checked ? base::Error{base::ErrorCode::kInternal, "accepted", {}} : checked.error();
}

std::string field_of(std::string_view text) {
  return error_of(text).field;
}

v1::Job full_job() {
  v1::Job job;
  job.set_id("42");
  job.set_state(v1::JOB_STATE_COMPLETED);
  v1::JobSpec& spec = *job.mutable_spec();
  spec.set_name("train \"big\"\n");
  spec.set_priority("HIGH");
  spec.set_kind(v1::JOB_KIND_TRAINING);
  spec.add_command("python");
  spec.add_command("träin.py");
  job.mutable_submitted_at()->set_seconds(1'782'907'200);
  job.mutable_submitted_at()->set_nanos(250'999'999);
  job.set_exit_code(0);
  spec.set_time_limit_seconds(0.1);
  job.set_memory_bytes(std::uint64_t{1} << 63);
  (*spec.mutable_labels())["b"] = "2";
  (*spec.mutable_labels())["a"] = "1";
  v1::GpuUse& gpu = *job.add_gpus();
  gpu.set_node("n1");
  gpu.set_share(0.5);
  (*job.mutable_wait_reason()->mutable_counts())["gpus_short"] = 2;
  return job;
}

TEST(JsonWriter, WritesEveryFieldWithItsRule) {
  const json document = json::parse(to_json(full_job()));
  EXPECT_EQ(document["id"], "42");
  EXPECT_EQ(document["state"], "COMPLETED");
  EXPECT_EQ(document["spec"]["priority"], "HIGH");
  EXPECT_EQ(document["submitted_at"], "2026-07-01T12:00:00.250Z");
  EXPECT_EQ(document["exit_code"], 0);
  EXPECT_EQ(document["spec"]["time_limit_seconds"], 0.1);
  EXPECT_EQ(document["memory_bytes"], std::uint64_t{1} << 63);
  EXPECT_EQ(document["gpus"][0]["share"], 0.5);
  EXPECT_EQ(document["wait_reason"]["counts"]["gpus_short"], 2);
  EXPECT_EQ(document["spec"]["command"], json::array({"python", "träin.py"}));
}

TEST(JsonWriter, KeepsTheKeysOfAbsentAndEmptyValues) {
  const json document = json::parse(to_json(v1::Job()));
  for (const char* absent : {"array_id", "exit_code", "signal", "lost", "reason", "wait_reason",
                             "spec", "started_at", "estimated_start", "state", "cpus"}) {
    ASSERT_TRUE(document.contains(absent)) << absent;
    EXPECT_TRUE(document[absent].is_null()) << absent;
  }
  EXPECT_EQ(document["attempt"], 0);
  EXPECT_EQ(document["gpus"], json::array());
  EXPECT_EQ(document.size(), static_cast<std::size_t>(v1::Job::descriptor()->field_count()));
}

TEST(JsonWriter, RepairsTextThatIsNotUtf8) {
  v1::Job job;
  job.set_detail("bad \xff\xc3 end\x01");
  const json document = json::parse(to_json(job));
  EXPECT_EQ(document["detail"], "bad \xef\xbf\xbd\xef\xbf\xbd end\x01");
}

TEST(JsonWriter, IsReadBackUnchanged) {
  const v1::Job before = full_job();
  v1::Job after;
  const base::Status read = read_json(to_json(before), after);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  v1::Job expected = before;
  expected.mutable_submitted_at()->set_nanos(250'000'000);  // JSON has milliseconds
  EXPECT_EQ(to_json(after), to_json(before));
  EXPECT_EQ(after.SerializeAsString().size(), expected.SerializeAsString().size());
  EXPECT_EQ(after.submitted_at().nanos(), 250'000'000);
}

TEST(JsonWriter, LeavesOutWhatOnlyRequestsHave) {
  v1::JobSpec spec;
  spec.set_hold(true);
  (*spec.mutable_environment())["TOKEN"] = "hunter2";
  const json document = json::parse(to_json(spec));
  EXPECT_FALSE(document.contains("hold"));
  EXPECT_FALSE(document.contains("environment"));
  EXPECT_EQ(document["labels"], json::object());
  EXPECT_TRUE(document["team"].is_null());
}

TEST(JsonReader, ReadsAWholeRequest) {
  v1::JobSpec request;
  const base::Status read = read_json(
      R"({"command":["sh","-c","echo \"\u00e4\""],"gpus":8,"gpu_types":["H100"],"kind":"TRAINING",
          "environment":{"A":"1","B":""},"labels":{"team":"x"},"time_limit_seconds":1.5,"cpus":null,
          "memory_bytes":17179869184})",
      request);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(request.command(2), "echo \"ä\"");
  EXPECT_EQ(request.gpus(), 8U);
  EXPECT_EQ(request.kind(), v1::JOB_KIND_TRAINING);
  EXPECT_EQ(request.environment().at("A"), "1");
  EXPECT_EQ(request.environment().size(), 2U);
  EXPECT_EQ(request.time_limit_seconds(), 1.5);
  EXPECT_FALSE(request.has_cpus());
  EXPECT_EQ(request.memory_bytes(), 17179869184U);
}

TEST(JsonReader, NamesTheExactField) {
  EXPECT_EQ(field_of(R"({"command":["a",7]})"), "command[1]");
  EXPECT_EQ(field_of(R"({"labels":{"k":1}})"), "labels.k");
  EXPECT_EQ(field_of(R"({"labels":{"k":{"x":1}}})"), "labels.k");
  EXPECT_EQ(field_of(R"({"labels":{"k":["x"]}})"), "labels.k");
  EXPECT_EQ(field_of(R"({"labels":"x"})"), "labels");
  EXPECT_EQ(field_of(R"({"command":{"a":"b"}})"), "command");
  EXPECT_EQ(field_of(R"({"command":[["a"]]})"), "command[0]");
  EXPECT_EQ(field_of(R"({"command":["a",{}]})"), "command[1]");
  EXPECT_EQ(field_of(R"({"gpus":true})"), "gpus");
  EXPECT_EQ(field_of(R"({"gpus":{}})"), "gpus");
  EXPECT_EQ(field_of(R"({"nonsense":1})"), "nonsense");
  EXPECT_EQ(field_of(R"({"gpus":1,"name":"x","gpus":1})"), "gpus");
}

TEST(JsonReader, SaysWhatIsAllowed) {
  EXPECT_EQ(error_of(R"({"gpus":-1})").message, "gpus: must be a whole number from 0 to 65535");
  EXPECT_EQ(error_of(R"({"kind":"X"})").message,
            "kind: 'X' is not one of TRAINING, INFERENCE, INTERACTIVE, BATCH");
  EXPECT_EQ(error_of(R"({"time_limit_seconds":0})").message,
            "time_limit_seconds: must be a number of seconds from 0.001 to 315360000");
  EXPECT_EQ(error_of(R"({"memory_bytes":0})").message,
            "memory_bytes: must be a whole number of bytes from 1 to 1125899906842624");
  EXPECT_EQ(error_of(R"({"gpuz":1})").message, "unknown field 'gpuz'; did you mean 'gpus'?");
}

TEST(JsonReader, ReadsNamesOfEnumerationsInAnyCase) {
  v1::JobSpec request;
  ASSERT_TRUE(read_json(R"({"command":["true"],"kind":"Training"})", request).has_value());
  EXPECT_EQ(request.kind(), v1::JOB_KIND_TRAINING);
}

TEST(JsonReader, NeverQuotesSecrets) {
  const base::Error error = error_of(R"({"environment":{"TOKEN":"hunter2\u0000"}})");
  EXPECT_EQ(error.field, "environment.TOKEN");
  EXPECT_EQ(error.message.find("hunter2"), std::string::npos);
  const base::Error malformed = error_of(R"({"environment":{"TOKEN":"hunter2" "x")");
  EXPECT_EQ(malformed.message.find("hunter2"), std::string::npos);
}

TEST(JsonReader, RefusesWhatIsNoSingleObject) {
  for (const char* text : {"", " ", "null", "true", "1", "\"x\"", "[]", "{", "{}}", "{} {}", "{,}",
                           "{\"a\"}", "nul", "\xef\xbb\xbf", "{\"command\":[}"}) {
    v1::JobSpec request;
    EXPECT_FALSE(read_json(text, request).has_value()) << text;
  }
}

TEST(JsonReader, SurvivesDeepNesting) {
  v1::JobSpec request;
  EXPECT_FALSE(read_json(std::string(100'000, '['), request).has_value());
  std::string objects = "{\"labels\":";
  for (int i = 0; i < 50'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(read_json(objects, request).has_value());
}

// For any input, the answer is an error or a message that can be written again.
TEST(JsonReader, SurvivesDamagedText) {
  const std::string valid =
      R"({"command":["sh","-c","x"],"gpus":8,"gpu_types":["H100"],"labels":{"k":"v"},"cpus":3,)"
      R"("environment":{"A":"b"},"time_limit_seconds":2.5,"kind":"BATCH","retries":0})";
  base::Prng random(20'260'701);
  int accepted = 0;
  for (std::uint64_t round = 0; round < base::rounds(20'000); ++round) {
    std::string text = valid;
    for (std::uint64_t i = 0, n = 1 + random.below(3); i < n; ++i) {
      const std::size_t at = random.below(text.size());
      switch (random.below(4)) {
        case 0:
          text[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          text.erase(at, random.below(8));
          break;
        case 2:
          text.insert(at, 1, "{}[]\",:0-\\"[random.below(10)]);
          break;
        default:
          text.resize(at);
          break;
      }
      if (text.empty()) break;
    }
    v1::JobSpec request;
    if (!read_json(text, request)) continue;
    ++accepted;
    EXPECT_TRUE(json::accept(to_json(request))) << text;
  }
  EXPECT_GT(accepted, 0);
}

TEST(QueryText, FollowsTheSameRules) {
  v1::ListJobsRequest request;
  EXPECT_TRUE(read_text("limit", "10", request).has_value());
  EXPECT_TRUE(read_text("state", "RUNNING", request).has_value());
  EXPECT_TRUE(read_text("state", "FAILED", request).has_value());
  EXPECT_TRUE(read_text("all", "true", request).has_value());
  EXPECT_TRUE(read_text("since", "2026-07-01T12:00:00+02:00", request).has_value());
  EXPECT_EQ(request.limit(), 10U);
  EXPECT_EQ(request.state_size(), 2);
  EXPECT_TRUE(request.all());
  EXPECT_EQ(request.since().seconds(), 1'782'900'000);
  for (const auto& [name, text] :
       std::initializer_list<std::pair<const char*, const char*>>{{"limit", ""},
                                                                  {"limit", "1x"},
                                                                  {"limit", "-1"},
                                                                  {"limit", "4294967296"},
                                                                  {"limit", " 1"},
                                                                  {"all", "yes"},
                                                                  {"state", "X"},
                                                                  {"since", "now"},
                                                                  {"name", "\xff"},
                                                                  {"nothing", "1"}}) {
    const base::Status read = read_text(name, text, request);
    ASSERT_FALSE(read.has_value()) << name << "=" << text;
    EXPECT_EQ(read.error().field, name);
  }
}

TEST(Utf8, KnowsWhatIsValid) {
  for (const char* text : {"", "a", "ä", "€", "😀", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_valid_utf8(text)) << text;
  }
  for (const char* text :
       {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe2\x82"}) {
    EXPECT_FALSE(is_valid_utf8(text));
  }
}

TEST(Signals, HaveNames) {
  EXPECT_EQ(signal_name(9), "SIGKILL");
  EXPECT_EQ(signal_name(40), "SIG40");
  EXPECT_EQ(signal_number("SIGTERM"), 15);
  EXPECT_EQ(signal_number("SIG40"), 40);
  EXPECT_FALSE(signal_number("KILL").has_value());
}

}  // namespace
}  // namespace gpu_platform::api
