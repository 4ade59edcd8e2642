#pragma once
/// A CUDA device's memory, or pinned host memory beside it, through the driver's virtual-memory calls: PhysicalBackend
/// over the driver. Host memory is mapped for the device and for the host's processors alike, at one address.
///
/// Holds the device's primary context and nothing else: what a caller created, reserved and mapped is the caller's to
/// give back. No call here waits for the device but `write` and `read`. Once the driver has shut down, at the end of
/// the process, giving memory and addresses back succeeds without effect.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include <cuda.h>

#include "gmlake/backend/cuda_context.hpp"
#include "gmlake/backend/cuda_copy_gate.hpp"
#include "gmlake/backend/host_memory_info.hpp"
#include "gmlake/backend/physical_backend.hpp"

namespace gmlake {

struct cuda_vmm_options {
  /// How handles can be handed to other processes.
  enum class sharing : std::uint8_t { none, posix_fd, fabric };
  /// Which of the driver's two granularities is the granule.
  enum class granule : std::uint8_t { minimum, recommended };
  /// Where memory lies.
  enum class location : std::uint8_t { device, host };

  static constexpr int nearest = -1;  ///< the NUMA node next to the device

  int device = 0;  ///< ordinal
  location lies_on = location::device;
  int numa_node = nearest;            ///< on the host: on which node
  sharing shareable = sharing::none;  ///< fabric needs the driver's permission (IMEX)
  bool gpu_direct_rdma = false;       ///< network cards may reach the memory; some devices can't
  granule granularity = granule::minimum;
};

class cuda_vmm {
 public:
  /// Returns `result<cuda_vmm>`. Errors: `no_driver`; `invalid_argument` (no such device); `not_supported` (the device
  /// lacks virtual memory management, or what the options ask for; host memory is tried out, and the driver's code
  /// kept); `driver_failure`.
  [[nodiscard]] static auto open(cuda_vmm_options const& options = {}) noexcept {
    using opened = result<cuda_vmm>;  // named where the class is complete
    auto context = cuda_context::retain(options.device);
    if (!context) return opened(failure(context.error()));
    if (!has(*context, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) {
      return opened(failure(errc::not_supported, "virtual memory management"));
    }
    if (options.gpu_direct_rdma && !has(*context, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED)) {
      return opened(failure(errc::not_supported, "GPUDirect RDMA with virtual memory management"));
    }

    CUmemAllocationProp const shape = allocation(options, *context);
    auto const which = options.granularity == cuda_vmm_options::granule::minimum ? CU_MEM_ALLOC_GRANULARITY_MINIMUM
                                                                                 : CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
    bytes granule = 0;
    CUresult const r =
        context->with_current([&](cuda_driver const& d) noexcept { return d.granularity(&granule, &shape, which); });
    bool const on_host = options.lies_on == cuda_vmm_options::location::host;
    if (r != CUDA_SUCCESS && on_host) {
      return opened(failure(errc::not_supported, "host memory by virtual memory management", r));
    }
    if (r != CUDA_SUCCESS) return opened(cuda_failure(r, "cuMemGetAllocationGranularity"));
    cuda_vmm memory(*std::move(context), options.device, shape, granule);
    if (on_host) {
      if (result<void> works = memory.try_out(); !works) {
        return opened(failure(errc::not_supported, "host memory by virtual memory management", works.error().native));
      }
    }
    return opened(std::move(memory));
  }

  [[nodiscard]] bytes granularity() const noexcept { return granule_; }

  [[nodiscard]] result<handle> create(bytes n) noexcept {
    CUmemGenericAllocationHandle h = 0;
    auto const r = with_current([&](cuda_driver const& d) noexcept { return d.create(&h, n, &shape_, 0); });
    if (r != CUDA_SUCCESS) return cuda_failure(r, "cuMemCreate");
    return static_cast<handle>(h);
  }

  [[nodiscard]] result<void> release(handle h) noexcept {
    return to_quiet_result(with_current([&](cuda_driver const& d) noexcept { return d.release(to_integer(h)); }),
                           "cuMemRelease");
  }

  [[nodiscard]] result<address> reserve(bytes n, bytes alignment) noexcept {
    CUdeviceptr va = 0;
    auto const r = with_current([&](cuda_driver const& d) noexcept { return d.reserve(&va, n, alignment, 0, 0); });
    if (r == CUDA_ERROR_OUT_OF_MEMORY) return failure(errc::out_of_addresses, "cuMemAddressReserve", r);
    if (r != CUDA_SUCCESS) return cuda_failure(r, "cuMemAddressReserve");
    return static_cast<address>(va);
  }

  [[nodiscard]] result<void> unreserve(address va, bytes n) noexcept {
    return to_quiet_result(with_current([&](cuda_driver const& d) noexcept { return d.unreserve(to_integer(va), n); }),
                           "cuMemAddressFree");
  }

  [[nodiscard]] result<void> map(address va, bytes n, handle h) noexcept {
    return to_result(
        with_current([&](cuda_driver const& d) noexcept { return d.map(to_integer(va), n, 0, to_integer(h), 0); }),
        "cuMemMap");
  }

  /// Does not wait: device work that uses the range must have finished.
  [[nodiscard]] result<void> unmap(address va, bytes n) noexcept {
    return to_quiet_result(with_current([&](cuda_driver const& d) noexcept { return d.unmap(to_integer(va), n); }),
                           "cuMemUnmap");
  }

  /// For this device and those granted; where memory lies on the host, for its processors too. Copies out of the
  /// device's memory that wait for its gate begin when this is done.
  [[nodiscard]] result<void> set_access(address va, bytes n, access a) noexcept {
    std::array<CUmemAccessDesc, most_devices + 1> allowed{};
    std::size_t count = 0;
    auto const allow = [&](CUmemLocationType type, int id) {
      allowed[count].location.type = type;
      allowed[count].location.id = id;
      allowed[count++].flags = flags(a);
    };
    allow(CU_MEM_LOCATION_TYPE_DEVICE, device_);
    for (std::size_t i = 0; i < granted_; ++i) allow(CU_MEM_LOCATION_TYPE_DEVICE, peers_[i]);
    if (on_host()) allow(shape_.location.type, shape_.location.id);
    copy_gate* const gate = on_host() ? nullptr : cuda_copy_gate(device_);
    auto const closed = gate != nullptr ? gate->close() : copy_gate::closure();
    return to_result(with_current([&](cuda_driver const& d) noexcept {
                       return d.set_access(to_integer(va), n, allowed.data(), count);
                     }),
                     "cuMemSetAccess");
  }

  /// Access is set for `peer` too from now on; what was mapped before is not touched. Errors: `invalid_argument` (the
  /// device can't reach this one's memory), `not_supported` (more devices than can be).
  [[nodiscard]] result<void> grant(int peer) noexcept {
    auto const known = std::span(peers_).first(granted_);
    if (peer == device() || std::ranges::find(known, peer) != known.end()) return {};
    if (granted_ + 1 == most_devices) return failure(errc::not_supported, "grant");
    int reaches = 0;
    CUdevice other = 0;
    CUresult r = context_.driver().device_get(&other, peer);
    if (r == CUDA_SUCCESS) r = context_.driver().can_access_peer(&reaches, other, context_.device());
    if (r != CUDA_SUCCESS) return cuda_failure(r, "cuDeviceCanAccessPeer");
    if (reaches == 0) return failure(errc::invalid_argument, "grant: no peer access");
    peers_[granted_++] = peer;
    return {};
  }

  /// A file descriptor for the handle, the caller's to close, which another process can import. Error: the driver's,
  /// where handles are not made shareable.
  [[nodiscard]] result<int> export_fd(handle h) noexcept {
    int fd = -1;
    auto const r = with_current([&](cuda_driver const& d) noexcept {
      return d.export_handle(&fd, to_integer(h), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    });
    if (r != CUDA_SUCCESS) return cuda_failure(r, "cuMemExportToShareableHandle");
    return fd;
  }
  /// A handle of another process's memory, which lives until both have released it. The descriptor stays the caller's.
  [[nodiscard]] result<handle> import_fd(int fd) noexcept {
    CUmemGenericAllocationHandle h = 0;
    // The descriptor travels in the pointer.
    void* const descriptor = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
    auto const r = with_current([&](cuda_driver const& d) noexcept {
      return d.import_handle(&h, descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    });
    if (r != CUDA_SUCCESS) return cuda_failure(r, "cuMemImportFromShareableHandle");
    return static_cast<handle>(h);
  }

  /// After what is queued on the default stream. Work on streams that don't synchronise with it is the caller's to
  /// order.
  [[nodiscard]] result<void> write(address va, std::span<std::byte const> from) noexcept {
    if (on_host()) return copy_on_host(to_pointer(va), from.data(), from.size());
    auto const r = with_current([&](cuda_driver const& d) noexcept {
      CUresult const copied = d.copy_to_device(to_integer(va), from.data(), from.size());
      // The copy of pageable memory returns once it is staged.
      return copied != CUDA_SUCCESS ? copied : d.stream_synchronize(CU_STREAM_LEGACY);
    });
    return to_result(r, "cuMemcpyHtoD");
  }
  /// As `write`.
  [[nodiscard]] result<void> read(std::span<std::byte> to, address va) noexcept {
    if (on_host()) return copy_on_host(to.data(), to_pointer(va), to.size());
    return to_result(with_current([&](cuda_driver const& d) noexcept {
                       return d.copy_to_host(to.data(), to_integer(va), to.size());
                     }),
                     "cuMemcpyDtoH");
  }

  /// Of the device, or of the host where memory lies there.
  [[nodiscard]] result<device_memory> memory_info() const noexcept {
    if (on_host()) return host_memory_info();
    device_memory m;
    auto const r = with_current([&](cuda_driver const& d) noexcept { return d.memory_info(&m.free, &m.total); });
    if (r != CUDA_SUCCESS) return cuda_failure(r, "cuMemGetInfo");
    return m;
  }

  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] bool on_host() const noexcept { return shape_.location.type != CU_MEM_LOCATION_TYPE_DEVICE; }
  /// Where memory lies on the host: on which node.
  [[nodiscard]] int numa_node() const noexcept { return on_host() ? shape_.location.id : cuda_vmm_options::nearest; }

 private:
  cuda_vmm(cuda_context&& context, int device, CUmemAllocationProp const& shape, bytes granule) noexcept
      : context_(std::move(context)), device_(device), shape_(shape), granule_(granule) {}

  /// What the driver says of host memory does not tell whether this process may have any of that node's.
  [[nodiscard]] result<void> try_out() noexcept {
    result<handle> const h = create(granule_);
    if (!h) return failure(h.error());
    result<void> done;
    if (result<address> const at = reserve(granule_, 0); !at) {
      done = failure(at.error());
    } else {
      done = map(*at, granule_, *h);
      if (done) {
        done = set_access(*at, granule_, access::read_write);
        static_cast<void>(unmap(*at, granule_));
      }
      static_cast<void>(unreserve(*at, granule_));
    }
    static_cast<void>(release(*h));
    return done;
  }

  /// In the order of what is queued on the default stream.
  [[nodiscard]] result<void> copy_on_host(void* to, void const* from, bytes n) noexcept {
    auto const r = with_current([](cuda_driver const& d) noexcept { return d.stream_synchronize(CU_STREAM_LEGACY); });
    if (r != CUDA_SUCCESS) return cuda_failure(r, "cuStreamSynchronize");
    if (n > 0) std::memcpy(to, from, n);
    return {};
  }

  [[nodiscard]] static bool has(cuda_context const& context, CUdevice_attribute attribute) noexcept {
    int value = 0;
    return context.driver().device_get_attribute(&value, attribute, context.device()) == CUDA_SUCCESS && value != 0;
  }

  [[nodiscard]] static CUmemAllocationProp allocation(cuda_vmm_options const& options,
                                                      cuda_context const& context) noexcept {
    CUmemAllocationProp shape{};
    shape.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    shape.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    shape.location.id = options.device;
    if (options.lies_on == cuda_vmm_options::location::host) {
      shape.location.type = static_cast<CUmemLocationType>(host_numa);
      shape.location.id = options.numa_node >= 0 ? options.numa_node : nearest_node(context);
    }
    shape.allocFlags.gpuDirectRDMACapable = options.gpu_direct_rdma ? 1 : 0;
    switch (options.shareable) {
      case cuda_vmm_options::sharing::none: break;
      case cuda_vmm_options::sharing::posix_fd:
        shape.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        break;
      case cuda_vmm_options::sharing::fabric:
        shape.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(fabric_handle);
        break;
    }
    return shape;
  }

  /// 0 on a machine without NUMA, as the driver wants it.
  [[nodiscard]] static int nearest_node(cuda_context const& context) noexcept {
    int node = -1;
    auto const attribute = static_cast<CUdevice_attribute>(host_numa_id);
    CUresult const r = context.driver().device_get_attribute(&node, attribute, context.device());
    return r == CUDA_SUCCESS ? std::max(node, 0) : 0;
  }

  [[nodiscard]] static CUmemAccess_flags flags(access a) noexcept {
    switch (a) {
      case access::none: return CU_MEM_ACCESS_FLAGS_PROT_NONE;
      case access::read: return CU_MEM_ACCESS_FLAGS_PROT_READ;
      case access::read_write: return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    return CU_MEM_ACCESS_FLAGS_PROT_NONE;
  }

  template <class Call>
  [[nodiscard]] CUresult with_current(Call call) const noexcept {
    return context_.with_current(call);
  }

  static constexpr std::size_t most_devices = 32;  ///< of one machine
  // Which older headers lack:
  static constexpr int fabric_handle = 0x8;  ///< CU_MEM_HANDLE_TYPE_FABRIC
  static constexpr int host_numa = 0x3;      ///< CU_MEM_LOCATION_TYPE_HOST_NUMA
  static constexpr int host_numa_id = 134;   ///< CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID

  cuda_context context_;
  int device_;
  CUmemAllocationProp shape_;
  bytes granule_;
  std::array<int, most_devices> peers_{};
  std::size_t granted_ = 0;
};
static_assert(MeasuredBackend<cuda_vmm>);
static_assert(PhysicalBackend<cuda_vmm> && CopyingBackend<cuda_vmm>);

}  // namespace gmlake
