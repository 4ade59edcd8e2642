"""What PyTorch's operators announce before they are launched, on CPU tensors: no GPU, and no library of gmlake's. A list
stands in for the pager."""

import pathlib
import sys

import pytest

try:
    import torch
except Exception as error:  # whatever a PyTorch without its libraries raises
    pytest.skip(f"PyTorch can't be imported: {error}", allow_module_level=True)
sys.path.append(str(pathlib.Path(__file__).parents[2] / "examples/pytorch"))

import gmlake  # noqa: E402
from gmlake.operators import storage, tensors_in  # noqa: E402
from gmlake.paging import Loops, PagingMode, Steps  # noqa: E402


class Told:
    """A pager: what each operator uses, in the order in which it is told, by the names that tensors were given."""

    def __init__(self, **tensors):
        self.names = {storage(tensor): name for name, tensor in tensors.items()}
        self.kept = list(tensors.values())
        self.operations, self.running, self.refuses = [], [], False

    def keep(self, uses):
        self.access(uses, "!")

    def access(self, uses, how=""):
        for pointer, (reads, writes) in uses.items():
            name = self.names.setdefault(pointer, f"new{len(self.names)}")
            self.running.append(name + ":" + "r" * reads + "w" * writes + how)
        if self.refuses:
            raise MemoryError("nothing can leave")

    def operation(self):
        self.operations.append(" ".join(self.running))
        self.running = []
        return len(self.operations) - 1


class Clock:
    def __init__(self):
        self.began, self.told = 0, []

    def begin(self, arguments, keywords):
        self.began += 1
        return self.began

    def end(self, began):
        return began

    def of(self, ran, number):
        if ran is not None:
            self.told.append((ran, number))


def paging(told, clock=None):
    return PagingMode(told, clock or Clock(), counts=lambda tensor: True)


def test_what_an_operator_uses_is_announced_before_it_runs_and_what_it_makes_after():
    a, b = torch.rand(4), torch.rand(4)
    told = Told(a=a, b=b)
    with paging(told):
        c = a + b
        c.add_(b)
    assert told.operations == ["a:r b:r new2:w", "new2:rw b:r"]
    assert told.running == []


def test_an_operator_that_is_refused_does_not_run_and_ends():
    a = torch.ones(4)
    told = Told(a=a)
    told.refuses = True
    with paging(told), pytest.raises(MemoryError):
        a.add_(1)
    assert torch.equal(a, torch.ones(4))
    assert told.operations == ["a:rw"]


def test_an_operator_that_fails_ends():
    a, b = torch.rand(4), torch.rand(5)
    told = Told(a=a, b=b)
    with paging(told), pytest.raises(RuntimeError):
        a + b
    assert told.operations == ["a:r b:r"]


def test_views_use_nothing_and_copies_do():
    a = torch.rand(4, 4)
    told = Told(a=a)
    with paging(told):
        view = a.t()[1:].detach()
        view.reshape(-1)
    assert told.operations == ["a:r new1:w", "new1:r"]  # the copy is looked at once more, as another form


def test_what_would_be_a_view_elsewhere_is_announced_where_operators_come_whole():
    a = torch.rand(4, 4)
    told = Told(a=a)
    with torch.inference_mode(), paging(told):
        a.t().reshape(-1)
        a.t()
    assert told.operations == ["a:r new1:w"]


def test_what_other_streams_use_when_an_operator_has_ended_is_kept():
    library = torch.library.Library("symm_mem", "FRAGMENT")
    library.define("gmlake_test(Tensor a) -> Tensor")
    library.impl("gmlake_test", torch.clone, "CompositeExplicitAutograd")
    a = torch.rand(4)
    told = Told(a=a)
    with paging(told):
        torch.ops.symm_mem.gmlake_test(a)
        a + 1
    assert told.operations == ["a:r! new1:w!", "a:r new2:w"]


def test_backward_passes_are_announced_too():
    x = torch.rand(8, 8)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False), torch.nn.ReLU(), torch.nn.Linear(8, 1, bias=False))
    told = Told(x=x, first=model[0].weight, last=model[2].weight)
    with paging(told):
        loss = model(x).sum()
        forward = len(told.operations)
        loss.backward()
    backward = " ".join(told.operations[forward:])
    assert "x:r" in backward and "last:r" in backward
    assert all(name in " ".join(told.operations[:forward]) for name in ("x:r", "first:r", "last:r"))


def test_only_tensors_that_count_are_announced():
    a, b = torch.rand(4), torch.rand(4, dtype=torch.float64)
    told = Told(a=a, b=b)
    with PagingMode(told, Clock(), counts=lambda tensor: tensor.dtype == torch.float64):
        a + 1
        b + 1
    assert told.operations == ["b:r new2:w"]


def test_operators_are_timed_while_they_are_to_be():
    a = torch.rand(4)
    told, clock = Told(a=a), Clock()
    with paging(told, clock) as mode:
        a + 1
        mode.timed = False
        a + 2
        mode.timed = True
        a + 3
    assert clock.told == [(1, 0), (2, 2)]


def test_steps_begin_behind_updates_until_the_program_marks_them():
    timed = []
    steps = Steps(timed.append)
    steps.updated()
    steps.updated()
    assert len(timed) == 2
    steps.marked()
    steps.updated()
    assert len(timed) == 3


def test_the_first_steps_are_timed_then_after_twice_as_many_each_time_and_then_regularly():
    timed = []
    steps = Steps(timed.append)
    for _ in range(4 * Steps.TIMED_EVERY):
        steps.marked()
    assert [count for count, on in enumerate(timed, 1) if on] == [1, 2, 3, 8, 16, 32, 64, 128, 192, 256]


class Counted:
    """A library that notes which stream's step begins, and whether it is timed."""

    def __init__(self):
        self.begun, self.timed = [], []

    def number(self, name, device, stream, timed):
        self.begun.append(stream)
        self.timed.append(bool(timed))


def test_each_job_has_steps_of_its_own_which_are_timed_or_not_whatever_others_are(monkeypatch):
    stream = [7]
    monkeypatch.setattr("gmlake.paging.current_stream", lambda device: stream[0])
    library = Counted()
    program, job = (PagingMode(None, None) for _ in range(2))
    loops = Loops(library, 0, program)
    loops.begin(11, job)
    stream[0] = 11
    for _ in range(Steps.TIMED + 1):
        loops.here().marked()
    loops.here().updated()  # its steps are marked
    stream[0] = 7
    loops.here().updated()  # the program's aren't
    stream[0] = 12
    loops.here().updated()  # nor is this stream a job's
    assert library.begun == [11] * (Steps.TIMED + 1) + [7, 12]
    assert library.timed == [True] * (Steps.TIMED - 1) + [False] * 2 + [True] * 2
    assert program.timed and not job.timed
    loops.end(11)
    stream[0] = 11
    loops.here().updated()
    assert library.begun[-1] == 11 and library.timed[-1]  # the program's third


def test_a_job_has_no_negative_priority():
    with pytest.raises(gmlake.Error, match="priority is 0 or more, not -1"):
        gmlake.job(priority=-1).__enter__()


def test_where_gmlake_is_switched_off_nothing_can_be_moved():
    with gmlake.swappable("weights"):
        tensor = torch.rand(4)
    for call in (
        lambda: gmlake.swap_out(tensor),
        lambda: gmlake.swap_in(tensor),
        lambda: gmlake.prefetch(tensor),
        lambda: gmlake.pause(device=0),
        lambda: gmlake.resume(device=0),
        lambda: gmlake.pin_host("1GiB", device=0),
        lambda: gmlake.swap("1GiB", device=0).__enter__(),
        lambda: gmlake.job(device=0).__enter__(),
    ):
        with pytest.raises(gmlake.Error, match="not switched on"):
            call()


@pytest.mark.parametrize(
    "what", [1, [torch.rand(4), None], iter([]), "weights"], ids=["a number", "a list", "an iterator", "a text"]
)
def test_what_holds_no_tensors_cannot_be_moved(monkeypatch, what):
    monkeypatch.setattr(gmlake.activation, "in_use", lambda: None)
    for move in (gmlake.swap_out, gmlake.swap_in, gmlake.prefetch, gmlake.pin, gmlake.unpin, gmlake.read_only):
        with pytest.raises(gmlake.Error, match="takes tensors, modules"):
            move(what)


def test_an_optimizers_state_may_hold_numbers_among_its_tensors():
    parameter = torch.ones(4, requires_grad=True)
    optimizer = torch.optim.Adam([parameter])
    parameter.sum().backward()
    optimizer.step()
    tensors = list(tensors_in([optimizer.state_dict(), torch.nn.ReLU()]))
    assert any(tensor is optimizer.state[parameter]["exp_avg"] for tensor in tensors)


def test_a_second_swap_inside_the_first_is_an_error(monkeypatch):
    monkeypatch.setattr(gmlake.activation, "in_use", lambda: None)
    monkeypatch.setattr(gmlake.swapping, "_paged", [0])
    with pytest.raises(gmlake.Error, match="already, for device 0"), gmlake.swapping.paged(0, 1, ()):
        pass


def test_a_limit_that_is_no_size_is_an_error():
    with pytest.raises(gmlake.Error):
        gmlake.swap("much", device=0).__enter__()


class Leaving:
    """The library, for what can leave."""

    def number(self, name):
        return 4 << 20

    def do(self, name, pointer):
        raise gmlake.Error(f"{name}: {pointer} can't leave")


@pytest.mark.parametrize("move", [gmlake.swap_out, gmlake.swap_in, gmlake.prefetch, gmlake.pin, gmlake.unpin])
def test_of_collections_only_what_is_on_a_gpu_is_moved(monkeypatch, move):
    monkeypatch.setattr(gmlake.activation, "in_use", Leaving)
    count = torch.zeros(())
    move({"step": count, "lr": 0.1}, [torch.zeros(1 << 22)], torch.nn.Linear(2048, 2048))
    with pytest.raises(gmlake.Error, match="cpu is not in the memory of a GPU"):
        move(count)
