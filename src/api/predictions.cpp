#include "api/predictions.h"

#include <string>

#include "api/convert/job.h"
#include "views/predicted_starts.h"

namespace gpu_platform::api {

void to_proto(const views::PredictedStart& predicted, v1::PredictedStart& out) {
  to_proto(predicted.start.p50, *out.mutable_p50());
  to_proto(predicted.start.p90, *out.mutable_p90());
  out.set_basis(std::string(to_string(predicted.basis)));
  out.set_runs(predicted.runs);
}

void to_proto(const scheduling::PredictedRun& predicted, v1::PredictedRun& out) {
  out.set_p50_seconds(in_seconds(predicted.p50));
  out.set_p90_seconds(in_seconds(predicted.p90));
  out.set_basis(std::string(to_string(predicted.basis)));
  if (!predicted.history) return;
  out.set_runs(predicted.history->runs);
  out.set_level(std::string(to_string(predicted.history->level)));
  out.set_measure(std::string(to_string(predicted.history->measure)));
}

void to_proto(const scheduling::PlannedTrust& trust, v1::PlannedTrust& out) {
  to_proto(trust.p90, *out.mutable_p90());
  out.set_starts(trust.starts);
  out.set_by_then(trust.by_then);
}

void add_scores(const controller::Snapshot& snapshot, Scores& out) {
  for (std::size_t i = 0; i < model::kPredictionBases; ++i) {
    const auto basis = static_cast<model::PredictionBasis>(i);
    const auto score = snapshot.scores->score(basis);
    if (!score) continue;
    v1::PredictionScore& one = *out.Add();
    one.set_basis(std::string(to_string(basis)));
    one.set_starts(score->starts);
    one.set_by_then(score->by_then);
    one.set_p50_seconds(in_seconds(score->p50));
    one.set_p90_seconds(in_seconds(score->p90));
    one.set_p50_signed_seconds(in_seconds(score->p50_signed));
  }
}

}  // namespace gpu_platform::api
