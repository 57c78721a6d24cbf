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
