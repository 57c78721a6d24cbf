#include "kubernetes/client.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kubernetes/credentials.h"
#include "kubernetes/endpoint.h"
#include "kubernetes/multi_driver.h"
#include "kubernetes/text_file.h"
#include "kubernetes/transfer.h"
#include "os/clock.h"

namespace gpu_platform::kubernetes {
namespace {

constexpr int kMaxRetries = 4;                             // of a request that gets 429
constexpr base::Duration kLongestRest = base::minutes(1);  // a longer Retry-After is not waited for
constexpr std::int64_t kNever = INT64_MAX;
// News are in a burst where so many of them came with no longer than this between two.
constexpr int kBurst = 8;
constexpr base::Duration kWithinBurst = base::milliseconds(10);
constexpr base::Duration kGathering = base::milliseconds(5);  // of news in a burst

struct Call {
  Request request;
  bool is_stream = false;
  std::function<void(const Answer&)> done;  // of a request
  StreamHandlers handlers;                  // of a stream

  enum class State : std::uint8_t { kWaiting, kActive, kResting, kDone };
  State state = State::kWaiting;
  std::unique_ptr<Transfer> transfer;  // while active
  std::uint64_t generation = 0;        // of the credential that it carries
  std::int64_t deadline_ns = 0;        // of a request; 0: it was not sent yet
  std::int64_t rests_until_ns = 0;
  int retries = 0;
  bool was_renewed = false;  // its credential, after a 401
  bool is_fresh = false;     // it gets a connection of its own, made for it
  bool is_open = false;      // of a stream: to be told, or told
  bool has_told_open = false;
  std::string bytes;  // of a stream, to be told
  Answer answer;      // once done
};

}  // namespace

class Client::Impl {
 public:
  Impl(ClusterAccess access, Endpoint endpoint, ClientOptions options,
       std::unique_ptr<MultiDriver> driver)
      : endpoint_(std::move(endpoint)),
        options_(std::move(options)),
        credentials_(std::move(access), ExecLimits{.time = options_.plugin_time}),
        driver_(std::move(driver)) {}

  ~Impl() {
    for (auto& [id, call] : calls_) drop_transfer(*call);
  }

  std::uint64_t add(std::unique_ptr<Call> call) {
    const std::uint64_t id = ++last_id_;
    if (!call->is_stream) ++pending_;
    let_wait(id, *call);
    calls_.emplace(id, std::move(call));
    return id;
  }

  void remove(std::uint64_t id, bool is_stream) {
    const auto found = calls_.find(id);
    if (found == calls_.end() || found->second->is_stream != is_stream) return;
    // Its own handler may be what is running.
    ended_.push_back(take_out(found));
  }

  void ask_credential(std::function<void(base::Result<Credential>)> done) {
    askers_.push_back(std::move(done));
  }

  void poll(base::Duration timeout) {
    const std::int64_t until = os::monotonic_ns() + timeout.value();
    bool is_late = false;
    while (true) {
      const bool has_told = step();
      if (has_told || woken_.exchange(false) || is_late) return;
      // Without any time, too, what has come already is carried on.
      is_late = os::monotonic_ns() >= until;
      gather(until);
      driver_->wait(std::min(until, due_ns()), credentials_.descriptors());
    }
  }

  void wake() {
    woken_ = true;
    driver_->wake();
  }

  std::size_t pending() const { return pending_; }

 private:
  using Calls = std::map<std::uint64_t, std::unique_ptr<Call>>;

  using Place = std::pair<Turn, std::uint64_t>;

  static Place place_of(std::uint64_t id, const Call& call) { return {call.request.turn, id}; }

  void let_wait(std::uint64_t id, Call& call) {
    call.state = Call::State::kWaiting;
    (call.is_stream ? waiting_streams_ : waiting_).insert(place_of(id, call));
  }

  // All that can be done now. Returns whether a callback ran.
  bool step() {
    ended_.clear();
    start_calls(os::monotonic_ns());
    driver_->drive();
    collect_bytes();
    finish_transfers();
    const std::int64_t now = os::monotonic_ns();
    expire(now);
    const bool has_told = tell();
    if (has_told) note_news(now);
    return has_told;
  }

  void note_news(std::int64_t now) {
    burst_ = now - told_ns_ < kWithinBurst.value() ? std::min(burst_ + 1, kBurst) : 0;
    told_ns_ = now;
  }

  // In a burst, lets some news come together: a thread that wakes up for each of them spends more
  // on waking up than on most of them.
  void gather(std::int64_t until) const {
    if (burst_ < kBurst) return;
    os::rest_until(std::min(until, told_ns_ + kGathering.value()));
  }

  void start_calls(std::int64_t now) {
    std::erase_if(resting_, [&](std::uint64_t id) {
      Call& call = *calls_.at(id);
      if (call.rests_until_ns > now) return false;
      let_wait(id, call);
      if (!call.is_stream) --in_flight_;
      return true;
    });
    const bool has_waiting = !waiting_.empty() || !waiting_streams_.empty() || !askers_.empty();
    if (!has_waiting && credentials_.due_ns() == 0) return;
    const Credentials::State state = credentials_.prepare(now);
    if (state == Credentials::State::kWaiting) return;
    if (state == Credentials::State::kFailed) return fail_waiting();
    answer_askers(credentials_.current());
    for (const auto& [turn, id] : std::exchange(waiting_streams_, {})) begin(id, now);
    while (!waiting_.empty() && in_flight_ < options_.max_in_flight) {
      begin(waiting_.begin()->second, now);
    }
  }

  void answer_askers(const base::Result<Credential>& answer) {
    for (auto& done : std::exchange(askers_, {})) {
      answered_.push_back([done = std::move(done), answer] { done(answer); });
    }
  }

  void fail_waiting() {
    const std::string why = printable(credentials_.failure(), 1000);
    answer_askers(base::fail(base::ErrorCode::kUnavailable, why));
    for (auto* places : {&waiting_streams_, &waiting_}) {
      for (const auto& [turn, id] : std::exchange(*places, {})) {
        finish(id, *calls_.at(id), {.failure = why});
      }
    }
  }

  void begin(std::uint64_t id, std::int64_t now) {
    Call& call = *calls_.at(id);
    waiting_.erase(place_of(id, call));
    if (call.deadline_ns == 0) call.deadline_ns = now + call.request.timeout.value();
    call.generation = credentials_.generation();
    call.transfer = Transfer::make(call.request, endpoint_, credentials_.current(),
                                   {.sockets = &sockets_,
                                    .is_stream = call.is_stream,
                                    .is_fresh = call.is_fresh,
                                    .max_body = options_.max_body,
                                    .user_agent = options_.user_agent});
    if (call.transfer == nullptr) return finish(id, call, {.failure = "there is no memory for it"});
    active_.emplace(call.transfer->handle(), std::pair(id, &call));
    call.state = Call::State::kActive;
    if (!call.is_stream) ++in_flight_;
    driver_->add(call.transfer->handle());
  }

  // The call of any kind is not under way any more.
  void drop_transfer(Call& call) {
    if (call.transfer == nullptr) return;
    heard_ns_ = std::max(heard_ns_, call.transfer->last_byte_ns());
    driver_->remove(call.transfer->handle());
    active_.erase(call.transfer->handle());
    call.transfer.reset();
    if (!call.is_stream) --in_flight_;
  }

  std::unique_ptr<Call> take_out(Calls::iterator found) {
    std::unique_ptr<Call> call = std::move(found->second);
    drop_transfer(*call);
    if (call->state == Call::State::kResting && !call->is_stream) --in_flight_;
    if (!call->is_stream) --pending_;
    waiting_.erase(place_of(found->first, *call));
    waiting_streams_.erase(place_of(found->first, *call));
    resting_.erase(found->first);
    ready_.erase(found->first);
    calls_.erase(found);
    return call;
  }

  void collect_bytes() {
    for (const auto& [handle, active] : active_) {
      const auto [id, place] = active;
      Call& call = *place;
      if (!call.is_stream) continue;
      const bool is_newly_open = call.transfer->is_open() && !call.is_open;
      if (!is_newly_open && !call.transfer->has_bytes()) continue;
      call.is_open = call.transfer->is_open();
      call.bytes += call.transfer->take_bytes();
      ready_.insert(id);
    }
  }

  void finish_transfers() {
    while (const CURLMsg* message = driver_->next_done()) {
      const auto [id, call] = active_.at(message->easy_handle);
      judge(id, *call, message->data.result);
    }
  }

  // libcurl is done with it: it is told, or tried again.
  void judge(std::uint64_t id, Call& call, CURLcode code) {
    const std::int64_t now = os::monotonic_ns();
    const int status = code == CURLE_OK ? call.transfer->status() : 0;
    const base::Duration rest = call.transfer->retry_after();
    if (status == 401 && !call.was_renewed && credentials_.refuse(call.generation, now)) {
      call.was_renewed = true;
      drop_transfer(call);
      let_wait(id, call);
      return;
    }
    // libcurl has tried kept connections, one after the other, that the server had closed. It gives
    // up after a few, and there may be as many as requests were under way at once.
    if (code == CURLE_SEND_ERROR && !call.is_fresh) {
      call.is_fresh = true;
      drop_transfer(call);
      let_wait(id, call);
      return;
    }
    const bool may_rest = call.retries < kMaxRetries && rest <= kLongestRest &&
                          rest > base::Duration() &&
                          (call.is_stream || now + rest.value() < call.deadline_ns);
    if (status == 429 && may_rest) {
      ++call.retries;
      drop_transfer(call);
      call.state = Call::State::kResting;
      call.rests_until_ns = now + rest.value();
      // It keeps its place among those in flight: the server wants fewer of them.
      if (!call.is_stream) ++in_flight_;
      resting_.insert(id);
      return;
    }
    if (status != 0 && status != 401) credentials_.accept(call.generation);
    finish(id, call, call.transfer->answer(code));
  }

  void finish(std::uint64_t id, Call& call, Answer answer) {
    drop_transfer(call);
    call.state = Call::State::kDone;
    call.answer = std::move(answer);
    ready_.insert(id);
  }

  // When something came of the call last, or it was sent.
  static std::int64_t alive_ns(const Call& call) {
    return std::max(call.transfer->begun_ns(), call.transfer->last_byte_ns());
  }

  // When the call has waited for too long: a request as a whole, a stream in silence.
  static std::int64_t deadline_of(const Call& call) {
    return call.is_stream ? alive_ns(call) + call.request.timeout.value() : call.deadline_ns;
  }

  void expire(std::int64_t now) {
    std::vector<std::uint64_t> late;
    for (const auto& [handle, active] : active_) {
      const auto [id, call] = active;
      heard_ns_ = std::max(heard_ns_, call->transfer->last_byte_ns());
      if (now >= deadline_of(*call)) late.push_back(id);
    }
    for (const std::uint64_t id : late) {
      Call& call = *calls_.at(id);
      // Nothing came on any connection since: they may be dead without the kernel's knowing.
      const std::int64_t silence_ns = now - alive_ns(call);
      if (heard_ns_ <= alive_ns(call) && silence_ns >= options_.dead_after.value()) {
        sockets_.break_all();
      }
      const auto seconds =
          static_cast<double>(base::whole_milliseconds(call.request.timeout)) / 1e3;
      const auto what = call.is_stream ? "nothing came for" : "the server did not answer within";
      finish(id, call, {.failure = fmt::format("{} {} s", what, seconds)});
    }
  }

  // Runs the callbacks of what is ready. They may add and remove calls.
  bool tell() {
    bool has_told = !answered_.empty();
    for (const auto& answer : std::exchange(answered_, {})) answer();
    for (const std::uint64_t id : std::exchange(ready_, {})) {
      const auto found = calls_.find(id);
      if (found == calls_.end()) continue;
      has_told = true;
      tell_bytes(*found->second);
      const auto still = calls_.find(id);
      if (still == calls_.end() || still->second->state != Call::State::kDone) continue;
      const std::unique_ptr<Call> over = take_out(still);
      const auto& callback = over->is_stream ? over->handlers.on_end : over->done;
      if (callback) callback(over->answer);
    }
    return has_told;
  }

  // The call stays in memory, in `ended_`, where a handler removes it.
  void tell_bytes(Call& call) {
    const std::uint64_t removed = ended_.size();
    if (call.is_open && !std::exchange(call.has_told_open, true) && call.handlers.on_open) {
      call.handlers.on_open();
    }
    if (call.bytes.empty()) return;
    const std::string bytes = std::exchange(call.bytes, {});
    const bool is_removed =
        std::any_of(ended_.begin() + static_cast<std::ptrdiff_t>(removed), ended_.end(),
                    [&](const std::unique_ptr<Call>& one) { return one.get() == &call; });
    if (!is_removed && call.handlers.on_bytes) call.handlers.on_bytes(bytes);
  }

  // When something is due although nothing comes.
  std::int64_t due_ns() const {
    std::int64_t due = credentials_.due_ns() == 0 ? kNever : credentials_.due_ns();
    for (const std::uint64_t id : resting_) due = std::min(due, calls_.at(id)->rests_until_ns);
    for (const auto& [handle, active] : active_) due = std::min(due, deadline_of(*active.second));
    // What callbacks of this round have asked for, unless it waits for a credential or its turn.
    const bool can_begin = !waiting_streams_.empty() || !askers_.empty() ||
                           (!waiting_.empty() && in_flight_ < options_.max_in_flight);
    return can_begin && credentials_.due_ns() == 0 ? 0 : due;
  }

  Endpoint endpoint_;
  ClientOptions options_;
  Credentials credentials_;
  Sockets sockets_;  // libcurl closes the last ones with the driver
  std::unique_ptr<MultiDriver> driver_;
  Calls calls_;
  std::uint64_t last_id_ = 0;
  std::set<Place> waiting_;
  std::set<Place> waiting_streams_;
  std::set<std::uint64_t> resting_;
  std::set<std::uint64_t> ready_;  // to be told
  std::vector<std::function<void(base::Result<Credential>)>> askers_;
  std::vector<std::function<void()>> answered_;  // to be told
  std::map<CURL*, std::pair<std::uint64_t, Call*>> active_;
  std::vector<std::unique_ptr<Call>> ended_;  // until no handler of theirs can be running
  std::size_t in_flight_ = 0;                 // requests, with those that rest
  std::size_t pending_ = 0;
  std::int64_t heard_ns_ = 0;  // when something came from the server last
  std::int64_t told_ns_ = 0;   // when callbacks ran last
  int burst_ = 0;              // how often they did so in close succession
  std::atomic<bool> woken_ = false;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

base::Result<std::unique_ptr<Client>> Client::make(ClusterAccess access, ClientOptions options) {
  TRY_ASSIGN(Endpoint endpoint, endpoint_of(access));
  std::unique_ptr<MultiDriver> driver = MultiDriver::make();
  if (driver == nullptr) {
    return base::fail(base::ErrorCode::kInternal,
                      "libcurl cannot be used: it has no memory or no descriptor");
  }
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(
      std::move(access), std::move(endpoint), std::move(options), std::move(driver))));
}

RequestId Client::send(Request request, std::function<void(const Answer&)> done) {
  auto call = std::make_unique<Call>();
  call->request = std::move(request);
  call->done = std::move(done);
  return impl_->add(std::move(call));
}

StreamId Client::open_stream(Request request, StreamHandlers handlers) {
  auto call = std::make_unique<Call>();
  call->request = std::move(request);
  call->is_stream = true;
  call->handlers = std::move(handlers);
  return impl_->add(std::move(call));
}

void Client::close_stream(StreamId stream) {
  impl_->remove(stream, true);
}

void Client::cancel(RequestId request) {
  impl_->remove(request, false);
}

void Client::ask_credential(std::function<void(base::Result<Credential>)> done) {
  impl_->ask_credential(std::move(done));
}

void Client::poll(base::Duration timeout) {
  impl_->poll(timeout);
}

void Client::wake() {
  impl_->wake();
}

std::size_t Client::pending() const {
  return impl_->pending();
}

}  // namespace gpu_platform::kubernetes
