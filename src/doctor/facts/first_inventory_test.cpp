#include "doctor/facts/first_inventory.h"

#include <gtest/gtest.h>

#include <thread>

namespace gpu_platform::doctor {
namespace {

constexpr std::chrono::minutes kLong{1};

hardware::Inventory inventory_of(const std::string& driver) {
  hardware::Inventory inventory;
  inventory.problem = {hardware::ProblemKind::kOther, driver};
  return inventory;
}

std::string problem_of(const hardware::Inventory& inventory) {
  return inventory.problem ? inventory.problem->message : std::string("none");
}

TEST(FirstInventory, IsTheFirstThatComes) {
  FirstInventory seen;
  seen.on_report({"host", false, node::ProbeReadings()});
  seen.on_report({"host", false, inventory_of("first")});
  seen.on_report({"host", false, inventory_of("second")});
  EXPECT_EQ(problem_of(seen.wait(kLong)), "first");
}

TEST(FirstInventory, IsWaitedFor) {
  FirstInventory seen;
  std::thread probe([&] { seen.on_report({"host", false, inventory_of("late")}); });
  EXPECT_EQ(problem_of(seen.wait(kLong)), "late");
  probe.join();
}

TEST(FirstInventory, AProbeThatFailsIsItsProblem) {
  FirstInventory seen;
  seen.on_report({"host", false, node::ProbeProblem{node::ProbeTrouble::kDied, "it died"}});
  EXPECT_EQ(problem_of(seen.wait(kLong)), "it died");
}

TEST(FirstInventory, AProbeThatSaysNothingIsADriverThatDoesNotAnswer) {
  FirstInventory seen;
  EXPECT_EQ(problem_of(seen.wait(std::chrono::milliseconds(0))), "the driver does not answer");
}

}  // namespace
}  // namespace gpu_platform::doctor
