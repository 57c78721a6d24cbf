#include "api/job_output.h"
#include "model/job_spec.h"

#include <memory>
#include <utility>

namespace gpu_platform::api {

namespace {

base::Result<OutputPiece> read_whole(const OutputReader& reader, JobOutput::Range range) {
  TRY_ASSIGN(OutputPiece whole, reader.read(range.offset, range.most));
  bool is_at_end = whole.bytes.empty();
  while (!is_at_end && whole.bytes.size() < range.most) {
    const std::uint64_t next = whole.offset + whole.bytes.size();
    TRY_ASSIGN(const OutputPiece more, reader.read(next, range.most - whole.bytes.size()));
    is_at_end = more.bytes.empty() || more.offset != next;
    whole.has_more = more.has_more;
    if (!is_at_end) whole.bytes += more.bytes;
  }
  return whole;
}

}  // namespace

void JobOutput::read(const model::Job& job, std::uint32_t attempt, Range range,
                     const Resume& resume, Done done) const {
  const OutputReader reader = source_.reader(job, attempt);
  if (!reader.may_hang) return done(read_whole(reader, range));
  calls_.ask<OutputPiece>(
      job.spec->uid, [reader, range] { return read_whole(reader, range); },
      [resume, done = std::move(done)](base::Result<OutputPiece> piece) {
        const auto held = std::make_shared<base::Result<OutputPiece>>(std::move(piece));
        resume([done, held] { done(std::move(*held)); });
      });
}

}  // namespace gpu_platform::api
