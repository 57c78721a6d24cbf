#pragma once

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <utility>

#include "nvml/nvml_exports.h"
#include "tool/node_files.h"

// The emulated library on a board of its own, as a stranger's program meets it: symbols by dlsym.

namespace gpu_emulator {

class Library : public ::testing::Test {
 protected:
  void SetUp() override { open_board("dgx-h100"); }
  void TearDown() override { close_board(); }

  // Replaces the board before it. The library keeps its mapping as long as it is loaded, so it is
  // loaded anew.
  void open_board(const std::string& name) {
    close_board();
    char path[] = "/tmp/library_test.XXXXXX";
    root_ = mkdtemp(path);
    const auto board = load_board(fmt::format("{}/{}.yaml", BOARDS_DIR, name));
    ASSERT_TRUE(board) << board.error().message;
    ASSERT_TRUE(create_node(*board, "n1", root_ + "/emulated/n1"));
    setenv("GPU_EMULATOR_STATE", state_path().c_str(), 1);
    library_ = dlopen(EMULATED_NVML, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void close_board() {
    if (library_ != nullptr) dlclose(std::exchange(library_, nullptr));
    unsetenv("GPU_EMULATOR_STATE");
    if (!root_.empty()) std::filesystem::remove_all(std::exchange(root_, {}));
  }

  std::string state_path() const { return root_ + "/emulated/n1/state"; }
  StateFile state() { return std::move(*StateFile::open(state_path(), StateFile::Access::kWrite)); }

  // The function of that name, called as its declaration says.
  template <class Function>
  Function* find(const char* name) const {
    void* symbol = dlsym(library_, name);
    EXPECT_NE(symbol, nullptr) << name;
    return reinterpret_cast<Function*>(symbol);
  }

  void initialise() { ASSERT_EQ(find<decltype(nvmlInit_v2)>("nvmlInit_v2")(), kSuccess); }

  nvmlDevice_t gpu(unsigned index) {
    nvmlDevice_t device = nullptr;
    const auto by_index =
        find<decltype(nvmlDeviceGetHandleByIndex_v2)>("nvmlDeviceGetHandleByIndex_v2");
    EXPECT_EQ(by_index(index, &device), kSuccess);
    return device;
  }

  std::string root_;
  void* library_ = nullptr;
};

}  // namespace gpu_emulator
