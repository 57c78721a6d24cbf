#include "client/answer.h"

#include <algorithm>
#include <memory>
#include <set>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "api/convert/json_writer.h"
#include "api/convert/odd_message_test.h"
#include "api/convert/services.h"
#include "base/prng.h"
#include "base/utc.h"
#include "gpu_platform/v1/jobs.pb.h"

namespace gpu_platform::client {
namespace {

namespace pb = google::protobuf;

std::set<const pb::Descriptor*> all_answers() {
  std::set<const pb::Descriptor*> types;
  for (const pb::ServiceDescriptor* service : api::services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      types.insert(service->method(i)->output_type());
    }
  }
  return types;
}

// A document is too long to be read.
std::string first_difference(const std::string& a, const std::string& b) {
  const auto [at, other] = std::ranges::mismatch(a, b);
  if (at == a.end() && other == b.end()) return {};
  const std::size_t place = static_cast<std::size_t>(at - a.begin());
  const std::size_t begin = place - std::min<std::size_t>(place, 80);
  return a.substr(begin, 160) + " | " + b.substr(begin, 160);
}

TEST(Answer, IsTheMessageThatWasWritten) {
  for (const pb::Descriptor* type : all_answers()) {
    const pb::Message& prototype = *pb::MessageFactory::generated_factory()->GetPrototype(type);
    base::Prng random(7);
    for (int round = 0; round < 40; ++round) {
      const std::unique_ptr<pb::Message> written(prototype.New());
      api::fill_oddly(*written, random,
                      {.percent = random.below(101), .depth = 4, .is_sayable = true});
      const std::string text = api::to_json(*written);
      const std::unique_ptr<pb::Message> read(prototype.New());
      ASSERT_TRUE(read_document(text, *read)) << type->full_name();
      ASSERT_EQ(first_difference(text, api::to_json(*read)), "") << type->full_name();
      // What JSON does not carry is gone: bytes that are not UTF-8, parts of milliseconds.
      const std::unique_ptr<pb::Message> again(prototype.New());
      ASSERT_TRUE(read_document(api::to_json(*read), *again));
      ASSERT_TRUE(pb::util::MessageDifferencer::Equals(*read, *again)) << type->full_name();
    }
  }
}

TEST(Answer, LeavesOutWhatItDoesNotUnderstand) {
  const auto job = message_of<v1::Job>(
      R"({"id":7,"of_later":[1,{"a":2}],"exit_code":null,"signal":{},"attempt":-1,"cpus":1.5,)"
      R"("array_index":4294967296,"submitted_at":"soon","gpus":[1,{"node":"n1"}],"attempts":{},)"
      R"("borrowed":"yes","efficiency":{"cpu":1,"memory":"much"},"failures":2,)"
      R"("wait_reason":{"counts":{"a":1,"b":"x"}}})");
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->id(), "");
  EXPECT_FALSE(job->has_exit_code());
  EXPECT_FALSE(job->has_signal());
  EXPECT_EQ(job->attempt(), 0U);
  EXPECT_FALSE(job->has_cpus());
  EXPECT_FALSE(job->has_array_index());
  EXPECT_FALSE(job->has_submitted_at());
  ASSERT_EQ(job->gpus_size(), 1);
  EXPECT_EQ(job->gpus(0).node(), "n1");
  EXPECT_EQ(job->attempts_size(), 0);
  EXPECT_FALSE(job->borrowed());
  EXPECT_EQ(job->efficiency().cpu(), 1);
  EXPECT_FALSE(job->efficiency().has_memory());
  EXPECT_EQ(job->failures(), 2U);
  EXPECT_EQ(sorted(job->wait_reason().counts()).at("a"), 1U);
}

TEST(Answer, IsAnObject) {
  for (const std::string_view text : {"", "null", "[]", "7", "{", "{} {}", "{\"id\":\"\xff\"}"}) {
    EXPECT_FALSE(message_of<v1::Job>(text).has_value()) << text;
  }
  EXPECT_TRUE(message_of<v1::Job>("{}").has_value());
}

TEST(NameAt, IsAsTheDaemonWroteItAlsoOfANewerOne) {
  const auto job = message_of<v1::Job>(R"({"state":"RUNNING","reason":"BY_THE_MOON","lost":null})");
  EXPECT_EQ(name_at(*job, v1::Job::kStateFieldNumber), "RUNNING");
  EXPECT_EQ(job->reason(), v1::END_REASON_UNSPECIFIED);
  EXPECT_EQ(name_at(*job, v1::Job::kReasonFieldNumber), "BY_THE_MOON");
  EXPECT_EQ(name_at(*job, v1::Job::kLostFieldNumber), "");
}

TEST(TimeOf, IsNothingWithoutATime) {
  const auto job = message_of<v1::Job>(R"({"submitted_at":"2026-07-01T12:00:00.250Z"})");
  EXPECT_EQ(time_of(job->submitted_at()), base::parse_rfc3339("2026-07-01T12:00:00.25Z"));
  EXPECT_FALSE(time_of(job->started_at()).has_value());
}

}  // namespace
}  // namespace gpu_platform::client
