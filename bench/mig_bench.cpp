// This program measures what MIG costs the scheduler: the choice of a GPU, profile and start on a
// fleet of 12,500 nodes with 8 GPUs each that is half cut, what follows when instances come and go,
// and the tables of one type of GPU.
//
// The fleet is cut by the search itself: instances come at random until half of the compute slices
// are used, and then as many come as go, until every GPU has had several.

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/prng.h"
#include "model/mig_geometry.h"
#include "scheduling/mig/mig_search.h"

namespace gpu_platform::scheduling {
namespace {

constexpr std::uint64_t kNodes = 12'500;
constexpr std::uint32_t kGpusPerNode = 8;
constexpr std::string_view kType = "H100-80GB";

std::shared_ptr<const MigStates> states_of_type() {
  return std::make_shared<const MigStates>(*model::known_mig_geometry(kType));
}

// Instances that come and go on a fleet.
class CutFleet {
 public:
  CutFleet() : index_(states_of_type()), demand_(index_.states().profiles()), random_(1) {
    for (std::uint64_t node = 1; node <= kNodes; ++node) {
      for (std::uint32_t gpu = 0; gpu < kGpusPerNode; ++gpu) {
        index_.exchange({model::NodeId(node), gpu}, MigState());
      }
    }
    const std::uint64_t half = kNodes * kGpusPerNode * geometry().compute_slices / 2;
    while (used_ < half) make(draw());
    for (std::uint64_t i = 0; i < kNodes * kGpusPerNode * 4; ++i) {
      while (used_ >= half) destroy_one();
      make(draw());
    }
  }

  const MigIndex& index() const { return index_; }

  // Small profiles are asked for more often.
  std::size_t draw() { return random_.below(1 + random_.below(index_.states().profiles())); }

  void make(std::size_t profile) {
    if (demand_.count(profile)) index_.follow(demand_);
    const auto best = index_.best(profile);
    if (!best) return;
    index_.exchange(best->gpu,
                    with(*index_.find(best->gpu), geometry().profiles[profile], best->start));
    used_ += geometry().profiles[profile].compute_slices;
    made_.push_back({best->gpu, profile, best->start});
  }

  void destroy_one() {
    std::swap(made_[random_.below(made_.size())], made_.back());
    const Made made = made_.back();
    made_.pop_back();
    const model::MigProfile& profile = geometry().profiles[made.profile];
    index_.exchange(made.gpu, without(*index_.find(made.gpu), profile, made.start));
    used_ -= profile.compute_slices;
  }

 private:
  struct Made {
    model::GpuRef gpu;
    std::size_t profile = 0;
    std::uint32_t start = 0;
  };

  const model::MigGeometry& geometry() const { return index_.states().geometry(); }

  MigIndex index_;
  MigDemand demand_;
  base::Prng random_;
  std::vector<Made> made_;
  std::uint64_t used_ = 0;  // compute slices
};

CutFleet& cut_fleet() {
  static CutFleet fleet;
  return fleet;
}

// A decision alone, by profile; the label is its name.
void BM_Decision(benchmark::State& state) {
  const MigIndex& index = cut_fleet().index();
  const auto profile = static_cast<std::size_t>(state.range(0));
  state.SetLabel(to_string(index.states().geometry().profiles[profile].name));
  for (auto _ : state) benchmark::DoNotOptimize(index.best(profile));
}
BENCHMARK(BM_Decision)->DenseRange(0, 6);

// An instance goes and another comes: two updates of the index, the decision, and its part of a new
// ranking.
void BM_Turnover(benchmark::State& state) {
  CutFleet& fleet = cut_fleet();
  for (auto _ : state) {
    fleet.destroy_one();
    fleet.make(fleet.draw());
  }
}
BENCHMARK(BM_Turnover);

void BM_Stranded(benchmark::State& state) {
  const MigIndex& index = cut_fleet().index();
  for (auto _ : state) benchmark::DoNotOptimize(index.stranded());
}
BENCHMARK(BM_Stranded);

// Once for each type of GPU.
void BM_BuildStates(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(states_of_type());
}
BENCHMARK(BM_BuildStates);

// Once for each epoch of the demand, by the number of its requests.
void BM_BuildRanking(benchmark::State& state) {
  const auto states = states_of_type();
  const MigDemand demand(states->profiles());
  for (auto _ : state) benchmark::DoNotOptimize(MigRanking(*states, demand.weights()));
}
BENCHMARK(BM_BuildRanking);

}  // namespace
}  // namespace gpu_platform::scheduling
