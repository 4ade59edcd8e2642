"""The plain library as PyTorch's `CUDAPluggableAllocator`."""

from __future__ import annotations

from typing import Any

from .library import Library

# PyTorch's hooks and the functions that fill them. Which there are depends on its version.
HOOKS = {
    "set_init_fn": "gmlake_torch_init",
    "set_reset_fn": "gmlake_torch_reset",
    "set_memory_fraction_fn": "gmlake_torch_memory_fraction",
    "set_base_alloc_fn": "gmlake_torch_base_alloc",
    "set_record_stream_fn": "gmlake_torch_record_stream",
    "set_begin_allocate_to_pool": "gmlake_torch_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "gmlake_torch_end_allocate_to_pool",
    "set_release_pool": "gmlake_torch_release_pool",
}


def pluggable(library: Library) -> Any:
    """A `torch.cuda.memory.CUDAPluggableAllocator` of the plain library, with every hook that this PyTorch has."""
    import torch

    made = torch.cuda.memory.CUDAPluggableAllocator(str(library.path), "gmlake_torch_malloc", "gmlake_torch_free")
    for hook, function in HOOKS.items():
        fill = getattr(made.allocator(), hook, None)
        if fill is not None:
            fill(library.pointer(function))
    return made
