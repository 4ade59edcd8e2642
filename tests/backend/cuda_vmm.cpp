#if __has_include(<cuda.h>)

#include "gmlake/backend/cuda_vmm.hpp"

#include <array>
#include <cstring>
#include <string_view>

#include <unistd.h>

#include "gmlake/backend/metered.hpp"
#include "tests/backend/physical_backend_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

template <>
std::optional<cuda_vmm> gmlake::test::make_backend() {
  auto opened = cuda_vmm::open();
  if (!opened) {
    MESSAGE("skipped: ", describe(opened.error()));
    return std::nullopt;
  }
  return *std::move(opened);
}

namespace {

/// The same over pinned host memory.
struct host_vmm : cuda_vmm {
  explicit host_vmm(cuda_vmm b) noexcept : cuda_vmm(std::move(b)) {}
};

}  // namespace

template <>
std::optional<host_vmm> gmlake::test::make_backend() {
  auto opened = cuda_vmm::open({.lies_on = cuda_vmm_options::location::host});
  if (!opened) {
    MESSAGE("skipped: ", describe(opened.error()));
    return std::nullopt;
  }
  return host_vmm(*std::move(opened));
}

namespace gmlake::test {
TEST_CASE_TEMPLATE_INVOKE(physical_backend, cuda_vmm, host_vmm);
}

static_assert(CopyingBackend<metered<cuda_vmm>> && !ClockedBackend<metered<cuda_vmm>>);

TEST_CASE("opening a device says what is missing, the driver or the device") {
  auto const opened = cuda_vmm::open({.device = 10'000});
  auto const driver = cuda_driver::get();
  REQUIRE_FALSE(opened.has_value());
  if (driver) {
    fails_with(opened, errc::invalid_argument, "cuDeviceGet");
    CHECK(opened.error().native == CUDA_ERROR_INVALID_DEVICE);
    return;
  }
  CHECK(opened.error().code == errc::no_driver);
  CHECK(opened.error().call == driver.error().call);
  std::string_view const missing = opened.error().call;
  CHECK((missing.starts_with("libcuda") || missing.starts_with("cu")));
  if (missing == "cuInit") CHECK(opened.error().native != 0);
}

TEST_CASE("asking for the driver again gives the same answer") {
  auto const first = cuda_driver::get();
  auto const second = cuda_driver::get();
  REQUIRE(first.has_value() == second.has_value());
  if (first) CHECK(*first == *second);
  else CHECK(first.error().call == second.error().call);
}

TEST_CASE("driver codes become errors of the library's, with the code kept") {
  CHECK(to_result(CUDA_SUCCESS, "call").has_value());
  fails_with(to_result(CUDA_ERROR_OUT_OF_MEMORY, "call"), errc::out_of_memory, "call");
  fails_with(to_result(CUDA_ERROR_INVALID_VALUE, "call"), errc::invalid_argument);
  fails_with(to_result(CUDA_ERROR_NOT_SUPPORTED, "call"), errc::not_supported);
  fails_with(to_result(CUDA_ERROR_NO_DEVICE, "call"), errc::no_driver);
  fails_with(to_result(CUDA_ERROR_LAUNCH_FAILED, "call"), errc::driver_failure);
  CHECK(to_result(CUDA_ERROR_LAUNCH_FAILED, "call").error().native == CUDA_ERROR_LAUNCH_FAILED);
}

TEST_CASE("giving back is no failure once the driver is gone, and any other failure is one") {
  CHECK(to_quiet_result(CUDA_ERROR_DEINITIALIZED, "call").has_value());
  CHECK(to_quiet_result(CUDA_SUCCESS, "call").has_value());
  CHECK_FALSE(to_result(CUDA_ERROR_DEINITIALIZED, "call").has_value());
  fails_with(to_quiet_result(CUDA_ERROR_INVALID_VALUE, "call"), errc::invalid_argument, "call");
}

TEST_CASE("a device's free memory falls by what is created") {
  auto b = make_backend<cuda_vmm>();
  if (!b) return;
  device_memory const before = must(b->memory_info());
  CHECK(before.free <= before.total);
  handle const h = must(b->create(1_GiB));
  device_memory const after = must(b->memory_info());
  CHECK(after.total == before.total);
  CHECK(after.free <= before.free - 1_GiB + 64_MiB);  // other processes may have given some back
  must(b->release(h));
}

TEST_CASE("host memory is reached by the device's copies and by this process, at one address") {
  auto host = make_backend<host_vmm>();
  auto device = make_backend<cuda_vmm>();
  if (!host || !device) return;
  CHECK(host->on_host());
  CHECK(host->numa_node() >= 0);
  CHECK_FALSE(device->on_host());
  bytes const n = std::max(host->granularity(), device->granularity());
  device_memory const before = must(device->memory_info());
  handle const h = must(host->create(2 * n));
  address const at = must(host->reserve(2 * n, 0));
  must(host->map(at, 2 * n, h));
  must(host->set_access(at, 2 * n, access::read_write));
  CHECK(must(device->memory_info()).free + 64_MiB > before.free);  // none of the device's was taken
  std::memset(to_pointer(at), 0x37, 2 * n);

  handle const d = must(device->create(n));
  address const there = must(device->reserve(n, 0));
  must(device->map(there, n, d));
  must(device->set_access(there, n, access::read_write));
  auto const context = must(cuda_context::retain(0));
  auto const copied = context.with_current([&](cuda_driver const& c) noexcept {
    CUresult const r = c.copy_async(to_integer(there), to_integer(at), n, CU_STREAM_LEGACY);
    return r != CUDA_SUCCESS ? r : c.copy_async(to_integer(at) + n, to_integer(there), n, CU_STREAM_LEGACY);
  });
  CHECK(copied == CUDA_SUCCESS);
  CHECK(context.with_current([](cuda_driver const& c) noexcept { return c.stream_synchronize(CU_STREAM_LEGACY); }) ==
        CUDA_SUCCESS);
  CHECK(std::memcmp(to_pointer(at), to_pointer(at + n), n) == 0);

  // Beneath an address of the device's, its handle serves like any other.
  must(device->unmap(there, n));
  handle const one = must(host->create(n));
  must(device->map(there, n, one));
  must(device->set_access(there, n, access::read_write));
  must(device->unmap(there, n));
  must(host->release(one));
  must(device->release(d));
  must(device->unreserve(there, n));
  must(host->unmap(at, 2 * n));
  must(host->release(h));
  must(host->unreserve(at, 2 * n));
}

TEST_CASE("memory on a NUMA node that isn't there is not supported") {
  if (!make_backend<host_vmm>()) return;
  fails_with(cuda_vmm::open({.lies_on = cuda_vmm_options::location::host, .numa_node = 4096}), errc::not_supported);
}

TEST_CASE("more than the device has can't be created") {
  auto b = make_backend<cuda_vmm>();
  if (!b) return;
  bytes const total = must(b->memory_info()).total;
  fails_with(b->create(align_up(total, b->granularity())), errc::out_of_memory, "cuMemCreate");
}

TEST_CASE("a thread's current context is left as it was") {
  auto b = make_backend<cuda_vmm>();
  if (!b) return;
  cuda_driver const& d = *must(cuda_driver::get());
  CUcontext before = nullptr;
  REQUIRE(d.context_get_current(&before) == CUDA_SUCCESS);
  must(b->release(must(b->create(b->granularity()))));
  CUcontext after = nullptr;
  REQUIRE(d.context_get_current(&after) == CUDA_SUCCESS);
  CHECK(before == after);
}

namespace {

/// A device whose handles can be handed on; none, having said why, where there isn't one.
std::optional<cuda_vmm> open_shareable() {
  auto opened = cuda_vmm::open({.shareable = cuda_vmm_options::sharing::posix_fd});
  if (opened) return *std::move(opened);
  MESSAGE("skipped: ", describe(opened.error()));
  return std::nullopt;
}

}  // namespace

TEST_CASE("an exported handle is imported as the same memory, which lives until both have released it") {
  auto b = open_shareable();
  if (!b) return;
  bytes const n = b->granularity();
  handle const h = must(b->create(n));
  int const fd = must(b->export_fd(h));
  CHECK(fd >= 0);
  handle const again = must(b->import_fd(fd));
  CHECK(::close(fd) == 0);
  address const at = must(b->reserve(2 * n, 0));
  must(b->map(at, n, h));
  must(b->map(at + n, n, again));
  must(b->set_access(at, 2 * n, access::read_write));
  std::array<std::byte, 64> sent{};
  sent.fill(std::byte{0x5a});
  must(b->write(at, sent));
  std::array<std::byte, 64> received{};
  must(b->read(received, at + n));
  CHECK(received == sent);
  must(b->unmap(at, n));
  must(b->release(h));
  received.fill(std::byte{0});
  must(b->read(received, at + n));
  CHECK(received == sent);
  must(b->unmap(at + n, n));
  must(b->release(again));
  must(b->unreserve(at, 2 * n));
}

TEST_CASE("a handle that was not made to be shared can't be exported, nor anything imported from no descriptor") {
  auto b = make_backend<cuda_vmm>();
  if (!b) return;
  handle const h = must(b->create(b->granularity()));
  CHECK_FALSE(b->export_fd(h).has_value());
  CHECK_FALSE(b->import_fd(-1).has_value());
  must(b->release(h));
}

TEST_CASE("access is granted to peers that can reach the device, and to no others") {
  auto b = make_backend<cuda_vmm>();
  if (!b) return;
  must(b->grant(b->device()));  // it has it
  CHECK_FALSE(b->grant(10'000).has_value());
  CHECK_FALSE(b->grant(-1).has_value());
  bytes const n = b->granularity();
  address const at = must(b->reserve(n, 0));
  handle const h = must(b->create(n));
  must(b->map(at, n, h));
  must(b->set_access(at, n, access::read_write));  // as if nobody had been refused
  auto other = cuda_vmm::open({.device = 1});
  if (other) {
    if (auto const granted = b->grant(1)) {
      must(b->grant(1));  // again: no news
      must(b->set_access(at, n, access::read_write));
      std::array<std::byte, 64> sent{};
      sent.fill(std::byte{0x33});
      must(b->write(at, sent));
      std::array<std::byte, 64> received{};
      must(other->read(received, at));
      CHECK(received == sent);
    } else {
      CHECK(granted.error().code == errc::invalid_argument);
    }
  }
  must(b->unmap(at, n));
  must(b->release(h));
  must(b->unreserve(at, n));
}

#endif  // cuda.h
