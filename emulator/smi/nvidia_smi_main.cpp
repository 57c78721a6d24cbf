#include <string>
#include <vector>

#include "smi/nvidia_smi.h"

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  return gpu_emulator::run_nvidia_smi(arguments);
}
