#pragma once

#include <string>
#include <utility>

#include "model/ledger.h"
#include "model/price.h"

// Lines and prices of tests.

namespace gpu_platform::accounting::testing {

inline constexpr model::Millis kHourMs = 3'600'000;
inline constexpr model::Millis kOctober = 1'790'812'800'000;  // 2026-10-01T00:00:00Z

// The price 1 is 4 for an hour, the price 2 is 6.
inline model::PriceBook two_prices() {
  model::PriceBook book;
  for (const std::int64_t per_hour : {4'000'000, 6'000'000}) {
    model::PriceEntry& entry = book.entries.emplace_back();
    entry.id = static_cast<std::uint32_t>(book.entries.size());
    entry.price.per_hour = base::MicroUsd(per_hour);
  }
  return book;
}

// A whole GPU that a job of the team used from one time to the other, at the price 1.
inline model::LedgerLine used_line(std::string team, model::Millis from, model::Millis to) {
  model::LedgerLine line;
  line.kind = model::LedgerKind::kHeld;
  line.node = "dgx-1";
  line.gpu_uuid = "GPU-1";
  line.gpu_type = "A100-80GB";
  line.share = base::kWholeGpu;
  line.price = 1;
  line.from = line.started = from;
  line.ended = line.to = to;
  line.attempt = {model::JobId(1), 1};
  line.user = "ada";
  line.team = std::move(team);
  line.project = "atlas";
  line.job_name = "train";
  return line;
}

// The same GPU, while no job held it.
inline model::LedgerLine rest_line(model::RestKind rest, model::Millis from, model::Millis to) {
  model::LedgerLine line;
  line.node = "dgx-1";
  line.gpu_uuid = "GPU-1";
  line.gpu_type = "A100-80GB";
  line.share = base::kWholeGpu;
  line.price = 1;
  line.from = from;
  line.started = line.ended = line.to = to;
  line.rest = rest;
  return line;
}

inline model::LedgerLine correction_line(std::string team, model::Millis at, std::int64_t micros) {
  model::LedgerLine line;
  line.kind = model::LedgerKind::kCorrection;
  line.from = line.started = line.ended = line.to = at;
  line.team = std::move(team);
  line.amount = base::MicroUsd(micros);
  return line;
}

}  // namespace gpu_platform::accounting::testing
