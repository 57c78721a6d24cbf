#include "execution/engine_contract.h"
#include "execution/kubernetes/kubernetes_harness_fixture.h"

namespace gpu_platform::execution::testing {

namespace {

std::unique_ptr<EngineHarness> make_harness() {
  return std::make_unique<KubernetesHarness>();
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Kubernetes, EngineContract,
                         ::testing::Values(EngineUnderTest{"Kubernetes", make_harness}),
                         name_of_engine);

}  // namespace gpu_platform::execution::testing
