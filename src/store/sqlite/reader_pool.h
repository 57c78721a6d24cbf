#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/sqlite/database.h"

namespace gpu_platform::store {

// A read-only connection with its kept statements.
class Reader {
 public:
  explicit Reader(Database database) : database_(std::move(database)) {}

  // Valid until the next call.
  base::Result<Statement*> statement(const std::string& sql);
  // One of the caller's own, who ends it before the connection is given back.
  base::Result<Statement> prepare(std::string_view sql) const { return database_.prepare(sql); }

 private:
  Database database_;
  std::map<std::string, Statement, std::less<>> statements_;
};

// Up to `most` read-only connections to one database, opened when first needed. Safe from any
// thread; a borrower waits while all are lent. In WAL mode they never block the writer.
class ReaderPool {
 public:
  class Lease {
   public:
    Lease(ReaderPool& pool, std::unique_ptr<Reader> reader)
        : pool_(&pool), reader_(std::move(reader)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (reader_ != nullptr) pool_->give_back(std::move(reader_));
    }
    Reader* operator->() const { return reader_.get(); }

   private:
    ReaderPool* pool_;
    std::unique_ptr<Reader> reader_;
  };

  ReaderPool(std::string path, std::size_t most) : path_(std::move(path)), max_(most) {}

  base::Result<Lease> borrow();

 private:
  base::Result<std::unique_ptr<Reader>> open_reader() const;
  void give_back(std::unique_ptr<Reader> reader);

  const std::string path_;
  const std::size_t max_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Reader>> idle_;  // guarded by mutex_
  std::size_t opened_ = 0;                     // guarded by mutex_
};

}  // namespace gpu_platform::store
