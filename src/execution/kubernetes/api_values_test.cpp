#include "execution/kubernetes/api_values.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/utc.h"

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;

TEST(ApiValues, AMemberOfAnotherKindIsAbsent) {
  const Json object = {{"text", "a"}, {"number", 7}, {"flag", true}, {"list", {1}}, {"null", {}}};
  EXPECT_EQ(text_at(object, {"text"}), "a");
  EXPECT_EQ(text_at(object, {"number"}), "");
  EXPECT_EQ(text_at(object, {"text", "below"}), "");
  EXPECT_EQ(number_at(object, {"number"}), 7);
  EXPECT_EQ(number_at(object, {"text"}, -1), -1);
  EXPECT_TRUE(flag_at(object, {"flag"}));
  EXPECT_FALSE(flag_at(object, {"number"}));
  EXPECT_EQ(list_at(object, {"list"}).size(), 1U);
  EXPECT_TRUE(list_at(object, {"text"}).is_array());
  EXPECT_TRUE(map_at(object, {"list"}).is_object());
  EXPECT_TRUE(at(Json(3), {"a", "b"}).is_null());
}

TEST(ApiValues, ANumberThatDoesNotFitIsAbsent) {
  const Json object = {{"large", std::numeric_limits<std::uint64_t>::max()},
                       {"half", 0.5},
                       {"least", std::numeric_limits<std::int64_t>::min()}};
  EXPECT_EQ(number_at(object, {"large"}, 5), 5);
  EXPECT_EQ(number_at(object, {"half"}, 5), 5);
  EXPECT_EQ(number_at(object, {"least"}, 5), std::numeric_limits<std::int64_t>::min());
}

TEST(ApiValues, ALineIsPrintableAndBounded) {
  EXPECT_EQ(printable_line("größe\n\x1b[2J"), "größe  [2J");
  EXPECT_EQ(printable_line("a\xff"), "a?");
  EXPECT_EQ(printable_line(std::string(kMaxLine, 'x')), std::string(kMaxLine, 'x'));
  const std::string cut = printable_line(std::string(kMaxLine + 1, 'x'));
  EXPECT_LE(cut.size(), kMaxLine);
  EXPECT_TRUE(cut.ends_with("x…"));
  EXPECT_EQ(printable_line("Unschedulable", "0/3 nodes"), "Unschedulable: 0/3 nodes");
  EXPECT_EQ(printable_line("Evicted", ""), "Evicted");
  EXPECT_EQ(printable_line("", "only a message"), "only a message");
}

struct Written {
  std::string_view text;
  std::int64_t milli;
  std::int64_t whole;
};

TEST(Quantities, AreReadAsKubernetesWritesThem) {
  for (const Written& one : {
           Written{"100m", 100, 1},
           {"2", 2000, 2},
           {"+2", 2000, 2},
           {"0", 0, 0},
           {"0.5", 500, 1},
           {".5", 500, 1},
           {"5.", 5000, 5},
           {"1.5Gi", 1'610'612'736'000, 1'610'612'736},
           {"1e3", 1'000'000, 1000},
           {"1E3", 1'000'000, 1000},
           {"1e-3", 1, 1},
           {"129e6", 129'000'000'000, 129'000'000},
           {"4k", 4'000'000, 4000},
           {"1u", 1, 1},
           {"1n", 1, 1},
           {"263921808Ki", 270'255'931'392'000, 270'255'931'392},
       }) {
    SCOPED_TRACE(one.text);
    EXPECT_EQ(parse_quantity_milli(one.text).value_or(-1), one.milli);
    EXPECT_EQ(parse_quantity(one.text).value_or(-1), one.whole);
  }
}

TEST(Quantities, UseTheirWholeRange) {
  EXPECT_EQ(parse_quantity("9223372036854775807").value_or(-1),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse_quantity("9E").value_or(-1), 9'000'000'000'000'000'000);
  EXPECT_EQ(parse_quantity("7Ei").value_or(-1), std::int64_t{7} << 60);
  EXPECT_EQ(parse_quantity("1.00000000000000000000000000001").value_or(-1), 2);
  EXPECT_EQ(parse_quantity("100000000000000000000000e-22").value_or(-1), 10);
  EXPECT_EQ(parse_quantity("1e-999").value_or(-1), 1);
}

TEST(Quantities, RefuseEverythingElse) {
  for (const std::string_view text :
       {"", " ", "-1", "1.2.3", "1 Gi", "Gi", ".", "1KiB", "1e", "1e+", "e3", "0x10",
        "9223372036854775808", "8Ei", "1e999", "1e1000",
        "99999999999999999999999999999999999999999999Ei", "1K", "inf"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(parse_quantity(text).has_value());
  }
}

TEST(Times, AreReadWithFractionsAndOffsets) {
  EXPECT_EQ(base::utc(parse_time("2026-11-22T08:36:36Z")), "2026-11-22T08:36:36Z");
  EXPECT_EQ(parse_time("2026-11-22T08:36:36.000250Z") - parse_time("2026-11-22T08:36:36Z"),
            base::microseconds(250));
  EXPECT_EQ(parse_time("2026-11-22T10:36:36+02:00"), parse_time("2026-11-22T08:36:36Z"));
  EXPECT_EQ(base::utc(parse_time("2028-02-29T23:59:59Z")), "2028-02-29T23:59:59Z");
}

TEST(Times, AreUnsetWhereThereIsNone) {
  for (const std::string_view text :
       {"", "1970-01-01T00:00:00Z", "2026-11-22", "2026-11-22T08:36:36", "2026-13-01T00:00:00Z",
        "2027-02-29T00:00:00Z", "2026-11-22T24:00:00Z", "9999-01-01T00:00:00Z", "null",
        "2026-11-22T08:36:36+2:00", "1969-12-31T23:59:59Z", "2026-00-10T00:00:00Z"}) {
    EXPECT_FALSE(parse_time(text).is_set()) << text;
  }
}

}  // namespace
}  // namespace gpu_platform::execution
