#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.h"

// The page of GET /metrics in Prometheus' text format (version 0.0.4). Families keep values and
// share the text of labels, so that each byte of the page is written once: 1,000 GPUs have 45,000
// series, with 9 MB of labels.

namespace gpu_platform::api {

enum class MetricKind : std::uint8_t { kGauge, kCounter, kHistogram };

// The labels of a series, as the page has them: gpu="3",UUID="GPU-…". Values may have any bytes:
// Prometheus refuses a whole page for one that is not UTF-8, so such bytes and control characters
// become U+FFFD. Copies share the text.
class MetricLabels {
 public:
  MetricLabels() = default;
  MetricLabels(std::initializer_list<std::pair<std::string_view, std::string_view>> labels);

  MetricLabels& add(std::string_view name, std::string_view value);
  // A copy with one more.
  MetricLabels with(std::string_view name, std::string_view value) const;
  std::string_view text() const { return text_ == nullptr ? std::string_view() : *text_; }

 private:
  std::shared_ptr<const std::string> text_;  // null: none
};

// The series of one name. A value that is not a number is left out: absent is absent.
class MetricFamily {
 public:
  MetricFamily(std::string_view name, std::string_view help, MetricKind kind)
      : name_(name), help_(help), kind_(kind) {}

  void add(const MetricLabels& labels, double value);
  void add(double value) { add(MetricLabels(), value); }
  void add(const MetricLabels& labels, const base::Histogram& values);
  // Appends the family; nothing if it has no series.
  void append_to(std::string& page) const;
  // Returns how many bytes that may be, and not many more.
  std::size_t max_size() const;

 private:
  struct Line {
    std::string_view suffix;  // of the name; a literal
    MetricLabels labels;
    double value = 0;
  };

  void add_line(std::string_view suffix, const MetricLabels& labels, double value);

  std::string name_;
  std::string help_;
  MetricKind kind_;
  std::vector<Line> lines_;
};

// Thread: one owner.
class MetricPage {
 public:
  // Returns the family of that name, which stays where it is. A second call with the name returns
  // the same one.
  MetricFamily& family(std::string_view name, std::string_view help, MetricKind kind);
  MetricFamily& gauge(std::string_view name, std::string_view help) {
    return family(name, help, MetricKind::kGauge);
  }
  MetricFamily& counter(std::string_view name, std::string_view help) {
    return family(name, help, MetricKind::kCounter);
  }
  MetricFamily& histogram(std::string_view name, std::string_view help) {
    return family(name, help, MetricKind::kHistogram);
  }

  // The families in the order in which they were asked for.
  std::string text() const;

 private:
  std::deque<MetricFamily> families_;
  std::map<std::string, MetricFamily*, std::less<>> by_name_;
};

}  // namespace gpu_platform::api
