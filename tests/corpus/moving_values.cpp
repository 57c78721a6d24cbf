#include "moving_values.h"

#include <array>
#include <regex>
#include <string_view>

#include <nlohmann/json.hpp>

namespace gpu_platform::corpus {

namespace {

using nlohmann::json;

// ---- The list: what may differ from the recorded answers, and why.

// Texts, by regular expressions, and what is written instead.
struct Moving {
  const char* pattern;
  const char* instead;
};
constexpr std::array kMovingTexts = {
    Moving{R"(\be2e-[A-Za-z0-9]{6}\b)", "e2e-FOLDER"},  // the folder in which the test runs
    Moving{R"((/[^ "|]*)?/output/(0/)?(\d+)/(\d+)[^ "|\n]*)",
           "/output/$3/$4"},  // of attempts, in it
    // The bill, which pages have got since the answers were recorded.
    Moving{R"(\nCost: [^\n]*)", ""}, Moving{R"(( RESULT) +COST(?=\n))", "$1"},
    Moving{R"( +([\d.,]+ USD|not billed: [a-z ]+)(?=\n|$))", ""},
    Moving{R"(\bserver unix:[^\n]*)", "server unix:SOCKET"},  // of the one that answered
};

// Keys of JSON documents whose values are not of the store.
constexpr std::array<std::string_view, 1> kMovingKeys = {
    "request_id",  // of a problem: the server numbers its requests
};

// Keys that documents have got since the answers were recorded: left out. Record the answers anew
// where a new key is to be compared, too.
constexpr std::array<std::string_view, 27> kNewKeys = {
    "notify_to",   // of a job's specification
    "gpus_avoid",  // the same, as the next three
    "gpus_only",
    "accept_degraded",
    "hang_timeout_seconds",
    "preflight",      // the same, and of an attempt
    "monitor",        // of a job's specification
    "gpu_use",        // of a job
    "gpu_info",       // of an attempt
    "no_readings",    // of the cluster, a node and a GPU
    "changed_until",  // of a GPU or a node: when its drain ends by itself
    "can_notify",     // of the names for Slurm's commands, as the next two
    "shards_per_gpu",
    "can_share",
    "gpu_share",  // of a job's specification, as the next three
    "share_mode",
    "require_isolation",
    "slice_seconds",
    "memory_rung",  // of a job's GPU, as the next
    "compute_rung",
    "available_share",  // of the cluster and its nodes
    "parts",            // of a GPU, as the next
    "free_share",
    "budget",                   // of a job's specification
    "limit_by_budget_seconds",  // of an attempt
    "notes",                    // of a check
    "cost",                     // of a job
};
// The same of a job's GPU alone: other documents have these keys, too.
constexpr std::array<std::string_view, 2> kNewKeysOfGpus = {"memory_bytes", "mode"};

// ---- The end of the list.

void remove_keys(json& value) {
  if (value.is_object()) {
    for (const std::string_view key : kMovingKeys) value.erase(std::string(key));
    for (const std::string_view key : kNewKeys) value.erase(std::string(key));
    const bool is_gpu_of_job = value.contains("share") && value.contains("link");
    for (const std::string_view key : kNewKeysOfGpus) {
      if (is_gpu_of_job) value.erase(std::string(key));
    }
  }
  if (value.is_structured()) {
    for (json& inner : value) remove_keys(inner);
  }
}

// Lists of objects, an element a line; all else in one.
std::string written(const json& document) {
  if (!document.is_object()) return document.dump() + "\n";
  std::string text;
  json rest = document;
  for (const auto& [key, value] : document.items()) {
    const bool is_list = value.is_array() && !value.empty() && value[0].is_object();
    if (!is_list || value.size() < 2) continue;
    text += key + "\n";
    for (const json& element : value) text += element.dump() + "\n";
    rest.erase(key);
  }
  return text + rest.dump() + "\n";
}

std::string without_moving_texts(std::string text) {
  for (const Moving& moving : kMovingTexts) {
    text = std::regex_replace(text, std::regex(moving.pattern), moving.instead);
  }
  return text;
}

}  // namespace

std::string without_moving_values(const std::string& answer) {
  json document = json::parse(answer, nullptr, false);
  if (!document.is_object()) return without_moving_texts(answer);
  remove_keys(document);
  return without_moving_texts(written(document));
}

}  // namespace gpu_platform::corpus
