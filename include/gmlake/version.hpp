#pragma once
/// The library's version; the build reads it from here.

#define GMLAKE_VERSION_MAJOR 0
#define GMLAKE_VERSION_MINOR 1
#define GMLAKE_VERSION_PATCH 0

/// One number to compare: `#if GMLAKE_VERSION >= 200` is 0.2.0 or later.
#define GMLAKE_VERSION (GMLAKE_VERSION_MAJOR * 10000 + GMLAKE_VERSION_MINOR * 100 + GMLAKE_VERSION_PATCH)
