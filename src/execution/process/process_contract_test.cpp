// The suite of all engines on processes, with and without cgroups.

#include "execution/engine_contract.h"
#include "execution/process/process_harness_fixture.h"

namespace gpu_platform::execution::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Process, EngineContract,
    ::testing::Values(EngineUnderTest{"Cgroup",
                                      []() -> std::unique_ptr<EngineHarness> {
                                        return std::make_unique<ProcessHarness>(Mode::kCgroup);
                                      }},
                      EngineUnderTest{"Advisory",
                                      []() -> std::unique_ptr<EngineHarness> {
                                        return std::make_unique<ProcessHarness>(Mode::kAdvisory);
                                      }}),
    name_of_engine);

}  // namespace
}  // namespace gpu_platform::execution::testing
