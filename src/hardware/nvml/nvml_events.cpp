#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hardware/nvml/nvml_library.h"
#include "hardware/nvml/nvml_session.h"

namespace gpu_platform::hardware {
namespace {

// The events that we can name. Drivers are asked for no others, so that none floods us.
constexpr unsigned long long kWanted =
    kNvmlEventEccCorrected | kNvmlEventEccUncorrected | kNvmlEventXid | kNvmlEventClock |
    kNvmlEventMigConfig | kNvmlEventEccStorm | kNvmlEventRetirement | kNvmlEventRetirementFailure |
    kNvmlEventPoison | kNvmlEventFatalPoison | kNvmlEventUnavailable | kNvmlEventRecoveryAction;

GpuEventKind kind_of(unsigned long long type) {
  switch (type) {
    case kNvmlEventXid:
      return GpuEventKind::kXid;
    case kNvmlEventEccCorrected:
    case kNvmlEventEccStorm:
      return GpuEventKind::kEccCorrected;
    case kNvmlEventEccUncorrected:
      return GpuEventKind::kEccUncorrected;
    case kNvmlEventClock:
      return GpuEventKind::kClock;
    case kNvmlEventMigConfig:
      return GpuEventKind::kMigChanged;
    case kNvmlEventRetirement:
      return GpuEventKind::kMemoryRetired;
    case kNvmlEventRetirementFailure:
      return GpuEventKind::kRetirementFailed;
    case kNvmlEventPoison:
    case kNvmlEventFatalPoison:
      return GpuEventKind::kPoison;
    case kNvmlEventUnavailable:
      return GpuEventKind::kUnavailable;
    case kNvmlEventRecoveryAction:
      return GpuEventKind::kRecoveryAction;
    default:
      return GpuEventKind::kOther;
  }
}

struct Watched {
  NvmlDevice* device = nullptr;
  std::uint32_t index = 0;
  std::string uuid;
};

class NvmlEvents final : public GpuEventSource {
 public:
  explicit NvmlEvents(NvmlSession session) : session_(std::move(session)) {}
  NvmlEvents(const NvmlEvents&) = delete;
  NvmlEvents& operator=(const NvmlEvents&) = delete;
  ~NvmlEvents() override {
    if (set_ != nullptr && f().event_set_free != nullptr) f().event_set_free(set_);
  }

  // False where there is nothing to wait for.
  std::expected<bool, LibraryProblem> subscribe() {
    const auto count = session_.gpu_count();
    if (!count) return std::unexpected(count.error());
    const int code = f().event_set_create(&set_);
    if (code == kNvmlErrorNotSupported || code == kNvmlErrorFunctionNotFound) return false;
    if (code != kNvmlSuccess) return std::unexpected(session_.problem_of(code));
    for (unsigned index = 0; index < *count; ++index) subscribe(index);
    return !watched_.empty();
  }

  std::expected<std::optional<GpuEvent>, LibraryProblem> wait(base::Duration limit) override {
    NvmlEventData data{};
    data.gpu_instance_id = kNvmlNoInstance;  // older libraries leave it as it is
    const auto limit_ms = static_cast<unsigned>(base::whole_milliseconds(limit));
    const int code = f().event_set_wait(set_, &data, limit_ms);
    if (code == kNvmlErrorTimeout) return std::nullopt;
    if (code != kNvmlSuccess) return std::unexpected(session_.problem_of(code));
    GpuEvent event;
    event.type = data.type;
    event.value = data.value;
    event.kind = kind_of(data.type);
    if (data.gpu_instance_id != kNvmlNoInstance) event.gpu_instance = data.gpu_instance_id;
    const auto gpu = std::ranges::find(watched_, data.device, &Watched::device);
    if (gpu != watched_.end()) {
      event.index = gpu->index;
      event.uuid = gpu->uuid;
    }
    return event;
  }

 private:
  const NvmlFunctions& f() const { return session_.functions(); }

  void subscribe(unsigned index) {
    Watched gpu{nullptr, index, {}};
    unsigned long long types = 0;
    if (f().handle_by_index(index, &gpu.device) != kNvmlSuccess ||
        f().event_types(gpu.device, &types) != kNvmlSuccess || (types & kWanted) == 0 ||
        f().register_events(gpu.device, types & kWanted, set_) != kNvmlSuccess) {
      return;
    }
    char uuid[96] = {};
    if (f().uuid != nullptr && f().uuid(gpu.device, uuid, sizeof uuid - 1) == kNvmlSuccess) {
      gpu.uuid = uuid;
    }
    watched_.push_back(std::move(gpu));
  }

  const NvmlSession session_;
  NvmlEventSet* set_ = nullptr;
  std::vector<Watched> watched_;
};

bool has_events(const NvmlFunctions& f) {
  return f.event_set_create != nullptr && f.event_set_wait != nullptr &&
         f.register_events != nullptr && f.event_types != nullptr;
}

}  // namespace

std::expected<std::unique_ptr<GpuEventSource>, LibraryProblem> open_nvml_events(
    const std::string& path) {
  auto session = NvmlSession::open(path);
  if (!session) return std::unexpected(std::move(session).error());
  if (!has_events(session->functions())) return nullptr;
  auto events = std::make_unique<NvmlEvents>(std::move(*session));
  const auto subscribed = events->subscribe();
  if (!subscribed) return std::unexpected(subscribed.error());
  if (!*subscribed) return nullptr;
  return events;
}

}  // namespace gpu_platform::hardware
