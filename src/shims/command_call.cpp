#include "shims/command_call.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "cli/text/text.h"
#include "client/profiles.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

std::string version_line() {
  return fmt::format("slurm {} (gpu-platform {})\n", kSlurmVersion, GP_VERSION);
}

void CommandCall::warn(std::string_view text) {
  console_.err(fmt::format("{}: warning: {}\n", name_, cli::harmless(text)));
}

void CommandCall::warn_all(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) warn(text);
}

int CommandCall::fail(std::string_view text) {
  console_.err(fmt::format("{}: error: {}\n", name_, cli::harmless(text)));
  return 1;
}

int CommandCall::fail(const base::Error& error) {
  return fail(error.field.empty() ? error.message
                                  : fmt::format("{}: {}", error.field, error.message));
}

int CommandCall::fail(const client::Failure& failure) {
  const bool names_field =
      failure.field.empty() || failure.message.find(failure.field) != std::string::npos;
  return fail(names_field ? failure.message
                          : fmt::format("{}: {}", failure.field, failure.message));
}

std::expected<Given, int> CommandCall::given(const Usage& usage) {
  return given(usage, words_);
}

std::expected<Given, int> CommandCall::given(const Usage& usage,
                                             std::span<const std::string> words) {
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

bool CommandCall::answered(const Settings& settings, std::string_view synopsis) {
  if (settings.has("version")) {
    console_.out(version_line());
    return true;
  }
  if (!settings.has("help") && !settings.has("usage")) return false;
  console_.out(fmt::format(
      "Usage: {} {}\nOptions as in Slurm; docs/slurm-shims.md lists what each does here.\n", name_,
      synopsis));
  return true;
}

std::optional<client::Client> CommandCall::client() {
  auto servers = client::servers_to_try({}, around());
  if (servers) return client::Client(std::move(*servers));
  fail(servers.error());
  return std::nullopt;
}

int again_and_again(CommandCall& call, const Settings& settings, const std::function<int()>& show) {
  if (!settings.has("iterate")) return show();
  const auto seconds = parse_number(settings.value("iterate"), 1);
  if (!seconds) return call.fail(fmt::format("--iterate: {}", seconds.error().message));
  while (true) {
    call.console().out(date_line(call.around().now()));
    if (const int code = show(); code != 0) return code;
    call.console().out("\n");
    std::this_thread::sleep_for(std::chrono::seconds(*seconds));
  }
}

}  // namespace gpu_platform::shims
