#include "kubernetes/testing/object_store.h"

#include <utility>

namespace gpu_platform::kubernetes {

ObjectKey key_of(const ApiPath& path) {
  return {.group = path.group,
          .resource = path.resource,
          .namespace_name = path.namespace_name,
          .name = path.name};
}

ObjectKey collection_of(const ApiPath& path) {
  ObjectKey collection = key_of(path);
  collection.name.clear();
  return collection;
}

ObjectPtr ObjectStore::find(const ObjectKey& key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<StoredObject> ObjectStore::list(const ObjectKey& collection) const {
  std::vector<StoredObject> found;
  for (auto it = objects_.lower_bound(collection); it != objects_.end(); ++it) {
    if (!collection.holds(it->first)) break;
    found.push_back({it->first, it->second});
  }
  return found;
}

std::vector<StoredObject> ObjectStore::list_at(const ObjectKey& collection,
                                               std::uint64_t version) const {
  if (version >= version_) return list(collection);
  std::map<ObjectKey, ObjectPtr> then;
  for (const StoreEvent& event : events_) {
    if (event.version > version) break;
    if (!collection.holds(event.key)) continue;
    if (event.is_deleted) {
      then.erase(event.key);
    } else {
      then[event.key] = event.after;
    }
  }
  std::vector<StoredObject> found;
  for (const auto& [key, object] : then) found.push_back({key, object});
  return found;
}

ObjectPtr ObjectStore::next_state(nlohmann::json object) {
  object.erase("kind");
  object.erase("apiVersion");
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  return std::make_shared<const nlohmann::json>(std::move(object));
}

ObjectPtr ObjectStore::put(const ObjectKey& key, nlohmann::json object) {
  ObjectPtr after = next_state(std::move(object));
  ObjectPtr before = std::exchange(objects_[key], after);
  events_.push_back({version_, key, std::move(before), after, false});
  return after;
}

ObjectPtr ObjectStore::remove(const ObjectKey& key, nlohmann::json last) {
  ObjectPtr after = next_state(std::move(last));
  ObjectPtr before = find(key);
  objects_.erase(key);
  events_.push_back({version_, key, std::move(before), after, true});
  return after;
}

}  // namespace gpu_platform::kubernetes
