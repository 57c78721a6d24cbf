#include "cli/jobs/output_cursor.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/percent.h"

namespace gpu_platform::cli {

namespace {

constexpr std::int64_t kBlock = 256 * 1024;

// The place behind the n-th end of a line, counted from the back; nothing if there are fewer, and
// then `n` is reduced by those that there are.
std::optional<std::size_t> behind_line_end(std::string_view text, std::uint64_t& n) {
  for (std::size_t at = text.size(); at > 0; --at) {
    if (text[at - 1] == '\n' && --n == 0) return at;
  }
  return std::nullopt;
}

}  // namespace

Called<v1::OutputChunk> OutputCursor::read(std::int64_t offset, std::int64_t limit) {
  std::string target = fmt::format("/v1/jobs/{}/output?offset={}&limit={}",
                                   base::percent_encoded(id_), offset, limit);
  if (attempt_ > 0) target += fmt::format("&attempt={}", attempt_);
  auto chunk = client_.ask<v1::OutputChunk>(target, "a piece of output");
  if (chunk && attempt_ == 0) attempt_ = static_cast<std::int64_t>(chunk->attempt());
  return chunk;
}

Called<v1::OutputChunk> OutputCursor::next() {
  auto chunk = read(offset_, kBlock);
  if (chunk && !chunk->data().empty()) offset_ = static_cast<std::int64_t>(chunk->next_offset());
  return chunk;
}

Called<bool> OutputCursor::has_bytes_at(std::int64_t offset) {
  const auto chunk = read(offset, 1);
  if (!chunk) return std::unexpected(chunk.error());
  return !chunk->data().empty();
}

// The last block with bytes; the first one has some.
Called<std::int64_t> OutputCursor::last_block(std::int64_t first) {
  std::int64_t with = first;
  std::int64_t step = 1;
  while (true) {
    const auto has = has_bytes_at((with + step) * kBlock);
    if (!has) return std::unexpected(has.error());
    if (!*has) break;
    with += step;
    step *= 2;
  }
  std::int64_t without = with + step;
  while (without - with > 1) {
    const std::int64_t middle = with + (without - with) / 2;
    const auto has = has_bytes_at(middle * kBlock);
    if (!has) return std::unexpected(has.error());
    (*has ? with : without) = middle;
  }
  return with;
}

std::optional<Failure> OutputCursor::seek_last_lines(std::uint64_t lines) {
  const auto first = read(0, kBlock);
  if (!first) return first.error();
  if (first->data().empty()) return std::nullopt;
  const auto begin = static_cast<std::int64_t>(first->offset());
  const auto last = last_block(begin / kBlock);
  if (!last) return last.error();
  for (std::int64_t block = *last, left = -1; block >= begin / kBlock; --block) {
    const auto chunk = read(block * kBlock, kBlock);
    if (!chunk) return chunk.error();
    const std::string& text = chunk->data();
    if (left < 0) {  // the end of it all
      offset_ = static_cast<std::int64_t>(chunk->next_offset());
      if (lines == 0) return std::nullopt;
      if (text.ends_with('\n')) ++lines;
      left = 0;
    }
    if (const auto at = behind_line_end(text, lines)) {
      offset_ = static_cast<std::int64_t>(chunk->offset() + *at);
      return std::nullopt;
    }
    offset_ = static_cast<std::int64_t>(chunk->offset());
  }
  return std::nullopt;
}

}  // namespace gpu_platform::cli
