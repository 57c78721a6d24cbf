#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/calls.h"
#include "api/fake_core_test.h"
#include "api/metrics/metric_source.h"
#include "api/metrics/page.h"

// What is on the page of metrics, from a core with one node of eight GPUs.

namespace gpu_platform::api {
namespace {

class ScrapeTest : public testing::Test {
 protected:
  std::string page() {
    CoreAccess access = core_.access();
    access.metrics = rules_;
    access.metric_sources = sources_;
    access.history = history_;
    access.ledger = ledger_;
    const Calls calls(access, {.version = "1.2.3"});
    return calls.of<StatisticsCalls>().metrics(caller_);
  }

  // The series whose name is this, as they are on the page.
  std::vector<std::string> series(const std::string& name) {
    std::vector<std::string> found;
    std::istringstream lines(page());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + "{") || line.starts_with(name + " ")) found.push_back(line);
    }
    return found;
  }
  // The value of the only series of that name with this text among its labels; empty: none, or
  // several.
  std::string value(const std::string& name, const std::string& label = {}) {
    std::vector<std::string> found = series(name);
    std::erase_if(found, [&](const std::string& line) { return !line.contains(label); });
    return found.size() == 1 ? found.front().substr(found.front().rfind(' ') + 1) : std::string();
  }
  bool has_line(const std::string& line) { return ("\n" + page()).contains("\n" + line + "\n"); }

  // The job gets the whole GPU.
  void hold(model::JobId job, std::uint32_t gpu) {
    core_.start_job(job, {gpu});
    core_.edit_node([&](model::Node& node) {
      model::GpuHolder holder;
      holder.attempt = {job, 1};
      holder.share = base::kWholeGpu;
      holder.memory = node.gpus[gpu].info.memory;
      node.gpus[gpu].holders = {holder};
    });
  }

  FakeCore core_;
  config::MetricsRules rules_;
  std::vector<const MetricSource*> sources_;
  const telemetry::History* history_ = nullptr;
  const store::Ledger* ledger_ = nullptr;
  model::Caller caller_{"ada", 1000};
};

model::GpuReading busy_reading() {
  model::GpuReading reading;
  reading.utilization_percent = 97;
  reading.memory_utilization_percent = 41;
  reading.memory_used = base::kGiB * 60;
  reading.memory_reserved = base::kGiB;
  reading.memory_total = base::kGiB * 80;
  reading.temperature_c = 61;
  reading.memory_temperature_c = 70;
  reading.power = base::Milliwatts(412'500);
  reading.slowdown_c = 87;
  reading.clock_sm_mhz = 1980;
  reading.clock_memory_mhz = 2619;
  reading.throttle_reasons = model::kThrottlePowerCap;
  reading.ecc_corrected = 3;
  reading.ecc_uncorrected = 0;
  reading.encoder_percent = 0;
  reading.decoder_percent = 12;
  reading.graphics_active = 950;
  reading.tensor_active = 333;
  reading.dram_active = 500;
  model::GpuSlowMetrics slow;
  slow.energy_mj = 123'456'789;
  slow.pcie_replays = 2;
  slow.pcie_sent_bytes_per_second = 5'000'000;
  slow.pcie_received_bytes_per_second = 7'000'000;
  slow.remapped_rows_corrected = 1;
  slow.remapped_rows_uncorrected = 0;
  slow.remap_pending = false;
  slow.remap_failed = false;
  slow.nvlinks_active = 18;
  slow.nvlink_sent = base::kMiB * 3;
  slow.nvlink_received = base::kMiB * 4;
  reading.slow = slow;
  return reading;
}

TEST_F(ScrapeTest, ReadingsHaveTheNamesKindsAndUnitsOfTheExporter) {
  core_.readings.set("GPU-3", busy_reading());
  struct Row {
    const char* name;
    const char* kind;
    const char* value;
  };
  constexpr Row kRows[] = {
      {"DCGM_FI_DEV_SM_CLOCK", "gauge", "1980"},
      {"DCGM_FI_DEV_MEM_CLOCK", "gauge", "2619"},
      {"DCGM_FI_DEV_MEMORY_TEMP", "gauge", "70"},
      {"DCGM_FI_DEV_GPU_TEMP", "gauge", "61"},
      {"DCGM_FI_DEV_SLOWDOWN_TEMP", "gauge", "87"},
      {"DCGM_FI_DEV_POWER_USAGE", "gauge", "412.5"},
      {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "123456789"},
      {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "2"},
      {"DCGM_FI_DEV_GPU_UTIL", "gauge", "97"},
      {"DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "41"},
      {"DCGM_FI_DEV_ENC_UTIL", "gauge", "0"},
      {"DCGM_FI_DEV_DEC_UTIL", "gauge", "12"},
      {"DCGM_FI_DEV_XID_ERRORS", "gauge", "0"},
      {"DCGM_FI_DEV_FB_FREE", "gauge", "19456"},
      {"DCGM_FI_DEV_FB_USED", "gauge", "61440"},
      {"DCGM_FI_DEV_FB_RESERVED", "gauge", "1024"},
      {"DCGM_FI_DEV_FB_TOTAL", "gauge", "81920"},
      {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "3"},
      {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "0"},
      {"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", "7"},
      {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "0"},
      {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "1"},
      {"DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "0"},
      {"DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", "0"},
      {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "0.95"},
      {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "0.333"},
      {"DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "0.5"},
      {"DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "5000000"},
      {"DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "7000000"},
      {"gpu_platform_gpu_nvlinks_active", "gauge", "18"},
      {"gpu_platform_gpu_pcie_replays", "gauge", "2"},
      {"gpu_platform_gpu_answers", "gauge", "1"},
      {"gpu_platform_gpu_hardware_slowdown", "gauge", "0"},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(value(row.name), row.value) << row.name;
    EXPECT_TRUE(has_line(fmt::format("# TYPE {} {}", row.name, row.kind))) << row.name;
  }
}

TEST_F(ScrapeTest, ReadingsHaveTheLabelsThatDashboardsJoinOn) {
  core_.readings.set("GPU-3", busy_reading());
  EXPECT_TRUE(has_line(
      R"(DCGM_FI_DEV_GPU_UTIL{gpu="3",UUID="GPU-3",pci_bus_id="00000000:1e:00.0",device="nvidia0",)"
      R"(modelName="NVIDIA H100 80GB HBM3",model="H100-80GB",Hostname="dgx-h100-1",)"
      R"(DCGM_FI_DRIVER_VERSION="550.54"} 97)"))
      << page();
  rules_.lower_hostname = true;
  EXPECT_EQ(value("DCGM_FI_DEV_GPU_UTIL", R"(,hostname="dgx-h100-1"})"), "97");
}

TEST_F(ScrapeTest, AReadingThatTheDriverWithholdsHasNoLine) {
  model::GpuReading reading;
  reading.utilization_percent = 0;
  core_.readings.set("GPU-3", reading);
  EXPECT_EQ(value("DCGM_FI_DEV_GPU_UTIL"), "0");
  for (const char* name :
       {"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SLOWDOWN_TEMP", "DCGM_FI_DEV_FB_FREE",
        "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "gpu_platform_gpu_hardware_slowdown"}) {
    EXPECT_TRUE(series(name).empty()) << name;
  }
}

TEST_F(ScrapeTest, FreeMemoryIsNeverNegative) {
  model::GpuReading reading;
  reading.memory_used = base::kGiB * 79;
  reading.memory_reserved = base::kGiB * 2;
  core_.readings.set("GPU-3", reading);
  EXPECT_EQ(value("DCGM_FI_DEV_FB_FREE"), "0");
}

TEST_F(ScrapeTest, CriticalXidsAreThereBeforeTheyOccur) {
  model::GpuReading reading;
  reading.xid_counts = {{13, 4}, {79, 1}};
  reading.xids = {{79, base::Instant(2)}, {13, base::Instant(1)}};
  reading.problem = "GPU is lost";
  core_.readings.set("GPU-3", reading);
  EXPECT_EQ(value("gpu_platform_gpu_xids_total", R"(severity="critical",xid="48"})"), "0");
  EXPECT_EQ(value("gpu_platform_gpu_xids_total", R"(severity="critical",xid="79"})"), "1");
  EXPECT_EQ(value("gpu_platform_gpu_xids_total", R"(severity="other",xid="13"})"), "4");
  EXPECT_EQ(value("gpu_platform_gpu_answers"), "0");
  EXPECT_EQ(value("DCGM_FI_DEV_XID_ERRORS"), "79");
}

TEST_F(ScrapeTest, TheSiteChoosesTheNamesOfOpenTelemetryOrBoth) {
  core_.readings.set("GPU-3", busy_reading());
  EXPECT_TRUE(series("hw_power_watts").empty());
  rules_.names = config::MetricNames::kOtel;
  EXPECT_TRUE(series("DCGM_FI_DEV_GPU_UTIL").empty());
  EXPECT_TRUE(series("DCGM_FI_DEV_XID_ERRORS").empty());
  EXPECT_EQ(value("hw_gpu_utilization_ratio", R"(hw_gpu_task="general")"), "0.97");
  EXPECT_EQ(value("hw_gpu_memory_usage_bytes"), "64424509440");
  EXPECT_EQ(value("hw_gpu_memory_utilization_ratio"), "0.75");
  EXPECT_EQ(value("hw_gpu_io_bytes_total", R"(network_io_direction="transmit")"), "3145728");
  EXPECT_EQ(value("hw_errors_total", R"(error_type="corrected")"), "3");
  EXPECT_EQ(value("hw_energy_joules_total"), "123456.789");
  EXPECT_EQ(value("hw_status", R"(hw_state="ok")"), "1");
  rules_.names = config::MetricNames::kBoth;
  EXPECT_EQ(value("DCGM_FI_DEV_GPU_UTIL"), "97");
  EXPECT_EQ(value("DCGM_FI_DEV_XID_ERRORS"), "0");
  EXPECT_EQ(value("hw_power_watts"), "412.5");
}

TEST_F(ScrapeTest, JobsOnGpusAreThoseThatTheReaderMaySee) {
  hold(core_.add_job("ada", 1000, "hers"), 2);
  hold(core_.add_job("ben", 1001, "his"), 3);
  EXPECT_EQ(value("gpu_platform_gpu_job_info"), "1");
  EXPECT_EQ(value("gpu_platform_gpu_job_info", R"(UUID="GPU-2")"), "1");
  EXPECT_EQ(value("gpu_platform_gpu_job_info", R"(job_name="hers",user="ada")"), "1");
  rules_.jobs = config::MetricJobs::kAll;
  EXPECT_EQ(series("gpu_platform_gpu_job_info").size(), 2U);
  EXPECT_EQ(value("gpu_platform_gpu_job_info", R"(user="ben")"), "1");
  rules_.jobs = config::MetricJobs::kNone;
  EXPECT_TRUE(series("gpu_platform_gpu_job_info").empty());
}

TEST_F(ScrapeTest, NoOtherSeriesNamesAJobOrAUser) {
  core_.readings.set("GPU-2", busy_reading());
  rules_.jobs = config::MetricJobs::kNone;
  hold(core_.add_job("someone-unlikely", 1000, "a-secret-name"), 2);
  core_.add_job("someone-unlikely", 1000, "a-secret-name");
  const std::string text = page();
  EXPECT_FALSE(text.contains("someone-unlikely"));
  EXPECT_FALSE(text.contains("a-secret-name"));
}

TEST_F(ScrapeTest, OddBytesInTheNameOfAJobDoNotSpoilThePage) {
  hold(core_.add_job("ada", 1000, "a\"b\\c\nd\xff"), 2);
  EXPECT_EQ(value("gpu_platform_gpu_job_info", "job_name=\"a\\\"b\\\\c\\nd\xEF\xBF\xBD\""), "1")
      << page();
}

TEST_F(ScrapeTest, HeldAndUsedAreTwoNumbers) {
  for (std::uint32_t i = 0; i < 8; ++i) {
    model::GpuReading reading;
    reading.utilization_percent = i == 0 ? 80 : 0;
    core_.readings.set(fmt::format("GPU-{}", i), reading);
  }
  hold(core_.add_job("ada", 1000), 0);
  hold(core_.add_job("ada", 1000), 1);
  EXPECT_EQ(value("gpu_platform_gpu_allocation_ratio", R"(type="H100-80GB")"), "0.25");
  EXPECT_EQ(value("gpu_platform_gpu_utilization_ratio", R"(type="H100-80GB")"), "0.1");
  EXPECT_EQ(value("gpu_platform_gpus_held_and_idle"), "1");
  EXPECT_EQ(value("gpu_platform_gpus_held", R"(capacity="on-demand")"), "2");
  EXPECT_EQ(value("gpu_platform_gpus_in_service"), "8");
  EXPECT_EQ(value("gpu_platform_gpu_held_ratio", R"(gpu="1")"), "1");
}

TEST_F(ScrapeTest, PartsOfGpusAreCountedByTheWayOfSharing) {
  core_.edit_node([](model::Node& node) {
    for (const std::uint64_t job : {1, 2}) {
      model::GpuHolder holder;
      holder.attempt = {model::JobId(job), 1};
      holder.share = base::GpuShare(base::kWholeGpu.value() / 4);
      holder.mode = model::ShareMode::kMps;
      node.gpus[5].holders.push_back(holder);
    }
  });
  EXPECT_EQ(value("gpu_platform_shared_gpus", R"(mode="mps")"), "1");
  EXPECT_EQ(value("gpu_platform_shared_gpus", R"(mode="time-slice")"), "0");
  EXPECT_EQ(value("gpu_platform_gpu_parts", R"(mode="mps")"), "2");
  EXPECT_EQ(value("gpu_platform_gpu_parts_held", R"(mode="mps")"), "0.5");
  EXPECT_EQ(value("gpu_platform_gpu_held_ratio", R"(gpu="5")"), "0.5");
}

TEST_F(ScrapeTest, TeamsAreBounded) {
  for (int i = 0; i < 60; ++i) core_.add_job_of_team("ada", 1000, fmt::format("team-{:02}", i));
  const model::JobId largest = core_.add_job_of_team("ada", 1000, "zeta");
  core_.start_job(largest, {0, 1});
  EXPECT_EQ(series("gpu_platform_team_gpus_held").size(), 51U);
  EXPECT_EQ(value("gpu_platform_team_gpus_held", R"(team="zeta")"), "2");
  EXPECT_EQ(value("gpu_platform_team_jobs", R"x(team="(other)",state="waiting")x"), "11");
}

TEST_F(ScrapeTest, EachWaitingJobIsCountedUnderOneReason) {
  core_.add_jobs(3, "ada", 1000);
  double waiting = 0;
  for (const std::string& line : series("gpu_platform_waiting_jobs")) {
    EXPECT_TRUE(line.contains("reason=\"")) << line;
    waiting += std::stod(line.substr(line.rfind(' ')));
  }
  EXPECT_EQ(waiting, 3);
}

TEST_F(ScrapeTest, HostsHaveTheirReadings) {
  model::HostMetrics host;
  host.cpu_percent = 37;
  host.load_thousandths = 12'500;
  host.memory_total = base::kGiB;
  host.disk_read = base::kMiB;
  core_.readings.set_host("dgx-h100-1", host);
  EXPECT_TRUE(has_line(R"(gpu_platform_host_cpu_percent{Hostname="dgx-h100-1"} 37)"));
  EXPECT_EQ(value("gpu_platform_host_load"), "12.5");
  EXPECT_EQ(value("gpu_platform_host_memory_bytes"), "1073741824");
  EXPECT_TRUE(has_line("# TYPE gpu_platform_host_disk_read_bytes_total counter"));
  EXPECT_TRUE(series("gpu_platform_host_swap_used_bytes").empty());
}

class KeptHistory final : public telemetry::History {
 public:
  base::Result<std::vector<telemetry::Series>> query(
      const telemetry::HistoryQuery&) const override {
    return std::vector<telemetry::Series>();
  }
  telemetry::HistoryCoverage coverage() const override {
    telemetry::HistoryCoverage coverage;
    coverage.bytes = 4096;
    coverage.max_bytes = 8192;
    coverage.dropped = 5;
    coverage.problem = "the disk is full";
    return coverage;
  }
};

TEST_F(ScrapeTest, TheHistoryTellsWhatItCouldNotKeep) {
  EXPECT_TRUE(series("gpu_platform_history_up").empty()) << "there is none";
  const KeptHistory history;
  history_ = &history;
  EXPECT_EQ(value("gpu_platform_history_up"), "0");
  EXPECT_EQ(value("gpu_platform_history_bytes"), "4096");
  EXPECT_EQ(value("gpu_platform_history_dropped_frames_total"), "5");
}

TEST_F(ScrapeTest, GpusWithoutAPriceAreCounted) {
  EXPECT_EQ(value("gpu_platform_gpus_without_price", R"(capacity="on-demand")"), "8");
  EXPECT_TRUE(series("gpu_platform_gpu_hour_price").empty()) << "no price is not a price of 0";
}

// A ledger that nothing was added to yet.
class EmptyLedger final : public store::Ledger {
 public:
  base::Status visit(const store::LedgerQuery&, const Visit&) const override { return {}; }
  base::Result<model::EventSeq> ledger_upto() const override { return model::EventSeq(); }
};

TEST_F(ScrapeTest, MoneyIsForThoseWhoMaySeeTheJobsOfAll) {
  const EmptyLedger ledger;
  ledger_ = &ledger;
  EXPECT_TRUE(series("gpu_platform_ledger_up").empty());
  EXPECT_FALSE(series("gpu_platform_currency_info").empty()) << "prices are for all";
  caller_.reach = model::Reach::kAll;
  EXPECT_EQ(value("gpu_platform_ledger_up"), "1");
  caller_.reach = model::Reach::kOwn;
  rules_.jobs = config::MetricJobs::kAll;
  EXPECT_EQ(value("gpu_platform_ledger_up"), "1");
}

class OneSource final : public MetricSource {
 public:
  void add_to(MetricPage& page) const override { page.gauge("gpu_platform_extra", "More.").add(9); }
};

TEST_F(ScrapeTest, OtherPartsOfTheProgramAddTheirs) {
  const OneSource source;
  sources_ = {&source};
  EXPECT_EQ(value("gpu_platform_extra"), "9");
}

TEST_F(ScrapeTest, AThousandGpusHaveEachSeriesOnceAndABoundedNumber) {
  constexpr std::size_t kGpus = 1000;
  // What the exporter has by default, its profiling metrics, six XIDs, and the platform's own.
  constexpr std::size_t kMaxSeriesOfAGpu = 60;
  core_.edit_node([](model::Node& node) {
    const model::Gpu first = node.gpus.front();
    node.gpus.assign(kGpus, first);
    for (std::size_t i = 0; i < kGpus; ++i) node.gpus[i].info.uuid = fmt::format("GPU-{}", i);
  });
  const std::string without = page();
  for (std::size_t i = 0; i < kGpus; ++i) {
    core_.readings.set(fmt::format("GPU-{}", i), busy_reading());
  }
  std::set<std::string> seen;
  std::istringstream lines(page());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << line;
    EXPECT_FALSE(line.ends_with(" nan")) << line;
  }
  const auto others = static_cast<std::size_t>(std::ranges::count(without, '\n'));
  EXPECT_LE(seen.size(), kGpus * kMaxSeriesOfAGpu + others);
  EXPECT_GE(seen.size(), kGpus * 30);
}

}  // namespace
}  // namespace gpu_platform::api
