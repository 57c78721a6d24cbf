#include "doctor/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gpu_platform::doctor {

std::string findings_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"check", finding.check},
                    {"verdict", to_string(finding.verdict)},
                    {"text", finding.text},
                    {"advice", finding.advice}});
  }
  const nlohmann::ordered_json document = {{"verdict", to_string(overall(findings))},
                                           {"findings", list}};
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string advice_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const Advice& advice : advice_of(findings)) {
    if (text.empty()) text = "\nWhat to do\n";
    text += fmt::format("  {}: {}\n", advice.checks, advice.text);
  }
  return text;
}

}  // namespace gpu_platform::doctor
