#pragma once

#include <string_view>

namespace gpu_platform::api {

// A call that the log has a line about: it was refused, or its answer took a second or more and it
// is none that waits for something.
struct NotableCall {
  std::string_view request_id;  // as in the problem document
  std::string_view call;        // "JobService.SubmitJob"; empty: it was not read so far
  int status = 0;
  double seconds = 0;
};

}  // namespace gpu_platform::api
