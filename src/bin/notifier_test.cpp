#include "bin/notifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "bin/captured_log_fixture.h"
#include "bin/folder_fixture.h"
#include "model/job_spec.h"
#include "os/testing/eventually.h"

namespace gpu_platform::bin {
namespace {

using model::NotifyOn;

class NotifierTest : public ::testing::Test {
 protected:
  // A job that asked for these, and what happened to it.
  void publish(Notifier& notifier, std::vector<NotifyOn> asked, model::Event event) {
    model::Job job;
    job.id = model::JobId(3);
    auto spec = std::make_shared<model::JobSpec>();
    spec->name = "train";
    spec->notify = std::move(asked);
    spec->notify_to = "ann@example.org";
    job.spec = std::move(spec);
    auto snapshot = std::make_shared<controller::Snapshot>();
    snapshot->jobs.put(3, job);
    const model::EventRecord record{model::EventSeq(1), base::Instant(1), std::move(event)};
    notifier.published(snapshot, {&record, 1}, controller::DepartedJobs());
  }
  static model::JobEnded ended(model::JobTrigger how) {
    model::JobEnded ended;
    ended.job = model::JobId(3);
    ended.how = how;
    return ended;
  }
  std::string told() const { return folder_.read("told"); }

  TestFolder folder_;
  CapturedLog captured_;
  logging::Log log_;
  const std::string command_ = folder_.script(
      "tell", "{ printf '%s ' \"$GPU_PLATFORM_EVENT\" \"$GPU_PLATFORM_NOTIFY_TO\"; cat; } >> " +
                  folder_.path() + "/told");
};

TEST_F(NotifierTest, TellsTheCommandWhatItsJobAskedFor) {
  Notifier notifier(command_, log_);
  publish(notifier, {NotifyOn::kEnd}, model::AttemptStarted{{model::JobId(3), 1}});
  publish(notifier, {NotifyOn::kEnd}, ended(model::JobTrigger::kComplete));
  EXPECT_TRUE(os::eventually([&] { return told().ends_with("}\n"); }));
  EXPECT_TRUE(told().starts_with(R"(END ann@example.org {"event":"END","job":{)")) << told();
  EXPECT_NE(told().find(R"("train")"), std::string::npos) << told();
  EXPECT_NE(told().find(R"("notify_to":"ann@example.org")"), std::string::npos) << told();
}

TEST_F(NotifierTest, AFailureIsToldAsSuchToAJobThatAskedForBoth) {
  Notifier notifier(command_, log_);
  publish(notifier, {NotifyOn::kEnd, NotifyOn::kFail}, ended(model::JobTrigger::kFail));
  EXPECT_TRUE(os::eventually([&] { return told().ends_with("}\n"); }));
  EXPECT_TRUE(told().starts_with("FAIL ")) << told();
}

TEST_F(NotifierTest, ACommandThatFailsIsLogged) {
  const std::string failing = folder_.script("fail", "exit 3");
  Notifier notifier(failing, log_);
  publish(notifier, {NotifyOn::kEnd}, ended(model::JobTrigger::kComplete));
  const std::string line =
      "warning: notify job=3 event=END command=" + failing + " failed: exit code 3";
  EXPECT_TRUE(os::eventually([&] { return captured_.lines() == std::vector<std::string>{line}; }));
}

}  // namespace
}  // namespace gpu_platform::bin
