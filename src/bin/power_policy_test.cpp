#include "bin/power_policy.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "bin/captured_log_fixture.h"
#include "bin/folder_fixture.h"
#include "os/packet_socket.h"

namespace gpu_platform::bin {
namespace {

class PowerPolicyTest : public ::testing::Test, public node::ProbeListener {
 protected:
  struct Asked {
    std::string node;
    node::RunDriver request;
    os::Descriptor answer;
  };

  void on_report(node::ProbeReport) override { ++passed_on_; }

  void start(std::vector<config::PowerLimit> wanted) {
    policy_ = std::make_unique<PowerPolicy>(
        PowerPolicy::Options{std::move(wanted), folder_.path() + "/power-limits",
                             [this](const std::string& node, const node::RunDriver& request) {
                               return ask(node, request);
                             },
                             [this](const std::string& uuid, base::Milliwatts limit) {
                               const std::lock_guard lock(mutex_);
                               set_.emplace_back(uuid, limit.value());
                               changed_.notify_all();
                             }},
        *this);
  }

  base::Result<os::Descriptor> ask(const std::string& node, const node::RunDriver& request) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const std::lock_guard lock(mutex_);
    asked_.push_back({node, request, os::Descriptor(ends[1])});
    changed_.notify_all();
    return os::Descriptor(ends[0]);
  }

  void report(std::int64_t milliwatts) {
    hardware::Inventory inventory;
    inventory.gpus.resize(1);
    inventory.gpus[0].uuid = "GPU-1";
    inventory.gpus[0].model = "NVIDIA H100 80GB HBM3";
    inventory.gpus[0].memory = base::kGiB * 80;
    inventory.gpus[0].power_limit = base::Milliwatts(milliwatts);
    policy_->on_report({"n1", false, inventory});
  }

  Asked next_asked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !asked_.empty(); });
    Asked asked = std::move(asked_.front());
    asked_.pop_front();
    return asked;
  }

  // Answers the next request, and returns its watts.
  std::uint32_t answer(const std::string& failure) {
    const Asked asked = next_asked();
    EXPECT_EQ(asked.node, "n1");
    EXPECT_EQ(asked.request.verb, node::DriverVerb::kPower);
    EXPECT_EQ(asked.request.gpus, std::vector<std::string>{"GPU-1"});
    EXPECT_TRUE(os::send_packet(
        asked.answer.get(), node::encode_driver_answer(node::failed_answer({"GPU-1"}, failure))));
    return asked.request.watts;
  }

  void wait_until_set(std::size_t times) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return set_.size() == times; });
  }

  std::string kept() const { return folder_.read("power-limits"); }

  const TestFolder folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Asked> asked_;
  std::vector<std::pair<std::string, std::int64_t>> set_;
  int passed_on_ = 0;
  std::unique_ptr<PowerPolicy> policy_;  // last: its thread uses the others
};

TEST_F(PowerPolicyTest, LimitIsSetOnceAndGivenBackWithoutItsEntry) {
  start({{"H100", 500}});
  report(700'000);
  EXPECT_EQ(passed_on_, 1);
  EXPECT_EQ(answer(""), 500u);
  wait_until_set(1);
  EXPECT_EQ(set_.back(), std::make_pair(std::string("GPU-1"), std::int64_t{500'000}));
  EXPECT_EQ(kept(), "GPU-1 700000 500000\n");

  report(500'000);          // as it was set: nothing is asked
  policy_->set_wanted({});  // and its former limit comes next
  EXPECT_EQ(answer(""), 700u);
  wait_until_set(2);
  policy_.reset();
  EXPECT_EQ(kept(), "");
}

TEST_F(PowerPolicyTest, FormerLimitIsKnownToTheNextDaemon) {
  folder_.write("power-limits", "GPU-1 650000 500000\n");
  start({});
  report(500'000);
  EXPECT_EQ(answer(""), 650u);
  wait_until_set(1);
}

TEST_F(PowerPolicyTest, ChangedEntryKeepsTheFormerLimit) {
  folder_.write("power-limits", "GPU-1 700000 500000\n");
  start({{"n1", 400}});
  report(500'000);
  EXPECT_EQ(answer(""), 400u);
  wait_until_set(1);
  policy_.reset();
  EXPECT_EQ(kept(), "GPU-1 700000 400000\n");
}

TEST_F(PowerPolicyTest, RefusalIsNotAskedAgainBeforeTheNextInventoryOrConfiguration) {
  folder_.write("power-limits", "GPU-1 700000 500000\n");
  start({{"n1", 400}});
  report(500'000);
  EXPECT_EQ(answer("the rules do not allow it"), 400u);
  policy_->set_wanted({{"n1", 450}});
  EXPECT_EQ(answer("the rules do not allow it"), 450u);
  policy_.reset();
  EXPECT_TRUE(asked_.empty());
  EXPECT_TRUE(set_.empty());
  EXPECT_EQ(kept(), "GPU-1 700000 500000\n") << "no change was made";
}

TEST_F(PowerPolicyTest, EntriesThatNoGpuFitsAreWarnedOfWhenAllNodesAreKnown) {
  const CapturedLog log;
  start({{"A100", 300}});
  const auto warnings = [&] {
    return std::ranges::count_if(log.lines(), [](const std::string& line) {
      return line.starts_with("warning: ") && line.find("\"A100\"") != std::string::npos;
    });
  };
  report(700'000);
  EXPECT_EQ(warnings(), 0) << "another node may have such a GPU";
  policy_->warn_of_unused_entries();
  policy_->warn_of_unused_entries();
  EXPECT_EQ(warnings(), 1);
  policy_->set_wanted({{"A100", 250}});
  EXPECT_EQ(warnings(), 2) << "of a new configuration";
}

TEST_F(PowerPolicyTest, EndDoesNotWaitForAnAnswer) {
  start({{"H100", 500}});
  report(700'000);
  const Asked asked = next_asked();
  policy_.reset();
  EXPECT_EQ(kept(), "GPU-1 700000 500000\n") << "the limit may still be set";
}

}  // namespace
}  // namespace gpu_platform::bin
