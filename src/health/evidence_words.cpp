#include "health/evidence_words.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <span>
#include <string>

namespace gpu_platform::health {

namespace {

constexpr std::string_view kHardwareWords[] = {
    "uncorrectable ecc",
    "ecc error",
    "uncorrectable nvlink",
    "fallen off the bus",
    "gpu is lost",
    "rminitadapter failed",
    "unknown error",
    "unable to determine the device handle",
    "no cuda-capable device",
    "no cuda gpus are available",
    "no devices were found",
    "busy or unavailable",
    "devicesunavailable",
    "system not yet initialized",
    "hardware stack error",
    "reset required",
    "uncorrected memory",
    "remote peer access error over nvlink",
};
// The driver's words for a fault of the one GPU that the program uses.
constexpr std::string_view kFaultWords[] = {"uncorrectable ecc", "uncorrectable nvlink",
                                            "fallen off the bus", "gpu is lost",
                                            "hardware stack error"};
constexpr std::string_view kApplicationWords[] = {
    "out of memory",    "outofmemory",        "traceback",
    "modulenotfound",   "importerror",        "no module named",
    "valueerror",       "typeerror",          "keyerror",
    "indexerror",       "assertionerror",     "syntaxerror",
    "no such file",     "permission denied",  "command not found",
    "invalid argument", "device-side assert", "shape mismatch",
    "usage:",           "no kernel image",    "disk quota",
    "no space left",
};
constexpr std::string_view kNodeWords[] = {
    "nvswitch", "sxid",       "fabric",   "nvlink", "gpu",           "xid",       "pcie",
    "psu",      "power",      "cooling",  "fan",    "thermal",       "overheat",  "ecc",
    "nvidia",   "infiniband", "mlx5",     "nic",    "cable",         "link flap", "link down",
    "hca",      "rdma",       "hardware", "mce",    "machine check",
};
constexpr std::string_view kHarmlessWords[] = {"non-fatal",   "nonfatal",       "diskpressure",
                                               "pidpressure", "memorypressure", "corrected"};
constexpr std::string_view kComparedWords[] = {
    "nowhere else", "only on this", "only this", "other gpus",   "other nodes", "another gpu",
    "another node", "elsewhere",    "swapped",   "always fails", "every time",  "keeps",
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Whole words, so that "fan" isn't found in "infant"; a plural passes.
bool has_word(std::string_view text, std::string_view word) {
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0;
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_letter(at - 1);
    const std::size_t end = at + word.size();
    // Condition names are written without blanks: "NVSwitchFault", "GpuUnhealthy".
    if (begins && (word.size() > 3 || !is_letter(end) || word == "gpu" || word == "xid" ||
                   word == "psu" || word == "fan" || word == "ecc")) {
      return true;
    }
  }
  return false;
}

bool has_any(std::string_view text, std::span<const std::string_view> words) {
  if (text.empty()) return false;
  const std::string small = lower(text);
  return std::ranges::any_of(words, [&](std::string_view word) { return has_word(small, word); });
}

std::optional<std::uint32_t> number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t begin = at + word.size();
  while (begin < text.size() && (text[begin] == ' ' || text[begin] == ':')) ++begin;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return error == std::errc() && end != text.data() + begin ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<Unit> unit_of(std::string_view text) {
  const auto gpc = number_after(text, "GPC");
  const auto tpc = number_after(text, "TPC");
  return gpc && tpc ? std::optional(Unit{*gpc, *tpc}) : std::nullopt;
}

std::optional<std::uint32_t> recovery_action_of(std::string_view text) {
  const std::string small = lower(text);
  const std::size_t to = small.rfind(" to ");
  std::string_view rest(small);
  if (to != std::string::npos) rest.remove_prefix(to + 4);
  const std::size_t hex = rest.find("0x");
  if (hex != std::string_view::npos) {
    std::uint32_t number = 0;
    const char* const begin = rest.data() + hex + 2;
    if (std::from_chars(begin, rest.data() + rest.size(), number, 16).ec == std::errc()) {
      return number;
    }
  }
  if (has_word(rest, "drain and reset")) return 4;
  if (has_word(rest, "drain")) return 3;
  if (has_word(rest, "reboot")) return 2;
  if (has_word(rest, "reset")) return 1;
  if (has_word(rest, "none")) return 0;
  return std::nullopt;
}

std::vector<std::uint32_t> registers_of(const model::Evidence& piece) {
  if (!piece.registers.empty()) return piece.registers;
  std::vector<std::uint32_t> registers;
  std::string_view text = piece.text;
  const std::size_t link = text.find("link");
  if (link == std::string_view::npos) return registers;
  text.remove_prefix(link);
  for (std::size_t at = text.find("0x"); at != std::string_view::npos && registers.size() < 7;
       at = text.find("0x", at + 2)) {
    std::uint32_t number = 0;
    std::from_chars(text.data() + at + 2, text.data() + text.size(), number, 16);
    registers.push_back(number);
  }
  return registers;
}

bool tells_of_hardware(std::string_view text) {
  return has_any(text, kHardwareWords);
}

bool names_a_fault(std::string_view text) {
  return has_any(text, kFaultWords);
}

bool tells_of_application(std::string_view text) {
  return has_any(text, kApplicationWords) && !has_any(text, kHardwareWords);
}

bool is_harmless_link_event(std::string_view text) {
  const std::string small = lower(text);
  return small.find("nonfatal") != std::string::npos ||
         small.find("non-fatal") != std::string::npos;
}

bool is_chosen_cap(std::string_view text) {
  const std::string small = lower(text);
  const auto has = [&](std::string_view word) { return small.find(word) != std::string::npos; };
  return has("sw power") || has("software power") || has("sw_power") || has("power cap")
             ? !has("hw") && !has("hardware") && !has("brake") && !has("thermal")
             : false;
}

bool is_node_fault(std::string_view text) {
  return has_any(text, kNodeWords) && !has_any(text, kHarmlessWords);
}

bool was_compared(std::string_view text) {
  return has_any(text, kComparedWords);
}

std::string_view condition_name(std::string_view text) {
  return text.substr(0, text.find(':'));
}

}  // namespace gpu_platform::health
