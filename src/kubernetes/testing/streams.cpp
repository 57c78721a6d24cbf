#include "kubernetes/testing/streams.h"

#include <algorithm>
#include <map>

#include "kubernetes/testing/object_rules.h"

namespace gpu_platform::kubernetes {

using nlohmann::json;

std::string watch_line(const std::string& type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump(-1, ' ', false,
                                                       json::error_handler_t::replace) +
         "\n";
}

WatchStream::WatchStream(const ObjectStore& store, const ApiCalls& calls,
                         const WatchManners& manners, ApiPath path, Selection selection,
                         WatchOptions options)
    : store_(store),
      calls_(calls),
      manners_(manners),
      path_(std::move(path)),
      collection_(collection_of(path_)),
      selection_(std::move(selection)),
      options_(options) {
  collection_.name.clear();
  last_ = options_.after.value_or(store_.version());
  const auto& events = store_.events();
  while (next_ < events.size() && events[next_].version <= last_) ++next_;
  if (options_.after) return;
  for (const StoredObject& stored : store_.list(collection_)) {
    if (!selection_.matches(*stored.object)) continue;
    first_ += watch_line("ADDED", calls_.shown(path_, *stored.object));
  }
  if (options_.marks_initial_end) first_ += bookmark_line(true);
}

std::string WatchStream::bookmark_line(bool marks_initial_end) const {
  json object = {{"kind", calls_.kind_of(path_)},
                 {"apiVersion", path_.group_version()},
                 {"metadata", {{"resourceVersion", std::to_string(last_)}}}};
  if (marks_initial_end) {
    object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  }
  return watch_line("BOOKMARK", object);
}

void WatchStream::insert(const std::string& type, const json& object) {
  first_ += watch_line(type, object);
}

void WatchStream::expire() {
  first_ +=
      watch_line("ERROR", status_object({.code = 410, .message = "too old resource version"}));
  is_expired_ = true;
}

void WatchStream::time_out() {
  if (options_.has_bookmarks) bookmark();
  is_over_ = true;
}

void WatchStream::tell(const StoreEvent& event, std::string& out) const {
  const bool was_selected = event.before && selection_.matches(*event.before);
  const bool is_selected = !event.is_deleted && selection_.matches(*event.after);
  if (!was_selected && !is_selected) return;
  const std::string type = !was_selected ? "ADDED" : is_selected ? "MODIFIED" : "DELETED";
  json object = *event.after;
  if (!is_selected && !event.is_deleted) {
    // What leaves the selection is told as it was, with the version of the change.
    object = *event.before;
    object["metadata"]["resourceVersion"] = std::to_string(event.version);
  }
  const std::string line = watch_line(type, calls_.shown(path_, object));
  out += line;
  if (manners_.is_doubled) out += line;
}

bool WatchStream::fill(std::string& out) {
  out += std::exchange(first_, {});
  if (is_expired_) return false;
  if (!manners_.is_held) tell_events(out);
  if (std::exchange(is_bookmark_due_, false)) out += bookmark_line(false);
  return !is_over_;
}

void WatchStream::tell_events(std::string& out) {
  std::vector<const StoreEvent*> pending;
  const auto& events = store_.events();
  for (; next_ < events.size(); ++next_) {
    const StoreEvent& event = events[next_];
    // A watch may begin at a version that is still to come, as after the restore of a backup.
    if (event.version <= last_) continue;
    last_ = event.version;
    if (!collection_.holds(event.key)) continue;
    if (!path_.name.empty() && event.key.name != path_.name) continue;
    pending.push_back(&event);
  }
  if (std::exchange(is_reordered_, false)) {
    std::map<ObjectKey, std::size_t> first_of;
    for (std::size_t i = 0; i < pending.size(); ++i) first_of.emplace(pending[i]->key, i);
    std::ranges::stable_sort(pending, [&](const StoreEvent* a, const StoreEvent* b) {
      return first_of[a->key] > first_of[b->key];
    });
  }
  for (const StoreEvent* event : pending) tell(*event, out);
}

bool LogStream::fill(std::string& out) {
  out += logs_.read(pod_.namespace_name + "/" + pod_.name, options_, place_);
  if (!is_followed_) return false;
  if (options_.limit_bytes >= 0 && place_.told >= options_.limit_bytes) return false;
  const ObjectPtr pod = store_.find(pod_);
  return pod && !is_pod_over(*pod);
}

}  // namespace gpu_platform::kubernetes
