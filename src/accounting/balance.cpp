#include "accounting/balance.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/utc.h"

namespace gpu_platform::accounting {

namespace {

constexpr std::string_view kOnNode = " on ";  // as sentences have it

std::string balance_time(model::Millis at) {
  return base::utc(base::Instant(at * 1'000'000), base::Fraction::kMilliseconds);
}

template <class Sentence>
void put_finding(Findings& findings, Sentence&& sentence) {
  if (findings.named.size() < kMaxNamed) {
    findings.named.push_back(sentence());
  } else {
    ++findings.more;
  }
}

bool has_order(const model::LedgerLine& line) {
  if (line.kind == model::LedgerKind::kRest) return line.from <= line.to;
  return line.from <= line.started && line.started <= line.ended && line.ended <= line.to;
}

bool has_share(const model::LedgerLine& line) {
  return line.share > base::GpuShare() && line.share <= base::kWholeGpu;
}

// What is wrong with the line by itself; empty: nothing.
std::string fault_of(const model::LedgerLine& line, const model::PriceBook& prices) {
  if (!has_order(line)) return "its times are not in order";
  if (!has_share(line)) return fmt::format("its share is {}/7000", line.share.value());
  if (line.price != 0 && prices.find(line.price) == nullptr) {
    return fmt::format("its price {} is not known", line.price);
  }
  return {};
}

// All that the GPUs of the lines cost, put together by what became of it.
ExactCost cost_of_parts(const UsageFigures& figures) {
  ExactCost sum = figures.gpu_bill() + figures.discount + figures.not_billed().list;
  sum += figures.starting.list + figures.cleaning.list;
  for (const GpuTime& rest : figures.rest) sum += rest.list;
  return sum;
}

}  // namespace

Balance::Balance(Span span, const model::PriceBook& prices) : span_(span), prices_(prices) {}

void Balance::add(const model::LedgerLine& line) {
  if (line.kind == model::LedgerKind::kCorrection || line.gpu_uuid.empty()) return;
  if (const std::string fault = fault_of(line, prices_); !fault.empty()) {
    put_finding(differences_, [&] {
      return fmt::format("The line of {} at {} is damaged: {}.", line.gpu_uuid,
                         balance_time(line.from), fault);
    });
    return;
  }
  if (!is_in(line, span_)) return;
  const model::Millis from = std::max(line.from, span_.from);
  const model::Millis to = std::min(line.to, span_.to);
  const auto share = static_cast<std::int32_t>(line.share.value());
  key_.assign(line.gpu_uuid).append(kOnNode).append(line.node);
  add_edges(gpus_.number_of(key_), {from, to}, share);
  if (const model::PriceEntry* const price = prices_.find(line.price)) {
    fleet_ += gpu_cost(line.share, to - from, price->price.per_hour);
  }
  add_cut(line, span_, prices_, figures_);
}

// The end of a part and the begin of an equal one at the same moment change nothing: most lines of
// a GPU follow each other so.
void Balance::add_edges(std::uint32_t gpu, Span span, std::int32_t share) {
  if (gpu < last_ends_.size()) {
    Edge& end = edges_[last_ends_[gpu]];
    if (end.at == span.from && end.share == -share) {
      end.at = span.to;
      return;
    }
  } else {
    last_ends_.resize(gpu + 1);
  }
  edges_.push_back({span.from, share, gpu});
  last_ends_[gpu] = edges_.size();
  edges_.push_back({span.to, -share, gpu});
}

BalanceReport Balance::report() const {
  BalanceReport report{.span = span_,
                       .gpus = gpus_.size(),
                       .fleet = fleet_,
                       .figures = figures_,
                       .differences = differences_};
  std::vector<Edge> edges = edges_;
  std::ranges::sort(edges, [](const Edge& a, const Edge& b) {
    return std::pair(a.gpu, a.at) < std::pair(b.gpu, b.at);
  });
  std::int64_t held = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    held += edges[i].share;
    if (i + 1 == edges.size() || edges[i + 1].gpu != edges[i].gpu) continue;
    const model::Millis from = edges[i].at;
    const model::Millis to = edges[i + 1].at;
    if (from == to) continue;
    if (held != 0) report.wall += static_cast<__int128>(base::kWholeGpu.value()) * (to - from);
    if (held == base::kWholeGpu.value()) continue;
    put_finding(held == 0 ? report.absences : report.differences, [&] {
      return fmt::format("{} has lines for {}/7000 of it from {} to {}.",
                         gpus_.text_of(edges[i].gpu), held, balance_time(from), balance_time(to));
    });
  }
  if (report.figures.all().time != report.wall) {
    put_finding(report.differences,
                [] { return std::string("The lines do not add up to the time of the GPUs."); });
  }
  if (cost_of_parts(report.figures) != report.fleet) {
    put_finding(report.differences, [] {
      return std::string("The bills and the rest do not add up to the cost of the GPUs.");
    });
  }
  return report;
}

}  // namespace gpu_platform::accounting
