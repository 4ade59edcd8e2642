#pragma once
/// Nodes of one type, carved from pages and recycled: constant time, addresses that never move, and `reserve`, so that
/// an operation can make sure of its nodes before it acts and then commit without failing. Constructing a node must not
/// throw.

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace gmlake {

template <class T>
  requires std::is_default_constructible_v<T> && std::is_nothrow_destructible_v<T>
class slab {
 public:
  slab() noexcept = default;
  slab(slab&& o) noexcept : pages_(o.pages_), free_(o.free_), spare_(o.spare_), used_(o.used_) { o.forget(); }
  slab& operator=(slab&&) = delete;
  /// Every node has been released.
  ~slab() {
    while (pages_ != nullptr) delete std::exchange(pages_, pages_->next);
  }

  /// Makes the next n acquisitions succeed. False for want of host memory.
  [[nodiscard]] bool reserve(std::size_t n) noexcept {
    if (spare_ >= n) [[likely]]
      return true;
    return add_pages(n);
  }

  /// A fresh node. Precondition: reserved.
  [[nodiscard]] T& acquire() noexcept {
    node* const n = free_;
    free_ = n->next;
    --spare_;
    ++used_;
    return *std::construct_at(&n->value);
  }

  void release(T& value) noexcept {
    std::destroy_at(&value);
    --used_;
    push(*reinterpret_cast<node*>(&value));
  }

  [[nodiscard]] std::size_t used() const noexcept { return used_; }

 private:
  union node {
    node() noexcept : next(nullptr) {}
    ~node() {}
    node* next;
    T value;
  };
  static constexpr std::size_t nodes_a_page = 256;
  struct page {
    page* next = nullptr;
    node nodes[nodes_a_page];
  };

  [[nodiscard, gnu::cold]] bool add_pages(std::size_t n) noexcept {
    while (spare_ < n) {
      page* const p = new (std::nothrow) page;
      if (p == nullptr) return false;
      p->next = pages_;
      pages_ = p;
      for (std::size_t i = nodes_a_page; i-- > 0;) push(p->nodes[i]);
    }
    return true;
  }

  void push(node& n) noexcept {
    n.next = free_;
    free_ = &n;
    ++spare_;
  }
  void forget() noexcept {
    pages_ = nullptr;
    free_ = nullptr;
    spare_ = used_ = 0;
  }

  page* pages_ = nullptr;
  node* free_ = nullptr;
  std::size_t spare_ = 0;
  std::size_t used_ = 0;
};

}  // namespace gmlake
