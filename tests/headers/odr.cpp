/// Half of a program that includes every header in two translation units: nothing may be defined twice.

#include "every_header.hpp"

#ifdef CUDA_VERSION
#error "a header that is not named after CUDA includes CUDA's"
#endif

gmlake::address other_units_address();

int main() { return other_units_address() == gmlake::address{} ? 0 : 1; }
