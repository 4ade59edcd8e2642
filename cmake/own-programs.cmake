# What holds for the tests, benchmarks and examples, and for nobody who embeds the library.
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
find_package(Threads REQUIRED)
link_libraries(Threads::Threads)

foreach(flag IN ITEMS -Wall -Wextra -Wconversion -Wshadow $<$<BOOL:${GMLAKE_WERROR}>:-Werror>)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${flag}>)
endforeach()

# GCC 12 and 13 take the inlined parts of their own std::string and std::vector for overflows (bugs 105329, 105651 and
# their like), and an empty std::optional's value for one that is used (80635).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  foreach(flag IN ITEMS -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-maybe-uninitialized)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${flag}>)
  endforeach()
endif()

if(GMLAKE_SANITIZE)
  list(JOIN GMLAKE_SANITIZE "," sanitizers)
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Checks of every pointer's use, for which AddressSanitizer is there too, double the time that compiling takes.
  if("undefined" IN_LIST GMLAKE_SANITIZE)
    add_compile_options(-fno-sanitize=null,object-size,alignment,pointer-overflow)
  endif()
  if("address" IN_LIST GMLAKE_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options(-fsanitize-address-outline-instrumentation)
  endif()
  add_link_options(-fsanitize=${sanitizers})
endif()

# A test that can't run here and says why.
function(gmlake_add_skipped_test name reason)
  message(STATUS "gmlake: ${name} is skipped: ${reason}")
  if(GMLAKE_BUILD_TESTS)
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${reason}")
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
  endif()
endfunction()
