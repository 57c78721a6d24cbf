#include "shims/documents/slurm_json_parts.h"

#include <algorithm>
#include <charconv>

#include "api/convert/text_forms.h"
#include "shims/documents/slurm_document.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;

// As sacctmgr numbers them.
std::int64_t id_of_tres(std::string_view name) {
  constexpr std::pair<std::string_view, std::int64_t> kIds[] = {
      {"cpu", 1},         {"mem", 2},         {"energy", 3},       {"node", 4},
      {"billing", 5},     {"fs/disk", 6},     {"vmem", 7},         {"pages", 8},
      {"gres/gpu", 1001}, {"gres/mps", 1002}, {"gres/shard", 1003}};
  for (const auto& [known, id] : kIds) {
    if (known == name) return id;
  }
  return 0;
}

// "2G" in MiB.
std::int64_t mebibytes_in(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return 0;
  constexpr std::string_view kUnits = "MGTPE";
  const std::size_t unit =
      end == text.data() + text.size() ? 0 : std::min(kUnits.find(*end), kUnits.size() - 1);
  return static_cast<std::int64_t>(number * static_cast<double>(std::int64_t{1} << (10 * unit)));
}

}  // namespace

std::int64_t seconds_of_document(const std::optional<base::Instant>& at) {
  return at ? at->unix_ns() / 1'000'000'000 : 0;
}

std::int64_t number_of_document(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string text_of_document(std::string text) {
  return text == "(null)" ? std::string() : text;
}

Json exit_of_document(const std::string& exit) {
  const std::int64_t code = number_of_document(exit);
  const std::int64_t signal = number_of_document(exit.substr(exit.find(':') + 1));
  std::string name;
  if (signal > 0)
    name = api::signal_name(static_cast<std::uint8_t>(std::min<std::int64_t>(signal, 255)));
  if (name.starts_with("SIG")) name = name.substr(3);
  const char* status = signal > 0 ? "SIGNALED" : code > 0 ? "ERROR" : "SUCCESS";
  return {{"status", Json::array({status})},
          {"return_code", signal > 0 ? unset_number() : set_number(code)},
          {"signal", {{"id", signal > 0 ? set_number(signal) : unset_number()}, {"name", name}}}};
}

Json tres_of_document(const std::string& text) {
  Json list = Json::array();
  for (const std::string& item : comma_separated(text)) {
    const std::size_t equals = std::min(item.find('='), item.size() - 1);
    const std::string key = item.substr(0, equals);
    const std::string value = item.substr(equals + 1);
    const std::size_t slash = std::min(key.find('/'), key.size());
    list.push_back({{"type", key.substr(0, slash)},
                    {"name", slash < key.size() ? key.substr(slash + 1) : ""},
                    {"id", id_of_tres(key)},
                    {"count", key == "mem" ? mebibytes_in(value) : number_of_document(value)}});
  }
  return list;
}

Json no_tres() {
  return {{"max", Json::array()},
          {"min", Json::array()},
          {"average", Json::array()},
          {"total", Json::array()}};
}

}  // namespace gpu_platform::shims
