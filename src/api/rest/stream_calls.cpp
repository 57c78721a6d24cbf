#include "api/rest/stream_calls.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/calls.h"
#include "api/convert/job.h"
#include "api/event_hub.h"
#include "api/rest/audited_call.h"
#include "api/rest/reading_stream.h"
#include "api/rest/streams.h"

namespace gpu_platform::api {

namespace {

bool wants_plain(const HttpRequest& request) {
  return request.accept.starts_with("text/plain") ||
         request.accept.starts_with("application/octet-stream");
}

Reply plain_output(v1::OutputChunk chunk) {
  Reply reply;
  reply.content_type = "application/octet-stream";
  reply.headers.emplace_back("Output-Attempt", fmt::format("{}", chunk.attempt()));
  reply.headers.emplace_back("Output-Offset", fmt::format("{}", chunk.offset()));
  reply.headers.emplace_back("Output-Next-Offset", fmt::format("{}", chunk.next_offset()));
  reply.headers.emplace_back("Output-Ended", chunk.ended() ? "true" : "false");
  reply.body = std::move(*chunk.mutable_data());
  return reply;
}

base::Result<std::optional<model::EventSeq>> last_event_id(const HttpRequest& request) {
  const std::string& text = request.last_event_id;
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) {
    return base::invalid("Last-Event-ID",
                         "Last-Event-ID: must be the id of an event of this stream");
  }
  return model::EventSeq(value);
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

StreamContext stream_context(const HandlerContext& context, Exchange& exchange) {
  return {context.calls.reader(), context.hub, exchange.peer().caller, exchange.waker()};
}

void stream_changes(const RoutedCall& call, ChangeStream::Options options) {
  if (!begin_stream(call.exchange, call.request.id)) return;
  call.exchange.reply(event_stream(
      std::make_unique<ChangeStream>(stream_context(call.context, call.exchange), options)));
}

void begin_output_stream(const LateAnswer& late, Exchange& exchange, FileWatcher& watcher,
                         const std::string& named, OutputStream::Options options) {
  const auto job = late.context.calls.reader().find(exchange.peer().caller, named);
  if (!job) return exchange.reply(problem_reply(job.error(), late.request_id));
  options.job = job->job->id;
  if (!begin_stream(exchange, late.request_id)) return;
  StreamContext stream = stream_context(late.context, exchange);
  stream.resume = exchange.resume();
  Reply reply = event_stream(
      std::make_unique<OutputStream>(std::move(stream), watcher, exchange.context(), options));
  if (options.is_plain) reply.content_type = "application/octet-stream";
  exchange.reply(std::move(reply));
}

// Answers with a check of the job, once it would start or the time is up.
void wait_for_start(const LateAnswer& late, Exchange& exchange,
                    std::shared_ptr<const model::Job> job, std::chrono::milliseconds timeout) {
  const Calls& calls = late.context.calls;
  // The exchange keeps the waiter, so the pointer back is good as long as it lives.
  auto waiter = std::make_shared<StartWaiter>(
      calls.of<PlanningCalls>(), calls.reader(), std::move(job), exchange.context(),
      [to = &exchange, &route = late.route](const v1::CheckResult& result) {
        to->reply(json_reply(route.success_status, result));
      });
  exchange.keep(waiter);
  waiter->begin(late.context.hub, timeout);
}

void begin_channel(const LateAnswer& late, Exchange& exchange, model::ChannelOrder order) {
  late.context.calls.of<ChannelCalls>().open(std::move(order), exchange.resume(),
                                             [late](base::Result<ChannelSocket> channel) {
                                               const auto open = late.open();
                                               if (open == nullptr) return;
                                               if (channel) {
                                                 return open->bridge(*std::move(channel));
                                               }
                                               late.refuse(*open, std::move(channel).error());
                                             });
}

Reply upgrade_required(const std::string& request_id) {
  Reply reply = problem_reply(
      426,
      base::Error{
          base::ErrorCode::kInvalidArgument, "this is a WebSocket: ask for the upgrade", {}},
      request_id);
  reply.headers.emplace_back("Upgrade", "websocket");
  return reply;
}

template <class Message>
void enter_job(const RoutedCall& call, const Message& message) {
  Exchange& exchange = call.exchange;
  model::AuditedCall audited = begin_audit(exchange, *call.action);
  add_job(message.id(), audited);
  const LateAnswer late(call, std::move(audited));
  const auto& channels = call.context.calls.of<ChannelCalls>();
  auto order = channels.order(message, exchange.peer());
  if (!order) return late.refuse(exchange, std::move(order).error());
  if (!exchange.wants_websocket()) return exchange.reply(upgrade_required(call.request.id));
  if (const base::Status begun = exchange.begin_channel(); !begun) {
    return answer_error(call, begun.error());
  }
  order->by = exchange.peer().caller.user;
  order->by_uid = exchange.peer().caller.uid;
  channels.record(*call.action, *order, exchange.peer(), exchange.resume(),
                  [late, order = *order](base::Status status) {
                    const auto open = late.open();
                    if (open == nullptr) return;
                    if (status) return begin_channel(late, *open, order);
                    open->reply(problem_reply(std::move(status).error(), late.request_id));
                  });
}

}  // namespace

void list_jobs(const RoutedCall& call, const v1::ListJobsRequest& message) {
  // The owners of ended jobs are known by name.
  if (const base::Status named = check_named(call.exchange.peer()); !named) {
    return answer_error(call, named.error());
  }
  const model::Caller& caller = call.exchange.peer().caller;
  auto filter = to_model(message, caller);
  if (!filter) return answer_error(call, std::move(filter).error());
  filter->max_bytes = call.context.page_bytes;
  if (call.fields != nullptr) {
    filter->fields = call.fields->plan_of_field("jobs");
    if (filter->fields == nullptr) {
      return answer_error(
          call,
          base::Error{base::ErrorCode::kInvalidArgument,
                      "fields: name fields of the jobs, such as jobs.id,jobs.state", "fields"});
    }
  }
  auto writer =
      std::make_unique<JobListWriter>(call.context.calls.reader(), caller, *std::move(filter));
  const base::Status begun = writer->begin();
  if (!begun) return answer_error(call, begun.error());
  Reply reply;
  reply.source = std::make_unique<JobListSource>(std::move(writer), call.fields);
  call.exchange.reply(std::move(reply));
}

void get_queue(const RoutedCall& call, const v1::GetQueueRequest& message) {
  auto writer = QueueWriter::open(call.context.calls.reader(), call.exchange.peer().caller, message,
                                  call.context.page_bytes);
  if (!writer) return answer_error(call, std::move(writer).error());
  Reply reply;
  reply.source = std::make_unique<QueueSource>(*std::move(writer));
  call.exchange.reply(std::move(reply));
}

void wait_job(const RoutedCall& call, const v1::WaitJobRequest& message) {
  const JobReader& reader = call.context.calls.reader();
  Exchange* exchange = &call.exchange;
  const auto job = reader.find(exchange->peer().caller, message.id());
  if (!job) return answer_error(call, job.error());
  const double seconds = message.has_timeout_seconds() ? message.timeout_seconds() : 60;
  if (!begin_stream(*exchange, call.request.id)) return;
  // The exchange keeps the waiter, so the waiter's pointer back is good as long as it lives.
  auto waiter = std::make_shared<JobWaiter>(
      reader, exchange->peer().caller, job->job->id, exchange->context(),
      [exchange, id = call.request.id, &route = call.route,
       fields = call.fields](const base::Result<v1::Job>& result) {
        exchange->reply(json_reply(route, result, id, fields));
      });
  exchange->keep(waiter);
  waiter->begin(call.context.hub, milliseconds_of(seconds));
}

void check_job(const RoutedCall& call, const v1::CheckJobRequest& message) {
  const std::chrono::milliseconds timeout = milliseconds_of(message.timeout_seconds());
  Exchange& exchange = call.exchange;
  if (timeout.count() > 0 && !begin_stream(exchange, call.request.id)) return;
  call.context.calls.of<PlanningCalls>().judge(
      message.spec(), exchange.peer(), exchange.resume(),
      [late = LateAnswer(call), timeout](PlanningCalls::Accepted job) {
        const auto open = late.open();
        if (open == nullptr) return;
        if (job) return wait_for_start(late, *open, *std::move(job), timeout);
        open->reply(
            json_reply(late.route, PlanningCalls::check_refused(job.error()), late.request_id));
      });
}

void get_output(const RoutedCall& call, const v1::GetOutputRequest& message) {
  call.context.calls.of<JobCalls>().output(
      message, call.exchange.peer(), call.exchange.resume(),
      [late = LateAnswer(call),
       is_plain = wants_plain(call.request)](base::Result<v1::OutputChunk> chunk) {
        const auto open = late.open();
        if (open == nullptr) return;
        if (chunk && is_plain) return open->reply(plain_output(*std::move(chunk)));
        open->reply(json_reply(late.route, chunk, late.request_id));
      });
}

void stream_output(const RoutedCall& call, const v1::GetOutputRequest& message) {
  const auto offset = last_event_id(call.request);
  OutputStream::Options options;
  if (message.has_attempt()) options.attempt = message.attempt();
  options.offset = offset && *offset ? (*offset)->value : message.offset();
  options.is_plain = wants_plain(call.request);
  // The same check as for one chunk, with its errors.
  v1::GetOutputRequest probe = message;
  probe.set_limit(1);
  call.context.calls.of<JobCalls>().output(
      probe, call.exchange.peer(), call.exchange.resume(),
      [late = LateAnswer(call), job = message.id(), options, offset,
       &watcher = call.watcher](base::Result<v1::OutputChunk> first) {
        const auto open = late.open();
        if (open == nullptr) return;
        if (!first) return open->reply(problem_reply(first.error(), late.request_id));
        if (!offset) return open->reply(problem_reply(offset.error(), late.request_id));
        begin_output_stream(late, *open, watcher, job, options);
      });
}

void watch_job(const RoutedCall& call, const v1::WatchJobRequest& message) {
  v1::GetJobRequest get;
  get.set_id(message.id());
  const auto job = call.context.calls.of<JobCalls>().get(get, call.exchange.peer());
  if (!job) return answer_error(call, job.error());
  const auto after = last_event_id(call.request);
  if (!after) return answer_error(call, after.error());
  stream_changes(call, {.job = *to_job_id(job->id()), .after = *after});
}

void watch_jobs(const RoutedCall& call, const v1::WatchJobsRequest& message) {
  auto after = last_event_id(call.request);
  if (!after) return answer_error(call, after.error());
  if (!*after && message.after_seq() != 0) *after = model::EventSeq(message.after_seq());
  stream_changes(call, {.job = {}, .all_users = message.all(), .after = *after});
}

void watch_gpus(const RoutedCall& call, const v1::WatchGpusRequest& message) {
  auto after = last_event_id(call.request);
  if (!after) return answer_error(call, after.error());
  if (!*after && message.after_seq() != 0) *after = model::EventSeq(message.after_seq());
  // The same check as of the list, with its error.
  v1::ListGpusRequest probe;
  probe.set_node(message.node());
  const auto known = call.context.calls.of<ClusterCalls>().gpus(probe, call.exchange.peer());
  if (!known) return answer_error(call, known.error());
  if (!begin_stream(call.exchange, call.request.id)) return;
  call.exchange.reply(event_stream(std::make_unique<GpuStream>(
      stream_context(call.context, call.exchange), GpuStream::Options{message.node(), *after})));
}

void watch_readings(const RoutedCall& call, const v1::WatchReadingsRequest& message) {
  const auto after = last_event_id(call.request);
  if (!after) return answer_error(call, after.error());
  const TelemetryCalls& telemetry = call.context.calls.of<TelemetryCalls>();
  auto filter = telemetry.filter_of(message, call.exchange.peer());
  if (!filter) return answer_error(call, std::move(filter).error());
  ReadingStream::Options options{.filter = *std::move(filter)};
  if (*after) {
    options.after = (*after)->value;
  } else if (message.after_seq() != 0) {
    options.after = message.after_seq();
  }
  if (!begin_stream(call.exchange, call.request.id)) return;
  call.exchange.reply(event_stream(std::make_unique<ReadingStream>(
      stream_context(call.context, call.exchange), *call.context.calls.reader().core().reading_hub,
      std::move(options))));
}

void open_channel(const RoutedCall& call, const v1::ExecInJobRequest& message) {
  enter_job(call, message);
}

void open_channel(const RoutedCall& call, const v1::AttachToJobRequest& message) {
  enter_job(call, message);
}

void open_channel(const RoutedCall& call, const v1::ForwardPortRequest& message) {
  enter_job(call, message);
}

}  // namespace gpu_platform::api
