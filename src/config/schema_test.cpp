#include "config/schema.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace gpu_platform::config {
namespace {

TEST(Schema, EveryKeyTakesItsOwnDefaultAndItsBounds) {
  for (const Key& key : schema()) {
    const std::string text = value_text(key, Configuration{});
    Configuration configuration;
    if (text != "not set") {
      EXPECT_TRUE(set_value(key, text, configuration).has_value()) << key.path << " = " << text;
    }
    EXPECT_EQ(configuration, Configuration{}) << key.path;
    EXPECT_FALSE(key.doc.empty()) << key.path;
  }
}

TEST(Schema, EveryKeyChangesAFieldOfItsOwn) {
  for (const Key& key : schema()) {
    Configuration configuration;
    bool changed = false;
    for (const std::string_view text :
         {"true",  "false",    "refuse",   "alert",  "low",    "7",    "77",
          "77s",   "weighted", "month",    "hybrid", "900s",   "70M",  "/bin/true",
          "off",   "all",      "9d",       "77777",  "viewer", "team", "127.0.0.1:8080",
          "owned", "spot",     "uuid",     "shadow", "cloud",  "auto", "quick",
          "stop",  "otel",     "exporter", "free"}) {
      configuration = Configuration{};
      changed = set_value(key, text, configuration).has_value() && configuration != Configuration{};
      if (changed) break;
    }
    ASSERT_TRUE(changed) << key.path;
    for (const Key& other : schema()) {
      if (other.path == key.path) continue;
      EXPECT_EQ(value_text(other, configuration), value_text(other, Configuration{}))
          << key.path << " also sets " << other.path;
    }
  }
}

TEST(Schema, AProgramIsNamedByItsAbsolutePath) {
  const auto key = std::ranges::find(schema(), "execution.notify_command", &Key::path);
  ASSERT_NE(key, schema().end());
  Configuration configuration;
  EXPECT_TRUE(set_value(*key, "/usr/bin/tell --site a", configuration));
  EXPECT_EQ(value_text(*key, configuration), "/usr/bin/tell --site a");
  for (const char* bad : {"", "tell", "./tell", " /usr/bin/tell"}) {
    EXPECT_FALSE(set_value(*key, bad, configuration)) << bad;
  }
}

TEST(Schema, AProgramFileTakesNoArguments) {
  const auto key = std::ranges::find(schema(), "execution.prolog", &Key::path);
  ASSERT_NE(key, schema().end());
  Configuration configuration;
  EXPECT_TRUE(set_value(*key, "/etc/site/my prolog", configuration));
  EXPECT_EQ(configuration.prolog.path, "/etc/site/my prolog");
  EXPECT_EQ(allowed_text(*key), "absolute path of a program");
  EXPECT_FALSE(set_value(*key, "prolog", configuration));
}

TEST(Schema, EverySectionOfAKeyIsDescribed) {
  for (const Key& key : schema()) {
    const auto section = key.path.substr(0, key.path.find('.'));
    EXPECT_TRUE(std::ranges::any_of(sections(), [&](const Section& s) {
      return s.name == section;
    })) << key.path;
  }
}

}  // namespace
}  // namespace gpu_platform::config
