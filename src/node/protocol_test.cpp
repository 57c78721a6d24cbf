#include "node/protocol.h"

#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/prng.h"
#include "base/testing/hex.h"

namespace gpu_platform::node {
namespace {

model::AttemptId attempt(std::uint64_t job, std::uint32_t number) {
  return {model::JobId(job), number};
}

std::vector<Message> every_message() {
  return {Hello{},
          Launch{attempt(1, 1), false, "request"},
          Launch{attempt(1, 2), true, {}},
          Stop{attempt(UINT64_MAX, UINT32_MAX), true, UINT64_MAX, 255},
          KillTree{attempt(7, 1)},
          Forget{{attempt(1, 1), attempt(2, 3)}},
          Welcome{kProtocolVersion,
                  42,
                  Isolation::kCgroup,
                  true,
                  "/var/lib/gpu-platform-node",
                  "/sys/fs/cgroup",
                  {{Guard::kUser, true, {}}, {Guard::kFolders, false, "why"}}},
          Refused{"no"},
          Launched{attempt(1, 1), 4711},
          Exists{attempt(1, 1)},
          LaunchFailed{attempt(1, 1), "why"},
          StopSent{attempt(1, 1), true},
          TreeState{attempt(1, 1), true},
          ForgetRefused{attempt(1, 1)},
          SetLimit{attempt(1, 1), 5},
          SendSignal{attempt(1, 1), 10},
          WarnOfMemory{attempt(1, 1), 23'000, 20'480},
          OpenChannel{attempt(3, 2)},
          OpenChannel{attempt(3, 2), true},
          OpenFile{1000, "/home/ann/out"},
          RemoveOutput{{model::JobId(1), model::JobId(UINT64_MAX)}},
          RunDriver{DriverVerb::kReset, {"GPU-1", "GPU-2"}, 0, 1000, std::nullopt},
          RunDriver{DriverVerb::kPower,
                    {"GPU-1"},
                    300,
                    1,
                    BoardFiles{"/lib/libnvidia-ml.so.1", "/b/state", "/e/nvidia-smi"}},
          TimeSlices{"GPU-1", 10'000, {{attempt(1, 1), 1750}, {attempt(2, 1), 5250}}},
          TimeSlices{"GPU-2", 100, {}},
          MpsServer{"GPU-1", 1000, "/c", std::nullopt, {{attempt(1, 1), 50, 20'480}}},
          MpsState{"GPU-1", 1000, true, false, "/run/m", {attempt(1, 1)}, {}},
          MpsState{"GPU-1", 1000, false, true, {}, {}, "why"},
          GpuIsIdle{"GPU-1"}};
}

LaunchRequest a_request() {
  LaunchRequest request;
  request.boot_id = "boot";
  request.user.uid = 1000;
  request.command = {std::string_view("sh\0", 3), std::string_view("-c\0", 3)};
  request.environment = {std::string_view("A=b\0", 4)};
  request.workdir = std::string_view("/\0", 2);
  request.output = std::string_view("\0", 1);
  request.time_limit_ms = 5;
  request.grace_ms = 6;
  request.output_file_bytes = 7;
  request.output_files = 8;
  request.devices = {{195, 3}, {195, 4}};
  request.memory_bytes = 9;
  request.max_processes = 10;
  request.cpus = 11;
  request.near_cpus = "0-55,112-167";
  request.near_nodes = "0";
  request.private_folders = true;
  request.output_limit_bytes = 9;
  request.error = std::string_view("/e\0", 3);
  request.truncate_output = true;
  request.limit_signal = 10;
  request.limit_signal_before_ms = 11;
  request.limit_signal_first_only = true;
  request.prolog = std::string_view("./before\0", 9);
  request.epilog = std::string_view("/after\0", 7);
  request.takes_input = true;
  request.terminal = {132, 50};
  request.idle_timeout_ms = 12;
  request.takes_turns = true;
  return request;
}

TEST(Protocol, EveryMessageComesBackAsItWas) {
  for (const Message& message : every_message()) {
    const std::string bytes = encode(message);
    const auto decoded = decode(bytes);
    ASSERT_TRUE(decoded.has_value()) << message.index();
    EXPECT_EQ(*decoded, message);
  }
}

// A node part that is older than its daemon reads these bytes. A change of one of them counts
// kProtocolVersion up and records them anew.
TEST(Protocol, BytesOfAMessageAreThoseOfItsVersion) {
  ASSERT_EQ(kProtocolVersion, 19U);
  constexpr const char* kRecorded[] = {
      "0113",
      "020101000772657175657374",
      "0201020100",
      "03ffffffffffffffffff01ffffffff0f01ffffffffffffffffff01ff01",
      "040701",
      "050201010203",
      ("06132a01011a2f7661722f6c69622f6770752d706c6174666f726d2d6e6f64650e2f7379732f6673"
       "2f6367726f757002010100060003776879"),
      "07026e6f",
      "080101e724",
      "090101",
      "0a010103776879",
      "0b010101",
      "0c010101",
      "0d0101",
      "0e010105",
      "1101010a",
      "150101d8b30180a001",
      "0f030200",
      "0f030201",
      "10e8070d2f686f6d652f616e6e2f6f7574",
      "120201ffffffffffffffffff01",
      "130002054750552d31054750552d3200e80700",
      ("130301054750552d31ac020101162f6c69622f6c69626e76696469612d6d6c2e736f2e31082f622f7374"
       "6174650d2f652f6e76696469612d736d69"),
      "14054750552d31904e020101d60d02018229",
      "14054750552d326400",
      "16054750552d31e807022f63000101013280a00101",
      "17054750552d31e8070100062f72756e2f6d01010100",
      "17054750552d31e8070001000003776879",
      "18054750552d31"};
  const std::vector<Message> messages = every_message();
  ASSERT_EQ(messages.size(), std::size(kRecorded));
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(base::hex(encode(messages[i])), kRecorded[i]) << i;
  }
  EXPECT_EQ(base::hex(encode_channel_start({model::TerminalSize{132, 50}, 0, true})),
            "13018401320001");
  EXPECT_EQ(base::hex(encode_channel_start({std::nullopt, 8888, false})), "1300b84500");
  EXPECT_EQ(base::hex(encode_opened_file({13, {}})), "1a00");
  EXPECT_EQ(base::hex(encode_opened_file({0, "why"})), "0003776879");
}

TEST(Protocol, CutOrLengthenedMessageIsRefused) {
  for (const Message& message : every_message()) {
    const std::string bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode(std::string_view(bytes).substr(0, size)).has_value()) << message.index();
    }
    EXPECT_FALSE(decode(bytes + '\0').has_value()) << message.index();
  }
}

TEST(Protocol, UnknownMessageIsRefused) {
  std::string bytes;
  base::Encoder(bytes).u64(std::variant_size_v<Message> + 1);
  EXPECT_FALSE(decode(bytes).has_value());
}

TEST(Protocol, StartOfAChannelComesBackAsItWasAndIsRefusedWhenCut) {
  const ChannelStart starts[] = {
      {}, {model::TerminalSize{132, 50}, 0, true}, {std::nullopt, 8888, false}};
  for (const ChannelStart& start : starts) {
    const std::string bytes = encode_channel_start(start);
    EXPECT_EQ(decode_channel_start(bytes), start);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_channel_start(std::string_view(bytes).substr(0, size)).has_value());
    }
    EXPECT_FALSE(decode_channel_start(bytes + '\0').has_value());
  }
}

TEST(Protocol, ConnectionWithATerminalIsRefused) {
  EXPECT_FALSE(decode_channel_start(encode_channel_start({model::TerminalSize{80, 24}, 80, false}))
                   .has_value());
}

TEST(Protocol, FilesAreNamedByAbsolutePathsOfBoundedLength) {
  for (const std::string& path : {std::string(), std::string("out"), std::string("/a\0b", 4),
                                  "/" + std::string(kMaxPath, 'x')}) {
    EXPECT_FALSE(decode(encode(OpenFile{1000, path})).has_value()) << path;
  }
}

TEST(Protocol, TurnsHaveALengthAndEachJobAWeight) {
  const TimeSlices good{"GPU-1", 100, {{attempt(1, 1), 1}}};
  EXPECT_TRUE(decode(encode(good)).has_value());
  TimeSlices bad = good;
  bad.slice_ms = 0;
  EXPECT_FALSE(decode(encode(bad)).has_value());
  bad.slice_ms = kMaxSliceMs + 1;
  EXPECT_FALSE(decode(encode(bad)).has_value());
  bad = good;
  bad.jobs.front().weight = 0;
  EXPECT_FALSE(decode(encode(bad)).has_value());
  bad = good;
  bad.jobs.assign(kMaxTimeSliceJobs + 1, good.jobs.front());
  EXPECT_FALSE(decode(encode(bad)).has_value());
  bad = good;
  bad.gpu = "../../etc";
  EXPECT_FALSE(decode(encode(bad)).has_value());
}

TEST(Protocol, RequestToTheDriverNamesGpusAndFilesThatCanBeNothingElse) {
  const RunDriver good{DriverVerb::kReset, {"GPU-1"}, 0, 1000, BoardFiles{"/a", "/b", "/c"}};
  EXPECT_TRUE(decode(encode(good)).has_value());
  for (const std::string& uuid :
       {std::string(), std::string("--fd"), std::string("GPU-1,GPU-2"), std::string("/dev/sda"),
        std::string("GPU 1"), std::string(kMaxUuid + 1, 'x')}) {
    RunDriver bad = good;
    bad.gpus = {uuid};
    EXPECT_FALSE(decode(encode(bad)).has_value()) << uuid;
  }
  RunDriver bad = good;
  bad.gpus.clear();
  EXPECT_FALSE(decode(encode(bad)).has_value());
  bad.gpus.assign(kMaxDriverGpus + 1, "GPU-1");
  EXPECT_FALSE(decode(encode(bad)).has_value());
  bad = good;
  bad.deadline_ms = 0;
  EXPECT_FALSE(decode(encode(bad)).has_value());
  bad = good;
  bad.watts = 1;  // nothing but a power limit has any
  EXPECT_FALSE(decode(encode(bad)).has_value());
  bad = good;
  bad.board->library = "libnvidia-ml.so.1";
  EXPECT_FALSE(decode(encode(bad)).has_value());
}

TEST(Protocol, AnswerOfTheDriverComesBackAsItWasAndIsRefusedWhenCut) {
  const DriverAnswer answer{{{"GPU-1", {}}, {"GPU-2", "it is in use"}}, "1 of 2 GPUs reset"};
  const std::string bytes = encode_driver_answer(answer);
  EXPECT_EQ(decode_driver_answer(bytes), answer);
  const DriverAnswer refused = refused_answer({"GPU-1"}, "the rules");
  EXPECT_TRUE(refused.is_refused);
  EXPECT_EQ(decode_driver_answer(encode_driver_answer(refused)), refused);
  const DriverAnswer untried = untried_answer({"GPU-1"}, "it is busy");
  EXPECT_TRUE(untried.is_untried);
  EXPECT_EQ(decode_driver_answer(encode_driver_answer(untried)), untried);
  EXPECT_FALSE(decode_driver_answer(bytes + "x").has_value());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_driver_answer(bytes.substr(0, size)).has_value());
  }
  EXPECT_FALSE(decode_driver_answer(encode_driver_answer({})).has_value());
}

TEST(Protocol, LongestAnswerOfTheDriverIsOneThatIsRead) {
  const std::vector<std::string> gpus(kMaxDriverGpus, std::string(kMaxUuid, 'G'));
  DriverAnswer answer = failed_answer(gpus, std::string(10'000, 'x'));
  answer.detail = std::string(10'000, 'y');
  EXPECT_TRUE(decode_driver_answer(encode_driver_answer(answer)).has_value());
}

TEST(Protocol, VerbsOfTheDriverHaveNames) {
  for (std::size_t i = 0; i < kDriverVerbs; ++i) {
    const auto verb = static_cast<DriverVerb>(i);
    EXPECT_EQ(parse_driver_verb(to_string(verb)), verb);
  }
  EXPECT_FALSE(parse_driver_verb("").has_value());
}

TEST(Protocol, WordOnAnOpenedFileComesBackAsItWasAndIsRefusedWhenCut) {
  for (const OpenedFile& opened : {OpenedFile{}, OpenedFile{13, {}}, OpenedFile{0, "why"}}) {
    const std::string bytes = encode_opened_file(opened);
    EXPECT_EQ(decode_opened_file(bytes), opened);
    EXPECT_FALSE(decode_opened_file(bytes + "x").has_value());
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_opened_file(bytes.substr(0, size)).has_value());
    }
  }
}

TEST(Protocol, AttemptZeroIsRefused) {
  EXPECT_FALSE(decode(encode(Exists{attempt(0, 1)})).has_value());
  EXPECT_FALSE(decode(encode(Exists{attempt(1, 0)})).has_value());
}

TEST(Protocol, ALimitOfNothingIsRefused) {
  EXPECT_FALSE(decode(encode(SetLimit{attempt(1, 1), 0})).has_value());
}

TEST(Protocol, ASignalThatEndsAJobIsRefused) {
  EXPECT_FALSE(decode(encode(SendSignal{attempt(1, 1), 9})).has_value());
  EXPECT_FALSE(decode(encode(SendSignal{attempt(1, 1), 0})).has_value());
}

TEST(Protocol, ForgetIsBounded) {
  Forget forget;
  EXPECT_FALSE(decode(encode(forget)).has_value());
  forget.attempts.assign(kMaxForgets, attempt(UINT64_MAX, UINT32_MAX));
  EXPECT_TRUE(decode(encode(forget)).has_value());
  forget.attempts.push_back(attempt(1, 1));
  EXPECT_FALSE(decode(encode(forget)).has_value());
}

TEST(Protocol, RemovalsOfOutputAreBoundedAndNameJobs) {
  RemoveOutput removal;
  EXPECT_FALSE(decode(encode(removal)).has_value());
  removal.jobs.assign(kMaxOutputRemovals, model::JobId(UINT64_MAX));
  EXPECT_TRUE(decode(encode(removal)).has_value());
  removal.jobs.emplace_back(1);
  EXPECT_FALSE(decode(encode(removal)).has_value());
  EXPECT_FALSE(decode(encode(RemoveOutput{{model::JobId()}})).has_value());
}

TEST(Protocol, MpsLimitsAreWithinTheGpus) {
  const auto with = [](std::uint32_t percent, std::uint32_t memory_mib) {
    return encode(
        MpsServer{"GPU-1", 1000, "/c", std::nullopt, {{attempt(1, 1), percent, memory_mib}}});
  };
  EXPECT_TRUE(decode(with(1, 1)).has_value());
  EXPECT_TRUE(decode(with(100, UINT32_MAX)).has_value());
  EXPECT_FALSE(decode(with(0, 1)).has_value());
  EXPECT_FALSE(decode(with(101, 1)).has_value());
  EXPECT_FALSE(decode(with(50, 0)).has_value());
  EXPECT_FALSE(decode(encode(MpsServer{"../x", 1000, "/c", std::nullopt, {}})).has_value());
  EXPECT_FALSE(decode(encode(MpsServer{"GPU-1", 1000, "c", std::nullopt, {}})).has_value());
  EXPECT_FALSE(decode(encode(MpsState{"GPU-1", 1000, true, false, {}, {}, {}})).has_value());
  EXPECT_FALSE(decode(encode(MpsState{"GPU-1", 1000, true, true, "/run/m", {}, {}})).has_value());
}

TEST(Protocol, MpsFolderIsShortEnoughForADaemon) {
  const std::string folder =
      mps_folder("0123456789ab", "MIG-2f9a01c7-d3e8-4b52-9c00-1234567890ab", UINT32_MAX);
  EXPECT_EQ(folder, "/run/gpu-platform-mps/0123456789ab/2f9a01c7d3e84b52-4294967295");
  EXPECT_LE(folder.size() + std::string_view("/pipe").size(), 80U);
  EXPECT_EQ(mps_name("GPU-1", 0), "1-0");
}

TEST(Protocol, UnknownGuardIsRefused) {
  Welcome welcome;
  welcome.guards = {{static_cast<Guard>(kGuards), true, {}}};
  EXPECT_FALSE(decode(encode(welcome)).has_value());
  welcome.guards.assign(kGuards + 1, {Guard::kUser, true, {}});
  EXPECT_FALSE(decode(encode(welcome)).has_value());
}

TEST(Protocol, LongTextsAreCutWhenSent) {
  const auto decoded = decode(encode(Refused{std::string(kMaxText + 1, 'x')}));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<Refused>(*decoded).why.size(), kMaxText);
}

TEST(Request, ComesBackAsItWas) {
  const LaunchRequest request = a_request();
  const std::string bytes = encode_request(request);
  const auto decoded = decode_request(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, request);
}

LaunchRequest a_request_with_an_image() {
  const auto c_text = []<std::size_t kSize>(const char(&text)[kSize]) {
    return std::string_view(text, kSize);
  };
  LaunchRequest request = a_request();
  request.terminal.reset();
  request.hide_processes = true;
  request.start_timeout_ms = 300;
  request.container.image = c_text("debian:12");
  request.container.mounts = {c_text("/a:/b")};
  request.container.tmpfs = {c_text("/t:1M")};
  request.container.shm_bytes = 64;
  request.container.network = 1;
  request.container.pull = 2;
  request.container.entrypoint = c_text("/e");
  request.container.workdir = c_text("/w");
  request.container.platform = c_text("linux/amd64");
  request.container.annotations = {c_text("k=v")};
  request.container.gpus = {c_text("GPU-1")};
  request.container.board_files = {c_text("/x:/y")};
  return request;
}

TEST(Request, BytesAreThoseOfItsVersion) {
  EXPECT_EQ(base::hex(encode_request(a_request())),
            "1304626f6f74e807120203736800032d63000104413d6200022f0001000506070802c30103c30104"
            "090a0b0c302d35352c3131322d31363701300109032f6500010a0b01092e2f6265666f726500072f"
            "61667465720001018401320c00b0ea01010000000000000100010001000000000101000100");
  const std::string bytes = encode_request(a_request_with_an_image());
  EXPECT_EQ(base::hex(bytes),
            "1304626f6f74e807120203736800032d63000104413d6200022f0001000506070802c30103c30104"
            "090a0b0c302d35352c3131322d31363701300109032f6500010a0b01092e2f6265666f726500072f"
            "61667465720001000c01ac020a64656269616e3a31320001062f613a2f620001062f743a314d0040"
            "0102032f6500032f77000c6c696e75782f616d6436340001046b3d760001064750552d310001062f"
            "783a2f79000101000100");
  EXPECT_EQ(decode_request(bytes), a_request_with_an_image());
}

TEST(Request, TextsForExecMustEndWithTheirOnlyNul) {
  LaunchRequest request = a_request();
  request.command = {"sh"};
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
  request.command = {std::string_view("s\0h\0", 4)};
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
  request = a_request();
  request.environment = {std::string_view()};
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
  request = a_request();
  request.workdir = "/";
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
}

TEST(Request, AnMpsClientNamesItsGpuAndTheProgram) {
  LaunchRequest request = a_request();
  request.mps_gpu = std::string_view("GPU-1\0", 6);
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
  request.mps_program = std::string_view("/bin/x\0", 7);
  EXPECT_EQ(decode_request(encode_request(request)), request);
  request.mps_gpu = std::string_view("../x\0", 5);
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
}

TEST(Request, EmptyCommandIsRefused) {
  LaunchRequest request = a_request();
  request.command.clear();
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
  request.command = {std::string_view("\0", 1)};
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
}

TEST(Request, DevicesAreBounded) {
  LaunchRequest request = a_request();
  request.devices.assign(kMaxDevices, {195, 0});
  EXPECT_TRUE(decode_request(encode_request(request)).has_value());
  request.devices.push_back({195, 0});
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
}

TEST(Request, NumberListsHaveNothingElse) {
  LaunchRequest request = a_request();
  request.near_cpus = "0-3;4";
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
  const std::string long_list(kMaxNumberList + 1, '1');
  request = a_request();
  request.near_nodes = long_list;
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
}

TEST(Request, OneThatIsTooLargeIsRefused) {
  LaunchRequest request = a_request();
  const std::string big = std::string(kMaxRequest, 'x') + '\0';
  request.environment = {big};
  EXPECT_FALSE(decode_request(encode_request(request)).has_value());
}

// For any bytes: no crash, nothing read past the end (under sanitizers), and what is accepted
// is exactly what it says when written again.
TEST(ProtocolFuzz, DamagedAndRandomBytesAreRefusedOrMeanWhatTheySay) {
  constexpr int kRounds = 200'000;
  base::Prng random(20261121);
  const std::vector<Message> messages = every_message();
  const std::string request = encode_request(a_request());
  int accepted = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = round % 3 == 0   ? std::string(random.below(64), '\0')
                        : round % 3 == 1 ? encode(messages[random.below(messages.size())])
                                         : request;
    const std::uint64_t changes = round % 3 == 0 ? bytes.size() : 1 + random.below(4);
    for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    if (const auto message = decode(bytes)) {
      ++accepted;
      const std::string again = encode(*message);
      EXPECT_EQ(decode(again), message);
    }
    if (const auto decoded = decode_request(bytes)) {
      ++accepted;
      EXPECT_EQ(decode_request(encode_request(*decoded)), decoded);
    }
  }
  EXPECT_GT(accepted, 100);  // the damage is not so great that nothing is ever tried
}

TEST(StopSignal, FitsIntoTheBitsOfASignal) {
  for (const bool without_grace : {false, true}) {
    const StopSignal stop{without_grace, 123'456'789, 200};
    EXPECT_EQ(unpack(pack(stop)), stop);
  }
  EXPECT_EQ(unpack(pack({false, UINT64_MAX, 1})).grace_ms, (std::uint64_t{1} << 48) - 1);
}

TEST(WarnOfMemory, FitsIntoTheBitsOfASignal) {
  const WarnOfMemory warning{{}, UINT32_MAX, 20'480};
  EXPECT_EQ(unpack_warning(pack(warning)), warning);
  EXPECT_EQ(minutes_of_idle(warning), std::nullopt);
  EXPECT_EQ(minutes_of_idle(unpack_warning(pack(warning_of_idle({}, 10)))), 10U);
  EXPECT_EQ(minutes_of_idle(unpack_warning(pack(warning_of_idle({}, 0)))), 0U);
}

TEST(AttemptName, OnlyItsOwnFormIsRead) {
  EXPECT_EQ(attempt_name(attempt(42, 3)), "42-3");
  EXPECT_EQ(parse_attempt_name("42-3"), attempt(42, 3));
  for (const char* wrong : {"", "-", "42", "42-", "-3", "0-1", "1-0", "01-1", "1-01", "1-1x", "a-1",
                            "1-4294967296", "99999999999999999999-1", "node", ".."}) {
    EXPECT_FALSE(parse_attempt_name(wrong).has_value()) << wrong;
  }
}

TEST(RootToken, DiffersByPathAndFileSystem) {
  EXPECT_NE(root_token("/a", 1, 2), root_token("/b", 1, 2));
  EXPECT_NE(root_token("/a", 1, 2), root_token("/a", 2, 2));
  EXPECT_NE(root_token("/a", 1, 2), root_token("/a", 1, 3));
  EXPECT_EQ(root_token("/a", 1, 2), root_token("/a", 1, 2));
}

}  // namespace
}  // namespace gpu_platform::node
