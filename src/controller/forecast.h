#pragma once

#include <cstddef>
#include <vector>

#include "base/units.h"
#include "controller/picture.h"
#include "model/job.h"
#include "scheduling/order/rank.h"
#include "scheduling/predict/forecast.h"

// When waiting jobs are expected to start, for those who ask: beside estimate.h, which has what is
// promised.

namespace gpu_platform::controller {

// Waiting jobs that a forecast reckons with: nothing is foreseen of those behind.
inline constexpr std::size_t kMostForecast = 1000;

// What is expected is never later than what is promised.
void limit_to(scheduling::ExpectedStart& expected, base::Instant promised);

// The attempt as a forecast sees it; it holds something. What it points to is the job's.
scheduling::RunningJob running_job(const model::Job& job, const model::Attempt& attempt);

// Of the first kMostForecast of the queue. Nothing where the policy reserves nothing.
scheduling::Forecast forecast_queue(Picture& picture, base::Instant now);

// Of the job alone, which may or may not be in the queue, behind those of a lower rank. Nothing
// where kMostForecast or more are before it.
scheduling::Forecast forecast_one(Picture& picture, const scheduling::WaitingJob& job,
                                  const scheduling::Rank& rank, base::Instant now);

}  // namespace gpu_platform::controller
