#include "bin/adaptors.h"

#include <gtest/gtest.h>

#include "bin/folder_fixture.h"
#include "store/sqlite/sqlite_store.h"

namespace gpu_platform::bin {
namespace {

model::Job ended_job(std::uint64_t id, const std::string& user) {
  model::Job job;
  job.id = model::JobId(id);
  auto spec = std::make_shared<model::JobSpec>();
  spec->user = user;
  spec->command = {"true"};
  job.spec = std::move(spec);
  job.state = model::JobState::kCompleted;
  job.ended_at = base::Instant(static_cast<std::int64_t>(id));
  return job;
}

class AdaptorsTest : public ::testing::Test {
 protected:
  AdaptorsTest() {
    auto store = store::SqliteStore::open({.dir = folder_.path() + "/data"});
    EXPECT_TRUE(store);
    store_ = *std::move(store);
    jobs_ = {ended_job(1, "ann"), ended_job(2, "bob"), ended_job(3, "ann")};
    const model::EventRecord record{model::EventSeq(1), base::Instant(1),
                                    model::JobEligible{model::JobId(9)}};
    store::Commit commit;
    commit.events = {&record, 1};
    commit.ended_jobs = jobs_;
    const base::Status done = store_->append(commit);
    EXPECT_TRUE(done) << done.error().message;
  }

  TestFolder folder_;
  std::unique_ptr<store::SqliteStore> store_;
  std::vector<model::Job> jobs_;
};

TEST_F(AdaptorsTest, TheHistoryIsTheStores) {
  const StoredJobs history(*store_);
  const auto found = history.find(model::JobId(2));
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->spec->user, "bob");
  api::EndedJobsQuery query;
  query.user = "ann";
  query.before = model::JobId(3);
  const auto list = history.list(query);
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 1U);
  EXPECT_EQ(list->front().id, model::JobId(1));
}

TEST_F(AdaptorsTest, TheTrailIsTheStores) {
  const auto page = StoredAudit(*store_).list({});
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->entries.empty());
}

TEST_F(AdaptorsTest, AnEnvironmentThatIsNotThereIsAnError) {
  EXPECT_FALSE(StoredEnvironments(*store_).environment("none"));
}

}  // namespace
}  // namespace gpu_platform::bin
