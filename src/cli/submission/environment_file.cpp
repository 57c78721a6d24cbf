#include "cli/submission/environment_file.h"

#include <fmt/format.h>

#include "api/convert/text_forms.h"
#include "cli/submission/text_file.h"

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kLargestEnvironment = std::size_t{1} << 20;

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

char escaped_character(char c) {
  return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

// The value between quotes; behind the closing one only a comment may stand.
base::Result<std::string> quoted_value(std::string_view text) {
  const char quote = text.front();
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == quote) {
      const std::string_view rest = without_blanks(text.substr(i + 1));
      if (rest.empty() || rest.starts_with('#')) return value;
      return base::invalid({}, "there is text after the closing quote");
    }
    if (c == '\\' && quote == '"' && i + 1 < text.size()) {
      value.push_back(escaped_character(text[++i]));
    } else {
      value.push_back(c);
    }
  }
  return base::invalid({}, fmt::format("a quote {} is not closed", quote));
}

base::Status read_variable(std::string_view line,
                           google::protobuf::Map<std::string, std::string>& environment) {
  constexpr std::string_view kExport = "export ";
  if (line.starts_with(kExport)) line = without_blanks(line.substr(kExport.size()));
  const std::size_t equals = line.find('=');
  const std::string_view name = without_blanks(line.substr(0, equals));
  if (equals == std::string_view::npos || name.empty() ||
      name.find_first_of(" \t\"'") != std::string_view::npos) {
    return base::invalid({}, "it is not of the form NAME=VALUE");
  }
  const std::string_view text = without_blanks(line.substr(equals + 1));
  if (!text.starts_with('"') && !text.starts_with('\'')) {
    environment[std::string(name)] = std::string(text);
    return {};
  }
  TRY_ASSIGN(environment[std::string(name)], quoted_value(text));
  return {};
}

}  // namespace

base::Status read_environment(std::string_view text,
                              google::protobuf::Map<std::string, std::string>& environment) {
  if (text.find('\0') != std::string_view::npos || !api::is_valid_utf8(text)) {
    return base::invalid({}, "it is not a text in UTF-8");
  }
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = without_blanks(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    if (const auto read = read_variable(line, environment); !read) {
      return base::invalid({}, fmt::format("line {}: {}", number, read.error().message));
    }
  }
  return {};
}

base::Status put_environment_file(const ProcessEnvironment& process_environment,
                                  const std::string& file,
                                  google::protobuf::Map<std::string, std::string>& environment) {
  auto text = read_text_file(process_environment, file, kLargestEnvironment);
  const auto read =
      text ? read_environment(*text, environment) : base::Status(std::unexpected(text.error()));
  if (read) return {};
  return base::invalid("--env-file", fmt::format("'{}': {}", file, read.error().message));
}

}  // namespace gpu_platform::cli
