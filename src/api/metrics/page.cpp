#include "api/metrics/page.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/utf8.h"

namespace gpu_platform::api {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_plain(char c) {
  return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void append_value(std::string& out, std::string_view value) {
  while (!value.empty()) {
    const char first = value.front();
    if (is_plain(first)) {
      out += first;
      value.remove_prefix(1);
      continue;
    }
    const std::string_view before = value;
    const char32_t character = base::take_character(value);
    if (first == '\n') {
      out += "\\n";
    } else if (first == '"' || first == '\\') {
      out += '\\';
      out += first;
    } else if (character == base::kNotUtf8 || character < 0x20 || character == 0x7f) {
      out += kReplacement;
    } else {
      out += before.substr(0, before.size() - value.size());
    }
  }
}

void append_label(std::string& out, std::string_view name, std::string_view value) {
  if (!out.empty()) out += ',';
  out += name;
  out += "=\"";
  append_value(out, value);
  out += '"';
}

void append_number(std::string& out, double value) {
  constexpr double kExact = 9007199254740992;  // up to here, whole numbers are exact
  if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else if (std::abs(value) < kExact && value == std::trunc(value)) {
    const fmt::format_int digits(static_cast<std::int64_t>(value));
    out.append(digits.data(), digits.size());
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

std::string_view type_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kHistogram:
      break;
  }
  return "histogram";
}

}  // namespace

MetricLabels::MetricLabels(
    std::initializer_list<std::pair<std::string_view, std::string_view>> labels) {
  std::string text;
  for (const auto& [name, value] : labels) append_label(text, name, value);
  if (!text.empty()) text_ = std::make_shared<const std::string>(std::move(text));
}

MetricLabels& MetricLabels::add(std::string_view name, std::string_view value) {
  std::string longer(text());
  append_label(longer, name, value);
  text_ = std::make_shared<const std::string>(std::move(longer));
  return *this;
}

MetricLabels MetricLabels::with(std::string_view name, std::string_view value) const {
  MetricLabels more = *this;
  more.add(name, value);
  return more;
}

void MetricFamily::add_line(std::string_view suffix, const MetricLabels& labels, double value) {
  lines_.push_back({suffix, labels, value});
}

void MetricFamily::add(const MetricLabels& labels, double value) {
  if (!std::isnan(value)) add_line("", labels, value);
}

void MetricFamily::add(const MetricLabels& labels, const base::Histogram& values) {
  if (std::isnan(values.sum())) return;
  add_line("_count", labels, static_cast<double>(values.count()));
  add_line("_sum", labels, values.sum());
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < values.counts().size(); ++i) {
    below += values.counts()[i];
    std::string bound;
    append_number(bound, i < values.bounds().size() ? values.bounds()[i] : HUGE_VAL);
    add_line("_bucket", labels.with("le", bound), static_cast<double>(below));
  }
}

void MetricFamily::append_to(std::string& page) const {
  if (lines_.empty()) return;
  fmt::format_to(std::back_inserter(page), "# HELP {} {}\n# TYPE {} {}\n", name_, help_, name_,
                 type_of(kind_));
  for (const Line& line : lines_) {
    page += name_;
    page += line.suffix;
    if (const std::string_view labels = line.labels.text(); !labels.empty()) {
      page += '{';
      page += labels;
      page += '}';
    }
    page += ' ';
    append_number(page, line.value);
    page += '\n';
  }
}

std::size_t MetricFamily::max_size() const {
  constexpr std::size_t kHead = 64;    // of the words of the head, besides name and help
  constexpr std::size_t kNumber = 40;  // with suffix and signs
  std::size_t size = kHead + 2 * name_.size() + help_.size();
  for (const Line& line : lines_) size += name_.size() + line.labels.text().size() + kNumber;
  return size;
}

MetricFamily& MetricPage::family(std::string_view name, std::string_view help, MetricKind kind) {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return *found->second;
  MetricFamily& family = families_.emplace_back(name, help, kind);
  by_name_.emplace(name, &family);
  return family;
}

std::string MetricPage::text() const {
  std::size_t size = 0;
  for (const MetricFamily& family : families_) size += family.max_size();
  std::string page;
  page.reserve(size);
  for (const MetricFamily& family : families_) family.append_to(page);
  return page;
}

}  // namespace gpu_platform::api
