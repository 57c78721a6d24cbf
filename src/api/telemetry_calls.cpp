#include "api/telemetry_calls.h"

#include <fmt/format.h>

#include "api/call_context.h"
#include "api/history_answer.h"
#include "api/history_question.h"
#include "api/list_page.h"
#include "api/reading_hub.h"
#include "os/clock.h"

namespace gpu_platform::api {

base::Result<v1::History> TelemetryCalls::history(const v1::QueryHistoryRequest& request,
                                                  const Peer& peer) const {
  if (context_.core.history == nullptr) {
    return base::fail(base::ErrorCode::kUnavailable,
                      "no history is kept here (telemetry.history in the configuration)");
  }
  TRY_ASSIGN(const HistoryQuestion question,
             to_question(request, context_, peer.caller, os::wall_now()));
  return answer_of(question, *context_.core.history);
}

base::Status TelemetryCalls::check_read() const {
  if (context_.core.reading_hub != nullptr) return {};
  return base::fail(base::ErrorCode::kUnavailable, "nothing is read here");
}

base::Result<v1::ListReadingsResponse> TelemetryCalls::readings(
    const v1::ListReadingsRequest& request, const Peer& peer) const {
  TRY(check_read());
  TRY_ASSIGN(const ReadingFilter filter, to_filter(request, context_.reader, peer.caller));
  const ReadingView view(filter, context_.reader, peer.caller);
  const auto is_wanted = [&](const telemetry::Frame& frame) { return view.is_wanted(frame); };
  v1::ListReadingsResponse out;
  for (const NumberedFrame& numbered : context_.core.reading_hub->latest(is_wanted)) {
    view.put(numbered.frame(), *out.add_readings());
  }
  TRY(cut_to_page(request, *out.mutable_readings(), out, [](const v1::Reading& reading) {
    return fmt::format("{} {} {}.{}", reading.node(), reading.gpu_id(), reading.job(),
                       reading.attempt());
  }));
  return out;
}

base::Result<ReadingFilter> TelemetryCalls::filter_of(const v1::WatchReadingsRequest& request,
                                                      const Peer& peer) const {
  TRY(check_read());
  return to_filter(request, context_.reader, peer.caller);
}

}  // namespace gpu_platform::api
