"""The level plain, which needs no build against PyTorch, in a process of its own whatever level the others run at."""

import plain_checks
import pytest
from fresh_process import run_gmlake


@pytest.fixture(scope="module")
def outcomes():
    done = run_gmlake("import plain_checks\nhand_back(plain_checks.outcomes())\n", level="plain")
    return done.value, done.err


@pytest.mark.parametrize("check", plain_checks.CHECKS, ids=lambda check: check.__doc__)
def test_at_the_level_plain(outcomes, check):
    assert outcomes[0][check.__name__] == ""


def test_a_process_at_the_level_plain_exits_quietly(outcomes):
    assert outcomes[1] == ""
