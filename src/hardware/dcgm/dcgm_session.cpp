#include "hardware/dcgm/dcgm_session.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "hardware/dcgm/dcgm_fields.h"

namespace gpu_platform::hardware {
namespace {

constexpr int kIntervalsKept = 3;

std::int64_t wall_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

bool ends_session(int code) {
  return code == kDcgmErrorConnectionNotValid || code == kDcgmErrorUninitialized;
}

std::vector<std::uint16_t> all_fields() {
  std::vector<std::uint16_t> fields(dcgm_device_fields().begin(), dcgm_device_fields().end());
  fields.insert(fields.end(), dcgm_activity_fields().begin(), dcgm_activity_fields().end());
  return fields;
}

}  // namespace

std::expected<std::unique_ptr<DcgmSession>, LibraryProblem> DcgmSession::open(
    const DcgmSource& source) {
  auto module = DcgmModule::open(source.libraries);
  if (!module) return std::unexpected(std::move(module).error());
  std::unique_ptr<DcgmSession> session(new DcgmSession(std::move(*module)));
  if (const int code = session->f().init(); code != kDcgmOk) {
    return std::unexpected(session->problem_of("cannot be initialised", code));
  }
  session->is_initialised_ = true;
  if (const int code = session->connect(source.address); code != kDcgmOk) {
    return std::unexpected(session->problem_of("has no host engine", code));
  }
  return session;
}

DcgmSession::~DcgmSession() {
  if (has_engine_) (void)(is_connected_ ? f().disconnect(handle_) : f().stop(handle_));
  if (is_initialised_) (void)f().shutdown();
}

// An engine that runs is preferred, because only one can have the counters of a GPU. One that is of
// another version is a problem, and no reason to start a second one beside it.
int DcgmSession::connect(const std::string& address) {
  int code = kDcgmErrorConnectionNotValid;
  if (!address.empty()) code = f().connect(address.c_str(), &handle_);
  is_connected_ = code == kDcgmOk;
  if (code == kDcgmErrorConnectionNotValid) code = f().start(kDcgmCollectsByItself, &handle_);
  has_engine_ = code == kDcgmOk;
  return code;
}

LibraryProblem DcgmSession::problem_of(const char* what, int code) const {
  const char* const text = f().error_string == nullptr ? nullptr : f().error_string(code);
  const std::string words =
      text == nullptr ? fmt::format("error {}", code) : fmt::format("{} ({})", text, code);
  if (code == kDcgmErrorVersionMismatch) {
    return {
        ProblemKind::kDriverMismatch,
        fmt::format("{} and the host engine are of different versions: {}", module_.path(), words)};
  }
  return {ProblemKind::kOther, fmt::format("{} {}: {}", module_.path(), what, words)};
}

std::expected<void, LibraryProblem> DcgmSession::watch(const std::vector<DcgmGpu>& gpus,
                                                       base::Duration interval) {
  interval_ = interval;
  auto known = find_gpus();
  if (!known) return std::unexpected(std::move(known).error());
  if (const int code = create_field_groups(); code != kDcgmOk) {
    return std::unexpected(problem_of("takes no fields", code));
  }
  for (Watched& gpu : *known) {
    const auto wanted = std::ranges::find(gpus, gpu.uuid, &DcgmGpu::uuid);
    if (wanted == gpus.end()) continue;
    const int code = watch_gpu(gpu, wanted->wants_activity);
    if (ends_session(code)) return std::unexpected(problem_of("watches nothing", code));
    if (code == kDcgmOk) watched_.push_back(std::move(gpu));
  }
  return {};
}

std::expected<std::vector<DcgmSession::Watched>, LibraryProblem> DcgmSession::find_gpus() {
  std::array<unsigned, kDcgmMaxGpus> ids{};
  int count = 0;
  if (const int code = f().gpus(handle_, ids.data(), &count); code != kDcgmOk) {
    return std::unexpected(problem_of("lists no GPUs", code));
  }
  count = std::clamp<int>(count, 0, static_cast<int>(ids.size()));
  std::vector<Watched> gpus;
  for (const unsigned id : std::span(ids).first(static_cast<std::size_t>(count))) {
    std::string uuid = uuid_of(id);
    if (!uuid.empty()) gpus.push_back({std::move(uuid), id});
  }
  return gpus;
}

// Empty if DCGM does not say.
std::string DcgmSession::uuid_of(std::uint32_t id) {
  DcgmEntity gpu{kDcgmGpuEntity, id};
  std::uint16_t field = kDcgmFieldUuid;
  values_.assign(1, {});
  const int code = f().latest(handle_, &gpu, 1, &field, 1, kDcgmLiveData, values_.data());
  const DcgmFieldValue& value = values_.front();
  if (code != kDcgmOk || value.status != kDcgmOk || value.type != kDcgmText) return {};
  return {value.value.text, strnlen(value.value.text, sizeof value.value.text)};
}

// The names are ours alone in an engine that others use, too: there a name is taken once.
int DcgmSession::create_field_groups() {
  const auto create = [&](const char* kind, std::span<const std::uint16_t> fields,
                          DcgmFieldGroup& out) {
    std::vector<std::uint16_t> copy(fields.begin(), fields.end());
    const std::string name = fmt::format("gpu-platform-{}-{}", getpid(), kind);
    return f().field_group_create(handle_, static_cast<int>(copy.size()), copy.data(), name.c_str(),
                                  &out);
  };
  int code = create("device", dcgm_device_fields(), device_fields_);
  if (code == kDcgmOk) code = create("activity", dcgm_activity_fields(), activity_fields_);
  if (code != kDcgmOk) return code;
  return create("plain", dcgm_activity_fields().first(kDcgmPlainActivities),
                plain_activity_fields_);
}

// Each GPU has a group of its own, because counters of different models are not watched together.
int DcgmSession::watch_gpu(const Watched& gpu, bool wants_activity) {
  const std::string name = fmt::format("gpu-platform-{}-gpu-{}", getpid(), gpu.id);
  DcgmGroup group = 0;
  int code = f().group_create(handle_, kDcgmEmptyGroup, name.c_str(), &group);
  if (code == kDcgmOk) code = f().group_add(handle_, group, kDcgmGpuEntity, gpu.id);
  if (code != kDcgmOk) return code;
  const double kept_seconds = static_cast<double>(interval_.value()) * kIntervalsKept / 1e9;
  const auto watch = [&](DcgmFieldGroup fields) {
    return f().watch(handle_, group, fields, interval_.value() / 1000, kept_seconds,
                     kIntervalsKept);
  };
  code = watch(device_fields_);
  if (code != kDcgmOk || !wants_activity) return code;
  // A GPU that cannot count all of it at once may count a part; one without counters keeps the
  // rest of its values.
  code = watch(activity_fields_);
  if (code != kDcgmOk && !ends_session(code)) code = watch(plain_activity_fields_);
  return ends_session(code) ? code : kDcgmOk;
}

std::expected<std::map<std::string, model::GpuMetrics>, LibraryProblem> DcgmSession::read() {
  std::vector<std::uint16_t> fields = all_fields();
  std::map<std::string, model::GpuMetrics> all;
  for (const Watched& gpu : watched_) {
    DcgmEntity entity{kDcgmGpuEntity, gpu.id};
    values_.assign(fields.size(), {});
    const int code = f().latest(handle_, &entity, 1, fields.data(),
                                static_cast<unsigned>(fields.size()), 0, values_.data());
    if (ends_session(code)) return std::unexpected(problem_of("answers no more", code));
    if (code != kDcgmOk) continue;
    const std::int64_t oldest_us = wall_us() - interval_.value() / 1000 * kIntervalsKept;
    model::GpuMetrics metrics;
    for (const DcgmFieldValue& value : values_) {
      if (value.at_us >= oldest_us) take_dcgm_value(value, metrics);
    }
    all.emplace(gpu.uuid, std::move(metrics));
  }
  return all;
}

}  // namespace gpu_platform::hardware
