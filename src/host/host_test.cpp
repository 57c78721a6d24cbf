#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "host/slow_calls.h"
#include "host/user_directory.h"

namespace gpu_platform::host {
namespace {

constexpr std::chrono::seconds kLong{60};

SlowCalls::Limits within(std::chrono::milliseconds deadline) {
  SlowCalls::Limits limits;
  limits.deadline = deadline;
  return limits;
}

// Holds calls until it is opened, as a server that does not answer does.
class Door {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++came_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void wait_for(std::size_t came) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return came_ >= came; });
  }
  std::size_t came() {
    const std::lock_guard lock(mutex_);
    return came_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t came_ = 0;
  bool is_open_ = false;
};

using Number = base::Result<int>;

std::future<Number> ask(SlowCalls& calls, std::uint32_t user, std::function<Number()> question) {
  auto answer = std::make_shared<std::promise<Number>>();
  auto future = answer->get_future();
  calls.ask<int>(user, std::move(question),
                 [answer](Number number) { answer->set_value(std::move(number)); });
  return future;
}

TEST(SlowCalls, GiveTheAnswerOfTheWork) {
  SlowCalls calls("the disk", within(kLong));
  EXPECT_EQ(ask(calls, 1, [] { return Number(42); }).get(), 42);
  EXPECT_EQ(ask(calls, 1, [] { return Number(base::fail(base::ErrorCode::kNotFound, "x")); })
                .get()
                .error()
                .message,
            "x");
}

TEST(SlowCalls, WhatHangsIsAnsweredAtTheDeadline) {
  const auto door = std::make_shared<Door>();
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  SlowCalls calls("the disk", within(std::chrono::milliseconds(20)));
  const Number answer = ask(calls, 1, [door] {
                          door->pass();
                          return Number(1);
                        }).get();
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, base::ErrorCode::kUnavailable);
  EXPECT_EQ(answer.error().message, "the disk does not answer; try again in a moment");
  door->open();
}

TEST(SlowCalls, WhatHangsForOneUserKeepsNoOtherWaiting) {
  const auto door = std::make_shared<Door>();
  SlowCalls::Limits limits = within(kLong);
  limits.threads = 3;
  limits.of_user = 2;
  SlowCalls calls("the disk", limits);
  std::vector<std::future<Number>> hanging;
  for (int i = 0; i < 10; ++i) {
    hanging.push_back(ask(calls, 1, [door] {
      door->pass();
      return Number(1);
    }));
  }
  door->wait_for(2);
  EXPECT_EQ(ask(calls, 2, [] { return Number(2); }).get(), 2);
  EXPECT_EQ(door->came(), 2U) << "no more threads than a user may have";
  door->open();
  for (auto& answer : hanging) EXPECT_EQ(answer.get(), 1) << "those that waited have their turn";
}

TEST(SlowCalls, CallsThatComeTogetherHaveAThreadEach) {
  for (int round = 0; round < 50; ++round) {
    SlowCalls calls("the disk", within(kLong));
    EXPECT_EQ(ask(calls, 1, [] { return Number(1); }).get(), 1);  // leaves an idle thread
    const auto door = std::make_shared<Door>();
    auto hanging = ask(calls, 1, [door] {
      door->pass();
      return Number(1);
    });
    EXPECT_EQ(ask(calls, 2, [] { return Number(2); }).get(), 2);
    door->open();
    EXPECT_EQ(hanging.get(), 1);
  }
}

TEST(SlowCalls, SoMuchMayWaitForAUserAndInAll) {
  const auto door = std::make_shared<Door>();
  SlowCalls::Limits limits = within(kLong);
  limits.threads = 1;
  limits.waiting_of_user = 2;
  limits.waiting = 3;
  SlowCalls calls("the disk", limits);
  const auto hang = [door] {
    door->pass();
    return Number(1);
  };
  std::vector<std::future<Number>> taken;
  taken.push_back(ask(calls, 1, hang));
  door->wait_for(1);
  taken.push_back(ask(calls, 1, hang));
  taken.push_back(ask(calls, 1, hang));
  const Number refused = ask(calls, 1, hang).get();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kResourceExhausted);
  taken.push_back(ask(calls, 2, hang));
  EXPECT_FALSE(ask(calls, 3, hang).get().has_value());
  door->open();
  for (auto& answer : taken) EXPECT_EQ(answer.get(), 1);
}

TEST(SlowCalls, EndWhileOneHangs) {
  const auto door = std::make_shared<Door>();
  const auto is_answered = std::make_shared<std::atomic<bool>>(false);
  {
    SlowCalls calls("the disk", within(kLong));
    calls.run(1, [door] { door->pass(); }, [is_answered](const auto&) { *is_answered = true; });
    door->wait_for(1);
  }
  door->open();
  EXPECT_FALSE(*is_answered) << "the caller is gone";
}

// Users 1000 (ada) and 1001 (bob); calls about those in `hanging` wait at the door.
class FakeUsers final : public UserDatabase {
 public:
  base::Result<User> find(std::uint32_t uid) const override {
    ++asked;
    if (hanging.contains(uid)) door.pass();
    if (uid == 1000) return ada;
    if (uid == 1001) return bob;
    return base::fail(base::ErrorCode::kNotFound, "no such user");
  }
  base::Result<User> find(const std::string& name) const override {
    ++asked;
    if (name == "ada") return ada;
    return base::fail(base::ErrorCode::kNotFound, "no such user");
  }
  const User ada{"ada", 1000, 1000, "/home/ada", "/bin/sh"};
  const User bob{"bob", 1001, 1001, "/home/bob", "/bin/sh"};
  std::set<std::uint32_t> hanging;
  mutable Door door;
  mutable std::atomic<int> asked = 0;
};

class Directory : public testing::Test {
 protected:
  UserName name_of(UserDirectory& directory, std::uint32_t uid) {
    const auto name = std::make_shared<std::promise<UserName>>();
    directory.name_of(uid, [name](UserName found) { name->set_value(std::move(found)); });
    return name->get_future().get();
  }

  std::shared_ptr<FakeUsers> users_ = std::make_shared<FakeUsers>();
};

TEST_F(Directory, RemembersNames) {
  UserDirectory directory(users_, within(kLong));
  EXPECT_EQ(name_of(directory, 1000), (UserName{"ada", true}));
  EXPECT_EQ(name_of(directory, 1000), (UserName{"ada", true}));
  EXPECT_EQ(directory.name_now(1000), (UserName{"ada", true}));
  EXPECT_EQ(users_->asked, 1);
}

TEST_F(Directory, ANumberIsTheNameOfWhomTheSystemDoesNotKnow) {
  UserDirectory directory(users_, within(kLong));
  EXPECT_EQ(name_of(directory, 4711), (UserName{"4711", true, false}));
  EXPECT_EQ(name_of(directory, 4711), (UserName{"4711", true, false}));
  EXPECT_EQ(users_->asked, 1) << "that there is none is remembered too";
}

TEST_F(Directory, ADatabaseThatHangsForOneNameHidesNoOther) {
  users_->hanging = {1001};
  // In which the other is answered, and all are asked for.
  UserDirectory directory(users_, within(std::chrono::seconds(3)));
  std::vector<std::future<UserName>> waiting;
  for (int i = 0; i < 100; ++i) {
    const auto name = std::make_shared<std::promise<UserName>>();
    waiting.push_back(name->get_future());
    directory.name_of(1001, [name](UserName found) { name->set_value(std::move(found)); });
  }
  EXPECT_EQ(name_of(directory, 1000), (UserName{"ada", true}));
  for (auto& name : waiting) EXPECT_EQ(name.get(), (UserName{"1001", false}));
  EXPECT_EQ(users_->door.came(), 1U) << "one question for all equal calls";
  EXPECT_EQ(directory.name_now(1001), (UserName{"1001", false}));
  users_->door.open();
}

TEST_F(Directory, RootIsNeverAskedFor) {
  users_->hanging = {0};
  UserDirectory directory(users_, within(kLong));
  EXPECT_EQ(name_of(directory, 0), (UserName{"root", true}));
  EXPECT_EQ(directory.name_now(0), (UserName{"root", true}));
  EXPECT_EQ(users_->asked, 0);
}

TEST_F(Directory, FindsUsersByTheirNames) {
  UserDirectory directory(users_, within(kLong));
  const auto find = [&](const std::string& name) {
    const auto user = std::make_shared<std::promise<base::Result<User>>>();
    directory.find(name, 0, [user](base::Result<User> found) { user->set_value(found); });
    return user->get_future().get();
  };
  EXPECT_EQ(find("ada"), users_->ada);
  EXPECT_EQ(find("eve").error().code, base::ErrorCode::kNotFound);
}

TEST_F(Directory, TellsWhenAUserIsKnown) {
  UserDirectory directory(users_, within(kLong));
  std::latch known(1);
  EXPECT_FALSE(directory.user_now(1000, [&] { known.count_down(); }).has_value());
  known.wait();
  const auto user = directory.user_now(1000, [] {});
  ASSERT_TRUE(user.has_value() && user->has_value());
  EXPECT_EQ(**user, users_->ada);
}

TEST_F(Directory, KnowsTheSystemsUsers) {
  UserDirectory directory;
  EXPECT_EQ(name_of(directory, 1), (UserName{"daemon", true}));
}

}  // namespace
}  // namespace gpu_platform::host
