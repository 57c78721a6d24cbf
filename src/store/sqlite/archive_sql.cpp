#include "store/sqlite/archive_sql.h"

#include <algorithm>
#include <limits>

#include "model/states.h"
#include "store/sqlite/records.h"

namespace gpu_platform::store {

namespace {

class Builder {
 public:
  Builder(const ArchiveQuery& query, model::JobId from) : query_(query), from_(from) {}

  ArchiveSql build() {
    const bool wants_completed =
        query_.states.empty() ||
        std::ranges::find(query_.states, model::JobState::kCompleted) != query_.states.end();
    select();
    if (!query_.labels.empty()) {
      by_label();
    } else if (query_.name) {
      by_column("jobs_by_name");
    } else if (query_.user) {
      by_column("jobs_by_user");
    } else if (query_.team) {
      by_column("jobs_by_team");
    } else if (!wants_completed) {
      by_keys("jobs_by_unhappy_state", "state <> 'COMPLETED'");
    } else if (query_.ended_since.is_set() && !from_.valid()) {
      by_keys("jobs_by_end", "1");
    } else {
      add(" FROM jobs AS j NOT INDEXED WHERE 1");
      filters("j.");
    }
    // Said of the label's column, so that its order is seen to be the wanted one.
    add(query_.labels.empty() ? " ORDER BY j.id DESC LIMIT ?" : " ORDER BY l.job DESC LIMIT ?");
    bind_limit();
    return std::move(out_);
  }

 private:
  void add(std::string_view text) { out_.text += text; }
  void add(std::string_view text, std::int64_t value) {
    add(text);
    out_.parameters.emplace_back(value);
  }
  void add(std::string_view text, std::string_view value) {
    add(text);
    out_.parameters.emplace_back(value);
  }
  void bind_limit() {
    constexpr auto kMax = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
    out_.parameters.emplace_back(static_cast<std::int64_t>(std::min(query_.limit, kMax)));
  }

  void select() {
    add("SELECT j.id, j.archived_seq, j.user, j.team, j.name, j.state, j.ended_at_ns, j.checksum, "
        "j.payload");
  }

  // Labels first, the others tested on the job's row.
  void by_label() {
    add(" FROM job_labels AS l CROSS JOIN jobs AS j ON j.id = l.job WHERE l.key = ?",
        query_.labels.front().key);
    add(" AND l.value = ?", query_.labels.front().value);
    filters("j.");
    for (std::size_t i = 1; i < query_.labels.size(); ++i) {
      add(" AND EXISTS (SELECT 1 FROM job_labels AS m WHERE m.key = ?", query_.labels[i].key);
      add(" AND m.value = ? AND m.job = j.id)", query_.labels[i].value);
    }
  }

  // An index in which the rows of one value are in id order.
  void by_column(std::string_view index) {
    add(" FROM jobs AS j INDEXED BY ");
    add(index);
    add(" WHERE 1");
    filters("j.");
  }

  // An index that covers every filter but not the order: ids are sorted and cut before any row is
  // read.
  void by_keys(std::string_view index, std::string_view condition) {
    add(" FROM (SELECT id FROM jobs INDEXED BY ");
    add(index);
    add(" WHERE ");
    add(condition);
    filters("");
    add(" ORDER BY id DESC LIMIT ?");
    bind_limit();
    add(") AS k CROSS JOIN jobs AS j ON j.id = k.id");
  }

  // Every filter but the labels.
  void filters(std::string_view alias) {
    const std::string column = " AND " + std::string(alias);
    if (query_.before.valid()) {
      add(query_.labels.empty() ? column + "id < ?" : " AND l.job < ?",
          static_cast<std::int64_t>(query_.before.value));
    }
    if (from_.valid()) {
      add(query_.labels.empty() ? column + "id >= ?" : " AND l.job >= ?",
          static_cast<std::int64_t>(from_.value));
    }
    if (query_.user) add(column + "user = ?", *query_.user);
    if (query_.team) add(column + "team = ?", *query_.team);
    if (query_.name) add(column + "name = ?", *query_.name);
    if (query_.ended_since.is_set()) {
      add(column + "ended_at_ns >= ?", query_.ended_since.unix_ns());
    }
    if (query_.states.empty()) return;
    add(column + "state IN (");
    for (std::size_t i = 0; i < query_.states.size(); ++i) {
      add(i == 0 ? "?" : ", ?", to_string(query_.states[i]));
    }
    add(")");
  }

  const ArchiveQuery& query_;
  const model::JobId from_;
  ArchiveSql out_;
};

}  // namespace

ArchiveSql archive_sql(const ArchiveQuery& query, model::JobId from) {
  return Builder(query, from).build();
}

}  // namespace gpu_platform::store
