// A captured listener: what a process can do that has the listener's end of its link to the daemon,
// and, in a test of its own, the listener's user, root folder and filter of system calls.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/codec.h"
#include "harness.h"
#include "http/testing/certificates.h"
#include "listener/confinement.h"
#include "listener/link.h"
#include "os/descriptor.h"
#include "os/packet_socket.h"

namespace gpu_platform::e2e {
namespace {

using listener::Credential;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kLinkOfListener = 3;

std::string status_line(pid_t pid, const std::string& key) {
  for (const std::string& line : lines_of(read_file("/proc/" + std::to_string(pid) + "/status"))) {
    if (line.starts_with(key + ":"))
      return line.substr(line.find_first_not_of(" \t", key.size() + 1));
  }
  return {};
}

// Two connected sockets.
struct Pair {
  explicit Pair(int type = SOCK_STREAM) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
    ours.reset(ends[0]);
    theirs.reset(ends[1]);
  }
  os::Descriptor ours;
  os::Descriptor theirs;
};

class AttackFromTheListener : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: takes the listener's link over";
  }

  static std::uint16_t free_port() {
    const os::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket.get(), name, size), 0);
    EXPECT_EQ(::getsockname(socket.get(), name, &size), 0);
    return ntohs(address.sin_port);
  }

  void start(const std::string& more = {}) {
    daemon_ = std::make_unique<Daemon>(DaemonOptions{
        .config =
            "api:\n  rest:\n    address: 127.0.0.1:" + std::to_string(free_port()) + "\n" + more});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
  }

  // The listener that runs and has given up its rights; 0: none.
  pid_t find_listener() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const pid_t pid = std::stoi(name);
      if (status_line(pid, "PPid") != std::to_string(daemon_->pid())) continue;
      const bool is_it = status_line(pid, "Name").starts_with("gpu-platform-li");
      if (is_it && status_line(pid, "Seccomp") == "2") return pid;
    }
    return 0;
  }
  // Stops it, and takes its link.
  void capture() {
    listener_ = 0;
    ASSERT_TRUE(eventually([&] {
      const pid_t pid = find_listener();
      if (pid != 0 && pid != last_) listener_ = pid;
      return listener_ != 0;
    })) << daemon_->log();
    last_ = listener_;
    ASSERT_EQ(kill(listener_, SIGSTOP), 0);
    const os::Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, listener_, 0)));
    link_.reset(static_cast<int>(syscall(SYS_pidfd_getfd, handle.get(), kLinkOfListener, 0)));
    ASSERT_TRUE(link_.is_open()) << strerror(errno);
  }

  bool say(const std::string& bytes, int fd = -1) const {
    return os::send_packet(link_.get(), bytes, fd);
  }
  bool open(const Credential& credential, int fd) const {
    return say(listener::encode(listener::FromListener(listener::Open{credential})), fd);
  }
  bool note(const std::string& text, bool is_warning = true) const {
    return say(listener::encode(listener::FromListener(listener::Note{is_warning, text})));
  }

  // What the daemon answers to a request behind that credential, to the end of its words.
  std::string ask(const Credential& credential, const std::string& request) const {
    Pair pair;
    const timeval limit{20, 0};
    setsockopt(pair.ours.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (!open(credential, pair.theirs.get())) return "the link is closed";
    pair.theirs.reset();
    if (::send(pair.ours.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "closed";
    std::string answer;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(pair.ours.get(), buffer, sizeof buffer)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(got));
    }
    return answer;
  }
  static std::string get(const std::string& target, const std::string& more = {}) {
    return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + more +
           "\r\n";
  }
  static std::string post(const std::string& target, const std::string& body,
                          const std::string& more = {}) {
    return "POST " + target +
           " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "
           "application/json\r\n" +
           more + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  // The first line of an answer has it.
  static int status(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9)) : 0;
  }

  bool is_lost(const std::string& why) const {
    return eventually([&] { return daemon_->log().find(why) != std::string::npos; });
  }
  bool serves() const { return daemon_->cli({"status"}).exit_code == 0; }
  std::string token_of(const std::string& user, const std::string& name) const {
    const Finished made =
        daemon_->cli({"token", "create", "--name", name, "--user", user, "--quiet"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return made.out.substr(0, made.out.find('\n'));
  }

  TemporaryDirectory folder_;
  std::unique_ptr<Daemon> daemon_;
  pid_t listener_ = 0;
  pid_t last_ = 0;
  os::Descriptor link_;
};

// The process at the other end of the socket is root's here, which must not count.
TEST_F(AttackFromTheListener, NoCredentialOfItsOwnMakingIsAUser) {
  start();
  const std::string good = token_of(kAnn, "good");
  const std::string revoked = token_of(kAnn, "revoked");
  ASSERT_EQ(daemon_->cli({"token", "revoke", "revoked", "--user", kAnn}).exit_code, 0);
  capture();
  std::string changed = good;
  changed.back() = changed.back() == 'A' ? 'B' : 'A';
  const std::string secrets[] = {"",
                                 "root",
                                 "0",
                                 "uid=0",
                                 "Bearer " + good,
                                 good + "\n",
                                 good + std::string(1, '\0'),
                                 " " + good,
                                 changed,
                                 revoked,
                                 good.substr(0, good.size() - 1),
                                 "gpt_0_" + std::string(43, 'A'),
                                 "gpt_18446744073709551615_" + std::string(43, 'A'),
                                 "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.",
                                 std::string(listener::kMaxSecret, 'x'),
                                 std::string(listener::kMaxSecret, '\0')};
  const std::string job = R"({"command": ["/bin/true"], "workdir": "/", "gpus": 0})";
  for (const Credential::Kind kind : {Credential::Kind::kBearer, Credential::Kind::kCertificate}) {
    for (const std::string& secret : secrets) {
      const Credential forged{kind, secret, "192.0.2.7"};
      const std::string shown = secret.substr(0, 60);
      // A client that fails too often waits, which is as good.
      EXPECT_THAT(status(ask(forged, get("/v1/whoami"))), AnyOf(401, 429)) << shown;
      EXPECT_THAT(status(ask(forged, post("/v1/jobs", job))), AnyOf(401, 429)) << shown;
    }
  }
  EXPECT_THAT(status(ask({Credential::Kind::kCertificate, good, "192.0.2.7"}, get("/v1/whoami"))),
              AnyOf(401, 429))
      << "a token is not a certificate";
  EXPECT_EQ(daemon_->json({"jobs", "list", "--all"})["jobs"].size(), 0U);
  EXPECT_EQ(status(ask({Credential::Kind::kBearer, good, "192.0.2.8"}, get("/v1/whoami"))), 200)
      << daemon_->log();
}

// A client whose token comes by is all that it can be, and that is no more than over the network.
TEST_F(AttackFromTheListener, AShownTokenIsItsUserWhateverTheRequestClaims) {
  start();
  const Credential ann{Credential::Kind::kBearer, token_of(kAnn, "shown"), "127.0.0.1"};
  const std::string bobs =
      daemon_->submit({"--user", kBob, "--gpus", "0", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon_->reaches(bobs, "RUNNING"));
  capture();
  for (const std::string& claim :
       {std::string(), std::string("X-Forwarded-User: root\r\n"), std::string("X-Real-IP: ::1\r\n"),
        std::string("Forwarded: for=127.0.0.1;by=root\r\n"), std::string("X-Uid: 0\r\n"),
        std::string("Cookie: session=root\r\n")}) {
    const std::string who = ask(ann, get("/v1/whoami", claim));
    EXPECT_EQ(status(who), 200) << claim << who;
    EXPECT_THAT(who, HasSubstr(std::string("\"user\":\"") + kAnn + "\"")) << claim;
    EXPECT_THAT(who, Not(HasSubstr("ADMIN"))) << claim;
  }
  for (const char* const user : {"root", "0", kBob}) {
    const std::string body =
        std::string(R"({"user": ")") + user + R"(", "command": ["/bin/true"], "workdir": "/"})";
    EXPECT_THAT(status(ask(ann, post("/v1/jobs", body))), AnyOf(400, 403)) << user;
  }
  EXPECT_EQ(status(ask(ann, get("/v1/jobs/" + bobs))), 404);
  EXPECT_EQ(status(ask(ann, post("/v1/jobs/" + bobs + "/cancel", "{}"))), 404);
  EXPECT_THAT(status(ask(ann, post("/v1/tokens", R"({"name": "x", "user": "nobody"})"))),
              AnyOf(400, 403));
  EXPECT_EQ(daemon_->job(bobs)["state"], "RUNNING");
  // A revoked one is none from then on, also on the way.
  ASSERT_EQ(daemon_->cli({"token", "revoke", "shown", "--user", kAnn}).exit_code, 0);
  EXPECT_EQ(status(ask(ann, get("/v1/whoami"))), 401);
}

// A word of it that is none ends it, and one that is true takes its place.
TEST_F(AttackFromTheListener, WhatIsNoStreamSocketIsNotServed) {
  start();
  const Credential nobody{Credential::Kind::kBearer, "x", "192.0.2.7"};
  const Pair packets(SOCK_SEQPACKET);
  const os::Descriptor file(::open("/etc/passwd", O_RDONLY | O_CLOEXEC));
  const os::Descriptor tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const int fd : {-1, packets.theirs.get(), file.get(), tcp.get()}) {
    capture();
    ASSERT_TRUE(open(nobody, fd));
    ASSERT_TRUE(eventually([&] { return status_line(listener_, "State").empty(); })) << fd;
  }
  EXPECT_TRUE(is_lost("it sent no stream socket"));
  capture();
  // Sockets that nothing comes from, that lead to the daemon again, and that listen.
  const Pair both;
  EXPECT_TRUE(open(nobody, both.theirs.get()) && open(nobody, both.ours.get()));
  const os::Descriptor listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)), 0);
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  EXPECT_TRUE(open(nobody, listening.get()));
  EXPECT_EQ(status(ask(nobody, get("/v1/whoami"))), 401) << "and it goes on";
  EXPECT_TRUE(serves());
}

TEST_F(AttackFromTheListener, DamagedMessagesEndItAndNothingElse) {
  start();
  std::string note;
  base::Encoder out(note);
  out.u64(7);  // a note …
  out.boolean(true);
  out.text("a line\nlevel=error forged");  // … of two lines
  const std::string broken[] = {std::string(1, '\xff'), note,
                                listener::encode(listener::ToListener(listener::Settings{})),
                                std::string(listener::kMaxFromListener, 'x')};
  for (const std::string& bytes : broken) {
    capture();
    ASSERT_TRUE(say(bytes));
    ASSERT_TRUE(eventually([&] { return status_line(listener_, "State").empty(); }));
  }
  EXPECT_TRUE(is_lost("it broke the protocol"));
  for (const std::string& line : lines_of(daemon_->log())) {
    EXPECT_THAT(line, Not(StartsWith("level=error forged")));
  }
  EXPECT_TRUE(serves());
}

// One that takes nothing from its link has the daemon wait for no longer than a moment.
TEST_F(AttackFromTheListener, OneThatTakesNoCertificateIsReplacedAndTheDaemonEnds) {
  const std::string certificate = folder_.path() + "/server.crt";
  const std::string key = folder_.path() + "/server.key";
  // The chain is long, so that few of them fill the link.
  const auto renew = [&] {
    const auto made = http::make_certificate({.common_name = "localhost"});
    std::string chain;
    while (chain.size() + made.pem().size() < listener::kMaxPem) chain += made.pem();
    std::ofstream(key + ".new") << made.key_pem();
    chmod((key + ".new").c_str(), 0600);
    std::ofstream(certificate + ".new") << chain;
    rename((key + ".new").c_str(), key.c_str());
    rename((certificate + ".new").c_str(), certificate.c_str());
  };
  renew();
  start("  tls:\n    certificate: " + certificate + "\n    key: " + key + "\n");
  capture();
  EXPECT_TRUE(eventually([&] {
    renew();
    kill(daemon_->pid(), SIGHUP);
    return daemon_->log().find("it takes no certificate") != std::string::npos;
  })) << daemon_->log();
  EXPECT_TRUE(serves());
  capture();  // the next one reads nothing from its first moment on
  EXPECT_EQ(daemon_->terminate(), 0);
}

// With the listener's rights and no others.
TEST_F(AttackFromTheListener, ItsProcessReachesNoFileNoProcessAndNoSocket) {
  start();
  const std::string socket = daemon_->socket();
  const pid_t daemon = daemon_->pid();
  const pid_t real = [&] {
    pid_t pid = 0;
    EXPECT_TRUE(eventually([&] { return (pid = find_listener()) != 0; }));
    return pid;
  }();
  const std::string ids = status_line(real, "Uid");
  const auto uid = static_cast<std::uint32_t>(std::stoul(ids));
  const auto gid = static_cast<std::uint32_t>(std::stoul(status_line(real, "Gid")));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const auto tell = [&](const char* what) { (void)!write(ends[1], what, strlen(what)); };
    if (!listener::confine({listener::ConfinementOptions::User{uid, gid}, 64})) _exit(2);
    if (::open("/etc/passwd", O_RDONLY) >= 0 || ::open("/", O_RDONLY) >= 0) tell("opened ");
    if (::open("/proc/self/status", O_RDONLY) >= 0) tell("read-proc ");
    if (::open("x", O_CREAT | O_WRONLY, 0600) >= 0 || mkdir("x", 0700) == 0) tell("made ");
    if (::socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || ::socket(AF_INET, SOCK_STREAM, 0) >= 0) {
      tell("socket ");
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket.copy(address.sun_path, sizeof address.sun_path - 1);
    int pair[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 &&
        connect(pair[0], reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      tell("connected ");
    }
    if (kill(daemon, 0) == 0 || kill(real, 0) == 0 || kill(-1, 0) == 0) tell("signalled ");
    if (ptrace(PTRACE_ATTACH, real, nullptr, nullptr) == 0) tell("traced ");
    char byte = 0;
    const iovec ours{&byte, 1};
    const iovec theirs{&byte, 1};
    if (process_vm_readv(real, &ours, 1, &theirs, 1, 0) == 1) tell("read ");
    if (syscall(SYS_pidfd_open, real, 0) >= 0) tell("held ");
    if (setuid(0) == 0 || setgroups(0, nullptr) == 0) tell("became ");
    if (syscall(SYS_unshare, 0x10000000) == 0) tell("namespace ");
    if (mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
             0) != MAP_FAILED) {
      tell("executes ");
    }
    char* const none[] = {nullptr};
    execve("/bin/true", none, none);
    _exit(0);
  }
  close(ends[1]);
  std::string done;
  char buffer[256];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) {
    done.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int end = 0;
  waitpid(pid, &end, 0);
  EXPECT_EQ(done, "");
  EXPECT_TRUE(WIFEXITED(end) && WEXITSTATUS(end) == 0) << end;
  EXPECT_TRUE(serves());
}

}  // namespace
}  // namespace gpu_platform::e2e
