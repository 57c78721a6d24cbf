#include "model/audit.h"
#include "model/job_spec.h"

#include <set>

#include <gtest/gtest.h>

#include "model/event.h"

namespace gpu_platform::model {
namespace {

EventRecord submitted(Origin by) {
  JobSpec spec;
  spec.user = "ann";
  spec.uid = 1001;
  spec.command = {"/bin/secret-program", "--password=hunter2"};
  spec.request_id = "again-7";
  spec.array = ArraySpec{{{0, 9, 1}}, 0};
  return {
      EventSeq(12), base::Instant(5),
      JobSubmitted{.job = JobId(40), .spec = std::make_shared<JobSpec>(spec), .by = std::move(by)}};
}

TEST(Audit, ASubmissionSaysItself) {
  const auto entry = audit_entry(submitted({Door::kUnixSocket, "", 0, 77}));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->seq, EventSeq(12));
  EXPECT_EQ(entry->call.action, AuditAction::kSubmit);
  EXPECT_EQ(entry->call.by, (Origin{Door::kUnixSocket, "ann", 1001, 77}));
  EXPECT_EQ(entry->call.owner, (JobOwner{"ann", 1001}));
  EXPECT_EQ(entry->call.jobs, std::vector{JobId(40)});
  EXPECT_EQ(entry->call.job_count, 10u);
  EXPECT_EQ(entry->call.request_id, "again-7");
}

TEST(Audit, ASubmissionForAnotherNamesBoth) {
  const auto entry = audit_entry(submitted({Door::kUnixSocket, "root", 0, 77}));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->call.by.user, "root");
  EXPECT_EQ(entry->call.owner->user, "ann");
  EXPECT_TRUE(concerns(entry->call, 0));
  EXPECT_TRUE(concerns(entry->call, 1001));
  EXPECT_FALSE(concerns(entry->call, 1002));
}

TEST(Audit, WhatAnOlderProgramRecordedAddsNothing) {
  EXPECT_FALSE(audit_entry(submitted({})));
  EXPECT_FALSE(audit_entry({EventSeq(1), {}, UseCounted{}}));
}

TEST(Audit, ARefusalOfAMalformedRequestRepeatsNothingOfIt) {
  const Refusal refusal = refusal_of({base::ErrorCode::kInvalidArgument,
                                      "environment: 'TOKEN=hunter2' has no '='", "environment"});
  EXPECT_EQ(refusal.code, "INVALID_ARGUMENT");
  EXPECT_EQ(refusal.text, "environment: the value is not valid");
}

TEST(Audit, ARefusalIsShortAndOnOneLine) {
  std::string message = "no\x1b[2J\nnode ";
  while (message.size() < kMaxRefusalBytes) message += "ä";
  const Refusal refusal = refusal_of({base::ErrorCode::kNotFound, message + "äää", "node"});
  EXPECT_LE(refusal.text.size(), kMaxRefusalBytes);
  EXPECT_EQ(refusal.text.find_first_of("\x1b\n"), std::string::npos);
  EXPECT_EQ(refusal.text.substr(refusal.text.size() - 2), "ä") << "cut between two characters";
}

TEST(Audit, EveryActionHasAWordOfItsOwn) {
  std::set<std::string_view> words;
  for (std::size_t i = 0; i < kAuditActions; ++i) {
    words.insert(to_string(static_cast<AuditAction>(i)));
  }
  EXPECT_EQ(words.size(), kAuditActions);
  EXPECT_FALSE(words.contains(""));
}

}  // namespace
}  // namespace gpu_platform::model
