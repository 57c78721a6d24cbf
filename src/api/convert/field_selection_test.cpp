#include "api/convert/field_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/convert/json_writer.h"
#include "gpu_platform/v1/jobs.pb.h"

namespace gpu_platform::api {
namespace {

using testing::HasSubstr;

v1::Job example() {
  v1::Job job;
  job.set_id("7");
  job.mutable_spec()->set_name("train");
  job.mutable_spec()->add_command("/bin/true");
  job.add_gpus()->set_node("a");
  job.mutable_gpus(0)->set_index(3);
  return job;
}

std::string selected(std::string_view fields) {
  const auto selection = FieldSelection::parse(fields, *v1::Job::descriptor());
  if (!selection) return selection.error().message;
  std::string out;
  append_json(out, example(), selection->plan());
  return out;
}

TEST(FieldSelection, AnswerHasTheFieldsThatAreNamedInItsOwnOrder) {
  EXPECT_EQ(selected("exit_code,id"), R"({"id":"7","exit_code":null})");
}

TEST(FieldSelection, PathReachesIntoObjectsAndLists) {
  EXPECT_EQ(selected("spec.name,gpus.index,gpus.node"),
            R"({"gpus":[{"node":"a","index":3}],"spec":{"name":"train"}})");
}

TEST(FieldSelection, WholeFieldHasAllItsPartsWhateverElseIsNamed) {
  const std::string whole = selected("gpus");
  EXPECT_EQ(selected("gpus.index,gpus"), whole);
  EXPECT_EQ(selected("gpus,gpus.index,gpus"), whole);
}

TEST(FieldSelection, WhatIsNotThereIsRefusedWithWhatIs) {
  EXPECT_THAT(selected("stat"), HasSubstr("did you mean 'state'?"));
  EXPECT_THAT(selected("spec.nam"), HasSubstr("did you mean 'name'?"));
  EXPECT_THAT(selected(""), HasSubstr("there is no ''; known here: id, "));
  EXPECT_THAT(selected("id,"), HasSubstr("there is no ''"));
  EXPECT_THAT(selected("id.x"), HasSubstr("'id' has no fields of its own"));
  EXPECT_THAT(selected("gpus."), HasSubstr("there is no ''"));
  EXPECT_THAT(selected("spec.environment"), HasSubstr("there is no 'environment'"));
  EXPECT_THAT(selected(std::string(3000, 'a')), HasSubstr("at most 2048 bytes"));
}

TEST(FieldSelection, ListsHaveAPlanForTheirObjects) {
  const auto selection =
      FieldSelection::parse("jobs.id,next_page", *v1::ListJobsResponse::descriptor());
  ASSERT_TRUE(selection);
  const MessagePlan* const jobs = selection->plan_of_field("jobs");
  ASSERT_NE(jobs, nullptr);
  ASSERT_EQ(jobs->fields.size(), 1u);
  EXPECT_EQ(jobs->fields[0].name, "id");
  EXPECT_EQ(selection->plan_of_field("next_page"), nullptr);
}

}  // namespace
}  // namespace gpu_platform::api
