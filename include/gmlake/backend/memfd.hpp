#pragma once
/// Host memory under the driver's rules: real pages, mapped at several addresses at once (Linux).
///
/// All handles are extents of one anonymous file, so that their number is not bounded by file descriptors. The file's
/// offsets only grow: a release punches a hole, which gives the pages back, and costs no offset that would be missed.
/// What is reserved and not mapped is inaccessible. Pages are taken when first touched, not when created.
/// The kernel bounds the mappings of a process (`vm.max_map_count`, 65,530 by default).

#ifndef __linux__
#error "gmlake/backend/memfd.hpp needs Linux"
#endif

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gmlake/backend/mapping_ledger.hpp"
#include "gmlake/backend/physical_backend.hpp"

namespace gmlake {

struct memfd_options {
  static constexpr bytes unlimited = std::numeric_limits<bytes>::max();

  bytes granularity = 64_KiB;  ///< a power of two, at least the page size
  bytes capacity = unlimited;  ///< bytes that can be created at once; host memory is the bound where there is none
};

/// What is still reserved when it is destroyed is unmapped.
class memfd {
 public:
  /// Returns `result<memfd>`. Errors: `invalid_argument` (the granularity), `driver_failure` (with `errno`).
  [[nodiscard]] static auto open(memfd_options const& options = {}) noexcept {
    using opened = result<memfd>;  // named where the class is complete
    auto const page = static_cast<bytes>(::sysconf(_SC_PAGESIZE));
    if (!std::has_single_bit(options.granularity) || options.granularity < page) {
      return opened(failure(errc::invalid_argument, "memfd: granularity"));
    }
    int const file = ::memfd_create("gmlake", MFD_CLOEXEC);
    if (file < 0) return opened(failure(errc::driver_failure, "memfd_create", errno));
    return opened(memfd(options, file));
  }

  memfd(memfd&& o) noexcept
      : capacity_(o.capacity_), file_(std::exchange(o.file_, -1)), end_(o.end_), ledger_(std::move(o.ledger_)) {}
  memfd& operator=(memfd&& o) noexcept {
    std::swap(capacity_, o.capacity_);
    std::swap(file_, o.file_);
    std::swap(end_, o.end_);
    std::swap(ledger_, o.ledger_);
    return *this;
  }
  ~memfd() {
    if (file_ < 0) return;
    ledger_.for_each_reservation([](address base, bytes n) { ::munmap(to_pointer(base), n); });
    ::close(file_);
  }

  [[nodiscard]] bytes granularity() const noexcept { return ledger_.granule(); }

  [[nodiscard]] result<handle> create(bytes n) noexcept {
    if (auto ok = ledger_.check_size(n, "create: size"); !ok) return failure(ok.error());
    bytes const used = ledger_.created();
    if (used > capacity_ || n > capacity_ - used || n > largest_offset - end_) {
      return failure(errc::out_of_memory, "create");
    }
    auto h = ledger_.create(n, end_);
    if (!h) return h;
    if (::ftruncate(file_, static_cast<off_t>(end_ + n)) != 0) {
      int const code = errno;
      ledger_.release(*h);
      return failure(errc::out_of_memory, "ftruncate", code);
    }
    end_ += n;
    return h;
  }

  [[nodiscard]] result<void> release(handle h) noexcept {
    if (auto ok = ledger_.check_release(h); !ok) return ok;
    if (::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(ledger_.note_of(h)),
                    static_cast<off_t>(ledger_.size_of(h))) != 0) {
      return failure(errc::driver_failure, "fallocate", errno);
    }
    ledger_.release(h);
    return {};
  }

  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    if (auto ok = ledger_.check_reserve(n, alignment); !ok) return failure(ok.error());
    bytes const wanted = std::max(alignment, granularity());
    if (n > std::numeric_limits<bytes>::max() - wanted) return failure(errc::out_of_addresses, "reserve");
    void* const p = ::mmap(nullptr, n + wanted, PROT_NONE, inaccessible, -1, 0);
    if (p == MAP_FAILED) return failure(errc::out_of_addresses, "mmap", errno);

    address const base = align_up(to_address(p), wanted);
    if (bytes const before = base - to_address(p); before != 0) ::munmap(p, before);
    if (bytes const after = wanted - (base - to_address(p)); after != 0) ::munmap(to_pointer(base + n), after);
    if (auto ok = ledger_.reserve(base, n); !ok) {
      ::munmap(to_pointer(base), n);
      return failure(ok.error());
    }
    return base;
  }

  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept {
    if (auto ok = ledger_.check_unreserve(va, n); !ok) return ok;
    if (::munmap(to_pointer(va), n) != 0) return failure(errc::driver_failure, "munmap", errno);
    ledger_.unreserve(va, n);
    return {};
  }

  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept {
    if (auto ok = ledger_.check_map(va, n, h); !ok) return ok;
    auto const offset = static_cast<off_t>(ledger_.note_of(h));
    if (::mmap(to_pointer(va), n, PROT_NONE, MAP_SHARED | MAP_FIXED, file_, offset) == MAP_FAILED) {
      return failure(errc::driver_failure, "mmap", errno);
    }
    ledger_.map(va, n, h);
    return {};
  }

  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept {
    if (auto ok = ledger_.check_unmap(va, n); !ok) return ok;
    if (::mmap(to_pointer(va), n, PROT_NONE, inaccessible | MAP_FIXED, -1, 0) == MAP_FAILED) {
      return failure(errc::driver_failure, "mmap", errno);
    }
    ledger_.unmap(va, n);
    return {};
  }

  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    if (auto ok = ledger_.check_set_access(va, n); !ok) return ok;
    if (::mprotect(to_pointer(va), n, protection(a)) != 0) return failure(errc::driver_failure, "mprotect", errno);
    ledger_.set_access(va, n, a);
    return {};
  }

  /// Errors: `invalid_argument` where a byte is not mapped or its mapping may not be written.
  [[nodiscard]] result<void> write(address va, std::span<std::byte const> from) noexcept {
    if (auto ok = ledger_.check_copy(va, from.size(), access::read_write, "write: no access"); !ok) return ok;
    if (!from.empty()) std::memcpy(to_pointer(va), from.data(), from.size());
    return {};
  }
  /// Errors: `invalid_argument` where a byte is not mapped or its mapping may not be read.
  [[nodiscard]] result<void> read(std::span<std::byte> to, address va) noexcept {
    if (auto ok = ledger_.check_copy(va, to.size(), access::read, "read: no access"); !ok) return ok;
    if (!to.empty()) std::memcpy(to.data(), to_pointer(va), to.size());
    return {};
  }

  /// As when other processes take memory or give it back. Below what is created already, the next `create` fails.
  void set_capacity(bytes n) noexcept { capacity_ = n; }
  [[nodiscard]] bytes capacity() const noexcept { return capacity_; }

  [[nodiscard]] bytes live_handles() const noexcept { return ledger_.live_handles(); }
  [[nodiscard]] bytes created_bytes() const noexcept { return ledger_.created(); }
  [[nodiscard]] bytes reservations() const noexcept { return ledger_.reservations(); }
  [[nodiscard]] bytes reserved_bytes() const noexcept { return ledger_.reserved(); }
  [[nodiscard]] bytes mappings() const noexcept { return ledger_.mappings(); }
  /// Nothing is held: every handle was released, every range given back.
  [[nodiscard]] bool idle() const noexcept { return ledger_.idle(); }

 private:
  static constexpr int inaccessible = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  static constexpr bytes largest_offset = bytes{1} << 62;  ///< within what off_t and the kernel's page cache address

  memfd(memfd_options const& options, int file) noexcept
      : capacity_(options.capacity), file_(file), ledger_(options.granularity) {}

  [[nodiscard]] static int protection(access a) noexcept {
    switch (a) {
      case access::none: return PROT_NONE;
      case access::read: return PROT_READ;
      case access::read_write: return PROT_READ | PROT_WRITE;
    }
    return PROT_NONE;
  }

  bytes capacity_;
  int file_;
  bytes end_ = 0;  ///< the file's size; where the next handle begins
  mapping_ledger ledger_;
};
static_assert(PhysicalBackend<memfd> && CopyingBackend<memfd>);

}  // namespace gmlake
