#include "bin/emulated_boards.h"

#include <gtest/gtest.h>

#include <string>

#include "bin/board_registrar.h"
#include "bin/folder_fixture.h"
#include "os/testing/eventually.h"

namespace gpu_platform::bin {
namespace {

// "name:board" of each; else the error's field.
std::string emulated_by(std::string_view value) {
  const auto nodes = parse_emulate(value);
  if (!nodes) return nodes.error().field;
  std::string text;
  for (const EmulatedNode& node : *nodes) text += node.name + ":" + node.board + " ";
  return text;
}

TEST(EmulatedBoards, AreCountedByBoardOverTheWholeValue) {
  EXPECT_EQ(emulated_by("dgx-h100"), "dgx-h100-1:dgx-h100 ");
  EXPECT_EQ(emulated_by("2xl4,dgx-a100,l4"), "l4-1:l4 l4-2:l4 dgx-a100-1:dgx-a100 l4-3:l4 ");
  EXPECT_EQ(emulated_by("a100-pcie-x4"), "a100-pcie-x4-1:a100-pcie-x4 ");
}

TEST(EmulatedBoards, WrongValuesAreRefused) {
  for (const char* value : {"", "0xl4", "1025xl4", "3x", "l4,,l4"}) {
    EXPECT_EQ(emulated_by(value), "--emulate") << value;
  }
}

TEST(EmulatedBoards, AreMadeByTheEmulator) {
  const TestFolder folder;
  const std::string good = folder.script("good", "echo \"$@\" > " + folder.path() + "/asked");
  EXPECT_TRUE(create_board({"l4-1", "l4"}, "/data/l4-1", good));
  EXPECT_EQ(folder.read("asked"), "create --board l4 --node-name l4-1 --dir /data/l4-1\n");
  const std::string bad = folder.script("bad", "echo 'no such board' >&2; exit 1");
  const auto made = create_board({"x-1", "x"}, "/data/x-1", bad);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "board x: no such board");
  EXPECT_FALSE(create_board({"x-1", "x"}, "/data/x-1", folder.path() + "/none"));
}

TEST(BoardRegistrar, TellsItsProgramOfEachProcess) {
  const TestFolder folder;
  const std::string program = folder.script("register", "exec cat > " + folder.path() + "/entered");
  BoardRegistrar registrar(program, "/data/emulated");
  registrar.enter("l4-1", {"GPU-a", "GPU-b"}, 4711);
  EXPECT_TRUE(os::eventually([&] {
    return folder.read("entered") == "enter /data/emulated/l4-1/state GPU-a,GPU-b 4711\n";
  }));
}

TEST(BoardRegistrar, WithoutItsProgramNothingIsHeldUp) {
  BoardRegistrar registrar("/no/such/program", "/data/emulated");
  registrar.enter("l4-1", {"GPU-a"}, 4711);
}

}  // namespace
}  // namespace gpu_platform::bin
