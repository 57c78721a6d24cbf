#include "node/mps/control_words.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

TEST(MpsWords, CommandsAreThoseOfTheControlDaemon) {
  EXPECT_EQ(kMpsServers, "get_server_list");
  EXPECT_EQ(mps_clients_of(77), "get_client_list 77");
  EXPECT_EQ(mps_end_client(77, 81), "terminate_client 77 81");
  EXPECT_EQ(mps_end_server(77), "shutdown_server 77");
  EXPECT_EQ(mps_quit(1), "quit -t 1");
}

TEST(MpsWords, LimitIsOfTheNextServerOrOfALivingOne) {
  EXPECT_EQ(mps_set_percent(kMpsDefault, 30), "set_default_active_thread_percentage 30");
  EXPECT_EQ(mps_set_percent(77, 30), "set_active_thread_percentage 77 30");
  EXPECT_EQ(mps_get_percent(kMpsDefault), "get_default_active_thread_percentage");
  EXPECT_EQ(mps_get_percent(77), "get_active_thread_percentage 77");
  EXPECT_EQ(mps_set_memory(kMpsDefault, 20'480), "set_default_device_pinned_mem_limit 0 20480M");
  EXPECT_EQ(mps_set_memory(77, 20'480), "set_device_pinned_mem_limit 77 0 20480M");
  EXPECT_EQ(mps_get_memory(kMpsDefault), "get_default_device_pinned_mem_limit 0");
  EXPECT_EQ(mps_get_memory(77), "get_device_pinned_mem_limit 77 0");
}

TEST(MpsWords, FrontEndSaysThatItFoundNoDaemon) {
  EXPECT_EQ(error_in_mps_contact(""), "");
  EXPECT_EQ(error_in_mps_contact("Server 77 not found\n"), "");
  EXPECT_EQ(error_in_mps_contact("Cannot find MPS control daemon process\n"),
            "Cannot find MPS control daemon process");
}

TEST(MpsWords, ListHasOneProcessALine) {
  EXPECT_TRUE(parse_mps_pids("").pids.empty());
  EXPECT_EQ(parse_mps_pids("4711\n").pids, std::vector<int>{4711});
  EXPECT_EQ(parse_mps_pids("4711\n4712").pids, (std::vector<int>{4711, 4712}));
  EXPECT_EQ(parse_mps_pids("4711\n").why, "");
}

TEST(MpsWords, WordsInThePlaceOfAListAreAnError) {
  EXPECT_EQ(parse_mps_pids("Server 77 not found\n").why, "Server 77 not found");
  EXPECT_EQ(parse_mps_pids("4711\nUnknown command \"x\"\n").why, "Unknown command \"x\"");
  EXPECT_TRUE(parse_mps_pids("4711\nUnknown command \"x\"\n").pids.empty());
  for (const char* const no_pid : {"0", "-3", "99999999999", "7 8", "\x1b[7m"}) {
    EXPECT_FALSE(parse_mps_pids(no_pid).why.empty()) << no_pid;
  }
}

TEST(MpsWords, PercentageIsReadBack) {
  EXPECT_EQ(error_in_mps_percent("30.0\n", 30), "");
  EXPECT_EQ(error_in_mps_percent("30\n", 30), "");
  EXPECT_EQ(error_in_mps_percent("100.0\n30.0\n", 30), "");
  EXPECT_EQ(error_in_mps_percent("100.0\n", 30), "did not take 30 % (it says 100.0)");
  EXPECT_EQ(error_in_mps_percent("30.5\n", 30), "did not take 30 % (it says 30.5)");
  EXPECT_EQ(error_in_mps_percent("", 30), "did not take 30 % (it says nothing)");
  EXPECT_EQ(error_in_mps_percent("Server 77 not found\n", 30),
            "did not take 30 % (it says Server 77 not found)");
}

TEST(MpsWords, MemoryIsReadBackInTheUnitInWhichItIsSaid) {
  EXPECT_EQ(error_in_mps_memory("1023M\n", 1023), "");
  EXPECT_EQ(error_in_mps_memory("1G\n", 1024), "");
  EXPECT_EQ(error_in_mps_memory("1G\n", 1536), "");
  EXPECT_EQ(error_in_mps_memory("20480M\n", 20'480), "");
  EXPECT_EQ(error_in_mps_memory("4194303G\n", UINT32_MAX), "");
  EXPECT_EQ(error_in_mps_memory("2G\n", 1536), "did not take 1536 MiB (it says 2G)");
  EXPECT_EQ(error_in_mps_memory("3M\n", 3072), "did not take 3072 MiB (it says 3M)");
  EXPECT_EQ(error_in_mps_memory("", 512), "did not take 512 MiB (it says nothing)");
  EXPECT_EQ(error_in_mps_memory("20", 20'480), "did not take 20480 MiB (it says 20)");
}

}  // namespace
}  // namespace gpu_platform::node
