#include <fmt/format.h>

#include "shims/options/options_page.h"
#include "shims/shims.h"

namespace gpu_platform::shims {

namespace {

std::string term_of(const Option& option) {
  constexpr std::string_view kForms[] = {"", " VALUE", "[=VALUE]"};
  const std::string letter = option.letter == 0 ? "" : fmt::format("-{}, ", option.letter);
  return fmt::format("{}--{}{}", letter, option.name, kForms[static_cast<int>(option.take)]);
}

std::string said_of(const Option& option) {
  std::string text(handling_of(option));
  if (!option.note.empty()) text += fmt::format(": {}", option.note);
  if (!option.variable.empty()) text += fmt::format(" (also from {})", option.variable);
  return text + ".";
}

}  // namespace

std::vector<cli::ManPage> man_pages() {
  std::vector<cli::ManPage> pages;
  for (const auto& [command, options] : option_tables()) {
    cli::Roff page(fmt::format("gpu-platform-{}", command),
                   fmt::format("Slurm's {}, as a client of gpu-platform", command));
    page.section("DESCRIPTION")
        .paragraph(fmt::format(
            "It reads Slurm's options and variables and asks the daemon of gpu-platform. "
            "GPU_PLATFORM_SERVER or the current profile sets the daemon: see gpu-platform(1)."));
    page.section("OPTIONS");
    for (const Option& option : options) page.item(term_of(option), said_of(option));
    pages.push_back(page.section("SEE ALSO").paragraph("gpu-platform(1)").page());
  }
  return pages;
}

}  // namespace gpu_platform::shims
