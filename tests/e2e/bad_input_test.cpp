#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "harness.h"

// Every command line of the table of bad input: refused with its exit code, said what is wrong, and
// nothing changed.

namespace gpu_platform::e2e {
namespace {

struct Row {
  std::string name;
  std::string field;
  std::vector<std::string> words;
  int exit_code = 0;
};

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// @N*TEXT@ is N times TEXT, @xHH@ one byte.
std::string expanded(std::string text) {
  for (std::size_t at = 0; (at = text.find('@', at)) != std::string::npos;) {
    const std::size_t end = text.find('@', at + 1);
    if (end == std::string::npos) break;
    const std::string inner = text.substr(at + 1, end - at - 1);
    const std::size_t star = inner.find('*');
    std::string bytes;
    if (inner.starts_with('x') && inner.size() == 3) {
      bytes = static_cast<char>(std::stoi(inner.substr(1), nullptr, 16));
    } else if (star != std::string::npos) {
      for (int i = std::stoi(inner.substr(0, star)); i > 0; --i) bytes += inner.substr(star + 1);
    } else {
      at = end;
      continue;
    }
    text.replace(at, end - at + 1, bytes);
    at += bytes.size();
  }
  return text;
}

std::vector<Row> read_table() {
  std::vector<Row> rows;
  for (const std::string& line :
       lines_of(read_file(GP_SOURCE_DIRECTORY "/tests/fixtures/bad_input.txt"))) {
    if (line.empty() || line.starts_with('#')) continue;
    std::vector<std::string> cells;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, '|');) cells.push_back(trimmed(cell));
    if (cells.size() != 6 || cells[4] == "-") continue;
    Row row{cells[0], cells[3], {}, std::stoi(cells[5])};
    std::istringstream words(cells[4]);
    for (std::string word; words >> word;) {
      row.words.push_back(word == "\"\"" ? "" : expanded(word));
    }
    // A word with a NUL cannot be given to a program at all, and one over 128 KiB not on Linux.
    const bool can_be_said = std::ranges::all_of(row.words, [](const std::string& word) {
      return word.find('\0') == std::string::npos && word.size() < 128 * 1024;
    });
    if (can_be_said) rows.push_back(std::move(row));
  }
  return rows;
}

TEST(BadInput, IsRefusedWithItsExitCodeAndChangesNothing) {
  const std::vector<Row> rows = read_table();
  ASSERT_GE(rows.size(), 30u);
  Daemon daemon;
  ASSERT_TRUE(daemon.start()) << daemon.log();
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Finished refused = daemon.cli(row.words);
    EXPECT_EQ(refused.exit_code, row.exit_code) << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(refused.err, "") << "nothing says what is wrong";
  }
  EXPECT_EQ(daemon.json({"jobs", "list", "--all"})["jobs"].size(), 0u);
  EXPECT_EQ(daemon.json({"reservations", "list"})["reservations"].size(), 0u);
  // Each call that reached the daemon was recorded as refused, and as nothing else.
  const auto calls = daemon.json({"audit", "list"})["entries"];
  EXPECT_GT(calls.size(), 0u);
  for (const auto& call : calls) {
    EXPECT_TRUE(call["door"] == "START" || call["outcome"] == "REFUSED") << call;
  }
}

}  // namespace
}  // namespace gpu_platform::e2e
