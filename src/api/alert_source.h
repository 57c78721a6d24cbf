#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "alerts/alert.h"
#include "alerts/rule_table.h"
#include "alerts/silence.h"
#include "base/result.h"
#include "base/units.h"

namespace gpu_platform::api {

// A channel, and how it does.
struct AlertChannelView {
  std::string name;
  std::string kind;  // "slack"
  std::uint64_t waiting = 0;
  std::uint64_t sent = 0;
  std::uint64_t refused = 0;
  std::uint64_t dropped = 0;
  std::optional<base::Instant> oldest;
  std::optional<base::Instant> last_sent;
  std::string problem;  // of the last try; empty: it went
};

// The alerts and what people do with them. Safe from any thread; waits for no disk and no network.
class AlertSource {
 public:
  virtual ~AlertSource() = default;

  // Firing, then pending, then those that were resolved lately.
  virtual std::vector<alerts::Alert> alerts() const = 0;
  virtual std::optional<alerts::Alert> find(const std::string& id) const = 0;
  virtual std::vector<alerts::Rule> rules() const = 0;
  virtual std::vector<alerts::Silence> silences() const = 0;
  virtual std::vector<AlertChannelView> channels() const = 0;

  virtual base::Result<alerts::Silence> add_silence(alerts::Silence silence) = 0;
  virtual base::Result<alerts::Silence> end_silence(std::uint64_t id) = 0;
  virtual base::Result<alerts::Alert> acknowledge(const std::string& id, std::string by,
                                                  std::string comment) = 0;
  // Sends a message to the channel, past its queue. Calls `done` once, on another thread, within
  // the channel's time limit. kNotFound: there is no such channel.
  virtual void test(const std::string& channel, std::string by,
                    std::function<void(base::Status)> done) = 0;
};

}  // namespace gpu_platform::api
