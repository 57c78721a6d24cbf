#include "kubernetes/json_reader.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/prng.h"

namespace gpu_platform::kubernetes {
namespace {

using Json = nlohmann::json;

Json read(std::string_view text, const JsonFields& fields = {}) {
  return read_json(text, fields);
}

TEST(JsonReader, ReadsAllValues) {
  const std::string text =
      R"({"a":[1,-2,2.5,true,false,null,"t\u00e9\n\"",[],{}],"b":{"c":{"d":18446744073709551615}}})";
  EXPECT_EQ(read(text), Json::parse(text));
  EXPECT_TRUE(read(text)["b"]["c"]["d"].is_number_integer());
  EXPECT_EQ(read(" [ 1 , 2 ]\n"), Json::parse("[1,2]"));
  EXPECT_EQ(read(R"({"a":1,"a":2})"), Json::parse(R"({"a":2})"));
}

TEST(JsonReader, ReadsTheFieldsThatAreNamed) {
  const std::string text = R"({"kind":"Pod","metadata":{"name":"p","uid":"u","labels":{"name":"x"}},
    "spec":{"containers":[{"name":"a","env":[{"name":"E"}]},{"env":[]},7]},"status":"odd"})";
  EXPECT_EQ(
      read(text, {"metadata.name", "metadata.labels", "spec.containers.name", "status.phase"}),
      Json::parse(R"({"metadata":{"name":"p","labels":{"name":"x"}},
                            "spec":{"containers":[{"name":"a"},{},7]},"status":"odd"})"));
  EXPECT_EQ(read(text, {"none"}), Json::object());
}

TEST(JsonReader, APathToTheWholeStandsForThoseBelow) {
  const std::string text = R"({"a":{"b":1,"c":2}})";
  EXPECT_EQ(read(text, {"a.b", "a"}), Json::parse(text));
  EXPECT_EQ(read(text, {"a", "a.b"}), Json::parse(text));
}

TEST(JsonReader, FieldsWithinAMember) {
  JsonFields page = JsonFields::within("items", {"name"});
  page.add("metadata.continue");
  const std::string text = R"({"metadata":{"continue":"c","x":1},"items":[{"name":"a","x":1}]})";
  EXPECT_EQ(read(text, page),
            Json::parse(R"({"metadata":{"continue":"c"},"items":[{"name":"a"}]})"));
  const JsonFields all = JsonFields::within("items", {});
  EXPECT_EQ(read(text, all), Json::parse(R"({"items":[{"name":"a","x":1}]})"));
}

TEST(JsonReader, LeavesOutWhatTheServerNotesForItself) {
  EXPECT_EQ(read(R"({"metadata":{"name":"a","managedFields":[{"x":[1,"]\"]"]}],"uid":"u"}})"),
            Json::parse(R"({"metadata":{"name":"a","uid":"u"}})"));
  const std::string labels = R"({"labels":{"managedFields":"of a user"}})";
  EXPECT_EQ(read(labels), Json::parse(labels));
}

TEST(JsonReader, TextThatIsNoJsonIsDiscarded) {
  for (const std::string text :
       {"", "{", "[1", R"({"a":)", R"({"a":"b)", R"({"a":1}})", R"({"a":1} x)", R"({"a":nul})",
        R"({"a":tru})", R"({a:1})", "{\"a\":\"\xff\"}", "nothing"}) {
    EXPECT_TRUE(read(text).is_discarded()) << text;
  }
}

// A user's parameters are passed on as they were written.
TEST(JsonReader, AValueThatCannotBeRepresentedSpoilsNoOther) {
  EXPECT_EQ(read(R"({"a":01,"b":"\x","c":3})"), Json::parse(R"({"a":null,"b":null,"c":3})"));
  EXPECT_EQ(read(R"({"a":1e999,"b":["\ud800",2],"c":3})"),
            Json::parse(R"({"a":null,"b":[null,2],"c":3})"));
  const std::string deep = std::string(5'000, '[') + std::string(5'000, ']');
  const Json found = read(R"({"a":)" + deep + R"(,"b":[)" + deep + R"(,4],"c":5})");
  EXPECT_EQ(found["b"][1], 4);
  EXPECT_EQ(found["c"], 5);
  const Json* inner = &found["a"];
  int depth = 0;
  for (; inner->is_array() && !inner->empty(); inner = &inner->front()) ++depth;
  EXPECT_TRUE(inner->is_null());
  EXPECT_GT(depth, 900);
}

TEST(JsonReader, ANumberThatIsTooLargeForAWholeOneIsRead) {
  EXPECT_EQ(read(R"({"a":123456789012345678901234567890})")["a"], 123456789012345678901234567890.0);
}

TEST(JsonReader, ReadsTextsOfAllSizesAfterOneAnother) {
  for (const std::size_t size : {10U, 100'000U, 20U, 3'000'000U, 0U, 65'536U}) {
    const Json object = {{"a", std::string(size, 'x')}, {"b", 1}};
    EXPECT_EQ(read(object.dump()), object) << size;
  }
}

// Bytes that were changed at random either do not end the program, or are read as nlohmann's parser
// reads them.
TEST(JsonReader, SpoiledTextIsReadAsAnyOtherReaderReadsItOrDiscarded) {
  base::Prng prng(7);
  const std::string whole =
      R"({"type":"ADDED","object":{"metadata":{"name":"a","labels":{"x":"\u00e9"}},"n":[1,2.5,null]}})";
  int kept = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = whole;
    for (std::uint64_t n = prng.below(3) + 1; n > 0; --n) {
      text[prng.below(text.size())] = static_cast<char>(prng.below(256));
    }
    const Json expected = Json::parse(text, nullptr, false);
    const Json found = read(text);
    (void)read(text, {"object.metadata.name", "type"});
    if (expected.is_discarded()) continue;
    ++kept;
    EXPECT_EQ(found, expected) << text;
  }
  EXPECT_GT(kept, 1'000);
}

}  // namespace
}  // namespace gpu_platform::kubernetes
