#include "mps/mps_fixture.h"

// Servers and their clients: gpu-workload with CUDA_MPS_PIPE_DIRECTORY.

namespace gpu_emulator {
namespace {

using gpu_platform::os::eventually;

class MpsServing : public MpsTest {
 protected:
  static constexpr int kMpsFailedExit = 5;
  static constexpr int kFaultedExit = 6;
};

TEST_F(MpsServing, TheFirstClientStartsTheServer) {
  start_daemon();
  const pid_t client = serve_client({"--memory", "1G", "--utilization", "40"});
  const pid_t first = server();
  ASSERT_GT(first, 0);
  EXPECT_EQ(entry_of(first).value_or(ProcessReading{}).memory_bytes, std::uint64_t{66} << 20);
  EXPECT_EQ(entry_of(client)->memory_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(clients(), std::vector<std::string>{fmt::format("{}", client)});
  const auto table = words_of(text_of("ps"));
  ASSERT_EQ(table.size(), 12U);
  EXPECT_EQ(std::vector(table.begin(), table.begin() + 6),
            (std::vector<std::string>{"PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND"}));
  EXPECT_EQ(table[6], fmt::format("{}", client));
  EXPECT_EQ(table[8], fmt::format("{}", first));
  EXPECT_EQ(table[9], std::string(gpu().uuid).substr(0, 22));
  EXPECT_EQ(table[11], GPU_WORKLOAD);

  const pid_t second = serve_client({"--memory", "1G"});
  EXPECT_EQ(server(), first) << "one server for all";
  kill(client, SIGTERM);
  EXPECT_EQ(end_of(client), 0);
  EXPECT_TRUE(eventually([&] { return !is_client(client); }));
  EXPECT_TRUE(is_client(second));
}

TEST_F(MpsServing, TheLowerPercentageHoldsAndClientsAddUp) {
  start_daemon();
  text_of("set_default_active_thread_percentage 50");
  const pid_t lower = serve_client({"--memory", "1G"}, {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30"});
  EXPECT_EQ(percent_of(lower), 30U);
  const pid_t higher = serve_client({"--memory", "1G"}, {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=80"});
  EXPECT_EQ(percent_of(higher), 50U) << "the server's is lower";
  EXPECT_EQ(read_gpu(gpu()).utilization_percent, 80U);
  const pid_t idle = serve_client({"--memory", "1G", "--utilization", "10"});
  EXPECT_EQ(percent_of(idle), 10U);
  const pid_t third = serve_client({"--memory", "1G"});
  EXPECT_EQ(percent_of(third), 50U);
  EXPECT_EQ(read_gpu(gpu()).utilization_percent, 100U) << "no GPU does more";
}

TEST_F(MpsServing, AServersLimitsAreThoseOfItsLaterClients) {
  start_daemon();
  const pid_t before = serve_client({"--memory", "1G"});
  text_of("set_default_active_thread_percentage 20");
  EXPECT_EQ(text_of(fmt::format("get_active_thread_percentage {}", server())), "100.0\n")
      << "the default is for the next server";
  EXPECT_EQ(text_of(fmt::format("set_active_thread_percentage {} 25", server())), "25.0\n");
  EXPECT_EQ(text_of(fmt::format("set_active_thread_percentage {} 130", server())), "25.0\n");
  EXPECT_EQ(text_of(fmt::format("set_device_pinned_mem_limit {} 0 2G", server())), "");
  EXPECT_EQ(text_of(fmt::format("get_device_pinned_mem_limit {} 0", server())), "2G\n");
  EXPECT_EQ(percent_of(serve_client({"--memory", "1G"})), 25U);
  EXPECT_EQ(percent_of(before), 90U);
  EXPECT_EQ(end_of(start_client({"--memory", "3G"})), 4);
}

TEST_F(MpsServing, AClientGetsNoMemoryBeyondTheLowerLimit) {
  start_daemon();
  const pid_t own = start_client({"--memory", "8G"}, {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=3G"});
  EXPECT_EQ(end_of(own), 4);
  EXPECT_NE(errors_of(own).find("out of memory (2): 8192 MiB wanted, the limit of this MPS client "
                                "is 3072 MiB"),
            std::string::npos)
      << errors_of(own);
  const pid_t grown = start_client({"--memory", "1G", "--grow", "1G", "--grow-every", "1s"},
                                   {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1536M"});
  EXPECT_EQ(end_of(grown), 4);
  serve_client({"--memory", "3G"}, {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=3G"});
}

TEST_F(MpsServing, EachOfSeveralProcessesIsAClientWithItsOwnLimit) {
  start_daemon();
  const pid_t first = start_client(
      {"--memory", "1G", "--processes", "8", "--utilization", "20"},
      {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=10"});
  EXPECT_TRUE(eventually([&] { return read_gpu(gpu()).process_count == 9; })) << "and the server";
  EXPECT_EQ(clients().size(), 8U);
  EXPECT_EQ(read_gpu(gpu()).utilization_percent, 80U);
  EXPECT_EQ(read_gpu(gpu()).used_bytes, (std::uint64_t{8} << 30) + (std::uint64_t{66} << 20));
  kill(first, SIGTERM);
  EXPECT_EQ(end_of(first), 0);
  EXPECT_TRUE(eventually([&] { return clients().empty(); }));
}

TEST_F(MpsServing, AFaultOfOneClientEndsAllClientsOfItsServer) {
  start_daemon();
  const pid_t innocent = serve_client({"--memory", "1G"});
  const pid_t before = server();
  const pid_t faulty = start_client({"--memory", "1G", "--fault-after", "0s"});
  for (const pid_t client : {faulty, innocent}) {
    EXPECT_EQ(end_of(client), kFaultedExit);
    EXPECT_NE(errors_of(client).find("illegal memory address was used"), std::string::npos);
    EXPECT_NE(errors_of(client).find("(700)"), std::string::npos);
  }
  EXPECT_EQ(server(), before);
  EXPECT_TRUE(is_client(serve_client({"--memory", "1G"}))) << "a new client starts at once";
  EXPECT_EQ(server(), before);
}

TEST_F(MpsServing, AClientKilledInsideAKernelEndsTheOthers) {
  start_daemon();
  const pid_t innocent = serve_client({"--memory", "1G"});
  const pid_t killed = serve_client({"--memory", "1G"});
  kill(killed, SIGKILL);
  EXPECT_EQ(end_of(killed), 128 + SIGKILL);
  EXPECT_EQ(end_of(innocent), kFaultedExit);
  EXPECT_TRUE(is_client(serve_client({"--memory", "1G"})));
}

TEST_F(MpsServing, AnIdleClientThatIsKilledHarmsNoOther) {
  start_daemon();
  const pid_t innocent = serve_client({"--memory", "1G"});
  const pid_t killed = serve_client({"--memory", "1G", "--utilization", "0"});
  kill(killed, SIGKILL);
  EXPECT_EQ(end_of(killed), 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return !is_client(killed); }));
  EXPECT_TRUE(is_client(innocent));
}

TEST_F(MpsServing, TheOnlyClientKilledInsideAKernelWedgesTheServer) {
  const pid_t daemon = start_daemon();
  const pid_t killed = serve_client({"--memory", "1G"});
  const pid_t wedged = server();
  kill(killed, SIGKILL);
  EXPECT_EQ(end_of(killed), 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return clients().empty(); }));

  const pid_t impatient = start_client({"--memory", "1G"});
  EXPECT_TRUE(says(daemon, fmt::format("NEW CLIENT {} ", impatient)));
  kill(impatient, SIGTERM);
  EXPECT_EQ(end_of(impatient), 128 + SIGTERM) << "it was still waiting for its start";
  const pid_t hanging = start_client({"--memory", "1G"});
  EXPECT_TRUE(says(daemon, fmt::format("NEW CLIENT {} ", hanging)));
  EXPECT_EQ(text_of(fmt::format("shutdown_server {}", wedged)), "");
  EXPECT_EQ(server(), wedged) << "it does not obey";
  EXPECT_FALSE(entry_of(hanging));

  kill(wedged, SIGKILL);

  EXPECT_EQ(end_of(hanging), kMpsFailedExit);
  EXPECT_TRUE(is_client(serve_client({"--memory", "1G"}))) << "of a new server";
  EXPECT_NE(server(), wedged);
}

TEST_F(MpsServing, ClientsOfAServerThatIsKilledEnd) {
  start_daemon();
  const pid_t client = serve_client({"--memory", "1G"});
  kill(server(), SIGKILL);
  EXPECT_EQ(end_of(client), kMpsFailedExit);
  EXPECT_NE(errors_of(client).find("the MPS server was lost (806)"), std::string::npos);
}

TEST_F(MpsServing, AClientThatIsTerminatedLeavesTheServerWhole) {
  start_daemon();
  const pid_t client = serve_client({"--memory", "1G"});
  const pid_t before = server();
  EXPECT_EQ(text_of(fmt::format("terminate_client {} {}", before, getpid())),
            fmt::format("Invalid process {}!\n1\n", getpid()));
  EXPECT_EQ(text_of(fmt::format("terminate_client {} {}", before, client)), "0\n");
  EXPECT_FALSE(is_client(client));
  EXPECT_EQ(end_of(client), kMpsFailedExit);
  EXPECT_NE(errors_of(client).find("the MPS client was terminated (810)"), std::string::npos);
  EXPECT_TRUE(is_client(serve_client({"--memory", "1G"})));
  EXPECT_EQ(server(), before);
}

// A platform drains first and kills then: a client may be frozen meanwhile.
TEST_F(MpsServing, AFrozenClientIsTerminatedToo) {
  start_daemon();
  const pid_t client = serve_client({"--memory", "1G"});
  kill(client, SIGSTOP);
  EXPECT_EQ(text_of(fmt::format("terminate_client {} {}", server(), client)), "0\n");
  kill(client, SIGKILL);
  EXPECT_EQ(end_of(client), 128 + SIGKILL);
  EXPECT_TRUE(is_client(serve_client({"--memory", "1G"})));
}

TEST_F(MpsServing, TerminatingAStuckClientReturnsOnlyWhenItIsGone) {
  const pid_t daemon = start_daemon();
  const pid_t client = serve_client({"--memory", "1G", "--ignore-terminate"});
  const std::string command = fmt::format("terminate_client {} {}", server(), client);
  std::FILE* const front_end = popen(
      fmt::format("echo {} | CUDA_MPS_PIPE_DIRECTORY={} {}", command, pipe_folder(), MPS_CONTROL)
          .c_str(),
      "r");
  ASSERT_NE(front_end, nullptr);
  EXPECT_TRUE(says(daemon, "Cmd:" + command));
  EXPECT_TRUE(is_client(client));
  kill(client, SIGTERM);
  EXPECT_EQ(end_of(client), 0);
  char answer[16] = {};
  EXPECT_NE(fgets(answer, sizeof answer, front_end), nullptr);
  EXPECT_STREQ(answer, "0\n");
  EXPECT_EQ(pclose(front_end), 0);
}

TEST_F(MpsServing, QuitWaitsForTheClients) {
  const pid_t daemon = start_daemon();
  const pid_t client = serve_client({"--memory", "1G"});
  std::FILE* const front_end =
      popen(fmt::format("CUDA_MPS_PIPE_DIRECTORY={} {}", pipe_folder(), MPS_CONTROL).c_str(), "w");
  ASSERT_NE(front_end, nullptr);
  fputs("quit\n", front_end);
  fflush(front_end);
  EXPECT_TRUE(says(daemon, "Cmd:quit"));
  const pid_t late = start_client({"--memory", "1G"});
  EXPECT_EQ(end_of(late), kMpsFailedExit);
  EXPECT_NE(errors_of(late).find("(807)"), std::string::npos) << errors_of(late);
  EXPECT_TRUE(is_client(client));

  kill(client, SIGTERM);

  EXPECT_EQ(end_of(client), 0);
  EXPECT_EQ(pclose(front_end), 0);
  EXPECT_EQ(end_of(daemon), 0);
}

TEST_F(MpsServing, QuitWithATimeEndsTheClients) {
  const pid_t daemon = start_daemon();
  const pid_t client = serve_client({"--memory", "1G"});
  EXPECT_EQ(text_of("quit -t 0"), "");
  EXPECT_EQ(end_of(client), kMpsFailedExit);
  EXPECT_EQ(end_of(daemon), 0);
}

TEST_F(MpsServing, AServerIsShutDownWhenItIsIdleOrByForce) {
  start_daemon();
  EXPECT_EQ(text_of(fmt::format("start_server -uid {}", getuid())), "");
  ASSERT_TRUE(eventually([&] { return server() != 0; }));
  const pid_t idle = server();
  EXPECT_EQ(text_of(fmt::format("shutdown_server {}", idle)), "");
  EXPECT_TRUE(eventually([&] { return server() == 0; }));
  EXPECT_FALSE(entry_of(idle));

  const pid_t client = serve_client({"--memory", "1G"});
  EXPECT_EQ(text_of(fmt::format("shutdown_server {} -f", server())), "");
  EXPECT_EQ(end_of(client), kMpsFailedExit);
}

TEST_F(MpsServing, AServerOutlivesItsDaemonWithItsClients) {
  const pid_t daemon = start_daemon();
  const pid_t client = serve_client({"--memory", "1G"});
  const pid_t orphan = server();
  kill(daemon, SIGKILL);
  EXPECT_EQ(end_of(daemon), 128 + SIGKILL);
  start_daemon();
  const pid_t next = serve_client({"--memory", "1G"});
  EXPECT_NE(server(), orphan);
  EXPECT_TRUE(is_client(next));
  EXPECT_TRUE(entry_of(client));
  kill(client, SIGTERM);
  EXPECT_EQ(end_of(client), 0) << "it was served until its end";
  EXPECT_TRUE(eventually([&] { return !entry_of(orphan); }));
}

TEST_F(MpsServing, AClientFailsWithoutADaemon) {
  const pid_t client = start_client({"--memory", "1G"});
  EXPECT_EQ(end_of(client), kMpsFailedExit);
  EXPECT_NE(errors_of(client).find("cannot connect to the MPS control daemon (805)"),
            std::string::npos);
}

TEST_F(MpsServing, WithoutMpsAFaultIsAProcessesOwn) {
  auto variables = environment();
  std::erase(variables, "CUDA_MPS_PIPE_DIRECTORY=" + pipe_folder());
  const pid_t other = start({GPU_WORKLOAD, "--memory", "1G"}, variables);
  ASSERT_TRUE(eventually([&] { return entry_of(other).has_value(); }));
  const pid_t faulty = start({GPU_WORKLOAD, "--fault-after", "0s"}, variables);
  EXPECT_EQ(end_of(faulty), kFaultedExit);
  EXPECT_TRUE(entry_of(other));
  EXPECT_EQ(end_of(start({GPU_WORKLOAD, "--fault-after", "soon"}, variables)), 2);
}

}  // namespace
}  // namespace gpu_emulator
