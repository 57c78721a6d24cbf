#include "store/sqlite/report_text.h"

#include <fmt/format.h>

namespace gpu_platform::store {

namespace {

std::string contents_of(const StoreReport& report) {
  std::string text = fmt::format(
      "{}: schema {}, events {} to {}, {} ended jobs, {} snapshots, {} environments, "
      "{} audit entries, {} ledger lines\n",
      report.file.string(), report.schema_version, report.first_event.value,
      report.last_event.value, report.jobs, report.snapshots, report.environments,
      report.audit_entries, report.ledger_lines);
  for (const std::string& damage : report.damages) text += "damaged: " + damage + "\n";
  for (const std::string& missing : report.missing) text += "missing: " + missing + "\n";
  return text;
}

}  // namespace

ReportText check_text(const StoreReport& report, const std::string& data_dir) {
  std::string text = contents_of(report);
  if (!report.has_mark) {
    text +=
        "note: store.marker does not record what was durable, so it is not known whether the "
        "store is an older one; the next start of the daemon makes it anew\n";
  }
  if (!report.missing.empty()) {
    text += "a job is held when it is to start without its environment\n";
    return {std::move(text), false};
  }
  if (report.is_sound()) return {std::move(text) + "sound\n", true};
  text += "`gpu-platform store recover --data-dir " + data_dir +
          "` builds a new database from everything that can be read and keeps the damaged one\n";
  return {std::move(text), false};
}

ReportText recovery_text(const RecoveryReport& report) {
  std::string text = "the damaged database is kept as " + report.put_aside.string() + "\n";
  text += contents_of(report.kept);
  for (const std::string& loss : report.lost) text += "lost: " + loss + "\n";
  if (report.is_ledger_due) {
    text += "the next start of the daemon makes the ledger from the journal\n";
  }
  if (report.next_job.valid()) {
    text += fmt::format("the next job gets id {}\n", report.next_job.value);
  }
  if (!report.lost.empty()) return {std::move(text), false};
  return {std::move(text) + "nothing that was acknowledged is lost\n", true};
}

}  // namespace gpu_platform::store
