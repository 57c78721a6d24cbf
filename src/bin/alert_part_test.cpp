#include "bin/alert_part.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bin/outbox_fixture.h"
#include "os/clock.h"
#include "os/testing/eventually.h"

namespace gpu_platform::bin {
namespace {

class FakeNotes final : public telemetry::Notes {
 public:
  void put(std::string name, std::string bytes) override {
    const std::lock_guard lock(mutex_);
    notes_[std::move(name)] = std::move(bytes);
  }
  void remove(std::string name) override {
    const std::lock_guard lock(mutex_);
    notes_.erase(name);
  }
  std::optional<std::string> get(const std::string& name) const override {
    const std::lock_guard lock(mutex_);
    const auto found = notes_.find(name);
    return found == notes_.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<Note> all(const std::string& prefix) const override {
    const std::lock_guard lock(mutex_);
    std::vector<Note> found;
    for (const auto& [name, bytes] : notes_) {
      if (name.starts_with(prefix)) found.push_back({name, bytes});
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> notes_;
};

class AlertPartTest : public testing::Test {
 protected:
  AlertPartTest() {
    model::Node node;
    node.id = model::NodeId(1);
    node.name = "n1";
    model::Gpu gpu;
    gpu.info.uuid = "GPU-0";
    node.gpus.push_back(gpu);
    controller::Snapshot snapshot;
    snapshot.nodes.put(1, node);
    snapshot_ = std::make_shared<const controller::Snapshot>(std::move(snapshot));
  }
  std::unique_ptr<AlertPart> opened() {
    config::Configuration site;
    site.alert_group_wait = {};
    config::AlertRule rule;
    rule.name = "GpuHot";
    rule.hold = base::Duration();
    site.alert_rules.push_back(rule);
    config::AlertChannel channel;
    channel.name = "hook";
    channel.kind = "webhook";
    channel.url = "https://hooks.example.org";
    site.alert_channels.push_back(channel);
    config::AlertRoute route;
    route.rules = {"GpuHot"};
    route.channels = {"hook"};
    site.alert_routes.push_back(route);
    AlertPart::Options options;
    options.data_dir = "/";
    options.snapshot = [this] { return snapshot_; };
    options.reading_of = [this](std::string_view) {
      model::GpuReading reading;
      reading.at = os::wall_now();
      reading.temperature_c = heat_.load();
      return std::make_shared<const model::GpuReading>(std::move(reading));
    };
    options.notes = &notes_;
    auto settings = alert_settings_of(site);
    EXPECT_TRUE(settings) << settings.error().message;
    auto part = std::make_unique<AlertPart>(std::move(options), *std::move(settings),
                                            std::make_unique<FakeOutbox>(sent_));
    part->start();
    return part;
  }
  // The probe has read the node.
  void read(AlertPart& part, std::int32_t heat) {
    heat_ = heat;
    telemetry::Frame frame;
    frame.subject = {telemetry::Of::kGpu, "n1", "GPU-0", {}};
    part.take(std::make_shared<const std::vector<telemetry::Frame>>(1, frame));
  }
  static std::string state_of(const AlertPart& part) {
    for (const alerts::Alert& alert : part.alerts()) {
      if (alert.rule == "GpuHot") return std::string(to_string(alert.state));
    }
    return {};
  }

  Sent sent_;
  FakeNotes notes_;
  std::atomic<std::int32_t> heat_ = 40;
  std::shared_ptr<const controller::Snapshot> snapshot_;
};

TEST_F(AlertPartTest, AReadingIsToldAndItsEndIsToldByTheNextDaemon) {
  auto first = opened();
  read(*first, 88);
  ASSERT_TRUE(os::eventually([&] { return sent_.count() == 1; }));
  EXPECT_NE(sent_.body(0).find("GPU 0 of n1 has 88 °C"), std::string::npos) << sent_.body(0);
  first.reset();
  auto second = opened();
  EXPECT_EQ(state_of(*second), "FIRING");
  read(*second, 40);
  ASSERT_TRUE(os::eventually([&] { return sent_.count() == 2; }));
  EXPECT_EQ(state_of(*second), "RESOLVED");
  second.reset();
  EXPECT_GE(notes_.all("alert/").size(), 1U);
  EXPECT_NE(sent_.body(1).find("\"firing\":[],\"resolved\":[{"), std::string::npos)
      << sent_.body(1);
}

TEST_F(AlertPartTest, AMessageThatTheDiskHasNoRoomForIsPutLater) {
  sent_.set_full(true);
  auto part = opened();
  read(*part, 88);
  ASSERT_TRUE(os::eventually([&] { return state_of(*part) == "FIRING"; }));
  sent_.set_full(false);
  EXPECT_TRUE(os::eventually([&] {
    read(*part, 88);
    return sent_.count() == 1;
  }));
}

TEST_F(AlertPartTest, ASilenceMadeByACallHoldsMessagesBack) {
  auto part = opened();
  alerts::Silence silence;
  silence.matchers = {{"node", "n1"}};
  silence.until = os::wall_now() + base::hours(1);
  const auto made = part->add_silence(silence);
  ASSERT_TRUE(made) << made.error().message;
  read(*part, 88);
  ASSERT_TRUE(os::eventually([&] { return state_of(*part) == "FIRING"; }));
  EXPECT_EQ(part->silences().size(), 1U);
  ASSERT_TRUE(part->end_silence(made->id));
  EXPECT_TRUE(os::eventually([&] { return sent_.count() == 1; }));
}

TEST_F(AlertPartTest, AChannelIsTriedPastItsQueue) {
  auto part = opened();
  const auto tried = [&](const std::string& channel) {
    auto answer = std::make_shared<std::promise<base::Status>>();
    part->test(channel, "ann", [answer](base::Status went) { answer->set_value(std::move(went)); });
    return answer->get_future().get();
  };
  EXPECT_TRUE(tried("hook"));
  EXPECT_EQ(tried("none").error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(part->channels().at(0).kind, "webhook");
  part->stop();
  EXPECT_EQ(tried("hook").error().code, base::ErrorCode::kUnavailable);
  EXPECT_EQ(sent_.count(), 0U);
}

}  // namespace
}  // namespace gpu_platform::bin
