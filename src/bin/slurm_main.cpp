#include "shims/shims.h"

int main(int argc, char** argv) {
  return gpu_platform::shims::run(argc, argv);
}
