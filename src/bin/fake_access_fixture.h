#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "execution/attempt_access.h"

namespace gpu_platform::bin {

// An engine as clients ask it: writes down what it is asked.
class FakeAccess final : public execution::AttemptAccess {
 public:
  explicit FakeAccess(std::string folder = {}) : folder_(std::move(folder)) {}

  void open_channel(model::ChannelOrder order, ChannelOpened done) override {
    opened_.push_back(order.attempt);
    if (channel_.is_open()) return done(std::move(channel_));
    done(base::fail(base::ErrorCode::kFailedPrecondition, "it does not run"));
  }
  std::string step_of(model::AttemptId) const override { return step_; }
  std::string output_of(model::AttemptId attempt) const override {
    return folder_ + "/" + std::to_string(attempt.job.value) + "." +
           std::to_string(attempt.attempt);
  }
  void follow_output(model::AttemptId attempt) override { followed_.push_back(attempt); }
  bool awaits_output(model::AttemptId) const override { return awaits_; }
  bool has_output(model::JobId) const override { return false; }
  void remove_output(std::vector<model::JobId>) override {}

  void set_channel(int descriptor) { channel_.reset(descriptor); }
  void set_step(std::string step) { step_ = std::move(step); }
  void set_awaits(bool awaits) { awaits_ = awaits; }
  const std::vector<model::AttemptId>& opened() const { return opened_; }
  const std::vector<model::AttemptId>& followed() const { return followed_; }

 private:
  const std::string folder_;
  std::string step_;
  bool awaits_ = false;
  os::Descriptor channel_;
  std::vector<model::AttemptId> opened_;
  std::vector<model::AttemptId> followed_;
};

}  // namespace gpu_platform::bin
