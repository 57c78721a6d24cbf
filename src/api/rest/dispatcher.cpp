#include "api/rest/dispatcher.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "api/convert/enums.h"
#include "api/convert/job.h"
#include "api/convert/json_writer.h"
#include "api/convert/problem.h"
#include "api/rest/openapi.h"
#include "base/check.h"
#include "base/letters.h"

namespace gpu_platform::api {

namespace {

constexpr std::string_view kPackage = "gpu_platform.v1.";
constexpr std::string_view kOpenApiPath = "/v1/openapi.json";
constexpr std::string_view kMetricsPath = "/metrics";

using Fields = std::shared_ptr<const FieldSelection>;

Reply json_reply(int status, const google::protobuf::Message& message,
                 const Fields& fields = nullptr) {
  Reply reply;
  reply.status = status;
  reply.body.reserve(1024);
  fields == nullptr ? append_json(reply.body, message)
                    : append_json(reply.body, message, fields->plan());
  return reply;
}

template <class Message>
Reply json_reply(const Route& route, base::Result<Message> result, const std::string& request_id,
                 const Fields& fields = nullptr) {
  if (!result) return problem_reply(std::move(result).error(), request_id);
  return json_reply(route.success_status, *result, fields);
}

template <class Message>
Reply answer_of(const Route& route, base::Result<Message> result, const std::string& request_id,
                const Fields& fields) {
  return json_reply(route, std::move(result), request_id, fields);
}
Reply answer_of(const Route& route, const google::protobuf::Message& message, const std::string&,
                const Fields& fields) {
  return json_reply(route.success_status, message, fields);
}

bool is_fields(const std::pair<std::string, std::string>& parameter) {
  return parameter.first == "fields";
}

// Takes "fields" out of the query.
base::Result<Fields> take_fields(const Route& route, Target& target) {
  const auto found = std::ranges::find_if(target.query, is_fields);
  if (std::ranges::count_if(target.query, is_fields) > 1) {
    return base::invalid("fields", "fields: given twice; separate the paths by commas");
  }
  TRY_ASSIGN(FieldSelection selection,
             FieldSelection::parse(found->second, *route.call->output_type()));
  target.query.erase(found);
  return std::make_shared<const FieldSelection>(std::move(selection));
}

bool is_json(std::string_view content_type) {
  const std::size_t end = content_type.find_first_of("; \t");
  return base::to_lower(content_type.substr(0, end)) == "application/json";
}

// The pages that are no calls.
std::optional<std::string_view> page_of(const Target& target) {
  std::string path;
  for (const std::string& segment : target.segments) path += "/" + segment;
  for (const std::string_view page : {kOpenApiPath, kMetricsPath}) {
    if (path == page) return page;
  }
  return std::nullopt;
}

bool wants_plain(const HttpRequest& request) {
  return request.accept.starts_with("text/plain") ||
         request.accept.starts_with("application/octet-stream");
}

Reply event_stream(std::unique_ptr<BodySource> source) {
  Reply reply;
  reply.content_type = "text/event-stream";
  reply.headers.emplace_back("Cache-Control", "no-store");
  reply.source = std::move(source);
  return reply;
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

// Counts the answer among those that go on, or answers that there are too many.
bool begin_stream(Exchange& exchange, const std::string& request_id) {
  const base::Status begun = exchange.begin_stream();
  if (!begun) exchange.reply(problem_reply(begun.error(), request_id));
  return begun.has_value();
}

model::AuditedCall call_of(Exchange& exchange, model::AuditAction action) {
  model::AuditedCall call;
  call.by = model::origin_of(exchange.peer().caller);
  call.action = action;
  return call;
}

// About the job that is named so, where that is a name of one.
model::AuditedCall call_of(Exchange& exchange, model::AuditAction action, std::string_view id) {
  model::AuditedCall call = call_of(exchange, action);
  const auto job = to_job_ref(id);
  if (!job) return call;
  call.jobs = {job->job};
  call.job_count = 1;
  return call;
}

model::AuditedCall call_of(Exchange& exchange, model::AuditAction action, const std::string& target,
                           const std::string& request_id) {
  constexpr std::size_t kMaxBytes = 255;
  model::AuditedCall call = call_of(exchange, action);
  call.target = model::one_line(target, kMaxBytes);
  call.request_id = model::one_line(request_id, kMaxBytes);
  return call;
}

// What a call is about that is refused before its handler reads it: the job, the GPU, the node or
// the name in its request, where that can be read.
void add_target(const Route& route, const HttpRequest& request, model::AuditedCall& call) {
  constexpr std::size_t kMaxBytes = 255;
  const auto* prototype =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(route.call->input_type());
  const std::unique_ptr<google::protobuf::Message> message(prototype->New());
  if (!read_request(route, request.target, request.body, *message)) return;
  const auto text = [&](const char* name) {
    const auto* field = message->GetDescriptor()->FindFieldByName(name);
    using Field = google::protobuf::FieldDescriptor;
    const bool is_text =
        field != nullptr && !field->is_repeated() && field->cpp_type() == Field::CPPTYPE_STRING;
    return is_text ? message->GetReflection()->GetString(*message, field) : std::string();
  };
  if (const auto job = to_job_ref(text("id"))) {
    call.jobs = {job->job};
    call.job_count = 1;
  }
  for (const char* name : {"node", "gpu", "gpu_id", "name"}) {
    if (call.target.empty()) call.target = model::one_line(text(name), kMaxBytes);
  }
}

}  // namespace

Reply problem_reply(base::Error error, const std::string& request_id) {
  const int status = http_status(error.code);
  return problem_reply(status, std::move(error), request_id);
}

Reply problem_reply(int status, base::Error error, const std::string& request_id) {
  Reply reply;
  reply.status = status;
  reply.content_type = "application/problem+json";
  if (status == http_status(base::ErrorCode::kUnauthenticated)) {
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  reply.body = to_json(Problem{status, std::move(error), request_id});
  return reply;
}

void Dispatcher::refuse(Exchange& exchange, const std::string& request_id,
                        std::optional<model::AuditedCall> call, base::Error error) const {
  if (refusals_ == nullptr || !call) {
    return exchange.reply(problem_reply(std::move(error), request_id));
  }
  call->refusal = model::refusal_of(error);
  const auto answer = [weak = exchange.weak_from_this(), error, request_id] {
    if (const auto open = weak.lock()) open->reply(problem_reply(error, request_id));
  };
  const bool is_written =
      refusals_->note(*std::move(call), [resume = exchange.resume(), answer] { resume(answer); });
  if (!is_written) answer();
}

template <class Message>
bool Dispatcher::read(const Context& context, Message& out) const {
  const HttpRequest& request = context.request;
  const base::Status status = read_request(context.route, request.target, request.body, out);
  if (!status) context.exchange.reply(problem_reply(status.error(), request.id));
  return status.has_value();
}

template <class Message>
bool Dispatcher::read_changing(const Context& context, Message& out) const {
  const HttpRequest& request = context.request;
  const base::Status status = read_request(context.route, request.target, request.body, out);
  if (!status) {
    refuse(context.exchange, request.id, call_of(context.exchange, *context.action),
           status.error());
  }
  return status.has_value();
}

template <class Message>
std::function<void(base::Result<Message>)> Dispatcher::answer_changing(
    const Context& context, std::optional<model::AuditedCall> call) const {
  return [this, weak = context.exchange.weak_from_this(), id = context.request.id,
          &route = context.route, call = std::move(call)](base::Result<Message> result) {
    const auto open = weak.lock();
    if (open == nullptr) return;
    if (!result) return refuse(*open, id, call, std::move(result).error());
    open->reply(json_reply(route.success_status, *result));
  };
}

void Dispatcher::handle(const HttpRequest& request, Exchange& exchange,
                        FileWatcher& watcher) const {
  const auto refuse = [&](int status, base::ErrorCode code, std::string message) {
    return problem_reply(status, base::Error{code, std::move(message), {}}, request.id);
  };
  // Of a method that the path has not; for OPTIONS that is the answer.
  const auto methods = [&](const std::string& allowed) {
    Reply reply;
    reply.status = 204;
    if (request.method != "OPTIONS") {
      reply = refuse(405, base::ErrorCode::kInvalidArgument,
                     fmt::format("this path takes {}", allowed));
    }
    reply.headers.emplace_back("Allow", allowed);
    return reply;
  };
  if (const auto page = page_of(request.target)) {
    if (request.method != "GET") return exchange.reply(methods("GET, HEAD, OPTIONS"));
    exchange.is_call(*page);
    return exchange.reply(*page == kMetricsPath ? metrics() : open_api());
  }
  const RoutingTable::Match match = table_.find(request.method, request.target);
  if (match.route == nullptr && match.allowed.empty()) {
    return exchange.reply(
        refuse(404, base::ErrorCode::kNotFound,
               fmt::format("there is no such path; {} lists them", kOpenApiPath)));
  }
  if (match.route == nullptr) return exchange.reply(methods(match.allowed));
  exchange.is_call(std::string_view(match.route->call->full_name()).substr(kPackage.size()));
  const Entry& entry = handlers_.find(match.route->call->full_name())->second;
  const base::Status admitted =
      admit(entry.access, *calls_.reader().rules(), exchange.peer().caller);
  if (!admitted) {
    std::optional<model::AuditedCall> call;
    if (entry.action) {
      call = call_of(exchange, *entry.action);
      add_target(*match.route, request, *call);
    }
    return this->refuse(exchange, request.id, std::move(call), admitted.error());
  }
  const bool needs_json = match.route->has_body || request.body != nullptr;
  if (needs_json && !is_json(request.content_type)) {
    return exchange.reply(refuse(415, base::ErrorCode::kInvalidArgument,
                                 "the body must be JSON: Content-Type: application/json"));
  }
  handle_call({request, *match.route, exchange, watcher, entry.action}, entry);
}

void Dispatcher::handle_call(const Context& context, const Entry& entry) const {
  if (!context.route.takes_fields ||
      std::ranges::none_of(context.request.target.query, is_fields)) {
    return entry.handle(*this, context);
  }
  HttpRequest request = context.request;
  auto fields = take_fields(context.route, request.target);
  if (!fields) {
    return context.exchange.reply(problem_reply(std::move(fields).error(), request.id));
  }
  entry.handle(*this, {request, context.route, context.exchange, context.watcher, context.action,
                       *std::move(fields)});
}

Reply Dispatcher::open_api() const {
  Reply reply;
  reply.body = openapi_;
  return reply;
}

Reply Dispatcher::metrics() const {
  Reply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = calls_.of<StatisticsCalls>().metrics();
  return reply;
}

void Dispatcher::submit(const Context& context, const v1::SubmitJobRequest& message) const {
  calls_.of<JobCalls>().submit(
      message, context.exchange.peer(), context.exchange.resume(),
      [this, weak = context.exchange.weak_from_this(), id = context.request.id,
       created = context.route.success_status,
       call = call_of(context.exchange, model::AuditAction::kSubmit, message.spec().user(),
                      message.spec().request_id())](base::Result<Created<v1::Job>> result) {
        const auto exchange = weak.lock();
        if (exchange == nullptr) return;
        if (!result) return refuse(*exchange, id, call, std::move(result).error());
        Reply reply = json_reply(result->is_repeat ? 200 : created, result->answer);
        reply.headers.emplace_back("Location", "/v1/jobs/" + result->answer.id());
        exchange->reply(std::move(reply));
      });
}

void Dispatcher::act(const Context& context, std::string_view id, model::JobAction action) const {
  const model::AuditAction audited = model::audit_action(action);
  calls_.of<JobCalls>().act(
      id, action, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::ChangeJobResponse>(context, call_of(context.exchange, audited, id)));
}

void Dispatcher::requeue(const Context& context, const v1::RequeueJobRequest& message) const {
  act(context, message.id(),
      message.hold() ? model::JobAction::kRequeueAndHold : model::JobAction::kRequeue);
}

void Dispatcher::update(const Context& context, const v1::UpdateJobRequest& message) const {
  calls_.of<JobCalls>().update(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::ChangeJobResponse>(
          context, call_of(context.exchange, *context.action, message.id())));
}

void Dispatcher::raise(const Context& context, const v1::RaiseJobRequest& message) const {
  calls_.of<JobCalls>().raise(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::ChangeJobResponse>(
          context, call_of(context.exchange, *context.action, message.id())));
}

void Dispatcher::signal(const Context& context, const v1::SignalJobRequest& message) const {
  calls_.of<JobCalls>().signal(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::ChangeJobResponse>(
          context, call_of(context.exchange, *context.action, message.id())));
}

// Of the job's own record alone: nothing of it goes into the audit trail.
void Dispatcher::record_step(const Context& context, const v1::RecordStepRequest& message) const {
  calls_.of<JobCalls>().record_step(message, context.exchange.peer(), context.exchange.resume(),
                                    answer_changing<v1::RecordStepResponse>(context, std::nullopt));
}

void Dispatcher::act_on_jobs(const Context& context, const v1::ActOnJobsRequest& message) const {
  std::optional<model::AuditedCall> call;
  if (!message.dry_run()) {
    const bool is_named = message.action() != v1::JOB_ACTION_UNSPECIFIED;
    call = call_of(context.exchange,
                   is_named ? model::audit_action(to_model(message.action())) : *context.action);
  }
  calls_.of<JobCalls>().act_on_many(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::ActOnJobsResponse>(context, std::move(call)));
}

void Dispatcher::list_jobs(const Context& context, const v1::ListJobsRequest& message) const {
  // The owners of ended jobs are known by name.
  if (const base::Status named = check_named(context.exchange.peer()); !named) {
    return context.exchange.reply(problem_reply(named.error(), context.request.id));
  }
  const model::Caller& caller = context.exchange.peer().caller;
  auto filter = to_model(message, caller);
  if (!filter) {
    return context.exchange.reply(problem_reply(std::move(filter).error(), context.request.id));
  }
  filter->max_bytes = page_bytes_;
  if (context.fields != nullptr) {
    filter->fields = context.fields->plan_of_field("jobs");
    if (filter->fields == nullptr) {
      return context.exchange.reply(problem_reply(
          base::Error{base::ErrorCode::kInvalidArgument,
                      "fields: name fields of the jobs, such as jobs.id,jobs.state", "fields"},
          context.request.id));
    }
  }
  auto writer = std::make_unique<JobListWriter>(calls_.reader(), caller, *std::move(filter));
  const base::Status begun = writer->begin();
  if (!begun) return context.exchange.reply(problem_reply(begun.error(), context.request.id));
  Reply reply;
  reply.source = std::make_unique<JobListSource>(std::move(writer), context.fields);
  context.exchange.reply(std::move(reply));
}

void Dispatcher::wait_job(const Context& context, const v1::WaitJobRequest& message) const {
  const auto job = calls_.reader().find(context.exchange.peer().caller, message.id());
  if (!job) return context.exchange.reply(problem_reply(job.error(), context.request.id));
  const double seconds = message.has_timeout_seconds() ? message.timeout_seconds() : 60;
  const std::chrono::milliseconds timeout(std::llround(seconds * 1000));
  Exchange* exchange = &context.exchange;
  if (!begin_stream(*exchange, context.request.id)) return;
  // The exchange keeps the waiter, so the waiter's pointer back is good as long as it lives.
  auto waiter = std::make_shared<JobWaiter>(
      calls_.reader(), exchange->peer().caller, job->job->id, exchange->context(),
      [exchange, id = context.request.id, &route = context.route,
       fields = context.fields](base::Result<v1::Job> result) {
        exchange->reply(json_reply(route, std::move(result), id, fields));
      });
  exchange->keep(waiter);
  waiter->begin(hub_, timeout);
}

void Dispatcher::get_output(const Context& context, const v1::GetOutputRequest& message) const {
  calls_.of<JobCalls>().output(message, context.exchange.peer(), context.exchange.resume(),
                               [weak = context.exchange.weak_from_this(), id = context.request.id,
                                is_plain = wants_plain(context.request),
                                &route = context.route](base::Result<v1::OutputChunk> chunk) {
                                 const auto exchange = weak.lock();
                                 if (exchange == nullptr) return;
                                 if (chunk && is_plain)
                                   return exchange->reply(plain_output(*std::move(chunk)));
                                 exchange->reply(json_reply(route, std::move(chunk), id));
                               });
}

void Dispatcher::stream_output(const Context& context, const v1::GetOutputRequest& message) const {
  const auto offset = last_event_id(context.request);
  OutputStream::Options options;
  if (message.has_attempt()) options.attempt = message.attempt();
  options.offset = offset && *offset ? (*offset)->value : message.offset();
  options.is_plain = wants_plain(context.request);
  // The same check as for one chunk, with its errors.
  v1::GetOutputRequest probe = message;
  probe.set_limit(1);
  calls_.of<JobCalls>().output(
      probe, context.exchange.peer(), context.exchange.resume(),
      [this, weak = context.exchange.weak_from_this(), id = context.request.id, job = message.id(),
       options, offset, &watcher = context.watcher](base::Result<v1::OutputChunk> first) {
        const auto exchange = weak.lock();
        if (exchange == nullptr) return;
        if (!first) return exchange->reply(problem_reply(std::move(first).error(), id));
        if (!offset) return exchange->reply(problem_reply(offset.error(), id));
        begin_output_stream(*exchange, watcher, {job, id}, options);
      });
}

void Dispatcher::begin_output_stream(Exchange& exchange, FileWatcher& watcher,
                                     const OutputRequest& request,
                                     OutputStream::Options options) const {
  const auto job = calls_.reader().find(exchange.peer().caller, request.job);
  if (!job) return exchange.reply(problem_reply(job.error(), request.id));
  options.job = job->job->id;
  if (!begin_stream(exchange, request.id)) return;
  StreamContext stream{calls_.reader(), hub_, exchange.peer().caller, exchange.waker(),
                       exchange.resume()};
  Reply reply = event_stream(
      std::make_unique<OutputStream>(std::move(stream), watcher, exchange.context(), options));
  if (options.is_plain) reply.content_type = "application/octet-stream";
  exchange.reply(std::move(reply));
}

template <class Message>
void Dispatcher::open_channel(const Context& context, const Message& message) const {
  Exchange& exchange = context.exchange;
  model::AuditedCall call = call_of(exchange, *context.action, message.id());
  auto order = calls_.of<ChannelCalls>().order(message, exchange.peer());
  if (!order) {
    return refuse(exchange, context.request.id, std::move(call), std::move(order).error());
  }
  if (!exchange.wants_websocket()) {
    Reply reply = problem_reply(
        426,
        base::Error{
            base::ErrorCode::kInvalidArgument, "this is a WebSocket: ask for the upgrade", {}},
        context.request.id);
    reply.headers.emplace_back("Upgrade", "websocket");
    return exchange.reply(std::move(reply));
  }
  if (const base::Status begun = exchange.begin_channel(); !begun) {
    return exchange.reply(problem_reply(begun.error(), context.request.id));
  }
  order->by = exchange.peer().caller.user;
  order->by_uid = exchange.peer().caller.uid;
  const model::ChannelOrder& recorded = *order;
  calls_.of<ChannelCalls>().record(*context.action, recorded, exchange.peer(), exchange.resume(),
                                   [this, weak = exchange.weak_from_this(), id = context.request.id,
                                    call, order = *order](base::Status status) {
                                     const auto open = weak.lock();
                                     if (open == nullptr) return;
                                     if (status) return begin_channel(*open, id, call, order);
                                     open->reply(problem_reply(std::move(status).error(), id));
                                   });
}

void Dispatcher::begin_channel(Exchange& exchange, const std::string& request_id,
                               model::AuditedCall call, model::ChannelOrder order) const {
  calls_.of<ChannelCalls>().open(std::move(order), exchange.resume(),
                                 [this, weak = exchange.weak_from_this(), request_id,
                                  call = std::move(call)](base::Result<ChannelSocket> channel) {
                                   const auto open = weak.lock();
                                   if (open == nullptr) return;
                                   if (channel) return open->bridge(*std::move(channel));
                                   refuse(*open, request_id, call, std::move(channel).error());
                                 });
}

void Dispatcher::watch_job(const Context& context, const v1::WatchJobRequest& message) const {
  v1::GetJobRequest get;
  get.set_id(message.id());
  const auto job = calls_.of<JobCalls>().get(get, context.exchange.peer());
  if (!job) return context.exchange.reply(problem_reply(job.error(), context.request.id));
  auto after = last_event_id(context.request);
  if (!after) return context.exchange.reply(problem_reply(after.error(), context.request.id));
  stream_changes(context, *to_job_id(job->id()), false, *after);
}

void Dispatcher::watch_jobs(const Context& context, const v1::WatchJobsRequest& message) const {
  auto after = last_event_id(context.request);
  if (!after) return context.exchange.reply(problem_reply(after.error(), context.request.id));
  if (!*after && message.after_seq() != 0) *after = model::EventSeq(message.after_seq());
  stream_changes(context, model::JobId(), message.all(), *after);
}

void Dispatcher::stream_changes(const Context& context, model::JobId job, bool all_users,
                                std::optional<model::EventSeq> after) const {
  Exchange& exchange = context.exchange;
  if (!begin_stream(exchange, context.request.id)) return;
  StreamContext stream{calls_.reader(), hub_, exchange.peer().caller, exchange.waker()};
  exchange.reply(event_stream(std::make_unique<ChangeStream>(
      std::move(stream), ChangeStream::Options{job, all_users, after})));
}

void Dispatcher::watch_gpus(const Context& context, const v1::WatchGpusRequest& message) const {
  Exchange& exchange = context.exchange;
  auto after = last_event_id(context.request);
  if (!after) return exchange.reply(problem_reply(after.error(), context.request.id));
  if (!*after && message.after_seq() != 0) *after = model::EventSeq(message.after_seq());
  // The same check as of the list, with its error.
  v1::ListGpusRequest probe;
  probe.set_node(message.node());
  if (const auto known = calls_.of<ClusterCalls>().gpus(probe, exchange.peer()); !known) {
    return exchange.reply(problem_reply(known.error(), context.request.id));
  }
  if (!begin_stream(exchange, context.request.id)) return;
  StreamContext stream{calls_.reader(), hub_, exchange.peer().caller, exchange.waker()};
  exchange.reply(event_stream(
      std::make_unique<GpuStream>(std::move(stream), GpuStream::Options{message.node(), *after})));
}

void Dispatcher::get_queue(const Context& context, const v1::GetQueueRequest& message) const {
  auto writer =
      QueueWriter::open(calls_.reader(), context.exchange.peer().caller, message, page_bytes_);
  if (!writer) {
    return context.exchange.reply(problem_reply(std::move(writer).error(), context.request.id));
  }
  Reply reply;
  reply.source = std::make_unique<QueueSource>(*std::move(writer));
  context.exchange.reply(std::move(reply));
}

void Dispatcher::change_gpus(const Context& context, model::GpuAction action,
                             const v1::ChangeGpusRequest& message) const {
  const std::string& target = !message.node().empty()  ? message.node()
                              : !message.gpu().empty() ? message.gpu()
                                                       : message.gpu_id();
  calls_.of<ClusterCalls>().change_gpus(
      message, action, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::ChangeGpusResponse>(
          context, call_of(context.exchange, *context.action, target, {})));
}

void Dispatcher::check_job(const Context& context, const v1::CheckJobRequest& message) const {
  const std::chrono::milliseconds timeout(std::llround(message.timeout_seconds() * 1000));
  Exchange& exchange = context.exchange;
  if (timeout.count() > 0 && !begin_stream(exchange, context.request.id)) return;
  calls_.of<PlanningCalls>().judge(
      message.spec(), exchange.peer(), exchange.resume(),
      [weak = exchange.weak_from_this(), this, timeout, id = context.request.id,
       &route = context.route](PlanningCalls::Accepted job) {
        const auto open = weak.lock();
        if (open == nullptr) return;
        if (!job) {
          return open->reply(json_reply(route, PlanningCalls::check_refused(job.error()), id));
        }
        // The exchange keeps the waiter, so the pointer back is good as long as it lives.
        auto waiter = std::make_shared<StartWaiter>(
            calls_.of<PlanningCalls>(), calls_.reader(), *std::move(job), open->context(),
            [exchange = open.get(), &route](v1::CheckResult result) {
              exchange->reply(json_reply(route.success_status, result));
            });
        open->keep(waiter);
        waiter->begin(hub_, timeout);
      });
}

void Dispatcher::create_reservation(const Context& context,
                                    const v1::CreateReservationRequest& message) const {
  calls_.of<ReservationCalls>().create(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::Reservation>(
          context, call_of(context.exchange, *context.action, message.name(), {})));
}

void Dispatcher::update_reservation(const Context& context,
                                    const v1::UpdateReservationRequest& message) const {
  calls_.of<ReservationCalls>().update(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::Reservation>(
          context, call_of(context.exchange, *context.action, message.name(), {})));
}

void Dispatcher::cancel_reservation(const Context& context,
                                    const v1::CancelReservationRequest& message) const {
  calls_.of<ReservationCalls>().cancel(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::Reservation>(
          context, call_of(context.exchange, *context.action, message.name(), {})));
}

void Dispatcher::create_token(const Context& context, const v1::CreateTokenRequest& message) const {
  calls_.of<TokenCalls>().create(
      message, context.exchange.peer(), context.exchange.resume(),
      [this, weak = context.exchange.weak_from_this(), id = context.request.id,
       created = context.route.success_status,
       call = call_of(context.exchange, *context.action, message.name(), message.request_id())](
          base::Result<Created<v1::CreatedToken>> result) {
        const auto exchange = weak.lock();
        if (exchange == nullptr) return;
        if (!result) return refuse(*exchange, id, call, std::move(result).error());
        Reply reply = json_reply(result->is_repeat ? 200 : created, result->answer);
        reply.headers.emplace_back("Cache-Control", "no-store");
        exchange->reply(std::move(reply));
      });
}

void Dispatcher::revoke_token(const Context& context, const v1::RevokeTokenRequest& message) const {
  calls_.of<TokenCalls>().revoke(message, context.exchange.peer(), context.exchange.resume(),
                                 [this, weak = context.exchange.weak_from_this(),
                                  id = context.request.id, &route = context.route,
                                  call = call_of(context.exchange, *context.action, message.token(),
                                                 {})](base::Result<v1::Token> revoked) {
                                   const auto open = weak.lock();
                                   if (open == nullptr) return;
                                   if (!revoked)
                                     return refuse(*open, id, call, std::move(revoked).error());
                                   Reply reply = json_reply(route.success_status, *revoked);
                                   reply.outlives_credential = true;
                                   open->reply(std::move(reply));
                                 });
}

void Dispatcher::create_team(const Context& context, const v1::SetTeamRequest& message) const {
  calls_.of<TeamCalls>().create(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::Team>(context,
                                call_of(context.exchange, *context.action, message.name(), {})));
}

void Dispatcher::set_team(const Context& context, const v1::SetTeamRequest& message) const {
  calls_.of<TeamCalls>().set(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::Team>(context,
                                call_of(context.exchange, *context.action, message.name(), {})));
}

void Dispatcher::accept_invitation(const Context& context,
                                   const v1::AnswerInvitationRequest& message) const {
  calls_.of<TeamCalls>().accept_invitation(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::Team>(context,
                                call_of(context.exchange, *context.action, message.name(), {})));
}

void Dispatcher::decline_invitation(const Context& context,
                                    const v1::AnswerInvitationRequest& message) const {
  calls_.of<TeamCalls>().decline_invitation(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::Team>(context,
                                call_of(context.exchange, *context.action, message.name(), {})));
}

void Dispatcher::remove_team(const Context& context, const v1::RemoveTeamRequest& message) const {
  calls_.of<TeamCalls>().remove(
      message, context.exchange.peer(), context.exchange.resume(),
      answer_changing<v1::Team>(context,
                                call_of(context.exchange, *context.action, message.name(), {})));
}

// A call that answers at once: with what a function of a service returns.
template <class Request, class Service, class Answer>
Dispatcher::Entry Dispatcher::asks(Answer answer) {
  return {[answer](const Dispatcher& self, const Context& context) {
    Request message;
    if (!self.read(context, message)) return;
    const Service& service = self.calls_.of<Service>();
    const auto ask = [&] {
      if constexpr (std::is_invocable_v<Answer, const Service&, const Request&, const Peer&>) {
        return std::invoke(answer, service, message, context.exchange.peer());
      } else if constexpr (std::is_invocable_v<Answer, const Service&, const Request&>) {
        return std::invoke(answer, service, message);
      } else {
        return std::invoke(answer, service);
      }
    };
    context.exchange.reply(answer_of(context.route, ask(), context.request.id, context.fields));
  }};
}

template <class Request>
Dispatcher::Entry Dispatcher::reads(void (Dispatcher::*handle)(const Context&, const Request&)
                                        const) {
  return {[handle](const Dispatcher& self, const Context& context) {
    Request message;
    if (self.read(context, message)) (self.*handle)(context, message);
  }};
}

template <class Request>
Dispatcher::Entry Dispatcher::changes(model::AuditAction action,
                                      void (Dispatcher::*handle)(const Context&, const Request&)
                                          const) {
  return {[handle](const Dispatcher& self, const Context& context) {
            Request message;
            if (self.read_changing(context, message)) (self.*handle)(context, message);
          },
          action};
}

template <class Request>
Dispatcher::Entry Dispatcher::acts(model::JobAction action) {
  return {[action](const Dispatcher& self, const Context& context) {
            Request message;
            if (self.read_changing(context, message)) self.act(context, message.id(), action);
          },
          model::audit_action(action)};
}

Dispatcher::Entry Dispatcher::changes_gpus(model::AuditAction audited, model::GpuAction action) {
  return {[action](const Dispatcher& self, const Context& context) {
            v1::ChangeGpusRequest message;
            if (self.read_changing(context, message)) self.change_gpus(context, action, message);
          },
          audited};
}

Dispatcher::Dispatcher(const Calls& calls, EventHub& hub, std::size_t page_bytes,
                       RefusalBook* refusals)
    : calls_(calls), hub_(hub), page_bytes_(page_bytes), refusals_(refusals) {
  using D = Dispatcher;
  using model::AuditAction;
  using model::GpuAction;
  using model::JobAction;
  const std::pair<std::string_view, Entry> entries[] = {
      {"JobService.SubmitJob", changes(AuditAction::kSubmit, &D::submit)},
      {"JobService.GetJob", asks<v1::GetJobRequest, JobCalls>(&JobCalls::get)},
      {"JobService.ListJobs", reads(&D::list_jobs)},
      {"JobService.CancelJob", acts<v1::CancelJobRequest>(JobAction::kCancel)},
      {"JobService.KillJob", acts<v1::KillJobRequest>(JobAction::kKill)},
      {"JobService.HoldJob", acts<v1::HoldJobRequest>(JobAction::kHold)},
      {"JobService.ReleaseJob", acts<v1::ReleaseJobRequest>(JobAction::kRelease)},
      {"JobService.RequeueJob", changes(AuditAction::kRequeue, &D::requeue)},
      {"JobService.UpdateJob", changes(AuditAction::kUpdate, &D::update)},
      {"JobService.RaiseJob", changes(AuditAction::kTop, &D::raise)},
      {"JobService.SignalJob", changes(AuditAction::kSignal, &D::signal)},
      {"JobService.RecordStep", reads(&D::record_step)},
      {"JobService.ActOnJobs", changes(AuditAction::kChangeMany, &D::act_on_jobs)},
      {"JobService.WaitJob", reads(&D::wait_job)},
      {"JobService.GetOutput", reads(&D::get_output)},
      {"JobService.StreamOutput", reads(&D::stream_output)},
      {"JobService.ExecInJob", changes(AuditAction::kExec, &D::open_channel<v1::ExecInJobRequest>)},
      {"JobService.AttachToJob",
       changes(AuditAction::kAttach, &D::open_channel<v1::AttachToJobRequest>)},
      {"JobService.ForwardPort",
       changes(AuditAction::kPortForward, &D::open_channel<v1::ForwardPortRequest>)},
      {"JobService.WatchJob", reads(&D::watch_job)},
      {"JobService.WatchJobs", reads(&D::watch_jobs)},
      {"JobService.GetQueue", reads(&D::get_queue)},
      {"ClusterService.GetStatus", asks<v1::GetStatusRequest, ClusterCalls>(&ClusterCalls::status)},
      {"ClusterService.ListNodes", asks<v1::ListNodesRequest, ClusterCalls>(&ClusterCalls::nodes)},
      {"ClusterService.GetGpuHealth",
       asks<v1::GetGpuHealthRequest, ClusterCalls>(&ClusterCalls::gpu_health)},
      {"ClusterService.ListGpus", asks<v1::ListGpusRequest, ClusterCalls>(&ClusterCalls::gpus)},
      {"ClusterService.WatchGpus", reads(&D::watch_gpus)},
      {"ClusterService.GetTopology",
       asks<v1::GetTopologyRequest, ClusterCalls>(&ClusterCalls::topology)},
      {"ClusterService.DrainGpus", changes_gpus(AuditAction::kDrain, GpuAction::kDrain)},
      {"ClusterService.TakeGpusOffline",
       changes_gpus(AuditAction::kTakeOffline, GpuAction::kTakeOffline)},
      {"ClusterService.BringGpusOnline",
       changes_gpus(AuditAction::kBringOnline, GpuAction::kBringOnline)},
      {"ClusterService.GetHealth", asks<v1::GetHealthRequest, SiteCalls>(&SiteCalls::health)},
      {"ClusterService.GetReadiness",
       asks<v1::GetReadinessRequest, SiteCalls>(&SiteCalls::readiness)},
      {"ClusterService.GetVersion", asks<v1::GetVersionRequest, SiteCalls>(&SiteCalls::version)},
      {"ReservationService.CreateReservation",
       changes(AuditAction::kMakeReservation, &D::create_reservation)},
      {"ReservationService.UpdateReservation",
       changes(AuditAction::kChangeReservation, &D::update_reservation)},
      {"ReservationService.ListReservations",
       asks<v1::ListReservationsRequest, ReservationCalls>(&ReservationCalls::list)},
      {"ReservationService.GetReservation",
       asks<v1::GetReservationRequest, ReservationCalls>(&ReservationCalls::get)},
      {"ReservationService.CancelReservation",
       changes(AuditAction::kCancelReservation, &D::cancel_reservation)},
      {"PlanningService.ExplainJob",
       asks<v1::ExplainJobRequest, PlanningCalls>(&PlanningCalls::explain)},
      {"PlanningService.CheckJob", reads(&D::check_job)},
      {"PlanningService.SizeModelServer",
       asks<v1::ModelSizingRequest, PlanningCalls>(&PlanningCalls::size_model_server)},
      {"ShareService.ListShares", asks<v1::ListSharesRequest, ShareCalls>(&ShareCalls::list)},
      {"StatisticsService.GetStatistics",
       asks<v1::GetStatisticsRequest, StatisticsCalls>(&StatisticsCalls::statistics)},
      {"SlurmService.GetSlurmNames",
       asks<v1::GetSlurmNamesRequest, SiteCalls>(&SiteCalls::slurm_names)},
      {"ConfigurationService.GetConfiguration",
       asks<v1::GetConfigurationRequest, SiteCalls>(&SiteCalls::configuration)},
      {"AccessService.WhoAmI", asks<v1::WhoAmIRequest, SiteCalls>(&SiteCalls::who_am_i)},
      {"TokenService.CreateToken", changes(AuditAction::kCreateToken, &D::create_token)},
      {"TokenService.ListTokens", asks<v1::ListTokensRequest, TokenCalls>(&TokenCalls::list)},
      {"TokenService.RevokeToken", changes(AuditAction::kRevokeToken, &D::revoke_token)},
      {"TeamService.ListTeams", asks<v1::ListTeamsRequest, TeamCalls>(&TeamCalls::list)},
      {"TeamService.GetTeam", asks<v1::GetTeamRequest, TeamCalls>(&TeamCalls::get)},
      {"TeamService.CreateTeam", changes(AuditAction::kSetTeam, &D::create_team)},
      {"TeamService.SetTeam", changes(AuditAction::kSetTeam, &D::set_team)},
      {"TeamService.AcceptInvitation",
       changes(AuditAction::kAcceptInvitation, &D::accept_invitation)},
      {"TeamService.DeclineInvitation",
       changes(AuditAction::kDeclineInvitation, &D::decline_invitation)},
      {"TeamService.RemoveTeam", changes(AuditAction::kRemoveTeam, &D::remove_team)},
      {"AuditService.ListAudit", asks<v1::ListAuditRequest, AuditCalls>(&AuditCalls::list)},
  };
  for (const auto& [name, entry] : entries) {
    handlers_.emplace(fmt::format("{}{}", kPackage, name), entry);
  }
  // A route without a handler would be a promise of the contract that no code keeps; one without
  // its row of rights would be open to all.
  for (const Route& route : table_.routes()) {
    const auto handler = handlers_.find(route.call->full_name());
    CHECK(handler != handlers_.end());
    handler->second.access = access_of(*route.call);
  }
  openapi_ = openapi_document(table_.routes(), calls.of<SiteCalls>().version().version());
}

}  // namespace gpu_platform::api
