#include "cli/text/yaml.h"

#include <gtest/gtest.h>

#include "config/yaml/document.h"

namespace gpu_platform::cli {
namespace {

// The text of the scalar as YAML's parser has it, and whether it stood in quotes.
void expect_same(const YAML::Node& node, const Json& value, const std::string& yaml) {
  if (value.is_object()) {
    ASSERT_TRUE(node.IsMap()) << yaml;
    ASSERT_EQ(node.size(), value.size()) << yaml;
    for (const auto& [key, entry] : value.items()) expect_same(node[key], entry, yaml);
  } else if (value.is_array()) {
    ASSERT_TRUE(node.IsSequence()) << yaml;
    ASSERT_EQ(node.size(), value.size()) << yaml;
    for (std::size_t i = 0; i < value.size(); ++i) expect_same(node[i], value[i], yaml);
  } else if (value.is_string()) {
    EXPECT_EQ(node.as<std::string>(), value.get<std::string>()) << yaml;
  } else if (value.is_null()) {
    EXPECT_TRUE(node.IsNull()) << yaml;
  } else if (value.is_boolean()) {
    EXPECT_EQ(node.as<bool>(), value.get<bool>()) << yaml;
  } else {
    EXPECT_EQ(node.as<double>(), value.get<double>()) << yaml;
  }
}

void expect_read_back(const Json& value) {
  const std::string yaml = yaml_text(value);
  const auto read = config::parse_document(yaml);
  ASSERT_TRUE(read.has_value()) << yaml << read.error().message;
  expect_same(*read, value, yaml);
}

const std::string kOdd[] = {"",
                            " ",
                            "a b",
                            "true",
                            "No",
                            "NULL",
                            "~",
                            "1",
                            "1e3",
                            "0x10",
                            "1:30",
                            "2026-01-31",
                            "-",
                            "- a",
                            "a: b",
                            "a #b",
                            "#",
                            "&a",
                            "*a",
                            "!a",
                            "|",
                            ">",
                            "%a",
                            "@a",
                            "`a",
                            "'a'",
                            "\"a\"",
                            "{a}",
                            "[a]",
                            "a,b",
                            "?",
                            "---",
                            "...",
                            "<<",
                            "=",
                            "a\nb",
                            "\n",
                            "\r\n",
                            "\t",
                            "tab\there",
                            "\\",
                            "\x01\x1b[31m",
                            "\x7f",
                            "\xc2\x85",
                            "\xe2\x80\xa8",
                            "\xef\xbb\xbf",
                            "\xef\xbf\xbe",
                            "\xc3\xbc",
                            "\xf0\x9f\x98\x80",
                            "plain-word_1.2/x",
                            std::string("nul\0byte", 8),
                            std::string(5000, 'x')};

TEST(Yaml, ReadsBackEveryTextAsValueAndAsKey) {
  for (const std::string& text : kOdd) {
    expect_read_back(Json{{"value", text}});
    expect_read_back(Json{{"key", Json{{text, 1}}}});
    expect_read_back(Json{{text, Json::array({1, Json{{text, Json::array({2})}}})}, {"a", 3}});
    expect_read_back(Json::array({text, Json::array({text}), Json{{"a", text}, {"b", text}}}));
  }
}

TEST(Yaml, ReadsBackEveryShape) {
  for (const std::string_view text :
       {R"({})", R"([])", R"({"a":{},"b":[],"c":null,"d":true,"e":-1.5,"f":1e300})",
        R"({"a":[[1,[2,[]]],{"b":[{"c":[{}]}]}]})",
        R"({"a":[{"b":1,"c":[1,2]},{"b":{"d":{"e":1}}}]})", R"([{"a":1},[{"b":2}]])",
        R"({"big":9007199254740991})"}) {
    expect_read_back(Json::parse(text));
  }
}

TEST(Yaml, IsWrittenAsPeopleWriteIt) {
  EXPECT_EQ(
      yaml_text(Json::parse(
          R"({"jobs":[{"id":"42","name":"train","gpus":[0,1],"at":null}],"next_page":null})")),
      "jobs:\n- id: \"42\"\n  name: train\n  gpus:\n  - 0\n  - 1\n  at: null\nnext_page: null\n");
}

}  // namespace
}  // namespace gpu_platform::cli
