#include "api/call_meter.h"

namespace gpu_platform::api {

void CallMeter::note(std::string_view call, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  auto row = rows_.find(call);
  if (row == rows_.end()) row = rows_.emplace(call, Row{.call = std::string(call)}).first;
  ++row->second.answers[status];
  row->second.seconds.add(seconds);
}

std::vector<CallMeter::Row> CallMeter::read() const {
  const std::lock_guard lock(mutex_);
  std::vector<Row> rows;
  rows.reserve(rows_.size());
  for (const auto& [call, row] : rows_) rows.push_back(row);
  return rows;
}

}  // namespace gpu_platform::api
