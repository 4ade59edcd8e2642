#pragma once
/// Blocks shared between processes of one machine: a name for the chunks beneath a block, which another process turns
/// into a mapping of its own.
///
/// A name holds the owner's process id and, for each chunk, its size and a file descriptor of the owner's, which the
/// other process fetches with `pidfd_getfd` (Linux 5.6; it must be allowed to trace the owner, as PyTorch's expandable
/// segments need too). Descriptors are kept for as long as their chunk exists: they would keep its memory otherwise.

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include <sys/syscall.h>
#include <unistd.h>

#include "gmlake/adapter/torch_process.hpp"

namespace gmlake {

class torch_sharing final : public torch_listener {
 public:
  struct shared_block {
    std::string name;
    bytes offset = 0;  ///< of the block in what the name stands for
  };

  [[nodiscard]] static torch_sharing& get() {
    static auto& one = *new torch_sharing;
    return one;
  }

  /// Throws `torch_failure`.
  [[nodiscard]] shared_block share(void* p) {
    torch_registry::owner const o = torch_process::get().owner(p);
    // What other processes map stays where it is until it is freed.
    if (torch_swapper* const swapper = o.device != nullptr ? o.device->swapper() : nullptr) {
      if (result<void> pinned = swapper->pin(to_address(p), stream{}); !pinned) {
        throw torch_failure(describe(pinned.error()));
      }
    }
    torch_pieces pieces;
    bool const live =
        o.pool != nullptr && o.pool->look_at(to_address(p), [&](block const& b, stream) { pieces = pieces_of(b); });
    if (!live) throw torch_failure("gmlake: only whole blocks of the pool can be shared between processes");
    o.device->listen(torch_audience::sharing, this);
    shared_block out{.name = magic, .offset = pieces.offset};
    put(out.name, static_cast<std::uint64_t>(::getpid()));
    put(out.name, pieces.chunks.size());
    for (torch_pieces::piece const& c : pieces.chunks) {
      put(out.name, c.size);
      put(out.name, static_cast<std::uint64_t>(descriptor(*o.pool, c)));
    }
    return out;
  }

  /// The shared memory in this process, for the given device, until the last copy of the pointer is gone. Throws
  /// `torch_failure`.
  [[nodiscard]] std::shared_ptr<void> open(std::string const& name, int device) {
    std::scoped_lock const lock(mutex_);
    std::weak_ptr<void>& known = opened_[{device, name}];
    if (std::shared_ptr<void> mapped = known.lock()) return mapped;
    std::shared_ptr<void> mapped = map(name, device);
    known = mapped;
    std::erase_if(opened_, [](auto const& o) { return o.second.expired(); });
    return mapped;
  }

  void allocated(block_event const&) noexcept override {}
  void deallocated(block_event const&) noexcept override {}
  void created(address, bytes) noexcept override {}
  void released(address home, bytes) noexcept override {
    std::scoped_lock const lock(mutex_);
    auto const known = descriptors_.find(to_integer(home));
    if (known == descriptors_.end()) return;
    ::close(known->second);
    descriptors_.erase(known);
  }

 private:
  static constexpr char magic[] = "gmlake-1:";

  static void put(std::string& out, std::uint64_t n) { out.append(reinterpret_cast<char const*>(&n), sizeof n); }

  [[nodiscard]] int descriptor(torch_pool& pool, torch_pieces::piece const& p) {
    std::scoped_lock const lock(mutex_);
    auto const known = descriptors_.find(to_integer(p.home));
    if (known != descriptors_.end()) return known->second;
    result<int> const fd = pool.export_fd(p.memory);
    if (!fd) throw torch_failure(describe(fd.error()));
    descriptors_.emplace(to_integer(p.home), *fd);
    return *fd;
  }

  /// Chunks mapped side by side, taken down again by the destructor.
  struct mapping {
    cuda_vmm memory;
    address at{};
    bytes reserved = 0;
    bytes mapped = 0;

    explicit mapping(cuda_vmm&& m) noexcept : memory(std::move(m)) {}
    mapping(mapping const&) = delete;
    mapping& operator=(mapping const&) = delete;
    ~mapping() {
      if (torch_process::get().forked()) return;
      if (mapped > 0) static_cast<void>(memory.unmap(at, mapped));
      if (reserved > 0) static_cast<void>(memory.unreserve(at, reserved));
    }
  };

  [[nodiscard]] std::shared_ptr<void> map(std::string const& name, int device) {
    std::string_view rest = name;
    if (!rest.starts_with(magic)) throw torch_failure("gmlake: the other process's memory is not gmlake's");
    rest.remove_prefix(sizeof magic - 1);
    auto const take = [&rest] {
      std::uint64_t n = 0;
      if (rest.size() < sizeof n) throw torch_failure("gmlake: the name of shared memory is cut short");
      std::memcpy(&n, rest.data(), sizeof n);
      rest.remove_prefix(sizeof n);
      return n;
    };
    auto const owner = static_cast<pid_t>(take());
    std::size_t const count = take();
    if (rest.size() != count * 2 * sizeof(std::uint64_t)) {
      throw torch_failure("gmlake: the name of shared memory is damaged");
    }
    auto opened = cuda_vmm::open({.device = device});
    if (!opened) throw torch_failure(describe(opened.error()));
    auto events = cuda_events::open({.device = device});
    if (!events) throw torch_failure(describe(events.error()));

    struct chunk_name {
      bytes size;
      int fd;
    };
    std::vector<chunk_name> chunks(count);
    bytes total = 0;
    for (chunk_name& c : chunks) {
      c.size = take();
      c.fd = static_cast<int>(take());
      total += c.size;
    }
    descriptor_guard const process(static_cast<int>(::syscall(SYS_pidfd_open, owner, 0)), "pidfd_open");
    auto m = std::make_shared<mapping>(std::move(*opened));
    result<address> const at = m->memory.reserve(total, 0);
    if (!at) throw torch_failure(describe(at.error()));
    m->at = *at;
    m->reserved = total;
    for (chunk_name const& c : chunks) {
      descriptor_guard const fd(static_cast<int>(::syscall(SYS_pidfd_getfd, process.fd, c.fd, 0)), "pidfd_getfd");
      result<handle> const h = m->memory.import_fd(fd.fd);
      if (!h) throw torch_failure(describe(h.error()));
      result<void> const done = m->memory.map(m->at + m->mapped, c.size, *h);
      static_cast<void>(m->memory.release(*h));  // the mapping keeps the memory
      if (!done) throw torch_failure(describe(done.error()));
      m->mapped += c.size;
    }
    result<void> const done = m->memory.set_access(m->at, total, access::read_write);
    if (!done) throw torch_failure(describe(done.error()));
    void* const view = to_pointer(m->at);
    // Work that this process has queued may still use the memory when the last tensor goes.
    auto sync = std::make_shared<cuda_events>(std::move(*events));
    return std::shared_ptr<void>(view, [m, sync](void*) mutable {
      // Where it can't be waited for, as while a graph is being captured, the mapping stays: kernels may run on it.
      bool const over = torch_process::get().forked() || sync->synchronize_device();
      if (!over) static_cast<void>(new std::shared_ptr<mapping>(m));
      m.reset();
    });
  }

  struct descriptor_guard {
    int fd;
    descriptor_guard(int got, char const* call) : fd(got) {
      if (fd < 0) {
        throw torch_failure(std::string("gmlake: ") + call + ": " + std::strerror(errno) +
                            " (sharing memory needs the right to trace the other process)");
      }
    }
    descriptor_guard(descriptor_guard const&) = delete;
    descriptor_guard& operator=(descriptor_guard const&) = delete;
    ~descriptor_guard() { ::close(fd); }
  };

  std::mutex mutex_;
  std::unordered_map<std::uintptr_t, int> descriptors_;  ///< by the chunk's home
  std::map<std::pair<int, std::string>, std::weak_ptr<void>> opened_;
};

}  // namespace gmlake
