#include "execution/kubernetes/exporter/exposition.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>

namespace gpu_platform::execution {

namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}

// What is left of a line. Each take_…() removes what it returns.
class Rest {
 public:
  explicit Rest(std::string_view line) : rest_(line) {}

  bool is_empty() const { return rest_.empty(); }

  void skip_blanks() {
    const std::size_t end = rest_.find_first_not_of(" \t");
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end);
  }

  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Returns a name of a metric, or of a label, which has no ':'; empty if there is none.
  std::string_view take_name(bool may_have_colon) {
    std::size_t size = 0;
    while (size < rest_.size()) {
      const char c = rest_[size];
      if (!is_letter(c) && !(c == ':' && may_have_colon) && !(is_decimal_digit(c) && size > 0))
        break;
      ++size;
    }
    return take_bytes(size);
  }

  // Returns a label's value without its quotes; nothing if it does not end.
  std::optional<std::string> take_text() {
    if (!take('"')) return std::nullopt;
    std::string text;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return text;
      if (c != '\\') {
        text += c;
        continue;
      }
      if (rest_.empty()) return std::nullopt;
      text += rest_.front() == 'n' ? '\n' : rest_.front();
      rest_.remove_prefix(1);
    }
    return std::nullopt;
  }

  // Returns what stands before the next blank.
  std::string_view take_word() {
    return take_bytes(std::min(rest_.find_first_of(" \t"), rest_.size()));
  }

 private:
  std::string_view take_bytes(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
};

template <class Number>
std::optional<Number> parsed_number(std::string_view word) {
  if (word.starts_with('+')) word.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

bool read_labels(Rest& rest, Sample& sample) {
  if (!rest.take('{')) return true;
  while (true) {
    rest.skip_blanks();
    if (rest.take('}')) return true;
    const std::string_view name = rest.take_name(false);
    rest.skip_blanks();
    if (name.empty() || sample.labels.size() == kMaxSampleLabels || !rest.take('=')) return false;
    rest.skip_blanks();
    auto text = rest.take_text();
    if (!text) return false;
    sample.labels.emplace_back(name, *std::move(text));
    rest.skip_blanks();
    if (rest.take(',')) continue;
    return rest.take('}');
  }
}

// A line: name, labels, value, and at most a time.
bool read_sample(std::string_view line, Sample& sample) {
  Rest rest(line);
  rest.skip_blanks();
  sample.labels.clear();
  sample.name = rest.take_name(true);
  rest.skip_blanks();
  if (sample.name.empty() || !read_labels(rest, sample)) return false;
  rest.skip_blanks();
  const auto value = parsed_number<double>(rest.take_word());
  if (!value) return false;
  sample.value = *value;
  rest.skip_blanks();
  if (!rest.is_empty() && !parsed_number<std::int64_t>(rest.take_word())) return false;
  rest.skip_blanks();
  return rest.is_empty();
}

}  // namespace

std::string_view Sample::label(std::string_view label_name) const {
  const auto is_it = [&](const auto& each) { return each.first == label_name; };
  const auto found = std::ranges::find_if(labels, is_it);
  return found == labels.end() ? std::string_view() : found->second;
}

std::size_t read_exposition(std::string_view page,
                            const std::function<void(const Sample& sample)>& visit) {
  Sample sample;
  std::size_t count = 0;
  while (!page.empty() && count < kMaxSamples) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    std::string_view line = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with('#') || line.size() > kMaxSampleLine) continue;
    if (!read_sample(line, sample)) continue;
    ++count;
    visit(sample);
  }
  return count;
}

}  // namespace gpu_platform::execution
