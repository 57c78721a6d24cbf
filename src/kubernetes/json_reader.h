#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

// Reads the fields that the caller needs of what an API server writes: to make values of all the
// rest costs several times as much as to find these. On simdjson.

namespace gpu_platform::kubernetes {

// The members of objects that are read; all of them where none is named.
class JsonFields {
 public:
  JsonFields() = default;
  // Paths from the outermost object on: "spec.containers.name". What a path ends at is read whole;
  // lists on the way stand for each of their entries. A member has no '.' in its name.
  JsonFields(std::initializer_list<std::string_view> paths);

  // The same for these fields of each object that is a member, or in a list that is a member, of
  // that name.
  static JsonFields within(std::string_view name, JsonFields fields);
  void add(std::string_view path);

  bool are_all() const { return members_.empty(); }
  // What is read of the member; null: nothing.
  const JsonFields* of(std::string_view member) const;

 private:
  std::vector<std::pair<std::string, JsonFields>> members_;
};

// The fields of a document, without the lists named managedFields: they are the API server's own
// bookkeeping, half of a pod's text. A number or text that cannot be represented, and what nests
// more than 1,000 deep, is null. Text that is no JSON is_discarded(); mistakes in what is not read
// may stay unseen. Any thread.
nlohmann::json read_json(std::string_view text, const JsonFields& fields = {});

}  // namespace gpu_platform::kubernetes
