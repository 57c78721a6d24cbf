#include "bin/adaptors.h"

#include <gtest/gtest.h>

#include "bin/folder_fixture.h"
#include "store/sqlite/sqlite_store.h"

namespace gpu_platform::bin {
namespace {

TEST(Adaptors, AnEnvironmentThatIsNotThereIsAnError) {
  const TestFolder folder;
  auto store = store::SqliteStore::open({.dir = folder.path() + "/data"});
  ASSERT_TRUE(store);
  EXPECT_FALSE(StoredEnvironments(**store).environment("none"));
}

}  // namespace
}  // namespace gpu_platform::bin
