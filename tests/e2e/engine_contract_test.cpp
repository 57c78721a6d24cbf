// The suite of all engines (execution/engine_contract.h) on jobs with an image: the process engine,
// whose supervisors start containers of a real container engine.

#include <sys/stat.h>

#include <fstream>
#include <memory>

#include "containers_fixture.h"
#include "execution/engine_contract.h"
#include "execution/process/process_harness_fixture.h"
#include "harness.h"
#include "model/job_spec.h"

namespace gpu_platform::execution::testing {
namespace {

constexpr std::uint32_t kBobsUid = 34;

// One container engine for the whole suite: it takes longer to start than a test.
class ContainerEngine : public ::testing::Environment {
 public:
  explicit ContainerEngine(std::uint32_t uid) : uid_(uid) {}
  // Why there is none; empty: it runs.
  std::string start() {
    if (engine_ == nullptr) {
      engine_ = std::make_unique<e2e::Engine>(uid_);
      why_ = engine_->start();
    }
    return why_;
  }
  const e2e::Engine& engine() const { return *engine_; }
  void TearDown() override { engine_.reset(); }

 private:
  const std::uint32_t uid_;
  std::unique_ptr<e2e::Engine> engine_;
  std::string why_;
};

// GoogleTest is their owner. One is root's, one is the user's own.
ContainerEngine& container_engine() {
  static auto* const only = new ContainerEngine(0);
  return *only;
}
ContainerEngine& rootless_engine() {
  static auto* const only = new ContainerEngine(kBobsUid);
  return *only;
}
const ::testing::Environment* const registered[] = {
    ::testing::AddGlobalTestEnvironment(&container_engine()),
    ::testing::AddGlobalTestEnvironment(&rootless_engine())};

// The job's directory is its directory in the container, too. With an engine of the user's own the
// launcher is that user's, and makes no cgroups.
class ContainerHarness : public ProcessHarness {
 public:
  ContainerHarness(Mode mode, ContainerEngine& containers)
      : ProcessHarness(mode), containers_(containers) {}
  ~ContainerHarness() override {
    if (engine_ == nullptr) return;
    TearDown();
    EXPECT_TRUE(e2e::eventually([&] { return containers_.engine().containers().empty(); }));
    containers_.engine().clear();  // what was left shall fail no other test
  }

  std::string open() override {
    if (std::string why = containers_.start(); !why.empty()) return why;
    chmod(rules_.path().c_str(), 0755);
    options_.containers = rules_.path() + "/rules";
    return ProcessHarness::open();
  }
  StartOrder order(std::uint64_t job, const Act& act) override {
    StartOrder start = ProcessHarness::order(job, act);
    auto spec = *start.spec;
    spec.image = e2e::kImage;
    spec.uid = spec.gid = kBobsUid;
    spec.mounts = {work_ + ":/work"};
    spec.container_workdir = "/work";
    start.spec = std::make_shared<model::JobSpec>(spec);
    return start;
  }

 private:
  void prepare() override {
    std::ofstream(options_.containers)
        << "socket " << containers_.engine().socket()
        << "\nulimit nofile 1024\nulimit nproc 1024\nimage localhost/*\nmount " << work_ << "\n";
    chmod(options_.containers.c_str(), 0644);
  }

  ContainerEngine& containers_;
  e2e::TemporaryDirectory rules_;
};

INSTANTIATE_TEST_SUITE_P(Container, EngineContract,
                         ::testing::Values(EngineUnderTest{
                             "Container",
                             []() -> std::unique_ptr<EngineHarness> {
                               return std::make_unique<ContainerHarness>(Mode::kCgroup,
                                                                         container_engine());
                             }}),
                         name_of_engine);
INSTANTIATE_TEST_SUITE_P(RootlessContainer, EngineContract,
                         ::testing::Values(EngineUnderTest{
                             "RootlessContainer",
                             []() -> std::unique_ptr<EngineHarness> {
                               return std::make_unique<ContainerHarness>(Mode::kAdvisory,
                                                                         rootless_engine());
                             }}),
                         name_of_engine);

}  // namespace
}  // namespace gpu_platform::execution::testing
