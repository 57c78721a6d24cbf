#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The words in which an MPS control daemon is spoken to, and what it says. Pure.
//
// A command is one line. The daemon answers most of them with lines, and some with nothing. Its
// front end exits with 0 whatever happens, and a value that the daemon does not like is dropped
// without a word. So each value that was set is read back, and an answer that is no value is an
// error in words ("Server 7 not found"). Checked with nvidia-cuda-mps-control 535.261.03.

namespace gpu_platform::node {

// ---- commands, each without its line feed

inline constexpr std::string_view kMpsServers = "get_server_list";
std::string mps_clients_of(int server);
// Asks for all work of a client to be ended; the client then ends with an error.
std::string mps_end_client(int server, int client);
// Lets a server go once it has no client; it accepts no new one.
std::string mps_end_server(int server);
// Ends the daemon and its servers, and those that still have clients after so long.
std::string mps_quit(std::uint32_t seconds);

// A limit of the daemon, for its next server; or of a server, for its next clients.
inline constexpr int kMpsDefault = 0;  // in the place of a server
std::string mps_set_percent(int server, std::uint32_t percent);
std::string mps_get_percent(int server);
std::string mps_set_memory(int server, std::uint32_t memory_mib);
std::string mps_get_memory(int server);

// ---- answers

// Returns the front end's own line if it did not reach the daemon ("Cannot find MPS control daemon
// process"); empty if it did.
std::string error_in_mps_contact(std::string_view answer);

// Returns the last line of a text in plain characters, cut to what can be shown.
std::string last_mps_line(std::string_view text);

// What a list of processes says. `why`: it is none, and this is what was said instead.
struct MpsPids {
  std::vector<int> pids;
  std::string why;
};
MpsPids parse_mps_pids(std::string_view answer);

// Returns why an answer to a question for a limit is not this limit ("did not take 30 % (it says
// 100.0)"); empty if it is. Memory is said in whole GiB from 1 GiB on, rounded down: "1G" also
// stands for 1536 MiB.
std::string error_in_mps_percent(std::string_view answer, std::uint32_t percent);
std::string error_in_mps_memory(std::string_view answer, std::uint32_t memory_mib);

}  // namespace gpu_platform::node
