"""What PyTorch's operators read and write, on CPU tensors: no GPU, and no library of gmlake's. A list stands in for the
recording, a counter for the clock."""

import pathlib
import sys
import threading

import pytest

try:
    import torch
except Exception as error:  # whatever a PyTorch without its libraries raises
    pytest.skip(f"PyTorch can't be imported: {error}", allow_module_level=True)
sys.path.append(str(pathlib.Path(__file__).parents[2] / "examples/pytorch"))

import gmlake  # noqa: E402
from gmlake import Recording, activation  # noqa: E402
from gmlake.operators import AccessMode, CudaClock, Recorded, device_of, storage, storages  # noqa: E402


class Told:
    """A sink: each operation as what it reads and writes, by the names that tensors were given."""

    def __init__(self):
        self.names, self.kept = {}, []
        self.operations, self.running, self.times = [], [], {}

    def call(self, **tensors):
        """Names these tensors' memory, and keeps it from being used again."""
        self.kept += tensors.values()
        self.names |= {storage(tensor): name for name, tensor in tensors.items()}

    def access(self, pointer, reads, writes):
        name = self.names.setdefault(pointer, f"new{len(self.names)}")
        self.running.append(name + ":" + "r" * reads + "w" * writes)

    def operation(self):
        self.operations.append(" ".join(self.running))
        self.running = []
        return len(self.operations) - 1

    def took(self, number, nanoseconds):
        self.times[number] = nanoseconds


class Clock:
    def __init__(self):
        self.seen = []

    def begin(self, arguments, keywords):
        return len(self.seen)

    def end(self, began):
        return began

    def of(self, ran, number):
        self.seen.append((ran, number))


def told(run, counts=lambda _: True, **tensors):
    """The operations of `run()`, and what it returns is named "out"."""
    sink = Told()
    sink.call(**tensors)
    with AccessMode(sink, Clock(), counts):
        out = run()
    if isinstance(out, torch.Tensor) and storage(out) in sink.names:
        old = sink.names[storage(out)]
        if old.startswith("new"):
            return [operation.replace(old + ":", "out:") for operation in sink.operations]
    return sink.operations


@pytest.fixture
def x():
    return torch.arange(12.0).reshape(3, 4)


@pytest.fixture
def y():
    return torch.ones(3, 4)


def test_an_operator_reads_its_inputs_and_writes_its_outputs(x, y):
    assert told(lambda: x + y, x=x, y=y) == ["x:r y:r out:w"]
    assert told(lambda: x.clone(), x=x) == ["x:r out:w"]
    assert told(lambda: torch.cat([x, y, x]), x=x, y=y) == ["x:r y:r out:w"]


def test_the_same_tensor_twice_is_one_access(x):
    assert told(lambda: x * x, x=x) == ["x:r out:w"]
    assert told(lambda: x[0] + x[1], x=x) == ["x:r out:w"]


def test_views_touch_nothing(x):
    for view in (
        lambda: x.view(12),
        lambda: x.t(),
        lambda: x[1:, 2],
        lambda: x.reshape(4, 3),
        lambda: x.detach(),
        lambda: x.expand(2, 3, 4),
        lambda: x.as_strided((2,), (1,)),
        lambda: x.split(1),
        lambda: x.unbind(),
        lambda: x.contiguous(),
        lambda: torch.ops.aten._unsafe_view(x, [4, 3]),
        lambda: torch.ops.aten.alias(x),
    ):
        assert told(view, x=x) == []


def test_a_view_that_has_to_copy_is_an_operation(x):
    assert told(lambda: x.t().reshape(12), x=x) == ["x:r out:w"]
    with torch.inference_mode():  # where operators come whole
        assert told(lambda: x.t().reshape(12), x=x) == ["x:r out:w"]
        assert told(lambda: x.reshape(12), x=x) == []


def test_what_changes_a_tensors_form_touches_nothing(x):
    z = x.clone()
    for change in (
        lambda: z.unsqueeze_(0),
        lambda: z.squeeze_(),
        lambda: z.t_(),
        lambda: z.detach_(),
        lambda: z.resize_(2, 2),
        lambda: z.set_(x),
        lambda: torch.ops.aten.is_same_size(x, z),
        lambda: torch.ops.aten.sym_size.int(x, 0),
    ):
        assert told(change, x=x) == []


def test_memory_that_is_only_allocated_is_not_written(x):
    assert told(lambda: torch.empty(5)) == []
    assert told(lambda: torch.empty_like(x), x=x) == []
    assert told(lambda: x.new_empty(7), x=x) == []
    assert told(lambda: torch.empty_strided((2, 2), (2, 1))) == []


def test_what_is_made_is_written_and_its_model_is_not_read(x):
    assert told(lambda: torch.zeros(5)) == ["out:w"]
    assert told(lambda: torch.arange(5)) == ["out:w"]
    assert told(lambda: torch.zeros_like(x), x=x) == ["out:w"]
    assert told(lambda: x.new_full((2,), 7), x=x) == ["out:w"]
    assert told(lambda: torch.randn_like(x), x=x)[-1] == "out:w"


def test_a_tensor_that_is_changed_is_read_and_written(x, y):
    assert told(lambda: x.add_(y), x=x, y=y) == ["x:rw y:r"]
    assert told(lambda: x.mul_(2), x=x) == ["x:rw"]
    assert told(lambda: x.index_put_((torch.tensor([0]),), y[0]), x=x, y=y)[-1].startswith("x:rw")


def test_a_tensor_that_is_overwritten_is_only_written_if_all_of_its_memory_is(x, y):
    assert told(lambda: x.copy_(y), x=x, y=y) == ["x:w y:r"]
    assert told(lambda: x.zero_(), x=x) == ["x:w"]
    assert told(lambda: x.normal_(), x=x) == ["x:w"]
    assert told(lambda: x[0].copy_(y[0]), x=x, y=y) == ["x:rw y:r"]
    assert told(lambda: x.t().fill_(3), x=x) == ["x:w"]
    assert told(lambda: x[:, 1].zero_(), x=x) == ["x:rw"]
    assert told(lambda: x[0].copy_(x[1]), x=x) == ["x:rw"]
    assert told(lambda: torch._foreach_zero_([x, y]), x=x, y=y) == ["x:w y:w"]


def test_an_output_that_is_given_is_written(x, y):
    z = torch.zeros(3, 4)
    assert told(lambda: torch.add(x, y, out=z), x=x, y=y, z=z) == ["x:r y:r z:w"]
    assert told(lambda: torch.add(x, y, out=x), x=x, y=y) == ["x:rw y:r"]
    whole = torch.zeros(6, 4)
    assert told(lambda: torch.add(x, y, out=whole[:3]), x=x, y=y, whole=whole) == ["x:r y:r whole:rw"]


def test_lists_of_tensors_are_changed_or_read_as_their_schemas_say(x, y):
    a, b = torch.zeros(3, 4), torch.zeros(3, 4)
    assert told(lambda: torch._foreach_add_([x, y], [a, b]), x=x, y=y, a=a, b=b) == ["x:rw y:rw a:r b:r"]


def test_a_value_that_is_asked_for_is_read(x):
    assert told(lambda: x.sum().item(), x=x)[-1].endswith(":r")
    assert told(lambda: torch.equal(x, x.detach()), x=x)[-1] == "x:r"
    empty = torch.zeros(3, 4)
    assert told(lambda: empty.nonzero(), x=empty) == ["x:r"]  # though what it returns has no memory


def test_tensors_without_memory_are_passed_over(x):
    nothing = torch.empty(0)
    assert told(lambda: torch.cat([nothing, x]), x=x) == ["x:r out:w"]
    assert told(lambda: nothing + 1) == []


@pytest.mark.parametrize("training", [True, False])
def test_running_statistics_are_written_in_training_though_no_schema_says_so(training):
    mean, var = torch.zeros(2), torch.ones(2)
    image = torch.randn(3, 2, 4, 4)
    norm = torch.nn.functional.batch_norm
    (operation,) = (
        o for o in told(lambda: norm(image, mean, var, training=training), image=image, mean=mean, var=var) if o
    )
    used = "rw" if training else "r"
    assert operation.startswith(f"image:r mean:{used} var:{used} ")
    with torch.inference_mode():
        operations = told(lambda: norm(image, mean, var, training=training), image=image, mean=mean, var=var)
    assert operations[-1].startswith(f"image:r mean:{used} var:{used} ")


def test_only_tensors_that_count_are_told_of(x, y):
    assert told(lambda: x + y, counts=lambda t: t is not y, x=x, y=y) == ["x:r out:w"]
    assert told(lambda: x.to(torch.float64), counts=lambda t: t.dtype == torch.float32, x=x) == ["x:r"]
    sink = Told()
    with AccessMode(sink, Clock()):  # on CUDA devices
        x + y
    assert sink.operations == []


def test_a_training_step_is_seen_from_the_first_operator_to_the_optimizers():
    weight = torch.nn.Parameter(torch.ones(4, 4))
    batch = torch.ones(2, 4)
    optimizer = torch.optim.SGD([weight], lr=0.1, foreach=False)
    sink = Told()
    sink.call(weight=weight, batch=batch)
    with AccessMode(sink, Clock(), lambda _: True):
        loss = (batch @ weight).sum()
        loss.backward()
        sink.call(gradient=weight.grad)
        optimizer.step()
    assert sink.operations[0].startswith("batch:r weight:r ")
    assert any(o.startswith("batch:r ") and o.endswith(":w") for o in sink.operations[1:])  # the gradient's product
    assert sink.operations[-1] == "weight:rw gradient:r"
    assert weight.grad.sum() == 32


def test_operators_in_the_backward_pass_of_another_thread_are_seen(x):
    weight = torch.ones(4, 4, requires_grad=True)
    seen = set()

    class Where(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t.clone()

        @staticmethod
        def backward(ctx, g):
            seen.add(threading.get_ident())
            return g * 3

    operations = told(lambda: Where.apply(x @ weight).sum().backward(), x=x, weight=weight)
    assert seen and any("x:r" in o for o in operations[2:])


def test_a_tensor_that_wraps_others_is_told_of_by_those():
    two = pytest.importorskip("torch.testing._internal.two_tensor").TwoTensor
    a, b = torch.ones(3), torch.ones(3)
    operations = told(lambda: two(a, b) * 2, a=a, b=b)
    assert [o.split(" ")[0] for o in operations] == ["a:r", "b:r"]


def test_tensors_without_contents_are_passed_over():
    from torch._subclasses.fake_tensor import FakeTensorMode

    def inside():
        with FakeTensorMode():
            return (torch.ones(3) * 2).shape

    assert told(inside) == []
    with FakeTensorMode():
        assert told(lambda: (torch.ones(3) * 2).shape) == []
    assert told(lambda: torch.ones(3, device="meta") * 2) == []
    i = torch.tensor([[0, 1], [1, 0]])
    sparse = torch.sparse_coo_tensor(i, torch.ones(2), (2, 2))
    assert torch.equal(torch.sparse.mm(sparse, torch.eye(2)), torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    told(lambda: torch.sparse.mm(sparse, torch.eye(2)))


def test_every_operator_is_timed_under_its_operations_number_and_views_under_none(x, y):
    sink, clock = Told(), Clock()
    with AccessMode(sink, clock, lambda _: True):
        x.view(12)
        x + y
        x.t()
        x.add_(1)
    assert clock.seen == [(0, -1), (1, 0), (2, -1), (3, 1)]


def test_results_are_what_they_are_without(x, y):
    def run():
        torch.manual_seed(1)
        z = torch.nn.functional.dropout(x @ y.t(), 0.5)
        parts = z.sort(dim=1)
        return [z, *parts, z.topk(2).values]

    expected = run()
    with AccessMode(Told(), Clock(), lambda _: True):
        found = run()
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_an_operator_that_fails_is_not_told_of(x):
    sink = Told()
    with AccessMode(sink, Clock(), lambda _: True):
        with pytest.raises(RuntimeError):
            x @ x
        x + 1
    assert len(sink.operations) == 1 and sink.running == []


def test_the_memory_of_modules_is_their_parameters_and_buffers(x):
    module = torch.nn.BatchNorm1d(4)
    expected = {storage(t) for t in (*module.parameters(), *module.buffers())}
    assert set(storages(module)) == expected and len(expected) == 5
    assert list(storages([x, {"y": x[1]}, torch.empty(0)])) == [storage(x), storage(x)]


def test_an_operator_on_the_cpu_has_no_device_to_be_timed_on(x):
    assert device_of((x, [x]), {}) is None
    assert device_of((), {"device": None}) is None
    assert device_of((), {"device": "cuda:1"}) == torch.device("cuda", 1)


class Event:
    """A CUDA event that is passed when it is told so."""

    made = []

    def __init__(self, enable_timing=False):
        assert enable_timing
        self.passed, self.at, self.device = False, None, None
        Event.made.append(self)

    def record(self, stream):
        self.passed, self.at, self.device = False, stream.now, stream.device

    def query(self):
        return self.passed

    def synchronize(self):
        self.passed = True

    def elapsed_time(self, other):
        return other.at - self.at


class Stream:
    def __init__(self, device):
        self.device, self.now = device, 0.0


@pytest.fixture
def gpus(monkeypatch):
    """Two streams on two devices that stand in for CUDA's."""
    streams = {torch.device("cuda", i): Stream(torch.device("cuda", i)) for i in range(2)}
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: streams[device])
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    Event.made = []
    return list(streams.values())


def timed(clock, stream, ms, number):
    began = clock.begin((), {"device": stream.device})
    stream.now += ms
    ran = clock.end(began)
    stream.now += 1000  # what the host does then
    clock.of(ran, number)


def test_times_are_told_in_order_once_the_device_is_there(gpus):
    times = {}
    clock = CudaClock(times.__setitem__)
    timed(clock, gpus[0], 0.5, 0)
    timed(clock, gpus[0], 0.25, 1)
    assert times == {}
    Event.made[1].passed = True
    clock.tell()
    assert times == {0: 500_000}
    clock.tell(wait=True)
    assert times == {0: 500_000, 1: 250_000}


def test_events_are_used_again_on_their_own_device(gpus):
    clock = CudaClock(lambda *_: None)
    for i in range(6):
        timed(clock, gpus[i % 2], 1, i)
        clock.tell(wait=True)
    timed(clock, gpus[0], 1, -1)
    timed(clock, gpus[0], 1, -1)
    assert len(Event.made) == 4


def test_what_is_captured_or_not_on_a_gpu_is_not_timed(gpus, monkeypatch, x):
    clock = CudaClock(lambda *_: None)
    assert clock.begin((x,), {}) is None
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    began = clock.begin((), {"device": "cuda:0"})
    assert began is None
    clock.of(clock.end(began), 3)
    assert Event.made == []


class Library:
    """gmlake's, as what was called."""

    def __init__(self):
        self.calls = []

    def do(self, name, *arguments):
        self.calls.append((name, *map(int, arguments)))

    def number(self, name, *arguments):
        self.calls.append((name, *arguments))
        return 7


@pytest.fixture
def library(monkeypatch):
    made = Library()
    monkeypatch.setattr(activation, "switched_on", lambda: made)
    return made


def test_the_library_is_told_of_accesses_of_their_operation_and_of_its_time(library):
    sink = Recorded(library)
    sink.access(512, True, False)
    assert sink.operation() == 7
    sink.took(7, 30)
    assert library.calls == [
        ("gmlake_note_access", 512, 1, 0),
        ("gmlake_note_operation",),
        ("gmlake_operation_took", 7, 30),
    ]


def test_tensors_and_modules_are_frozen_by_where_their_memory_begins(library, x):
    module = torch.nn.Linear(2, 2)
    gmlake.frozen(x[1], module)
    assert library.calls == [("gmlake_note_host_copy", storage(t)) for t in (x, module.weight, module.bias)]


def test_operators_are_looked_at_inside_and_times_told_before_a_recording_stops(library, gpus, monkeypatch, x):
    monkeypatch.setattr("gmlake.operators.on_cuda", lambda tensor: True)
    monkeypatch.setattr("gmlake.operators.device_of", lambda *_: gpus[0].device)
    x + 1
    with gmlake.accesses():
        x + 1
        (tell,) = Recording.before_stopping
        assert "gmlake_operation_took" not in [name for name, *_ in library.calls]
        tell()
        assert library.calls[-1] == ("gmlake_operation_took", 7, 0)
        x + 1
    x + 1
    assert Recording.before_stopping == []
    named = [name for name, *_ in library.calls]
    assert named.count("gmlake_note_operation") == named.count("gmlake_operation_took") == 2
    assert ("gmlake_note_access", storage(x), 1, 0) in library.calls


def test_without_gmlake_nothing_is_looked_at(x):
    with gmlake.accesses():
        gmlake.frozen(x)
        assert Recording.before_stopping == []
