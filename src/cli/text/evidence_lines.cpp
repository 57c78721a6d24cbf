#include "cli/text/evidence_lines.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/letters.h"
#include "base/utc.h"
#include "cli/text/json_view.h"

namespace gpu_platform::cli {

namespace {

// Zero is an answer there.
bool has_meaningful_code(std::string_view kind) {
  constexpr std::array<std::string_view, 4> kKinds = {"JOB_ENDED", "RESET", "CHECK",
                                                      "RECOVERY_ACTION"};
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

std::string time_of_field(const google::protobuf::Timestamp& field) {
  const auto at = time_of(field);
  return at ? base::utc(*at, base::Fraction::kMilliseconds) : std::string();
}

void put_numbers(const v1::Evidence& piece, Json& line) {
  if (piece.kind() == "XID") {
    line["xid"] = piece.code();
  } else if (piece.code() != 0 || has_meaningful_code(piece.kind())) {
    line["code"] = piece.code();
  }
  if (piece.value() != 0) line["value"] = piece.value();
  if (piece.count() > 1) line["count"] = piece.count();
  if (piece.count() > 1 && piece.has_last()) line["last"] = time_of_field(piece.last());
  if (piece.is_over()) line["over"] = true;
}

void put_job(const v1::Evidence& piece, Json& line) {
  const auto put = [&](const char* key, bool is_there, const std::string& text) {
    if (is_there) line[key] = text;
  };
  put("job", piece.has_job(), piece.job());
  put("user", piece.has_user(), piece.user());
  put("program", piece.has_program(), piece.program());
  if (piece.has_pid()) line["pid"] = piece.pid();
}

Json line_of(const v1::Evidence& piece, const GpuInventory& inventory) {
  Json line;
  line["at"] = time_of_field(piece.at());
  line["kind"] = base::to_lower(piece.kind());
  line["node"] = piece.node();
  if (piece.has_gpu_id()) {
    line["gpu"] = piece.gpu_id();
    const auto type = inventory.type_of.find(piece.gpu_id());
    if (type != inventory.type_of.end()) line["gpu_type"] = type->second;
  }
  put_numbers(piece, line);
  put_job(piece, line);
  if (piece.has_gpu_instance()) line["instance"] = piece.gpu_instance();
  for (const std::uint32_t value : piece.registers()) line["registers"].push_back(value);
  line["source"] = base::to_lower(piece.source());
  if (piece.has_text()) line["text"] = piece.text();
  return line;
}

}  // namespace

GpuInventory inventory_of(const v1::Status& status) {
  GpuInventory inventory;
  std::set<std::pair<std::string, std::string>> seen;  // types by node
  for (const v1::Gpu& gpu : status.gpus()) {
    inventory.type_of[gpu.uuid()] = gpu.type();
    GpuInventory::OfType& type = inventory.types[gpu.type()];
    ++type.gpus;
    if (seen.emplace(gpu.type(), gpu.node()).second) ++type.nodes;
  }
  return inventory;
}

std::string evidence_lines(const v1::EvidenceList& kept, const GpuInventory& inventory) {
  std::string lines;
  if (kept.evidence().empty()) return lines;
  const std::string first = time_of_field(kept.evidence(0).at());
  for (const auto& [type, amount] : inventory.types) {
    Json line;
    line["at"] = first;
    line["kind"] = "inventory";
    line["gpu_type"] = type;
    line["gpus"] = amount.gpus;
    line["nodes"] = amount.nodes;
    lines += json_text(line) + "\n";
  }
  for (const v1::Evidence& piece : kept.evidence()) {
    lines += json_text(line_of(piece, inventory)) + "\n";
  }
  return lines;
}

Called<std::string> kept_evidence_lines(Client& client, const std::string& query) {
  const auto kept = client.ask<v1::EvidenceList>(
      query.empty() ? "/v1/gpus/evidence" : "/v1/gpus/evidence?" + query, "the evidence");
  if (!kept) return std::unexpected(kept.error());
  const auto status =
      client.ask<v1::Status>("/v1/status?fields=gpus.uuid,gpus.type,gpus.node", "the status");
  if (!status) return std::unexpected(status.error());
  return evidence_lines(*kept, inventory_of(*status));
}

}  // namespace gpu_platform::cli
