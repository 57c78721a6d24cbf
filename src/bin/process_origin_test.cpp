#include "bin/process_origin.h"

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

TEST(ProcessOrigin, HasTheNameOfTheUser) {
  host::UserDirectory users;
  const model::Origin origin = origin_of(users, model::Door::kSignal, {0, 4711});
  EXPECT_EQ(origin, (model::Origin{model::Door::kSignal, "root", 0, 4711}));
}

TEST(ProcessOrigin, OfAProcessThatIsNotKnownHasNoNumber) {
  host::UserDirectory users;
  EXPECT_EQ(origin_of(users, model::Door::kStart, {0, -1}).pid, 0U);
}

}  // namespace
}  // namespace gpu_platform::bin
