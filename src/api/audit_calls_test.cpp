#include "api/audit_calls.h"

#include <gtest/gtest.h>

#include <string>

#include "api/call_context.h"
#include "api/fake_core_test.h"
#include "api/peers_test.h"

namespace gpu_platform::api {
namespace {

class AuditCallsTest : public testing::Test {
 protected:
  AuditCallsTest() { access_.audit = &core_; }

  void record(model::AuditAction action, std::vector<model::JobId> jobs) {
    model::AuditEntry entry;
    entry.seq = model::EventSeq(core_.trail.entries.size() + 1);
    entry.at = base::Instant(1'000'000'000);
    entry.call.action = action;
    entry.call.jobs = std::move(jobs);
    entry.call.job_count = entry.call.jobs.size();
    core_.trail.entries.push_back(std::move(entry));
  }
  v1::ListAuditResponse listed(const Peer& peer) {
    const auto answer = AuditCalls(context_).list({}, peer);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer.value_or(v1::ListAuditResponse());
  }
  static std::string name_in(const v1::AuditEntry& entry, model::JobId job) {
    const auto found = entry.names().find(std::to_string(job.value));
    return found == entry.names().end() ? std::string() : found->second;
  }

  FakeCore core_;
  CoreAccess access_ = core_.access();
  CallContext context_{access_, {.version = "1"}};
};

TEST_F(AuditCallsTest, NamesMembersOfArraysAndNoOthers) {
  const model::JobId single = core_.add_job("ada", 1000);
  const model::JobId first = core_.add_array(3, "ada", 1000);
  const model::JobId last(first.value + 2);
  record(model::AuditAction::kCancel, {single, first, last});
  const v1::ListAuditResponse answer = listed(kAda);
  ASSERT_EQ(answer.entries_size(), 1);
  const v1::AuditEntry& entry = answer.entries(0);
  EXPECT_EQ(entry.jobs(2), std::to_string(last.value));
  EXPECT_EQ(entry.names_size(), 2);
  EXPECT_EQ(name_in(entry, first), std::to_string(first.value) + "_1");
  EXPECT_EQ(name_in(entry, last), std::to_string(first.value) + "_3");
}

TEST_F(AuditCallsTest, NamesMembersThatHaveEnded) {
  const model::JobId first = core_.add_array(2, "ada", 1000);
  core_.start_job(first);
  core_.end_job(first, 0);
  record(model::AuditAction::kKill, {first});
  EXPECT_EQ(name_in(listed(kRoot).entries(0), first), std::to_string(first.value) + "_1");
}

TEST_F(AuditCallsTest, ASubmittedArrayIsNotNamedByItsFirstMember) {
  const model::JobId first = core_.add_array(2, "ada", 1000);
  record(model::AuditAction::kSubmit, {first});
  EXPECT_EQ(listed(kAda).entries(0).names_size(), 0);
}

TEST_F(AuditCallsTest, DoNotTellOfArraysThatTheCallerMayNotSee) {
  const model::JobId first = core_.add_array(2, "ada", 1000);
  record(model::AuditAction::kCancel, {first});
  EXPECT_EQ(listed(kBob).entries(0).names_size(), 0);
  EXPECT_EQ(listed(kAda).entries(0).names_size(), 1);
}

}  // namespace
}  // namespace gpu_platform::api
