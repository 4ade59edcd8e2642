/// The test program's entry point; the tests stand in the folders beside it, at their headers' paths.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
