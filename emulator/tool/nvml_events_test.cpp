#include <chrono>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "tool/faults.h"
#include "tool/library_fixture.h"

// Faults, as processes that wait for events and processes that poll see them.

namespace gpu_emulator {
namespace {

constexpr unsigned long long kXid = 0x8;
constexpr unsigned long long kDoubleBit = 0x2;
constexpr unsigned long long kRecovery = 0x8000;
constexpr unsigned kLongMs = 10'000;

class Events : public Library {
 protected:
  void SetUp() override {
    open_board("hgx-h200");  // whose driver tells of all of them
    initialise();
    create_ = find<decltype(nvmlEventSetCreate)>("nvmlEventSetCreate");
    register_ = find<decltype(nvmlDeviceRegisterEvents)>("nvmlDeviceRegisterEvents");
    wait_ = find<decltype(nvmlEventSetWait_v2)>("nvmlEventSetWait_v2");
    free_ = find<decltype(nvmlEventSetFree)>("nvmlEventSetFree");
    ASSERT_EQ(create_(&set_), kSuccess);
  }

  std::uint32_t recovery_action(unsigned index) {
    const auto read = find<decltype(nvmlDeviceGetFieldValues)>("nvmlDeviceGetFieldValues");
    FieldValue value{.field_id = 230};
    EXPECT_EQ(read(gpu(index), 1, &value), kSuccess);
    EXPECT_EQ(value.nvml_return, kSuccess);
    return value.value.uint_value;
  }

  decltype(nvmlEventSetCreate)* create_ = nullptr;
  decltype(nvmlDeviceRegisterEvents)* register_ = nullptr;
  decltype(nvmlEventSetWait_v2)* wait_ = nullptr;
  decltype(nvmlEventSetFree)* free_ = nullptr;
  nvmlEventSet_t set_ = nullptr;
};

TEST_F(Events, WakeAWaiterThatSleeps) {
  ASSERT_EQ(register_(gpu(3), kXid, set_), kSuccess);
  EventData event{};
  std::promise<void> begins;
  auto waiter = std::async(std::launch::async, [&] {
    begins.set_value();
    return wait_(set_, &event, kLongMs);
  });
  begins.get_future().wait();
  StateFile file = state();

  ASSERT_TRUE(inject_xid(file, 3, 48));

  EXPECT_EQ(waiter.get(), kSuccess);
  EXPECT_EQ(event.device, gpu(3));
  EXPECT_EQ(event.event_type, kXid);
  EXPECT_EQ(event.event_data, 48u);
  EXPECT_EQ(event.gpu_instance_id, 0xffffffffu);
}

TEST_F(Events, AreKeptInOrderForOneWhoComesLate) {
  ASSERT_EQ(register_(gpu(0), kXid | kRecovery, set_), kSuccess);
  StateFile file = state();
  ASSERT_TRUE(inject_xid(file, 0, 31));
  ASSERT_TRUE(inject_xid(file, 0, 95));
  EventData event{};

  EXPECT_EQ(wait_(set_, &event, 0), kSuccess);
  EXPECT_EQ(event.event_data, 31u);
  EXPECT_EQ(wait_(set_, &event, 0), kSuccess);
  EXPECT_EQ(event.event_data, 95u);
  EXPECT_EQ(wait_(set_, &event, 0), kSuccess);
  EXPECT_EQ(event.event_type, kRecovery);
  EXPECT_EQ(event.event_data, 1u) << "GPU reset";
  EXPECT_EQ(wait_(set_, &event, 0), kTimeout);
}

TEST_F(Events, ComeOnlyFromRegisteredGpusAndOfRegisteredTypes) {
  ASSERT_EQ(register_(gpu(1), kDoubleBit, set_), kSuccess);
  StateFile file = state();
  ASSERT_TRUE(inject_xid(file, 1, 74));
  ASSERT_TRUE(inject_ecc(file, 2, kEccUncorrected, 1));
  EventData event{};
  EXPECT_EQ(wait_(set_, &event, 0), kTimeout);

  ASSERT_TRUE(inject_ecc(file, 1, kEccUncorrected, 1));

  EXPECT_EQ(wait_(set_, &event, 0), kSuccess);
  EXPECT_EQ(event.event_type, kDoubleBit);
}

TEST_F(Events, FromBeforeTheRegistrationDoNotCount) {
  StateFile file = state();
  ASSERT_TRUE(inject_xid(file, 0, 48));
  ASSERT_EQ(register_(gpu(0), kXid, set_), kSuccess);
  EventData event{};

  EXPECT_EQ(wait_(set_, &event, 0), kTimeout);
}

TEST_F(Events, ThatOnlyInformAreNoXidEvents) {
  ASSERT_EQ(register_(gpu(0), kXid, set_), kSuccess);
  StateFile file = state();
  EventData event{};

  const auto said = inject_xid(file, 0, 63);

  ASSERT_TRUE(said);
  EXPECT_NE(said->find("only informs"), std::string::npos);
  EXPECT_EQ(wait_(set_, &event, 0), kTimeout);
  EXPECT_EQ(recovery_action(0), 0u);
}

TEST_F(Events, OfAnUnknownXidSayNineHundredNinetyNine) {
  ASSERT_EQ(register_(gpu(0), kXid, set_), kSuccess);
  StateFile file = state();
  ASSERT_TRUE(inject_xid(file, 0, 500));
  EventData event{};

  EXPECT_EQ(wait_(set_, &event, 0), kSuccess);
  EXPECT_EQ(event.event_data, 999u);
}

TEST_F(Events, TellOfALostGpuOnceAndOfTheXidBefore) {
  ASSERT_EQ(register_(gpu(0), kXid, set_), kSuccess);
  StateFile file = state();
  ASSERT_TRUE(inject_xid(file, 0, 79));
  EventData event{};

  EXPECT_EQ(wait_(set_, &event, 0), kSuccess);
  EXPECT_EQ(event.event_data, 79u);
  EXPECT_EQ(wait_(set_, &event, 0), kGpuIsLost);
  EXPECT_EQ(wait_(set_, &event, 0), kTimeout);
  ASSERT_TRUE(clear_faults(file, 0));
  EXPECT_EQ(wait_(set_, &event, 0), kTimeout);
  ASSERT_TRUE(inject_lost(file, 0));
  EXPECT_EQ(wait_(set_, &event, 0), kGpuIsLost);
}

TEST_F(Events, TimeOutInTheirTime) {
  ASSERT_EQ(register_(gpu(0), kXid, set_), kSuccess);
  EventData event{};
  const auto begin = std::chrono::steady_clock::now();

  EXPECT_EQ(wait_(set_, &event, 30), kTimeout);

  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
}

TEST_F(Events, LeaveOthersFreeToPollWhileOneWaits) {
  ASSERT_EQ(register_(gpu(0), kXid, set_), kSuccess);
  EventData event{};
  auto waiter = std::async(std::launch::async, [&] { return wait_(set_, &event, kLongMs); });
  const auto power = find<decltype(nvmlDeviceGetPowerUsage)>("nvmlDeviceGetPowerUsage");
  unsigned milliwatts = 0;

  for (int i = 0; i < 100; ++i) ASSERT_EQ(power(gpu(0), &milliwatts), kSuccess);
  StateFile file = state();
  ASSERT_TRUE(inject_xid(file, 0, 46));

  EXPECT_EQ(waiter.get(), kSuccess);
}

TEST_F(Events, AreThoseOfTheDriversBranch) {
  const auto types_of = [&](const char* board) {
    open_board(board);
    initialise();
    unsigned long long types = 0;
    find<decltype(nvmlDeviceGetSupportedEventTypes)>("nvmlDeviceGetSupportedEventTypes")(gpu(0),
                                                                                         &types);
    return types;
  };

  EXPECT_EQ(types_of("dgx-h100") & 0xfe00, 0u) << "550";
  EXPECT_EQ(types_of("dgx-a100") & kRecovery, kRecovery) << "570";
}

TEST_F(Events, RefuseTypesAndSetsThatThereAreNot) {
  const auto supported =
      find<decltype(nvmlDeviceGetSupportedEventTypes)>("nvmlDeviceGetSupportedEventTypes");
  unsigned long long types = 0;
  EventData event{};

  EXPECT_EQ(supported(gpu(0), &types), kSuccess);
  EXPECT_EQ(types & (kXid | kDoubleBit | kRecovery), kXid | kDoubleBit | kRecovery);
  EXPECT_EQ(register_(gpu(0), types, set_), kSuccess);
  EXPECT_EQ(register_(gpu(0), 1ull << 40, set_), kNotSupported);
  EXPECT_EQ(register_(gpu(0), kXid, nullptr), kInvalidArgument);
  EXPECT_EQ(free_(set_), kSuccess);
  EXPECT_EQ(free_(set_), kInvalidArgument);
  EXPECT_EQ(wait_(set_, &event, 0), kInvalidArgument);
}

TEST_F(Events, LoseTheOldestWhenNobodyAsks) {
  ASSERT_EQ(register_(gpu(0), kXid, set_), kSuccess);
  StateFile file = state();
  for (std::uint32_t i = 0; i < kMaxEvents + 10; ++i) ASSERT_TRUE(file.raise(0, kXid, i));
  EventData event{};

  EXPECT_EQ(wait_(set_, &event, 0), kSuccess);
  EXPECT_EQ(event.event_data, 10u);
}

TEST_F(Events, OfCorrectedErrorsCountInEveryReading) {
  const auto errors = find<decltype(nvmlDeviceGetTotalEccErrors)>("nvmlDeviceGetTotalEccErrors");
  const auto by_place =
      find<decltype(nvmlDeviceGetMemoryErrorCounter)>("nvmlDeviceGetMemoryErrorCounter");
  StateFile file = state();
  unsigned long long count = 0;

  ASSERT_TRUE(inject_ecc(file, 4, kEccCorrected, 7));

  EXPECT_EQ(errors(gpu(4), 0, 0, &count), kSuccess);
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(errors(gpu(4), 0, 1, &count), kSuccess);
  EXPECT_EQ(count, 7u) << "aggregate";
  EXPECT_EQ(by_place(gpu(4), 0, 0, 2, &count), kSuccess);
  EXPECT_EQ(count, 7u) << "device memory";
  EXPECT_EQ(errors(gpu(4), 1, 0, &count), kSuccess);
  EXPECT_EQ(count, 0u) << "uncorrected";
}

TEST_F(Events, UncorrectedErrorsRemapRowsOrRetirePages) {
  const auto rows = find<decltype(nvmlDeviceGetRemappedRows)>("nvmlDeviceGetRemappedRows");
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  StateFile file = state();
  ASSERT_TRUE(inject_ecc(file, 0, kEccUncorrected, 2));
  EXPECT_EQ(rows(gpu(0), &corrected, &uncorrected, &pending, &failed), kSuccess);
  EXPECT_EQ(uncorrected, 2u);
  EXPECT_EQ(pending, 1u);

  open_board("v100x8");
  initialise();
  const auto pages = find<decltype(nvmlDeviceGetRetiredPages_v2)>("nvmlDeviceGetRetiredPages_v2");
  StateFile old = state();
  ASSERT_TRUE(inject_ecc(old, 0, kEccUncorrected, 2));
  unsigned count = 0;
  unsigned long long addresses[2] = {};
  unsigned long long times[2] = {};
  EXPECT_EQ(pages(gpu(0), 1, &count, nullptr, nullptr), kInsufficientSize);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(pages(gpu(0), 1, &count, addresses, times), kSuccess);
  EXPECT_NE(addresses[0], addresses[1]);
  EXPECT_EQ(pages(gpu(0), 0, &count, addresses, times), kSuccess);
  EXPECT_EQ(count, 0u) << "none for single bits";
}

TEST_F(Events, OfHeatHoldTheClocksDown) {
  const auto reasons = find<decltype(nvmlDeviceGetCurrentClocksEventReasons)>(
      "nvmlDeviceGetCurrentClocksEventReasons");
  const auto clock = find<decltype(nvmlDeviceGetClockInfo)>("nvmlDeviceGetClockInfo");
  StateFile file = state();
  ASSERT_TRUE(file.load(0, static_cast<std::uint64_t>(getpid()), 0, 50));
  unsigned long long why = 0;
  unsigned before = 0;
  unsigned after = 0;
  EXPECT_EQ(reasons(gpu(0), &why), kSuccess);
  EXPECT_EQ(why, 0u);
  EXPECT_EQ(clock(gpu(0), 1, &before), kSuccess);

  ASSERT_TRUE(inject_temperature(file, 0, 90));

  EXPECT_EQ(reasons(gpu(0), &why), kSuccess);
  EXPECT_EQ(why, kThrottleHwSlowdown | kThrottleHwThermal);
  EXPECT_EQ(clock(gpu(0), 1, &after), kSuccess);
  EXPECT_LT(after, before);
}

TEST_F(Events, GoWithTheRecoveryActionsOfTheCatalogue) {
  StateFile file = state();
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> known{
      {13, 0}, {48, 1}, {94, 4}, {74, 3}};
  for (const auto& [xid, action] : known) {
    ASSERT_TRUE(clear_faults(file, 0));
    ASSERT_TRUE(inject_xid(file, 0, xid));
    EXPECT_EQ(recovery_action(0), action) << xid;
  }
}

}  // namespace
}  // namespace gpu_emulator
