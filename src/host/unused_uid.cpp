#include "host/unused_uid.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "os/small_file.h"

namespace gpu_platform::host {

namespace {

struct Candidates {
  std::uint32_t first;
  std::uint32_t count;
};
// Directories give numbers below 2^31, as many programs cannot print others. systemd leaves the
// second range free; it is there in a container that has 65536 numbers.
constexpr Candidates kCandidates[] = {{4'200'000'000, 4'096}, {65'520, 14}};

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::optional<std::uint64_t> take_number(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return value;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::optional<std::uint32_t> unused_uid(std::uint32_t start,
                                        const std::function<bool(std::uint32_t)>& is_taken) {
  for (const Candidates& range : kCandidates) {
    for (std::uint32_t i = 0; i < range.count; ++i) {
      const std::uint32_t uid = range.first + (start + i) % range.count;
      if (!is_taken(uid)) return uid;
    }
  }
  return std::nullopt;
}

std::set<std::uint32_t> uids_of_processes(const std::string& proc) {
  constexpr std::string_view kUids = "Uid:";
  std::set<std::uint32_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(proc, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_number(entry->path().filename().native())) continue;
    // Gone meanwhile: the text is empty.
    const std::string status = os::read_small_file(AT_FDCWD, (entry->path() / "status").c_str());
    std::string_view text = status;
    while (!text.empty()) {
      std::string_view line = take_line(text);
      if (!line.starts_with(kUids)) continue;
      line.remove_prefix(kUids.size());
      while (const auto uid = take_number(line)) found.insert(static_cast<std::uint32_t>(*uid));
    }
  }
  return found;
}

bool has_number(std::string_view accounts, std::uint32_t number) {
  while (!accounts.empty()) {
    std::string_view line = take_line(accounts);
    for (int field = 0; field < 2; ++field) {
      line.remove_prefix(std::min(std::min(line.find(':'), line.size()) + 1, line.size()));
    }
    if (take_number(line) == number) return true;
  }
  return false;
}

bool is_mapped(std::string_view uid_map, std::uint32_t uid) {
  while (!uid_map.empty()) {
    std::string_view line = take_line(uid_map);
    const auto first = take_number(line);
    const auto outside = take_number(line);
    const auto count = take_number(line);
    if (first && outside && count && uid >= *first && uid - *first < *count) return true;
  }
  return false;
}

}  // namespace gpu_platform::host
