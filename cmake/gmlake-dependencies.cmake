# What gmlake's targets rest on, found alike in its own build and by find_package(gmlake):
#   Boost::headers  required; from Boost's own package file, or else from CMake's FindBoost
#   gmlake::cuda    only where cuda.h is found; GMLAKE_CUDA_INCLUDE_DIR names its folder where the search fails
# All are global, so that a project that adds gmlake as a subdirectory can link them.

if(NOT TARGET Boost::headers)
  find_package(Boost 1.74 QUIET CONFIG)
  if(NOT TARGET Boost::headers)
    cmake_policy(PUSH)
    if(POLICY CMP0167)
      cmake_policy(SET CMP0167 OLD)  # keeps FindBoost, for a Boost without package files
    endif()
    find_package(Boost 1.74 REQUIRED MODULE)
    cmake_policy(POP)
  endif()
  set_target_properties(Boost::headers PROPERTIES IMPORTED_GLOBAL TRUE)
endif()

if(NOT TARGET gmlake::cuda)
  find_path(GMLAKE_CUDA_INCLUDE_DIR cuda.h
    HINTS ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT ENV CUDA_HOME ENV CUDA_PATH
    PATHS /usr/local/cuda /opt/cuda ${GMLAKE_CUDA_HINTS}
    PATH_SUFFIXES include targets/x86_64-linux/include targets/sbsa-linux/include
    DOC "The folder of the CUDA toolkit's cuda.h")
  mark_as_advanced(GMLAKE_CUDA_INCLUDE_DIR)
  if(GMLAKE_CUDA_INCLUDE_DIR)
    # The driver itself is loaded at run time and never linked.
    add_library(gmlake::cuda INTERFACE IMPORTED GLOBAL)
    target_include_directories(gmlake::cuda INTERFACE ${GMLAKE_CUDA_INCLUDE_DIR})
    target_link_libraries(gmlake::cuda INTERFACE gmlake::gmlake ${CMAKE_DL_LIBS})
  endif()
endif()
