#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kubernetes/testing/api_request.h"

// The objects of a cluster and all that happened to them. Thread: one at a time.

namespace gpu_platform::kubernetes {

// The versions of a group share its objects.
struct ObjectKey {
  std::string group;
  std::string resource;
  std::string namespace_name;  // empty: not namespaced; of a collection: all namespaces
  std::string name;            // empty: the collection

  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
  // Whether a collection has the object.
  bool holds(const ObjectKey& object) const {
    return group == object.group && resource == object.resource &&
           (namespace_name.empty() || namespace_name == object.namespace_name);
  }
};
ObjectKey key_of(const ApiPath& path);
ObjectKey collection_of(const ApiPath& path);

using ObjectPtr = std::shared_ptr<const nlohmann::json>;  // never changes; without kind, apiVersion

struct StoredObject {
  ObjectKey key;
  ObjectPtr object;
};

struct StoreEvent {
  std::uint64_t version = 0;  // what metadata.resourceVersion of `after` says
  ObjectKey key;
  ObjectPtr before;  // null: it is new
  ObjectPtr after;   // of a deleted object: its last state
  bool is_deleted = false;
};

class ObjectStore {
 public:
  std::uint64_t version() const { return version_; }
  ObjectPtr find(const ObjectKey& key) const;  // null: there is none
  // The objects of a collection by namespace and name, as they are or as they were at a version.
  std::vector<StoredObject> list(const ObjectKey& collection) const;
  std::vector<StoredObject> list_at(const ObjectKey& collection, std::uint64_t version) const;
  const std::map<ObjectKey, ObjectPtr>& all() const { return objects_; }
  // Makes or replaces an object and gives it the next resourceVersion.
  ObjectPtr put(const ObjectKey& key, nlohmann::json object);
  // Removes an object, whose last state is `last`.
  ObjectPtr remove(const ObjectKey& key, nlohmann::json last);
  // All events, oldest first. They are kept for good.
  const std::vector<StoreEvent>& events() const { return events_; }

 private:
  ObjectPtr next_state(nlohmann::json object);

  std::uint64_t version_ = 1;
  std::map<ObjectKey, ObjectPtr> objects_;
  std::vector<StoreEvent> events_;
};

}  // namespace gpu_platform::kubernetes
