#include "bin/serve_options.h"

#include <gtest/gtest.h>
#include <regex>

#include <vector>

#include "client/exit_code.h"
#include "client/places.h"

namespace gpu_platform::bin {
namespace {

class ServeOptionsTest : public ::testing::Test {
 protected:
  ServeOptionsTest() {
    process_.uid = 1000;
    process_.environment = {"HOME=/home/ann"};
  }
  std::expected<ServeOptions, int> read(const std::vector<std::string>& words) {
    told_.clear();
    client::Console console(process_, told_);
    return read_serve_options(words, console);
  }

  client::ProcessEnvironment process_;
  std::string told_;
};

TEST_F(ServeOptionsTest, WithoutAnyTheDefaultsOfTheUserStand) {
  const auto options = read({});
  ASSERT_TRUE(options) << told_;
  EXPECT_EQ(options->data_dir, client::default_data_dir(process_));
  EXPECT_EQ(options->socket, client::socket_to_serve(process_));
  EXPECT_EQ(options->emulate, "");
  EXPECT_EQ(options->launcher, "");
  EXPECT_EQ(options->config_path, "");
  EXPECT_FALSE(options->is_standby);
  EXPECT_FALSE(options->accept_loss);
  EXPECT_EQ(options->log_level, spdlog::level::info);
  EXPECT_FALSE(options->is_json_log);
  EXPECT_FALSE(options->metric_names);
}

TEST_F(ServeOptionsTest, EachIsTaken) {
  const auto options =
      read({"--data-dir", "/d", "--socket", "/s", "--emulate", "2xdgx-h100", "--launcher", "/l",
            "--config", "c.yaml", "--standby", "--accept-loss", "--log-level", "error",
            "--log-format", "json", "--metrics-names", "both"});
  ASSERT_TRUE(options) << told_;
  EXPECT_EQ(options->data_dir, "/d");
  EXPECT_EQ(options->socket, "/s");
  EXPECT_EQ(options->emulate, "2xdgx-h100");
  EXPECT_EQ(options->launcher, "/l");
  EXPECT_EQ(options->config_path, "c.yaml");
  EXPECT_TRUE(options->is_standby);
  EXPECT_TRUE(options->accept_loss);
  EXPECT_EQ(options->log_level, spdlog::level::err);
  EXPECT_TRUE(options->is_json_log);
  EXPECT_EQ(options->metric_names, config::MetricNames::kBoth);
}

TEST_F(ServeOptionsTest, AMistakeIsToldWithItsOption) {
  const std::vector<std::vector<std::string>> mistakes = {{"--log-level", "loud"},
                                                          {"--log-format", "xml"},
                                                          {"--emulate", ""},
                                                          {"--metrics-names", "sql"}};
  for (const auto& words : mistakes) {
    const auto options = read(words);
    ASSERT_FALSE(options) << words[0];
    EXPECT_EQ(options.error(), client::kUsage);
    EXPECT_NE(told_.find(words[0] + ": "), std::string::npos) << told_;
  }
  EXPECT_EQ(read({"--no-such"}).error(), client::kUsage);
}

TEST_F(ServeOptionsTest, TheHelpNamesTheDefaults) {
  const auto options = read({"--help"});
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error(), client::kOk);
  // The lines of a page are no wider than 80 columns.
  const std::string page = std::regex_replace(told_, std::regex(R"(\s+)"), " ");
  EXPECT_NE(page.find("(default " + client::default_data_dir(process_)), std::string::npos) << page;
  EXPECT_NE(page.find("(default " + client::socket_to_serve(process_)), std::string::npos);
  EXPECT_NE(page.find("SIGHUP reads the configuration again"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::bin
