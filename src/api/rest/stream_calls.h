#pragma once

#include "api/rest/routed_call.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/planning.pb.h"
#include "gpu_platform/v1/telemetry.pb.h"

// The handlers of calls with answers that go on or are waited for: lists, waits, streams, output,
// channels.

namespace gpu_platform::api {

void list_jobs(const RoutedCall& call, const v1::ListJobsRequest& message);
void get_queue(const RoutedCall& call, const v1::GetQueueRequest& message);

void wait_job(const RoutedCall& call, const v1::WaitJobRequest& message);
void check_job(const RoutedCall& call, const v1::CheckJobRequest& message);

void get_output(const RoutedCall& call, const v1::GetOutputRequest& message);
void stream_output(const RoutedCall& call, const v1::GetOutputRequest& message);

void watch_job(const RoutedCall& call, const v1::WatchJobRequest& message);
void watch_jobs(const RoutedCall& call, const v1::WatchJobsRequest& message);
void watch_gpus(const RoutedCall& call, const v1::WatchGpusRequest& message);
void watch_readings(const RoutedCall& call, const v1::WatchReadingsRequest& message);

void open_channel(const RoutedCall& call, const v1::ExecInJobRequest& message);
void open_channel(const RoutedCall& call, const v1::AttachToJobRequest& message);
void open_channel(const RoutedCall& call, const v1::ForwardPortRequest& message);

}  // namespace gpu_platform::api
