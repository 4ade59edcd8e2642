#pragma once
/// BackingStore in a file without a name, of at most a given size, in a directory of the user's choice: it is gone with
/// the process, however that ends. Slots are placed first fit; a released one's disk space goes back at once.

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "gmlake/swap/backing_store.hpp"

namespace gmlake::swap {

struct swap_file_options {
  char const* directory = "/tmp";  ///< on the disk that is to hold it; must allow unnamed files (`O_TMPFILE`)
  bytes capacity = 0;              ///< bytes that it may hold; 0: nothing
};

class swap_file {
 public:
  /// One that takes nothing.
  swap_file() noexcept = default;

  /// Returns `result<swap_file>`. Error: `driver_failure`, with `errno`.
  [[nodiscard]] static auto open(swap_file_options const& options) noexcept {
    using opened = result<swap_file>;  // named where the class is complete
    int const file = ::open(options.directory, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) return opened(failure(errc::driver_failure, "open: O_TMPFILE", errno));
    return opened(swap_file(file, options.capacity));
  }

  swap_file(swap_file&& o) noexcept
      : file_(std::exchange(o.file_, -1)),
        capacity_(std::exchange(o.capacity_, 0)),
        used_(std::exchange(o.used_, {})) {}
  swap_file& operator=(swap_file&& o) noexcept {
    std::swap(file_, o.file_);
    std::swap(capacity_, o.capacity_);
    std::swap(used_, o.used_);
    return *this;
  }
  ~swap_file() {
    if (file_ >= 0) ::close(file_);
  }

  [[nodiscard]] bytes capacity() const noexcept { return capacity_; }
  /// In slots now.
  [[nodiscard]] bytes used() const noexcept {
    bytes sum = 0;
    for (extent const& e : used_) sum += e.size;
    return sum;
  }

  /// Errors: `out_of_memory` (no gap of n bytes below the capacity, or the disk is full); `out_of_host_memory`;
  /// `driver_failure`, with `errno`. Linear in the slots.
  [[nodiscard]] result<slot> write(address from, bytes n) noexcept {
    bytes at = 0;
    auto before = used_.begin();
    for (; before != used_.end() && before->begin - at < n; ++before) at = before->begin + before->size;
    if (n > capacity_ || at > capacity_ - n) return failure(errc::out_of_memory, "swap file");
    try {
      before = used_.insert(before, {at, n});
    } catch (std::bad_alloc const&) {
      return failure(errc::out_of_host_memory, "swap file");
    }
    for (bytes done = 0; done < n;) {
      ssize_t const now = ::pwrite(file_, to_pointer(from + done), n - done, static_cast<off_t>(at + done));
      if (now > 0) {
        done += static_cast<bytes>(now);
      } else if (now == 0 || errno != EINTR) {
        int const code = now == 0 ? EIO : errno;
        used_.erase(before);
        punch(at, n);
        bool const full = code == ENOSPC || code == EDQUOT || code == EFBIG;
        return failure(full ? errc::out_of_memory : errc::driver_failure, "pwrite", code);
      }
    }
    return slot{at};
  }

  /// Errors: `driver_failure`, with `errno`, or `EIO` where the file has fewer bytes.
  [[nodiscard]] result<void> read(address to, slot from, bytes offset, bytes n) const noexcept {
    for (bytes done = 0; done < n;) {
      auto const at = static_cast<off_t>(static_cast<bytes>(from) + offset + done);
      ssize_t const now = ::pread(file_, to_pointer(to + done), n - done, at);
      if (now > 0) done += static_cast<bytes>(now);
      else if (now == 0 || errno != EINTR) return failure(errc::driver_failure, "pread", now == 0 ? EIO : errno);
    }
    return {};
  }

  void release(slot where, bytes n) noexcept {
    auto const at = static_cast<bytes>(where);
    std::erase_if(used_, [at](extent const& e) { return e.begin == at; });
    punch(at, n);
  }

 private:
  struct extent {
    bytes begin = 0;
    bytes size = 0;
  };

  swap_file(int file, bytes capacity) noexcept : file_(file), capacity_(capacity) {}

  /// Where the file system can't, the space is written over later.
  void punch(bytes at, bytes n) const noexcept {
    (void)::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at), static_cast<off_t>(n));
  }

  int file_ = -1;
  bytes capacity_ = 0;
  std::vector<extent> used_;  ///< by address
};
static_assert(BackingStore<swap_file>);

}  // namespace gmlake::swap
