#include "kubernetes/credentials.h"

#include <utility>

#include <fmt/format.h>

#include "kubernetes/text_file.h"
#include "os/clock.h"

namespace gpu_platform::kubernetes {
namespace {

constexpr base::Duration kReadAgain = base::minutes(1);
// A plugin that fails, or whose credentials are refused, is not run again before this.
constexpr base::Duration kRunAgain = base::seconds(1);

}  // namespace

Credentials::Credentials(ClusterAccess access, ExecLimits limits)
    : access_(std::move(access)), limits_(limits) {
  const UserAccess& user = access_.user;
  current_.certificate_pem = user.certificate_pem;
  current_.key_pem = user.key_pem;
  if (!user.token_file.empty()) return;
  current_.token = user.token;
  if (!user.token.empty() || user.exec.command.empty()) generation_ = 1;
}

Credentials::State Credentials::prepare(std::int64_t now_ns) {
  if (!access_.user.token_file.empty()) return prepare_from_file(now_ns);
  if (access_.user.token.empty() && !access_.user.exec.command.empty()) {
    return prepare_from_plugin(now_ns);
  }
  return State::kReady;
}

Credentials::State Credentials::prepare_from_file(std::int64_t now_ns) {
  if (generation_ != 0 && now_ns - tried_ns_ < kReadAgain.value()) return State::kReady;
  auto text = read_text_file(access_.user.token_file);
  std::string why = text ? "" : text.error().message;
  if (text) {
    const std::size_t first = text->find_first_not_of(" \t\r\n");
    const std::size_t last = text->find_last_not_of(" \t\r\n");
    Credential read = current_;
    read.token = first == std::string::npos ? "" : text->substr(first, last - first + 1);
    if (!is_token(read.token)) {
      why = access_.user.token_file + ": holds no token";
    } else if (generation_ == 0 || read.token != current_.token) {
      take(std::move(read));
    }
  }
  tried_ns_ = now_ns;
  // A file that is being replaced may be missing for a moment: the last token stays.
  if (generation_ != 0) return State::kReady;
  return fail(std::move(why), now_ns);
}

Credentials::State Credentials::prepare_from_plugin(std::int64_t now_ns) {
  if (run_ != nullptr) {
    auto printed = run_->advance(now_ns);
    if (!printed) return State::kWaiting;
    run_.reset();
    tried_ns_ = now_ns;
    if (!*printed) return fail(printed->error().message, now_ns);
    auto credential = parse_exec_credential(**printed, access_.user.exec.api_version);
    if (!credential) {
      return fail(fmt::format("the program '{}' for the credentials: {}",
                              printable(access_.user.exec.command), credential.error().message),
                  now_ns);
    }
    take(std::move(*credential));
    return State::kReady;
  }
  const base::Instant expires_at = current_.expires_at;
  const bool is_good = generation_ != 0 && (!expires_at.is_set() || os::wall_now() < expires_at);
  if (is_good) return State::kReady;
  if (!can_run_again(now_ns)) {
    if (failure_.empty()) failure_ = "the plugin's credential has expired already";
    return State::kFailed;
  }
  auto run = ExecRun::start(access_.user.exec, exec_info(access_), limits_);
  if (!run) return fail(run.error().message, now_ns);
  run_ = std::move(*run);
  return State::kWaiting;
}

void Credentials::take(Credential credential) {
  if (credential.certificate_pem.empty()) {
    credential.certificate_pem = access_.user.certificate_pem;
    credential.key_pem = access_.user.key_pem;
  }
  current_ = std::move(credential);
  failure_.clear();
  ++generation_;
}

Credentials::State Credentials::fail(std::string why, std::int64_t now_ns) {
  failure_ = std::move(why);
  tried_ns_ = now_ns;
  return State::kFailed;
}

// The first run, and the first after a credential that the server took, are never held back.
bool Credentials::can_run_again(std::int64_t now_ns) const {
  const bool was_good = generation_ != 0 && accepted_ == generation_ && failure_.empty();
  return tried_ns_ == 0 || was_good || now_ns - tried_ns_ >= kRunAgain.value();
}

void Credentials::accept(std::uint64_t generation) {
  if (generation == generation_) accepted_ = generation;
}

bool Credentials::refuse(std::uint64_t generation, std::int64_t now_ns) {
  if (generation != generation_ || run_ != nullptr) return true;
  if (!access_.user.token_file.empty()) {
    tried_ns_ = now_ns - kReadAgain.value();
    prepare_from_file(now_ns);
    return generation_ != generation;
  }
  if (access_.user.exec.command.empty() || !access_.user.token.empty()) return false;
  if (!can_run_again(now_ns)) return false;
  current_.expires_at = base::Instant(1);
  return true;
}

std::array<int, 3> Credentials::descriptors() const {
  return run_ != nullptr ? run_->descriptors() : std::array<int, 3>{-1, -1, -1};
}

std::int64_t Credentials::due_ns() const {
  return run_ != nullptr ? run_->deadline_ns() : 0;
}

}  // namespace gpu_platform::kubernetes
