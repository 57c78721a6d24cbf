#include "kubernetes/unread_members.h"

#include <array>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gpu_platform::kubernetes {
namespace {

using Json = nlohmann::json;

std::string without_managed_fields(std::string_view text) {
  return without_members(text, std::array{kManagedFields});
}

TEST(UnreadMembers, AreTakenOutAndNothingElse) {
  EXPECT_EQ(without_managed_fields(R"({"metadata":{"name":"a","managedFields":[{"x":[1,"]\"]"]}],)"
                                   R"("uid":"u"},"spec":[[1],2]})"),
            R"({"metadata":{"name":"a","managedFields":[],"uid":"u"},"spec":[[1],2]})");
  EXPECT_EQ(without_managed_fields(""), "");
  EXPECT_EQ(without_managed_fields("[1]"), "[1]");
}

TEST(UnreadMembers, OfAllNamesArraysAndObjects) {
  const std::array<std::string_view, 2> names = {"env", "affinity"};
  EXPECT_EQ(
      without_members(R"({"env":[{"affinity":"}"}],"affinity":{"a":[{}]},"b":{"env":[1]}})", names),
      R"({"env":[],"affinity":{},"b":{"env":[]}})");
  EXPECT_EQ(without_members(R"({"env":"a","affinity":1,"environment":[1]})", names),
            R"({"env":"a","affinity":1,"environment":[1]})");
}

TEST(UnreadMembers, OfAllObjectsOfAList) {
  const std::string list = R"({"items":[{"managedFields":[1,2]},{"managedFields":[]},{"a":1}]})";
  EXPECT_EQ(without_managed_fields(list),
            R"({"items":[{"managedFields":[]},{"managedFields":[]},{"a":1}]})");
}

TEST(UnreadMembers, AUsersTextThatNamesThemStays) {
  const Json object = {{"annotations", {{"a", R"("managedFields":[1,2)"}, {"managedFields", "b"}}},
                       {"b", R"(\"managedFields":[)"},
                       {"c", "\\"},
                       {"managedFields", Json::array({"\\", "]", "[\""})},
                       {"z", 1}};
  Json expected = object;
  expected["managedFields"] = Json::array();
  EXPECT_EQ(Json::parse(without_managed_fields(object.dump())), expected);
}

TEST(UnreadMembers, BrokenTextStaysAsItIs) {
  for (const std::string text :
       {R"({"managedFields":[)", R"({"managedFields":["]})", R"({"managedFields":[1,"\)",
        R"({"managedFields":[1}})", R"({"managedFields":)", R"({"managedFields)"}) {
    EXPECT_EQ(without_managed_fields(text), text);
  }
}

}  // namespace
}  // namespace gpu_platform::kubernetes
