// The audit trail as people see it: two users and root, each a process with its own rights, and who
// of them finds what of the others.

#include <gtest/gtest.h>

#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "harness.h"
#include "http_load.h"
#include "several_users.h"
#include "terminal.h"

namespace gpu_platform::e2e {
namespace {

using nlohmann::json;

// Ann's jobs run; Bob only tries.
class Audit : public SeveralUsers {
 protected:
  Audit() : SeveralUsers({.config = "policies:\n  stop_grace: 1s\n"}) {}

  // A connection to this host's port that is closed again at once.
  static void connect_to(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    close(fd);
  }
  std::string submit(const char* user, std::vector<std::string> options,
                     const std::string& script = "exec sleep 1000") const {
    options.insert(options.begin(), "submit");
    options.insert(options.end(), {"--", "/bin/sh", "-c", script});
    const Finished done = by(user, options);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out.substr(0, done.out.find('\n'));
  }
  json entries(const char* user, std::vector<std::string> filters = {}) const {
    filters.insert(filters.begin(), {"audit", "list", "--json"});
    const Finished done = by(user, filters);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const json list = json::parse(done.out, nullptr, false);
    EXPECT_TRUE(list.is_object() && list["next_page"].is_null()) << done.out;
    return list.is_object() ? list["entries"] : json::array();
  }
  // "who action owner jobs/gpus/target outcome", oldest first.
  static std::vector<std::string> told(const json& entries) {
    std::vector<std::string> lines;
    for (const json& entry : entries) {
      std::string what;
      for (const json& job : entry["jobs"]) what += job.get<std::string>() + " ";
      for (const json& gpu : entry["gpus"]) what += gpu.get<std::string>() + " ";
      if (entry["gpus"].empty() && entry["target"].is_string()) {
        what += entry["target"].get<std::string>() + " ";
      }
      const std::string owner =
          entry["owner"].is_string() ? " for " + entry["owner"].get<std::string>() : "";
      const std::string outcome =
          entry["outcome"] == "OK" ? "ok" : entry["code"].get<std::string>();
      lines.push_back(entry["user"].get<std::string>() + " " + entry["action"].get<std::string>() +
                      owner + " " + what + outcome);
    }
    std::ranges::reverse(lines);
    return lines;
  }
  static std::uint32_t uid_of(const char* user) { return getpwnam(user)->pw_uid; }
  struct Load {
    std::size_t answered = 0;
    double seconds = 0;
    std::string first_refusal;
  };
  // So many equal requests by a process that is that user.
  Load load(const char* user, std::size_t requests, const std::string& request) const {
    const passwd* account = getpwnam(user);
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
      const bool is_user = setgroups(0, nullptr) == 0 && setgid(account->pw_gid) == 0 &&
                           setuid(account->pw_uid) == 0;
      const LoadResult done =
          is_user ? run_load({daemon_.socket(), std::min<std::size_t>(requests, 8), requests},
                             [&](std::size_t) { return request; })
                  : LoadResult{};
      const std::string text = json{
          {"answered", done.answered},
          {"seconds", done.seconds},
          {"refusal",
           done.first_refusal}}.dump();
      _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string text(65'536, ' ');
    const ssize_t size = read(ends[0], text.data(), text.size());
    close(ends[0]);
    waitpid(child, nullptr, 0);
    const json told = json::parse(text.substr(0, std::max<ssize_t>(size, 0)), nullptr, false);
    EXPECT_TRUE(told.is_object()) << text;
    if (!told.is_object()) return {};
    return {told["answered"], told["seconds"], told["refusal"]};
  }
  // As root.
  int tell(const std::vector<std::string>& words) const { return daemon_.cli(words).exit_code; }
};

TEST_F(Audit, EachKindOfChangeAppearsOnceWithWhoForWhomAndOutcomeAlsoAfterAKill) {
  const std::string ann = kAnn;
  const std::string held = submit(kAnn, {"--gpus", "1", "--hold", "--request-id", "k-1"});
  EXPECT_EQ(tell({"jobs", "release", held}), 0);
  ASSERT_TRUE(daemon_.reaches(held, "RUNNING"));
  EXPECT_EQ(by(kAnn, {"jobs", "update", held, "--name", "other"}).exit_code, 0);
  EXPECT_EQ(by(kAnn, {"jobs", "exec", held, "--", "/bin/true"}).exit_code, 0);
  EXPECT_EQ(by(kAnn, {"jobs", "requeue", "--hold", held}).exit_code, 0);
  ASSERT_TRUE(daemon_.reaches(held, "HELD"));
  EXPECT_EQ(tell({"jobs", "cancel", held}), 0);
  EXPECT_EQ(tell({"jobs", "cancel", held}), 0);  // it is so already: nothing changes
  const std::string second = submit(kAnn, {"--gpus", "1", "--hold"});
  EXPECT_EQ(by(kAnn, {"jobs", "release", second}).exit_code, 0);
  ASSERT_TRUE(daemon_.reaches(second, "RUNNING"));
  EXPECT_EQ(by(kAnn, {"jobs", "requeue", second}).exit_code, 0);
  ASSERT_TRUE(eventually([&] { return daemon_.job(second)["attempt"] == 2; }));
  EXPECT_EQ(by(kAnn, {"jobs", "kill", second}).exit_code, 0);
  ASSERT_TRUE(daemon_.reaches(second, "CANCELLED"));
  const std::string third = submit(kAnn, {"--gpus", "1", "--begin", "now+9h"});
  EXPECT_EQ(tell({"jobs", "hold", "--all-users", "--yes"}), 0);
  EXPECT_EQ(tell({"drain", "--gpu", "dgx-h100-1:3"}), 0);
  EXPECT_EQ(tell({"online", "--gpu", "dgx-h100-1:3"}), 0);
  EXPECT_EQ(tell({"offline", "--node", "dgx-h100-1", "--force"}), 0);
  EXPECT_EQ(tell({"reservations", "create", "course", "--begin", "tomorrow", "--duration", "1h",
                  "--maintenance", "--nodes", "dgx-h100-1"}),
            0);
  EXPECT_EQ(tell({"reservations", "cancel", "course"}), 0);
  kill(daemon_.pid(), SIGHUP);
  ASSERT_TRUE(eventually([&] {
    return !entries("root", {"--action", "configure"}).empty() &&
           entries("root", {"--action", "configure"})[0]["door"] == "SIGNAL";
  })) << daemon_.log();

  const std::vector<std::string> expected = {
      ann + " SUBMIT for " + ann + " " + held + " ok",
      "root RELEASE for " + ann + " " + held + " ok",
      ann + " UPDATE for " + ann + " " + held + " ok",
      ann + " EXEC for " + ann + " " + held + " ok",
      ann + " REQUEUE_AND_HOLD for " + ann + " " + held + " ok",
      "root CANCEL for " + ann + " " + held + " ok",
      ann + " SUBMIT for " + ann + " " + second + " ok",
      ann + " RELEASE for " + ann + " " + second + " ok",
      ann + " REQUEUE for " + ann + " " + second + " ok",
      ann + " KILL for " + ann + " " + second + " ok",
      ann + " SUBMIT for " + ann + " " + third + " ok",
      "root HOLD for " + ann + " " + third + " ok",
      "root DRAIN dgx-h100-1:3 ok",
      "root ONLINE dgx-h100-1:3 ok",
      "root OFFLINE dgx-h100-1 ok",
      "root RESERVE course ok",
      "root UNRESERVE course ok",
      "root CONFIGURE ok",
  };
  std::vector<std::string> whole = told(entries("root"));
  ASSERT_FALSE(whole.empty());
  EXPECT_EQ(whole.front(), "root CONFIGURE ok") << "the first start";
  whole.erase(whole.begin());
  EXPECT_EQ(whole, expected);

  const json before = entries("root");
  daemon_.kill_now();
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  EXPECT_EQ(entries("root"), before) << "the same after the journal was read again";

  const json submission = entries("root", {"--job", held, "--action", "submit"});
  ASSERT_EQ(submission.size(), 1u);
  EXPECT_EQ(submission[0]["request_id"], "k-1");
  EXPECT_EQ(submission[0]["door"], "UNIX_SOCKET");
  EXPECT_EQ(submission[0]["uid"], uid_of(kAnn));
  EXPECT_GT(submission[0]["pid"], 1);
  // Nothing of what was run.
  EXPECT_EQ(before.dump().find("sleep"), std::string::npos);
  EXPECT_EQ(before.dump().find("/bin/true"), std::string::npos);
}

TEST_F(Audit, EachWayIntoAJobIsTold) {
  const std::string ann = kAnn;
  const Finished sat = by(kAnn, {"run", "--gpus", "1", "--stdin", "--", "/bin/cat"}, "said\n");
  EXPECT_EQ(sat.exit_code, 0) << sat.err;
  EXPECT_EQ(sat.out, "said\n");
  const std::string other = submit(kAnn, {"--gpus", "1"});
  ASSERT_TRUE(daemon_.reaches(other, "RUNNING"));
  EXPECT_NE(by(kBob, {"jobs", "exec", other, "--", "/bin/true"}).exit_code, 0);
  Terminal forward({program("gpu-platform"), "--server", "unix:" + daemon_.socket(), "jobs",
                    "port-forward", other, "0:9"});
  ASSERT_TRUE(forward.shows("forwards connections")) << forward.screen();
  const std::string& screen = forward.screen();
  connect_to(std::stoi(screen.substr(screen.find("127.0.0.1:") + 10)));
  const auto find = [&](const std::string& action) {
    return told(entries("root", {"--action", action}));
  };
  EXPECT_TRUE(eventually([&] { return !find("port_forward").empty(); }));
  EXPECT_EQ(find("attach"), std::vector{ann + " ATTACH for " + ann + " 1 ok"});
  EXPECT_EQ(find("port_forward").front(), "root PORT_FORWARD for " + ann + " " + other + " ok");
  EXPECT_EQ(find("exec").size(), 1u) << "the one that was refused";
}

TEST_F(Audit, AUserSeesWhatHeDidAndWhatWasDoneToHisJobsAndNothingElse) {
  const std::string of_ann = submit(kAnn, {"--gpus", "1", "--hold"});
  const std::string of_bob = submit(kBob, {"--gpus", "1", "--hold"});
  ASSERT_EQ(tell({"jobs", "cancel", "--all-users", "--yes"}), 0);
  ASSERT_EQ(tell({"drain", "--gpu", "dgx-h100-1:0"}), 0);
  // Each of them tries what is the other's; root's, as an administrator may.
  EXPECT_EQ(by(kBob, {"jobs", "cancel", of_ann}).exit_code, 3);
  EXPECT_EQ(by(kBob, {"jobs", "exec", of_ann, "--", "/bin/true"}).exit_code, 251);
  EXPECT_EQ(by(kBob, {"drain", "--gpu", "dgx-h100-1:1"}).exit_code, 4);

  const std::string ann = kAnn;
  const std::string bob = kBob;
  EXPECT_EQ(told(entries(kAnn)),
            (std::vector<std::string>{ann + " SUBMIT for " + ann + " " + of_ann + " ok",
                                      "root CANCEL for " + ann + " " + of_ann + " ok"}));
  EXPECT_EQ(
      told(entries(kBob)),
      (std::vector<std::string>{
          bob + " SUBMIT for " + bob + " " + of_bob + " ok",
          "root CANCEL for " + bob + " " + of_bob + " ok", bob + " CANCEL " + of_ann + " NOT_FOUND",
          bob + " EXEC " + of_ann + " NOT_FOUND", bob + " DRAIN dgx-h100-1:1 PERMISSION_DENIED"}));
  // Filters open nothing.
  EXPECT_TRUE(entries(kBob, {"--user", ann}).empty());
  EXPECT_TRUE(entries(kBob, {"--for", ann}).empty());
  EXPECT_EQ(by(kBob, {"audit", "list", "--job", of_ann}).exit_code, 3);
  EXPECT_EQ(entries("root", {"--user", bob, "--outcome", "refused"}).size(), 3u);
  EXPECT_EQ(entries("root", {"--outcome", "permission-denied"}).size(), 1u);
  EXPECT_EQ(entries("root", {"--for", ann}).size(), 2u);
  EXPECT_EQ(entries("root", {"--job", of_ann, "--outcome", "ok"}).size(), 2u);
  EXPECT_EQ(entries("root", {"--since", "1h", "--until", "1s", "--user", "no-such"}).size(), 0u);
}

TEST_F(Audit, AMalformedCallIsToldWithoutWhatItSaid) {
  const Load sent =
      load(kAnn, 1, post("/v1/jobs", R"({"command":["/bin/true"],"cpus":"hunter2"})"));
  ASSERT_NE(sent.first_refusal.find("INVALID_ARGUMENT"), std::string::npos) << sent.first_refusal;
  const json found = entries(kAnn);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["action"], "SUBMIT");
  EXPECT_EQ(found[0]["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(found[0]["reason"], "cpus: the value is not valid");
  EXPECT_EQ(found.dump().find("hunter2"), std::string::npos);
}

TEST_F(Audit, AFloodOfRefusedCallsIsAFewEntriesAndACount) {
  constexpr std::size_t kCalls = 20'000;
  const auto size_of_store = [&] {
    std::error_code ignored;
    return std::filesystem::file_size(daemon_.data_dir() + "/store.db", ignored) +
           std::filesystem::file_size(daemon_.data_dir() + "/store.db-wal", ignored);
  };
  const auto size_before = size_of_store();
  const Load flood = load(kBob, kCalls, post("/v1/jobs/99999/cancel", "{}"));
  ASSERT_EQ(flood.answered, kCalls) << "each is answered";
  // Others' entries are written as ever.
  EXPECT_EQ(by(kAnn, {"jobs", "cancel", "77777"}).exit_code, 3);
  EXPECT_EQ(entries(kAnn).size(), 1u);
  EXPECT_LT(size_of_store(), size_before + (1u << 20));
  ASSERT_EQ(daemon_.terminate(), 0);  // what is only counted is told now at the latest
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  const json of_bob = entries(kBob);
  std::uint64_t calls = 0;
  for (const json& entry : of_bob) {
    calls += entry["calls"].get<std::uint64_t>();
    EXPECT_EQ(entry["code"], "NOT_FOUND");
  }
  EXPECT_EQ(calls, kCalls) << "none is forgotten";
  // Ten and a count in each minute that it took.
  const auto minutes = static_cast<std::size_t>(flood.seconds / 60) + 2;
  EXPECT_LE(of_bob.size(), 11 * minutes);
}

TEST_F(Audit, TheTableFitsATerminalAndPagesAreJoined) {
  for (int i = 0; i < 5; ++i) submit(kAnn, {"--gpus", "1", "--hold"});
  const Finished first = by("root", {"audit", "list", "--limit", "3", "--action", "submit"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(lines_of(first.out).size(), 4u) << first.out;
  const std::size_t at = first.err.find("--page-token ");
  ASSERT_NE(at, std::string::npos) << first.err;
  const std::string token = first.err.substr(at + 13, first.err.find(',', at) - at - 13);
  const Finished rest = by("root", {"audit", "list", "--action", "submit", "--page-token", token});
  EXPECT_EQ(lines_of(rest.out).size(), 3u) << rest.out;
  const Finished wrong = by("root", {"audit", "list", "--action", "fly"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("PORT_FORWARD"), std::string::npos)
      << "says what there is: " << wrong.err;
}

}  // namespace
}  // namespace gpu_platform::e2e
