// Figures of the daemon's doors, the Unix socket and TLS through the listener, as clients see them:
//   front_bench [submit] [read] [list] [events] [pass] [idle]          (default: all)
// Prints one line per figure. One thread makes the load; data lies under the build folder, on its
// disk; syncing is on. `read` compares with an nginx that gives the same bytes from a file, if
// there is one (GP_NGINX, else in PATH).

#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness.h"
#include "http/testing/certificates.h"
#include "http_load.h"

namespace gpu_platform::bench {
namespace {

using e2e::Daemon;
using e2e::get;
using e2e::LoadOptions;
using e2e::LoadResult;
using e2e::percentile;
using e2e::post;
using e2e::run_load;
using SteadyClock = std::chrono::steady_clock;

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  (void)::bind(socket, name, size);
  (void)::getsockname(socket, name, &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

double resident_mib(pid_t pid) {
  const std::string status = e2e::read_file("/proc/" + std::to_string(pid) + "/status");
  const std::size_t at = status.find("VmRSS:");
  return at == std::string::npos ? 0 : std::atof(status.c_str() + at + 6) / 1024;
}

void require_accepted(const LoadResult& result) {
  if (result.refused != 0) give_up("a request was refused:\n" + result.first_refusal);
}

double rate_of(const LoadResult& result) {
  require_accepted(result);
  return static_cast<double>(result.answered) / result.seconds;
}

// A daemon with both doors, whose node is full, and a token of a plain user.
class Doors {
 public:
  explicit Doors(const std::string& emulate = "dgx-h100") {
    const auto made = http::make_certificate({.common_name = "localhost"});
    write(folder_.path() + "/crt", made.pem());
    write(folder_.path() + "/key", made.key_pem());
    const std::string config =
        "scheduling:\n  max_queue_size: 200000\n  max_queue_percent_per_user: 100\n  "
        "max_specification_bytes: 4G\n"
        "  max_specification_bytes_per_user: 4G\n"
        "api:\n  max_connections: 16384\n  max_connections_per_user: 16384\n"
        "  max_streams_per_user: 16384\n  max_page_bytes: 64M\n"
        "  rest:\n    address: 127.0.0.1:" +
        std::to_string(port_) +
        "\n    max_connections: 16384\n    max_connections_per_address: 16384\n"
        "  tls:\n    certificate: " +
        folder_.path() + "/crt\n    key: " + folder_.path() + "/key\n";
    daemon_ = std::make_unique<Daemon>(e2e::DaemonOptions{.emulate = emulate, .config = config});
    if (!daemon_->start()) give_up("the daemon does not start:\n" + daemon_->log());
    const auto token =
        daemon_->cli({"token", "create", "--name", "bench", "--user", "backup", "-q"});
    token_ = token.out.substr(0, token.out.find('\n'));
    if (token.exit_code != 0 || !e2e::eventually([this] { return listener_pid() != 0; })) {
      give_up("no token, or no listener: " + token.err);
    }
  }

  void occupy(int nodes) {
    for (int i = 0; i < nodes; ++i) {
      require_accepted(run_load(socket(1, 1), [](std::size_t) {
        return post("/v1/jobs", R"({"command":["/bin/sleep","1000"],"gpus":8})");
      }));
    }
    const bool is_full = e2e::eventually([&] {
      const auto status = daemon_->json({"status"});
      return status.is_object() && status["available_gpus"] == 0;
    });
    if (!is_full) give_up("the node does not fill");
  }

  LoadOptions socket(std::size_t clients, std::size_t requests) const {
    return {.socket = daemon_->socket(), .clients = clients, .requests = requests};
  }
  LoadOptions tls(std::size_t clients, std::size_t requests) const {
    return {.clients = clients, .requests = requests, .tls_port = port_};
  }
  // The same request with the token.
  std::string known(std::string request) const {
    const std::size_t line = request.find("\r\n") + 2;
    return request.insert(line, "Authorization: Bearer " + token_ + "\r\n");
  }
  Daemon& daemon() { return *daemon_; }
  pid_t listener_pid() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const std::string status = e2e::read_file("/proc/" + name + "/status");
      const bool is_ours =
          status.find("\nPPid:\t" + std::to_string(daemon_->pid()) + "\n") != std::string::npos;
      if (is_ours && status.starts_with("Name:\tgpu-platform-li")) return std::stoi(name);
    }
    return 0;
  }

 private:
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0600);
  }

  e2e::TemporaryDirectory folder_;
  const std::uint16_t port_ = free_port();
  std::unique_ptr<Daemon> daemon_;
  std::string token_;
};

std::string submission() {
  return post("/v1/jobs", R"({"name":"bench","command":["/bin/true"],"gpus":1,"cpus":1,)"
                          R"("memory_bytes":67108864})");
}

void print_load(const char* what, const LoadResult& result) {
  std::printf("%s %.0f/s, p50 %.2f ms, p99 %.2f ms; generator CPU %.1f us each\n", what,
              rate_of(result), percentile(result.latencies_ms, 50),
              percentile(result.latencies_ms, 99),
              result.generator_cpu_seconds / static_cast<double>(result.answered) * 1e6);
  std::fflush(stdout);
}

void bench_submit() {
  Doors doors;
  doors.occupy(1);
  for (int round = 0; round < 3; ++round) {
    print_load("submit: 64 clients, socket:",
               run_load(doors.socket(64, 20000), [](std::size_t) { return submission(); }));
    print_load("submit: 64 clients, TLS:   ", run_load(doors.tls(64, 20000), [&](std::size_t) {
                 return doors.known(submission());
               }));
  }
}

// An nginx with two workers, as the daemon has two threads, which gives these bytes.
class Nginx {
 public:
  explicit Nginx(const std::string& body) {
    const char* const named = std::getenv("GP_NGINX");
    const std::string program = named == nullptr ? "nginx" : named;
    const std::string& folder = folder_.path();
    const auto made = http::make_certificate({.common_name = "localhost"});
    std::ofstream(folder + "/crt") << made.pem();
    std::ofstream(folder + "/key") << made.key_pem();
    std::ofstream(folder + "/answer.json") << body;
    std::ofstream(folder + "/conf")
        << "user root;\ndaemon off;\nworker_processes 2;\nerror_log stderr;\npid " << folder
        << "/pid;\nevents { worker_connections 4096; }\n"
        << "http {\n  access_log off;\n  keepalive_requests 100000000;\n  sendfile on;\n"
        << "  types { application/json json; }\n  open_file_cache max=16 inactive=1h;\n"
        << "  client_body_temp_path " << folder << "/1;\n  proxy_temp_path " << folder << "/2;\n"
        << "  fastcgi_temp_path " << folder << "/3;\n  uwsgi_temp_path " << folder << "/4;\n"
        << "  scgi_temp_path " << folder << "/5;\n"
        << "  server {\n    listen unix:" << socket() << ";\n    listen 127.0.0.1:" << port_
        << " ssl;\n    ssl_certificate " << folder << "/crt;\n    ssl_certificate_key " << folder
        << "/key;\n    ssl_protocols TLSv1.3;\n    root " << folder << ";\n  }\n}\n";
    const std::string conf = folder + "/conf";
    const char* const arguments[] = {"nginx", "-c", conf.c_str(), "-p", folder.c_str(), nullptr};
    const bool is_started = ::posix_spawnp(&pid_, program.c_str(), nullptr, nullptr,
                                           const_cast<char**>(arguments), environ) == 0;
    if (!is_started) pid_ = -1;
    is_there_ =
        is_started && e2e::eventually([this] { return ::access(socket().c_str(), F_OK) == 0; },
                                      std::chrono::seconds(5));
  }
  ~Nginx() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  Nginx(const Nginx&) = delete;
  Nginx& operator=(const Nginx&) = delete;
  bool is_there() const { return is_there_; }
  std::string socket() const { return folder_.path() + "/socket"; }
  std::uint16_t port() const { return port_; }

 private:
  e2e::TemporaryDirectory folder_;
  const std::uint16_t port_ = free_port();
  pid_t pid_ = -1;
  bool is_there_ = false;
};

void bench_read() {
  Doors doors;
  doors.occupy(1);
  require_accepted(
      run_load(doors.tls(8, 1000), [&](std::size_t) { return doors.known(submission()); }));
  const auto job = [](std::size_t n) { return get("/v1/jobs/" + std::to_string(2 + n % 1000)); };
  const Nginx nginx(doors.daemon().cli({"api", "GET", "/v1/jobs/2"}).out);
  if (!nginx.is_there()) std::printf("read: no nginx\n");
  for (int round = 0; round < 3; ++round) {
    const double socket = rate_of(run_load(doors.socket(16, 40000), job));
    const double tls =
        rate_of(run_load(doors.tls(16, 40000), [&](std::size_t n) { return doors.known(job(n)); }));
    std::printf("read: GET job, 16 clients: socket %.0f/s, TLS %.0f/s", socket, tls);
    if (nginx.is_there()) {
      const auto answer = [](std::size_t) { return get("/answer.json"); };
      const double by_socket =
          rate_of(run_load({.socket = nginx.socket(), .clients = 16, .requests = 40000}, answer));
      const double by_tls =
          rate_of(run_load({.clients = 16, .requests = 40000, .tls_port = nginx.port()}, answer));
      std::printf("; nginx %.0f/s and %.0f/s: %.2f and %.2f of it", by_socket, by_tls,
                  socket / by_socket, tls / by_tls);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

void bench_list() {
  Doors doors;
  doors.occupy(1);
  require_accepted(
      run_load(doors.tls(64, 10000), [&](std::size_t) { return doors.known(submission()); }));
  const std::string list = get("/v1/jobs?limit=10000&all=true");
  const std::string narrow = get("/v1/jobs?limit=10000&all=true&fields=jobs.id,jobs.state");
  for (const bool is_narrow : {false, true}) {
    const std::string& request = is_narrow ? narrow : list;
    const LoadResult socket = run_load(doors.socket(1, 50), [&](std::size_t) { return request; });
    const LoadResult tls =
        run_load(doors.tls(1, 50), [&](std::size_t) { return doors.known(request); });
    require_accepted(socket);
    require_accepted(tls);
    std::printf("list: 10,000 jobs%s: socket p50 %.1f ms, TLS p50 %.1f ms\n",
                is_narrow ? ", two fields" : "", percentile(socket.latencies_ms, 50),
                percentile(tls.latencies_ms, 50));
  }
}

// Seconds since 1970 of the "at" of an event, to the millisecond.
double instant_of(const std::string& event) {
  const std::size_t at = event.find("\"at\":\"");
  tm parts{};
  const char* const rest = at == std::string::npos
                               ? nullptr
                               : strptime(event.c_str() + at + 6, "%Y-%m-%dT%H:%M:%S", &parts);
  return rest == nullptr ? 0 : static_cast<double>(timegm(&parts)) + std::atof(rest);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Each of 1,000 subscribers watches one of 1,000 jobs, which are held and released in turns; a
// release is two changes.
void bench_events() {
  constexpr std::size_t kSubscribers = 1000;
  constexpr std::size_t kAtOnce = 50;
  constexpr auto kPause = std::chrono::milliseconds(10);
  constexpr double kSpan = 10;
  for (const bool is_tls : {false, true}) {
    Doors doors;
    doors.occupy(1);
    require_accepted(run_load(doors.tls(16, kSubscribers),
                              [&](std::size_t) { return doors.known(submission()); }));
    const double daemon_before = resident_mib(doors.daemon().pid());
    const double listener_before = resident_mib(doors.listener_pid());
    std::vector<double> delays;
    std::atomic<bool> is_over = false;
    std::atomic<std::size_t> open = 0;
    std::thread subscribers([&] {
      e2e::follow(
          is_tls ? doors.tls(kSubscribers, 0) : doors.socket(kSubscribers, 0),
          [&](std::size_t n) {
            return doors.known(get("/v1/jobs/" + std::to_string(2 + n) + "/events"));
          },
          [&](const std::string& event) {
            const bool is_first = event.find("\"CURRENT\"") != std::string::npos;
            is_first ? void(++open) : delays.push_back(wall_seconds() - instant_of(event));
          },
          is_over);
    });
    if (!e2e::eventually([&] { return open == kSubscribers; })) {
      give_up("only " + std::to_string(open) + " subscribe:\n" +
              doors.daemon().log().substr(0, 3000));
    }
    const auto begin = SteadyClock::now();
    std::size_t commands = 0;
    for (std::size_t turn = 0; seconds_since(begin) < kSpan; ++turn) {
      const bool is_release = turn / (kSubscribers / kAtOnce) % 2 == 1;
      std::string ids;
      for (std::size_t i = 0; i < kAtOnce; ++i) {
        const std::size_t job = 2 + (turn * kAtOnce + i) % kSubscribers;
        ids += (ids.empty() ? "\"" : ",\"") + std::to_string(job) + "\"";
      }
      const std::string body = std::string(R"({"action":")") + (is_release ? "RELEASE" : "HOLD") +
                               R"(","all":true,"ids":[)" + ids + "]}";
      require_accepted(
          run_load(doors.socket(1, 1), [&](std::size_t) { return post("/v1/jobs/bulk", body); }));
      commands += kAtOnce;
      std::this_thread::sleep_until(begin + kPause * (turn + 1));
    }
    const double rate = static_cast<double>(commands) / seconds_since(begin);
    const double daemon_after = resident_mib(doors.daemon().pid());
    const double listener_after = resident_mib(doors.listener_pid());
    (void)e2e::eventually([] { return false; }, std::chrono::seconds(1));
    is_over = true;
    subscribers.join();
    std::printf(
        "events: %zu subscribers, %s: %.0f commands/s, %.0f changes/s arrived, delay p50 %.1f ms, "
        "p99 "
        "%.1f ms; daemon %.1f -> %.1f MiB, listener %.1f -> %.1f MiB\n",
        kSubscribers, is_tls ? "TLS" : "socket", rate, static_cast<double>(delays.size()) / kSpan,
        percentile(delays, 50) * 1e3, percentile(delays, 99) * 1e3, daemon_before, daemon_after,
        listener_before, listener_after);
    std::fflush(stdout);
  }
}

// GET of a job while jobs of many shapes wait and each change makes the scheduler look at them.
void bench_pass() {
  constexpr int kNodes = 16;
  Doors doors(std::to_string(kNodes) + "xdgx-h100");
  doors.occupy(kNodes);
  require_accepted(run_load(doors.tls(64, 20000), [&](std::size_t n) {
    return doors.known(post("/v1/jobs", R"({"command":["/bin/true"],"gpus":)" +
                                            std::to_string(1 + n % 8) + R"(,"nodes":)" +
                                            std::to_string(1 + n / 8 % 4) + R"(,"cpus":)" +
                                            std::to_string(1 + n % 5) +
                                            R"(,"memory_bytes":67108864,"time_limit_seconds":)" +
                                            std::to_string(600 + n % 1000) + "}"));
  }));
  const auto job = [](std::size_t n) { return get("/v1/jobs/" + std::to_string(100 + n % 1000)); };
  const LoadResult quiet = run_load(doors.socket(4, 20000), job);
  std::atomic<bool> is_over = false;
  std::thread changes([&] {
    for (std::size_t n = 0; !is_over; ++n) {
      // A job that runs ends, and its node's GPUs are free for those that wait.
      const std::string id = std::to_string(1 + n % kNodes);
      const char* const action = n < kNodes ? "/kill" : "/top";
      const std::string which = n < kNodes ? id : std::to_string(10000 + n);
      (void)run_load(doors.socket(1, 1),
                     [&](std::size_t) { return post("/v1/jobs/" + which + action, "{}"); });
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  std::vector<double> latencies;
  const auto begin = SteadyClock::now();
  while (seconds_since(begin) < 5) {
    const LoadResult busy = run_load(doors.socket(4, 2000), job);
    require_accepted(busy);
    latencies.insert(latencies.end(), busy.latencies_ms.begin(), busy.latencies_ms.end());
  }
  is_over = true;
  changes.join();
  const auto statistics = nlohmann::json::parse(
      doors.daemon().cli({"api", "GET", "/v1/statistics"}).out, nullptr, false);
  std::printf(
      "pass: 20,000 waiting, GET job, 4 clients: quiet p99 %.2f ms, during passes p99 %.2f ms; "
      "%s\n",
      percentile(quiet.latencies_ms, 99), percentile(latencies, 99),
      statistics.is_object() ? statistics["cycle_seconds"].dump().c_str() : "");
}

void bench_idle() {
  // The listener has two descriptors for each, and so has this limit twice.
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const std::size_t connections = std::min<std::size_t>(10'000, (files.rlim_cur - 1000) / 2);
  Doors doors;
  const double daemon_before = resident_mib(doors.daemon().pid());
  const double listener_before = resident_mib(doors.listener_pid());
  const auto begin = SteadyClock::now();
  // Each has made a request with its credential before it idles.
  e2e::Crowd crowd(doors.tls(connections, 0));
  const double seconds = seconds_since(begin);
  const LoadResult first = crowd.ask_all(doors.known(get("/v1/version")));
  require_accepted(first);
  (void)e2e::eventually([] { return false; }, std::chrono::seconds(20));
  const double daemon_after = resident_mib(doors.daemon().pid());
  const double listener_after = resident_mib(doors.listener_pid());
  const LoadResult again = crowd.ask_all(doors.known(get("/v1/version")));
  require_accepted(again);
  const double kib = 1024 / static_cast<double>(connections);
  std::printf(
      "idle: %zu connections over TLS opened in %.1f s; listener %.1f -> %.1f MiB (%.1f KiB each), "
      "daemon %.1f -> %.1f MiB (%.1f KiB each); each answered again, p50 %.2f ms\n",
      connections, seconds, listener_before, listener_after,
      (listener_after - listener_before) * kib, daemon_before, daemon_after,
      (daemon_after - daemon_before) * kib, percentile(again.latencies_ms, 50));
}

}  // namespace
}  // namespace gpu_platform::bench

int main(int argc, char** argv) {
  using namespace gpu_platform::bench;
  ::signal(SIGPIPE, SIG_IGN);
  // Ten thousand connections, of which the listener has two ends each.
  rlimit files{65536, 65536};
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) {
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  const std::vector<std::pair<std::string, void (*)()>> all = {
      {"submit", bench_submit}, {"read", bench_read}, {"list", bench_list},
      {"events", bench_events}, {"pass", bench_pass}, {"idle", bench_idle}};
  std::set<std::string> wanted(argv + 1, argv + argc);
  for (const auto& [name, run] : all) {
    if (wanted.empty() || wanted.contains(name)) run();
    std::fflush(stdout);
  }
}
