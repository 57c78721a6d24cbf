#include "accounting/attempt_lines.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "model/job_spec.h"

namespace gpu_platform::accounting {

namespace {

using model::EndReason;
using model::LedgerLine;
using model::Millis;
using model::NotBilled;

base::Instant instant_of_millis(Millis at) {
  return base::Instant(at * 1'000'000);
}

// A part of a segment at one price.
struct PricedTimes {
  Segment times;
  std::uint32_t price = 0;
};

Segment cut_segment(const Segment& segment, Millis from, Millis to) {
  return {from, std::clamp(segment.started, from, to), std::clamp(segment.ended, from, to), to};
}

// All GPUs of an attempt are of one type.
std::vector<PricedTimes> segments_at_prices(const std::vector<Segment>& segments,
                                            const model::PriceBook& prices, const LedgerLine& of) {
  std::vector<PricedTimes> parts;
  for (const Segment& segment : segments) {
    const std::vector<model::PriceSpan> spans =
        prices.over(of.gpu_type, of.capacity, of.node, instant_of_millis(segment.from),
                    instant_of_millis(segment.to));
    for (const model::PriceSpan& span : spans) {
      const Millis from = model::millis_of(span.from);
      const Millis to = model::millis_of(span.to);
      if (from == to) continue;
      parts.push_back({cut_segment(segment, from, to), span.entry == nullptr ? 0 : span.entry->id});
    }
  }
  return parts;
}

void put_segment(const Segment& times, LedgerLine& line) {
  line.from = times.from;
  line.started = times.started;
  line.ended = times.ended;
  line.to = times.to;
}

// What all lines of the attempt have in common.
LedgerLine held_line_of(const model::Job& job, const model::Attempt& attempt) {
  const model::JobSpec& spec = *job.spec;
  LedgerLine line;
  line.kind = model::LedgerKind::kHeld;
  line.attempt = {job.id, attempt.number};
  line.user = spec.user;
  line.team = spec.team;
  line.project = spec.project;
  line.job_name = spec.name;
  line.job_kind = spec.kind;
  line.priority = spec.priority.priority_class;
  line.labels = spec.labels;
  return line;
}

// Makes room for so many lines: they are large, and are moved seldom.
void make_room(std::vector<LedgerLine>& lines, std::size_t more) {
  const std::size_t needed = lines.size() + more;
  if (needed > lines.capacity()) lines.reserve(std::max(needed, 2 * lines.capacity()));
}

// `line`: what all lines of the GPUs have in common.
void append_gpu_lines(LedgerLine line, const model::Node& node, const model::NodeAllocation& part,
                      const std::vector<PricedTimes>& parts, std::vector<LedgerLine>& lines) {
  make_room(lines, part.grants.size() * parts.size());
  for (const model::GpuGrant& grant : part.grants) {
    // While an attempt holds it, its place is given to no other GPU.
    line.gpu_uuid = node.gpus.at(grant.gpu_index).info.uuid;
    line.share = grant.share;
    line.mode = grant.mode;
    line.segment = 0;
    for (const PricedTimes& each : parts) {
      line.price = each.price;
      put_segment(each.times, line);
      const bool is_last = &grant == &part.grants.back() && &each == &parts.back();
      if (is_last) return lines.push_back(std::move(line));
      lines.push_back(line);
      ++line.segment;
    }
  }
}

void append_node_lines(LedgerLine line, const model::NodeAllocation& part,
                       const model::CpuPrices& prices, const std::vector<Segment>& segments,
                       std::vector<LedgerLine>& lines) {
  line.cpus = part.cpus;
  line.memory_mib = (part.memory.value() + base::kMiB.value() - 1) / base::kMiB.value();
  line.core_hour = prices.core_hour;
  line.gib_hour = prices.gib_hour;
  for (const Segment& segment : segments) {
    if (segment.from == segment.to) continue;
    put_segment(segment, line);
    lines.push_back(line);
    ++line.segment;
  }
}

// Its cluster took its place away, and no order of ours did.
bool was_evicted(const model::Attempt& attempt) {
  return attempt.reason == EndReason::kPreempted && attempt.stop_reason == EndReason::kNone;
}

bool is_hardwares_fault(const model::Attempt& attempt) {
  return attempt.exit.lost == model::Lost::kNodeLost || attempt.reason == EndReason::kGpuFault ||
         attempt.stop_reason == EndReason::kGpuFault;
}

bool is_platforms_fault(const model::Attempt& attempt) {
  // A missing or forbidden program, which has an exit code, is not.
  const bool is_hosts_failure =
      attempt.reason == EndReason::kLaunchFailed && !attempt.exit.code.has_value();
  return is_hosts_failure || attempt.exit.lost == model::Lost::kUnknown ||
         attempt.reason == EndReason::kSupervisorLost ||
         attempt.reason == EndReason::kPrologFailed ||
         attempt.reason == EndReason::kEnvironmentLost ||
         attempt.stop_reason == EndReason::kGpuOffline;
}

// A job on spot capacity has accepted that the provider may take it back.
bool is_spot_taken_back(const model::Attempt& attempt, model::CapacityClass capacity) {
  return was_evicted(attempt) && capacity == model::CapacityClass::kSpot;
}

}  // namespace

std::vector<Segment> segments_of(const model::Attempt& attempt, base::Instant until) {
  const base::Instant end = attempt.released_at.is_set() ? attempt.released_at : until;
  Segment segment;
  segment.from = model::millis_of(attempt.requested_at);
  segment.to = std::max(segment.from, model::millis_of(end));
  segment.started = segment.to;
  segment.ended = segment.to;
  if (attempt.started_at.is_set()) {
    segment.started = std::clamp(model::millis_of(attempt.started_at), segment.from, segment.to);
  }
  if (attempt.ended_at.is_set()) {
    segment.ended = std::clamp(model::millis_of(attempt.ended_at), segment.started, segment.to);
  }
  return {segment};
}

NotBilled not_billed_of(const model::Job& job, const model::Attempt& attempt,
                        model::CapacityClass capacity, const model::Billing& billing) {
  if (!attempt.ended_at.is_set()) return NotBilled::kBilled;
  const bool has_started = attempt.started_at.is_set();
  // However it came to that, its owner has what was asked for.
  const bool is_complete = attempt.exit.code == 0 && job.spec->complete_on_exit_zero;
  if (has_started && is_complete) return NotBilled::kBilled;
  if (is_hardwares_fault(attempt)) return NotBilled::kHardware;
  const bool is_taken_back = is_spot_taken_back(attempt, capacity);
  const bool is_clusters_doing = was_evicted(attempt) && !is_taken_back;
  if (is_platforms_fault(attempt) || is_clusters_doing) return NotBilled::kPlatform;
  if (!has_started) return NotBilled::kNeverRan;
  const bool is_for_others = is_taken_back || attempt.stop_reason == EndReason::kPreempted;
  if (!is_for_others || !billing.preempted_is_free) return NotBilled::kBilled;
  return is_taken_back || attempt.is_reclaimed ? NotBilled::kReclaimed : NotBilled::kPreempted;
}

std::uint32_t discount_of(const model::Policy& policy, std::string_view team) {
  const std::vector<model::Discount>& discounts = policy.billing->discounts;
  if (discounts.empty()) return 0;
  // Once round at most: no team is below itself.
  while (!team.empty()) {
    const auto found = std::ranges::find(discounts, team, &model::Discount::team);
    if (found != discounts.end()) return found->basis_points;
    const model::Team* const known = model::find_team(*policy.organisation, team);
    team = known == nullptr ? std::string_view() : std::string_view(known->parent);
  }
  return 0;
}

void append_lines(const LineTerms& terms, const model::Job& job, const model::Attempt& attempt,
                  base::Instant until, std::vector<LedgerLine>& lines) {
  const model::Billing& billing = *terms.policy.billing;
  const std::vector<Segment> segments = segments_of(attempt, until);
  const std::uint32_t discount = discount_of(terms.policy, job.spec->team);
  for (const model::NodeAllocation& part : attempt.allocation.nodes) {
    const model::Node* const node = terms.nodes.find(part.node.value);
    CHECK(node != nullptr);
    LedgerLine line = held_line_of(job, attempt);
    line.discount = discount;
    line.node = node->name;
    line.capacity = node->capacity;
    line.not_billed = not_billed_of(job, attempt, node->capacity, billing);
    if (part.grants.empty()) {
      append_node_lines(std::move(line), part, billing.cpu, segments, lines);
      continue;
    }
    line.gpu_type = attempt.gpu_type;
    const std::vector<PricedTimes> parts = segments_at_prices(segments, terms.prices, line);
    append_gpu_lines(std::move(line), *node, part, parts, lines);
  }
}

}  // namespace gpu_platform::accounting
