#include "doctor/facts/first_inventory.h"

#include <utility>

namespace gpu_platform::doctor {

void FirstInventory::on_report(node::ProbeReport report) {
  const std::lock_guard lock(mutex_);
  if (inventory_) return;
  if (auto* inventory = std::get_if<hardware::Inventory>(&report.content)) {
    inventory_ = std::move(*inventory);
  } else if (const auto* problem = std::get_if<node::ProbeProblem>(&report.content)) {
    inventory_.emplace().problem = {hardware::ProblemKind::kOther, problem->message};
  }
  changed_.notify_all();
}

hardware::Inventory FirstInventory::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, timeout, [&] { return inventory_.has_value(); })) {
    return *inventory_;
  }
  hardware::Inventory none;
  none.problem = {hardware::ProblemKind::kOther, "the driver does not answer"};
  return none;
}

}  // namespace gpu_platform::doctor
