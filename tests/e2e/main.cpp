#include <filesystem>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

// The program of all end-to-end tests.

namespace gpu_platform::e2e {

int run_attack(int argc, char** argv);  // attack_job_test.cpp

namespace {

// The tests of the file NAME_test.cpp, or of a suite NAME.h that it brings in, where the program is
// called as e2e_NAME_test; otherwise all.
std::string filter_for(std::string_view program) {
  constexpr std::string_view kPrefix = "e2e_";
  if (program.starts_with(kPrefix)) program.remove_prefix(kPrefix.size());
  std::string filter;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(j);
      const std::string file = std::filesystem::path(test.file()).stem();
      if (file != program && file + "_test" != program) continue;
      filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter.empty() ? "*" : filter;
}

}  // namespace
}  // namespace gpu_platform::e2e

int main(int argc, char** argv) {
  using namespace gpu_platform::e2e;
  // The tests call the program so, as a user who attacks.
  if (argc > 2 && std::string_view(argv[1]) == "attack") return run_attack(argc, argv);
  const std::string name = std::filesystem::path(argv[0]).filename();
  ::testing::InitGoogleMock(&argc, argv);
  if (GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, filter_for(name));
  return RUN_ALL_TESTS();
}
