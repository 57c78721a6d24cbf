#include "shims/views/job_view.h"
#include "shims/views/job_amounts.h"

#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

v1::Job job_of(const std::string& label, std::uint32_t gpus, std::uint32_t nodes) {
  v1::Job job;
  job.mutable_spec()->set_gpus(gpus);
  job.mutable_spec()->set_nodes(nodes);
  if (!label.empty()) (*job.mutable_spec()->mutable_labels())["slurm.gpus_per"] = label;
  return job;
}

TEST(GpusAsked, AreToldInTheWayInWhichTheyWereAskedFor) {
  const v1::Job by_node = job_of("node", 2, 2);
  EXPECT_EQ(gpus_asked(by_node, GpusPer::kNode), "gpu:2");
  EXPECT_EQ(gpus_asked(by_node, GpusPer::kJob), "");
  const v1::Job by_job = job_of("job", 2, 2);
  EXPECT_EQ(gpus_asked(by_job, GpusPer::kNode), "");
  EXPECT_EQ(gpus_asked(by_job, GpusPer::kJob), "gpu:4");
  const v1::Job both = job_of("job,task.1", 4, 1);
  EXPECT_EQ(gpus_asked(both, GpusPer::kJob), "gpu:4");
  EXPECT_EQ(gpus_asked(both, GpusPer::kTask), "gpu:1");
  EXPECT_EQ(gpus_asked(job_of("", 3, 1), GpusPer::kNode), "gpu:3") << "of another command";
  EXPECT_EQ(gpus_asked(job_of("", 0, 1), GpusPer::kNode), "");
}

TEST(GpusAsked, HaveTheTypeThatWasNamed) {
  v1::Job job = job_of("socket.1", 2, 1);
  job.mutable_spec()->add_gpu_types("H100");
  EXPECT_EQ(gpus_asked(job, GpusPer::kSocket), "gpu:H100:1");
}

}  // namespace
}  // namespace gpu_platform::shims
