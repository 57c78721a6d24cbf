#include "logging/harmless_sink.h"

#include <string>
#include <string_view>
#include <utility>

#include <spdlog/details/log_msg.h>
#include <spdlog/formatter.h>

#include "logging/line.h"

namespace gpu_platform::logging {

namespace {

class HarmlessSink final : public spdlog::sinks::sink {
 public:
  explicit HarmlessSink(std::shared_ptr<spdlog::sinks::sink> inner) : inner_(std::move(inner)) {}

  void log(const spdlog::details::log_msg& message) override {
    const std::string line =
        one_line(std::string_view(message.payload.data(), message.payload.size()));
    spdlog::details::log_msg harmless = message;
    harmless.payload = spdlog::string_view_t(line.data(), line.size());
    inner_->log(harmless);
  }
  void flush() override { inner_->flush(); }
  void set_pattern(const std::string& pattern) override { inner_->set_pattern(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    inner_->set_formatter(std::move(formatter));
  }

 private:
  std::shared_ptr<spdlog::sinks::sink> inner_;
};

}  // namespace

std::shared_ptr<spdlog::sinks::sink> harmless(std::shared_ptr<spdlog::sinks::sink> inner) {
  return std::make_shared<HarmlessSink>(std::move(inner));
}

}  // namespace gpu_platform::logging
