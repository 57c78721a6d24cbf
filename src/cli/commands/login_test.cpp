#include <filesystem>
#include <fstream>
#include <memory>

#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli_fixture_test.h"
#include "cli/client_names.h"
#include "cli/text/json_view.h"
#include "client/fake_tls_server_test.h"
#include "client/profiles.h"
#include "os/testing/eventually.h"

namespace gpu_platform::cli {
namespace {

constexpr std::string_view kToken = "gpt_s3cret";

// A server that knows one token.
class Login : public Cli {
 protected:
  Login()
      : authority_(client::make_authority()),
        server_(std::make_unique<client::FakeTlsServer>(
            client::FakeTlsServer::Options{
                .shown = client::make_certificate(
                    {.alternative_names = http::kThisMachine, .issuer = &authority_})},
            [this](const std::string& request) { return answer(request); })) {
    std::string name = (std::filesystem::temp_directory_path() / "gp-login-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name;
    around_.uid = ::getuid();
    around_.directory = home_;
    around_.environment.push_back("XDG_CONFIG_HOME=" + home_);
    std::ofstream(home_ + "/ca.pem") << authority_.pem();
  }
  ~Login() override { std::filesystem::remove_all(home_); }
  // Its threads call the test, which must be whole meanwhile.
  void TearDown() override { server_.reset(); }

  virtual std::string answer(const std::string& request) {
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
    std::vector<std::string> words = {"login",  server_->address(), "--ca-file",
                                      "ca.pem", "--token-file",     home_ + "/token"};
    words.insert(words.end(), more.begin(), more.end());
    return call(words);
  }
  client::Profiles profiles() const { return *client::read_profiles(around_); }

  bool knows_whoami_ = true;
  client::TestCertificate authority_;
  std::unique_ptr<client::FakeTlsServer> server_;
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
  EXPECT_TRUE(begins(server_->requests().back(), "GET /v1/jobs"));
}

// The same server as the issuer, which a person answers after a few polls.
class DeviceSignIn : public Login {
 protected:
  DeviceSignIn() { issuer_ = server_->address() + "/realms/main"; }

  std::string answer_as_issuer(const std::string& request) {
    const std::string base = server_->address();
    if (begins(request, "GET /realms/main/.well-known/openid-configuration ")) {
      return json_answer(Json{{"issuer", named_},
                              {"device_authorization_endpoint", base + "/device"},
                              {"token_endpoint", base + "/token"}}
                             .dump());
    }
    if (begins(request, "POST /device ")) {
      if (is_interrupted_) interrupt();
      EXPECT_TRUE(has(request, "application/x-www-form-urlencoded")) << request;
      EXPECT_TRUE(has(request, "client_id=gpu%26pool&scope=openid%20profile%20email")) << request;
      return json_answer(device_answer_);
    }
    EXPECT_TRUE(begins(request, "POST /token ")) << request;
    EXPECT_TRUE(has(request, "device_code=d%2F1")) << request;
    EXPECT_FALSE(has(request, "Authorization")) << request;
    if (polls_.empty()) return json_answer(R"({"access_token":"other","id_token":"gpt_s3cret"})");
    const std::string error = polls_.front();
    polls_.erase(polls_.begin());
    return json_answer(Json{{"error", error}, {"error_description", "because"}}.dump(), 400);
  }
  std::string answer(const std::string& request) override {
    const bool is_of_issuer = has(request.substr(0, request.find('\n')), "realms") ||
                              begins(request, "POST /device ") || begins(request, "POST /token ");
    return is_of_issuer ? answer_as_issuer(request) : Login::answer(request);
  }
  int sign_in() {
    if (named_.empty()) named_ = issuer_;
    return call({"login", server_->address(), "--ca-file", "ca.pem", "--issuer", issuer_,
                 "--issuer-ca", "ca.pem", "--client-id", "gpu&pool"});
  }

  std::string issuer_;
  std::string named_;  // by itself
  bool is_interrupted_ = false;
  std::vector<std::string> polls_ = {"authorization_pending", "authorization_pending"};
  std::string device_answer_ =
      R"({"device_code":"d/1","user_code":"WDJB-MJHT","verification_uri":"https://sso.example/go",)"
      R"("interval":0,"expires_in":60})";
};

TEST_F(DeviceSignIn, WaitsForThePersonAndKeepsTheToken) {
  EXPECT_EQ(sign_in(), kOk) << err();
  EXPECT_TRUE(has(err(), "open https://sso.example/go and enter the code WDJB-MJHT")) << err();
  EXPECT_TRUE(has(out(), "as ada (operator)")) << out();
  EXPECT_FALSE(has(out() + err(), kToken));
  ASSERT_EQ(profiles().all.size(), 1U);
  EXPECT_EQ(profiles().all[0].server.token, kToken);
}

TEST_F(DeviceSignIn, SaysWhyThereIsNoToken) {
  polls_ = {"access_denied"};
  EXPECT_EQ(sign_in(), kRefused);
  EXPECT_TRUE(has(err(), "refused at the issuer")) << err();
  polls_ = {"expired_token"};
  EXPECT_EQ(sign_in(), kRefused);
  EXPECT_TRUE(has(err(), "not entered in time")) << err();
  polls_ = {"invalid_client"};
  EXPECT_EQ(sign_in(), kRefused);
  EXPECT_TRUE(has(err(), "invalid_client: because")) << err();
  EXPECT_TRUE(profiles().all.empty());
}

TEST_F(DeviceSignIn, AnOddIssuerIsToldOf) {
  named_ = "https://other.example";
  EXPECT_EQ(sign_in(), kUsage);
  EXPECT_TRUE(has(err(), "does not describe itself as this issuer")) << err();
  named_ = issuer_;
  device_answer_ = R"({"device_code":"d/1","user_code":"A","verification_uri":"http://evil/"})";
  EXPECT_EQ(sign_in(), kFailure);
  device_answer_ = R"({})";
  EXPECT_EQ(sign_in(), kFailure);
  EXPECT_TRUE(has(err(), "no code")) << err();
  EXPECT_EQ(call({"login", server_->address(), "--issuer", "http://x", "--client-id", "a"}),
            kUsage);
  EXPECT_EQ(call({"login", server_->address(), "--issuer", "https://x"}), kUsage);
  EXPECT_EQ(call({"login", server_->address(), "--token-stdin", "--issuer", "https://x",
                  "--client-id", "a"}),
            kUsage);
}

TEST_F(DeviceSignIn, CtrlCEndsTheWait) {
  device_answer_ =
      R"({"device_code":"d/1","user_code":"A","verification_uri":"https://sso.example/go"})";
  is_interrupted_ = true;
  EXPECT_EQ(sign_in(), kInterrupted);
  EXPECT_TRUE(profiles().all.empty());
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
  EXPECT_EQ(call({"login", server_->address(), "--ca-file", "ca.pem", "--token-stdin"}), kOk)
      << err();
  ::close(ends[0]);
  EXPECT_EQ(profiles().all.size(), 1U);
  // Without a terminal no person can be asked.
  std::array<int, 2> none{};
  ASSERT_EQ(::pipe(none.data()), 0);
  around_.in_fd = none[0];
  EXPECT_EQ(call({"login", server_->address()}), kUsage);
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
    EXPECT_TRUE(os::eventually(
        [&] { return ::tcgetattr(terminal, &state) == 0 && (state.c_lflag & ECHO) == 0; }));
    const std::string typed = "wrong\x15gpt_s3creX\x7ft\r";
    EXPECT_EQ(::write(keyboard, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
  });
  EXPECT_EQ(call({"login", server_->address(), "--ca-file", "ca.pem"}), kOk) << err();
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
  EXPECT_EQ(call({"logout", server_->address()}), kOk);
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

TEST_F(Login, ProfilesAreListedInTheColumnsAndTheOrderThatAreAskedFor) {
  ASSERT_EQ(log_in(std::string(kToken), {"--name", "b"}), kOk);
  ASSERT_EQ(log_in(std::string(kToken), {"--name", "a"}), kOk);
  const std::size_t before = out().size();
  EXPECT_EQ(
      call({"profile", "list", "--columns", "name,current", "--sort", "name:desc", "--no-headers"}),
      kOk)
      << err();
  EXPECT_EQ(out().substr(before),
            "local  no\n"
            "b      no\n"
            "a      yes\n");
  EXPECT_EQ(call({"profile", "list", "--sort", "age"}), 2);
  EXPECT_TRUE(has(err(), "--sort: there is no column 'age'")) << err();
}

TEST_F(Login, ATokenNeverTravelsWithAJob) {
  around_.environment.push_back("GPU_PLATFORM_TOKEN=gpt_s3cret");
  around_.environment.push_back("GPU_PLATFORM_SERVER=" + server_->address());
  around_.environment.push_back("GPU_PLATFORM_CA_FILE=" + home_ + "/ca.pem");
  EXPECT_EQ(call({"submit", "--gpus", "0", "--", "true"}), kFailure);  // it answers with no job
  const std::string request = server_->requests().back();
  ASSERT_TRUE(begins(request, "POST /v1/jobs "));
  const std::string body = request.substr(request.find("\r\n\r\n"));
  EXPECT_TRUE(has(body, "SECRET"));
  EXPECT_FALSE(has(body, "GPU_PLATFORM_")) << body;
}

}  // namespace
}  // namespace gpu_platform::cli
