#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "health/case_book.h"
#include "health/rules.h"
#include "health/verdict.h"

// What the tests of the judge share: short words for evidence, and a small site.

namespace gpu_platform::health::testing {

using model::Evidence;
using model::EvidenceKind;

inline constexpr base::Instant kNoon(1'790'000'000'000'000'000);

inline base::Instant after(base::Duration duration) {
  return kNoon + duration;
}

inline Evidence piece_of(EvidenceKind kind, base::Instant at, std::uint32_t code = 0) {
  Evidence piece;
  piece.kind = kind;
  piece.at = at;
  piece.last = at;
  piece.code = code;
  return piece;
}

inline Evidence xid(std::uint32_t code, base::Instant at = kNoon) {
  return piece_of(EvidenceKind::kXid, at, code);
}

inline Evidence of_job(Evidence piece, std::uint64_t job, std::string user, std::string program) {
  piece.job = model::JobId(job);
  piece.user = std::move(user);
  piece.program = std::move(program);
  return piece;
}

inline Evidence over(Evidence piece) {
  piece.is_over = true;
  return piece;
}

inline Evidence worth(Evidence piece, std::int64_t value) {
  piece.value = value;
  return piece;
}

inline Evidence saying(Evidence piece, std::string text) {
  piece.text = std::move(text);
  return piece;
}

// One node with four GPUs, "n:0" to "n:3", and another one with "m:0".
class Judge : public ::testing::Test {
 protected:
  Judge() {
    for (const char* name : kNames) book.add_gpu(key(name));
  }

  static GpuKey key(std::string_view uuid) { return {uuid.substr(0, 1), uuid, "H100"}; }
  void see(Evidence piece, std::string_view gpu = "n:0") { book.add(key(gpu), std::move(piece)); }
  GpuVerdict judged(base::Instant now = after(base::minutes(2)), std::string_view gpu = "n:0") {
    return judge_gpu(book, key(gpu), rules, now);
  }
  Action action(base::Instant now = after(base::minutes(2)), std::string_view gpu = "n:0") {
    return judged(now, gpu).action;
  }
  void run(std::uint64_t job, const std::string& user, const std::string& program,
           const std::vector<std::string_view>& gpus, base::Instant at) {
    std::vector<GpuKey> keys;
    for (const std::string_view gpu : gpus) keys.push_back(key(gpu));
    book.start_job(keys, of_job(piece_of(EvidenceKind::kJobStarted, at), job, user, program));
  }
  void end(std::uint64_t job, std::uint32_t code, base::Instant at, const std::string& text = {}) {
    Evidence piece = saying(piece_of(EvidenceKind::kJobEnded, at, code), text);
    piece.job = model::JobId(job);
    book.end_job(piece.job, piece);
  }
  FaultClass fault_of(std::uint64_t job, const std::string& user, const std::string& program,
                      base::Instant started, base::Instant ended) {
    FailedJob failed{model::JobId(job), user, program, book.gpus_of_job(model::JobId(job)),
                     started,           ended};
    return judge_job(book, failed, rules).fault;
  }

  static constexpr const char* kNames[] = {"n:0", "n:1", "n:2", "n:3", "m:0"};
  CaseBook book;
  Rules rules = *Rules::make(Profile::kNvidia);
};

}  // namespace gpu_platform::health::testing
