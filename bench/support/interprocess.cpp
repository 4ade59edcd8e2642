#include "bench/support/interprocess.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>
#include <sys/mman.h>

namespace gmlake::bench {
namespace {

using segment = boost::interprocess::rbtree_best_fit<boost::interprocess::null_mutex_family>;
constexpr std::size_t segment_size = std::size_t{256} << 30;  // addresses; Linux backs what is touched

/// The segment's own books lie at its beginning.
segment& at(void* p) noexcept { return *static_cast<segment*>(p); }

}  // namespace

interprocess::interprocess() noexcept
    : segment_(
          ::mmap(nullptr, segment_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
  if (segment_ == MAP_FAILED) {
    std::perror("mmap");
    std::exit(EXIT_FAILURE);
  }
  new (segment_) segment(segment_size, 0);
}
interprocess::~interprocess() { ::munmap(segment_, segment_size); }

void* interprocess::allocate(std::size_t n) noexcept {
  void* const p = at(segment_).allocate(n);
  if (p != nullptr) {
    held_ = std::max(held_, static_cast<std::size_t>(static_cast<char*>(p) - static_cast<char*>(segment_)) + n);
  }
  return p;
}
void interprocess::deallocate(void* p) noexcept { at(segment_).deallocate(p); }

}  // namespace gmlake::bench
