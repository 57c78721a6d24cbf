#include "api/convert/job_spec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <type_traits>

#include "base/prng.h"
#include "gpu_platform/v1/options.pb.h"
#include "model/job_spec_fields.h"

namespace gpu_platform::api {
namespace {

using base::Prng;
using google::protobuf::FieldDescriptor;

const google::protobuf::Descriptor& message() {
  return *v1::JobSpec::descriptor();
}

// ---- the table and the message agree

TEST(JobSpecTable, NamesEachFieldAsTheMessageDoes) {
  model::for_each_spec_field([&](const auto& row) {
    if (row.number == 0) {
      EXPECT_TRUE(row.name.empty());
      return;
    }
    const FieldDescriptor* field = message().FindFieldByNumber(static_cast<int>(row.number));
    ASSERT_NE(field, nullptr) << row.name;
    EXPECT_EQ(field->name(), row.name);
  });
}

TEST(JobSpecTable, HasEveryFieldOfTheMessage) {
  // Beside another field, or of a submission alone.
  constexpr const char* kOthers[] = {"priority_number", "columns", "rows",
                                     "environment",     "hold",    "gpu_time_seconds"};
  std::set<std::string> missing;
  for (int i = 0; i < message().field_count(); ++i) missing.insert(message().field(i)->name());
  for (const char* known : kOthers) EXPECT_EQ(missing.erase(known), 1U);
  model::for_each_spec_field([&](const auto& row) { missing.erase(std::string(row.name)); });
  EXPECT_EQ(missing, std::set<std::string>());
}

TEST(JobSpecTable, KnowsTheOptionsOfTheCommandLine) {
  model::for_each_spec_field([&](const auto& row) {
    if (row.number == 0) return;
    const auto& options = message().FindFieldByNumber(static_cast<int>(row.number))->options();
    std::set<std::string> flags;
    auto updates = model::Change::kNever;
    for (int i = 0; i < options.ExtensionSize(v1::option); ++i) {
      const v1::CommandOption& option = options.GetExtension(v1::option, i);
      flags.insert(option.flag());
      updates = std::max(updates, static_cast<model::Change>(option.update()));
    }
    if (!row.option.empty()) {
      EXPECT_TRUE(flags.contains("--" + std::string(row.option))) << row.name;
    }
    EXPECT_LE(updates, row.change) << row.name << ": the command line offers more than is done";
    // --gpu-type gives both types and speeds, and --gpus both a number and a share.
    const bool goes_with_another = row.name == "gpu_speeds" || row.name == "gpu_share";
    EXPECT_TRUE(goes_with_another ||
                (updates == model::Change::kNever) == (row.change == model::Change::kNever))
        << row.name;
  });
}

// ---- there and back

Nodes three_nodes() {
  Nodes nodes;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    model::Node node;
    node.id = model::NodeId(id);
    node.name = "n" + std::to_string(id);
    if (id == 1) {
      // Whatever is drawn as a text is a GPU's name, too.
      node.gpus.resize(100);
      for (std::size_t i = 0; i < node.gpus.size(); ++i) {
        node.gpus[i].info.uuid = "text-" + std::to_string(i);
      }
    }
    nodes.put(id, node);
  }
  return nodes;
}

void make_a_set(std::vector<std::string>& uuids) {
  std::ranges::sort(uuids);
  const auto repeats = std::ranges::unique(uuids);
  uuids.erase(repeats.begin(), repeats.end());
}

// Values that the API can say, for every type in the table.
struct Draw {
  Prng& random;

  void operator()(model::ContainerNetwork& network) const {
    network = static_cast<model::ContainerNetwork>(random.below(model::kContainerNetworks));
  }
  void operator()(model::ImagePull& pull) const {
    pull = static_cast<model::ImagePull>(random.below(model::kImagePulls));
  }
  void operator()(model::Preflight& preflight) const {
    preflight = static_cast<model::Preflight>(random.below(model::kPreflights));
  }
  void operator()(std::string& text) const { text = "text-" + std::to_string(random.below(100)); }
  void operator()(bool& value) const { value = random.chance(1, 2); }
  void operator()(std::uint32_t& value) const {
    value = static_cast<std::uint32_t>(random.below(100));
  }
  void operator()(base::Duration& value) const {
    value = base::milliseconds(static_cast<std::int64_t>(random.below(1'000'000)));
  }
  void operator()(base::Bytes& value) const {
    value = base::Bytes(static_cast<std::int64_t>(random.below(1'000'000)));
  }
  void operator()(base::MicroUsd& value) const {
    value = base::MicroUsd(static_cast<std::int64_t>(1 + random.below(100'000'000)));
  }
  void operator()(base::Instant& value) const {
    value = base::Instant(static_cast<std::int64_t>(random.next() >> 2));
  }
  void operator()(model::Priority& value) const {
    value = model::priority_of_number(static_cast<std::uint8_t>(random.below(10)));
  }
  void operator()(model::JobKind& value) const {
    value = static_cast<model::JobKind>(random.below(4));
  }
  void operator()(model::NumaPolicy& value) const {
    value = static_cast<model::NumaPolicy>(random.below(model::kNumaPolicies));
  }
  void operator()(model::CapacityRequest& value) const {
    value = static_cast<model::CapacityRequest>(random.below(model::kCapacityRequests));
  }
  void operator()(model::NetworkLevel& value) const {
    value = static_cast<model::NetworkLevel>(random.below(model::kNetworkLevels));
  }
  void operator()(model::ShareMode& value) const {
    value = static_cast<model::ShareMode>(random.below(model::kShareModes));
  }
  void operator()(model::Isolation& value) const {
    value = static_cast<model::Isolation>(random.below(model::kIsolations));
  }
  void operator()(base::GpuShare& value) const {
    value = base::GpuShare(static_cast<std::int64_t>(7 * (1 + random.below(1000))));
  }
  void operator()(std::vector<std::string>& texts) const {
    texts.resize(random.below(3));
    for (std::string& text : texts) (*this)(text);
  }
  void operator()(std::vector<std::uint32_t>& speeds) const {
    speeds.clear();
    for (std::uint64_t n = random.below(3); n > 0; --n) {
      speeds.push_back(speeds.empty() ? model::kFullSpeed
                                      : 1 + static_cast<std::uint32_t>(random.below(5000)));
    }
  }
  void operator()(std::vector<model::NodeId>& nodes) const {
    nodes.clear();
    for (std::uint64_t id = 1; id <= 3; ++id) {
      if (random.chance(1, 2)) nodes.push_back(model::NodeId(id));
    }
  }
  void operator()(std::vector<model::Label>& labels) const {
    labels.clear();
    for (const char* key : {"a", "b"}) {
      if (random.chance(1, 2)) labels.push_back({key, "value"});
    }
  }
  void operator()(std::vector<model::NotifyOn>& notify) const {
    notify.clear();
    for (std::size_t i = 0; i < model::kNotifyOns; ++i) {
      if (random.chance(1, 2)) notify.push_back(static_cast<model::NotifyOn>(i));
    }
  }
  void operator()(model::TerminalSize& size) const {
    size = {static_cast<std::uint16_t>(1 + random.below(300)),
            static_cast<std::uint16_t>(1 + random.below(300))};
  }
  void operator()(model::LimitSignal& signal) const {
    signal = {static_cast<std::uint8_t>(random.chance(1, 2) ? 10 : 12), base::seconds(90),
              random.chance(1, 2)};
  }
  void operator()(model::ArraySpec& array) const {
    array.runs = {{0, static_cast<std::uint32_t>(1 + random.below(9)), 1}};
    array.limit = static_cast<std::uint32_t>(random.below(4));
  }
  // The jobs that they name are looked up later.
  void operator()(std::vector<model::Dependency>&) const {}
  template <class T>
  void operator()(std::optional<T>& maybe) const {
    maybe.reset();
    if (random.chance(1, 2)) (*this)(maybe.emplace());
  }
};

model::JobSpec drawn_spec(Prng& random) {
  model::JobSpec spec;
  model::for_each_spec_field([&](const auto& row) {
    using Value = typename std::remove_cvref_t<decltype(row)>::Type;
    constexpr bool kHasNoField =
        std::is_same_v<Value, model::EngineSet> || std::is_same_v<Value, model::Tenant>;
    if constexpr (!kHasNoField) {
      if (row.number != 0) Draw{random}(row.of(spec));
    }
  });
  make_a_set(spec.request.gpus_avoid);
  make_a_set(spec.request.gpus_only);
  return spec;
}

TEST(JobSpecMessage, SaysEveryMemberAndIsReadBack) {
  const Nodes nodes = three_nodes();
  std::set<std::string> said;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Prng random(seed);
    const model::JobSpec spec = drawn_spec(random);
    v1::JobSpec out;
    to_proto(spec, nodes, out);
    std::vector<const FieldDescriptor*> given;
    v1::JobSpec::GetReflection()->ListFields(out, &given);
    for (const FieldDescriptor* field : given) said.insert(field->name());
    model::JobSpec again;
    const base::Status read = to_model(out, nodes, again);
    ASSERT_TRUE(read) << read.error().message;
    model::for_each_spec_field([&](const auto& row) {
      if (row.number == 0) return;
      EXPECT_TRUE(row.of(again) == row.of(spec)) << row.name << ", seed " << seed;
    });
  }
  EXPECT_EQ(said.size() + 4, static_cast<std::size_t>(message().field_count()))
      << "all but environment, hold, gpu_time_seconds and dependency";
}

TEST(JobSpecMessage, ASubmissionTakesWhatAJobShows) {
  const Nodes nodes = three_nodes();
  v1::JobSpec request;
  request.add_command("/bin/true");
  request.set_gpus(2);
  request.add_gpu_types("H100");
  request.set_priority_number(2);
  request.set_output("out-%j");
  request.set_time_limit_seconds(60);
  const Account ada{"ada", 1000, 100};
  const auto first = to_model(request, ada, nodes);
  ASSERT_TRUE(first) << first.error().message;
  v1::JobSpec shown;
  to_proto(first->spec, nodes, shown);
  const auto second = to_model(shown, ada, nodes);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->spec, first->spec);
}

TEST(JobSpecMessage, APartIsAShareOfOneGpu) {
  const Nodes nodes = three_nodes();
  const Account ada{"ada", 1000, 100};
  v1::JobSpec request;
  request.add_command("/bin/true");
  request.set_gpu_share(0.25);
  request.set_share_mode(v1::SHARE_MODE_TIME_SLICE);
  request.set_require_isolation(v1::REQUIRED_ISOLATION_MEMORY);
  request.set_slice_seconds(0.1);
  const auto order = to_model(request, ada, nodes);
  ASSERT_TRUE(order) << order.error().message;
  const model::ResourceRequest& asked = order->spec.request;
  EXPECT_EQ(asked.gpus, 1U) << "a part without a number is of one GPU";
  EXPECT_EQ(asked.share_per_gpu, base::GpuShare(1750));
  EXPECT_EQ(asked.share_mode, model::ShareMode::kTimeSlice);
  EXPECT_EQ(asked.require_isolation, model::Isolation::kMemory);
  EXPECT_EQ(asked.slice, base::milliseconds(100));
  v1::JobSpec shown;
  to_proto(order->spec, nodes, shown);
  EXPECT_DOUBLE_EQ(shown.gpu_share(), 0.25);
  EXPECT_DOUBLE_EQ(shown.slice_seconds(), 0.1);
}

TEST(JobSpecMessage, AWholeGpuHasNoShare) {
  const Nodes nodes = three_nodes();
  v1::JobSpec request;
  request.add_command("/bin/true");
  request.set_gpus(2);
  const auto order = to_model(request, Account{"ada", 1000, 100}, nodes);
  ASSERT_TRUE(order) << order.error().message;
  v1::JobSpec shown;
  to_proto(order->spec, nodes, shown);
  EXPECT_FALSE(shown.has_gpu_share());
  EXPECT_FALSE(shown.has_share_mode());
  EXPECT_EQ(shown.require_isolation(), v1::REQUIRED_ISOLATION_NONE);
}

TEST(JobSpecMessage, ABudgetIsMoreThanZeroAndHasSixDecimalsAtMost) {
  const Nodes nodes = three_nodes();
  const auto budget_of = [&](const std::string& text) -> std::string {
    v1::JobSpec request;
    request.add_command("/bin/true");
    request.set_budget(text);
    const auto order = to_model(request, Account{"ada", 1000, 100}, nodes);
    if (!order) return order.error().field + ": " + order.error().message;
    v1::JobSpec shown;
    to_proto(order->spec, nodes, shown);
    return shown.budget();
  };
  EXPECT_EQ(budget_of("100"), "100.00");
  EXPECT_EQ(budget_of("0.000001"), "0.000001");
  EXPECT_EQ(budget_of("1000000000"), "1000000000.00");
  for (const char* wrong : {"0", "0.00", "-1", "1.1234567", "1000000000.01", "ten", "1e3", "1,5"}) {
    EXPECT_TRUE(budget_of(wrong).starts_with("budget: budget: ")) << budget_of(wrong);
  }
}

TEST(JobSpecMessage, APartIsForOneGpuOnOneNode) {
  const Nodes nodes = three_nodes();
  const auto refused = [&](auto change) -> std::string {
    v1::JobSpec request;
    request.add_command("/bin/true");
    request.set_gpus(1);
    request.set_gpu_share(0.5);
    change(request);
    const auto order = to_model(request, Account{"ada", 1000, 100}, nodes);
    return order ? "" : order.error().field;
  };
  using Message = v1::JobSpec;
  EXPECT_EQ(refused([](Message&) {}), "");
  EXPECT_EQ(refused([](Message& m) { m.set_gpus(2); }), "gpu_share");
  EXPECT_EQ(refused([](Message& m) { m.set_gpus(0); }), "gpu_share");
  EXPECT_EQ(refused([](Message& m) { m.set_nodes(2); }), "gpu_share");
  EXPECT_EQ(refused([](Message& m) { m.set_allow_cross_node(true); }), "gpu_share");
  EXPECT_EQ(refused([](Message& m) { m.set_gpu_share(0.1234); }), "gpu_share");
  EXPECT_EQ(refused([](Message& m) { m.set_gpu_share(0); }), "gpu_share");
  EXPECT_EQ(refused([](Message& m) { m.set_gpu_share(1.5); }), "gpu_share");
  EXPECT_EQ(refused([](Message& m) { m.set_per_gpu(true); }), "per_gpu");
  EXPECT_EQ(refused([](Message& m) { m.set_share_mode(v1::SHARE_MODE_NONE); }), "share_mode");
  EXPECT_EQ(refused([](Message& m) { m.set_slice_seconds(0.05); }), "slice_seconds");
  EXPECT_EQ(refused([](Message& m) {
              m.set_share_mode(v1::SHARE_MODE_MPS);
              m.set_slice_seconds(1);
            }),
            "slice_seconds");
  EXPECT_EQ(refused([](Message& m) {
              m.clear_gpu_share();
              m.set_share_mode(v1::SHARE_MODE_MPS);
            }),
            "share_mode");
  EXPECT_EQ(refused([](Message& m) {
              m.clear_gpu_share();
              m.set_slice_seconds(1);
            }),
            "slice_seconds");
  EXPECT_EQ(refused([](Message& m) { m.set_require_isolation(v1::REQUIRED_ISOLATION_HARDWARE); }),
            "require_isolation");
  EXPECT_EQ(refused([](Message& m) { m.set_reservation("lab"); }), "gpu_share");
}

TEST(JobSpecMessage, TheTimeLimitFollowsFromTheTimeOnTheGpu) {
  const Nodes nodes = three_nodes();
  const auto limit = [&](double gpu_time, std::optional<double> share, std::uint32_t gpus = 1) {
    v1::JobSpec request;
    request.add_command("/bin/true");
    request.set_gpus(gpus);
    if (share) request.set_gpu_share(*share);
    request.set_gpu_time_seconds(gpu_time);
    const auto order = to_model(request, Account{"ada", 1000, 100}, nodes);
    EXPECT_TRUE(order) << order.error().message;
    return order ? order->spec.time_limit : base::Duration();
  };
  EXPECT_EQ(limit(3600, 0.5), base::hours(2));
  EXPECT_EQ(limit(3600, 0.25), base::hours(4));
  EXPECT_EQ(limit(3600, std::nullopt), base::hours(1));
  EXPECT_EQ(limit(3600, std::nullopt, 2), base::hours(1));
  EXPECT_EQ(limit(3600, 1), base::hours(1));
  EXPECT_EQ(limit(1, 0.3), base::milliseconds(3334)) << "never less than what was asked for";
  EXPECT_EQ(limit(0.001, 0.999), base::milliseconds(2));
  EXPECT_EQ(limit(3.6, 0.001), base::hours(1));
}

TEST(JobSpecMessage, ATimeOnTheGpuIsOneOfTwoWaysToSayTheLimit) {
  const Nodes nodes = three_nodes();
  const auto refusal = [&](auto change) {
    v1::JobSpec request;
    request.add_command("/bin/true");
    request.set_gpu_share(0.5);
    request.set_gpu_time_seconds(3600);
    change(request);
    const auto order = to_model(request, Account{"ada", 1000, 100}, nodes);
    return order ? "" : order.error().message;
  };
  using Message = v1::JobSpec;
  EXPECT_EQ(refusal([](Message&) {}), "");
  EXPECT_EQ(refusal([](Message& m) { m.set_time_limit_seconds(60); }),
            "gpu_time_seconds: the time limit follows from it; leave out time_limit_seconds "
            "(--time), or give that alone");
  const std::string without_gpus =
      "gpu_time_seconds: is the time on a GPU, and the job asks for none; ask for GPUs (gpus, "
      "--gpus), or give the time limit instead (time_limit_seconds, --time)";
  EXPECT_EQ(refusal([](Message& m) { m.clear_gpu_share(); }), without_gpus);
  EXPECT_EQ(refusal([](Message& m) {
              m.clear_gpu_share();
              m.set_gpus(0);
            }),
            without_gpus);
  EXPECT_EQ(refusal([](Message& m) {
              m.set_gpu_share(0.001);
              m.set_gpu_time_seconds(315'361);
            }),
            "gpu_time_seconds: makes a time limit of more than 3650d, which is the longest; ask "
            "for more of the GPU, or for less time");
  EXPECT_NE(refusal([](Message& m) { m.set_gpu_time_seconds(0); }), "");
  EXPECT_NE(refusal([](Message& m) { m.set_gpu_time_seconds(-60); }), "");
}

TEST(JobSpecMessage, NoUpdateChangesTheTimeOnTheGpu) {
  v1::JobSpec change;
  change.set_gpu_time_seconds(60);
  const auto patch = to_patch(change, three_nodes());
  ASSERT_FALSE(patch);
  EXPECT_EQ(patch.error().field, "gpu_time_seconds");
}

TEST(JobSpecMessage, OnlyAGivenNetworkNoneRefusesANetwork) {
  const Nodes nodes = three_nodes();
  const Account ada{"ada", 1000, 100};
  v1::JobSpec request;
  request.add_command("/bin/true");
  request.set_image("lab/train:1");
  auto order = to_model(request, ada, nodes);
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_FALSE(order->refuses_network);
  v1::JobSpec shown;
  order->spec.request.engines = model::kAnyEngine;
  to_proto(order->spec, nodes, shown);
  EXPECT_FALSE(shown.has_container_network()) << "a pod has the cluster's";
  request.set_container_network(v1::CONTAINER_NETWORK_NONE);
  order = to_model(request, ada, nodes);
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_TRUE(order->refuses_network);
  to_proto(order->spec, nodes, shown);
  EXPECT_EQ(shown.container_network(), v1::CONTAINER_NETWORK_NONE);
}

TEST(JobSpecMessage, ASubmissionCannotSayWhichWorkloadTheJobStandsFor) {
  v1::JobSpec request;
  request.add_command("/bin/true");
  request.set_workload("ml/Job/train/uid");
  const auto made = to_model(request, Account{"ada", 1000, 100}, three_nodes());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().field, "workload");
}

TEST(JobSpecMessage, APriorityAndItsNumberAgree) {
  v1::JobSpec request;
  request.set_priority("low");
  request.set_priority_number(2);
  model::JobSpec spec;
  const base::Status read = to_model(request, Nodes(), spec);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().field, "priority_number");
}

// ---- updates

TEST(JobSpecPatch, TakesWhatMayChangeAndRefusesTheRest) {
  const Nodes nodes = three_nodes();
  Prng random(7);
  for (int round = 0; round < 50; ++round) {
    v1::JobSpec shown;
    to_proto(drawn_spec(random), nodes, shown);
    model::for_each_spec_field([&](const auto& row) {
      if (row.number == 0) return;
      const FieldDescriptor* field = message().FindFieldByNumber(static_cast<int>(row.number));
      v1::JobSpec one = shown;
      std::vector<const FieldDescriptor*> given;
      one.GetReflection()->ListFields(one, &given);
      for (const FieldDescriptor* each : given) {
        if (each != field) one.GetReflection()->ClearField(&one, each);
      }
      given.clear();
      one.GetReflection()->ListFields(one, &given);
      if (given.empty()) return;
      const auto patch = to_patch(one, nodes);
      if (row.change == model::Change::kNever) {
        ASSERT_FALSE(patch) << row.name;
        EXPECT_EQ(patch.error().field, row.name);
      } else {
        ASSERT_TRUE(patch) << patch.error().message;
        EXPECT_NE(patch->get(row.member), nullptr) << row.name;
      }
    });
  }
}

TEST(JobSpecPatch, ClearsWhatMayHaveNoValue) {
  model::for_each_spec_field([&](const auto& row) {
    if (row.number == 0) return;
    model::SpecPatch patch;
    const base::Status cleared = clear_field(row.name, patch);
    EXPECT_EQ(cleared.has_value(), row.change == model::Change::kSetOrClear) << row.name;
    if (!cleared) return;
    const auto* value = patch.get(row.member);
    ASSERT_NE(value, nullptr) << row.name;
    EXPECT_TRUE(*value == row.of(patch.values()));
  });
}

}  // namespace
}  // namespace gpu_platform::api
