#include "scheduling/mig/mig_shortage.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace gpu_platform::scheduling {
namespace {

// An instance by the name of its profile; job 0 is none of the platform.
struct NamedHolder {
  std::uint64_t job = 0;
  std::string_view profile;
  std::uint32_t start = 0;
};

MigGpu cut_gpu(std::string_view type, const std::vector<NamedHolder>& holders) {
  MigGpu gpu{.geometry = model::known_mig_geometry(type), .holders = {}};
  for (const NamedHolder& holder : holders) {
    const auto profile =
        model::find_profile(*gpu.geometry, *model::parse_mig_profile(holder.profile));
    gpu.holders.push_back({model::JobId(holder.job), profile.value(), holder.start});
  }
  return gpu;
}

std::string sentence_about(std::string_view profile, const std::vector<MigGpu>& gpus) {
  return sentence_of(explain_mig(*model::parse_mig_profile(profile), gpus), gpus);
}

TEST(MigShortage, NamesTheJobThatIsInTheWay) {
  // The same job has a 1g on two GPUs; a third GPU is full of others.
  const std::vector<MigGpu> gpus = {
      cut_gpu("H100-80GB", {{12, "1g.10gb", 6}, {7, "4g.40gb", 0}}),
      cut_gpu("H100-80GB", {{12, "1g.10gb", 6}, {8, "4g.40gb", 0}}),
      cut_gpu("H100-80GB", {{9, "7g.80gb", 0}}),
  };
  EXPECT_EQ(sentence_about("3g.40gb", gpus),
            "a 3g.40gb fits on no GPU: 2 could hold it if job 12's 1g.10gb were elsewhere, 1 could "
            "hold it if job 9's 7g.80gb were elsewhere");
}

TEST(MigShortage, MovesTheFewestAndThenTheSmallest) {
  // Either half could take it: the one with one instance, and of two with one the smaller.
  const auto shortage = explain_mig(
      *model::parse_mig_profile("3g.40gb"),
      std::vector<MigGpu>{
          cut_gpu("H100-80GB", {{1, "1g.10gb", 0}, {2, "1g.10gb", 1}, {3, "2g.20gb", 4}}),
          cut_gpu("H100-80GB", {{4, "2g.20gb", 0}, {5, "1g.10gb", 6}})});
  EXPECT_EQ(shortage.gpus_of_profile, 2U);
  EXPECT_EQ(shortage.gpus_with_place, 0U);
  ASSERT_EQ(shortage.ways_out.size(), 2U);
  EXPECT_EQ(shortage.ways_out[0].moves.front().job, model::JobId(3));
  EXPECT_EQ(shortage.ways_out[1].moves.front().job, model::JobId(5));
  EXPECT_EQ(shortage.ways_out[1].moves.size(), 1U);
}

TEST(MigShortage, NamesAllThatOneGpuNeedsMovedAndCountsTheRest) {
  std::vector<MigGpu> gpus = {
      cut_gpu("A30-24GB", {{1, "1g.6gb", 0}, {2, "2g.12gb", 2}}),
  };
  EXPECT_EQ(sentence_about("4g.24gb", gpus),
            "a 4g.24gb fits on no GPU: 1 could hold it if job 1's 1g.6gb and job 2's 2g.12gb were "
            "elsewhere");
  for (std::uint64_t job = 3; job < 7; ++job) {
    gpus.push_back(cut_gpu("A30-24GB", {{job, "1g.6gb", 3}}));
  }
  EXPECT_EQ(sentence_about("4g.24gb", gpus),
            "a 4g.24gb fits on no GPU: 1 could hold it if job 3's 1g.6gb were elsewhere, 1 could "
            "hold it if job 4's 1g.6gb were elsewhere, 1 could hold it if job 5's 1g.6gb were "
            "elsewhere, and 2 more if other instances were");
}

TEST(MigShortage, MovesNoInstanceThatIsNoJobs) {
  const std::vector<MigGpu> gpus = {
      cut_gpu("H100-80GB", {{0, "1g.10gb", 4}, {7, "1g.10gb", 0}}),
      cut_gpu("H100-80GB", {{0, "1g.10gb", 0}, {0, "1g.10gb", 6}}),
  };
  EXPECT_EQ(sentence_about("3g.40gb", gpus),
            "a 3g.40gb fits on no GPU: 1 could hold it if job 7's 1g.10gb were elsewhere");
  EXPECT_EQ(sentence_about("7g.80gb", gpus), "a 7g.80gb fits on no GPU");
}

TEST(MigShortage, CountsTheGpusThatHaveAPlace) {
  const std::vector<MigGpu> gpus = {cut_gpu("H100-80GB", {{7, "1g.10gb", 0}}),
                                    cut_gpu("A30-24GB", {})};
  EXPECT_EQ(sentence_about("3g.40gb", gpus), "a 3g.40gb fits on 1 GPU");
  EXPECT_EQ(sentence_about("7g.80gb", gpus),
            "a 7g.80gb fits on no GPU: 1 could hold it if job 7's 1g.10gb were elsewhere");
}

TEST(MigShortage, TheMediaEnginesAreInTheWayAsWell) {
  EXPECT_EQ(sentence_about("1g.10gb+me", {cut_gpu("H100-80GB", {{7, "1g.10gb+me", 6}})}),
            "a 1g.10gb+me fits on no GPU: 1 could hold it if job 7's 1g.10gb+me were elsewhere");
}

TEST(MigShortage, NamesTheProfilesThatThereAre) {
  EXPECT_EQ(sentence_about("3g.47gb", {cut_gpu("A30-24GB", {})}),
            "no GPU has the MIG profile 3g.47gb; there are 1g.6gb, 1g.6gb+me, 2g.12gb, "
            "2g.12gb+me, 4g.24gb");
  EXPECT_EQ(sentence_about("3g.47gb", {}), "no GPU takes MIG instances, so none has 3g.47gb");
}

}  // namespace
}  // namespace gpu_platform::scheduling
