#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/check.h"

namespace gpu_platform::base {

// An ordered map from 64-bit keys to values, with cheap snapshots: freeze() returns an immutable
// copy in O(1), and the next write after it copies only the path it touches (one leaf pointer and
// about log16(n) inner nodes), never the whole.
//
// Ownership: the map owns its values; a snapshot shares them. Values reached through a snapshot
// never change. Thread: one writer; any number of threads may read the same snapshot without a
// lock. Cost: find, put and erase O(log16 n); iteration in key order.
template <class V>
class PersistentMap {
  static constexpr int kBits = 4;
  static constexpr std::size_t kFan = std::size_t{1} << kBits;
  static constexpr int kTopLevel = (64 + kBits - 1) / kBits - 1;

  struct Node {
    std::uint64_t epoch = 0;
    std::uint32_t used = 0;
    std::array<std::shared_ptr<void>, kFan> slots;  // Node above level 0, Leaf at level 0
  };
  struct Leaf {
    std::uint64_t epoch = 0;
    V value;
  };

 public:
  const V* find(std::uint64_t key) const {
    if (level_ < kTopLevel && (key >> (kBits * (level_ + 1))) != 0) return nullptr;
    const Node* node = root_.get();
    for (int level = level_; node != nullptr; --level) {
      const void* slot = node->slots[index(key, level)].get();
      if (level == 0) return slot == nullptr ? nullptr : &static_cast<const Leaf*>(slot)->value;
      node = static_cast<const Node*>(slot);
    }
    return nullptr;
  }

  // The value for writing; copied first when a snapshot still shares it. Null when absent.
  V* find_mutable(std::uint64_t key) {
    if (find(key) == nullptr) return nullptr;
    std::shared_ptr<void>& slot = writable_slot(key);
    auto leaf = std::static_pointer_cast<Leaf>(slot);
    if (leaf->epoch != epoch_) {
      leaf = std::make_shared<Leaf>(Leaf{epoch_, leaf->value});
      slot = leaf;
    }
    return &leaf->value;
  }

  // Inserts or replaces; returns the stored value.
  V& put(std::uint64_t key, V value) {
    const bool is_new = find(key) == nullptr;
    std::shared_ptr<void>& slot = writable_slot(key);
    auto leaf = std::make_shared<Leaf>(Leaf{epoch_, std::move(value)});
    V& stored = leaf->value;
    slot = std::move(leaf);
    size_ += is_new ? 1 : 0;
    return stored;
  }

  bool erase(std::uint64_t key) {
    if (find(key) == nullptr) return false;
    erase_below(root_, level_, key);
    if (root_ != nullptr && root_->used == 0) root_.reset();
    --size_;
    return true;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Calls visit(key, const V&) in ascending key order until it returns false.
  template <class Visit>
  void for_each_while(Visit&& visit) const {
    if (root_ != nullptr) walk(root_.get(), level_, 0, visit);
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for_each_while([&](std::uint64_t key, const V& value) {
      visit(key, value);
      return true;
    });
  }
  // The same in descending order.
  template <class Visit>
  void for_each_descending_while(Visit&& visit) const {
    if (root_ != nullptr) walk_down(root_.get(), level_, 0, visit);
  }

  // Calls visit(key, const V* before, const V* after) in ascending key order for everything that
  // may differ between two snapshots of one map: null where it was not, or is no longer, there.
  // What both share is not looked at, so the cost follows what was written between them.
  template <class Visit>
  static void for_each_difference(const PersistentMap& before, const PersistentMap& after,
                                  Visit&& visit) {
    const int level = std::max(before.level_, after.level_);
    compare(before.at_level(level).get(), after.at_level(level).get(), level, 0, visit);
  }

  // An immutable copy of the map as it is now.
  PersistentMap freeze() {
    PersistentMap copy(*this);
    ++epoch_;
    return copy;
  }

  friend bool operator==(const PersistentMap& a, const PersistentMap& b) {
    if (a.size_ != b.size_) return false;
    bool equal = true;
    a.for_each_while([&](std::uint64_t key, const V& value) {
      const V* other = b.find(key);
      equal = other != nullptr && (other == &value || *other == value);
      return equal;
    });
    return equal;
  }

 private:
  static std::size_t index(std::uint64_t key, int level) {
    return (key >> (kBits * level)) & (kFan - 1);
  }

  Node* own(std::shared_ptr<void>& slot, std::uint32_t& used) {
    auto node = std::static_pointer_cast<Node>(slot);
    if (node == nullptr) {
      node = std::make_shared<Node>();
      ++used;
    } else if (node->epoch != epoch_) {
      node = std::make_shared<Node>(*node);
    } else {
      return node.get();
    }
    node->epoch = epoch_;
    slot = node;
    return node.get();
  }

  // The slot of key in nodes that belong to this epoch alone, created if missing.
  std::shared_ptr<void>& writable_slot(std::uint64_t key) {
    while (level_ < kTopLevel && (key >> (kBits * (level_ + 1))) != 0) grow();
    std::shared_ptr<void> top = root_;
    std::uint32_t ignored = 0;
    Node* node = own(top, ignored);
    root_ = std::static_pointer_cast<Node>(top);
    for (int level = level_; level > 0; --level) {
      node = own(node->slots[index(key, level)], node->used);
    }
    std::shared_ptr<void>& slot = node->slots[index(key, 0)];
    if (slot == nullptr) ++node->used;
    return slot;
  }

  void grow() {
    if (root_ != nullptr) {
      auto above = std::make_shared<Node>();
      above->epoch = epoch_;
      above->used = 1;
      above->slots[0] = root_;
      root_ = above;
    }
    ++level_;
  }

  void erase_below(std::shared_ptr<Node>& node, int level, std::uint64_t key) {
    if (node->epoch != epoch_) {
      node = std::make_shared<Node>(*node);
      node->epoch = epoch_;
    }
    std::shared_ptr<void>& slot = node->slots[index(key, level)];
    if (level > 0) {
      auto child = std::static_pointer_cast<Node>(slot);
      slot.reset();
      erase_below(child, level - 1, key);
      if (child->used > 0) {
        slot = std::move(child);
        return;
      }
    }
    slot.reset();
    --node->used;
  }

  // The root as it would be if keys up to that level were there.
  std::shared_ptr<const Node> at_level(int level) const {
    std::shared_ptr<Node> top = root_;
    for (int i = level_; top != nullptr && i < level; ++i) {
      auto above = std::make_shared<Node>();
      above->slots[0] = top;
      top = std::move(above);
    }
    return top;
  }

  template <class Visit>
  static void compare(const void* before, const void* after, int level, std::uint64_t prefix,
                      Visit& visit) {
    if (before == after) return;
    const auto* a = static_cast<const Node*>(before);
    const auto* b = static_cast<const Node*>(after);
    for (std::size_t i = 0; i < kFan; ++i) {
      const void* in_a = a == nullptr ? nullptr : a->slots[i].get();
      const void* in_b = b == nullptr ? nullptr : b->slots[i].get();
      if (in_a == in_b) continue;
      const std::uint64_t key = prefix | (static_cast<std::uint64_t>(i) << (kBits * level));
      if (level > 0) {
        compare(in_a, in_b, level - 1, key, visit);
      } else {
        visit(key, in_a == nullptr ? nullptr : &static_cast<const Leaf*>(in_a)->value,
              in_b == nullptr ? nullptr : &static_cast<const Leaf*>(in_b)->value);
      }
    }
  }

  template <class Visit>
  static bool walk(const Node* node, int level, std::uint64_t prefix, Visit& visit) {
    for (std::size_t i = 0; i < kFan; ++i) {
      const void* slot = node->slots[i].get();
      if (slot == nullptr) continue;
      const std::uint64_t key = prefix | (static_cast<std::uint64_t>(i) << (kBits * level));
      const bool go_on = level == 0 ? visit(key, static_cast<const Leaf*>(slot)->value)
                                    : walk(static_cast<const Node*>(slot), level - 1, key, visit);
      if (!go_on) return false;
    }
    return true;
  }

  template <class Visit>
  static bool walk_down(const Node* node, int level, std::uint64_t prefix, Visit& visit) {
    for (std::size_t i = kFan; i-- > 0;) {
      const void* slot = node->slots[i].get();
      if (slot == nullptr) continue;
      const std::uint64_t key = prefix | (static_cast<std::uint64_t>(i) << (kBits * level));
      const bool go_on = level == 0
                             ? visit(key, static_cast<const Leaf*>(slot)->value)
                             : walk_down(static_cast<const Node*>(slot), level - 1, key, visit);
      if (!go_on) return false;
    }
    return true;
  }

  std::shared_ptr<Node> root_;
  int level_ = 0;  // of the root: a root at level L covers keys below 16^(L+1)
  std::size_t size_ = 0;
  std::uint64_t epoch_ = 1;
};

}  // namespace gpu_platform::base
