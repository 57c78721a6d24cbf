#include "scheduling/mig/mig_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/prng.h"

namespace gpu_platform::scheduling {
namespace {

std::shared_ptr<const MigStates> mig_states_of(std::string_view type) {
  return std::make_shared<const MigStates>(*model::known_mig_geometry(type));
}

std::size_t mig_profile_of(const MigStates& states, std::string_view name) {
  return model::find_profile(states.geometry(), *model::parse_mig_profile(name)).value();
}

model::GpuRef mig_gpu(std::uint64_t number) {
  constexpr std::uint64_t kGpusPerNode = 8;
  return {model::NodeId(1 + number / kGpusPerNode),
          static_cast<std::uint32_t>(number % kGpusPerNode)};
}

// An instance that a test has made, and its GPU.
struct MigMade {
  model::GpuRef gpu;
  std::size_t profile = 0;
  std::uint32_t start = 0;
};

void make_instance(MigIndex& index, const MigMade& made) {
  const model::MigProfile& profile = index.states().geometry().profiles[made.profile];
  index.exchange(made.gpu, with(index.find(made.gpu).value(), profile, made.start));
}

void destroy_instance(MigIndex& index, const MigMade& made) {
  const model::MigProfile& profile = index.states().geometry().profiles[made.profile];
  index.exchange(made.gpu, without(index.find(made.gpu).value(), profile, made.start));
}

MigIndex empty_fleet(std::shared_ptr<const MigStates> states, std::uint64_t gpus) {
  MigIndex index(std::move(states));
  for (std::uint64_t i = 0; i < gpus; ++i) index.exchange(mig_gpu(i), MigState());
  return index;
}

std::string encoding_of(const MigIndex& index) {
  std::string out;
  base::Encoder encoder(out);
  index.encode(encoder);
  return out;
}

// ---- The search once more, without tables: every GPU and every start.

std::uint64_t plain_worth(const MigStates& states, const MigState& state,
                          const std::vector<std::uint64_t>& weights) {
  std::uint64_t worth = 0;
  for (std::size_t p = 0; p < states.profiles(); ++p) {
    worth += weights[p] * states.capacity(*states.find(state), p) *
             states.geometry().profiles[p].compute_slices;
  }
  return worth;
}

// The choices in the order in which the search takes them: for each GPU its best start.
std::vector<MigChoice> plain_choices(const MigIndex& index, std::size_t profile,
                                     const std::vector<std::uint64_t>& weights,
                                     std::uint64_t gpus) {
  using Key = std::tuple<std::uint64_t, int, int, model::GpuRef, std::uint32_t>;
  const MigStates& states = index.states();
  const model::MigProfile& wanted = states.geometry().profiles[profile];
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i < gpus; ++i) {
    const auto state = index.find(mig_gpu(i));
    if (!state) continue;
    std::vector<Key> of_gpu;
    for_each_start(free_starts(states.geometry(), wanted, *state), [&](std::uint32_t start) {
      const std::uint64_t loss = plain_worth(states, *state, weights) -
                                 plain_worth(states, with(*state, wanted, start), weights);
      of_gpu.emplace_back(loss, -std::popcount(state->occupied), -int{state->compute_used},
                          mig_gpu(i), start);
    });
    if (!of_gpu.empty()) keys.push_back(std::ranges::min(of_gpu));
  }
  std::ranges::sort(keys);
  std::vector<MigChoice> choices;
  for (const auto& [loss, occupied, compute, gpu, start] : keys) {
    choices.push_back({gpu, start, loss});
  }
  return choices;
}

// A stream of requests and ends, with GPUs that come and go. Each decision is compared.
void expect_plain_choices(std::string_view type, std::uint64_t seed) {
  constexpr std::uint64_t kGpus = 12;
  constexpr int kRequests = 400;
  base::Prng random(seed);
  MigIndex index = empty_fleet(mig_states_of(type), kGpus);
  const MigStates& states = index.states();
  MigDemand demand(states.profiles());
  std::vector<MigMade> made;
  for (int i = 0; i < kRequests; ++i) {
    // Small profiles are asked for more often, so that GPUs are cut in many ways.
    const std::size_t profile = random.below(1 + random.below(states.profiles()));
    if (demand.count(profile)) index.follow(demand);
    const auto expected = plain_choices(index, profile, demand.weights(), kGpus);
    std::vector<MigChoice> visited;
    EXPECT_FALSE(index.any_of_best(profile, [&](const MigChoice& choice) {
      visited.push_back(choice);
      return false;
    }));
    ASSERT_EQ(visited, expected) << type << " seed " << seed << " request " << i;
    ASSERT_EQ(index.gpus_with_place(profile), expected.size());
    const auto best = index.best(profile);
    ASSERT_EQ(best.has_value(), !expected.empty());
    if (best) {
      ASSERT_EQ(*best, expected.front());
      made.push_back({best->gpu, profile, best->start});
      make_instance(index, made.back());
    }
    while (!made.empty() && random.chance(2, 5)) {
      const std::size_t last = random.below(made.size());
      destroy_instance(index, made[last]);
      made.erase(made.begin() + static_cast<std::ptrdiff_t>(last));
    }
  }
}

TEST(MigSearch, ChoosesAsPlainEnumerationAndRefusesNothingThatFits) {
  for (const std::string_view type : {"A100-40GB", "A30-24GB", "H200-141GB"}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) expect_plain_choices(type, seed);
  }
}

TEST(MigSearch, KeepsTheStartsThatLargeProfilesNeed) {
  MigIndex index = empty_fleet(mig_states_of("H100-80GB"), 1);
  const std::size_t one = mig_profile_of(index.states(), "1g.10gb");
  const std::size_t four = mig_profile_of(index.states(), "4g.40gb");
  // The last start that a 1g has is of no use to 4g and 2g.
  const auto first = index.best(one);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->start, 6U);
  make_instance(index, {first->gpu, one, first->start});
  for (int i = 0; i < 2; ++i) {
    const auto next = index.best(one);
    ASSERT_TRUE(next.has_value());
    EXPECT_GE(next->start, 4U);
    make_instance(index, {next->gpu, one, next->start});
  }
  ASSERT_TRUE(index.best(four).has_value());
}

TEST(MigSearch, PrefersTheFullestOfGpusThatLoseAsMuchAndThenTheLowest) {
  MigIndex index = empty_fleet(mig_states_of("H100-80GB"), 4);
  const std::size_t one = mig_profile_of(index.states(), "1g.10gb");
  const std::size_t three = mig_profile_of(index.states(), "3g.40gb");
  // Jobs ask for whole GPUs alone, so that a GPU with any instance has nothing to lose.
  MigDemand demand(index.states().profiles());
  while (!demand.count(mig_profile_of(index.states(), "7g.80gb"))) continue;
  index.follow(demand);
  make_instance(index, {mig_gpu(1), one, 6});
  make_instance(index, {mig_gpu(2), three, 4});
  make_instance(index, {mig_gpu(3), three, 4});
  EXPECT_EQ(index.best(one), (MigChoice{.gpu = mig_gpu(2), .start = 0, .loss = 0}));
  destroy_instance(index, {mig_gpu(2), three, 4});
  EXPECT_EQ(index.best(one), (MigChoice{.gpu = mig_gpu(3), .start = 0, .loss = 0}));
  destroy_instance(index, {mig_gpu(3), three, 4});
  EXPECT_EQ(index.best(one), (MigChoice{.gpu = mig_gpu(1), .start = 0, .loss = 0}));
  destroy_instance(index, {mig_gpu(1), one, 6});
  EXPECT_EQ(index.best(one)->gpu, mig_gpu(0));
}

TEST(MigSearch, TellsTheFormerStateAndForgetsWhatLeaves) {
  MigIndex index(mig_states_of("A30-24GB"));
  const std::size_t four = mig_profile_of(index.states(), "4g.24gb");
  EXPECT_FALSE(index.best(four).has_value());
  EXPECT_EQ(index.exchange(mig_gpu(3), MigState()), std::nullopt);
  const MigState used{.occupied = 1, .compute_used = 1};
  EXPECT_EQ(index.exchange(mig_gpu(3), used), MigState());
  EXPECT_FALSE(index.best(four).has_value());
  EXPECT_EQ(index.exchange(mig_gpu(3), MigState()), used);
  EXPECT_EQ(index.best(four)->gpu, mig_gpu(3));
  EXPECT_EQ(index.exchange(mig_gpu(3), std::nullopt), MigState());
  EXPECT_EQ(index.size(), 0U);
  EXPECT_FALSE(index.best(four).has_value());
  EXPECT_EQ(encoding_of(index), encoding_of(MigIndex(mig_states_of("A30-24GB"))));
}

TEST(MigSearch, CountsWhatIsStrandedOfAllGpus) {
  MigIndex index = empty_fleet(mig_states_of("H100-80GB"), 3);
  EXPECT_EQ(index.stranded(), MigStranded());
  const std::size_t three = mig_profile_of(index.states(), "3g.40gb");
  const std::size_t one = mig_profile_of(index.states(), "1g.10gb");
  make_instance(index, {mig_gpu(0), three, 0});
  make_instance(index, {mig_gpu(0), three, 4});
  make_instance(index, {mig_gpu(1), one, 6});
  EXPECT_EQ(index.stranded(), (MigStranded{.compute_slices = 1, .memory_slices = 1}));
}

TEST(MigDemand, DecaysByRequests) {
  MigDemand demand(2);
  EXPECT_EQ(demand.weights(), (std::vector<std::uint64_t>{1, 1}));
  for (std::uint32_t i = 1; i < MigDemand::kEpoch; ++i) EXPECT_FALSE(demand.count(0));
  EXPECT_TRUE(demand.count(1));
  EXPECT_EQ(demand.weights(), (std::vector<std::uint64_t>{255 * 16, 16}));
  const auto pass_epoch = [&] {
    for (std::uint32_t i = 0; i < MigDemand::kEpoch; ++i) demand.count(0);
  };
  pass_epoch();
  EXPECT_EQ(demand.weights()[1], 8U);
  for (int i = 0; i < 3; ++i) pass_epoch();
  EXPECT_EQ(demand.weights()[1], 1U);
  pass_epoch();
  EXPECT_EQ(demand.is_wanted(), (std::vector<bool>{true, false}));
}

// ---- Streams: how much more is accepted than by first fit.

struct MigArrival {
  std::size_t profile = 0;
  std::uint64_t stays = 0;  // for so many arrivals
};

struct MigAccepted {
  std::uint64_t jobs = 0;
  std::uint64_t compute_slices = 0;  // of them

  friend bool operator==(const MigAccepted&, const MigAccepted&) = default;
};

constexpr std::uint64_t kStreamGpus = 100;
constexpr int kArrivals = 8000;

// As much is asked for as there is: each job stays for 210 arrivals in the mean.
template <class DrawProfile>
std::vector<MigArrival> arrivals_of(const DrawProfile& draw_profile) {
  constexpr std::uint64_t kMaxStay = 420;
  base::Prng random(1);
  std::vector<MigArrival> arrivals;
  for (int i = 0; i < kArrivals; ++i) {
    MigArrival arrival{.profile = draw_profile(random)};
    arrival.stays = 1 + random.below(kMaxStay);
    arrivals.push_back(arrival);
  }
  return arrivals;
}

// What does not fit when it arrives is refused. `choose` returns the GPU and the start.
template <class Choose>
MigAccepted accepted_of(const std::vector<MigArrival>& arrivals, const Choose& choose) {
  MigIndex index = empty_fleet(mig_states_of("A100-80GB"), kStreamGpus);
  MigDemand demand(index.states().profiles());
  std::multimap<std::uint64_t, MigMade> ends;
  MigAccepted accepted;
  for (std::uint64_t now = 0; now < arrivals.size(); ++now) {
    for (; !ends.empty() && ends.begin()->first <= now; ends.erase(ends.begin())) {
      destroy_instance(index, ends.begin()->second);
    }
    const MigArrival& arrival = arrivals[now];
    if (demand.count(arrival.profile)) index.follow(demand);
    const std::optional<MigMade> made = choose(index, arrival.profile);
    if (!made) continue;
    make_instance(index, *made);
    ends.emplace(now + arrival.stays, *made);
    ++accepted.jobs;
    accepted.compute_slices += index.states().geometry().profiles[arrival.profile].compute_slices;
  }
  return accepted;
}

std::optional<MigMade> by_first_fit(const MigIndex& index, std::size_t profile) {
  const MigStates& states = index.states();
  for (std::uint64_t i = 0; i < kStreamGpus; ++i) {
    const model::MigSlices starts = states.starts(*states.find(*index.find(mig_gpu(i))), profile);
    if (starts == 0) continue;
    return MigMade{mig_gpu(i), profile, static_cast<std::uint32_t>(std::countr_zero(starts))};
  }
  return std::nullopt;
}

std::optional<MigMade> by_search(const MigIndex& index, std::size_t profile) {
  const auto best = index.best(profile);
  if (!best) return std::nullopt;
  return MigMade{best->gpu, profile, best->start};
}

// Returns what the search accepts, which must be a tenth more than what first fit accepts.
MigAccepted expect_a_tenth_more(const std::vector<MigArrival>& arrivals) {
  const MigAccepted first_fit = accepted_of(arrivals, by_first_fit);
  const MigAccepted search = accepted_of(arrivals, by_search);
  std::cout << "accepted of " << arrivals.size() << " jobs: " << first_fit.jobs << " by first fit, "
            << search.jobs << " by the search; compute slices: " << first_fit.compute_slices
            << " and " << search.compute_slices << '\n';
  EXPECT_GE(search.jobs * 10, first_fit.jobs * 11) << first_fit.jobs << " and " << search.jobs;
  EXPECT_GE(search.compute_slices * 10, first_fit.compute_slices * 11)
      << first_fit.compute_slices << " and " << search.compute_slices;
  return search;
}

// Returns the smallest plain profile with so many compute slices, of those below a whole GPU.
std::size_t profile_of_slices(const MigStates& states, std::uint64_t slices) {
  constexpr std::string_view kNames[] = {"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb"};
  return mig_profile_of(states, kNames[slices - 1]);
}

TEST(MigSearch, AcceptsATenthMoreThanFirstFit) {
  const auto states = mig_states_of("A100-80GB");
  const auto arrivals = arrivals_of([&](base::Prng& random) {
    const std::uint64_t percent = random.below(100);
    return profile_of_slices(*states, percent < 2 ? 1 : percent < 19 ? 2 : percent < 42 ? 3 : 4);
  });
  EXPECT_EQ(expect_a_tenth_more(arrivals), (MigAccepted{.jobs = 7151, .compute_slices = 23484}));
}

// The parts of GPUs that jobs of a real cluster asked for: the trace openb of 2023, whose list of
// pods lies in the folder that the environment names.
std::vector<std::uint64_t> slices_in_trace(std::istream& trace) {
  constexpr std::uint64_t kMaxSlices = 4;
  constexpr std::uint64_t kThousandths = 1000;
  std::vector<std::uint64_t> slices;
  std::string line;
  std::getline(trace, line);  // the names of the columns
  while (std::getline(trace, line)) {
    std::istringstream columns(line);
    std::vector<std::string> values;
    for (std::string value; std::getline(columns, value, ',');) values.push_back(value);
    if (values.size() < 5 || values[3] != "1") continue;
    const std::uint64_t sevenths = (std::stoull(values[4]) * 7 + kThousandths - 1) / kThousandths;
    if (sevenths <= kMaxSlices) slices.push_back(sevenths);
  }
  return slices;
}

TEST(MigSearch, AcceptsATenthMoreThanFirstFitOfATrace) {
  const char* folder = std::getenv("GPU_PLATFORM_TEST_TRACES");
  if (folder == nullptr) GTEST_SKIP() << "GPU_PLATFORM_TEST_TRACES names no folder of traces";
  std::ifstream trace(std::string(folder) + "/alibaba-openb-2023/openb_pod_list_default.csv");
  if (!trace) GTEST_SKIP() << "the folder lacks the trace";
  const auto slices = slices_in_trace(trace);
  ASSERT_EQ(slices.size(), 1672U);
  const auto states = mig_states_of("A100-80GB");
  const auto arrivals = arrivals_of([&](base::Prng& random) {
    return profile_of_slices(*states, slices[random.below(slices.size())]);
  });
  EXPECT_EQ(expect_a_tenth_more(arrivals), (MigAccepted{.jobs = 7089, .compute_slices = 23354}));
}

}  // namespace
}  // namespace gpu_platform::scheduling
