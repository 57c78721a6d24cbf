#include "simulation/reports/fault_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gpu_platform::simulation {

namespace {

std::string hash_text(const FaultReport& report) {
  return fmt::format("{:016x}", report.hash);
}

}  // namespace

std::string fault_report_json(const FaultReport& report, Plant plant) {
  nlohmann::ordered_json faults = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    faults[std::string(to_string(static_cast<FaultKind>(i)))] = report.faults[i];
  }
  nlohmann::ordered_json violations = nlohmann::ordered_json::array();
  for (const Violation& violation : report.violations) {
    violations.push_back({{"seed", violation.seed},
                          {"step", violation.step},
                          {"invariant", violation.invariant},
                          {"text", violation.text},
                          {"command", repeat_command(violation, plant)}});
  }
  const nlohmann::ordered_json document = {{"seeds", report.seeds},
                                           {"events", report.events},
                                           {"faults", std::move(faults)},
                                           {"violations", std::move(violations)},
                                           {"hash", hash_text(report)}};
  return document.dump(2) + "\n";
}

std::string fault_report_text(const FaultReport& report, Plant plant) {
  std::string text = fmt::format("{} seeds, {} events\n", report.seeds, report.events);
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    text += fmt::format("  {:<26}{:>10}\n", to_string(static_cast<FaultKind>(i)), report.faults[i]);
  }
  for (const Violation& violation : report.violations) {
    if (violation.seed == 0) {
      text += fmt::format("VIOLATION {}: {}\n", violation.invariant, violation.text);
      continue;
    }
    text += fmt::format("VIOLATION seed {}, step {}, {}: {}\n  repeat: {}\n", violation.seed,
                        violation.step, violation.invariant, violation.text,
                        repeat_command(violation, plant));
  }
  text += report.violations.empty() ? "no violation"
                                    : fmt::format("{} violations", report.violations.size());
  return text + fmt::format(", hash {}\n", hash_text(report));
}

}  // namespace gpu_platform::simulation
