#include "gmlake/core/null_mutex.hpp"

#include <mutex>
#include <shared_mutex>

#include <doctest/doctest.h>

namespace {
using namespace gmlake;

static_assert(Mutex<std::mutex> && Mutex<std::recursive_mutex> && Mutex<std::shared_mutex>);

// A class that lacks one requirement of the concept does not model it.
struct model {
  void lock();
  void unlock();
};
static_assert(Mutex<model>);
struct no_lock {
  void unlock();
};
struct no_unlock {
  void lock();
};
struct unbuildable : model {
  explicit unbuildable(int);
};
static_assert(!Mutex<no_lock> && !Mutex<no_unlock> && !Mutex<unbuildable> && !Mutex<int>);

TEST_CASE("a null mutex can be locked any number of times") {
  null_mutex m;
  std::scoped_lock const outer(m);
  std::scoped_lock const inner(m);
}

}  // namespace
