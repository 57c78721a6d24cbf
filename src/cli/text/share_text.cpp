#include "cli/text/share_text.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/parse.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

// A share that is not a number of thousandths comes from other parts' sums.
base::GpuShare share_of(double gpus) {
  return base::GpuShare(std::llround(gpus * static_cast<double>(base::kWholeGpu.value())));
}

std::string rung_word(const google::protobuf::Message& message, int field) {
  return as_word(name_at(message, field));
}

struct Sentence {
  v1::Rung rung;
  std::string_view text;
};

// By what keeps the job to its memory.
constexpr std::array kOfMemory = {
    Sentence{v1::RUNG_ADVISORY,
             "Nothing keeps a neighbour from taking the memory of this job's part."},
    Sentence{v1::RUNG_WATCHDOG,
             "A neighbour can take the memory of this job's part until the platform stops it, some "
             "seconds later."},
    Sentence{v1::RUNG_MPS_LIMIT,
             "Each process of a neighbour is held to its limit of memory, which a neighbour that "
             "means to can raise."},
    Sentence{v1::RUNG_DRIVER_LIMIT, "No neighbour can take the memory of this job's part."},
    Sentence{v1::RUNG_HARDWARE, "No neighbour can take the memory of this job's part."},
};

// By what keeps the job to its compute.
constexpr std::array kOfCompute = {
    Sentence{v1::RUNG_ADVISORY, "Nothing keeps a neighbour from slowing this job down."},
    Sentence{v1::RUNG_WATCHDOG, "Nothing keeps a neighbour from slowing this job down."},
    Sentence{v1::RUNG_MPS_LIMIT,
             "Each process of a neighbour is held to the neighbour's part of the compute. One with "
             "several processes, or one that means to, can use more and slow this job down."},
    Sentence{v1::RUNG_TIME_SLICE,
             "No neighbour runs in this job's turn; work that it has begun on the GPU still ends."},
    Sentence{v1::RUNG_DRIVER_LIMIT, "No neighbour can slow this job down."},
    Sentence{v1::RUNG_HARDWARE, "No neighbour can slow this job down."},
};

template <std::size_t kCount>
std::string_view sentence(const std::array<Sentence, kCount>& sentences, v1::Rung rung) {
  for (const Sentence& each : sentences) {
    if (each.rung == rung) return each.text;
  }
  return "How strong the wall is, is not known.";
}

// What ends the job from outside, and what is seen of it.
std::string_view faults_of(v1::ShareMode mode) {
  if (mode == v1::SHARE_MODE_MPS) {
    return "A fault of a neighbour's program on the GPU ends this job too, which is queued again. "
           "Neighbours are jobs of the same user.";
  }
  return "A fault of a neighbour's program ends that neighbour alone; a fault of the GPU ends all "
         "jobs on it. Neighbours see how busy the GPU is, and nothing of this job's memory.";
}

// The part that the latest attempt has or had; null for whole GPUs.
const v1::GpuUse* part_in(const google::protobuf::RepeatedPtrField<v1::GpuUse>& gpus) {
  return gpus.size() == 1 && is_part(gpus.Get(0)) ? &gpus.Get(0) : nullptr;
}

// "time-slice; memory: watchdog, compute: time-slice"; empty where it is not known.
std::string walls_text(const v1::GpuUse& gpu) {
  const std::string memory = rung_word(gpu, v1::GpuUse::kMemoryRungFieldNumber);
  const std::string compute = rung_word(gpu, v1::GpuUse::kComputeRungFieldNumber);
  if (memory.empty() || compute.empty()) return {};
  return fmt::format("{}; memory: {}, compute: {}", mode_word(gpu.mode()), memory, compute);
}

std::string part_line(const v1::GpuUse* part) {
  if (part == nullptr) return {};
  const v1::GpuUse& gpu = *part;
  std::string text = fmt::format("{} of GPU {}", share_text(gpu.share()), gpu.index());
  if (gpu.has_memory_bytes()) text += " with " + size_text(gpu.memory_bytes());
  const std::string walls = walls_text(gpu);
  return walls.empty() ? text : fmt::format("{} ({})", text, walls);
}

}  // namespace

std::string share_text(double share) {
  return base::written_share(share_of(share));
}

bool is_part(const v1::JobSpec& spec) {
  return spec.has_gpu_share() && spec.gpu_share() < 1;
}

bool is_part(const v1::GpuUse& gpu) {
  return gpu.share() > 0 && gpu.share() < 1;
}

std::string mode_word(v1::ShareMode mode) {
  v1::GpuUse holder;
  holder.set_mode(mode);
  return rung_word(holder, v1::GpuUse::kModeFieldNumber);
}

std::string part_of(const v1::Attempt& attempt) {
  return part_line(part_in(attempt.gpus()));
}

std::string part_of(const v1::Job& job) {
  return part_line(part_in(job.gpus()));
}

std::string terms_of_part(const v1::Attempt& attempt) {
  const v1::GpuUse* const part = part_in(attempt.gpus());
  if (part == nullptr) return {};
  const std::string memory = part->has_memory_bytes() ? size_text(part->memory_bytes()) : "";
  const std::string walls = walls_text(*part);
  return memory + (memory.empty() || walls.empty() ? "" : ", ") + walls;
}

std::string neighbours_of(const v1::Job& job) {
  const v1::GpuUse* const part = part_in(job.gpus());
  if (part == nullptr || part->memory_rung() == v1::RUNG_UNSPECIFIED) return {};
  return fmt::format("{} {} {}", sentence(kOfMemory, part->memory_rung()),
                     sentence(kOfCompute, part->compute_rung()), faults_of(part->mode()));
}

std::string share_beside(const v1::Gpu& gpu, const std::string& job) {
  for (const v1::GpuPart& part : gpu.parts()) {
    if (part.job() == job) return fmt::format(" ({})", share_text(part.share()));
  }
  return {};
}

std::string free_gpus_text(std::uint32_t gpus, double share) {
  const base::GpuShare parts = share_of(share - static_cast<double>(gpus));
  if (parts <= base::GpuShare()) return fmt::format("{}", gpus);
  return fmt::format("{} + {}", gpus, base::written_share(parts));
}

}  // namespace gpu_platform::cli
