#include "accounting/usage_sum.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/month.h"

namespace gpu_platform::accounting {

namespace {

constexpr model::Millis kHourLength = 3'600'000;
constexpr model::Millis kDayLength = 24 * kHourLength;

Span common_part(Span a, Span b) {
  return {std::max(a.from, b.from), std::min(a.to, b.to)};
}

// Of a line's price; a line without one has nothing.
struct LinePrice {
  base::MicroUsd per_hour;
  bool is_known = false;
};

LinePrice price_of_line(const model::LedgerLine& line, const model::PriceBook& prices) {
  const model::PriceEntry* const entry = prices.find(line.price);
  if (entry == nullptr) return {};
  return {entry->price.per_hour, true};
}

void add_gpu_time(const model::LedgerLine& line, Span span, const LinePrice& price, GpuTime& to) {
  if (span.from >= span.to) return;
  const std::int64_t length = span.to - span.from;
  const __int128 time = static_cast<__int128>(line.share.value()) * length;
  to.time += time;
  if (price.is_known) {
    to.list += gpu_cost(line.share, length, price.per_hour);
  } else {
    to.unpriced += time;
  }
}

void add_discount(const model::LedgerLine& line, Span span, const LinePrice& price,
                  UsageFigures& to) {
  if (span.from >= span.to || line.discount == 0 || !price.is_known) return;
  const std::int64_t length = span.to - span.from;
  to.discount += gpu_cost(line.share, length, price.per_hour) -
                 gpu_cost(line.share, length, price.per_hour, line.discount);
}

void add_held_gpu(const model::LedgerLine& line, Span span, const model::PriceBook& prices,
                  UsageFigures& to) {
  const LinePrice price = price_of_line(line, prices);
  const Span used = common_part({line.started, line.ended}, span);
  add_gpu_time(line, common_part({line.from, line.started}, span), price, to.starting);
  add_gpu_time(line, used, price, to.used[static_cast<std::size_t>(line.not_billed)]);
  add_gpu_time(line, common_part({line.ended, line.to}, span), price, to.cleaning);
  if (line.not_billed == model::NotBilled::kBilled) add_discount(line, used, price, to);
}

void add_held_cpus(const model::LedgerLine& line, Span span, UsageFigures& to) {
  const Span used = common_part({line.started, line.ended}, span);
  if (used.from >= used.to) return;
  const std::int64_t length = used.to - used.from;
  const auto cost = [&](std::uint32_t discount) {
    return cpu_cost(line.cpus, line.core_hour, line.memory_mib, line.gib_hour, length, discount);
  };
  const bool is_billed = line.not_billed == model::NotBilled::kBilled;
  CpuTime& cpu = is_billed ? to.cpu : to.cpu_not_billed;
  cpu.core_ms += static_cast<__int128>(line.cpus) * length;
  cpu.mib_ms += static_cast<__int128>(line.memory_mib) * length;
  cpu.list += cost(0);
  if (is_billed) to.cpu_discount += cost(0) - cost(line.discount);
}

void add_rest(const model::LedgerLine& line, Span span, const model::PriceBook& prices,
              UsageFigures& to) {
  if (to.rest.empty()) to.rest.resize(model::kRestKinds);
  add_gpu_time(line, common_part({line.from, line.to}, span), price_of_line(line, prices),
               to.rest[static_cast<std::size_t>(line.rest)]);
}

std::vector<model::Millis> months_in(const UsageQuery& query) {
  std::vector<model::Millis> months;
  base::Month month = base::month_of(base::Instant(query.from * 1'000'000));
  model::Millis begin = model::millis_of(base::begin_of(month));
  while (begin < query.to) {
    months.push_back(begin);
    begin = model::millis_of(base::end_of(month));
    month = base::plus_months(month, 1);
  }
  months.push_back(begin);
  return months;
}

// Returns the step in which the moment lies. It may begin before the query, and end after it.
Span step_at(const UsageQuery& query, const std::vector<model::Millis>& months, model::Millis at) {
  switch (query.step) {
    case UsageStep::kNone:
      break;
    case UsageStep::kHour:
      return {at - at % kHourLength, at - at % kHourLength + kHourLength};
    case UsageStep::kDay:
      return {at - at % kDayLength, at - at % kDayLength + kDayLength};
    case UsageStep::kMonth: {
      const auto next = std::upper_bound(months.begin(), months.end(), at);
      CHECK(next != months.begin() && next != months.end());
      return {*std::prev(next), *next};
    }
  }
  return {query.from, query.to};
}

std::string_view value_of_label(const model::LedgerLine& line, std::string_view key) {
  for (const model::Label& label : line.labels) {
    if (label.key == key) return label.value;
  }
  return {};
}

// Numbers of jobs are texts without leading zeros here: a shorter one is less.
bool is_key_less(UsageField field, const std::string& a, const std::string& b) {
  if (field == UsageField::kJob && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

}  // namespace

GpuTime& GpuTime::operator+=(const GpuTime& other) {
  time += other.time;
  unpriced += other.unpriced;
  list += other.list;
  return *this;
}

CpuTime& CpuTime::operator+=(const CpuTime& other) {
  core_ms += other.core_ms;
  mib_ms += other.mib_ms;
  list += other.list;
  return *this;
}

GpuTime UsageFigures::not_billed() const {
  GpuTime sum;
  for (std::size_t i = 1; i < used.size(); ++i) sum += used[i];
  return sum;
}

GpuTime UsageFigures::rest_of(model::RestKind kind) const {
  return rest.empty() ? GpuTime() : rest[static_cast<std::size_t>(kind)];
}

GpuTime UsageFigures::all() const {
  GpuTime sum = starting;
  sum += cleaning;
  for (const GpuTime& part : used) sum += part;
  for (const GpuTime& part : rest) sum += part;
  return sum;
}

UsageFigures& UsageFigures::operator+=(const UsageFigures& other) {
  for (std::size_t i = 0; i < used.size(); ++i) used[i] += other.used[i];
  starting += other.starting;
  cleaning += other.cleaning;
  if (rest.size() < other.rest.size()) rest.resize(other.rest.size());
  for (std::size_t i = 0; i < other.rest.size(); ++i) rest[i] += other.rest[i];
  discount += other.discount;
  cpu += other.cpu;
  cpu_not_billed += other.cpu_not_billed;
  cpu_discount += other.cpu_discount;
  corrections += other.corrections;
  lines += other.lines;
  return *this;
}

bool is_in(const model::LedgerLine& line, Span span) {
  if (line.kind == model::LedgerKind::kCorrection) {
    return span.from <= line.from && line.from < span.to;
  }
  return std::max(line.from, span.from) < std::min(line.to, span.to);
}

void add_cut(const model::LedgerLine& line, Span span, const model::PriceBook& prices,
             UsageFigures& to) {
  if (!is_in(line, span)) return;
  ++to.lines;
  switch (line.kind) {
    case model::LedgerKind::kHeld:
      if (line.gpu_uuid.empty()) {
        add_held_cpus(line, span, to);
      } else {
        add_held_gpu(line, span, prices, to);
      }
      break;
    case model::LedgerKind::kRest:
      add_rest(line, span, prices, to);
      break;
    case model::LedgerKind::kCorrection:
      to.corrections += ExactCost(line.amount);
      break;
  }
}

UsageFigures figures_of(const model::LedgerLine& line, const model::PriceBook& prices) {
  UsageFigures figures;
  add_cut(line, {line.from, std::max(line.to, line.from + 1)}, prices, figures);
  return figures;
}

UsageSum::UsageSum(UsageQuery query, const model::PriceBook& prices)
    : query_(std::move(query)), prices_(prices) {
  if (query_.step == UsageStep::kMonth) months_ = months_in(query_);
}

void UsageSum::add(const model::LedgerLine& line) {
  const Span whole = {query_.from, query_.to};
  if (!is_in(line, whole)) return;
  if (line.kind == model::LedgerKind::kRest && !query_.with_rest) return;
  if (!is_wanted(query_.filter, line)) return;
  const model::Millis first = std::max(line.from, query_.from);
  const model::Millis last =
      line.kind == model::LedgerKind::kCorrection ? first + 1 : std::min(line.to, query_.to);
  for (model::Millis at = first; at < last;) {
    const Span step = common_part(step_at(query_, months_, at), whole);
    if (UsageFigures* const figures = group_of(line, step.from)) {
      add_cut(line, step, prices_, *figures);
    }
    at = step.to;
  }
}

std::uint32_t UsageSum::key_of(const UsageBy& by, const model::LedgerLine& line) {
  const bool is_held = line.kind == model::LedgerKind::kHeld;
  switch (by.field) {
    case UsageField::kUser:
      return texts_.number_of(line.user);
    case UsageField::kTeam:
      return texts_.number_of(line.team);
    case UsageField::kProject:
      return texts_.number_of(line.project);
    case UsageField::kType:
      return texts_.number_of(line.gpu_type);
    case UsageField::kNode:
      return texts_.number_of(line.node);
    case UsageField::kLabel:
      return texts_.number_of(value_of_label(line, by.label));
    case UsageField::kCapacity:
      return texts_.number_of(line.kind == model::LedgerKind::kCorrection
                                  ? std::string_view()
                                  : model::to_string(line.capacity));
    case UsageField::kKind:
      return texts_.number_of(is_held ? model::to_string(line.job_kind) : std::string_view());
    case UsageField::kPriority:
      return texts_.number_of(is_held ? model::to_string(line.priority) : std::string_view());
    case UsageField::kJob:
      break;
  }
  if (!is_held) return texts_.number_of({});
  std::array<char, 20> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), line.attempt.job.value).ptr;
  return texts_.number_of({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

UsageFigures* UsageSum::group_of(const model::LedgerLine& line, model::Millis step) {
  static_assert(sizeof(model::Millis) == 2 * sizeof(std::uint32_t));
  std::array<std::uint32_t, kMaxUsageBys + 2> key{};
  std::size_t size = 0;
  bool is_by_job = false;
  for (const UsageBy& by : query_.by) {
    key[size++] = key_of(by, line);
    is_by_job = is_by_job || by.field == UsageField::kJob;
  }
  key[size++] = static_cast<std::uint32_t>(step);
  key[size++] = static_cast<std::uint32_t>(step >> 32);
  const std::string_view bytes(reinterpret_cast<const char*>(key.data()),
                               size * sizeof(std::uint32_t));
  if (keys_.size() >= query_.max_groups && !keys_.has(bytes)) {
    is_complete_ = false;
    return nullptr;
  }
  const std::uint32_t number = keys_.number_of(bytes);
  if (number == groups_.size()) groups_.push_back({.step = step});
  UsageGroup& group = groups_[number];
  if (is_by_job && group.job_name.empty()) group.job_name = line.job_name;
  return &group.figures;
}

std::vector<UsageGroup> UsageSum::groups() const {
  std::vector<UsageGroup> out = groups_;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::string_view bytes = keys_.text_of(static_cast<std::uint32_t>(i));
    for (std::size_t k = 0; k < query_.by.size(); ++k) {
      std::uint32_t number = 0;
      bytes.copy(reinterpret_cast<char*>(&number), sizeof number, k * sizeof number);
      out[i].keys.emplace_back(texts_.text_of(number));
    }
  }
  std::sort(out.begin(), out.end(), [&](const UsageGroup& a, const UsageGroup& b) {
    for (std::size_t k = 0; k < query_.by.size(); ++k) {
      if (is_key_less(query_.by[k].field, a.keys[k], b.keys[k])) return true;
      if (is_key_less(query_.by[k].field, b.keys[k], a.keys[k])) return false;
    }
    return a.step < b.step;
  });
  return out;
}

UsageFigures UsageSum::total() const {
  UsageFigures sum;
  for (const UsageGroup& group : groups_) sum += group.figures;
  return sum;
}

}  // namespace gpu_platform::accounting
