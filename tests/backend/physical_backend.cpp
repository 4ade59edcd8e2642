/// A class that lacks one requirement of the concepts, or gets one wrong, does not model them.

#include "gmlake/backend/physical_backend.hpp"

#include <cstdint>

namespace gmlake {
namespace {

struct model {
  bytes granularity() const noexcept;
  result<handle> create(bytes) noexcept;
  result<void> release(handle) noexcept;
  result<address> reserve(bytes, bytes) noexcept;
  result<void> unreserve(address, bytes) noexcept;
  result<void> map(address, bytes, handle) noexcept;
  result<void> unmap(address, bytes) noexcept;
  result<void> set_access(address, bytes, access) noexcept;
  result<void> write(address, std::span<std::byte const>) noexcept;
  result<void> read(std::span<std::byte>, address) noexcept;
  std::chrono::nanoseconds now() const noexcept;
};
static_assert(PhysicalBackend<model> && CopyingBackend<model> && ClockedBackend<model>);

struct immovable : model {
  immovable(immovable&&) = delete;
};
static_assert(!PhysicalBackend<immovable>);

// granularity
struct no_granularity : model {
  bytes granularity() const noexcept = delete;
};
struct throwing_granularity : model {
  bytes granularity() const;
};
struct mutable_granularity : model {
  bytes granularity() noexcept;
};
struct narrow_granularity : model {
  unsigned granularity() const noexcept;
};
static_assert(!PhysicalBackend<no_granularity> && !PhysicalBackend<throwing_granularity>);
static_assert(!PhysicalBackend<mutable_granularity> && !PhysicalBackend<narrow_granularity>);

// create
struct no_create : model {
  result<handle> create(bytes) noexcept = delete;
};
struct throwing_create : model {
  result<handle> create(bytes);
};
struct bare_create : model {
  handle create(bytes) noexcept;
};
static_assert(!PhysicalBackend<no_create> && !PhysicalBackend<throwing_create> && !PhysicalBackend<bare_create>);

// release
struct no_release : model {
  result<void> release(handle) noexcept = delete;
};
struct throwing_release : model {
  result<void> release(handle);
};
struct silent_release : model {
  void release(handle) noexcept;
};
struct numbered_release : model {
  result<void> release(std::uint64_t) noexcept;
};
static_assert(!PhysicalBackend<no_release> && !PhysicalBackend<throwing_release>);
static_assert(!PhysicalBackend<silent_release> && !PhysicalBackend<numbered_release>);

// reserve
struct no_reserve : model {
  result<address> reserve(bytes, bytes) noexcept = delete;
};
struct throwing_reserve : model {
  result<address> reserve(bytes, bytes);
};
struct unaligned_reserve : model {
  result<address> reserve(bytes) noexcept;
};
struct pointer_reserve : model {
  result<void*> reserve(bytes, bytes) noexcept;
};
static_assert(!PhysicalBackend<no_reserve> && !PhysicalBackend<throwing_reserve>);
static_assert(!PhysicalBackend<unaligned_reserve> && !PhysicalBackend<pointer_reserve>);

// unreserve
struct no_unreserve : model {
  result<void> unreserve(address, bytes) noexcept = delete;
};
struct throwing_unreserve : model {
  result<void> unreserve(address, bytes);
};
struct silent_unreserve : model {
  void unreserve(address, bytes) noexcept;
};
static_assert(!PhysicalBackend<no_unreserve> && !PhysicalBackend<throwing_unreserve>);
static_assert(!PhysicalBackend<silent_unreserve>);

// map
struct no_map : model {
  result<void> map(address, bytes, handle) noexcept = delete;
};
struct throwing_map : model {
  result<void> map(address, bytes, handle);
};
struct silent_map : model {
  void map(address, bytes, handle) noexcept;
};
static_assert(!PhysicalBackend<no_map> && !PhysicalBackend<throwing_map> && !PhysicalBackend<silent_map>);

// unmap
struct no_unmap : model {
  result<void> unmap(address, bytes) noexcept = delete;
};
struct throwing_unmap : model {
  result<void> unmap(address, bytes);
};
struct silent_unmap : model {
  void unmap(address, bytes) noexcept;
};
static_assert(!PhysicalBackend<no_unmap> && !PhysicalBackend<throwing_unmap> && !PhysicalBackend<silent_unmap>);

// set_access
struct no_set_access : model {
  result<void> set_access(address, bytes, access) noexcept = delete;
};
struct throwing_set_access : model {
  result<void> set_access(address, bytes, access);
};
struct silent_set_access : model {
  void set_access(address, bytes, access) noexcept;
};
static_assert(!PhysicalBackend<no_set_access> && !PhysicalBackend<throwing_set_access>);
static_assert(!PhysicalBackend<silent_set_access>);

// The refinements: without them it is a backend still.
struct no_write : model {
  result<void> write(address, std::span<std::byte const>) noexcept = delete;
};
struct throwing_write : model {
  result<void> write(address, std::span<std::byte const>);
};
struct no_read : model {
  result<void> read(std::span<std::byte>, address) noexcept = delete;
};
struct throwing_read : model {
  result<void> read(std::span<std::byte>, address);
};
static_assert(PhysicalBackend<no_write> && !CopyingBackend<no_write> && !CopyingBackend<throwing_write>);
static_assert(PhysicalBackend<no_read> && !CopyingBackend<no_read> && !CopyingBackend<throwing_read>);

struct no_clock : model {
  std::chrono::nanoseconds now() const noexcept = delete;
};
struct throwing_clock : model {
  std::chrono::nanoseconds now() const;
};
struct coarse_clock : model {
  std::chrono::milliseconds now() const noexcept;
};
static_assert(PhysicalBackend<no_clock> && !ClockedBackend<no_clock>);
static_assert(!ClockedBackend<throwing_clock> && !ClockedBackend<coarse_clock>);

}  // namespace
}  // namespace gmlake
