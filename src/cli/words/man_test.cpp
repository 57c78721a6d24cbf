#include "cli/words/man.h"

#include <set>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/commands.h"
#include "cli/words/known_options.h"

namespace gpu_platform::cli {
namespace {

// As a formatter reads it: a line that begins with a dot is a request, and only these are used.
void expect_well_formed(const ManPage& page) {
  const std::set<std::string> known = {".TH", ".SH", ".PP", ".TP", ".B", ".nf", ".fi"};
  bool is_literal = false;
  bool is_first = true;
  for (const std::string& line : parts_between(page.text, '\n')) {
    for (const char c : line) {
      EXPECT_TRUE(c >= ' ' && c < 0x7f) << page.name << ": " << line;
    }
    EXPECT_FALSE(line.starts_with("'")) << page.name << ": " << line;
    if (is_first) {
      EXPECT_TRUE(line.starts_with(".TH \"")) << line;
    }
    is_first = false;
    if (!line.starts_with('.')) continue;
    const std::string request = line.substr(0, line.find(' '));
    EXPECT_TRUE(known.contains(request)) << page.name << ": " << line;
    // Quotes of arguments come in pairs.
    EXPECT_EQ(std::ranges::count(line, '"') % 2, 0) << page.name << ": " << line;
    if (request == ".nf") {
      EXPECT_FALSE(is_literal);
      is_literal = true;
    }
    if (request == ".fi") is_literal = false;
    EXPECT_TRUE(!is_literal || request == ".nf") << page.name << ": " << line;
  }
  EXPECT_FALSE(is_literal) << page.name;
  EXPECT_TRUE(has(page.text, "\n.SH NAME\n")) << page.name;
  // Each escape is one that groff and mandoc know.
  for (std::size_t at = page.text.find('\\'); at != std::string::npos;
       at = page.text.find('\\', at + 1)) {
    EXPECT_NE(std::string_view("&e-([").find(page.text[at + 1]), std::string_view::npos)
        << page.name << ": " << page.text.substr(at, 20);
  }
}

const OtherCommand kServe{"serve", "Run the daemon in the foreground.", {}};

TEST(ManPages, AreWellFormed) {
  for (const ManPage& page : man_pages({&kServe, 1})) expect_well_formed(page);
}

TEST(ManPages, HaveEveryCommandWithAllItsOptions) {
  const auto pages = man_pages({&kServe, 1});
  EXPECT_TRUE(has(pages.front().text, "serve"));
  const ProcessEnvironment nowhere;
  for (const Command& command : all_commands()) {
    const std::string word(command.text.name.substr(0, command.text.name.find(' ')));
    const auto page = std::ranges::find(pages, "gpu-platform-" + word, &ManPage::name);
    ASSERT_NE(page, pages.end()) << command.text.name;
    for (const KnownOption& option : options_of(command, nowhere).all) {
      std::string name = option.names.front();
      for (std::size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2) {
        name.replace(at, 1, "\\-");
      }
      EXPECT_TRUE(has(page->text, name)) << command.text.name << " " << name;
    }
  }
}

TEST(ManPages, AreOnePageForEachFirstWord) {
  const auto pages = man_pages({});
  std::set<std::string> names;
  for (const ManPage& page : pages) EXPECT_TRUE(names.insert(page.name).second) << page.name;
}

TEST(Roff, ReadsNoTextAsARequest) {
  const ManPage page = Roff("x", ".so /etc/passwd \\n(.l \"'")
                           .section("a \"b\"")
                           .paragraph(".sp\\")
                           .item("'\"", "\xc3\xbc \xe2\x80\xa6 \xf0\x9f\x98\x80 \xff")
                           .lines(".br\n'x\n\n.fi")
                           .page();
  expect_well_formed(page);
  EXPECT_TRUE(has(page.text, "\\&.sp\\e\n"));
  EXPECT_TRUE(has(page.text, "\\[u00FC] \\[u2026] \\[u1F600] ?"));
}

}  // namespace
}  // namespace gpu_platform::cli
