#include "baselines.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <span>

namespace gpu_platform::health {

namespace {

using model::Evidence;
using model::EvidenceKind;

bool is_one_of(std::span<const std::uint32_t> xids, std::uint32_t xid) {
  return std::ranges::find(xids, xid) != xids.end();
}

// What is common to them: GPUs are out from a piece on until something brings them back. None of
// them judges jobs; who trusts them calls a job innocent if a GPU of it went out while it ran or
// within a second after its end.
class Watcher {
 public:
  explicit Watcher(const EvidenceFile& evidence) : evidence_(evidence) {}
  virtual ~Watcher() = default;

  Opinion run() {
    for (const EvidenceLine& line : evidence_.lines) {
      if (line.piece.kind == EvidenceKind::kJobStarted) starts_.emplace(line.piece.job, &line);
      for (const std::string& gpu : gpus_of(line)) see(gpu, line.piece);
    }
    Opinion opinion;
    for (const auto& [gpu, since] : out_) opinion.out.insert(gpu);
    for (const auto& [gpu, times] : went_out_) opinion.ever_out.insert(gpu);
    for (const EvidenceLine& line : evidence_.lines) {
      if (is_innocent(line)) opinion.innocent_jobs.insert(name_of(line.piece.job));
    }
    opinion.innocent_later = opinion.innocent_jobs;
    return opinion;
  }

 protected:
  virtual void see(const std::string& gpu, const Evidence& piece) = 0;

  void take_out(const std::string& gpu, base::Instant at) {
    out_.emplace(gpu, at);
    went_out_[gpu].push_back(at);
  }
  void bring_back(const std::string& gpu) { out_.erase(gpu); }

 private:
  // A piece of a node is one of each of its GPUs.
  std::vector<std::string> gpus_of(const EvidenceLine& line) {
    std::vector<std::string> gpus;
    for (const GpuName& gpu : line.gpus) {
      gpus.push_back(gpu.gpu);
      gpus_of_node_[gpu.node].insert(gpu.gpu);
    }
    if (!gpus.empty() || line.node.empty()) return gpus;
    const auto found = gpus_of_node_.find(line.node);
    if (found != gpus_of_node_.end()) gpus.assign(found->second.begin(), found->second.end());
    return gpus;
  }
  std::string name_of(model::JobId job) const {
    const auto found = evidence_.job_names.find(job);
    return found == evidence_.job_names.end() ? std::string() : found->second;
  }
  bool is_innocent(const EvidenceLine& line) const {
    const Evidence& piece = line.piece;
    const bool fails = piece.kind == EvidenceKind::kStartFailed ||
                       (piece.kind == EvidenceKind::kJobEnded && line.end == JobEnd::kFailed);
    if (!fails) return false;
    const auto start = starts_.find(piece.job);
    const EvidenceLine& begin = start == starts_.end() ? line : *start->second;
    return std::ranges::any_of(begin.gpus, [&](const GpuName& gpu) {
      const auto times = went_out_.find(gpu.gpu);
      if (times == went_out_.end()) return false;
      // What was out before it began is used all the same where a start fails on it.
      const base::Instant from =
          piece.kind == EvidenceKind::kStartFailed ? base::Instant() : begin.piece.at;
      return std::ranges::any_of(times->second, [&](base::Instant at) {
        return from <= at && at <= piece.at + base::seconds(1);
      });
    });
  }

  const EvidenceFile& evidence_;
  std::map<std::string, base::Instant> out_;
  std::map<std::string, std::vector<base::Instant>> went_out_;
  std::map<std::string, std::set<std::string>> gpus_of_node_;
  std::map<model::JobId, const EvidenceLine*> starts_;
};

// NVIDIA/k8s-device-plugin, internal/rm/health.go: any critical XID that is not on its list takes
// the GPU away for good. A boot of the node starts the plugin again, which forgets.
class DevicePlugin : public Watcher {
 public:
  using Watcher::Watcher;

 private:
  void see(const std::string& gpu, const Evidence& piece) override {
    static constexpr std::array<std::uint32_t, 6> kIgnored = {13, 31, 43, 45, 68, 109};
    if (piece.kind == EvidenceKind::kXid && !is_one_of(kIgnored, piece.code)) {
      take_out(gpu, piece.at);
    }
    if (piece.kind == EvidenceKind::kNodeRestarted) bring_back(gpu);
  }
};

// leptonai/gpud, components/accelerator/nvidia: the severity of each XID, pending and failed
// remappings, lost GPUs, and the hardware's slowdown. A boot clears what XIDs have set.
class Gpud : public Watcher {
 public:
  using Watcher::Watcher;

 private:
  void see(const std::string& gpu, const Evidence& piece) override {
    static constexpr std::array<std::uint32_t, 24> kFatal = {16, 32,  38,  44,  46,  48,  60,  61,
                                                             62, 63,  64,  68,  69,  74,  78,  79,
                                                             95, 110, 119, 120, 121, 140, 143, 94};
    switch (piece.kind) {
      case EvidenceKind::kXid: {
        const bool is_fatal_link =
            piece.code >= 144 && piece.code <= 150 && !piece.text.contains("Nonfatal");
        // Contained errors count from the thousandth on.
        const bool is_fatal =
            is_one_of(kFatal, piece.code) && (piece.code != 94 || piece.count >= 1000);
        if (is_fatal || is_fatal_link) take_out(gpu, piece.at);
        break;
      }
      case EvidenceKind::kRemapPending:
      case EvidenceKind::kRemapFailed:
      case EvidenceKind::kLost:
      case EvidenceKind::kSlowdown:
        piece.is_over ? bring_back(gpu) : take_out(gpu, piece.at);
        break;
      case EvidenceKind::kNodeRestarted:
        bring_back(gpu);
        break;
      default:
        break;
    }
  }
};

// NVIDIA/NVSentinel: fatal is what the XID catalogue answers with more than the restart of a
// program; its analyzer adds repeated 13s in one unit and 31s on one GPU; DCGM's watches add
// remappings and lost GPUs. A reset or a boot clears. Before its change 1629 an XID 45 was fatal.
class NvSentinel : public Watcher {
 public:
  NvSentinel(const EvidenceFile& evidence, bool is_45_fatal)
      : Watcher(evidence), is_45_fatal_(is_45_fatal) {}

 private:
  void see(const std::string& gpu, const Evidence& piece) override {
    switch (piece.kind) {
      case EvidenceKind::kXid:
        if (is_fatal(piece) || is_repeated(gpu, piece)) take_out(gpu, piece.at);
        if (piece.code == 162) bring_back(gpu);  // cancels 163
        break;
      case EvidenceKind::kRemapPending:
      case EvidenceKind::kRemapFailed:
      case EvidenceKind::kRetirementPending:
      case EvidenceKind::kLost:
      case EvidenceKind::kNvlinkDown:
        piece.is_over ? bring_back(gpu) : take_out(gpu, piece.at);
        break;
      case EvidenceKind::kReset:
        if (piece.code == 0) bring_back(gpu);
        break;
      case EvidenceKind::kNodeRestarted:
        bring_back(gpu);
        break;
      default:
        break;
    }
  }

  bool is_fatal(const Evidence& piece) const {
    static constexpr std::array<std::uint32_t, 27> kFatal = {
        16,  46,  48,  54,  62,  64,  74,  78,  79,  95,  109, 110, 119, 120,
        136, 140, 142, 143, 151, 155, 156, 158, 163, 167, 169, 171, 172};
    if (piece.code == 45) return is_45_fatal_;
    if (piece.code >= 144 && piece.code <= 150) return !piece.text.contains("Nonfatal");
    return is_one_of(kFatal, piece.code);
  }
  bool is_repeated(const std::string& gpu, const Evidence& piece) {
    std::string unit;
    base::Duration burst = base::minutes(3);
    if (piece.code == 13) {
      const std::size_t begin = piece.text.find("(GPC ");
      if (begin == std::string::npos) return false;
      unit = piece.text.substr(begin, piece.text.find(", SM", begin) - begin);
      burst = base::seconds(15);
    } else if (piece.code != 31) {
      return false;
    }
    base::Instant& before = latest_[gpu + unit];
    const bool is_again =
        before.is_set() && piece.at - before > burst && piece.at - before <= base::hours(24);
    before = piece.last;
    return is_again;
  }

  bool is_45_fatal_;
  std::map<std::string, base::Instant> latest_;
};

}  // namespace

const std::vector<Baseline>& baselines() {
  static const std::vector<Baseline> all = {
      {"device plugin", [](const EvidenceFile& e) { return DevicePlugin(e).run(); }},
      {"gpud", [](const EvidenceFile& e) { return Gpud(e).run(); }},
      {"NVSentinel before 1629", [](const EvidenceFile& e) { return NvSentinel(e, true).run(); }},
      {"NVSentinel after 1629", [](const EvidenceFile& e) { return NvSentinel(e, false).run(); }},
  };
  return all;
}

}  // namespace gpu_platform::health
