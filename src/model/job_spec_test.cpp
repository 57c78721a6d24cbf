#include "model/job_spec.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

TEST(ProgramOf, IsTheNameElseTheFirstWordOfTheCommand) {
  JobSpec spec;
  EXPECT_EQ(program_of(spec), "");
  spec.command = {"/opt/train.py", "--epochs=3"};
  EXPECT_EQ(program_of(spec), "/opt/train.py");
  spec.name = "train";
  EXPECT_EQ(program_of(spec), "train");
}

}  // namespace
}  // namespace gpu_platform::model
