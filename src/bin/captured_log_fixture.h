#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

namespace gpu_platform::bin {

// Takes the place of the log while it lives, and keeps its lines: "info: text".
class CapturedLog {
 public:
  CapturedLog() : sink_(std::make_shared<Sink>()), former_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>("captured", sink_);
    logger->set_level(spdlog::level::debug);
    spdlog::set_default_logger(std::move(logger));
  }
  ~CapturedLog() { spdlog::set_default_logger(former_); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::vector<std::string> lines() const { return sink_->lines(); }

 private:
  class Sink : public spdlog::sinks::base_sink<std::mutex> {
   public:
    std::vector<std::string> lines() {
      const std::lock_guard lock(mutex_);
      return lines_;
    }

   protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
      const auto level = spdlog::level::to_string_view(message.level);
      lines_.push_back(std::string(level.data(), level.size()) + ": " +
                       std::string(message.payload.data(), message.payload.size()));
    }
    void flush_() override {}

   private:
    std::vector<std::string> lines_;  // guarded by mutex_ of the base
  };

  const std::shared_ptr<Sink> sink_;
  const std::shared_ptr<spdlog::logger> former_;
};

}  // namespace gpu_platform::bin
