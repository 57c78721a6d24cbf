// Code that runs in the place of the listener, with what a captured listener has: its user, its
// link to the daemon, and the credentials that clients have shown it. What it could do with them to
// the daemon, its log and the users of this machine.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>

#include "listener/link.h"
#include "listener_fixture.h"
#include "os/descriptor.h"
#include "os/packet_socket.h"

namespace gpu_platform::e2e {

namespace {

using ::testing::HasSubstr;

constexpr int kLink = 3;
constexpr int kManyNotes = 50'000;
constexpr int kManyLinks = 40'000;
constexpr int kUsersLinks = 600;  // more than a user may have connections

// ---- the attacker

// False: the daemon has closed the link.
bool tell_daemon(const listener::FromListener& message, int descriptor = -1) {
  const std::string bytes = listener::encode(message);
  while (!os::send_packet(kLink, bytes, descriptor)) {
    if (errno != EAGAIN && errno != EINTR) return false;
    pollfd writable{kLink, POLLOUT, 0};
    ::poll(&writable, 1, -1);
  }
  return true;
}

// Opens a connection with the credential; not open: the daemon has closed the link.
os::Descriptor open_link(const std::string& token) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return os::Descriptor();
  os::Descriptor ours(pair[0]);
  const os::Descriptor theirs(pair[1]);
  const listener::Open open{{listener::Credential::Kind::kBearer, token, "192.0.2.7"}};
  return tell_daemon(open, theirs.get()) ? std::move(ours) : os::Descriptor();
}

int status_over(const os::Descriptor& link) {
  constexpr std::string_view kRequest = "GET /v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n";
  (void)!::send(link.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
  std::string answer(4096, '\0');
  const ssize_t got = ::recv(link.get(), answer.data(), answer.size(), 0);
  int status = 0;
  if (got > 12) std::from_chars(answer.data() + 9, answer.data() + 12, status);
  return status;
}

std::string attack_with_notes() {
  int sent = 0;
  while (sent < kManyNotes && tell_daemon(listener::Note{false, "flood of a captured listener"})) {
    ++sent;
  }
  return std::to_string(sent);
}

std::string attack_with_beginnings() {
  int sent = 0;
  while (sent < kManyNotes && tell_daemon(listener::Begun{listener::kLinkVersion, {}})) ++sent;
  return std::to_string(sent);
}

std::string attack_with_links() {
  int sent = 0;
  while (sent < kManyLinks && open_link("gpt_1_forged").is_open()) ++sent;
  return std::to_string(sent);
}

// With a token that a client has shown: it keeps what it gets.
std::string attack_with_links_of_a_user(const std::string& token,
                                        std::vector<os::Descriptor>& kept) {
  int answered = 0;
  for (int i = 0; i < kUsersLinks; ++i) {
    os::Descriptor link = open_link(token);
    if (!link.is_open()) break;
    answered += status_over(link) == 200 ? 1 : 0;
    kept.push_back(std::move(link));
  }
  return std::to_string(answered);
}

bool become(int argc, char** argv) {
  if (argc != 5) return ::geteuid() != 0;
  const auto uid = static_cast<uid_t>(std::stoul(argv[2]));
  const auto gid = static_cast<gid_t>(std::stoul(argv[4]));
  return ::setgroups(0, nullptr) == 0 && ::setresgid(gid, gid, gid) == 0 &&
         ::setresuid(uid, uid, uid) == 0;
}

}  // namespace

// The program that the daemon starts as its listener. Its orders lie beside it.
int run_captured_listener(int argc, char** argv) {
  const std::string folder = std::filesystem::path(argv[0]).parent_path();
  const auto orders = lines_of(read_file(folder + "/orders"));
  const int told =
      ::open((folder + "/told").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (orders.empty() || told < 0 || !become(argc, argv)) return 1;
  ::fcntl(kLink, F_SETFL, O_NONBLOCK);
  if (orders[0] != "begin") tell_daemon(listener::Begun{listener::kLinkVersion, {}});
  std::vector<os::Descriptor> kept;
  const std::string line = (orders[0] == "notes"   ? attack_with_notes()
                            : orders[0] == "begin" ? attack_with_beginnings()
                            : orders[0] == "links" ? attack_with_links()
                            : orders[0] == "user"  ? attack_with_links_of_a_user(orders.at(1), kept)
                                                   : std::string("0")) +
                           "\n";
  (void)!::write(told, line.data(), line.size());
  // Until the daemon is gone; what it says goes unread.
  pollfd closed{kLink, 0, 0};
  ::poll(&closed, 1, -1);
  return 0;
}

namespace {

class AttackByListenerBudget : public ListenerProcess {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: a listener with a user of its own";
    const std::filesystem::path programs =
        std::filesystem::path(program("gpu-platform")).parent_path();
    // It finds its listener beside itself.
    std::error_code error;
    std::filesystem::create_hard_link(programs / "gpu-platform", place("gpu-platform"), error);
    if (error) std::filesystem::copy_file(programs / "gpu-platform", place("gpu-platform"));
    for (const char* name : {"gpu-platform-node", "gpu-platform-probe", "gpu-emulator",
                             "gpu-emulator-register", "emulator"}) {
      std::filesystem::create_symlink(programs / name, place(name));
    }
    order("nothing");
    std::filesystem::create_symlink(std::filesystem::read_symlink("/proc/self/exe"),
                                    place("gpu-platform-listener"));
  }

  std::string place(const std::string& name) const { return folder_.path() + "/" + name; }
  void order(const std::string& what) const { std::ofstream(place("orders")) << what << "\n"; }
  std::string told() const { return read_file(place("told")); }

  // A daemon whose listener is the attacker.
  void start_daemon() {
    daemon_ = std::make_unique<Daemon>(DaemonOptions{
        .config = configuration(),
        .prefix = {"/bin/sh", "-c", "shift; exec " + place("gpu-platform") + " \"$@\"", "sh"}});
    ASSERT_TRUE(daemon_->start()) << daemon_->log();
    ::chmod(daemon_->directory().c_str(), 0755);
  }
  bool log_has(const std::string& text) const {
    return daemon_->log().find(text) != std::string::npos;
  }
  std::size_t lines_with(const std::string& text) const {
    std::size_t count = 0;
    for (const std::string& line : lines_of(daemon_->log())) count += line.contains(text) ? 1 : 0;
    return count;
  }
};

// Tried: to fill the log. Refused by: a budget of notes; one that says more is ended.
TEST_F(AttackByListenerBudget, ItsNotesDoNotFillTheLog) {
  order("notes");
  start_daemon();
  EXPECT_TRUE(eventually([&] { return log_has("it logs too much") || !told().empty(); }));
  EXPECT_THAT(daemon_->log(), HasSubstr("it logs too much"));
  EXPECT_LT(lines_with("flood of a captured listener"), 1'000u);
  EXPECT_EQ(daemon_->cli({"status"}).exit_code, 0);
}

// Tried: the same with the message that there is once.
TEST_F(AttackByListenerBudget, ItBeginsOnce) {
  order("begin");
  start_daemon();
  EXPECT_TRUE(eventually([&] { return log_has("it broke the protocol") || !told().empty(); }));
  EXPECT_THAT(daemon_->log(), HasSubstr("it broke the protocol"));
  EXPECT_LT(lines_with("listener pid="), 100u);
}

// Tried: to keep the daemon busy with connections of no user. Refused by: a budget for each
// credential, and for all together.
TEST_F(AttackByListenerBudget, ItsConnectionsHaveARate) {
  order("links");
  start_daemon();
  EXPECT_TRUE(eventually([&] { return !told().empty(); }, std::chrono::seconds(120)));
  EXPECT_THAT(daemon_->log(), HasSubstr("asks for too many connections"));
  EXPECT_LT(lines_with("credential refused") + lines_with("connection from"), 1'000u);
  EXPECT_EQ(daemon_->cli({"status"}).exit_code, 0);
}

// Tried: to lock the user of a token out, who could revoke it. Refused by: an eighth of a user's
// connections is for this machine.
TEST_F(AttackByListenerBudget, AUserWhoseTokenItHasStillGetsIn) {
  start_daemon();
  const Finished made = daemon_->cli({"token", "create", "-q", "--name", "stolen", "--user", kAnn});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  order("user\n" + made.out.substr(0, made.out.find('\n')));
  const std::string before = told();
  ASSERT_EQ(::kill(listener_pid(), SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return told().size() > before.size(); }, std::chrono::seconds(60)))
      << daemon_->log();
  const int answered = std::stoi(lines_of(told()).back());
  EXPECT_GT(answered, 100);
  EXPECT_LT(answered, 512);
  const Finished revoked = run_command(
      as_account({kAnn, "65534"}, {"/usr/bin/env", "-C", "/", program("gpu-platform"), "--server",
                                   "unix:" + daemon_->socket(), "token", "revoke", "stolen"}));
  EXPECT_EQ(revoked.exit_code, 0) << revoked.err;
}

}  // namespace
}  // namespace gpu_platform::e2e
