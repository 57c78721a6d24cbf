#include "model/job_size.h"

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "model/job_spec_fields.h"

namespace gpu_platform::model {

namespace {

// Written down and not asked of the compiler: what a user may submit is part of the contract and
// must not change with a standard library. Near what GCC 12 has on 64 bits.
constexpr std::size_t kSpec = 1024;  // the specification itself, and what the job beside it takes
constexpr std::size_t kText = 32;    // a std::string; its bytes come on top

std::size_t size_of(const std::string& text) {
  return text.size();
}
std::size_t size_of(const std::vector<std::string>& texts) {
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += kText + text.size();
  return bytes;
}
std::size_t size_of(const std::vector<Label>& labels) {
  std::size_t bytes = 0;
  for (const Label& label : labels) bytes += 2 * kText + label.key.size() + label.value.size();
  return bytes;
}
std::size_t size_of(const std::optional<std::string>& text) {
  return text ? size_of(*text) : 0;
}
std::size_t size_of(const std::vector<NodeId>& nodes) {
  return sizeof(NodeId) * nodes.size();
}
std::size_t size_of(const std::vector<std::uint32_t>& numbers) {
  return sizeof(std::uint32_t) * numbers.size();
}
// Once as asked for, once as what the job still waits for.
std::size_t size_of(const std::vector<Dependency>& dependencies) {
  return 2 * sizeof(Dependency) * dependencies.size();
}
std::size_t size_of(const std::optional<ArraySpec>& array) {
  return array ? sizeof(std::uint64_t) * 2 * array->runs.size() : 0;
}
// There are at most three of them, and kSpec counts them.
std::size_t size_of(const std::vector<NotifyOn>&) {
  return 0;
}
// The specification's own team, which is counted there.
std::size_t size_of(const Tenant&) {
  return 0;
}
// Members that own no memory beyond themselves are counted in kSpec.
template <class T>
  requires std::is_trivially_copyable_v<T>
std::size_t size_of(const T&) {
  return 0;
}

}  // namespace

base::Bytes size_of(const JobSpec& spec) {
  std::size_t bytes = kSpec;
  for_each_spec_field([&](const auto& field) { bytes += size_of(field.of(spec)); });
  return base::Bytes(static_cast<std::int64_t>(bytes));
}

base::Bytes size_in_list(const Job& job) {
  constexpr std::size_t kStep = 256;  // with its name and what shares it
  std::size_t bytes = 0;
  for (const Attempt& attempt : job.attempts) bytes += kStep * attempt.steps->size();
  return size_of(*job.spec) + base::Bytes(static_cast<std::int64_t>(bytes));
}

}  // namespace gpu_platform::model
