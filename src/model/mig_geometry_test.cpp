#include "model/mig_geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/gpu_catalogue.h"

namespace gpu_platform::model {
namespace {

const MigProfile& mig_profile_named(const MigGeometry& geometry, std::string_view name) {
  const auto found = find_profile(geometry, *parse_mig_profile(name));
  EXPECT_TRUE(found.has_value()) << name;
  return geometry.profiles[found.value_or(0)];
}

// What the drivers of two GPUs answered, and the ids of a GPU of four slices.
MigProfileFacts mig_answer(std::uint32_t number, std::uint32_t id, std::uint32_t compute_slices,
                           std::uint32_t max_instances, std::int64_t memory_mib,
                           std::vector<std::uint32_t> starts, std::uint32_t size) {
  MigProfileFacts facts{.number = number,
                        .id = id,
                        .name = {},
                        .compute_slices = compute_slices,
                        .max_instances = max_instances,
                        .memory = base::kMiB * memory_mib,
                        .placements = {}};
  for (const std::uint32_t start : starts) facts.placements.push_back({start, size});
  return facts;
}

const std::vector<std::uint32_t> kMigAnyOfSeven = {0, 1, 2, 3, 4, 5, 6};

std::vector<MigProfileFacts> mig_facts_of_h200() {
  return {mig_answer(0, 19, 1, 7, 16384, kMigAnyOfSeven, 1),
          mig_answer(1, 14, 2, 3, 33280, {0, 2, 4}, 2),
          mig_answer(2, 9, 3, 2, 71424, {0, 4}, 4),
          mig_answer(3, 5, 4, 1, 71424, {0}, 4),
          mig_answer(4, 0, 7, 1, 143360, {0}, 8),
          mig_answer(7, 20, 1, 1, 16384, kMigAnyOfSeven, 1),
          mig_answer(9, 15, 1, 4, 33280, {0, 2, 4, 6}, 2)};
}

std::vector<MigProfileFacts> mig_facts_of_h100() {
  return {mig_answer(0, 19, 1, 7, 9984, kMigAnyOfSeven, 1),
          mig_answer(1, 14, 2, 3, 20096, {0, 2, 4}, 2),
          mig_answer(2, 9, 3, 2, 40448, {0, 4}, 4),
          mig_answer(3, 5, 4, 1, 40448, {0}, 4),
          mig_answer(4, 0, 7, 1, 81152, {0}, 8),
          mig_answer(7, 20, 1, 1, 9984, kMigAnyOfSeven, 1),
          mig_answer(9, 15, 1, 4, 20096, {0, 2, 4, 6}, 2)};
}

std::vector<MigProfileFacts> mig_facts_of_a30() {
  return {mig_answer(0, 14, 1, 4, 5952, {0, 1, 2, 3}, 1),
          mig_answer(7, 21, 1, 1, 5952, {0, 1, 2, 3}, 1), mig_answer(1, 5, 2, 2, 11968, {0, 2}, 2),
          mig_answer(8, 6, 2, 1, 11968, {0, 2}, 2), mig_answer(3, 0, 4, 1, 24000, {0}, 4)};
}

constexpr base::Bytes kMigMemoryOfH200{150'754'820'096};
constexpr base::Bytes kMigMemoryOfH100{85'520'809'984};
constexpr base::Bytes kMigMemoryOfA30{25'298'141'184};

TEST(MigGeometry, OfTheTableIsOfTypesOfTheCatalogue) {
  const auto types = gpu_types_with_mig();
  EXPECT_EQ(types,
            (std::vector<std::string_view>{"A100-40GB", "A100-80GB", "A30-24GB", "B200-180GB",
                                           "H100-80GB", "H100-94GB", "H100-96GB", "H200-141GB"}));
  for (const std::string_view type : types) {
    EXPECT_EQ(canonical_gpu_type(type), type);
    EXPECT_NE(known_mig_geometry(type), nullptr) << type;
  }
  EXPECT_EQ(known_mig_geometry("T4-16GB"), nullptr);
  EXPECT_EQ(known_mig_geometry("H100"), nullptr);
}

TEST(MigGeometry, HasTheNamesOfEachType) {
  const auto names = [](std::string_view type) { return profiles_of(*known_mig_geometry(type)); };
  EXPECT_EQ(names("A100-40GB"), "1g.5gb, 1g.5gb+me, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb");
  EXPECT_EQ(names("A100-80GB"), "1g.10gb, 1g.10gb+me, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb");
  EXPECT_EQ(names("H100-80GB"), names("A100-80GB"));
  EXPECT_EQ(names("H100-94GB"), "1g.12gb, 1g.12gb+me, 1g.24gb, 2g.24gb, 3g.47gb, 4g.47gb, 7g.94gb");
  EXPECT_EQ(names("H100-96GB"), "1g.12gb, 1g.12gb+me, 1g.24gb, 2g.24gb, 3g.48gb, 4g.48gb, 7g.96gb");
  EXPECT_EQ(names("H200-141GB"),
            "1g.18gb, 1g.18gb+me, 1g.35gb, 2g.35gb, 3g.71gb, 4g.71gb, 7g.141gb");
  EXPECT_EQ(names("B200-180GB"),
            "1g.23gb, 1g.23gb+me, 1g.45gb, 2g.45gb, 3g.90gb, 4g.90gb, 7g.180gb");
  EXPECT_EQ(names("A30-24GB"), "1g.6gb, 1g.6gb+me, 2g.12gb, 2g.12gb+me, 4g.24gb");
}

TEST(MigGeometry, CountsComputeAndMemorySlicesApart) {
  const MigGeometry& h100 = *known_mig_geometry("H100-80GB");
  EXPECT_EQ(h100.compute_slices, 7U);
  EXPECT_EQ(h100.memory_slices, 8U);
  const MigProfile& three = mig_profile_named(h100, "3g.40gb");
  EXPECT_EQ(three.compute_slices, 3U);
  EXPECT_EQ(three.memory_slices, 4U);
  EXPECT_EQ(slices_of(three, 4), 0b1111'0000);
  EXPECT_EQ(mig_profile_named(h100, "7g.80gb").memory_slices, 8U);
  EXPECT_EQ(slices_of(mig_profile_named(h100, "1g.20gb"), 6), 0b1100'0000);
}

TEST(MigGeometry, HasTheSharesThatAreBilled) {
  const MigGeometry& h100 = *known_mig_geometry("H100-80GB");
  EXPECT_EQ(share_of(h100, mig_profile_named(h100, "1g.20gb")), base::GpuShare(1000));
  EXPECT_EQ(share_of(h100, mig_profile_named(h100, "3g.40gb")), base::GpuShare(3000));
  EXPECT_EQ(share_of(h100, mig_profile_named(h100, "7g.80gb")), base::kWholeGpu);
  const MigGeometry& a30 = *known_mig_geometry("A30-24GB");
  EXPECT_EQ(share_of(a30, mig_profile_named(a30, "1g.6gb")), base::GpuShare(1750));
}

TEST(MigGeometry, HasTheMemoryOfTheDriverOrThatOfItsSlices) {
  const MigGeometry& h100 = *known_mig_geometry("H100-80GB");
  EXPECT_EQ(memory_of(h100, mig_profile_named(h100, "1g.10gb"), base::kGiB * 80),
            base::kMiB * 9984);
  const MigGeometry& b200 = *known_mig_geometry("B200-180GB");
  EXPECT_EQ(memory_of(b200, mig_profile_named(b200, "3g.90gb"), base::kGiB * 180), base::kGiB * 90);
}

TEST(MigGeometry, OfTheDriverIsThatOfTheTable) {
  const auto h200 = geometry_of(mig_facts_of_h200(), kMigMemoryOfH200);
  ASSERT_TRUE(h200.has_value()) << h200.error().message;
  EXPECT_EQ(*h200, *known_mig_geometry("H200-141GB"));
  const auto h100 = geometry_of(mig_facts_of_h100(), kMigMemoryOfH100);
  ASSERT_TRUE(h100.has_value()) << h100.error().message;
  EXPECT_EQ(*h100, *known_mig_geometry("H100-80GB"));
  const auto a30 = geometry_of(mig_facts_of_a30(), kMigMemoryOfA30);
  ASSERT_TRUE(a30.has_value()) << a30.error().message;
  EXPECT_EQ(differences(*a30, *known_mig_geometry("A30-24GB")), std::vector<std::string>());
}

TEST(MigGeometry, TakesTheDriversNames) {
  std::vector<MigProfileFacts> facts = {mig_answer(0, 19, 1, 4, 24000, {0, 1, 2, 3}, 1),
                                        mig_answer(0xD, 47, 1, 4, 24000, {0, 1, 2, 3}, 1)};
  facts[0].name = "MIG 1g.24gb";
  facts[1].name = "MIG 1g.24gb-me";
  const auto geometry = geometry_of(facts, base::kGiB * 96);
  ASSERT_TRUE(geometry.has_value()) << geometry.error().message;
  EXPECT_EQ(profiles_of(*geometry), "1g.24gb, 1g.24gb-me");
  EXPECT_EQ(geometry->memory_slices, 4U);
  facts[1].name = "something else";
  EXPECT_FALSE(geometry_of(facts, base::kGiB * 96).has_value());
}

TEST(MigGeometry, KnowsProfilesOfWhichOneIsThereAtATime) {
  std::vector<MigProfileFacts> facts = mig_facts_of_a30();
  auto geometry = geometry_of(facts, kMigMemoryOfA30);
  ASSERT_TRUE(geometry.has_value());
  const MigGroups media = mig_profile_named(*geometry, "1g.6gb+me").groups;
  EXPECT_NE(media, 0);
  EXPECT_EQ(mig_profile_named(*geometry, "2g.12gb+me").groups, media);
  EXPECT_EQ(mig_profile_named(*geometry, "2g.12gb").groups, 0);
  EXPECT_EQ(mig_profile_named(*geometry, "4g.24gb").groups, 0) << "its placements limit it already";
  facts[2].max_instances = 1;
  geometry = geometry_of(facts, kMigMemoryOfA30);
  ASSERT_TRUE(geometry.has_value());
  EXPECT_NE(mig_profile_named(*geometry, "2g.12gb").groups, 0);
  EXPECT_NE(mig_profile_named(*geometry, "2g.12gb").groups, media);
}

std::string why_not_modelled(const std::vector<MigProfileFacts>& facts) {
  const auto geometry = geometry_of(facts, kMigMemoryOfA30);
  return geometry ? "" : geometry.error().message;
}

TEST(MigGeometry, ThatCannotBeModelledIsRefused) {
  EXPECT_EQ(why_not_modelled({mig_answer(0, 14, 1, 4, 5952, {}, 1)}),
            "the MIG profile 1g.6gb has no placement");
  EXPECT_EQ(why_not_modelled({mig_answer(0, 14, 0, 4, 5952, {0}, 1)}),
            "the MIG profile 0g.6gb has 0 compute slices");
  EXPECT_EQ(why_not_modelled({mig_answer(0, 14, 1, 1, 5952, {7}, 2)}),
            "the MIG profile 1g.6gb has a placement of 2 from 7, and there are at most 8 memory "
            "slices");
  std::vector<MigProfileFacts> facts = mig_facts_of_a30();
  facts[0].placements[1].size = 2;
  EXPECT_EQ(why_not_modelled(facts), "the MIG profile 1g.6gb has placements of several sizes");
  facts = mig_facts_of_a30();
  facts[0].max_instances = 3;
  EXPECT_EQ(why_not_modelled(facts),
            "the MIG profile 1g.6gb has 3 instances at most, although 4 fit");
  facts = mig_facts_of_a30();
  facts[1].number = 0;
  EXPECT_EQ(why_not_modelled(facts), "the MIG profile 1g.6gb is there twice");
  facts = mig_facts_of_a30();
  facts[0].max_instances = facts[2].max_instances = 1;
  EXPECT_EQ(why_not_modelled(facts), "the MIG profile 2g.12gb has a limit of its own");
  EXPECT_FALSE(geometry_of(mig_facts_of_a30(), base::Bytes()).has_value());
}

TEST(MigGeometry, SaysInWhatItDiffersFromTheTable) {
  MigGeometry driver = *known_mig_geometry("H100-80GB");
  const MigGeometry table = driver;
  EXPECT_TRUE(differences(driver, table).empty());
  for (MigProfile& profile : driver.profiles) profile.memory = base::kGiB;
  EXPECT_TRUE(differences(driver, table).empty()) << "memory changes with the driver's version";
  const auto three = *find_profile(driver, {.compute_slices = 3, .memory_gb = 40});
  driver.profiles[three].memory_slices = 3;
  driver.profiles[three].id = 8;
  driver.profiles.back().name.memory_gb = 81;
  EXPECT_EQ(differences(driver, table),
            (std::vector<std::string>{"3g.40gb has the id 8, not 9",
                                      "3g.40gb has the placements {0,4}:3, not {0,4}:4",
                                      "7g.81gb is new", "7g.80gb is missing"}));
}

}  // namespace
}  // namespace gpu_platform::model
