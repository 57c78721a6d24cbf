#include "node/probe/acceptance/answers.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <limits>
#include <sstream>

namespace gpu_platform::node {
namespace {

// Reads "2026-01-31T12:00:00.123Z".
std::optional<std::int64_t> milliseconds_of(const nlohmann::json& job, const char* key) {
  if (!job.is_object() || !job.contains(key) || !job[key].is_string()) return std::nullopt;
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0, milliseconds = 0;
  if (std::sscanf(job[key].get_ref<const std::string&>().c_str(), "%d-%u-%uT%u:%u:%u.%3uZ", &year,
                  &month, &day, &hour, &minute, &second, &milliseconds) != 7) {
    return std::nullopt;
  }
  const std::chrono::sys_days date(std::chrono::year(year) / std::chrono::month(month) /
                                   std::chrono::day(day));
  const std::int64_t days = date.time_since_epoch().count();
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + milliseconds;
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), by);
    at += by.size();
  }
}

// A UUID keeps its first group, a serial number all but six digits.
void mask_member(std::string& text, const nlohmann::ordered_json& gpu, const char* key) {
  if (!gpu.contains(key) || !gpu[key].is_string()) return;
  const auto& whole = gpu[key].get_ref<const std::string&>();
  const std::size_t dash = whole.find('-', whole.find('-') + 1);
  const std::size_t kept = key == std::string("uuid") && dash != std::string::npos
                               ? dash
                               : whole.size() - std::min<std::size_t>(whole.size(), 6);
  std::string masked = whole;
  for (std::size_t i = kept; i < masked.size(); ++i) {
    if (masked[i] != '-') masked[i] = 'x';
  }
  if (!whole.empty()) replace_all(text, whole, masked);
}

}  // namespace

std::optional<std::string> value_at(const nlohmann::json& document, const std::string& pointer) {
  const nlohmann::json* found = &document;
  try {
    const nlohmann::json::json_pointer place(pointer);
    if (!document.contains(place)) return std::nullopt;
    found = &document.at(place);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  if (found->is_null()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::vector<std::int64_t> turnarounds_ms(const nlohmann::json& jobs) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  if (!jobs.is_object() || !jobs.contains("jobs")) return {};
  for (const nlohmann::json& job : jobs["jobs"]) {
    const auto start = milliseconds_of(job, "started_at");
    const auto end = milliseconds_of(job, "ended_at");
    if (start && end) runs.emplace_back(*start, *end);
  }
  std::ranges::sort(runs);
  std::vector<std::int64_t> times;
  for (std::size_t i = 1; i < runs.size(); ++i) times.push_back(runs[i].first - runs[i - 1].second);
  std::ranges::sort(times);
  return times;
}

std::int64_t percentile(const std::vector<std::int64_t>& sorted, int percent) {
  const std::size_t rank = (sorted.size() * static_cast<std::size_t>(percent) + 99) / 100;
  return sorted.at(std::max<std::size_t>(rank, 1) - 1);
}

std::vector<std::int64_t> launch_times(const std::string& output) {
  std::vector<std::int64_t> times;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::int64_t time = 0;
    const auto read = std::from_chars(line.data(), line.data() + line.size(), time);
    if (read.ec == std::errc{} && read.ptr == line.data() + line.size()) times.push_back(time);
  }
  return times;
}

std::optional<LaunchShares> launch_shares(const std::vector<std::vector<std::int64_t>>& works,
                                          const Rounds& rounds) {
  std::int64_t begin = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  for (const std::vector<std::int64_t>& times : works) {
    if (times.empty()) return std::nullopt;
    begin = std::max(begin, times.front());
    end = std::min(end, times.back());
  }
  if (works.empty() || end - begin < rounds.round_us) return std::nullopt;
  LaunchShares shares;
  shares.rounds = std::min((end - begin) / rounds.round_us, rounds.max_rounds);
  end = begin + shares.rounds * rounds.round_us;
  double all = 0;
  for (const std::vector<std::int64_t>& times : works) {
    const auto launches = static_cast<double>(std::ranges::count_if(
        times, [&](std::int64_t time) { return time > begin && time <= end; }));
    shares.of_each.push_back(launches);
    all += launches;
  }
  if (all == 0) return std::nullopt;
  for (double& share : shares.of_each) share /= all;
  shares.per_second = all * 1e6 / static_cast<double>(end - begin);
  return shares;
}

nlohmann::ordered_json mask_identities(const nlohmann::ordered_json& results) {
  if (!results.contains(nlohmann::ordered_json::json_pointer("/report/gpus"))) return results;
  std::string text = results.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  for (const nlohmann::ordered_json& gpu : results["report"]["gpus"]) {
    mask_member(text, gpu, "uuid");
    mask_member(text, gpu, "serial");
  }
  return nlohmann::ordered_json::parse(text, nullptr, false);
}

}  // namespace gpu_platform::node
