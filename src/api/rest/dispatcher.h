#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/call_access.h"
#include "api/calls.h"
#include "api/convert/field_selection.h"
#include "api/event_hub.h"
#include "api/refusal_book.h"
#include "api/rest/exchange.h"
#include "api/rest/file_watcher.h"
#include "api/rest/routes.h"
#include "api/rest/streams.h"

namespace gpu_platform::api {

// Finds the call that a request is for, reads its message, and answers. Immutable once made; safe
// from any thread.
class Dispatcher {
 public:
  // `page_bytes`: the approximate size of one page of a list. `refusals` gets the refused calls
  // that would have changed something; null: they are not recorded.
  Dispatcher(const Calls& calls, EventHub& hub, std::size_t page_bytes,
             RefusalBook* refusals = nullptr);

  // `watcher` belongs to the connection's thread.
  void handle(const HttpRequest& request, Exchange& exchange, FileWatcher& watcher) const;

  const RoutingTable& table() const { return table_; }

 private:
  struct Context {
    const HttpRequest& request;
    const Route& route;
    Exchange& exchange;
    FileWatcher& watcher;
    std::optional<model::AuditAction> action;  // of calls that change something
    // The fields of the answer that the client wants; null: all.
    std::shared_ptr<const FieldSelection> fields = nullptr;
  };
  struct Entry {
    std::function<void(const Dispatcher&, const Context&)> handle;
    std::optional<model::AuditAction> action = std::nullopt;
    CallAccess access = {};
  };

  // The rows of the table of calls. Each reads its message; those that change something are told to
  // the audit trail where they are refused.
  template <class Request, class Service, class Answer>
  static Entry asks(Answer answer);
  template <class Request>
  static Entry reads(void (Dispatcher::*handle)(const Context&, const Request&) const);
  template <class Request>
  static Entry changes(model::AuditAction action,
                       void (Dispatcher::*handle)(const Context&, const Request&) const);
  template <class Request>
  static Entry acts(model::JobAction action);
  static Entry changes_gpus(model::AuditAction audited, model::GpuAction action);

  // Answers with the error. For a call that would have changed something, it answers after the
  // audit trail has the entry. `call` has its known details.
  void refuse(Exchange& exchange, const std::string& request_id,
              std::optional<model::AuditedCall> call, base::Error error) const;
  // Reads the request's message, or answers with the error in it.
  template <class Message>
  bool read(const Context& context, Message& out) const;
  // Reads the request's message, or refuses it.
  template <class Message>
  bool read_changing(const Context& context, Message& out) const;
  // Answers with the result if the connection still exists by then.
  template <class Message>
  std::function<void(base::Result<Message>)> answer_changing(
      const Context& context, std::optional<model::AuditedCall> call) const;

  void handle_call(const Context& context, const Entry& entry) const;
  Reply open_api() const;
  Reply metrics() const;
  void submit(const Context& context, const v1::SubmitJobRequest& message) const;
  void requeue(const Context& context, const v1::RequeueJobRequest& message) const;
  void update(const Context& context, const v1::UpdateJobRequest& message) const;
  void raise(const Context& context, const v1::RaiseJobRequest& message) const;
  void signal(const Context& context, const v1::SignalJobRequest& message) const;
  void record_step(const Context& context, const v1::RecordStepRequest& message) const;
  void act_on_jobs(const Context& context, const v1::ActOnJobsRequest& message) const;
  void list_jobs(const Context& context, const v1::ListJobsRequest& message) const;
  void wait_job(const Context& context, const v1::WaitJobRequest& message) const;
  void get_output(const Context& context, const v1::GetOutputRequest& message) const;
  void stream_output(const Context& context, const v1::GetOutputRequest& message) const;
  void watch_job(const Context& context, const v1::WatchJobRequest& message) const;
  void watch_jobs(const Context& context, const v1::WatchJobsRequest& message) const;
  void watch_gpus(const Context& context, const v1::WatchGpusRequest& message) const;
  void get_queue(const Context& context, const v1::GetQueueRequest& message) const;
  void check_job(const Context& context, const v1::CheckJobRequest& message) const;
  void create_reservation(const Context& context,
                          const v1::CreateReservationRequest& message) const;
  void update_reservation(const Context& context,
                          const v1::UpdateReservationRequest& message) const;
  void cancel_reservation(const Context& context,
                          const v1::CancelReservationRequest& message) const;
  void create_token(const Context& context, const v1::CreateTokenRequest& message) const;
  void revoke_token(const Context& context, const v1::RevokeTokenRequest& message) const;
  void create_team(const Context& context, const v1::SetTeamRequest& message) const;
  void set_team(const Context& context, const v1::SetTeamRequest& message) const;
  void accept_invitation(const Context& context, const v1::AnswerInvitationRequest& message) const;
  void decline_invitation(const Context& context, const v1::AnswerInvitationRequest& message) const;
  void remove_team(const Context& context, const v1::RemoveTeamRequest& message) const;
  void act(const Context& context, std::string_view id, model::JobAction action) const;
  template <class Message>
  void open_channel(const Context& context, const Message& message) const;
  void begin_channel(Exchange& exchange, const std::string& request_id, model::AuditedCall call,
                     model::ChannelOrder order) const;
  void change_gpus(const Context& context, model::GpuAction action,
                   const v1::ChangeGpusRequest& message) const;
  struct OutputRequest {
    std::string job;
    std::string id;  // of the request
  };
  void begin_output_stream(Exchange& exchange, FileWatcher& watcher, const OutputRequest& request,
                           OutputStream::Options options) const;
  void stream_changes(const Context& context, model::JobId job, bool all_users,
                      std::optional<model::EventSeq> after) const;

  const Calls& calls_;
  EventHub& hub_;
  const std::size_t page_bytes_;
  RoutingTable table_;
  std::map<std::string, Entry, std::less<>> handlers_;  // by the call's full name
  RefusalBook* refusals_;
  std::string openapi_;
};

// Returns the answer for an error.
Reply problem_reply(base::Error error, const std::string& request_id);
Reply problem_reply(int status, base::Error error, const std::string& request_id);

}  // namespace gpu_platform::api
