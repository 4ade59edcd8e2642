/// Pools over memory that comes with its address: walks, as over any backend.

#include <map>
#include <memory>

#include "gmlake/backend/placed_memory.hpp"
#include "gmlake/pool/presets/gmlake.hpp"
#include "gmlake/pool/presets/lake.hpp"
#include "tests/pool/walk_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

namespace {

/// Allocates on a watched device, by all the calls that mapping takes; each may fail.
class mapping_source {
 public:
  explicit mapping_source(watched_device& lender) : state_(std::make_unique<state>(lender)) {}
  mapping_source(mapping_source&&) noexcept = default;
  mapping_source& operator=(mapping_source&&) noexcept = default;
  ~mapping_source() {
    if (state_ != nullptr) settle();
  }

  [[nodiscard]] result<address> allocate(bytes n) noexcept {
    settle();
    borrowed_device& device = state_->device;
    result<address> at = device.reserve(n, 0);
    if (!at) return at;
    allocation& a = state_->all[*at];
    a.size = n;
    a.leaving = true;
    result<handle> const memory = device.create(n);
    if (!memory) return failure(memory.error());
    a.memory = *memory;
    if (result<void> done = device.map(*at, n, a.memory); !done) return failure(done.error());
    a.mapped = true;
    if (result<void> done = device.set_access(*at, n, access::read_write); !done) return failure(done.error());
    a.leaving = false;
    return at;
  }
  [[nodiscard]] result<void> deallocate(address at, bytes) noexcept {
    auto const a = state_->all.find(at);
    if (a == state_->all.end()) return failure(errc::unknown_pointer, "deallocate");
    return undo(a);
  }

 private:
  struct allocation {
    bytes size = 0;
    handle memory{};
    bool mapped = false;
    bool leaving = false;  ///< it came into being only in part
  };
  struct state {
    explicit state(watched_device& lender) noexcept : device(lender) {}
    borrowed_device device;
    std::map<address, allocation> all;
  };

  void settle() noexcept {
    for (auto i = state_->all.begin(); i != state_->all.end();) {
      auto const here = i++;
      if (here->second.leaving) static_cast<void>(undo(here));
    }
  }
  result<void> undo(std::map<address, allocation>::iterator i) noexcept {
    borrowed_device& device = state_->device;
    allocation& a = i->second;
    if (a.mapped) {
      if (result<void> done = device.unmap(i->first, a.size); !done) return done;
      a.mapped = false;
    }
    if (a.memory != handle{}) {
      if (result<void> done = device.release(a.memory); !done) return done;
      a.memory = handle{};
    }
    result<void> done = device.unreserve(i->first, a.size);
    if (done) state_->all.erase(i);
    return done;
  }

  std::unique_ptr<state> state_;
};

struct placed_device : placed_memory<mapping_source> {
  explicit placed_device(watched_device& lender) noexcept
      : placed_memory(mapping_source(lender), lender.calls.granularity()) {}
};
static_assert(PlacedBackend<placed_device> && !PlacedBackend<borrowed_device>);

}  // namespace

TEST_CASE("walks over the default lake on memory that comes with its address") {
  walk_everywhere<lake_config<placed_device, simulated_streams>>();
}

TEST_CASE("walks over GMLake's algorithm on memory that comes with its address") {
  walk_everywhere<gmlake_config<placed_device, simulated_streams>>();
}
