#include "api/estimates.h"

#include <string>

#include "api/convert/job.h"

namespace gpu_platform::api {

namespace {}  // namespace

void to_proto(const controller::StartExpectation& expected, v1::ExpectedStart& out) {
  to_proto(expected.start.p50, *out.mutable_p50());
  to_proto(expected.start.p90, *out.mutable_p90());
  out.set_basis(std::string(to_string(expected.basis)));
  out.set_runs(expected.runs);
}

void to_proto(const scheduling::ExpectedRun& expected, v1::ExpectedRun& out) {
  out.set_p50_seconds(in_seconds(expected.p50));
  out.set_p90_seconds(in_seconds(expected.p90));
  out.set_basis(std::string(to_string(expected.basis)));
  if (!expected.history) return;
  out.set_runs(expected.history->runs);
  out.set_level(std::string(to_string(expected.history->level)));
}

void add_scores(const controller::Snapshot& snapshot, Scores& out) {
  for (std::size_t i = 0; i < model::kForecastBases; ++i) {
    const auto basis = static_cast<model::ForecastBasis>(i);
    const auto score = snapshot.scores->score(basis);
    if (!score) continue;
    v1::EstimateScore& one = *out.Add();
    one.set_basis(std::string(to_string(basis)));
    one.set_starts(score->starts);
    one.set_by_then(score->by_then);
    one.set_p50_seconds(in_seconds(score->p50));
    one.set_p90_seconds(in_seconds(score->p90));
    one.set_p50_signed_seconds(in_seconds(score->p50_signed));
  }
}

}  // namespace gpu_platform::api
