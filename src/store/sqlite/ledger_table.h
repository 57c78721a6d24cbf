#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "store/ledger.h"
#include "store/ledger_codec.h"
#include "store/sqlite/database.h"
#include "store/store.h"

// The tables of the ledger: one row for each batch that has lines, in `ledger`, the names in them,
// the keys that lead from a user to them, and the gap that is still to be filled.

namespace gpu_platform::store {

// What the table holds.
struct LedgerExtent {
  std::uint64_t oldest = 0;  // first_seq of the oldest row; 0: there is none
  model::Millis oldest_to = 0;
  std::uint64_t newest = 0;
};

// The writing side: prepared statements and the numbers of all names, kept as long as the
// connection.
class LedgerWriter {
 public:
  LedgerWriter() = default;
  static base::Result<LedgerWriter> prepare(const Database& database);

  base::Result<LedgerExtent> read_extent();
  // The lines of a batch, where it has any, and what is to go then. `extent` is that of the table
  // before and after; after an error, or where the transaction fails, it is not true.
  base::Status put(const Commit& commit, LedgerExtent& extent);
  base::Status put(std::uint64_t first_seq, std::span<const model::LedgerLine> lines);
  base::Status put_gap(const LedgerGap& gap);
  // Forgets all lines of batches that begin after that event. Costs a look at the keys of all.
  base::Status drop_after(model::EventSeq seq);
  // To be called at the end of each transaction: names that it added are numbered anew if it
  // failed.
  void settle(bool is_kept);

 private:
  base::Result<std::uint64_t> number_of(std::string_view name);
  base::Result<std::string_view> name_of(std::uint64_t number) const;
  base::Status drop_oldest(LedgerExtent& extent);
  base::Status change_users(std::uint64_t batch, std::span<const model::LedgerLine> lines,
                            Statement& change);

  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return base::hash64(name); }
  };
  // A batch of attempts on many GPUs asks for thousands of names.
  std::unordered_map<std::string, std::uint64_t, NameHash, std::equal_to<>> numbers_;
  std::map<std::uint64_t, std::string_view> names_;  // keys of numbers_, by their numbers
  std::vector<std::uint64_t> fresh_;                 // added in the open transaction

  Statement extent_;
  Statement put_gap_;
  Statement drop_gap_;
  Statement put_;
  Statement put_name_;
  Statement put_user_;
  Statement oldest_;
  Statement next_;
  Statement drop_;
  Statement drop_user_;
  Statement drop_after_;
  Statement drop_users_after_;
};

base::Result<LedgerGap> ledger_gap_of(const Database& database);

inline constexpr std::string_view kLedgerColumns =
    "first_seq, from_ms, to_ms, count, checksum, payload";

// A row of these columns; it holds as long as the statement stands on it.
struct LedgerRow {
  std::uint64_t first_seq = 0;
  std::uint64_t count = 0;
  std::string_view payload;
};
// kDataLoss, with a message that names the record, when it does not verify.
base::Result<LedgerRow> ledger_row_of(const Statement& row);
// kDataLoss as above when the lines cannot be read.
base::Status visit_lines(const LedgerRow& row, const NameOfNumber& name_of,
                         const Ledger::Visit& visit);

inline constexpr std::string_view kLedgerNameColumns = "id, checksum, text";
struct LedgerName {
  std::uint64_t number = 0;
  std::string text;
};
// kDataLoss as above.
base::Result<LedgerName> ledger_name_of(const Statement& row);

// The names as a reader needs them: each is read when it is first asked for.
class LedgerNames {
 public:
  // `statement`: as kLedgerNameSql.
  explicit LedgerNames(Statement statement) : statement_(std::move(statement)) {}
  base::Result<std::string_view> name_of(std::uint64_t number);

 private:
  Statement statement_;
  std::unordered_map<std::uint64_t, std::string> known_;
};
inline constexpr std::string_view kLedgerNameSql =
    "SELECT id, checksum, text FROM ledger_names WHERE id = ?";

// Rows that may hold what is asked for, in their order, in kLedgerColumns. The parameters refer to
// the query.
struct LedgerSql {
  std::string text;
  std::vector<std::variant<std::int64_t, std::string_view>> parameters;
};
LedgerSql ledger_sql(const LedgerQuery& query);

}  // namespace gpu_platform::store
