#include <fmt/format.h>

#include "kubernetes/client.h"
#include "kubernetes/json_values.h"
#include "kubernetes/text_file.h"

namespace gpu_platform::kubernetes {

std::string error_message_of(const Answer& answer) {
  if (answer.status == 0) return printable(answer.failure);
  const nlohmann::json body = nlohmann::json::parse(answer.body, nullptr, false);
  if (text_of(body, "kind") == "Status") {
    if (std::string said = printable(text_of(body, "message"), 1000); !said.empty()) return said;
    if (std::string said = printable(text_of(body, "reason")); !said.empty()) return said;
  }
  const std::string beginning = printable(answer.body);
  return fmt::format("HTTP {}{}{}", answer.status, beginning.empty() ? "" : ": ", beginning);
}

}  // namespace gpu_platform::kubernetes
