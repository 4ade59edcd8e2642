# The PyTorch to adapt to: GMLAKE_PYTHON is the Python that is asked for it, GMLAKE_TORCH_DIR its folder, empty where there
# is none. Where the toolkit is not installed, the headers that came with PyTorch do: they are a hint for cuda.h.

find_program(GMLAKE_PYTHON NAMES python3 python DOC "The Python whose PyTorch is adapted to")
mark_as_advanced(GMLAKE_PYTHON)
# What was found before is looked for anew, as it may have gone, or another Python been named; what the user said stays.
if(GMLAKE_PYTHON AND (NOT DEFINED GMLAKE_TORCH_DIR OR (DEFINED GMLAKE_TORCH_FOUND
                      AND "${GMLAKE_TORCH_DIR}" STREQUAL "${GMLAKE_TORCH_FOUND}")))
  # Not imported: that takes seconds, and fails where CUDA's libraries are missing.
  execute_process(
    COMMAND ${GMLAKE_PYTHON} -c
      "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '', end='')"
    OUTPUT_VARIABLE found ERROR_QUIET)
  set(GMLAKE_TORCH_DIR "${found}" CACHE PATH "The folder of the installed PyTorch" FORCE)
  set(GMLAKE_TORCH_FOUND "${found}" CACHE INTERNAL "GMLAKE_TORCH_DIR, where the user has not said it")
endif()
if(GMLAKE_TORCH_DIR)
  list(APPEND GMLAKE_CUDA_HINTS ${GMLAKE_TORCH_DIR}/../nvidia/cu13/include ${GMLAKE_TORCH_DIR}/../nvidia/cuda_runtime/include)
endif()
