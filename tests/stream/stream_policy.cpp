/// A class that lacks one requirement of the concept, or gets one wrong, does not model it.

#include "gmlake/stream/stream_policy.hpp"

using namespace gmlake;

namespace {

struct model {
  struct fence {};
  bool concurrent() const noexcept;
  result<fence> record(stream) noexcept;
  result<bool> reached(fence&) noexcept;
  result<void> wait(stream, fence&) noexcept;
  result<void> synchronize(fence&) noexcept;
  result<void> synchronize_device() noexcept;
  void release(fence&) noexcept;
};
static_assert(StreamPolicy<model>);

struct immovable : model {
  immovable(immovable&&) = delete;
};
static_assert(!StreamPolicy<immovable>);

struct no_fence {
  bool concurrent() const noexcept;
  result<int> record(stream) noexcept;
  result<bool> reached(int&) noexcept;
  result<void> wait(stream, int&) noexcept;
  result<void> synchronize(int&) noexcept;
  result<void> synchronize_device() noexcept;
  void release(int&) noexcept;
};
static_assert(!StreamPolicy<no_fence>);
struct named_fence : no_fence {
  using fence = int;
};
static_assert(StreamPolicy<named_fence>);

struct no_concurrent : model {
  bool concurrent() const noexcept = delete;
};
struct throwing_concurrent : model {
  bool concurrent() const;
};
struct mutable_concurrent : model {
  bool concurrent() noexcept;
};
struct counted_concurrent : model {
  int concurrent() const noexcept;
};
static_assert(!StreamPolicy<no_concurrent> && !StreamPolicy<throwing_concurrent>);
static_assert(!StreamPolicy<mutable_concurrent> && !StreamPolicy<counted_concurrent>);

struct no_record : model {
  result<fence> record(stream) noexcept = delete;
};
struct throwing_record : model {
  result<fence> record(stream);
};
struct bare_record : model {
  fence record(stream) noexcept;
};
static_assert(!StreamPolicy<no_record> && !StreamPolicy<throwing_record> && !StreamPolicy<bare_record>);

struct no_reached : model {
  result<bool> reached(fence&) noexcept = delete;
};
struct throwing_reached : model {
  result<bool> reached(fence&);
};
struct bare_reached : model {
  bool reached(fence&) noexcept;
};
static_assert(!StreamPolicy<no_reached> && !StreamPolicy<throwing_reached> && !StreamPolicy<bare_reached>);

struct no_wait : model {
  result<void> wait(stream, fence&) noexcept = delete;
};
struct throwing_wait : model {
  result<void> wait(stream, fence&);
};
struct silent_wait : model {
  void wait(stream, fence&) noexcept;
};
static_assert(!StreamPolicy<no_wait> && !StreamPolicy<throwing_wait> && !StreamPolicy<silent_wait>);

struct no_synchronize : model {
  result<void> synchronize(fence&) noexcept = delete;
};
struct throwing_synchronize : model {
  result<void> synchronize(fence&);
};
struct silent_synchronize : model {
  void synchronize(fence&) noexcept;
};
static_assert(!StreamPolicy<no_synchronize> && !StreamPolicy<throwing_synchronize>);
static_assert(!StreamPolicy<silent_synchronize>);

struct no_synchronize_device : model {
  result<void> synchronize_device() noexcept = delete;
};
struct throwing_synchronize_device : model {
  result<void> synchronize_device();
};
struct silent_synchronize_device : model {
  void synchronize_device() noexcept;
};
static_assert(!StreamPolicy<no_synchronize_device> && !StreamPolicy<throwing_synchronize_device>);
static_assert(!StreamPolicy<silent_synchronize_device>);

struct no_release : model {
  void release(fence&) noexcept = delete;
};
struct throwing_release : model {
  void release(fence&);
};
struct failing_release : model {
  result<void> release(fence&) noexcept;
};
static_assert(!StreamPolicy<no_release> && !StreamPolicy<throwing_release> && !StreamPolicy<failing_release>);

}  // namespace
