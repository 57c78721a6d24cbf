#include "cli/text/output.h"

#include "cli/cli_fixture_test.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/text/json_view.h"
#include "cli/words/known_options.h"

namespace gpu_platform::cli {
namespace {

class Formats : public Cli {
 protected:
  static std::string answer(const FakeServer::Request& request) {
    if (begins(request.target, "/v1/status")) {
      return json_answer(
          R"({"total_gpus":2,"nodes":[{"name":"n-10","state":"UP"},{"name":"n-9"}],)"
          R"("gpus":[{"node":"n-9","uuid":"GPU-1"},{"node":"n-9","uuid":"GPU-2"}]})");
    }
    if (begins(request.target, "/v1/jobs?")) {
      return json_answer(fmt::format(R"({{"jobs":[{},{}],"next_page":null}})", kJob, kJob));
    }
    if (begins(request.target, "/v1/jobs/")) return json_answer(kJob);
    if (begins(request.target, "/v1/reservations")) {
      return json_answer(R"({"reservations":[{"name":"course"},{"name":"a\nb"}]})");
    }
    return json_answer(R"({"jobs":[],"total":0})");
  }
  std::string shown(std::vector<std::string> words, int code = kOk) {
    const std::size_t before = out().size();
    EXPECT_EQ(call(server_, words), code) << err();
    return out().substr(before);
  }

  FakeServer server_{answer};
};

TEST_F(Formats, NamesStandAloneInTheirLines) {
  EXPECT_EQ(shown({"jobs", "list", "-o", "name"}), "42\n42\n");
  EXPECT_EQ(shown({"jobs", "describe", "42", "-o", "name"}), "42\n");
  EXPECT_EQ(shown({"nodes", "-o", "name"}), "n-9\nn-10\n");
  EXPECT_EQ(shown({"status", "--all", "-o=name"}), "GPU-1\nGPU-2\n");
  // A name of two lines would be two names.
  EXPECT_EQ(shown({"reservations", "list", "--output", "name"}), "course\na?b\n");
}

TEST_F(Formats, YamlSaysWhatJsonSays) {
  EXPECT_EQ(shown({"queue", "-o", "yaml"}), "jobs: []\ntotal: 0\n");
  EXPECT_TRUE(
      begins(shown({"jobs", "describe", "42", "-o", "yaml"}), "id: \"42\"\nstate: QUEUED\n"));
  const std::string list = shown({"jobs", "list", "-o", "yaml"});
  EXPECT_TRUE(begins(list, "jobs:\n- id: \"42\"\n  state: QUEUED\n")) << list;
  EXPECT_TRUE(list.ends_with("\nnext_page: null\n")) << list;
  EXPECT_EQ(shown({"jobs", "list", "-o", "json"}), shown({"jobs", "list", "--json"}));
}

TEST_F(Formats, TableIsTheUsualForm) {
  EXPECT_EQ(shown({"nodes", "-o", "table"}), shown({"nodes"}));
}

TEST_F(Formats, WideCutsNothing) {
  around_.width = 20;
  EXPECT_NE(shown({"nodes", "-o", "wide"}), shown({"nodes"}));
}

TEST_F(Formats, AreRefusedWithWhatIsAllowed) {
  shown({"jobs", "list", "-o", "xml"}, kUsage);
  EXPECT_TRUE(has(err(), "--output: must be table, wide, json, yaml or name, not 'xml'")) << err();
  shown({"shares", "-o", "name"}, kUsage);
  EXPECT_TRUE(has(err(), "must be table, wide, json or yaml, not 'name'")) << err();
  shown({"jobs", "list", "-o", "name", "--json"}, kUsage);
  EXPECT_TRUE(has(err(), "exclude each other")) << err();
}

TEST(FormatOptions, AreTheSameOnEveryCommandThatHasJson) {
  const ProcessEnvironment nowhere;
  for (const Command& command : all_commands()) {
    const KnownOptions options = options_of(command, nowhere);
    if (options.find("--json") == nullptr) continue;
    const KnownOption* format = options.find("-o");
    // 'submit' and its like have an --output of their own: the job's file.
    if (format == nullptr) format = options.find(kFormatOption);
    if (command.text.name == "report monthly") format = options.find("--format");
    ASSERT_NE(format, nullptr) << command.text.name;
    // A page that is printed has a form of its own, and no YAML.
    const bool is_page = command.text.name == "report monthly";
    EXPECT_TRUE(begins(format->value, is_page ? "table|csv|json|html" : "table|wide|json|yaml"))
        << command.text.name << ": " << format->value;
  }
}

// ---- --watch

TEST_F(Formats, WatchShowsOneBlockAfterTheOtherUntilAnInterrupt) {
  int looks = 0;
  on_pause_ = [&] {
    if (++looks == 3) interrupt();
  };
  const std::string text = shown({"nodes", "--watch=5"}, kInterrupted);
  EXPECT_EQ(clock_, base::seconds(15));
  const std::string once = shown({"nodes"});
  EXPECT_EQ(text, once + "\n" + once + "\n" + once);
}

TEST_F(Formats, WatchedDocumentsAreOneInALine) {
  on_pause_ = [&] { interrupt(); };
  EXPECT_EQ(shown({"queue", "-w", "--json"}, kInterrupted), "{\"jobs\":[],\"total\":0}\n");
  EXPECT_EQ(clock_, base::seconds(2));
}

TEST_F(Formats, WatchWaitsForADaemonThatIsAwayAndSaysSo) {
  int asked = 0;
  FakeServer flaky([&](const FakeServer::Request&) {
    ++asked;
    return asked == 2 || asked == 3 ? json_answer("{\"detail\":\"x\"}", 503)
                                    : json_answer(R"({"nodes":[]})");
  });
  int pauses = 0;
  on_pause_ = [&] {
    if (++pauses == 4) interrupt();
  };
  EXPECT_EQ(call(flaky, {"nodes", "-w"}), kInterrupted);
  EXPECT_EQ(asked, 4);
  EXPECT_TRUE(has(err(), "503 Service Unavailable; waiting for it")) << err();
  EXPECT_EQ(err().find("waiting for it"), err().rfind("waiting for it"));
  EXPECT_TRUE(has(err(), "the daemon is back")) << err();
}

TEST_F(Formats, WatchEndsWhereTheFirstLookFails) {
  EXPECT_EQ(call({"--server", "unix:/nonexistent", "nodes", "-w"}), kNoDaemon);
  EXPECT_EQ(pauses_, 0);
}

TEST_F(Formats, WatchTakesWholeSeconds) {
  for (const std::string value : {"0", "-1", "1.5", "x", "999999999"}) {
    EXPECT_EQ(call(server_, {"nodes", "--watch=" + value}), kUsage) << value;
  }
  EXPECT_TRUE(has(err(), "--watch: ")) << err();
}

}  // namespace
}  // namespace gpu_platform::cli
