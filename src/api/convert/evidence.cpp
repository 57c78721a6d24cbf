#include "api/convert/evidence.h"

#include <fmt/format.h>

#include "api/convert/job.h"

namespace gpu_platform::api {

void to_proto(const model::Evidence& piece, v1::Evidence& out) {
  out.set_kind(std::string(model::to_string(piece.kind)));
  out.set_source(std::string(model::to_string(piece.source)));
  if (piece.at.is_set()) to_proto(piece.at, *out.mutable_at());
  if (piece.last.is_set()) to_proto(piece.last, *out.mutable_last());
  out.set_count(piece.count);
  out.set_code(piece.code);
  out.set_value(piece.value);
  out.set_is_over(piece.is_over);
  if (piece.job.valid()) out.set_job(fmt::format_int(piece.job.value).str());
  if (!piece.user.empty()) out.set_user(piece.user);
  if (!piece.program.empty()) out.set_program(piece.program);
  if (piece.pid != 0) out.set_pid(piece.pid);
  if (piece.gpu_instance) out.set_gpu_instance(*piece.gpu_instance);
  for (const std::uint32_t value : piece.registers) out.add_registers(value);
  if (!piece.text.empty()) out.set_text(piece.text);
}

void to_proto(const model::Taint& taint, v1::GpuTaint& out) {
  out.set_source(std::string(model::to_string(taint.source)));
  out.set_effect(std::string(model::to_string(taint.effect)));
  out.set_text(taint.text);
  if (!taint.by.empty()) out.set_by(taint.by);
  if (taint.at.is_set()) to_proto(taint.at, *out.mutable_at());
  if (taint.until.is_set()) to_proto(taint.until, *out.mutable_until());
}

void hide_user(v1::Evidence& out) {
  out.clear_user();
  out.clear_program();
  // The last words of its output, or why it did not start.
  if (out.source() == model::to_string(model::EvidenceSource::kJob)) out.clear_text();
}

}  // namespace gpu_platform::api
