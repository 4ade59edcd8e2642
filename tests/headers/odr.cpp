/// Half of a program that includes every header in two translation units: nothing may be defined twice.

#include "every_header.hpp"

gmlake::address other_units_address();

int main() { return other_units_address() == gmlake::address{} ? 0 : 1; }
