#pragma once

namespace gpu_platform::simulation {

// `gpu-platform simulate faults [--seeds N] [--first-seed S] [--plant DEFECT] [--json]`: argv[0] is
// the word "faults". Prints the report on stdout, progress on stderr where that is a terminal.
// Returns the exit code: 0 nothing found, 1 something found, 2 usage. Should an assumption of the
// program itself break (it aborts), the command that repeats the world is printed first.
int simulate_faults_main(int argc, char** argv);

}  // namespace gpu_platform::simulation
