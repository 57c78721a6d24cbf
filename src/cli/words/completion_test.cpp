#include "cli/words/completion.h"

#include <cstdlib>
#include <filesystem>

#include "cli/cli_fixture_test.h"
#include "client/profiles.h"

namespace gpu_platform::cli {
namespace {

class Completion : public Cli {
 protected:
  // The candidates for the last word, one in a line, with their help.
  std::string offered(std::vector<std::string> words) {
    const std::size_t before = out().size();
    words.insert(words.begin(), {"complete", "--"});
    EXPECT_EQ(server_ == nullptr ? call(words) : call(*server_, words), 0);
    return out().substr(before);
  }
  void begin_server() {
    server_ = std::make_unique<FakeServer>([](const FakeServer::Request& request) {
      if (request.target.starts_with("/v1/jobs")) {
        return json_answer(
            R"({"jobs":[{"id":"7","state":"RUNNING","spec":{"name":"train"}},{"id":"71","state":"QUEUED","spec":{"name":"a\tb"}}]})");
      }
      if (request.target == "/v1/reservations") {
        return json_answer(
            R"({"reservations":[{"name":"course","begin":"2026-07-01T12:00:00Z"}]})");
      }
      if (request.target == "/v1/teams") {
        return json_answer(R"({"teams":[{"name":"vision","parent":"research"}]})");
      }
      if (request.target == "/v1/tokens") {
        return json_answer(
            R"({"tokens":[{"id":"3","name":"laptop","expires_at":"2026-07-01T12:00:00Z"}]})");
      }
      return json_answer(
          R"({"nodes":[{"name":"dgx-1","state":"UP"},{"name":"l40s-1","state":"UP"}]})");
    });
  }

  std::unique_ptr<FakeServer> server_;
};

TEST_F(Completion, OffersCommandsAndTheirSecondWords) {
  EXPECT_EQ(offered({"jo"}), "jobs\t\n");
  EXPECT_EQ(offered({"jobs", "ann"}), "");
  EXPECT_TRUE(begins(offered({"jobs", "des"}), "describe\tShow the details"));
  EXPECT_EQ(offered({"nonsense", ""}), "");
}

TEST_F(Completion, OffersTheOptionsOfACommand) {
  const std::string options = offered({"jobs", "list", "--"});
  EXPECT_TRUE(has(options, "--state\t")) << options;
  EXPECT_TRUE(has(options, "--help\t")) << options;
  EXPECT_TRUE(has(offered({"submit", "--gpu-t"}), "--gpu-type\t"));
}

TEST_F(Completion, OffersTheWordsThatAnOptionTakes) {
  EXPECT_EQ(offered({"jobs", "list", "-o", "w"}), "wide\t\n");
  EXPECT_EQ(offered({"jobs", "list", "--state", "RUNNING,COMP"}), "RUNNING,COMPLETED\t\n");
  EXPECT_EQ(offered({"jobs", "list", "--state=COMP"}), "--state=COMPLETED\t\n");
  EXPECT_EQ(offered({"jobs", "list", "--state", "=", "COMP"}), "COMPLETED\t\n");
  EXPECT_TRUE(has(offered({"jobs", "list", "--state", "="}), "COMPLETED\t\n"));
  EXPECT_EQ(offered({"submit", "--priority", "h"}), "high\t\n");
  EXPECT_EQ(offered({"completion", "z"}), "zsh\t\n");
}

TEST_F(Completion, AsksTheDaemonForNames) {
  begin_server();
  EXPECT_EQ(offered({"jobs", "cancel", "7"}), "7\ttrain RUNNING\n71\ta?b QUEUED\n");
  EXPECT_EQ(offered({"logs", "71"}), "71\ta?b QUEUED\n");
  EXPECT_EQ(offered({"submit", "--nodelist", "dgx-1,l"}), "dgx-1,l40s-1\tUP\n");
  EXPECT_TRUE(begins(offered({"reservations", "describe", ""}), "course\t"));
  EXPECT_TRUE(begins(offered({"token", "revoke", ""}), "laptop\t"));
  EXPECT_EQ(offered({"team", "show", ""}), "vision\tresearch\n");
  EXPECT_EQ(offered({"submit", "--team", "v"}), "vision\tresearch\n");
}

TEST_F(Completion, IsQuietWithoutADaemonAndAfterTheDashes) {
  EXPECT_EQ(offered({"jobs", "cancel", ""}), "");
  EXPECT_EQ(offered({"submit", "--gpus", "1", "--", "python", "--"}), "");
}

TEST_F(Completion, PrintsAScriptForEachShell) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(call({"completion", shell}), 0);
    EXPECT_TRUE(has(out(), "complete --")) << out();
  }
  EXPECT_EQ(call({"completion", "csh"}), 2);
  EXPECT_TRUE(has(err(), "'csh' is not one of bash, zsh, fish")) << err();
}

TEST_F(Completion, OffersProfilesAndTheFormsOfOutput) {
  std::string folder = (std::filesystem::temp_directory_path() / "gp-complete-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  around_.uid = ::getuid();
  around_.environment.push_back("XDG_CONFIG_HOME=" + folder);
  ASSERT_TRUE(client::change_profiles(around_, [](client::Profiles& profiles) -> base::Status {
    profiles.put({"lab", *http::parse_server("https://gpus.example.org")});
    return {};
  }));
  EXPECT_EQ(offered({"status", "--server", "la"}), "lab\thttps://gpus.example.org:8443\n");
  EXPECT_TRUE(has(offered({"profile", "use", ""}), "lab\t"));
  EXPECT_TRUE(has(offered({"profile", "use", "loc"}), "local\t"));
  EXPECT_EQ(offered({"nodes", "-o", "y"}), "yaml\t\n");
  // The value of --watch stands behind '=' alone.
  EXPECT_TRUE(has(offered({"nodes", "--watch", "--ou"}), "--output\t"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gpu_platform::cli
