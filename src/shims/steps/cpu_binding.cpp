#include "shims/steps/cpu_binding.h"

#include <algorithm>

#include <fmt/format.h>

#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

constexpr std::uint32_t kMaxCpus = 8192;
constexpr std::uint32_t kMaxTimes = 4096;

std::optional<std::uint32_t> digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// "0x1f" or "1f": the CPUs whose bits are set.
base::Result<Cpus> parse_mask(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  if (digits.size() > kMaxCpus / 4) return base::invalid({}, "a mask is too long");
  Cpus cpus;
  std::uint32_t base = 0;
  for (std::size_t at = digits.size(); at-- > 0; base += 4) {
    const auto bits = digit(digits[at]);
    if (!bits) return base::invalid({}, fmt::format("'{}' is not a mask", text));
    for (std::uint32_t bit = 0; bit < 4; ++bit)
      if ((*bits >> bit & 1) != 0) cpus.push_back(base + bit);
  }
  if (cpus.empty()) return base::invalid({}, fmt::format("the mask '{}' has no CPU", text));
  return cpus;
}

base::Result<Cpus> parse_cpu(const std::string& text) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    std::uint32_t number = 0;
    for (const char c : text.substr(2)) {
      const auto bits = digit(c);
      if (!bits || number >= kMaxCpus)
        return base::invalid({}, fmt::format("'{}' is not a CPU", text));
      number = number * 16 + *bits;
    }
    return Cpus{number};
  }
  TRY_ASSIGN(const std::uint32_t number, parse_number(text, 0));
  return Cpus{number};
}

// "0x3,0xc*2": a value with "*N" counts N times.
base::Result<std::vector<Cpus>> parse_lists(std::string_view text, CpuBinding::Kind kind) {
  std::vector<Cpus> lists;
  for (const std::string& part : comma_separated(text)) {
    const std::size_t star = part.find('*');
    std::uint32_t times = 1;
    if (star != std::string::npos) {
      TRY_ASSIGN(times, parse_number(part.substr(star + 1), 1));
    }
    if (times > kMaxTimes) return base::invalid({}, fmt::format("'{}' is too often", part));
    const std::string value = part.substr(0, star);
    TRY_ASSIGN(const Cpus cpus,
               kind == CpuBinding::Kind::kMask ? parse_mask(value) : parse_cpu(value));
    lists.insert(lists.end(), times, cpus);
  }
  if (lists.empty()) return base::invalid({}, "the list is empty");
  return lists;
}

std::string mask_of(const Cpus& cpus) {
  std::string digits(cpus.empty() ? 1 : cpus.back() / 4 + 1, '0');
  for (std::size_t place = 0; place < digits.size(); ++place) {
    std::uint32_t bits = 0;
    for (const std::uint32_t cpu : cpus)
      if (cpu / 4 == place) bits |= 1U << (cpu % 4);
    digits[digits.size() - 1 - place] = "0123456789abcdef"[bits];
  }
  return "0x" + digits;
}

}  // namespace

base::Result<CpuBinding> parse_cpu_binding(std::string_view text) {
  CpuBinding binding;
  std::string_view rest = text;
  for (bool was_prefix = true; was_prefix && !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string word = lower_case(rest.substr(0, comma));
    was_prefix = word == "v" || word == "verbose" || word == "q" || word == "quiet";
    if (!was_prefix) break;
    binding.is_verbose = word.front() == 'v';
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  const std::size_t colon = rest.find(':');
  const std::string kind = lower_case(rest.substr(0, colon));
  if (rest.empty() || kind == "none" || kind == "no") return binding;
  if (kind == "cores" || kind == "core" || kind == "threads" || kind == "thread" ||
      kind == "rank") {
    binding.kind = CpuBinding::Kind::kOwn;
    return binding;
  }
  if ((kind == "map_cpu" || kind == "mask_cpu") && colon != std::string_view::npos) {
    binding.kind = kind == "map_cpu" ? CpuBinding::Kind::kMap : CpuBinding::Kind::kMask;
    TRY_ASSIGN(binding.lists, parse_lists(rest.substr(colon + 1), binding.kind));
    return binding;
  }
  return base::invalid(
      {}, fmt::format("'{}' is not supported: write none, cores, threads, rank, map_cpu:N,N,… or "
                      "mask_cpu:MASK,MASK,…",
                      text));
}

base::Result<std::optional<Cpus>> cpus_of_task(const CpuBinding& binding, const Cpus& of_step,
                                               std::uint32_t each, std::uint32_t rank) {
  if (binding.kind == CpuBinding::Kind::kNone || of_step.empty()) return std::optional<Cpus>();
  if (binding.kind == CpuBinding::Kind::kOwn) {
    Cpus cpus;
    const std::size_t count = std::min<std::size_t>(each, of_step.size());
    for (std::size_t i = 0; i < count; ++i)
      cpus.push_back(of_step[(std::size_t{rank} * each + i) % of_step.size()]);
    std::ranges::sort(cpus);
    return std::optional(std::move(cpus));
  }
  const Cpus& cpus = binding.lists[rank % binding.lists.size()];
  for (const std::uint32_t cpu : cpus) {
    if (!std::ranges::binary_search(of_step, cpu)) {
      return base::fail(base::ErrorCode::kFailedPrecondition,
                        fmt::format("--cpu-bind: CPU {} is not one of the job's", cpu));
    }
  }
  return std::optional(cpus);
}

std::string cpu_binding_line(const CpuBinding& binding, const BoundTask& task, const Cpus& cpus) {
  const char* const name = binding.kind == CpuBinding::Kind::kNone  ? "NONE"
                           : binding.kind == CpuBinding::Kind::kMap ? "MAP "
                                                                    : "MASK";
  return fmt::format("cpu-bind={} - {}, task {:2} {:2} [{}]: mask {}{}\n", name, task.node,
                     task.rank, task.rank, task.pid, mask_of(cpus),
                     binding.kind == CpuBinding::Kind::kNone ? "" : " set");
}

}  // namespace gpu_platform::shims
