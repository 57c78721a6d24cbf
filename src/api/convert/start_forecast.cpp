#include "api/convert/start_forecast.h"

#include <string>

#include <fmt/format.h>

#include "api/convert/job.h"

namespace gpu_platform::api {

void to_proto(const model::StartForecast& forecast, v1::StartForecast& out) {
  to_proto(forecast.made_at, *out.mutable_made_at());
  to_proto(forecast.by_limits, *out.mutable_by_limits());
  for (const model::JobId job : forecast.after) {
    out.add_after_jobs(fmt::format_int(job.value).str());
  }
  if (!forecast.p50.is_set()) return;
  v1::ExpectedStart& expected = *out.mutable_expected();
  to_proto(forecast.p50, *expected.mutable_p50());
  to_proto(forecast.p90, *expected.mutable_p90());
  expected.set_basis(std::string(to_string(forecast.basis)));
}

}  // namespace gpu_platform::api
