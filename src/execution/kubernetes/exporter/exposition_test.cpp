#include "execution/kubernetes/exporter/exposition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace gpu_platform::execution {
namespace {

// Returns "name label=value… number" of each sample.
std::vector<std::string> read(std::string_view page) {
  std::vector<std::string> all;
  const std::size_t count = read_exposition(page, [&](const Sample& sample) {
    std::string text(sample.name);
    for (const auto& [name, value] : sample.labels) text += fmt::format(" {}={}", name, value);
    all.push_back(fmt::format("{} {}", text, sample.value));
  });
  EXPECT_EQ(count, all.size());
  return all;
}

using Texts = std::vector<std::string>;

TEST(Exposition, HasNamesLabelsAndNumbers) {
  EXPECT_EQ(
      read("# HELP up Whether it is up.\n"
           "# TYPE up gauge\n"
           "up 1\n"
           "power{gpu=\"0\",UUID=\"GPU-1\",} 71.5\n"
           "a:b{}\t-2e3 1767225600000\n"
           "\n"
           "  spaced { a = \"b\" , c=\"\" }  +7  \r\n"
           "last 3"),
      (Texts{"up 1", "power gpu=0 UUID=GPU-1 71.5", "a:b -2000", "spaced a=b c= 7", "last 3"}));
}

TEST(Exposition, ReadsEscapesInLabels) {
  EXPECT_EQ(read(R"(m{a="x\"y",b="p\\q",c="1\n2"} 1)"), (Texts{"m a=x\"y b=p\\q c=1\n2 1"}));
  EXPECT_EQ(read("m{a=\"}, b=\"} 1"), (Texts{"m a=}, b= 1"}));
}

TEST(Exposition, HasNumbersThatAreNone) {
  std::vector<double> values;
  read_exposition("a NaN\nb +Inf\nc -Inf\n",
                  [&](const Sample& sample) { values.push_back(sample.value); });
  ASSERT_EQ(values.size(), 3U);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], HUGE_VAL);
  EXPECT_EQ(values[2], -HUGE_VAL);
}

TEST(Exposition, PassesOverLinesThatAreNotOfTheFormat) {
  for (const std::string_view line :
       {"1up 1", "up", "up x", "up 1 2 3", "up 1 x", "up{ 1", "up{a} 1", "up{a=b} 1", "up{a=\"b} 1",
        "up{a=\"b\"", "up{a=\"b\" c=\"d\"} 1", "up{=\"b\"} 1", "up{a=\"b\\", "{a=\"b\"} 1", "up 1e",
        "<html>", "\x01\xff\xfe", "up{a=\"b\"}} 1"}) {
    EXPECT_EQ(read(fmt::format("before 1\n{}\nafter 2\n", line)), (Texts{"before 1", "after 2"}))
        << line;
  }
  EXPECT_EQ(read(std::string_view("a\0b 1\nc 2\n", 10)), (Texts{"c 2"}));
}

TEST(Exposition, PassesOverWhatIsTooLongOrTooMuch) {
  const std::string long_line = fmt::format("m{{a=\"{}\"}} 1\n", std::string(kMaxSampleLine, 'x'));
  EXPECT_EQ(read(long_line + "n 2\n"), (Texts{"n 2"}));
  std::string labels;
  for (std::size_t i = 0; i < kMaxSampleLabels; ++i) labels += fmt::format("l{}=\"\",", i);
  EXPECT_EQ(read(fmt::format("m{{{}}} 1\n", labels)).size(), 1U);
  EXPECT_EQ(read(fmt::format("m{{{}more=\"\"}} 1\n", labels)).size(), 0U);
  std::string many;
  for (std::size_t i = 0; i < kMaxSamples + 10; ++i) many += "m 1\n";
  EXPECT_EQ(read_exposition(many, [](const Sample&) {}), kMaxSamples);
}

TEST(Exposition, FindsALabelByItsName) {
  read_exposition("m{gpu=\"0\",UUID=\"GPU-1\"} 1\n", [](const Sample& sample) {
    EXPECT_EQ(sample.label("UUID"), "GPU-1");
    EXPECT_EQ(sample.label("uuid"), "");
  });
}

}  // namespace
}  // namespace gpu_platform::execution
