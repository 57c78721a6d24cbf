#include "kubernetes/testing/fake_api_server.h"

#include <algorithm>
#include <charconv>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/check.h"
#include "base/utc.h"
#include "kubernetes/testing/http_front.h"
#include "kubernetes/testing/json_access.h"
#include "kubernetes/testing/object_rules.h"
#include "kubernetes/testing/streams.h"
#include "os/clock.h"

namespace gpu_platform::kubernetes {

using nlohmann::json;

namespace {

std::string time_text(std::int64_t seconds_later) {
  return base::utc(base::Instant(os::wall_now().unix_ns() + seconds_later * 1'000'000'000));
}

std::int64_t asked_number(const ApiRequest& request, const std::string& key,
                          std::int64_t otherwise) {
  const std::string text = request.asked(key);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && !text.empty() ? number : otherwise;
}

bool fits_path(const std::string& pattern, const std::string& path) {
  if (pattern.ends_with('*')) return path.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern.empty() || pattern == path;
}

bool fits(const Misbehaviour& misbehaviour, const ApiRequest& request) {
  if (!misbehaviour.method.empty() && misbehaviour.method != request.method) return false;
  if (!fits_path(misbehaviour.path, request.path)) return false;
  if (misbehaviour.what == Misbehaviour::What::kExpireInWatch) return request.is_watch();
  switch (misbehaviour.which) {
    case Misbehaviour::Which::kAll:
      return true;
    case Misbehaviour::Which::kReads:
      return !request.is_write() && !request.is_watch();
    case Misbehaviour::Which::kWrites:
      return request.is_write();
    case Misbehaviour::Which::kWatches:
      return request.is_watch();
    case Misbehaviour::Which::kNextPages:
      return !request.asked("continue").empty();
  }
  return false;
}

// What a request is called in the rules of access.
std::string verb_of(const ApiRequest& request, const ApiPath& path) {
  if (request.is_watch()) return "watch";
  if (request.method == "GET") return path.name.empty() ? "list" : "get";
  if (request.method == "POST") return "create";
  if (request.method == "PUT") return "update";
  if (request.method == "PATCH") return "patch";
  return path.name.empty() ? "deletecollection" : "delete";
}

std::string forbidden_text(const ApiRequest& request, const ApiPath& path) {
  const std::string resource =
      path.resource + (path.subresource.empty() ? "" : "/" + path.subresource);
  const std::string where = path.namespace_name.empty()
                                ? "at the cluster scope"
                                : fmt::format("in the namespace \"{}\"", path.namespace_name);
  return fmt::format(
      "{}{} is forbidden: User \"gpu-platform\" cannot {} resource \"{}\" in API group \"{}\" {}",
      path.qualified_resource(), path.name.empty() ? "" : fmt::format(" \"{}\"", path.name),
      verb_of(request, path), resource, path.group, where);
}

std::string default_text(int code, const ApiRequest& request) {
  const ApiPath path = parse_api_path(request.path).value_or(ApiPath{});
  switch (code) {
    case 401:
      return "Unauthorized";
    case 403:
      return forbidden_text(request, path);
    case 409:
      return fmt::format(
          "Operation cannot be fulfilled on {} \"{}\": the object has been modified; "
          "please apply your changes to the latest version and try again",
          path.qualified_resource(), path.name);
    case 410:
      return "too old resource version";
    case 429:
      return "the server has received too many requests and has asked us to try again later";
    case 503:
      return "the server is currently unable to handle the request";
    default:
      return "an error on the server has prevented the request from succeeding";
  }
}

ApiAnswer answer_of(const Misbehaviour& misbehaviour, const ApiRequest& request) {
  ApiError error = misbehaviour.error;
  if (error.message.empty()) error.message = default_text(error.code, request);
  json status = status_object(error);
  if (misbehaviour.retry_after_s > 0) {
    status["details"]["retryAfterSeconds"] = misbehaviour.retry_after_s;
  }
  ApiAnswer answer = json_answer(error.code, status);
  if (misbehaviour.retry_after_s > 0) {
    answer.headers["Retry-After"] = std::to_string(misbehaviour.retry_after_s);
  }
  return answer;
}

ApiAnswer gone() {
  return error_answer({.code = 410, .message = "too old resource version"});
}

// An event for watches that begin later.
struct LaterEvent {
  ObjectKey collection;
  std::string type;
  json object;
};

}  // namespace

struct FakeApiServer::Impl {
  Impl()
      : calls(store, time_text),
        front(io, mutex, [this](const ApiRequest& r) { return serve(r); }) {}

  // Of the server's thread.
  HttpReply serve(const ApiRequest& request);
  // The following with the mutex held.
  HttpReply dispatch(const ApiRequest& request);
  HttpReply open_watch(const ApiRequest& request, const ApiPath& path);
  HttpReply open_log(const ApiRequest& request, const ApiPath& path);
  std::optional<Misbehaviour> take_misbehaviour(const ApiRequest& request);
  std::vector<std::shared_ptr<WatchStream>> open_watches() const;
  json shown_at(const std::string& path, const json& object) const;

  // Has the server's thread send what is new.
  void wake() {
    boost::asio::post(io, [this] { front.pump(); });
  }
  // Calls `work` on the server's thread and waits for it.
  void run_there(const std::function<void()>& work) {
    std::promise<void> done;
    boost::asio::post(io, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  mutable std::mutex mutex;  // guards all below but io and front
  ObjectStore store;
  ApiCalls calls;
  PodLogs logs;
  WatchManners manners;
  std::vector<std::weak_ptr<WatchStream>> watches;
  std::vector<RecordedRequest> requests;
  std::vector<Misbehaviour> misbehaviours;
  std::vector<LaterEvent> later_events;
  std::uint64_t oldest_version = 0;
  ExpiredAs expired_as = ExpiredAs::kAnswer;

  boost::asio::io_context io;
  HttpFront front;  // of the server's thread
  std::uint16_t port = 0;
  std::thread thread;
};

std::optional<Misbehaviour> FakeApiServer::Impl::take_misbehaviour(const ApiRequest& request) {
  for (auto it = misbehaviours.rbegin(); it != misbehaviours.rend(); ++it) {
    if (!fits(*it, request)) continue;
    Misbehaviour found = *it;
    if (it->times > 0 && --it->times == 0) misbehaviours.erase(std::next(it).base());
    return found;
  }
  return std::nullopt;
}

HttpReply FakeApiServer::Impl::serve(const ApiRequest& request) {
  const std::lock_guard lock(mutex);
  requests.push_back(
      {request.method, request.path, request.query, request.content_type, request.body});
  const std::optional<Misbehaviour> misbehaviour = take_misbehaviour(request);
  if (!misbehaviour) return dispatch(request);
  switch (misbehaviour->what) {
    case Misbehaviour::What::kAnswerError:
      return {.kind = HttpReply::Kind::kAnswer, .answer = answer_of(*misbehaviour, request)};
    case Misbehaviour::What::kExpireInWatch: {
      HttpReply reply = dispatch(request);
      if (auto* watch = dynamic_cast<WatchStream*>(reply.stream.get())) watch->expire();
      return reply;
    }
    case Misbehaviour::What::kHang:
      return {.kind = HttpReply::Kind::kHang};
    case Misbehaviour::What::kCloseBefore:
      return {.kind = HttpReply::Kind::kClose};
    case Misbehaviour::What::kCloseAfter:
      dispatch(request);
      return {.kind = HttpReply::Kind::kClose};
  }
  return {.kind = HttpReply::Kind::kClose};
}

HttpReply FakeApiServer::Impl::dispatch(const ApiRequest& request) {
  const std::optional<ApiPath> path = parse_api_path(request.path);
  if (path && calls.is_served(*path)) {
    if (request.is_watch()) return open_watch(request, *path);
    if (request.method == "GET" && path->resource == "pods" && path->subresource == "log") {
      return open_log(request, *path);
    }
  }
  HttpReply reply{.kind = HttpReply::Kind::kAnswer, .answer = calls.handle(request)};
  if (request.is_write()) wake();
  return reply;
}

HttpReply FakeApiServer::Impl::open_watch(const ApiRequest& request, const ApiPath& path) {
  auto selection = parse_selection(request.asked("labelSelector"), request.asked("fieldSelector"));
  if (!selection) {
    return {.answer = error_answer({.code = 400, .message = selection.error().message})};
  }
  WatchOptions options{.has_bookmarks = request.is_asked("allowWatchBookmarks"),
                       .marks_initial_end = request.is_asked("sendInitialEvents"),
                       .limit_s = asked_number(request, "timeoutSeconds", 0)};
  const std::int64_t version = asked_number(request, "resourceVersion", 0);
  if (version > 0 && !options.marks_initial_end) {
    options.after = static_cast<std::uint64_t>(version);
  }
  const bool is_expired = options.after && *options.after < oldest_version;
  if (is_expired && expired_as == ExpiredAs::kAnswer) return {.answer = gone()};
  auto watch =
      std::make_shared<WatchStream>(store, calls, manners, path, *std::move(selection), options);
  if (is_expired) watch->expire();
  for (const LaterEvent& event : later_events) {
    if (event.collection == collection_of(path)) watch->insert(event.type, event.object);
  }
  std::erase_if(watches, [](const auto& other) { return other.expired(); });
  watches.push_back(watch);
  return {.kind = HttpReply::Kind::kStream, .stream = std::move(watch)};
}

HttpReply FakeApiServer::Impl::open_log(const ApiRequest& request, const ApiPath& path) {
  const ObjectPtr pod = store.find(key_of(path));
  if (!pod)
    return {.answer = calls.handle(
                make_api_request("GET", request.path.substr(0, request.path.rfind('/'))))};
  const json& statuses = value_at(*pod, "/status/containerStatuses");
  const std::string waiting = text_at(*pod, "/status/containerStatuses/0/state/waiting/reason");
  if (!is_pod_over(*pod) && (statuses.empty() || !waiting.empty())) {
    const std::string container = text_at(*pod, "/spec/containers/0/name");
    return {.answer = error_answer(
                {.code = 400,
                 .message = fmt::format("container \"{}\" in pod \"{}\" is waiting to start: {}",
                                        container, path.name,
                                        waiting.empty() ? "ContainerCreating" : waiting)})};
  }
  const LogOptions options{.has_timestamps = request.is_asked("timestamps"),
                           .since_ns = parse_log_time(request.asked("sinceTime")),
                           .tail_lines = asked_number(request, "tailLines", -1),
                           .limit_bytes = asked_number(request, "limitBytes", -1)};
  return {.kind = HttpReply::Kind::kStream,
          .stream = std::make_shared<LogStream>(store, logs, key_of(path), options,
                                                request.is_asked("follow"))};
}

std::vector<std::shared_ptr<WatchStream>> FakeApiServer::Impl::open_watches() const {
  std::vector<std::shared_ptr<WatchStream>> open;
  for (const auto& watch : watches) {
    if (auto alive = watch.lock()) open.push_back(std::move(alive));
  }
  return open;
}

json FakeApiServer::Impl::shown_at(const std::string& path, const json& object) const {
  const std::optional<ApiPath> parsed = parse_api_path(path);
  return parsed ? calls.shown(*parsed, object) : object;
}

FakeApiServer::FakeApiServer() : impl_(std::make_unique<Impl>()) {
  for (const char* name : {"default", "kube-system"}) {
    call("POST", "/api/v1/namespaces", {{"metadata", {{"name", name}}}});
  }
  impl_->port = impl_->front.listen(0);
  CHECK(impl_->port != 0);
  impl_->thread = std::thread([this] {
    const auto work = boost::asio::make_work_guard(impl_->io);
    impl_->io.run();
  });
}

FakeApiServer::~FakeApiServer() {
  go_away();
  impl_->io.stop();
  impl_->thread.join();
}

std::uint16_t FakeApiServer::port() const {
  return impl_->port;
}

std::string FakeApiServer::url() const {
  return fmt::format("http://127.0.0.1:{}", impl_->port);
}

std::string FakeApiServer::kubeconfig() const {
  return fmt::format(
      "apiVersion: v1\nkind: Config\ncurrent-context: test\n"
      "clusters: [{{name: test, cluster: {{server: '{}'}}}}]\n"
      "users: [{{name: test, user: {{token: test}}}}]\n"
      "contexts: [{{name: test, context: {{cluster: test, user: test, namespace: default}}}}]\n",
      url());
}

ApiAnswer FakeApiServer::call(const std::string& method, const std::string& target,
                              const json& body, const std::string& content_type) {
  ApiRequest request = make_api_request(method, target);
  request.content_type = content_type;
  if (!body.is_null()) request.body = body.dump();
  const std::lock_guard lock(impl_->mutex);
  ApiAnswer answer = impl_->calls.handle(request);
  impl_->wake();
  return answer;
}

json FakeApiServer::object(const std::string& path) const {
  const std::optional<ApiPath> parsed = parse_api_path(path);
  const std::lock_guard lock(impl_->mutex);
  const ObjectPtr found = parsed ? impl_->store.find(key_of(*parsed)) : nullptr;
  return found ? impl_->shown_at(path, *found) : json();
}

std::vector<json> FakeApiServer::objects(const std::string& collection) const {
  std::vector<json> found;
  const std::optional<ApiPath> parsed = parse_api_path(collection);
  if (!parsed) return found;
  const std::lock_guard lock(impl_->mutex);
  for (const StoredObject& stored : impl_->store.list(collection_of(*parsed))) {
    found.push_back(impl_->shown_at(collection, *stored.object));
  }
  return found;
}

std::vector<json> FakeApiServer::history(const std::string& path) const {
  std::vector<json> states;
  const std::optional<ApiPath> parsed = parse_api_path(path);
  if (!parsed) return states;
  const std::lock_guard lock(impl_->mutex);
  for (const StoreEvent& event : impl_->store.events()) {
    if (event.key == key_of(*parsed)) states.push_back(impl_->shown_at(path, *event.after));
  }
  return states;
}

std::uint64_t FakeApiServer::version() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->store.version();
}

void FakeApiServer::change(const std::function<void(ApiCalls&, ObjectStore&)>& change) {
  const std::lock_guard lock(impl_->mutex);
  change(impl_->calls, impl_->store);
  impl_->wake();
}

void FakeApiServer::append_log(const std::string& namespace_name, const std::string& pod,
                               std::string_view text) {
  const std::lock_guard lock(impl_->mutex);
  impl_->logs.append(namespace_name + "/" + pod, text, os::wall_now().unix_ns());
  impl_->wake();
}

void FakeApiServer::clear_log(const std::string& namespace_name, const std::string& pod) {
  const std::lock_guard lock(impl_->mutex);
  impl_->logs.clear(namespace_name + "/" + pod);
}

void FakeApiServer::pass_channels_to(std::uint16_t port) {
  impl_->run_there([&] { impl_->front.pass_web_sockets_to(port); });
}

std::vector<RecordedRequest> FakeApiServer::requests() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->requests;
}

std::size_t FakeApiServer::count(const std::string& method, const std::string& path) const {
  const std::lock_guard lock(impl_->mutex);
  return static_cast<std::size_t>(
      std::ranges::count_if(impl_->requests, [&](const RecordedRequest& request) {
        return (method.empty() || request.method == method) && fits_path(path, request.path);
      }));
}

void FakeApiServer::forget_requests() {
  const std::lock_guard lock(impl_->mutex);
  impl_->requests.clear();
}

void FakeApiServer::misbehave(Misbehaviour misbehaviour) {
  const std::lock_guard lock(impl_->mutex);
  impl_->misbehaviours.push_back(std::move(misbehaviour));
}

void FakeApiServer::heal() {
  const std::lock_guard lock(impl_->mutex);
  impl_->misbehaviours.clear();
  impl_->later_events.clear();
}

void FakeApiServer::forbid(const std::string& method, const std::string& path) {
  misbehave({.method = method, .path = path, .times = 0, .error = {.code = 403}});
}

void FakeApiServer::lack(const std::string& verb, const std::string& resource) {
  const std::lock_guard lock(impl_->mutex);
  impl_->calls.lack(verb, resource);
}

void FakeApiServer::set_claim_binding_right(bool has_right) {
  const std::lock_guard lock(impl_->mutex);
  impl_->calls.set_claim_binding_right(has_right);
}

void FakeApiServer::set_served(const std::string& group_version, bool is_served) {
  const std::lock_guard lock(impl_->mutex);
  impl_->calls.set_served(group_version, is_served);
}

void FakeApiServer::set_taint_rules(const std::string& version) {
  const std::lock_guard lock(impl_->mutex);
  impl_->calls.set_taint_rules(version);
}

void FakeApiServer::compact(ExpiredAs expired_as) {
  const std::lock_guard lock(impl_->mutex);
  impl_->oldest_version = impl_->store.version();
  impl_->expired_as = expired_as;
  impl_->calls.set_oldest_version(impl_->oldest_version);
}

std::size_t FakeApiServer::watches(const std::string& collection) const {
  const std::optional<ApiPath> parsed = parse_api_path(collection);
  if (!parsed) return 0;
  const std::lock_guard lock(impl_->mutex);
  return static_cast<std::size_t>(std::ranges::count_if(
      impl_->open_watches(),
      [&](const auto& watch) { return collection_of(watch->path()) == collection_of(*parsed); }));
}

void FakeApiServer::end_watches() {
  const std::lock_guard lock(impl_->mutex);
  for (const auto& watch : impl_->open_watches()) watch->end();
  impl_->wake();
}

void FakeApiServer::expire_watches() {
  const std::lock_guard lock(impl_->mutex);
  for (const auto& watch : impl_->open_watches()) watch->expire();
  impl_->wake();
}

void FakeApiServer::send_bookmarks() {
  const std::lock_guard lock(impl_->mutex);
  for (const auto& watch : impl_->open_watches()) watch->bookmark();
  impl_->wake();
}

void FakeApiServer::send_event(const std::string& collection, const std::string& type,
                               const json& object, SendTo to) {
  const std::optional<ApiPath> parsed = parse_api_path(collection);
  if (!parsed) return;
  const std::lock_guard lock(impl_->mutex);
  const json shown = impl_->shown_at(collection, object);
  if (to == SendTo::kLaterWatches) {
    impl_->later_events.push_back({collection_of(*parsed), type, shown});
    return;
  }
  for (const auto& watch : impl_->open_watches()) {
    if (collection_of(watch->path()) == collection_of(*parsed)) watch->insert(type, shown);
  }
  impl_->wake();
}

void FakeApiServer::double_events(bool is_doubled) {
  const std::lock_guard lock(impl_->mutex);
  impl_->manners.is_doubled = is_doubled;
}

void FakeApiServer::hold_events() {
  const std::lock_guard lock(impl_->mutex);
  impl_->manners.is_held = true;
}

void FakeApiServer::release_events(EventOrder order) {
  const std::lock_guard lock(impl_->mutex);
  impl_->manners.is_held = false;
  if (order == EventOrder::kReversed) {
    for (const auto& watch : impl_->open_watches()) watch->reorder_once();
  }
  impl_->wake();
}

void FakeApiServer::drop_connections() {
  impl_->run_there([this] { impl_->front.drop_connections(); });
}

void FakeApiServer::go_away() {
  impl_->run_there([this] {
    impl_->front.stop_listening();
    impl_->front.drop_connections();
  });
}

void FakeApiServer::come_back() {
  std::uint16_t bound = 0;
  impl_->run_there([&] { bound = impl_->front.listen(impl_->port); });
  CHECK(bound == impl_->port);
}

}  // namespace gpu_platform::kubernetes
