#include <fmt/format.h>

#include "node/probe/acceptance/gpu_report.h"

namespace gpu_platform::node {
namespace {

// A member of any kind as words; empty where it is not there.
std::string words_at(const nlohmann::json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || object[key].is_null()) return {};
  return object[key].is_string() ? object[key].get<std::string>() : object[key].dump();
}

const nlohmann::json& part(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNothing;
  return object.is_object() && object.contains(key) ? object[key] : kNothing;
}

void add_checks(std::string& page, const nlohmann::json& checks) {
  page += "\n| check | result | |\n| --- | --- | --- |\n";
  for (const nlohmann::json& check : checks) {
    page += fmt::format("| {} | {} | {} |\n", words_at(check, "name"), words_at(check, "result"),
                        words_at(check, "note"));
  }
}

void add_gpus(std::string& page, const nlohmann::json& gpus) {
  page +=
      "\n## GPUs\n\n| index | model | UUID | PCI address | NUMA node | memory | MIG profiles |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const nlohmann::json& gpu : gpus) {
    page += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", words_at(gpu, "index"),
                        words_at(gpu, "model"), words_at(gpu, "uuid"), words_at(gpu, "pci_address"),
                        words_at(gpu, "numa_node"), words_at(gpu, "memory_bytes"),
                        part(gpu, "mig_profiles").size());
  }
}

void add_mig(std::string& page, const nlohmann::json& gpus) {
  if (gpus.empty() || part(gpus[0], "mig_profiles").empty()) return;
  page +=
      "\n## MIG profiles of GPU 0\n\n| id | slices | instances | memory MiB | SMs | placements |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const nlohmann::json& profile : gpus[0]["mig_profiles"]) {
    page += fmt::format("| {} | {} | {} | {} | {} | {} |\n", words_at(profile, "id"),
                        words_at(profile, "slices"), words_at(profile, "instances"),
                        words_at(profile, "memory_mib"), words_at(profile, "multiprocessors"),
                        words_at(profile, "placements"));
  }
}

void add_support(std::string& page, const nlohmann::json& supports) {
  page += "\n## What the driver has\n\n";
  for (const char* library : {"nvml", "cuda"}) {
    for (const auto& [name, value] : part(supports, library).items()) {
      page += fmt::format("- {}: {}\n", name,
                          value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
}

void add_comparisons(std::string& page, const nlohmann::json& compared) {
  page += "\n## Beside nvidia-smi\n\n";
  if (compared.contains("problem")) {
    page += words_at(compared, "problem") + "\n";
    return;
  }
  page += "| GPU | datum | ours | nvidia-smi | |\n| --- | --- | --- | --- | --- |\n";
  for (const nlohmann::json& one : part(compared, "all")) {
    page += fmt::format("| {} | {} | {} | {} | {} |\n", words_at(one, "gpu"),
                        words_at(one, "datum"), words_at(one, "ours"), words_at(one, "nvidia_smi"),
                        one.value("agrees", false) ? "agrees" : "**differs**");
  }
}

}  // namespace

std::string results_page(const nlohmann::json& results) {
  const nlohmann::json& report = part(results, "report");
  std::string page = fmt::format(
      "# GPU acceptance: {}\n\n{}, {}. Driver {}, NVML {}.\n", words_at(results, "name"),
      words_at(results, "date"), words_at(results, "system"),
      words_at(part(report, "driver"), "version"), words_at(part(report, "driver"), "nvml"));
  if (report.is_object() && report.contains("problem")) {
    page += fmt::format("\n{}\n", words_at(report, "problem"));
  }
  add_checks(page, part(results, "checks"));
  if (part(report, "gpus").is_array()) {
    add_gpus(page, report["gpus"]);
    add_mig(page, report["gpus"]);
  }
  if (part(report, "supports").is_object()) add_support(page, report["supports"]);
  if (part(report, "compared").is_object()) add_comparisons(page, report["compared"]);
  return page;
}

}  // namespace gpu_platform::node
