#pragma once
/// CUDA's driver, loaded when it is first asked for.
///
/// A program built with this starts on a machine that has no driver, and learns so from a result. Nothing is linked:
/// <cuda.h> gives the types alone. Entry points come from `cuGetProcAddress`, at the version of the interface that
/// this file was written for and with the legacy default stream, whatever the program is compiled with.

#include <type_traits>

#include <cuda.h>
#include <dlfcn.h>

#include "gmlake/core/result.hpp"

namespace gmlake {

/// The entry points that gmlake calls. They stay valid until the process ends.
struct cuda_driver {
  decltype(&::cuInit) init = nullptr;
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDeviceGetAttribute) device_get_attribute = nullptr;
  decltype(&::cuDeviceCanAccessPeer) can_access_peer = nullptr;
  decltype(&::cuDevicePrimaryCtxRetain) primary_context_retain = nullptr;
  decltype(&::cuDevicePrimaryCtxRelease) primary_context_release = nullptr;
  decltype(&::cuCtxGetCurrent) context_get_current = nullptr;
  decltype(&::cuCtxPushCurrent) context_push = nullptr;
  decltype(&::cuCtxPopCurrent) context_pop = nullptr;
  decltype(&::cuCtxSynchronize) context_synchronize = nullptr;

  decltype(&::cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&::cuMemCreate) create = nullptr;
  decltype(&::cuMemRelease) release = nullptr;
  decltype(&::cuMemAddressReserve) reserve = nullptr;
  decltype(&::cuMemAddressFree) unreserve = nullptr;
  decltype(&::cuMemMap) map = nullptr;
  decltype(&::cuMemUnmap) unmap = nullptr;
  decltype(&::cuMemSetAccess) set_access = nullptr;
  decltype(&::cuMemExportToShareableHandle) export_handle = nullptr;
  decltype(&::cuMemImportFromShareableHandle) import_handle = nullptr;
  decltype(&::cuMemGetInfo) memory_info = nullptr;
  decltype(&::cuMemcpyHtoD) copy_to_device = nullptr;
  decltype(&::cuMemcpyDtoH) copy_to_host = nullptr;
  decltype(&::cuMemcpyAsync) copy_async = nullptr;
  decltype(&::cuMemHostAlloc) host_allocate = nullptr;
  decltype(&::cuMemFreeHost) host_free = nullptr;
  decltype(&::cuMemHostRegister) host_register = nullptr;

  decltype(&::cuEventCreate) event_create = nullptr;
  decltype(&::cuEventDestroy) event_destroy = nullptr;
  decltype(&::cuEventRecord) event_record = nullptr;
  decltype(&::cuEventQuery) event_query = nullptr;
  decltype(&::cuEventSynchronize) event_synchronize = nullptr;
  decltype(&::cuEventElapsedTime) event_elapsed_time = nullptr;
  decltype(&::cuStreamCreate) stream_create = nullptr;
  decltype(&::cuStreamDestroy) stream_destroy = nullptr;
  decltype(&::cuStreamWaitEvent) stream_wait_event = nullptr;
  decltype(&::cuStreamWaitValue32) stream_wait_value = nullptr;
  decltype(&::cuStreamSynchronize) stream_synchronize = nullptr;
  decltype(&::cuStreamIsCapturing) stream_is_capturing = nullptr;
  decltype(&::cuThreadExchangeStreamCaptureMode) exchange_capture_mode = nullptr;

  /// The driver, loaded and initialised by the first call. Later calls return what that one did; thread-safe.
  /// Errors: `no_driver`, whose `call` names what is missing: the library, an entry point, or `cuInit`, which failed
  /// with `native` (100 where there is no device).
  [[nodiscard]] static result<cuda_driver const*> get() noexcept;
};

/// The driver shuts down before the last destructors run. What it held is gone then: giving it back is no failure.
[[nodiscard]] constexpr bool driver_is_gone(CUresult r) noexcept { return r == CUDA_ERROR_DEINITIALIZED; }

[[nodiscard]] constexpr errc to_errc(CUresult r) noexcept {
  switch (r) {
    case CUDA_ERROR_OUT_OF_MEMORY: return errc::out_of_memory;
    case CUDA_ERROR_INVALID_VALUE: return errc::invalid_argument;
    case CUDA_ERROR_NOT_SUPPORTED: return errc::not_supported;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_NOT_INITIALIZED: return errc::no_driver;
    default: return errc::driver_failure;
  }
}

[[nodiscard]] constexpr unexpected cuda_failure(CUresult r, char const* call) noexcept {
  return failure(to_errc(r), call, static_cast<int>(r));
}

/// A driver call's outcome as a result.
[[nodiscard]] constexpr result<void> to_result(CUresult r, char const* call) noexcept {
  if (r != CUDA_SUCCESS) return cuda_failure(r, call);
  return {};
}
/// As `to_result`, where the call gives something back.
[[nodiscard]] constexpr result<void> to_quiet_result(CUresult r, char const* call) noexcept {
  return driver_is_gone(r) ? result<void>{} : to_result(r, call);
}

namespace detail {

/// What loading came to: a driver, or what was missing.
struct loaded_cuda_driver {
  cuda_driver driver;
  error missing{};
  bool complete = false;

  loaded_cuda_driver() noexcept {
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      lack("libcuda.so.1");
      return;
    }
    // The first version of cuGetProcAddress, which later drivers keep.
    find_ = reinterpret_cast<find_function>(::dlsym(library, "cuGetProcAddress"));
    if (find_ == nullptr) {
      lack("cuGetProcAddress");
      return;
    }

    complete = find("cuInit", driver.init) && find("cuDeviceGet", driver.device_get) &&
               find("cuDeviceGetAttribute", driver.device_get_attribute) &&
               find("cuDeviceCanAccessPeer", driver.can_access_peer) &&
               find("cuDevicePrimaryCtxRetain", driver.primary_context_retain) &&
               find("cuDevicePrimaryCtxRelease", driver.primary_context_release) &&
               find("cuCtxGetCurrent", driver.context_get_current) && find("cuCtxPushCurrent", driver.context_push) &&
               find("cuCtxPopCurrent", driver.context_pop) && find("cuCtxSynchronize", driver.context_synchronize) &&
               find("cuMemGetAllocationGranularity", driver.granularity) && find("cuMemCreate", driver.create) &&
               find("cuMemRelease", driver.release) && find("cuMemAddressReserve", driver.reserve) &&
               find("cuMemAddressFree", driver.unreserve) && find("cuMemMap", driver.map) &&
               find("cuMemUnmap", driver.unmap) && find("cuMemSetAccess", driver.set_access) &&
               find("cuMemExportToShareableHandle", driver.export_handle) &&
               find("cuMemImportFromShareableHandle", driver.import_handle) &&
               find("cuMemGetInfo", driver.memory_info) && find("cuMemcpyHtoD", driver.copy_to_device) &&
               find("cuMemcpyDtoH", driver.copy_to_host) && find("cuMemcpyAsync", driver.copy_async) &&
               find("cuMemHostAlloc", driver.host_allocate) && find("cuMemFreeHost", driver.host_free) &&
               find("cuMemHostRegister", driver.host_register) && find("cuEventCreate", driver.event_create) &&
               find("cuEventDestroy", driver.event_destroy) && find("cuEventRecord", driver.event_record) &&
               find("cuEventQuery", driver.event_query) && find("cuEventSynchronize", driver.event_synchronize) &&
               find("cuEventElapsedTime", driver.event_elapsed_time) && find("cuStreamCreate", driver.stream_create) &&
               find("cuStreamDestroy", driver.stream_destroy) && find("cuStreamWaitEvent", driver.stream_wait_event) &&
               find("cuStreamSynchronize", driver.stream_synchronize) &&
               find("cuStreamIsCapturing", driver.stream_is_capturing) &&
               find("cuThreadExchangeStreamCaptureMode", driver.exchange_capture_mode);
    if (!complete) return;
    static_cast<void>(find("cuStreamWaitValue32", driver.stream_wait_value, waits_version));
    complete = true;

    if (CUresult const r = driver.init(0); r != CUDA_SUCCESS) lack("cuInit", static_cast<int>(r));
  }

 private:
  using find_function = CUresult(CUDAAPI*)(char const*, void**, int, cuuint64_t);
  static constexpr int interface_version = 11'030;  ///< CUDA 11.3, the first with cuGetProcAddress
  static constexpr int waits_version = 11'070;      ///< CUDA 11.7, the first whose streams wait for values unasked
  static constexpr cuuint64_t legacy_default_stream = 1;  ///< CU_GET_PROC_ADDRESS_LEGACY_STREAM

  void lack(char const* call, int native = 0) noexcept {
    complete = false;
    missing = failure(errc::no_driver, call, native).value;
  }

  template <class Entry>
    requires std::is_pointer_v<Entry>
  [[nodiscard]] bool find(char const* name, Entry& entry, int version = interface_version) noexcept {
    void* p = nullptr;
    CUresult const r = find_(name, &p, version, legacy_default_stream);
    if (r != CUDA_SUCCESS || p == nullptr) {
      lack(name, static_cast<int>(r));
      return false;
    }
    entry = reinterpret_cast<Entry>(p);
    return true;
  }

  find_function find_ = nullptr;
};

}  // namespace detail

inline result<cuda_driver const*> cuda_driver::get() noexcept {
  static detail::loaded_cuda_driver const once;
  if (!once.complete) return failure(once.missing);
  return &once.driver;
}

}  // namespace gmlake
