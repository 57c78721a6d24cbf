#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/histogram.h"
#include "controller/statistics.h"

namespace gpu_platform::api {

// Counts and times the answers of the interface by call and status. Safe from any thread.
class CallMeter {
 public:
  struct Row {
    std::string call;                                 // "JobService.SubmitJob"; empty: no call
    std::map<int, std::uint64_t> answers;             // by HTTP status
    base::Histogram seconds{controller::kWorkTimes};  // until the answer began
  };

  void note(std::string_view call, int status, double seconds);
  // Returns the rows in the order of calls.
  std::vector<Row> read() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Row, std::less<>> rows_;  // guarded by mutex_; as many as there are calls
};

}  // namespace gpu_platform::api
