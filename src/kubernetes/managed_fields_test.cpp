#include "kubernetes/managed_fields.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gpu_platform::kubernetes {
namespace {

using Json = nlohmann::json;

TEST(ManagedFields, AreTakenOutAndNothingElse) {
  EXPECT_EQ(without_managed_fields(R"({"metadata":{"name":"a","managedFields":[{"x":[1,"]\"]"]}],)"
                                   R"("uid":"u"},"spec":[[1],2]})"),
            R"({"metadata":{"name":"a","managedFields":[],"uid":"u"},"spec":[[1],2]})");
  EXPECT_EQ(without_managed_fields(""), "");
  EXPECT_EQ(without_managed_fields("[1]"), "[1]");
}

TEST(ManagedFields, OfAllObjectsOfAList) {
  const std::string list = R"({"items":[{"managedFields":[1,2]},{"managedFields":[]},{"a":1}]})";
  EXPECT_EQ(without_managed_fields(list),
            R"({"items":[{"managedFields":[]},{"managedFields":[]},{"a":1}]})");
}

TEST(ManagedFields, AUsersTextThatNamesThemStays) {
  const Json object = {{"annotations", {{"a", R"("managedFields":[1,2)"}, {"managedFields", "b"}}},
                       {"b", R"(\"managedFields":[)"},
                       {"managedFields", Json::array({"\\", "]", "[\""})},
                       {"z", 1}};
  Json expected = object;
  expected["managedFields"] = Json::array();
  EXPECT_EQ(Json::parse(without_managed_fields(object.dump())), expected);
}

TEST(ManagedFields, BrokenTextStaysAsItIs) {
  for (const std::string text :
       {R"({"managedFields":[)", R"({"managedFields":["]})", R"({"managedFields":[1,"\)"}) {
    EXPECT_EQ(without_managed_fields(text), text);
  }
}

}  // namespace
}  // namespace gpu_platform::kubernetes
