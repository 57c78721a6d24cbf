#include "api/channel_calls.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "api/call_context.h"
#include "api/convert/job.h"
#include "model/access.h"
#include "model/job_spec.h"

namespace gpu_platform::api {

namespace {

model::AttemptId running_attempt(const model::Job& job) {
  return {job.id, job.current_attempt()->number};
}

// Returns a running job that the caller may enter.
base::Result<FoundJob> enterable(const CallContext& context, std::string_view id,
                                 const Peer& peer) {
  TRY_ASSIGN(FoundJob found, context.reader.find(peer.caller, id));
  TRY(check_is_one(found));
  const model::Job& job = *found.job;
  // Inside a job one is its user, so seeing it is not enough. Root alone becomes root.
  const bool is_roots = job.spec->uid == 0 && peer.caller.uid != 0;
  if (is_roots || !model::may_touch(peer.caller, *job.spec)) {
    return base::fail(base::ErrorCode::kPermissionDenied,
                      fmt::format("job {} belongs to another user: only that user and root may "
                                  "enter it",
                                  name_of(job)),
                      "id");
  }
  const model::Attempt* const attempt = job.current_attempt();
  if (job.state != model::JobState::kRunning || attempt == nullptr) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("job {} is {}: only a running job can be entered", name_of(job),
                                  model::to_string(job.state)));
  }
  if (context.core.channels == nullptr) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      "the jobs of this daemon cannot be entered");
  }
  return found;
}

}  // namespace

base::Result<model::ChannelOrder> ChannelCalls::order(const v1::ExecInJobRequest& request,
                                                      const Peer& peer) const {
  TRY_ASSIGN(const FoundJob found, enterable(context_, request.id(), peer));
  model::ChannelOrder order;
  order.attempt = running_attempt(*found.job);
  order.command.assign(request.command().begin(), request.command().end());
  if (order.command.empty() || order.command.front().empty()) {
    return base::invalid("command", "command: must name a program");
  }
  if (request.terminal()) {
    order.terminal.emplace();
    if (request.has_columns()) {
      order.terminal->columns = static_cast<std::uint16_t>(request.columns());
    }
    if (request.has_rows()) order.terminal->rows = static_cast<std::uint16_t>(request.rows());
  }
  return order;
}

base::Result<model::ChannelOrder> ChannelCalls::order(const v1::ForwardPortRequest& request,
                                                      const Peer& peer) const {
  TRY_ASSIGN(const FoundJob found, enterable(context_, request.id(), peer));
  model::ChannelOrder order;
  order.attempt = running_attempt(*found.job);
  order.port = static_cast<std::uint16_t>(request.port());
  return order;
}

base::Result<model::ChannelOrder> ChannelCalls::order(const v1::AttachToJobRequest& request,
                                                      const Peer& peer) const {
  if (request.has_columns() != request.has_rows()) {
    return base::invalid("columns", "columns: a terminal has columns and rows; give both");
  }
  TRY_ASSIGN(const FoundJob found, enterable(context_, request.id(), peer));
  if (!found.job->spec->takes_input) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("job {0} was submitted without terminal and input, so there is "
                                  "nothing to attach to: 'jobs logs -f {0}' follows what it prints",
                                  request.id()));
  }
  model::ChannelOrder order;
  order.attempt = running_attempt(*found.job);
  order.without_output = request.without_output();
  if (request.has_columns()) {
    order.terminal = {static_cast<std::uint16_t>(request.columns()),
                      static_cast<std::uint16_t>(request.rows())};
  }
  return order;
}

void ChannelCalls::record(model::AuditAction action, const model::ChannelOrder& order,
                          const Peer& peer, Resume resume,
                          std::function<void(base::Status)> done) const {
  if (context_.core.audit == nullptr) return done({});
  model::AuditedCall call;
  call.by = model::origin_of(peer.caller);
  call.action = action;
  call.jobs = {order.attempt.job};
  call.job_count = 1;
  if (const auto found = context_.reader.find(peer.caller, order.attempt.job)) {
    call.owner = {found->job->spec->user, found->job->spec->uid};
  }
  context_.send({peer.caller, model::RecordCalls{{std::move(call)}}}, std::move(resume),
                [done = std::move(done)](base::Result<model::CommandReply> reply) {
                  if (!reply) return done(std::unexpected(std::move(reply).error()));
                  done({});
                });
}

void ChannelCalls::open(model::ChannelOrder order, Resume resume,
                        ChannelSource::Opened opened) const {
  context_.core.channels->open(
      std::move(order),
      [resume = std::move(resume), opened = std::move(opened)](base::Result<ChannelSocket> result) {
        auto held = std::make_shared<base::Result<ChannelSocket>>(std::move(result));
        resume([held, opened] { opened(std::move(*held)); });
      });
}

}  // namespace gpu_platform::api
