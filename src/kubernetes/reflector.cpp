#include "kubernetes/reflector.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kubernetes/back_off.h"
#include "kubernetes/json_reader.h"
#include "kubernetes/json_values.h"
#include "kubernetes/line_splitter.h"
#include "kubernetes/resource_path.h"
#include "kubernetes/text_file.h"

namespace gpu_platform::kubernetes {
namespace {

using nlohmann::json;

constexpr base::Duration kListTime = base::minutes(1);  // of one page

bool is_gone(const Answer& answer) {
  return answer.status == 410;
}

// An ERROR event in a watch, whose HTTP status was a success.
bool is_gone(const json& status) {
  const std::string_view reason = text_of(status, "reason");
  return number_of(status, "code") == 410 || reason == "Expired" || reason == "Gone";
}

// A refusal that says nothing about the version: the watch may go on from there.
bool is_passing(int status) {
  return status == 429 || status == 500 || status == 502 || status == 503;
}

std::string_view version_of(const json& object) {
  const json* metadata = member(object, "metadata");
  return metadata == nullptr ? std::string_view() : text_of(*metadata, "resourceVersion");
}

struct ObjectName {
  std::string_view namespace_name;
  std::string_view name;
};

// The object that a line of a watch says has changed, from the order in which an API server writes;
// nothing where it is written in another way.
std::optional<ObjectName> changed_object(std::string_view line) {
  constexpr std::string_view kBegin = R"({"type":"MODIFIED","object":{)";
  constexpr std::string_view kName = R"("metadata":{"name":")";
  constexpr std::string_view kNamespace = R"(","namespace":")";
  constexpr std::size_t kFarthest = 512;  // kind, version, and names of 253 bytes at most
  if (!line.starts_with(kBegin)) return std::nullopt;
  const std::string_view head = line.substr(0, kFarthest);
  const std::size_t metadata = head.find(kName);
  if (metadata == std::string_view::npos) return std::nullopt;
  const std::size_t begin = metadata + kName.size();
  const std::size_t end = head.find('"', begin);
  if (!head.substr(std::min(end, head.size())).starts_with(kNamespace)) return std::nullopt;
  const std::size_t second = end + kNamespace.size();
  const std::size_t second_end = head.find('"', second);
  if (second_end == std::string_view::npos) return std::nullopt;
  return ObjectName{head.substr(second, second_end - second), head.substr(begin, end - begin)};
}

// Of a page of a list.
JsonFields fields_of_page(const JsonFields& fields) {
  JsonFields page = JsonFields::within("items", fields);
  page.add("metadata.continue");
  page.add("metadata.resourceVersion");
  return page;
}

// Of a line of a watch: the object may be a bookmark, or the status that says what is wrong.
JsonFields fields_of_event(JsonFields fields) {
  if (!fields.are_all()) {
    for (const char* path : {"metadata.resourceVersion", "reason", "code", "message"}) {
      fields.add(path);
    }
  }
  JsonFields event = JsonFields::within("object", std::move(fields));
  event.add("type");
  return event;
}

}  // namespace

class Reflector::Impl {
 public:
  Impl(Client& client, Followed what, FollowHandlers handlers, ReflectorOptions options)
      : client_(client),
        what_(std::move(what)),
        handlers_(std::move(handlers)),
        options_(options),
        page_fields_(fields_of_page(what_.fields)),
        event_fields_(fields_of_event(what_.fields)),
        back_off_(options.first_pause, options.longest_pause, options.seed),
        lines_(options.max_line) {}

  ~Impl() {
    client_.cancel(request_);
    client_.close_stream(stream_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void advance(std::int64_t now_ns) {
    now_ns_ = now_ns;
    if (step_ == Step::kNone) return;
    // A callback has no time, so the pause that it asked for begins here.
    if (pause_ > base::Duration()) due_ns_ = now_ns + std::exchange(pause_, {}).value();
    if (now_ns < due_ns_) return;
    due_ns_ = 0;
    std::exchange(step_, Step::kNone) == Step::kList ? list() : watch();
  }

  std::int64_t due_ns() const {
    return step_ == Step::kNone ? 0 : std::max<std::int64_t>(due_ns_, 1);
  }

  bool is_listed() const { return is_listed_; }

 private:
  enum class Step : std::uint8_t { kNone, kList, kWatch };

  void later(Step step, base::Duration pause) {
    step_ = step;
    pause_ = pause;
    due_ns_ = 0;
  }

  std::string path_with(const std::string& query) const {
    const bool has_both = !what_.query.empty() && !query.empty();
    const bool has_none = what_.query.empty() && query.empty();
    return what_.path + (has_none ? "" : "?") + what_.query + (has_both ? "&" : "") + query;
  }

  // ---- The list ----

  void list() {
    continue_.clear();
    if (handlers_.on_list_asked) handlers_.on_list_asked();
    next_page();
  }

  void next_page() {
    std::string query = is_whole_list_ ? "" : fmt::format("limit={}", options_.page);
    if (!continue_.empty()) query += "&continue=" + query_value(continue_);
    request_ = client_.send({.path = path_with(query), .timeout = kListTime},
                            [this](const Answer& answer) { on_page(answer); });
  }

  void on_page(const Answer& answer) {
    request_ = 0;
    if (is_gone(answer)) {
      // A page took so long that the server forgot the list: it is asked for in one piece.
      is_whole_list_ = !continue_.empty();
      return later(Step::kList, back_off_.next());
    }
    if (!answer.is_ok()) return refuse("list", answer, Step::kList);
    const json page = read_json(answer.body, page_fields_);
    const json* items = member(page, "items");
    const json* metadata = member(page, "metadata");
    const bool has_items = items != nullptr && (items->is_array() || items->is_null());
    if (!has_items || metadata == nullptr || version_of(page).empty()) {
      return break_off("list", "the server's answer is not a list of objects");
    }
    std::string next(text_of(*metadata, "continue"));
    if (!next.empty() && next == continue_) {
      return break_off("list", "the server gives the same page again and again");
    }
    if (continue_.empty() && handlers_.on_list_begin) handlers_.on_list_begin();
    for (const json& object : *items) {
      if (handlers_.on_object) handlers_.on_object(object);
    }
    continue_ = std::move(next);
    if (!continue_.empty()) return next_page();
    version_ = version_of(page);
    is_whole_list_ = false;
    is_listed_ = true;
    // A watch that fails each time stays in trouble although its lists are good.
    if (!is_watch_trouble_) recover();
    if (handlers_.on_listed) handlers_.on_listed();
    watch();
  }

  // ---- The watch ----

  void watch() {
    const base::Duration time =
        options_.watch_time + back_off_.below(base::Duration(options_.watch_time.value() / 10));
    const std::int64_t seconds = std::max<std::int64_t>(base::whole_milliseconds(time) / 1000, 1);
    lines_.clear();
    events_ = 0;
    opened_ns_ = now_ns_;
    const std::string query =
        fmt::format("watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                    query_value(version_), seconds);
    stream_ = client_.open_stream({.path = path_with(query), .timeout = options_.silence},
                                  {.on_open = [this] { recover(); },
                                   .on_bytes = [this](std::string_view bytes) { on_bytes(bytes); },
                                   .on_end = [this](const Answer& answer) { on_end(answer); }});
  }

  void on_bytes(std::string_view bytes) {
    const bool fits = lines_.feed(bytes, [this](std::string_view line) {
      on_line(line);
      return stream_ != 0;
    });
    if (!fits) break_off("watch", fmt::format("a line is longer than {} bytes", options_.max_line));
  }

  bool is_skipped(std::string_view line) const {
    if (!handlers_.skips_changes) return false;
    const std::optional<ObjectName> object = changed_object(line);
    return object && handlers_.skips_changes(object->namespace_name, object->name);
  }

  // The version of a skipped line is not noted: a watch that is resumed tells it again.
  void on_line(std::string_view line) {
    if (line.empty()) return;
    if (is_skipped(line)) return note_event();
    const json event = read_json(line, event_fields_);
    const json* object = member(event, "object");
    if (object == nullptr || !object->is_object()) {
      return break_off("watch", "a line is not an event: " + printable(line, 80));
    }
    const std::string_view type = text_of(event, "type");
    if (type == "ERROR") return on_error(*object);
    const bool is_change = type == "ADDED" || type == "MODIFIED";
    if (!is_change && type != "DELETED" && type != "BOOKMARK") {
      return break_off("watch", fmt::format("an event has an unknown type '{}'", printable(type)));
    }
    note_event();
    if (const std::string_view version = version_of(*object); !version.empty()) version_ = version;
    if (is_change && handlers_.on_object) handlers_.on_object(*object);
    if (type == "DELETED" && handlers_.on_deleted) handlers_.on_deleted(*object);
  }

  void note_event() {
    ++events_;
    back_off_.reset();
  }

  void on_error(const json& status) {
    if (!is_gone(status)) {
      const std::string said = printable(text_of(status, "message"), 1000);
      return break_off("watch", said.empty() ? "the server reports an error" : said);
    }
    close_stream();
    later(Step::kList, back_off_.next());
  }

  void on_end(const Answer& answer) {
    stream_ = 0;
    if (is_gone(answer)) return later(Step::kList, back_off_.next());
    if (answer.status != 0 && !answer.is_ok()) {
      return refuse("watch", answer, is_passing(answer.status) ? Step::kWatch : Step::kList);
    }
    // The server ends watches of its own accord, also in the middle of what it has to say.
    if (events_ > 0) return later(Step::kWatch, back_off_.below(options_.first_pause));
    if (answer.status == 0) return refuse("watch", answer, Step::kWatch);
    // One that stays silent for all its time may follow a version that the server does not have any
    // more, or not yet (after its store was put back): then nothing would ever come.
    const bool was_long = now_ns_ - opened_ns_ >= options_.watch_time.value() / 2;
    later(was_long ? Step::kList : Step::kWatch, back_off_.next());
  }

  void close_stream() { client_.close_stream(std::exchange(stream_, 0)); }

  // ---- Trouble ----

  // What came cannot be trusted: all of it is asked for again.
  void break_off(std::string_view verb, std::string_view why) {
    close_stream();
    is_watch_trouble_ = verb == "watch";
    tell_trouble(fmt::format("{} {}: {}", verb, what_.path, why));
    later(Step::kList, back_off_.next());
  }

  void refuse(std::string_view verb, const Answer& answer, Step next) {
    std::string why = fmt::format("{} {}: {}", verb, what_.path, error_message_of(answer));
    if (answer.status == 401) why += "; the server does not take the credentials (401)";
    if (answer.status == 403) {
      why += fmt::format("; the account needs the verbs list and watch on {} (403)",
                         resource_of(what_.path));
    }
    if (answer.status == 404) why += "; the server does not serve it (404)";
    is_watch_trouble_ = verb == "watch";
    tell_trouble(why);
    later(next, back_off_.next());
  }

  void tell_trouble(const std::string& why) {
    if (std::exchange(trouble_, why) != why && handlers_.on_trouble) handlers_.on_trouble(why);
  }

  void recover() {
    is_watch_trouble_ = false;
    if (trouble_.empty()) return;
    trouble_.clear();
    if (handlers_.on_trouble) handlers_.on_trouble("");
  }

  Client& client_;
  Followed what_;
  FollowHandlers handlers_;
  ReflectorOptions options_;
  const JsonFields page_fields_;
  const JsonFields event_fields_;
  BackOff back_off_;  // reset by events alone: a watch that always ends at once must not spin
  LineSplitter lines_;
  Step step_ = Step::kList;
  base::Duration pause_;
  std::int64_t due_ns_ = 0;
  std::int64_t now_ns_ = 0;
  RequestId request_ = 0;
  StreamId stream_ = 0;
  std::string version_;
  std::string continue_;  // of the list's next page
  bool is_whole_list_ = false;
  bool is_listed_ = false;
  std::uint64_t events_ = 0;  // of this watch
  std::int64_t opened_ns_ = 0;
  std::string trouble_;  // as it was told; empty: none
  bool is_watch_trouble_ = false;
};

Reflector::Reflector(Client& client, Followed what, FollowHandlers handlers,
                     ReflectorOptions options)
    : impl_(std::make_unique<Impl>(client, std::move(what), std::move(handlers), options)) {}
Reflector::~Reflector() = default;

void Reflector::advance(std::int64_t now_ns) {
  impl_->advance(now_ns);
}

std::int64_t Reflector::due_ns() const {
  return impl_->due_ns();
}

bool Reflector::is_listed() const {
  return impl_->is_listed();
}

}  // namespace gpu_platform::kubernetes
