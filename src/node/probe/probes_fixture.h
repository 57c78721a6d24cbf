#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "node/probe/probe_runner.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/testing/eventually.h"

// What the tests of running probes share: what they report, and probes of emulated and broken
// drivers.

namespace gpu_platform::node {

using hardware::Inventory;
using hardware::ProblemKind;

inline constexpr auto kLimit = std::chrono::seconds(30);

// Keeps what is reported and waits for what is wanted.
class Reports final : public ProbeListener {
 public:
  void on_report(ProbeReport report) override {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(report));
    changed_.notify_all();
  }

  // The first report, from the `from`th on, that `wanted` accepts; moves `from` behind it.
  template <class Content, class Wanted>
  std::optional<Content> wait_for(const std::string& node, std::size_t& from, Wanted wanted) {
    std::unique_lock lock(mutex_);
    std::optional<Content> found;
    changed_.wait_for(lock, kLimit, [&] {
      for (; from < reports_.size() && !found; ++from) {
        const auto* content = std::get_if<Content>(&reports_[from].content);
        if (content != nullptr && reports_[from].node_name == node && wanted(*content))
          found = *content;
      }
      return found.has_value();
    });
    return found;
  }

  template <class Content>
  std::optional<Content> wait_for(const std::string& node, std::size_t& from) {
    return wait_for<Content>(node, from, [](const Content&) { return true; });
  }

  // The next report of the kind that is there already.
  template <class Content>
  std::optional<Content> find(const std::string& node, std::size_t& from) {
    const std::lock_guard lock(mutex_);
    for (; from < reports_.size();) {
      const ProbeReport& report = reports_[from++];
      const auto* content = std::get_if<Content>(&report.content);
      if (content != nullptr && report.node_name == node) return *content;
    }
    return std::nullopt;
  }

  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return reports_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ProbeReport> reports_;
};

class Probes : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/probe_runner_test.XXXXXX";
    folder_ = mkdtemp(path);
    options_.executable = PROBE;
    options_.interval = base::milliseconds(20);
    // Only what is about silence waits for it: fall_silent_soon().
    options_.silence_limit = base::seconds(20);
    options_.first_inventory_limit = base::seconds(20);
    options_.min_restart_delay = base::milliseconds(10);
    options_.max_restart_delay = base::milliseconds(100);
  }
  void TearDown() override {
    runner_.reset();
    std::filesystem::remove_all(folder_);
  }

  // layers allow expires: it is to pass; what is to succeed does not wait for it
  void fall_silent_soon() { options_.silence_limit = base::milliseconds(500); }

  void start() {
    auto runner = ProbeRunner::start(options_, reports_);
    ASSERT_TRUE(runner) << runner.error().message;
    runner_ = std::move(*runner);
  }

  ProbeTarget emulated(const std::string& name, const std::string& board = "dgx-h100") {
    const std::string dir = folder_ + "/emulated/" + name;
    EXPECT_EQ(std::system(fmt::format("{} create --board {} --node-name {} --dir {}", GPU_EMULATOR,
                                      board, name, dir)
                              .c_str()),
              0);
    return emulated_target(name, dir, EMULATED_NVML);
  }

  void emulator(const std::string& arguments) {
    ASSERT_EQ(
        std::system(fmt::format("{} {} --data-dir {}", GPU_EMULATOR, arguments, folder_).c_str()),
        0);
  }

  ProbeTarget target(const std::string& library, std::vector<std::string> environment = {}) {
    return {"n1", false, library, "", std::move(environment), "", ""};
  }

  // A program that answers as nvidia-smi does.
  std::string nvidia_smi() {
    const std::string path = folder_ + "/nvidia-smi";
    std::ofstream(path) << "#!/bin/sh\ncd " << SMI_FIXTURES
                        << "\ncase $1 in -q) cat report.xml;;\n"
                           "--query-gpu=index,uuid,name*) cat gpus.csv;;\n"
                           "--query-gpu=*) cat readings.csv;;\n"
                           "--query-compute-apps=*) cat processes.csv;;\nesac\n";
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    return path;
  }

  // The status of the one node, once `wanted` holds; the last one seen where it never does.
  template <class Wanted>
  ProbeStatus wait_for_status(Wanted wanted) {
    ProbeStatus last;
    EXPECT_TRUE(os::eventually([&] {
      for (const ProbeStatus& status : runner_->status()) {
        last = status;
        if (wanted(status)) return true;
      }
      return false;
    }));
    return last;
  }

  std::string folder_;
  ProbeRunnerOptions options_;
  Reports reports_;
  std::unique_ptr<ProbeRunner> runner_;
  std::size_t seen_ = 0;
};

}  // namespace gpu_platform::node
