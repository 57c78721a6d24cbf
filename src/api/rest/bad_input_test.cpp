#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "api/rest/server_fixture_test.h"

// tests/fixtures/bad_input.txt against a real server.

namespace gpu_platform::api {
namespace {

struct BadInput {
  std::string name;
  std::string method;
  std::string target;
  std::string body;
  int status = 0;
  std::string field;  // empty: none
};

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

// "@3*ab@" is "ababab", "@x00@" one byte.
std::string expanded(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = text.find('@');
    const std::size_t end = begin == std::string_view::npos ? begin : text.find('@', begin + 1);
    if (end == std::string_view::npos) break;
    out += text.substr(0, begin);
    const std::string word(text.substr(begin + 1, end - begin - 1));
    const std::size_t star = word.find('*');
    if (star != std::string::npos) {
      for (int i = std::stoi(word); i > 0; --i) out += word.substr(star + 1);
    } else {
      out.push_back(static_cast<char>(std::stoi(word.substr(1), nullptr, 16)));
    }
    text.remove_prefix(end + 1);
  }
  return out + std::string(text);
}

BadInput parsed_row(const std::string& line) {
  std::vector<std::string> columns;
  std::istringstream in(line);
  for (std::string column; std::getline(in, column, '|');) columns.push_back(trimmed(column));
  EXPECT_EQ(columns.size(), 6U) << line;
  columns.resize(6);
  BadInput row{columns[0],
               "POST",
               "/v1/jobs",
               expanded(columns[1]),
               std::stoi(columns[2]),
               columns[3] == "-" ? "" : expanded(columns[3])};
  const bool is_call = !row.body.empty() && row.body[0] >= 'A' && row.body[0] <= 'Z';
  if (!is_call) return row;
  std::istringstream call(std::exchange(row.body, {}));
  call >> row.method >> row.target >> row.body;
  return row;
}

std::vector<BadInput> rows() {
  std::ifstream file(GP_SOURCE_DIRECTORY "/tests/fixtures/bad_input.txt");
  EXPECT_TRUE(file.is_open());
  std::vector<BadInput> out;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') out.push_back(parsed_row(line));
  }
  return out;
}

using BadInputTest = ServerTest;

bool is_for_root(const BadInput& row) {
  return row.name == "unknown user";
}

// Another user is refused for naming one at all.
TEST_F(BadInputTest, OfRootIsRefusedNamingTheFieldAndChangesNothing) {
  if (uid_ != 0) GTEST_SKIP() << "only root may name another user";
  start();
  const std::uint64_t seq = core_.last_seq();
  int count = 0;
  for (const BadInput& row : rows()) {
    if (!is_for_root(row)) continue;
    ++count;
    const RawResponse response = ask(row.method, row.target, row.body);
    EXPECT_EQ(response.status, row.status) << row.name << ": " << response.body;
    EXPECT_EQ(parsed(response).value("field", ""), row.field) << row.name << ": " << response.body;
  }
  EXPECT_EQ(count, 1);
  EXPECT_EQ(core_.last_seq(), seq);
}

TEST_F(BadInputTest, IsRefusedNamingTheFieldAndChangesNothing) {
  start();
  // The table's job 1 exists, so that a request is refused only for what is wrong with it.
  core_.add_job(user_, uid_);
  const std::uint64_t seq = core_.last_seq();
  std::size_t count = 0;
  for (const BadInput& row : rows()) {
    if (is_for_root(row)) continue;
    ++count;
    const RawResponse response = ask(row.method, row.target, row.body);
    EXPECT_EQ(response.status, row.status) << row.name << ": " << response.body;
    EXPECT_EQ(response.headers.at("content-type"), "application/problem+json") << row.name;
    const auto problem = parsed(response);
    EXPECT_EQ(problem["field"].is_null() ? "" : problem["field"].get<std::string>(), row.field)
        << row.name << ": " << response.body;
    EXPECT_EQ(problem["status"], row.status) << row.name;
    EXPECT_FALSE(problem["detail"].get<std::string>().empty()) << row.name;
  }
  EXPECT_GT(count, 80U);
  EXPECT_EQ(core_.last_seq(), seq);
}

}  // namespace
}  // namespace gpu_platform::api
