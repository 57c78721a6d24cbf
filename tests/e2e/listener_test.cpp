// The listener from outside: a real daemon with a certificate of the test, clients over TLS, and
// what the kernel says of the process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "api/identity/testing/issuer_key.h"
#include "listener/testing/grpc_client.h"
#include "listener_fixture.h"

namespace gpu_platform::e2e {
namespace {

using listener::GrpcClient;
using ::testing::HasSubstr;

TEST_F(ListenerProcess, AnswersOverTlsAndKnowsNobodyWithoutACredential) {
  start();
  EXPECT_EQ(status(get("/v1/health")), 200);
  EXPECT_EQ(status(get("/v1/jobs")), 401);
  EXPECT_EQ(status(get("/v1/jobs", "Authorization: Bearer forged\r\n")), 401);
  EXPECT_EQ(status(get("/v1/jobs", "Authorization: Basic cm9vdDpyb290\r\n")), 401);
  EXPECT_EQ(status(get("/v1/jobs?access_token=forged")), 400);
  EXPECT_THAT(daemon_->log(), HasSubstr("held=\"rights memory files system-calls\""));
}

TEST_F(ListenerProcess, AClientCertificateStandsForTheUserOfTheRule) {
  const auto ada = http::make_certificate({.common_name = "ada"});
  const auto eve =
      http::make_certificate({.common_name = "ada"});  // another key, of an unknown authority
  put("localhost");
  for (const auto& [name, made] : {std::pair("ada", ada), std::pair("eve", eve)}) {
    write_pem_file(folder_.path() + "/" + name + ".crt", made.pem());
    write_pem_file(folder_.path() + "/" + name + ".key", made.key_pem());
  }
  const auto config = [&](const std::string& users) {
    return configuration() + "    client_ca: " + folder_.path() + "/ada.crt\n" +
           "access:\n  identities: " + users + "\n";
  };
  daemon_ = std::make_unique<Daemon>(DaemonOptions{.config = config("{\"cn:ada\": daemon}")});
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  ASSERT_TRUE(answers()) << daemon_->log();
  const auto whoami = [&](const std::string& name) {
    const std::string file = folder_.path() + "/" + name;
    return run_command({program("gpu-platform"), "--server",
                        "https://localhost:" + std::to_string(port_), "whoami", "--json",
                        "--ca-file", certificate(), "--cert", file + ".crt", "--key",
                        file + ".key"});
  };
  const Finished known = whoami("ada");
  ASSERT_EQ(known.exit_code, 0) << known.err;
  const auto identity = nlohmann::json::parse(known.out);
  EXPECT_EQ(identity["user"], "daemon");
  EXPECT_EQ(identity["credential"], "CERTIFICATE");
  EXPECT_EQ(identity["credential_name"], "cn:ada");
  EXPECT_NE(whoami("eve").err.find("not accepted"), std::string::npos);
  EXPECT_EQ(status(get("/v1/whoami")), 401) << "and none is needed for a token";

  // The rule ends, and with it what is open.
  TlsClient open(port_, {.certificate = ada.pem(), .key = ada.key_pem()});
  ASSERT_TRUE(open.send(get("/v1/whoami")));
  EXPECT_EQ(open.receive()->status, 200);
  std::ofstream(daemon_->directory() + "/config.yaml")
      << config("{\"cn:ada\": games}") << "execution: {min_uid: 1}\n";
  kill(daemon_->pid(), SIGHUP);
  EXPECT_TRUE(eventually([&] { return whoami("ada").out.find("games") != std::string::npos; }));
  ASSERT_TRUE(open.send(get("/v1/whoami")));
  const auto refused = open.receive();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->body.find("\"daemon\""), std::string::npos) << refused->body;
}

TEST_F(ListenerProcess, ATokenOfTheIssuerStandsForTheUserOfTheRule) {
  const api::IssuerKey first("first", "P-256");
  const api::IssuerKey second("second", "RSA");
  const std::string keys = folder_.path() + "/keys.json";
  const auto publish = [&](const api::IssuerKey& key) {
    write_pem_file(keys, nlohmann::json{{"keys", {key.entry()}}}.dump(), 0644);
  };
  publish(first);
  put("localhost");
  daemon_ = std::make_unique<Daemon>(DaemonOptions{
      .config = configuration() +
                "access:\n  openid: {issuer: https://sso.example, audience: gpu, keys: " + keys +
                ", user_claim: email}\n  identities: {\"openid:*@example.org\": \"*\"}\n"});
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  ASSERT_TRUE(answers()) << daemon_->log();
  const auto claims = [](const std::string& user, std::int64_t lasts_s) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return nlohmann::json{
        {"iss", "https://sso.example"},
        {"aud", "gpu"},
        {"email", user + "@example.org"},
        {"email_verified", true},
        {"exp", std::chrono::duration_cast<std::chrono::seconds>(now).count() + lasts_s}};
  };
  const auto whoami = [&](const std::string& token) {
    return run_command({"/usr/bin/env", "GPU_PLATFORM_TOKEN=" + token, program("gpu-platform"),
                        "--server", "https://localhost:" + std::to_string(port_), "whoami",
                        "--json", "--ca-file", certificate()});
  };
  const std::string token = first.sign(claims("daemon", 300), "ES256");
  const Finished known = whoami(token);
  ASSERT_EQ(known.exit_code, 0) << known.err;
  const auto identity = nlohmann::json::parse(known.out);
  EXPECT_EQ(identity["user"], "daemon");
  EXPECT_EQ(identity["credential"], "OPENID");
  EXPECT_EQ(identity["credential_name"], "openid:daemon@example.org");
  EXPECT_EQ(identity["issuer"], "https://sso.example");
  EXPECT_EQ(identity["user_claim"], "email");
  // The trail names it, too.
  const Finished submitted =
      run_command({"/usr/bin/env", "GPU_PLATFORM_TOKEN=" + token, program("gpu-platform"),
                   "--server", "https://localhost:" + std::to_string(port_), "submit", "--ca-file",
                   certificate(), "--hold", "--", "/bin/true"});
  EXPECT_EQ(submitted.exit_code, 0) << submitted.err;
  const auto entries = daemon_->json({"audit", "list", "--user", "daemon"})["entries"];
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0]["credential"], "OPENID");
  EXPECT_EQ(entries[0]["credential_name"], "openid:daemon@example.org");
  EXPECT_EQ(entries[0]["issuer"], "https://sso.example");
  EXPECT_NE(whoami(first.sign(claims("root", 300), "ES256")).exit_code, 0);
  EXPECT_NE(whoami(first.sign(claims("daemon", -300), "ES256")).exit_code, 0);
  EXPECT_NE(whoami(second.sign(claims("daemon", 300), "RS256")).exit_code, 0);
  EXPECT_EQ(files_of_daemon_with(token), 0) << "no token is kept or logged";

  // The issuer changes its keys.
  publish(second);
  EXPECT_TRUE(eventually(
      [&] { return whoami(second.sign(claims("daemon", 300), "RS256")).exit_code == 0; }));
  EXPECT_NE(whoami(token).exit_code, 0);
}

// Accounts that every Debian has, as processes with their rights.
Finished run_as_account(const Daemon& daemon, const std::string& user,
                        std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"/usr/bin/env", "-C", "/", program("gpu-platform"),
                                       "--server", "unix:" + daemon.socket()});
  return run_command(as_account({user, "34"}, arguments));
}

TEST_F(ListenerProcess, TwoUsersActByTheirTokensEachForTheirOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: acts as several users";
  start();
  ::chmod(daemon_->directory().c_str(), 0755);
  std::map<std::string, std::string> secrets;
  for (const char* user : {"daemon", "backup"}) {
    const Finished made = run_as_account(*daemon_, user, {"token", "create", "-q", "--name", "t"});
    if (made.exit_code != 0 && made.err.find("ermission denied") != std::string::npos) {
      GTEST_SKIP() << "closed to other users";
    }
    ASSERT_EQ(made.exit_code, 0) << made.err;
    secrets[user] = made.out.substr(0, made.out.find('\n'));
  }
  const auto ask = [&](const std::string& user, const std::string& target,
                       const std::string& body = {}) {
    TlsClient client(port_);
    std::string bytes = (body.empty() ? "GET " : "POST ") + target +
                        " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secrets[user] +
                        "\r\n";
    if (!body.empty()) {
      bytes += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n";
    }
    EXPECT_TRUE(client.send(bytes + "\r\n" + body));
    auto response = client.receive();
    EXPECT_TRUE(response.has_value()) << daemon_->log();
    return std::move(response).value_or(TlsClient::Response{});
  };
  const auto submitted = ask("daemon", "/v1/jobs", R"({"command":["/bin/true"],"workdir":"/"})");
  ASSERT_EQ(submitted.status / 100, 2) << submitted.body;
  const std::string id = nlohmann::json::parse(submitted.body)["id"];
  EXPECT_EQ(daemon_->job(id)["spec"]["user"], "daemon");
  EXPECT_TRUE(daemon_->reaches(id, "COMPLETED")) << daemon_->log();
  EXPECT_EQ(ask("daemon", "/v1/jobs/" + id).status, 200);
  EXPECT_EQ(ask("backup", "/v1/jobs/" + id).status, 404);
  EXPECT_EQ(ask("backup", "/v1/jobs/" + id + "/cancel", "{}").status, 404);

  // A token that is revoked ends at the next request, also of a connection that is open.
  TlsClient open(port_);
  const std::string request =
      get("/v1/jobs", "Authorization: Bearer " + secrets["backup"] + "\r\n");
  ASSERT_TRUE(open.send(request));
  EXPECT_EQ(open.receive()->status, 200);
  EXPECT_EQ(run_as_account(*daemon_, "backup", {"token", "revoke", "t"}).exit_code, 0);
  ASSERT_TRUE(open.send(request));
  EXPECT_EQ(open.receive()->status, 401);
  EXPECT_EQ(ask("daemon", "/v1/jobs/" + id).status, 200);
}

// The messages are small enough to be written out: field 1 is the text of so many bytes.
std::string with_text(const std::string& text) {
  return std::string("\x0a") + static_cast<char>(text.size()) + text;
}

TEST_F(ListenerProcess, GrpcIsADoorOfItsOwnWithTheSameUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: makes tokens of several users";
  const auto ada = http::make_certificate({.common_name = "ada"});
  write_pem_file(folder_.path() + "/ada.crt", ada.pem());
  const std::uint16_t port = free_port();
  const std::string address = "  grpc:\n    address: 127.0.0.1:" + std::to_string(port) + "\n";
  daemon_ = std::make_unique<Daemon>(
      DaemonOptions{.config = configuration(address) + "    client_ca: " + folder_.path() +
                              "/ada.crt\n" + "access:\n  identities: {\"cn:ada\": daemon}\n"});
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  ASSERT_TRUE(answers()) << daemon_->log();
  const Finished made = daemon_->cli({"token", "create", "-q", "--name", "t", "--user", "backup"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const std::string token = made.out.substr(0, made.out.find('\n'));
  constexpr const char* kWhoAmI = "/gpu_platform.v1.AccessService/WhoAmI";

  GrpcClient client(port);
  ASSERT_TRUE(client.is_connected());
  const auto own = client.call(kWhoAmI, "", token);
  ASSERT_EQ(own.status(), 0) << own.message();
  EXPECT_TRUE(own.messages.at(0).starts_with(with_text("backup")));
  EXPECT_EQ(client.call(kWhoAmI, "", "gpt_forged").status(), 16);
  EXPECT_EQ(client.call(kWhoAmI, "", "").status(), 16);
  GrpcClient certified(port, true, {.certificate = ada.pem(), .key = ada.key_pem()});
  const auto by_certificate = certified.call(kWhoAmI, "", "");
  ASSERT_EQ(by_certificate.status(), 0) << by_certificate.message();
  EXPECT_TRUE(by_certificate.messages.at(0).starts_with(with_text("daemon")));

  // A job's output as a stream, from its submission to its end.
  const std::string spec = with_text("/bin/sh") + with_text("-c") + with_text("echo over-grpc");
  const auto submitted =
      client.call("/gpu_platform.v1.JobService/SubmitJob", with_text(spec), token);
  ASSERT_EQ(submitted.status(), 0) << submitted.message();
  const std::string id = submitted.messages.at(0).substr(2, 1);
  const auto output = client.call("/gpu_platform.v1.JobService/StreamOutput", with_text(id), token);
  EXPECT_EQ(output.status(), 0) << output.message();
  EXPECT_THAT(output.messages.at(0), HasSubstr("over-grpc\n"));
  EXPECT_EQ(daemon_->job(id)["spec"]["user"], "backup");
  EXPECT_EQ(certified.call("/gpu_platform.v1.JobService/GetJob", with_text(id), "").status(), 5)
      << "another user's";

  EXPECT_EQ(daemon_->cli({"token", "revoke", "t", "--user", "backup"}).exit_code, 0);
  EXPECT_EQ(client.call(kWhoAmI, "", token).status(), 16) << "also on a connection that is open";
  EXPECT_EQ(status(get("/v1/health")), 200);
  EXPECT_THAT(refusal("api: {grpc: {address: \"0.0.0.0:8444\"}}\n"), HasSubstr("api.grpc.address"));
}

TEST_F(ListenerProcess, NoProcessOfAnAccountMaySignalIt) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: acts as several users";
  start();
  const std::string pid = std::to_string(listener_pid());
  for (const char* account : {"nobody", "daemon", "backup"}) {
    const Finished tried =
        run_command(as_account({account, "34"}, {"/bin/sh", "-c", "kill -9 " + pid}));
    EXPECT_NE(tried.exit_code, 0) << account;
    EXPECT_NE(tried.err.find("ermitted"), std::string::npos) << tried.err;
  }
  EXPECT_EQ(std::to_string(listener_pid()), pid);
}

TEST_F(ListenerProcess, IsNoUserThatMayHaveJobs) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: the listener is given another user";
  EXPECT_NE(refusal(configuration("  listener_user: backup\n"))
                .find("api.listener_user: 'backup' has the number 34, which may have jobs"),
            std::string::npos);
}

TEST_F(ListenerProcess, HasNoRightsNoFilesAndFewSystemCalls) {
  start();
  const pid_t pid = listener_pid();
  ASSERT_GT(pid, 0);
  EXPECT_EQ(kernel_status(pid, "Seccomp"), "2");
  EXPECT_EQ(kernel_status(pid, "NoNewPrivs"), "1");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    EXPECT_EQ(kernel_status(pid, set), "0000000000000000") << set;
  }
  if (geteuid() == 0) {
    EXPECT_EQ(kernel_status(pid, "CapBnd"), "0000000000000000");
    const std::string uids = kernel_status(pid, "Uid");
    const std::string uid = uids.substr(0, uids.find('\t'));
    EXPECT_EQ(uids, uid + "\t" + uid + "\t" + uid + "\t" + uid);
    EXPECT_EQ(kernel_status(pid, "Gid"), uids);
    EXPECT_EQ(getpwuid(static_cast<uid_t>(std::stoul(uid))), nullptr) << "no account has it";
    EXPECT_GT(std::stoul(uid), 60'000U) << "no job may have it";
    EXPECT_EQ(kernel_status(pid, "Groups"), "");
    // Its root is an empty folder that is gone.
    const std::string root = "/proc/" + std::to_string(pid) + "/root";
    EXPECT_THAT(std::filesystem::read_symlink(root).string(), HasSubstr("(deleted)"));
    EXPECT_TRUE(std::filesystem::is_empty(root));
  }
  const std::string place = "/proc/" + std::to_string(pid);
  for (const auto& entry : std::filesystem::directory_iterator(place + "/fd")) {
    std::error_code gone;
    const std::string what = std::filesystem::read_symlink(entry.path(), gone).string();
    if (gone == std::errc::no_such_file_or_directory) continue;  // closed meanwhile
    EXPECT_TRUE(what.starts_with("socket:") || what.starts_with("anon_inode:") ||
                what == "/dev/null" || what.starts_with("pipe:"))
        << what;
  }
  EXPECT_EQ(read_file(place + "/environ"), "");
  EXPECT_THAT(read_file(place + "/limits"), ::testing::ContainsRegex("Max core file size +0 +0"));
  const std::string maps = read_file(place + "/maps");
  EXPECT_EQ(maps.find(daemon_->data_dir()), std::string::npos);
  EXPECT_EQ(maps.find("rwx"), std::string::npos) << "memory that is written and executed";
}

TEST_F(ListenerProcess, ComesBackWhenItIsKilledAndTheDaemonGoesOn) {
  start();
  const pid_t daemon = daemon_->pid();
  for (int round = 0; round < 2; ++round) {
    const pid_t before = listener_pid();
    ASSERT_GT(before, 0);
    ASSERT_EQ(::kill(before, SIGKILL), 0);
    EXPECT_EQ(daemon_->cli({"status"}).exit_code, 0) << "the socket does not need the listener";
    ASSERT_TRUE(answers()) << daemon_->log();
    EXPECT_NE(listener_pid(), before);
  }
  EXPECT_TRUE(daemon_->is_running());
  EXPECT_EQ(daemon_->pid(), daemon);
}

TEST_F(ListenerProcess, EndsWithItsDaemon) {
  start();
  const pid_t pid = listener_pid();
  ASSERT_GT(pid, 0);
  daemon_->kill_now();
  EXPECT_TRUE(eventually([&] {
    return kernel_status(pid, "State").empty() || kernel_status(pid, "State").starts_with("Z");
  }));
  ASSERT_TRUE(daemon_->start()) << daemon_->log();
  EXPECT_TRUE(answers()) << "the address is free again";
  const pid_t next = listener_pid();
  daemon_->terminate();
  EXPECT_TRUE(eventually([&] {
    return kernel_status(next, "State").empty() || kernel_status(next, "State").starts_with("Z");
  }));
}

TEST_F(ListenerProcess, TakesANewCertificateWithoutLosingConnections) {
  start();
  EXPECT_EQ(server_name(), "first");
  const pid_t pid = listener_pid();
  TlsClient open(port_);
  put("second");
  EXPECT_TRUE(eventually([&] { return server_name() == "second"; })) << daemon_->log();
  ASSERT_TRUE(open.send(get("/v1/health")));
  EXPECT_EQ(open.receive()->status, 200);
  EXPECT_EQ(listener_pid(), pid);
}

TEST_F(ListenerProcess, AWrongCertificateLeavesTheFormerOneInForce) {
  start();
  write_pem_file(key(), http::make_certificate().key_pem());
  EXPECT_TRUE(eventually([&] {
    return daemon_->log().find(
               "certificate not reloaded, the former one stays in force: "
               "api.tls.key: ") != std::string::npos;
  })) << daemon_->log();
  EXPECT_EQ(server_name(), "first");
  std::filesystem::remove(certificate());
  ::kill(daemon_->pid(), SIGHUP);
  EXPECT_TRUE(eventually([&] {
    return daemon_->log().find("api.tls.certificate: ") != std::string::npos;
  })) << daemon_->log();
  EXPECT_EQ(server_name(), "first");
}

TEST_F(ListenerProcess, OtherMachinesNeedTls) {
  std::string open = configuration({}, false);
  open.replace(open.find("127.0.0.1"), 9, "0.0.0.0");
  EXPECT_THAT(refusal(open), ::testing::AllOf(HasSubstr("api.rest.address"),
                                              HasSubstr("only loopback addresses are allowed")));
  ::chmod(key().c_str(), 0644);
  EXPECT_THAT(refusal(configuration()),
              ::testing::AllOf(HasSubstr("api.tls.key"), HasSubstr("open to all users")));
  ::chmod(key().c_str(), 0600);
  write_pem_file(key(), http::make_certificate().key_pem());
  EXPECT_THAT(refusal(configuration()), HasSubstr("is not the key of"));
}

TEST_F(ListenerProcess, ACertificateThatEndsIsToldOf) {
  const auto made = http::make_certificate({.common_name = "first", .ends_in_s = 86'400});
  write_pem_file(certificate(), made.pem());
  write_pem_file(key(), made.key_pem());
  start();
  EXPECT_THAT(daemon_->log(), HasSubstr("expires in less than 14 days"));
}

TEST_F(ListenerProcess, OddRequestsAreRefusedAndHarmNobody) {
  start("    host_names: localhost\n");
  const std::string token = "Authorization: Bearer forged\r\n";
  const std::pair<std::string, int> shapes[] = {
      {get("/v1/jobs", token + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"), 400},
      {get("/v1/jobs", token + "Content-Length: 4\r\nContent-Length: 5\r\n"), 400},
      {get("/v1/jobs", token + "X-A: b\r\n folded: c\r\n"), 400},
      {get("/v1/jobs", token + "X-A: b\nX-B: c\r\n"), 400},
      {get("/v1/jobs", token + "X-A: b\r\nX-B : c\r\n"), 400},
      {get("/v1/jobs", token + "X: " + std::string(20'000, 'x') + "\r\n"), 431},
      {get("http://localhost/v1/jobs", token), 400},
      {get("/v1/../v1/jobs", token), 400},
      {get("/v1/%2e%2e/jobs", token), 400},
      {get("/v1/jobs%0d%0aX-Injected:1", token), 400},
      {get("/v1/jobs?token=x", token), 400},
      {get("/v1/jobs", token + "Origin: https://evil.example\r\n"), 403},
      {"GET /v1/jobs HTTP/1.1\r\nHost: evil.example\r\n" + token + "\r\n", 421},
      {"GET /v1/jobs HTTP/1.1\r\n" + token + "\r\n", 400},
      {"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"TRACE /v1/jobs HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n", 405},
      {"GET /v1/jobs HTTP/1.0\r\nHost: localhost\r\n" + token + "\r\n", 505},
      {"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n" + token +
           "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n",
       400},
      {"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n" + token + "Content-Length: 99999999\r\n\r\n",
       413},
      {std::string(64, '\0'), 400},
  };
  for (const auto& [bytes, expected] : shapes) {
    EXPECT_EQ(status(bytes), expected) << bytes.substr(0, 200);
  }
  EXPECT_FALSE(TlsClient(port_, {.min_version = TLS1_2_VERSION, .max_version = TLS1_2_VERSION})
                   .is_connected());
  EXPECT_TRUE(is_healthy());
  EXPECT_EQ(daemon_->cli({"status"}).exit_code, 0);
}

TEST_F(ListenerProcess, ManyIdleAndHalfOpenConnectionsCostLittle) {
  start();
  const pid_t pid = listener_pid();
  const auto memory_kb = [&] { return std::stol(kernel_status(pid, "VmRSS")); };
  const long before = memory_kb();
  std::vector<std::unique_ptr<TlsClient>> idle;
  for (int i = 0; i < 150; ++i) idle.push_back(std::make_unique<TlsClient>(port_));
  for (int i = 0; i < 150; ++i) {
    idle.push_back(std::make_unique<TlsClient>(port_, TlsClient::Options{.has_tls = false}));
    idle.back()->send("\x16\x03\x01");  // the beginning of a handshake
  }
  EXPECT_TRUE(is_healthy());
  EXPECT_LT(memory_kb() - before, 300 * 64) << "less than 64 KiB each";
  EXPECT_EQ(daemon_->cli({"status"}).exit_code, 0);
}

TEST_F(ListenerProcess, OneAddressLeavesRoomAndTheLogSaysSo) {
  start("    max_connections_per_address: 4\n");
  std::vector<std::unique_ptr<TlsClient>> open;
  EXPECT_TRUE(eventually([&] {
    open.clear();
    for (int i = 0; i < 4; ++i) open.push_back(std::make_unique<TlsClient>(port_));
    return open.back()->is_connected();
  }));
  EXPECT_FALSE(TlsClient(port_).is_connected());
  EXPECT_TRUE(eventually([&] {
    return daemon_->log().find("last_from=127.0.0.1") != std::string::npos;
  })) << daemon_->log();
  open.clear();
  EXPECT_TRUE(answers());
}

}  // namespace
}  // namespace gpu_platform::e2e
