#include "node/mps/control_words.h"

#include <charconv>
#include <optional>

#include "node/mount_table.h"

namespace gpu_platform::node {

namespace {

constexpr std::uint64_t kMibPerGib = 1024;
constexpr std::size_t kMaxSaid = 120;  // of an answer that is repeated in words

std::string with_server(std::string_view of_default, std::string_view of_server, int server) {
  if (server == kMpsDefault) return std::string(of_default);
  return std::string(of_server) + " " + std::to_string(server);
}

// A number at the front of the text, which is cut off.
std::optional<std::uint64_t> take_whole_number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::string_view last_line(std::string_view answer) {
  std::string_view last;
  while (!answer.empty()) {
    if (const std::string_view line = take_line(answer); !line.empty()) last = line;
  }
  return last;
}

// It is shown to people: one line of plain characters.
std::string said(std::string_view line) {
  std::string text(line.substr(0, kMaxSaid));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = ' ';
  }
  return text.empty() ? "nothing" : text;
}

std::string not_taken(const std::string& limit, std::string_view answer) {
  return "did not take " + limit + " (it says " + said(last_line(answer)) + ")";
}

// "30", "30.0"
bool is_percent(std::string_view line, std::uint32_t percent) {
  if (take_whole_number(line) != percent) return false;
  return line.empty() || (line.front() == '.' && line.find_first_not_of(".0") == line.npos);
}

// "512M", "20G"
bool is_memory(std::string_view line, std::uint64_t memory_mib) {
  const auto number = take_whole_number(line);
  if (!number) return false;
  if (line == "M") return *number == memory_mib;
  return line == "G" && *number == memory_mib / kMibPerGib;
}

}  // namespace

std::string mps_clients_of(int server) {
  return "get_client_list " + std::to_string(server);
}

std::string mps_end_client(int server, int client) {
  return "terminate_client " + std::to_string(server) + " " + std::to_string(client);
}

std::string mps_end_server(int server) {
  return "shutdown_server " + std::to_string(server);
}

std::string mps_quit(std::uint32_t seconds) {
  return "quit -t " + std::to_string(seconds);
}

std::string mps_set_percent(int server, std::uint32_t percent) {
  return with_server("set_default_active_thread_percentage", "set_active_thread_percentage",
                     server) +
         " " + std::to_string(percent);
}

std::string mps_get_percent(int server) {
  return with_server("get_default_active_thread_percentage", "get_active_thread_percentage",
                     server);
}

std::string mps_set_memory(int server, std::uint32_t memory_mib) {
  return with_server("set_default_device_pinned_mem_limit", "set_device_pinned_mem_limit", server) +
         " 0 " + std::to_string(memory_mib) + "M";
}

std::string mps_get_memory(int server) {
  return with_server("get_default_device_pinned_mem_limit", "get_device_pinned_mem_limit", server) +
         " 0";
}

std::string error_in_mps_contact(std::string_view answer) {
  while (!answer.empty()) {
    const std::string_view line = take_line(answer);
    if (line.starts_with("Cannot ")) return said(line);
  }
  return {};
}

std::string last_mps_line(std::string_view text) {
  const std::string_view line = last_line(text);
  return line.empty() ? "" : said(line);
}

MpsPids parse_mps_pids(std::string_view answer) {
  MpsPids found;
  while (!answer.empty()) {
    const std::string_view line = take_line(answer);
    if (line.empty()) continue;
    std::string_view rest = line;
    const auto number = take_whole_number(rest);
    if (!number || *number == 0 || *number > INT32_MAX || !rest.empty()) return {{}, said(line)};
    found.pids.push_back(static_cast<int>(*number));
  }
  return found;
}

std::string error_in_mps_percent(std::string_view answer, std::uint32_t percent) {
  if (is_percent(last_line(answer), percent)) return {};
  return not_taken(std::to_string(percent) + " %", answer);
}

std::string error_in_mps_memory(std::string_view answer, std::uint32_t memory_mib) {
  if (is_memory(last_line(answer), memory_mib)) return {};
  return not_taken(std::to_string(memory_mib) + " MiB", answer);
}

}  // namespace gpu_platform::node
