#include "store/sqlite/reader_pool.h"

#include <utility>

namespace gpu_platform::store {

namespace {

// More texts than the archive's filters make in practice; past it a client invents them.
constexpr std::size_t kMaxStatements = 64;

}  // namespace

base::Result<Statement*> Reader::statement(const std::string& sql) {
  auto it = statements_.find(sql);
  if (it == statements_.end()) {
    if (statements_.size() >= kMaxStatements) statements_.clear();
    TRY_ASSIGN(Statement prepared, database_.prepare(sql));
    it = statements_.emplace(sql, std::move(prepared)).first;
  }
  return &it->second;
}

base::Result<std::unique_ptr<Reader>> ReaderPool::open_reader() const {
  TRY_ASSIGN(Database database, Database::open(path_, Database::Mode::kReadOnly));
  TRY(database.execute("PRAGMA cache_size = -2048"));
  TRY(database.execute("PRAGMA cell_size_check = ON"));
  TRY(database.execute("PRAGMA temp_store = MEMORY"));
  return std::make_unique<Reader>(std::move(database));
}

base::Result<ReaderPool::Lease> ReaderPool::borrow() {
  {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [&] { return !idle_.empty() || opened_ < max_; });
    if (!idle_.empty()) {
      std::unique_ptr<Reader> reader = std::move(idle_.back());
      idle_.pop_back();
      return Lease(*this, std::move(reader));
    }
    ++opened_;
  }
  auto reader = open_reader();
  if (!reader) {
    const std::scoped_lock lock(mutex_);
    --opened_;
    returned_.notify_one();
    return std::unexpected(std::move(reader).error());
  }
  return Lease(*this, std::move(*reader));
}

void ReaderPool::give_back(std::unique_ptr<Reader> reader) {
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(reader));
  returned_.notify_one();
}

}  // namespace gpu_platform::store
