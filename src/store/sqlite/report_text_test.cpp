#include "store/sqlite/report_text.h"

#include <gtest/gtest.h>

namespace gpu_platform::store {
namespace {

constexpr std::string_view kContents =
    "/d/store.db: schema 4, events 3 to 9, 5 ended jobs, 1 snapshots, 2 environments, 7 audit "
    "entries, 8 ledger lines\n";

StoreReport sound_report() {
  StoreReport report;
  report.file = "/d/store.db";
  report.schema_version = 4;
  report.first_event = model::EventSeq(3);
  report.last_event = model::EventSeq(9);
  report.jobs = 5;
  report.snapshots = 1;
  report.environments = 2;
  report.audit_entries = 7;
  report.ledger_lines = 8;
  return report;
}

TEST(StoreReportText, ASoundStoreIsCalledSound) {
  const ReportText told = check_text(sound_report(), "/d");
  EXPECT_TRUE(told.is_good);
  EXPECT_EQ(told.text, std::string(kContents) + "sound\n");
}

TEST(StoreReportText, DamageComesWithTheCommandThatHelps) {
  StoreReport report = sound_report();
  report.damages = {"event 4 is unreadable"};
  const ReportText told = check_text(report, "/d");
  EXPECT_FALSE(told.is_good);
  EXPECT_EQ(told.text, std::string(kContents) +
                           "damaged: event 4 is unreadable\n"
                           "`gpu-platform store recover --data-dir /d` builds a new database from "
                           "everything that can be read and keeps the damaged one\n");
}

TEST(StoreReportText, AMissingEnvironmentIsNotMendedByARecovery) {
  StoreReport report = sound_report();
  report.missing = {"environment x of job 3"};
  const ReportText told = check_text(report, "/d");
  EXPECT_FALSE(told.is_good);
  EXPECT_EQ(told.text, std::string(kContents) +
                           "missing: environment x of job 3\n"
                           "a job is held when it is to start without its environment\n");
}

TEST(StoreReportText, AStoreWithoutItsMarkerIsSoundAndSaysSo) {
  StoreReport report = sound_report();
  report.has_mark = false;
  const ReportText told = check_text(report, "/d");
  EXPECT_TRUE(told.is_good);
  EXPECT_NE(told.text.find("note: store.marker does not record"), std::string::npos) << told.text;
  EXPECT_TRUE(told.text.ends_with("\nsound\n"));
}

TEST(StoreReportText, ARecoveryNamesWhatIsKeptAndWhatIsLost) {
  RecoveryReport report;
  report.put_aside = "/d/store.db.damaged-1";
  report.kept = sound_report();
  const std::string kept = "the damaged database is kept as /d/store.db.damaged-1\n";
  EXPECT_TRUE(recovery_text(report).is_good);
  EXPECT_EQ(recovery_text(report).text,
            kept + std::string(kContents) + "nothing that was acknowledged is lost\n");
  report.lost = {"events 5 to 6"};
  report.next_job = model::JobId(1000);
  EXPECT_FALSE(recovery_text(report).is_good);
  EXPECT_EQ(recovery_text(report).text,
            kept + std::string(kContents) + "lost: events 5 to 6\nthe next job gets id 1000\n");
}

}  // namespace
}  // namespace gpu_platform::store
