// The suite of all engines (execution/engine_contract.h) on jobs with an image: the process engine,
// whose supervisors start containers of a real container engine.

#include <sys/stat.h>

#include <fstream>
#include <memory>

#include "containers_fixture.h"
#include "execution/engine_contract.h"
#include "execution/process/process_harness_fixture.h"
#include "harness.h"

namespace gpu_platform::execution::testing {
namespace {

constexpr std::uint32_t kNobody = 65534;

// One container engine for the whole suite: it takes longer to start than a test.
class ContainerEngine : public ::testing::Environment {
 public:
  // Why there is none; empty: it runs.
  std::string start() {
    if (engine_ == nullptr) {
      engine_ = std::make_unique<e2e::Engine>();
      why_ = engine_->start();
    }
    return why_;
  }
  const e2e::Engine& engine() const { return *engine_; }
  void TearDown() override { engine_.reset(); }

 private:
  std::unique_ptr<e2e::Engine> engine_;
  std::string why_;
};

// GoogleTest is its owner.
ContainerEngine& container_engine() {
  static auto* const only = new ContainerEngine;
  return *only;
}
const ::testing::Environment* const registered =
    ::testing::AddGlobalTestEnvironment(&container_engine());

// The job's directory is its directory in the container, too.
class ContainerHarness : public ProcessHarness {
 public:
  ContainerHarness() : ProcessHarness(Mode::kCgroup) {}
  ~ContainerHarness() override {
    if (engine_ == nullptr) return;
    TearDown();
    EXPECT_TRUE(e2e::eventually([] { return container_engine().engine().containers().empty(); }));
  }

  std::string open() override {
    if (std::string why = container_engine().start(); !why.empty()) return why;
    options_.containers = rules_.path() + "/rules";
    return ProcessHarness::open();
  }
  StartOrder order(std::uint64_t job, const Act& act) override {
    StartOrder start = ProcessHarness::order(job, act);
    auto spec = *start.spec;
    spec.image = e2e::kImage;
    spec.uid = spec.gid = kNobody;
    spec.mounts = {work_ + ":/work"};
    spec.container_workdir = "/work";
    start.spec = std::make_shared<model::JobSpec>(spec);
    return start;
  }

 private:
  void prepare() override {
    std::ofstream(options_.containers)
        << "socket " << container_engine().engine().socket()
        << "\nulimit nofile 1024\nulimit nproc 1024\nimage localhost/*\nmount " << work_ << "\n";
    chmod(options_.containers.c_str(), 0644);
  }

  e2e::TemporaryDirectory rules_;
};

INSTANTIATE_TEST_SUITE_P(Container, EngineContract,
                         ::testing::Values(EngineUnderTest{
                             "Container",
                             []() -> std::unique_ptr<EngineHarness> {
                               return std::make_unique<ContainerHarness>();
                             }}),
                         name_of_engine);

}  // namespace
}  // namespace gpu_platform::execution::testing
