#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/units.h"
#include "kubernetes/client.h"
#include "kubernetes/json_reader.h"

// Follows all objects of one kind that a selector matches: a list, then a watch from its resource
// version, again and again. A watch that ends silently goes on from the last version that was seen;
// 410 (as a status, or as an ERROR in a watch, or of a page) lists anew. Failures are tried again
// after a growing pause with jitter. Nothing is kept but the version: the follower keeps the
// objects. Thread: the client's.

namespace gpu_platform::kubernetes {

struct Followed {
  std::string path;   // "/api/v1/pods"
  std::string query;  // further query, encoded: "labelSelector=a%3Db"; empty: none
  // What the handlers read of an object: they get nothing else. None is named: all of it, but for
  // managedFields.
  JsonFields fields = {};
};

struct FollowHandlers {
  // A list is asked for. The server reads it later, so what is made from now on may be missing in
  // it.
  std::function<void()> on_list_asked;
  // A list begins: what is not told by on_object before on_listed is gone. A list that breaks off
  // begins again, without on_listed between.
  std::function<void()> on_list_begin;
  std::function<void(const nlohmann::json& object)> on_object;   // new or changed, or of a list
  std::function<void(const nlohmann::json& object)> on_deleted;  // its last state
  std::function<void()> on_listed;  // the list is complete; from now on changes come
  // The kind cannot be followed now, in words; tried again. An empty text: it can be again. Told
  // when the words change.
  std::function<void(const std::string& why)> on_trouble;
  // Whether changes of this object do not matter: they are then neither parsed nor told, where the
  // server writes them as usual.
  std::function<bool(std::string_view namespace_name, std::string_view name)> skips_changes = {};
};

struct ReflectorOptions {
  std::uint32_t page = 500;
  base::Duration watch_time = base::minutes(5);  // asked of the server; a little jitter is added
  base::Duration silence = base::minutes(6);     // after which a watch is given up and resumed
  base::Duration first_pause = base::milliseconds(200);
  base::Duration longest_pause = base::seconds(30);
  std::size_t max_line = std::size_t{16} << 20;  // of a watch; an object has 1.5 MiB at most
  std::uint64_t seed = 1;                        // of the jitter
};

class Reflector {
 public:
  // The client outlives it.
  Reflector(Client& client, Followed what, FollowHandlers handlers, ReflectorOptions options = {});
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  // Does what is due. Call after each Client::poll(), with the monotonic time in nanoseconds.
  void advance(std::int64_t now_ns);
  // When advance() has something to do although nothing came; 0: nothing.
  std::int64_t due_ns() const;
  bool is_listed() const;  // the first list is complete

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu_platform::kubernetes
