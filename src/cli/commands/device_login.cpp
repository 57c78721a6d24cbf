#include "cli/commands/device_login.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cli/text/json_view.h"
#include "cli/text/text.h"
#include "http/http.h"

namespace gpu_platform::cli {

namespace {

using base::ErrorCode;

constexpr base::Duration kIssuerTime = base::seconds(30);
constexpr std::int64_t kUsualPoll = 5;  // seconds; RFC 8628, section 3.2
constexpr std::int64_t kSlowerBy = 5;   // section 3.5
constexpr std::int64_t kMaxPoll = 300;
constexpr std::int64_t kUsualLife = 600;
constexpr std::int64_t kMaxLife = 3600;

// An address of the issuer: the server and the path there.
struct Endpoint {
  http::Server server;
  std::string path;
};

std::unexpected<base::Error> odd_issuer(std::string why) {
  return base::fail(ErrorCode::kUnavailable, "the issuer: " + std::move(why));
}

// The usual port of https is another one than that of daemons.
base::Result<Endpoint> parse_endpoint(const std::string& url, const std::string& authorities) {
  constexpr std::string_view kScheme = "https://";
  if (!url.starts_with(kScheme))
    return base::invalid("--issuer", "write https://HOST[:PORT][/PATH]");
  const std::size_t slash = url.find('/', kScheme.size());
  std::string origin = url.substr(0, slash);
  const std::size_t bracket = origin.find(']');
  const bool has_port = origin.find(':', bracket == std::string::npos ? kScheme.size() : bracket) !=
                        std::string::npos;
  if (!has_port) origin += ":443";
  auto server = http::parse_server(origin);
  if (!server) return base::invalid("--issuer", server.error().message);
  server->tls.authorities = authorities;
  std::string path = slash == std::string::npos ? std::string() : url.substr(slash);
  const bool is_plain = std::ranges::all_of(path, [](char c) { return c > ' ' && c < 0x7f; });
  if (!is_plain || path.find('#') != std::string::npos) {
    return base::invalid("--issuer", "its path has characters that no address has");
  }
  return Endpoint{*std::move(server), std::move(path)};
}

class DeviceLogin {
 public:
  DeviceLogin(const DeviceGrant& grant, Console& console)
      : grant_(grant),
        console_(console),
        around_(console.process_environment()),
        interrupt_fd_(around_.watch_interrupts ? around_.watch_interrupts() : -1) {}

  base::Result<std::optional<std::string>> run() {
    TRY_ASSIGN(const bool is_found, discover());
    if (!is_found) return std::nullopt;
    std::string form;
    http::append_query(form, "client_id", grant_.client_id);
    http::append_query(form, "scope", grant_.scope);
    TRY_ASSIGN(const auto begun, post(device_, form));
    if (!begun) return std::nullopt;
    if (begun->status != 200) return refused(begun->body);
    TRY(tell(begun->body));
    return poll(begun->body);
  }

 private:
  struct Answer {
    int status = 0;
    Json body;  // an object
  };

  // Nothing: interrupted.
  base::Result<std::optional<Answer>> ask(const Endpoint& endpoint,
                                          const http::HttpRequest& request) {
    const http::Waiting waiting{kIssuerTime, interrupt_fd_};
    auto exchange = http::Exchange::begin(endpoint.server, request, waiting);
    if (!exchange) return failed(exchange.error());
    const auto head = exchange->head(waiting);
    if (!head) return failed(head.error());
    const auto body = exchange->rest(waiting);
    if (!body) return failed(body.error());
    auto object = parse_object(*body);
    if (!object) {
      return odd_issuer(fmt::format("{} answers {} with something else than JSON",
                                    endpoint.server.text(), head->status));
    }
    return Answer{head->status, *std::move(object)};
  }
  base::Result<std::optional<Answer>> post(const Endpoint& endpoint, const std::string& form) {
    return ask(endpoint, {.method = "POST",
                          .target = endpoint.path,
                          .body = form,
                          .content_type = "application/x-www-form-urlencoded"});
  }
  static base::Result<std::optional<Answer>> failed(const http::TransportError& error) {
    if (error.kind == http::TransportError::Kind::kInterrupted) return std::nullopt;
    return odd_issuer(error.message);
  }

  // False: interrupted.
  base::Result<bool> discover() {
    TRY_ASSIGN(Endpoint issuer, parse_endpoint(grant_.issuer, grant_.authorities));
    while (issuer.path.ends_with('/')) issuer.path.pop_back();
    TRY_ASSIGN(const auto found,
               ask(issuer, {.target = issuer.path + "/.well-known/openid-configuration"}));
    if (!found) return false;
    // An issuer that calls itself otherwise signs tokens that the daemon refuses.
    if (found->status != 200 || text_at(found->body, "issuer") != grant_.issuer) {
      return base::invalid(
          "--issuer",
          fmt::format("{} does not describe itself as this issuer (it answered {}, "
                      "and its name is '{}')",
                      grant_.issuer, found->status, harmless(text_at(found->body, "issuer"))));
    }
    TRY_ASSIGN(device_, endpoint_at(found->body, "device_authorization_endpoint"));
    TRY_ASSIGN(token_, endpoint_at(found->body, "token_endpoint"));
    return true;
  }

  base::Result<Endpoint> endpoint_at(const Json& document, const char* name) {
    auto endpoint = parse_endpoint(text_at(document, name), grant_.authorities);
    if (endpoint) return endpoint;
    return odd_issuer(
        fmt::format("it has no {}: this way of signing in may be turned off there", name));
  }

  base::Status tell(const Json& begun) {
    const std::string code = harmless(text_at(begun, "user_code"));
    std::string address = harmless(text_at(begun, "verification_uri"));
    if (text_at(begun, "device_code").empty() || code.empty() || !address.starts_with("https://")) {
      return odd_issuer("its answer has no code, or no address to enter it at");
    }
    console_.err(fmt::format("To sign in, open {} and enter the code {}\n", address, code));
    const std::string whole = harmless(text_at(begun, "verification_uri_complete"));
    if (whole.starts_with("https://")) console_.err(fmt::format("or open {}\n", whole));
    return {};
  }

  // Asks again and again, as slowly as the issuer wants.
  base::Result<std::optional<std::string>> poll(const Json& begun) {
    std::int64_t interval =
        std::clamp<std::int64_t>(integer_at(begun, "interval").value_or(kUsualPoll), 0, kMaxPoll);
    const std::int64_t life =
        std::clamp<std::int64_t>(integer_at(begun, "expires_in").value_or(kUsualLife), 1, kMaxLife);
    const base::Instant end = around_.steady() + base::seconds(life);
    std::string form;
    http::append_query(form, "grant_type", "urn:ietf:params:oauth:grant-type:device_code");
    http::append_query(form, "device_code", text_at(begun, "device_code"));
    http::append_query(form, "client_id", grant_.client_id);
    while (around_.steady() < end) {
      if (!wait(base::seconds(interval))) return std::nullopt;
      TRY_ASSIGN(const auto answer, post(token_, form));
      if (!answer) return std::nullopt;
      if (answer->status == 200) return token_in(answer->body);
      const std::string error = text_at(answer->body, "error");
      if (error == "slow_down") interval = std::min(interval + kSlowerBy, kMaxPoll);
      if (error != "slow_down" && error != "authorization_pending") return refused(answer->body);
    }
    return base::fail(ErrorCode::kPermissionDenied,
                      "the code was not entered in time; log in again for another one");
  }

  // False: interrupted.
  bool wait(base::Duration duration) {
    const base::Instant until = around_.steady() + duration;
    for (base::Instant now = around_.steady(); now < until; now = around_.steady()) {
      around_.pause(until - now, interrupt_fd_);
      if (is_interrupted()) return false;
    }
    return !is_interrupted();
  }
  bool is_interrupted() const;

  static base::Result<std::optional<std::string>> token_in(const Json& answer) {
    std::string token = text_at(answer, "id_token");
    if (token.empty()) token = text_at(answer, "access_token");
    if (!http::is_valid_token(token)) return odd_issuer("its answer has no token");
    return token;
  }

  static base::Result<std::optional<std::string>> refused(const Json& answer) {
    const std::string error = text_at(answer, "error");
    const std::string words = text_at(answer, "error_description");
    if (error == "expired_token") {
      return base::fail(ErrorCode::kPermissionDenied,
                        "the code was not entered in time; log in again for another one");
    }
    if (error == "access_denied") {
      return base::fail(ErrorCode::kPermissionDenied, "the sign-in was refused at the issuer");
    }
    return base::fail(ErrorCode::kPermissionDenied,
                      fmt::format("the issuer refuses: {}{}{}",
                                  error.empty() ? "it gives no reason" : harmless(error),
                                  words.empty() ? "" : ": ", harmless(words)));
  }

  const DeviceGrant& grant_;
  Console& console_;
  const ProcessEnvironment& around_;
  const int interrupt_fd_;
  Endpoint device_;
  Endpoint token_;
};

bool DeviceLogin::is_interrupted() const {
  if (interrupt_fd_ < 0) return false;
  pollfd readable{interrupt_fd_, POLLIN, 0};
  return ::poll(&readable, 1, 0) > 0;
}

}  // namespace

base::Result<std::optional<std::string>> device_token(const DeviceGrant& grant, Console& console) {
  return DeviceLogin(grant, console).run();
}

}  // namespace gpu_platform::cli
