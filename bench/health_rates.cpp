// How often health is wrong, and what faults cost a large training job: two simulations on virtual
// time with the daemon's own judge and core.
//
//   health_rates [days]
//
// 1. Healthy GPUs that are taken out, a day and 504 GPUs: of a training cluster, whose programs
// fail
//    as seldom as Llama 3's (54 software faults in 54 days on 16,384 GPUs), and of a cluster on
//    which 40 programmers have 210 errors a day. Measured elsewhere: 0.84 (arXiv 2605.09370, 504
//    B200).
// 2. The effective training time ratio of one job on 16,384 GPUs with 1 % of spare nodes, at the
//    rate of interruptions of Llama 3 (419 in 54 days), by the time between checkpoints.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/prng.h"
#include "controller/core.h"
#include "health/case_book.h"
#include "health/rules.h"
#include "model/command.h"
#include "model/job_spec.h"

namespace gpu_platform {
namespace {

constexpr base::Instant kBegin(1'790'000'000'000'000'000);
constexpr double kDaySeconds = 86'400;

base::Duration seconds_of(double seconds) {
  return base::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

double uniform(base::Prng& random) {
  return (static_cast<double>(random.below(1'000'000'000)) + 0.5) / 1e9;
}

double exponential(base::Prng& random, double mean) {
  return -mean * std::log(uniform(random));
}

// ---- 1. healthy GPUs taken out

// 63 nodes of 8 GPUs. Programs fail for themselves, most of them several times while their user
// mends them, and 400 jobs a day do well. Faults of hardware come at the rate of
// InfiniteHBD-Trace: 584 in 348 days on 3,200 GPUs, half of them of GPUs.
class Site {
 public:
  // `programs`: that fail in 100 days.
  Site(std::uint64_t seed, std::uint64_t programs) : random_(seed), programs_(programs) {
    for (std::uint32_t i = 0; i < kGpus; ++i) {
      names_.push_back(fmt::format("GPU-{}", i));
      nodes_.push_back(fmt::format("n{}", i / 8));
    }
    for (std::uint32_t i = 0; i < kGpus; ++i) book_.add_gpu(key(i));
  }

  void pass(std::uint32_t days) {
    for (std::uint32_t day = 0; day < days; ++day) {
      std::map<double, std::pair<bool, std::uint64_t>> jobs;  // by time: fails, program
      for (std::uint64_t i = 0; i < programs_ / 100; ++i) plan_failures(day, jobs);
      if (random_.below(100) < programs_ % 100) plan_failures(day, jobs);
      for (int i = 0; i < 400; ++i) jobs[moment(day)] = {false, random_.below(400)};
      if (random_.below(1000) < 130) break_one(moment(day));
      for (const auto& [at, job] : jobs) run(at, job.first, job.second);
    }
  }
  std::size_t wrong() const { return wrong_.size(); }
  std::size_t broken() const { return broken_.size(); }
  std::size_t found() const { return found_.size(); }

 private:
  static constexpr std::uint32_t kGpus = 504;

  health::GpuKey key(std::uint32_t gpu) const { return {nodes_[gpu], names_[gpu], "H100-80GB"}; }
  double moment(std::uint32_t day) { return (day + uniform(random_)) * kDaySeconds; }

  void plan_failures(std::uint32_t day, std::map<double, std::pair<bool, std::uint64_t>>& jobs) {
    const std::uint64_t program = 1000 + random_.below(100'000);
    double at = moment(day);
    for (std::uint64_t i = 0; i < 1 + random_.below(6); ++i) {
      jobs[at] = {true, program};
      at += exponential(random_, 1'200);
    }
  }

  void run(double at, bool fails, std::uint64_t program) {
    const std::uint32_t count = 1U << random_.below(4);
    const auto first = static_cast<std::uint32_t>(random_.below(kGpus / count)) * count;
    model::Evidence piece;
    piece.job = model::JobId(++job_);
    piece.user = fmt::format("user{}", program % 40);
    piece.program = fmt::format("program{}", program);
    piece.source = model::EvidenceSource::kJob;
    for (std::uint32_t gpu = first; gpu < first + count; ++gpu) {
      const bool meets_fault = broken_.contains(gpu) && random_.chance(1, 3);
      if (fails || meets_fault) tell_exception(gpu, at, piece);
      piece.kind = model::EvidenceKind::kJobEnded;
      piece.code = fails || meets_fault ? 1 : 0;
      tell(gpu, at + 1, piece);
      if (fails && !random_.chance(1, 8)) break;  // most programs fail on their first GPU
    }
  }

  void tell_exception(std::uint32_t gpu, double at, model::Evidence piece) {
    const std::uint64_t draw = random_.below(10);
    piece.kind = model::EvidenceKind::kXid;
    piece.source = model::EvidenceSource::kDriver;
    piece.code = draw < 6 ? 31 : draw < 9 ? 13 : 43;
    tell(gpu, at, piece);
  }

  void break_one(double at) {
    const auto gpu = static_cast<std::uint32_t>(random_.below(kGpus));
    broken_.insert(gpu);
    constexpr std::uint32_t kXids[] = {48, 63, 64, 79, 94, 95, 119};
    model::Evidence piece;
    piece.code = kXids[random_.below(std::size(kXids))];
    tell(gpu, at, piece);
  }

  void tell(std::uint32_t gpu, double at, model::Evidence piece) {
    piece.at = kBegin + seconds_of(at);
    piece.last = piece.at;
    book_.add(key(gpu), std::move(piece));
    for (const std::string& uuid : book_.take_touched()) {
      const auto place = static_cast<std::uint32_t>(std::stoul(uuid.substr(4)));
      const auto verdict = health::judge_gpu(book_, key(place), rules_, kBegin + seconds_of(at));
      if (verdict.action < health::Action::kDegrade) continue;
      (broken_.contains(place) ? found_ : wrong_).insert(place);
    }
  }

  base::Prng random_;
  std::uint64_t programs_;
  std::vector<std::string> names_, nodes_;
  health::CaseBook book_;
  const health::Rules rules_ = *health::Rules::make(health::Profile::kNvidia);
  std::set<std::uint32_t> broken_, found_, wrong_;
  std::uint64_t job_ = 0;
};

void print_wrong(std::string_view what, std::uint64_t programs, std::uint32_t days) {
  std::size_t wrong = 0, broken = 0, found = 0;
  constexpr std::uint32_t kSites = 3;
  for (std::uint32_t seed = 1; seed <= kSites; ++seed) {
    Site site(seed, programs);
    site.pass(days);
    wrong += site.wrong();
    broken += site.broken();
    found += site.found();
  }
  fmt::print(
      "{}: {} healthy GPUs taken out in {} days of 504 GPUs, {:.3f} a day (elsewhere 0.84); "
      "{} of {} broken ones\n",
      what, wrong, kSites * days, static_cast<double>(wrong) / (kSites * days), found, broken);
}

// ---- 2. effective training time

struct Cost {
  double checkpoint_minutes;
  double lost_seconds = 0;
};

class Training {
 public:
  static constexpr std::uint32_t kNodes = 2048, kSpares = 21;
  static constexpr double kRestart = 60;  // from the order to the first step, seconds

  Training() {
    model::Policy policy;
    policy.health_reset = model::HealthReset::kAuto;
    policy.max_time_limit = base::hours(24 * 365);
    policy.default_time_limit = policy.max_time_limit;
    core_.apply_policy(policy, "bench", now_);
    for (std::uint32_t i = 0; i < kNodes + kSpares; ++i) report_node(i);
    model::JobSpec spec;
    spec.name = "pretrain";
    spec.user = "ann";
    spec.uid = spec.gid = 1001;
    spec.command = {"torchrun"};
    spec.request.gpus = 8;
    spec.request.nodes = kNodes;
    spec.retries = 10'000;
    const auto reply = core_.command({{spec.user, spec.uid}, model::SubmitJob{spec, {}}}, now_,
                                     store::Headroom::kAmple);
    if (!reply) std::abort();
    settle();
  }

  void pass(double days) {
    const base::Instant end = now_ + seconds_of(days * kDaySeconds);
    while (now_ < end) {
      const double interval = 54 * kDaySeconds / 419;
      const base::Instant failure = now_ + seconds_of(exponential(random_, interval));
      run_until(std::min(failure, end));
      if (now_ < end && is_running_) interrupt();
    }
    run_until(end);
    total_ = days * kDaySeconds;
  }

  void print() const {
    const double running = total_ - down_;
    fmt::print("training on {} GPUs with {} spare nodes: {} interruptions, {:.1f} days down\n",
               kNodes * 8, kSpares, interruptions_, down_ / kDaySeconds);
    for (const Cost& cost : costs_) {
      fmt::print("  a checkpoint every {:>4} minutes: effective training time {:.2f} %\n",
                 cost.checkpoint_minutes, 100 * (running - cost.lost_seconds) / total_);
    }
  }

 private:
  void report_node(std::uint32_t number) {
    model::NodeInfo info;
    info.name = fmt::format("n{:04}", number);
    info.boot_id = fmt::format("boot-{}", ++boots_);
    info.cpus = 128;
    info.memory = base::kGiB * 1024;
    for (std::uint32_t i = 0; i < 8; ++i) {
      model::GpuInfo gpu;
      gpu.uuid = fmt::format("GPU-{}-{}", number, i);
      gpu.model = "NVIDIA H100 80GB HBM3";
      gpu.type = "H100-80GB";
      gpu.memory = base::kGiB * 80;
      gpu.minor = i;
      info.gpus.push_back(std::move(gpu));
    }
    core_.observe(execution::NodeObserved{std::move(info)}, now_);
  }

  // Half of the interruptions are of GPUs and their memory; a fifth of these needs a person.
  void interrupt() {
    ++interruptions_;
    is_running_ = false;
    stopped_at_ = now_;
    for (Cost& cost : costs_) {
      const double since = seconds_between(started_at_, now_);
      cost.lost_seconds += std::fmod(since, cost.checkpoint_minutes * 60);
    }
    const model::NodeAllocation& part = allocation_.nodes[random_.below(allocation_.nodes.size())];
    const model::Node& node = *core_.state().nodes.find(part.node.value);
    if (random_.chance(56, 100)) tell_fault(node);
    execution::Ended ended;
    ended.attempt = attempt_;
    ended.at = now_ + seconds_of(0.2);
    ended.exit.code = 1;
    now_ = ended.at;
    core_.observe(ended, now_);
    core_.observe(execution::Cleaned{attempt_}, now_);
    settle();
  }

  void tell_fault(const model::Node& node) {
    constexpr std::uint32_t kXids[] = {48, 63, 79, 94, 95, 119, 48, 95};
    const std::uint32_t xid = kXids[random_.below(std::size(kXids))];
    execution::EvidenceObserved seen{node.name, node.gpus[random_.below(8)].info.uuid, {}};
    seen.evidence.code = xid;
    seen.evidence.at = now_;
    seen.evidence.last = now_;
    const auto number = static_cast<std::uint32_t>(std::stoul(node.name.substr(1)));
    core_.observe(seen, now_);
    settle();
    const bool needs_a_person = random_.chance(1, 5);
    if (xid == 79 || needs_a_person) {
      due_.emplace(now_ + (needs_a_person ? base::hours(133) : base::minutes(30)),
                   [this, number] { repair(number); });
    }
  }

  void repair(std::uint32_t number) {
    report_node(number);
    model::ChangeGpus command;
    command.which.node = fmt::format("n{:04}", number);
    command.action = model::GpuAction::kBringOnline;
    (void)core_.command({model::root_caller(), command}, now_, store::Headroom::kAmple);
  }

  void run_until(base::Instant end) {
    while (now_ < end) {
      base::Instant next = end;
      if (const auto wakeup = core_.next_wakeup()) next = std::min(next, std::max(*wakeup, now_));
      if (!due_.empty()) next = std::min(next, due_.begin()->first);
      now_ = std::max(now_, next);
      while (!due_.empty() && due_.begin()->first <= now_) {
        const auto act = std::move(due_.begin()->second);
        due_.erase(due_.begin());
        act();
      }
      settle();
      if (next == end) return;
    }
  }

  void settle() {
    while (true) {
      core_.advance(now_);
      const controller::Batch batch = core_.take_batch();
      if (batch.effects.empty()) return;
      for (const controller::Effect& effect : batch.effects) obey(effect);
    }
  }

  void obey(const controller::Effect& effect) {
    if (const auto* start = std::get_if<execution::StartOrder>(&effect)) {
      attempt_ = start->attempt;
      due_.emplace(now_ + seconds_of(kRestart), [this, id = start->attempt] { begin(id); });
    } else if (const auto* reset = std::get_if<execution::ResetOrder>(&effect)) {
      due_.emplace(now_ + base::minutes(5), [this, order = *reset] {
        for (const std::string& uuid : order.gpu_uuids) {
          execution::ResetEnded ended{order.node_name, uuid, {}};
          ended.without_reset = order.without_reset;
          core_.observe(ended, now_);
        }
      });
    }
  }

  void begin(model::AttemptId id) {
    if (id != attempt_) return;
    execution::Started started;
    started.attempt = id;
    started.at = now_;
    core_.observe(started, now_);
    settle();
    const model::Attempt* const found = controller::find_attempt(core_.state(), id);
    if (found == nullptr) std::abort();
    allocation_ = found->allocation;
    is_running_ = true;
    down_ += seconds_between(stopped_at_, now_);
    started_at_ = now_;
  }

  static double seconds_between(base::Instant from, base::Instant to) {
    return static_cast<double>((to - from).value()) / 1e9;
  }

  controller::Core core_;
  base::Prng random_{7};
  base::Instant now_ = kBegin;
  std::multimap<base::Instant, std::function<void()>> due_;
  model::AttemptId attempt_;
  model::Allocation allocation_;
  bool is_running_ = false;
  base::Instant started_at_, stopped_at_ = kBegin;
  std::uint64_t interruptions_ = 0, boots_ = 0;
  double down_ = 0, total_ = 0;
  std::vector<Cost> costs_{{2}, {5}, {10}, {30}, {60}};
};

}  // namespace
}  // namespace gpu_platform

int main(int argc, char** argv) {
  const int days = argc > 1 ? std::atoi(argv[1]) : 60;
  const auto span = static_cast<std::uint32_t>(std::max(days, 1));
  gpu_platform::print_wrong("training cluster", 3, span);
  gpu_platform::print_wrong("40 programmers", 6'000, std::min(span, 20U));
  gpu_platform::Training training;
  training.pass(54);
  training.print();
}
