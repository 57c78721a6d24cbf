#pragma once

#include <string>

namespace gpu_platform::bin {

// The places of the program's other executables and libraries: beside it (a build folder), or in
// ../libexec/gpu-platform and ../lib/gpu-platform of it (an installed tree).
struct ProgramPaths {
  std::string node;  // launcher and supervisors
  std::string probe;
  std::string listener;
  std::string emulator;           // gpu-emulator
  std::string gpu_register;       // gpu-emulator-register
  std::string emulated_nvml;      // the emulator's libnvidia-ml.so.1
  std::string emulated_programs;  // the folder of its nvidia-smi
};

ProgramPaths find_program_paths();

}  // namespace gpu_platform::bin
