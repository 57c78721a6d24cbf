#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"

namespace gpu_platform::cli {
namespace {

class JobSsh : public Cli {
 protected:
  JobSsh() {
    std::string name = std::filesystem::temp_directory_path() / "gp-ssh-XXXXXX";
    home_ = ::mkdtemp(name.data());
    std::filesystem::create_directory(home_ + "/.ssh");
    around_.environment.push_back("HOME=" + home_);
  }
  ~JobSsh() override { std::filesystem::remove_all(home_); }

  std::string home_;
};

TEST_F(JobSsh, ConfigHasTheJobsUserAndAProxyForTheSameServer) {
  FakeServer server([](const FakeServer::Request&) { return json_answer(kJob); });
  EXPECT_EQ(call(server, {"jobs", "ssh-config", "42", "--identity", "/keys/it's.pub"}), 0);
  EXPECT_EQ(out(),
            "Host gpu-job-42\n"
            "  User ada\n"
            "  ProxyCommand gpu-platform --server 'unix:" +
                server.path() +
                "' jobs ssh-proxy '42' --identity '/keys/it'\\''s.pub'\n"
                "  # The host key is new with each connection; the way to it is the daemon's.\n"
                "  StrictHostKeyChecking no\n"
                "  UserKnownHostsFile /dev/null\n"
                "  LogLevel ERROR\n");
}

TEST_F(JobSsh, ProxySendsTheFirstPublicKeyAndNoPrivateOne) {
  std::ofstream(home_ + "/.ssh/id_ed25519") << "SECRET\n";
  std::ofstream(home_ + "/.ssh/id_ed25519.pub") << "ssh-ed25519 AAAA ada@laptop\nmore\n";
  std::string asked;
  FakeServer server([&](const FakeServer::Request& request) {
    asked = request.target;
    return json_answer(R"({"detail":"job 42 is QUEUED","code":"FAILED_PRECONDITION"})", 409);
  });
  EXPECT_EQ(call(server, {"jobs", "ssh-proxy", "42"}), 251);
  EXPECT_TRUE(begins(asked, "/v1/jobs/42/exec?command=%2Fbin%2Fsh")) << asked;
  EXPECT_TRUE(has(asked, "command=ssh-ed25519%20AAAA%20ada%40laptop&")) << asked;
  EXPECT_FALSE(has(asked, "SECRET")) << asked;
}

TEST_F(JobSsh, ProxyWithoutAKeySaysHowToMakeOne) {
  EXPECT_EQ(call({"jobs", "ssh-proxy", "42"}), 2);
  EXPECT_TRUE(has(err(), "make one with 'ssh-keygen -t ed25519'")) << err();
  EXPECT_EQ(call({"jobs", "ssh-proxy", "42", "--identity", "/nonexistent"}), 2);
  EXPECT_TRUE(has(err(), "--identity: '/nonexistent' is not a public key")) << err();
}

}  // namespace
}  // namespace gpu_platform::cli
