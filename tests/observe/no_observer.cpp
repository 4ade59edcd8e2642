#include "gmlake/observe/no_observer.hpp"

#include <type_traits>

#include "tests/observe/observer_suite.hpp"

using namespace gmlake;
using namespace gmlake::test;

TEST_CASE_TEMPLATE_INVOKE(observer, no_observer);

// It holds nothing, and so costs nothing where it is held without an address of its own.
static_assert(std::is_empty_v<no_observer> && std::is_trivially_copyable_v<no_observer>);
static_assert(!CountingObserver<no_observer>);
