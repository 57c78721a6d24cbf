#include <filesystem>
#include <fstream>

#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli_fixture_test.h"
#include "cli/exit_code.h"
#include "cli/fake_tls_server_test.h"
#include "cli/json_view.h"
#include "cli/profiles.h"

namespace gpu_platform::cli {
namespace {

constexpr std::string_view kToken = "gpt_s3cret";

// A server that knows one token.
class Login : public Cli {
 protected:
  Login()
      : authority_(make_certificate({.is_authority = true})),
        server_({.shown = make_certificate({}, &authority_)},
                [this](const std::string& request) { return answer(request); }) {
    std::string name = (std::filesystem::temp_directory_path() / "gp-login-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name;
    around_.uid = ::getuid();
    around_.directory = home_;
    around_.environment.push_back("XDG_CONFIG_HOME=" + home_);
    std::ofstream(home_ + "/ca.pem") << authority_.pem();
  }
  ~Login() override { std::filesystem::remove_all(home_); }

  std::string answer(const std::string& request) const {
    if (!has(request, "Authorization: Bearer gpt_s3cret\r\n")) {
      return json_answer(R"({"code":"UNAUTHENTICATED","detail":"this token is not known"})", 401);
    }
    if (begins(request, "GET /v1/whoami")) {
      return knows_whoami_ ? json_answer(R"({"user":"ada","uid":7,"role":"OPERATOR"})")
                           : json_answer(R"({"code":"NOT_FOUND","detail":"no such path"})", 404);
    }
    return json_answer(R"({"jobs":[],"next_page":null})");
  }
  int log_in(std::string token, std::vector<std::string> more = {}) {
    std::ofstream(home_ + "/token") << token;
    std::vector<std::string> words = {"login",  server_.address(), "--ca-file",
                                      "ca.pem", "--token-file",    home_ + "/token"};
    words.insert(words.end(), more.begin(), more.end());
    return call(words);
  }
  Profiles profiles() const { return *read_profiles(around_); }

  bool knows_whoami_ = true;
  TestCertificate authority_;
  FakeTlsServer server_;
  std::string home_;
};

TEST_F(Login, ChecksTheTokenAndKeepsItForTheServer) {
  EXPECT_EQ(log_in(std::string(kToken) + "\n"), kOk) << err();
  EXPECT_TRUE(has(out(), "as ada (operator)")) << out();
  EXPECT_FALSE(has(out() + err(), kToken));
  ASSERT_EQ(profiles().all.size(), 1U);
  EXPECT_EQ(profiles().current, "127.0.0.1");
  EXPECT_EQ(profiles().all[0].server.token, kToken);
  EXPECT_EQ(profiles().all[0].server.tls.authorities, home_ + "/ca.pem");
  // From then on the other commands go there, wherever they are called.
  around_.directory = "/";
  EXPECT_EQ(call({"jobs", "list"}), kOk) << err();
  EXPECT_TRUE(begins(server_.requests().back(), "GET /v1/jobs"));
}

TEST_F(Login, KeepsNothingThatTheServerDoesNotTake) {
  EXPECT_EQ(log_in("gpt_wrong"), kRefused);
  EXPECT_TRUE(has(err(), "this token is not known")) << err();
  EXPECT_FALSE(has(err(), "gpt_wrong"));
  EXPECT_TRUE(profiles().all.empty());
  EXPECT_EQ(log_in("two words"), kUsage);
  EXPECT_EQ(log_in(""), kUsage);
  EXPECT_FALSE(has(err(), "two words"));
}

TEST_F(Login, NeedsNoServerThatCanSayWhoCalls) {
  knows_whoami_ = false;
  EXPECT_EQ(log_in(std::string(kToken), {"--name", "lab"}), kOk) << err();
  EXPECT_EQ(profiles().current, "lab");
  EXPECT_EQ(log_in("gpt_wrong"), kRefused);
}

TEST_F(Login, ReadsTheTokenFromStandardInput) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_EQ(::write(ends[1], kToken.data(), kToken.size()), static_cast<ssize_t>(kToken.size()));
  ::close(ends[1]);
  around_.in_fd = ends[0];
  EXPECT_EQ(call({"login", server_.address(), "--ca-file", "ca.pem", "--token-stdin"}), kOk)
      << err();
  ::close(ends[0]);
  EXPECT_EQ(profiles().all.size(), 1U);
  // Without a terminal no person can be asked.
  std::array<int, 2> none{};
  ASSERT_EQ(::pipe(none.data()), 0);
  around_.in_fd = none[0];
  EXPECT_EQ(call({"login", server_.address()}), kUsage);
  EXPECT_TRUE(has(err(), "--token-stdin")) << err();
  ::close(none[0]);
  ::close(none[1]);
}

TEST_F(Login, AsksAtATerminalWithoutShowingWhatIsTyped) {
  int keyboard = -1;
  int terminal = -1;
  ASSERT_EQ(::openpty(&keyboard, &terminal, nullptr, nullptr, nullptr), 0);
  around_.in_fd = terminal;
  std::thread person([&] {
    // Typed once the echo is off, as a person would who reads the question.
    termios state{};
    while (::tcgetattr(terminal, &state) == 0 && (state.c_lflag & ECHO) != 0)
      std::this_thread::yield();
    const std::string typed = "wrong\x15gpt_s3creX\x7ft\r";
    EXPECT_EQ(::write(keyboard, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
  });
  EXPECT_EQ(call({"login", server_.address(), "--ca-file", "ca.pem"}), kOk) << err();
  person.join();
  EXPECT_TRUE(has(err(), "Token for https://127.0.0.1")) << err();
  termios after{};
  ASSERT_EQ(::tcgetattr(terminal, &after), 0);
  EXPECT_NE(after.c_lflag & ECHO, 0U);
  ::fcntl(keyboard, F_SETFL, O_NONBLOCK);
  std::array<char, 256> shown{};
  const ssize_t got = ::read(keyboard, shown.data(), shown.size());
  EXPECT_FALSE(has({shown.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))}, "gpt_"));
  ::close(keyboard);
  ::close(terminal);
}

TEST_F(Login, IsForServersOfTheNetwork) {
  EXPECT_EQ(call({"login", "unix:/x", "--token-file", "/x"}), kUsage);
  EXPECT_TRUE(has(err(), "needs no login")) << err();
  EXPECT_EQ(call({"login", "https://user:pw@host", "--token-file", "/x"}), kUsage);
  EXPECT_FALSE(has(err(), "pw@"));
  EXPECT_EQ(call({"login", "https://h", "--token-file", "/x", "--token-stdin"}), kUsage);
  EXPECT_EQ(call({"login", "https://h", "--token-file", "/x", "--name", "local"}), kUsage);
}

TEST_F(Login, LogoutForgetsTheTokenAlone) {
  ASSERT_EQ(log_in(std::string(kToken), {"--name", "lab"}), kOk);
  EXPECT_EQ(call({"logout"}), kOk);
  EXPECT_EQ(profiles().all[0].server.token, "");
  EXPECT_EQ(profiles().current, "lab");
  EXPECT_EQ(call({"jobs", "list"}), kRefused);
  EXPECT_TRUE(has(err(), "gpu-platform login https://127.0.0.1")) << err();
  EXPECT_EQ(call({"logout", "nowhere"}), kNotFound);
  EXPECT_EQ(call({"logout", server_.address()}), kOk);
}

TEST_F(Login, ProfilesAreListedChosenShownAndRemovedWithoutTheirTokens) {
  ASSERT_EQ(log_in(std::string(kToken), {"--name", "lab"}), kOk);
  ASSERT_EQ(log_in(std::string(kToken), {"--name", "other"}), kOk);
  const std::size_t before = out().size();
  EXPECT_EQ(call({"profile", "list"}), kOk);
  EXPECT_EQ(call({"profile", "list", "-o", "name"}), kOk);
  EXPECT_TRUE(has(out(), "lab\nother\n")) << out();
  EXPECT_EQ(call({"profile", "use", "lab"}), kOk);
  EXPECT_EQ(profiles().current, "lab");
  for (const std::string format : {"json", "yaml", "wide", "table"}) {
    EXPECT_EQ(call({"profile", "list", "-o", format}), kOk);
    EXPECT_EQ(call({"profile", "show", "-o", format}), kOk);
  }
  EXPECT_FALSE(has(out(), kToken));
  EXPECT_TRUE(has(out().substr(before), "login: token")) << out();
  EXPECT_EQ(call({"profile", "use", "local"}), kOk);
  EXPECT_EQ(profiles().current, "");
  EXPECT_EQ(call({"profile", "use", "nowhere"}), kNotFound);
  EXPECT_EQ(call({"profile", "show", "nowhere"}), kNotFound);
  EXPECT_EQ(call({"profile", "remove", "lab"}), kOk);
  EXPECT_EQ(call({"profile", "remove", "lab"}), kNotFound);
  EXPECT_EQ(profiles().all.size(), 1U);
}

TEST_F(Login, ATokenNeverTravelsWithAJob) {
  around_.environment.push_back("GPU_PLATFORM_TOKEN=gpt_s3cret");
  around_.environment.push_back("GPU_PLATFORM_SERVER=" + server_.address());
  around_.environment.push_back("GPU_PLATFORM_CA_FILE=" + home_ + "/ca.pem");
  EXPECT_EQ(call({"submit", "--gpus", "0", "--", "true"}), kFailure);  // it answers with no job
  const std::string request = server_.requests().back();
  ASSERT_TRUE(begins(request, "POST /v1/jobs "));
  const std::string body = request.substr(request.find("\r\n\r\n"));
  EXPECT_TRUE(has(body, "SECRET"));
  EXPECT_FALSE(has(body, "GPU_PLATFORM_")) << body;
}

}  // namespace
}  // namespace gpu_platform::cli
