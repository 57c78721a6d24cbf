#include "shims/call.h"

#include <fmt/format.h>

#include "cli/text.h"

namespace gpu_platform::shims {

void Call::warn(std::string_view text) {
  console_.err(fmt::format("{}: warning: {}\n", name_, cli::harmless(text)));
}

void Call::warn_all(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) warn(text);
}

int Call::fail(std::string_view text) {
  console_.err(fmt::format("{}: error: {}\n", name_, cli::harmless(text)));
  return 1;
}

int Call::fail(const base::Error& error) {
  return fail(error.field.empty() ? error.message
                                  : fmt::format("{}: {}", error.field, error.message));
}

int Call::fail(const cli::Failure& failure) {
  const bool names_field =
      failure.field.empty() || failure.message.find(failure.field) != std::string::npos;
  return fail(names_field ? failure.message
                          : fmt::format("{}: {}", failure.field, failure.message));
}

std::expected<Given, int> Call::given(const Usage& usage) {
  return given(usage, words_);
}

std::expected<Given, int> Call::given(const Usage& usage, std::span<const std::string> words) {
  Given result;
  std::vector<std::string> warnings;
  if (const auto read =
          read_variables(usage.options, around().environment, result.settings, warnings);
      !read) {
    return std::unexpected(fail(read.error()));
  }
  auto rest = read_options({usage.options, Unknown::kError, Order::kMixed}, words, result.settings,
                           warnings);
  if (!rest) return std::unexpected(fail(rest.error()));
  if (answered(result.settings, usage.synopsis)) return std::unexpected(0);
  if (!usage.takes_words && !rest->empty()) {
    return std::unexpected(fail(fmt::format("unexpected argument '{}'; usage: {} {}", rest->front(),
                                            name_, usage.synopsis)));
  }
  warn_all(warnings);
  result.words = std::move(*rest);
  return result;
}

bool Call::answered(const Settings& settings, std::string_view synopsis) {
  if (settings.has("version")) {
    console_.out("gpu-platform " GP_VERSION " (Slurm commands)\n");
    return true;
  }
  if (!settings.has("help")) return false;
  console_.out(fmt::format(
      "Usage: {} {}\nOptions as in Slurm; docs/slurm-shims.md says what is done with each.\n",
      name_, synopsis));
  return true;
}

std::optional<cli::Client> Call::client() {
  auto paths = cli::server_paths(std::nullopt, around());
  if (paths) return cli::Client(std::move(*paths));
  fail(paths.error());
  return std::nullopt;
}

}  // namespace gpu_platform::shims
