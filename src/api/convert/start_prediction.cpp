#include "api/convert/start_prediction.h"

#include <string>

#include <fmt/format.h>

#include "api/convert/job.h"

namespace gpu_platform::api {

void to_proto(const model::StartPrediction& prediction, v1::StartPrediction& out) {
  to_proto(prediction.made_at, *out.mutable_made_at());
  to_proto(prediction.by_limits, *out.mutable_by_limits());
  for (const model::JobId job : prediction.after) {
    out.add_after_jobs(fmt::format_int(job.value).str());
  }
  out.set_jobs_ahead(prediction.jobs_ahead);
  if (!prediction.p50.is_set()) return;
  v1::PredictedStart& predicted = *out.mutable_predicted_start();
  to_proto(prediction.p50, *predicted.mutable_p50());
  to_proto(prediction.p90, *predicted.mutable_p90());
  predicted.set_basis(std::string(to_string(prediction.basis)));
}

}  // namespace gpu_platform::api
