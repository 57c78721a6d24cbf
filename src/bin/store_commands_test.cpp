#include <fstream>

#include <gtest/gtest.h>

#include "bin/folder_fixture.h"
#include "bin/telemetry_part.h"
#include "bin/verbs.h"
#include "bin/verbs_fixture.h"
#include "client/exit_code.h"
#include "store/sqlite/repair.h"
#include "store/sqlite/sqlite_store.h"

namespace gpu_platform::bin {
namespace {

void make_store(const std::string& data_dir) {
  const auto store = store::SqliteStore::open({.dir = data_dir});
  ASSERT_TRUE(store) << store.error().message;
}

TEST(StoreCommands, ASoundStoreIsChecked) {
  const TestFolder folder;
  make_store(folder.path());
  const VerbRun run = run_verb(store_main, {"check", "--data-dir", folder.path()});
  EXPECT_EQ(run.code, client::kOk) << run.err;
  EXPECT_TRUE(run.out.ends_with("\nsound\n")) << run.out;
}

TEST(StoreCommands, ACheckSpeaksOfTheHistoryToo) {
  const TestFolder folder;
  make_store(folder.path());
  const VerbRun without = run_verb(store_main, {"check", "--data-dir", folder.path()});
  EXPECT_NE(without.out.find("/history.db: no readings are kept here\n"), std::string::npos)
      << without.out;
  std::ofstream(history_path(folder.path())) << std::string(5'000, 'x');
  const VerbRun damaged = run_verb(store_main, {"check", "--data-dir", folder.path()});
  EXPECT_NE(damaged.out.find("/history.db: damaged: "), std::string::npos) << damaged.out;
  EXPECT_EQ(damaged.code, client::kOk) << "the store is sound";
}

TEST(StoreCommands, ACheckTellsHowFarItIs) {
  const TestFolder folder;
  make_store(folder.path());
  std::vector<std::string> told;
  const auto report = store::check_store(
      folder.path(), {}, [&](std::string_view what, std::uint64_t) { told.emplace_back(what); });
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(told, (std::vector<std::string>{"structure", "ledger"})) << "there are no records";
}

TEST(StoreCommands, ThereIsNothingToRecoverOfASoundStore) {
  const TestFolder folder;
  make_store(folder.path());
  const VerbRun run = run_verb(store_main, {"recover", "--data-dir", folder.path()});
  EXPECT_EQ(run.code, client::kRefused) << run.err;
  EXPECT_EQ(run.out, "");
}

TEST(StoreCommands, ADataDirectoryWithoutAStoreIsNotFound) {
  const TestFolder folder;
  EXPECT_EQ(run_verb(store_main, {"check", "--data-dir", folder.path()}).code, client::kNotFound);
}

TEST(StoreCommands, AStoreInUseIsRefused) {
  const TestFolder folder;
  const auto store = store::SqliteStore::open({.dir = folder.path()});
  ASSERT_TRUE(store);
  EXPECT_EQ(run_verb(store_main, {"check", "--data-dir", folder.path()}).code, client::kRefused);
}

TEST(StoreCommands, AnyOtherActionIsAMistake) {
  const VerbRun run = run_verb(store_main, {"mend"});
  EXPECT_EQ(run.code, client::kUsage);
  EXPECT_NE(run.err.find("\"mend\" is not check or recover"), std::string::npos) << run.err;
  EXPECT_EQ(run_verb(store_main, {}).code, client::kUsage);
}

}  // namespace
}  // namespace gpu_platform::bin
