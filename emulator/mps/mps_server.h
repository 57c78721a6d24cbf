#pragma once

namespace gpu_emulator {

// Serves the clients of a control daemon until the daemon has it end, or is gone with the last
// client. Returns the exit code of the program. `link`: the socket to the daemon. The server is on
// its GPUs all the time.
//
// A client that vanishes while its utilization is above 0 was inside a kernel: every other client
// gets an illegal address. If there is no other, the server is wedged: it takes clients and never
// answers them, and ends only by force.
int run_mps_server(int link);

}  // namespace gpu_emulator
