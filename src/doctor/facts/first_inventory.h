#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "hardware/readings.h"
#include "node/probe/probe_runner.h"

namespace gpu_platform::doctor {

// Keeps the first thing that a probe says about its host. Reports may come on any thread.
class FirstInventory final : public node::ProbeListener {
 public:
  void on_report(node::ProbeReport report) override;

  // Waits until there is one, at most for that time. A probe that failed, or said nothing in time,
  // is the inventory's problem.
  hardware::Inventory wait(std::chrono::milliseconds timeout);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<hardware::Inventory> inventory_;
};

}  // namespace gpu_platform::doctor
