#include "execution/process/gpu_resets.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "os/packet_socket.h"

namespace gpu_platform::execution {

namespace {

// Beyond its limit, for a launcher that is busy.
constexpr std::int64_t kAnswerTimeout = base::seconds(60).value();

// In which a check that was given up is expected to end.
constexpr std::int64_t kGiveUpTimeout = base::seconds(10).value();
// A launcher that ends takes its answers with it.
constexpr std::uint32_t kMaxLostAnswers = 3;

const node::DriverResult* result_of(const node::DriverAnswer& answer, const std::string& gpu) {
  const auto found = std::ranges::find(answer.gpus, gpu, &node::DriverResult::gpu);
  return found == answer.gpus.end() ? nullptr : &*found;
}

}  // namespace

std::optional<node::BoardFiles> board_files_of(const BoardPlaces& boards, const std::string& node) {
  if (boards.boards.empty()) return std::nullopt;
  return node::BoardFiles{boards.library + "/libnvidia-ml.so.1",
                          fmt::format("{}/{}/state", boards.boards, node),
                          boards.programs + "/nvidia-smi"};
}

GpuResets::GpuResets(Options options, ObservationSink& sink)
    : options_(std::move(options)), sink_(sink) {}

// It keeps no job from its start, and a GPU that is out stays out.
node::DriverAnswer GpuResets::no_answer(const Run& run, std::string_view why) {
  return run.attempt ? node::untried_answer(run.gpus, why) : node::failed_answer(run.gpus, why);
}

bool GpuResets::is_known(const ResetOrder& order, const std::string& gpu) const {
  return std::ranges::any_of(runs_, [&](const Run& run) {
    return !run.attempt && run.node == order.node_name &&
           run.without_reset == order.without_reset &&
           std::ranges::find(run.gpus, gpu) != run.gpus.end();
  });
}

void GpuResets::add(const ResetOrder& order) {
  Run run;
  run.node = order.node_name;
  run.without_reset = order.without_reset;
  run.is_deep = order.is_deep;
  if (run.without_reset) run.stage = Stage::kCheck;
  for (const std::string& gpu : order.gpu_uuids) {
    const bool is_repeated =
        is_known(order, gpu) || std::ranges::find(run.gpus, gpu) != run.gpus.end();
    if (!is_repeated) run.gpus.push_back(gpu);
  }
  const std::size_t most = node::kMaxDriverGpus;
  for (std::size_t i = most; i < run.gpus.size(); ++i) {
    sink_.observe(ResetEnded{run.node,
                             run.gpus[i],
                             fmt::format("no more than {} GPUs are {} at once", most,
                                         run.without_reset ? "checked" : "reset"),
                             {},
                             run.without_reset});
  }
  run.gpus.resize(std::min(run.gpus.size(), most));
  if (!run.gpus.empty()) runs_.push_back(std::move(run));
}

void GpuResets::add(CheckBeforeStart check) {
  Run run;
  run.node = std::move(check.node);
  run.gpus = std::move(check.gpus);
  run.without_reset = true;
  run.is_deep = check.is_deep;
  run.stage = Stage::kCheck;
  run.attempt = check.attempt;
  runs_.push_back(std::move(run));
}

// The launcher ends a check when this end of the socket is shut, and the other end closes with it.
void GpuResets::give_up(model::AttemptId attempt, std::int64_t now_ns) {
  for (std::size_t i = 0; i < runs_.size();) {
    Run& run = runs_[i];
    if (run.attempt != attempt) {
      ++i;
    } else if (!run.answer.is_open()) {
      finish(i, node::untried_answer(run.gpus, "the start was given up"));
    } else {
      shutdown(run.answer.get(), SHUT_WR);
      run.due_ns = std::min(run.due_ns, now_ns + kGiveUpTimeout);
      run.lost_answers = kMaxLostAnswers;
      ++i;
    }
  }
}

std::vector<CheckedBeforeStart> GpuResets::take_checked() {
  return std::exchange(checked_, {});
}

// The earlier ones of its node go first.
bool GpuResets::must_wait(std::size_t index) const {
  return std::any_of(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(index),
                     [&](const Run& other) { return other.node == runs_[index].node; });
}

LauncherLink::Sent GpuResets::go_on(const Send& send_to, std::int64_t now_ns) {
  // finish() removes a run that cannot be sent.
  for (std::size_t i = 0; i < runs_.size();) {
    const std::size_t before = runs_.size();
    if (!runs_[i].answer.is_open() && !must_wait(i)) {
      const LauncherLink::Sent sent = send(runs_[i], send_to, now_ns);
      if (sent != LauncherLink::Sent::kYes) return sent;
      if (!runs_[i].answer.is_open()) {
        finish(i, no_answer(runs_[i], "no socket could be made for its answer"));
      }
    }
    if (runs_.size() == before) ++i;
  }
  return LauncherLink::Sent::kYes;
}

node::RunDriver GpuResets::request_of(const Run& run) const {
  node::RunDriver request;
  const bool is_reset = run.stage == Stage::kReset;
  const auto check = run.is_deep ? node::DriverVerb::kDeepCheck : node::DriverVerb::kQuickCheck;
  request.verb = is_reset ? node::DriverVerb::kReset : check;
  request.gpus = run.gpus;
  const std::uint64_t check_limit =
      run.is_deep ? options_.deep_check_limit_ms : options_.check_limit_ms;
  request.deadline_ms = is_reset ? options_.reset_limit_ms : check_limit;
  request.board = board_files_of(options_.boards, run.node);
  return request;
}

LauncherLink::Sent GpuResets::send(Run& run, const Send& send_to, std::int64_t now_ns) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return LauncherLink::Sent::kYes;
  }
  os::Descriptor ours(ends[0]);
  const os::Descriptor theirs(ends[1]);
  if (run.stage == Stage::kReset) hold_probe(run, true);
  const node::RunDriver request = request_of(run);
  const LauncherLink::Sent sent = send_to(request, theirs.get());
  if (sent != LauncherLink::Sent::kYes) return sent;
  run.answer = std::move(ours);
  run.due_ns = now_ns + base::milliseconds(static_cast<std::int64_t>(request.deadline_ms)).value() +
               kAnswerTimeout;
  new_handles_.push_back(run.answer.get());
  return sent;
}

void GpuResets::hold_probe(Run& run, bool is_held) {
  if (std::exchange(run.holds_probe, is_held) == is_held || !options_.hold_probe) return;
  options_.hold_probe(run.node, is_held);
}

bool GpuResets::read(int handle) {
  const auto found = std::ranges::find_if(
      runs_, [&](const Run& run) { return run.answer.is_open() && run.answer.get() == handle; });
  if (found == runs_.end()) return false;
  std::vector<char> buffer(node::kMaxDriverAnswer);
  const os::Packet packet = os::receive_packet(handle, buffer.data(), buffer.size(), MSG_DONTWAIT);
  const os::Descriptor unwanted(packet.fd);
  std::optional<node::DriverAnswer> answer;
  if (packet.kind == os::Packet::Kind::kMessage) answer = node::decode_driver_answer(packet.bytes);
  if (!answer && asks_again(*found)) return true;
  if (!answer) {
    answer = no_answer(*found, found->without_reset
                                   ? "the program that checks GPUs ended without an answer"
                                   : "the program that resets GPUs ended without an answer");
  }
  finish(static_cast<std::size_t>(found - runs_.begin()), *answer);
  return true;
}

// A job does not lose the check of its GPUs because the launcher was started anew.
bool GpuResets::asks_again(Run& run) {
  if (!run.attempt || run.lost_answers >= kMaxLostAnswers) return false;
  ++run.lost_answers;
  run.answer.reset();
  return true;
}

std::optional<std::int64_t> GpuResets::do_due(std::int64_t now_ns) {
  std::optional<std::int64_t> next;
  for (std::size_t i = 0; i < runs_.size();) {
    const std::size_t before = runs_.size();
    if (runs_[i].answer.is_open() && runs_[i].due_ns <= now_ns) {
      finish(i, no_answer(runs_[i], "the launcher does not answer"));
      next = now_ns;  // what comes next is to be sent
    } else if (runs_[i].answer.is_open()) {
      next = std::min(next.value_or(runs_[i].due_ns), runs_[i].due_ns);
    }
    if (runs_.size() == before) ++i;
  }
  return next;
}

std::vector<int> GpuResets::take_new_handles() {
  return std::exchange(new_handles_, {});
}

// Goes on with those that did well, or ends with them.
void GpuResets::finish(std::size_t index, const node::DriverAnswer& answer) {
  Run& run = runs_[index];
  run.answer.reset();
  hold_probe(run, false);
  if (run.attempt) {
    checked_.push_back({*run.attempt, run.node, answer});
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(index));
    return;
  }
  const bool is_last = run.stage == Stage::kCheck;
  const bool is_untouched = answer.is_refused || answer.is_untried;
  std::vector<std::string> left;
  for (const std::string& gpu : run.gpus) {
    const node::DriverResult* const result = result_of(answer, gpu);
    std::string failure = result == nullptr ? "the answer does not name it" : result->failure;
    if (failure.empty() && !is_last) {
      left.push_back(gpu);
      continue;
    }
    const bool was_reset = is_last && !run.without_reset;
    if (was_reset && !failure.empty()) {
      const std::string_view how = answer.is_refused   ? "the rules do not allow"
                                   : answer.is_untried ? "nothing could begin"
                                                       : "failed";
      failure = fmt::format("it was reset, but {} its check: {}", how, failure);
    }
    const RefusedPart refused = !is_untouched ? RefusedPart::kNothing
                                : was_reset   ? RefusedPart::kCheckAfterReset
                                              : RefusedPart::kAll;
    sink_.observe(ResetEnded{run.node, gpu, std::move(failure), answer.detail, run.without_reset,
                             refused, answer.is_untried});
  }
  if (left.empty()) {
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(index));
    return;
  }
  run.gpus = std::move(left);
  run.stage = Stage::kCheck;
}

}  // namespace gpu_platform::execution
