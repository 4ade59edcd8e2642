"""The Python package without PyTorch and without a GPU: a library of a few C functions stands in for gmlake's, a module
of a few lines for PyTorch. Each test runs Python programs with them, as a process switches its allocator only once."""

import gzip
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).parents[2] / "examples/pytorch/gmlake"
sys.path.append(str(PACKAGE.parent))

from gmlake import Error  # noqa: E402
from gmlake.environment import for_children, tagged  # noqa: E402
from gmlake.figures import parse_snapshot, parse_stats  # noqa: E402

LIBRARY = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char settings[4096], marks[4096], text[8192];
static int where, begun, updates;
int gmlake_abi_version(void) { return ABI; }
const char* gmlake_configure(const char* t) {
  const char* limit = getenv("GMLAKE_LIMIT");
  if (strstr(t, "banana") || (limit && strstr(limit, "banana"))) return "gmlake: limit is to be a size, not 'banana'";
  settings[0] = 0;
  if (limit) sprintf(settings, "GMLAKE_LIMIT=%s\n", limit);
  strcat(settings, t);
  return NULL;
}
const char* gmlake_settings(void) { return settings; }
const char* gmlake_notes(void) { return "gmlake: a note\n"; }
int gmlake_device_count(void) { return getenv("FAKE_UNUSED") ? 0 : 3; }
const char* gmlake_stats(int device) { return device < 3 ? "requested 5\nlive 8\n" : NULL; }
const char* gmlake_snapshot(int device) { return device < 3 ? "chunk,0.0,4096,512\n" : NULL; }
const char* gmlake_trim(int device) { return device < 3 ? NULL : "gmlake: no memory has been allocated on device"; }
const char* gmlake_set_limit(int device, unsigned long long n) { sprintf(settings, "%d %llu", device, n); return NULL; }
const char* gmlake_retire_stream(int device, void* s) { sprintf(settings, "%d %p", device, s); return NULL; }
int gmlake_note_update(void) { ++updates; return 0; }
const char* gmlake_save_plans(int device, const char* path) {
  FILE* f = device == 1 ? NULL : fopen(path, "w");
  if (!f) return "gmlake: there is no plan for device 1 to save";
  fprintf(f, "plans after %d updates", updates);
  fclose(f);
  return NULL;
}
int gmlake_placement(int p) { int before = where; where = p; return before; }
const char* gmlake_swap_open(int device) { return device < 3 ? NULL : "gmlake: there is no such device"; }
static long long group = -1;
long long gmlake_swappable(long long g) { long long before = group; group = g; return before; }
const char* gmlake_swap_out(void* block, void* s) { return "gmlake: not swappable"; }
const char* gmlake_swap_in(void* block, void* s) { return NULL; }
const char* gmlake_prefetch(void* block) { return NULL; }
const char* gmlake_swap_check(void* block) { return NULL; }
unsigned long long gmlake_swap_smallest(void) { return 4 << 20; }
const char* gmlake_pin(void* block, void* on) { return NULL; }
const char* gmlake_unpin(void* block) { return NULL; }
const char* gmlake_read_only(void* block, int value) { return NULL; }
const char* gmlake_pause(int device, long long g, int keep, unsigned long long* moved) {
  *moved = 1000 * g + 10 * device + keep;
  return NULL;
}
const char* gmlake_resume(int device, long long g, unsigned long long* moved) { *moved = 1000 * g + 10 * device; return NULL; }
const char* gmlake_pin_host(int device, unsigned long long n) { sprintf(settings, "pin %d %llu", device, n); return NULL; }
const char* gmlake_page_start(int device, unsigned long long n) { return NULL; }
const char* gmlake_page_stop(int device, unsigned long long n) { return NULL; }
const char* gmlake_page_access(int d, const char* b, const char* u, size_t n, void* s) { return NULL; }
long long gmlake_page_operation(int device, void* on) { return 0; }
void gmlake_page_took(int device, long long number, long long ns) {}
void gmlake_page_step(int device, void* on, int timed) {}
const char* gmlake_job_begin(int device, void* on, unsigned priority) { return NULL; }
const char* gmlake_job_end(int device, void* on) { return NULL; }
const char* gmlake_page_operators(int announced) { return NULL; }
const char* gmlake_page_wrapped(void) { return NULL; }
const char* gmlake_record_start(void) { begun = 1; marks[0] = 0; return NULL; }
const char* gmlake_record_mark(const char* l) { strcat(strcat(strcat(marks, "m,"), l), "\n"); return NULL; }
const char* gmlake_note_access(void* block, int reads, int writes) { return NULL; }
long long gmlake_note_operation(void) { return -1; }
const char* gmlake_operation_took(long long number, long long ns) { return NULL; }
const char* gmlake_note_host_copy(void* block) { return NULL; }
const char* gmlake_record_stop(void) { return NULL; }
const char* gmlake_record_text(int device, size_t* length) {
  if (!begun || device == 1) return NULL;
  *length = sprintf(text, "a,0,%d,0\n%s", 100 + device, marks);
  return text;
}
const char* gmlake_report(const char* path) {
  FILE* f = fopen(path, "w");
  if (!f) return "gmlake: can't write the page";
  fputs(begun ? "a page of a recorded run" : "a page", f);
  fclose(f);
  return NULL;
}
const char* gmlake_torch_version(void) { return "2.11.0"; }
const char* gmlake_install(void) { return getenv("FAKE_BUSY") ? "gmlake: CUDA memory is in use" : NULL; }
void gmlake_torch_malloc(void) {}
void gmlake_torch_free(void) {}
void gmlake_torch_init(void) {}
void gmlake_torch_reset(void) {}
void gmlake_torch_memory_fraction(void) {}
void gmlake_torch_base_alloc(void) {}
void gmlake_torch_record_stream(void) {}
void gmlake_torch_begin_allocate_to_pool(void) {}
void gmlake_torch_end_allocate_to_pool(void) {}
void gmlake_torch_release_pool(void) {}
"""

TORCH = """
import os, sys, types
__version__ = os.environ.get("FAKE_TORCH", "2.11.0+cu130")
version = types.SimpleNamespace(cuda=None if "FAKE_CPU" in os.environ else "13.0")
hooks, current = {}, []

class Hooks:  # of an older PyTorch, without set_release_pool
    def __getattr__(self, name):
        if name.startswith("set_") and name != "set_release_pool":
            return lambda pointer: hooks.update({name: pointer})
        raise AttributeError(name)

class CUDAPluggableAllocator:
    def __init__(self, path, malloc, free):
        self.names, self._hooks = (path, malloc, free), Hooks()
    def allocator(self):
        return self._hooks

def change_current_allocator(allocator):
    if "FAKE_BUSY" in os.environ:
        raise RuntimeError("Can't swap an already initialized allocator")
    current.append(allocator)

memory = types.SimpleNamespace(CUDAPluggableAllocator=CUDAPluggableAllocator,
                               change_current_allocator=change_current_allocator)
cuda = types.SimpleNamespace(memory=memory, is_initialized=lambda: True, current_device=lambda: 2)
compiler = types.SimpleNamespace(is_compiling=lambda: "FAKE_COMPILING" in os.environ)

optimizer, after_updates = types.ModuleType("torch.optim.optimizer"), []
if "FAKE_OLD" not in os.environ:
    optimizer.register_optimizer_step_post_hook = after_updates.append
sys.modules["torch.optim"], sys.modules["torch.optim.optimizer"] = types.ModuleType("torch.optim"), optimizer
"""


def compiled(to, abi=6):
    source = to.with_suffix(".c")
    source.write_text(LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", f"-DABI={abi}", str(source), "-o", str(to)], check=True)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the library that stands in")
    folder = tmp_path_factory.mktemp("libraries")
    compiled(folder / "libgmlake_torch_plain.so")
    shutil.copy(folder / "libgmlake_torch_plain.so", folder / "libgmlake_torch_full.so")
    return folder


class Place:
    """A folder with the package, both libraries, and the stand-in for PyTorch, and processes that run in it."""

    def __init__(self, folder, libraries):
        self.folder, self.lib = folder, folder / "site/gmlake/lib"
        shutil.copytree(PACKAGE, folder / "site/gmlake", ignore=shutil.ignore_patterns("lib", "__pycache__"))
        shutil.copytree(libraries, self.lib, ignore=shutil.ignore_patterns("*.c"))
        (folder / "site/torch.py").write_text(TORCH)

    def python(self, *arguments, expect=0, path=(), **variables):
        env = {n: v for n, v in os.environ.items() if not n.startswith("GMLAKE") and n not in ("RANK", "WORLD_SIZE")}
        env["PYTHONPATH"] = os.pathsep.join([*map(str, path), str(self.folder / "site")])
        done = subprocess.run(
            [sys.executable, *map(str, arguments)], env=env | variables, cwd=self.folder, capture_output=True, text=True
        )
        assert done.returncode == expect, done.stderr
        return done

    def says(self, program, **variables):
        return self.python("-c", program, **variables).stdout.strip()

    def script(self, text, name="train.py"):
        (self.folder / name).write_text(text)
        return name

    def trace(self, name):
        return gzip.decompress((self.folder / name).read_bytes()).decode()


@pytest.fixture
def place(tmp_path, libraries):
    return Place(tmp_path, libraries)


ENABLED = "import gmlake; gmlake.enable(); "


def test_figures_are_read_by_name():
    assert parse_stats("requested 5\nreserved_peak 1099511627776\n") == {"requested": 5, "reserved_peak": 1 << 40}


def test_a_snapshot_is_read_by_kind():
    text = "chunk,0.0,4096,512\nblock,1.2,8192,256,200,7,live,1\nstitch,0.0,16384,768,700,0,0,4096:512;8192:256\n"
    found = parse_snapshot(text)
    assert found["chunks"] == [{"pool": "0.0", "address": 4096, "size": 512}]
    (block,) = found["blocks"]
    assert (block["pool"], block["requested"], block["stream"], block["state"], block["pending"]) == (
        "1.2",
        200,
        7,
        "live",
        True,
    )
    (stitch,) = found["stitches"]
    assert stitch["live"] is False
    assert stitch["extents"] == [{"address": 4096, "size": 512}, {"address": 8192, "size": 256}]


@pytest.mark.parametrize("text", ["chunk,0.0,4096\n", "lump,0.0,1,2\n", "chunk,0.0,here,512\n"])
def test_a_snapshot_of_another_form_is_an_error(text):
    with pytest.raises(Error, match="no line of a snapshot"):
        parse_snapshot(text)


def test_a_figure_that_is_no_number_is_an_error():
    with pytest.raises(Error, match="requested many"):
        parse_stats("requested many\n")


@pytest.mark.parametrize(
    "path, expected",
    [
        ("run.csv.gz", "run.rank1.csv.gz"),
        ("a.b/run.html", "a.b/run.rank1.html"),
        ("run-0.5.csv.gz", "run-0.5.rank1.csv.gz"),
        ("run", "run.rank1"),
    ],
)
def test_a_tag_goes_before_the_extension(path, expected):
    assert tagged(path, ".rank1") == expected


def test_the_childrens_folder_is_put_first_on_the_path_once():
    added = for_children({"PYTHONPATH": "/mine"})
    assert added["PYTHONPATH"].split(os.pathsep)[1:] == ["/mine"]
    assert for_children(added) == added


def test_nothing_is_on_and_pytorch_is_not_imported_until_it_is_asked_for(place):
    program = "import sys, gmlake; print(gmlake.enabled(), 'torch' in sys.modules)"
    assert place.says(program) == "None False"


def test_the_full_library_is_chosen_where_there_is_one(place):
    assert place.says(ENABLED + "print(gmlake.enabled())") == "full"
    (place.lib / "libgmlake_torch_full.so").unlink()
    assert place.says(ENABLED + "print(gmlake.enabled())") == "plain"


def test_a_full_library_that_cannot_be_loaded_gives_way_to_the_plain_one_and_says_so(place):
    (place.lib / "libgmlake_torch_full.so").write_text("not a library")
    done = place.python("-c", ENABLED + "print(gmlake.enabled())")
    assert done.stdout.strip() == "plain" and "can't be loaded" in done.stderr


def test_a_library_of_another_interface_is_refused(place):
    compiled(place.lib / "libgmlake_torch_full.so", abi=1)
    done = place.python("-c", "import gmlake; gmlake.enable(level='full')", expect=1)
    assert "interface 1 and this package 6" in done.stderr


def test_without_a_library_the_error_names_the_place(place):
    shutil.rmtree(place.lib)
    done = place.python("-c", ENABLED, expect=1)
    assert f"there is no {place.lib}" in done.stderr


def test_the_plain_library_is_given_to_pytorch_with_the_hooks_that_it_has(place):
    program = (
        "import gmlake, torch; gmlake.enable(level='plain'); print(torch.current[0].names[1:], sorted(torch.hooks))"
    )
    said = place.says(program)
    assert "('gmlake_torch_malloc', 'gmlake_torch_free')" in said
    assert "set_record_stream_fn" in said and "set_end_allocate_to_pool_fn" in said and "release" not in said


SETTINGS = "print(repr(activation.in_use().text('gmlake_settings')))"


def test_keywords_become_lines_and_none_is_left_out(place):
    said = place.says(
        "import gmlake; from gmlake import activation; gmlake.enable(limit=1 << 30, chunk='8MiB', wait=False); "
        + SETTINGS
    )
    assert said == repr("limit=1073741824\nchunk=8MiB\nwait=0\n")


def test_true_and_false_are_for_what_is_on_or_off(place):
    said = place.says(
        "import gmlake; from gmlake import activation; gmlake.enable(limit=True, wait=True, plan=False); " + SETTINGS
    )
    assert said == repr("limit=True\nwait=1\nplan=off\n")  # the library takes no True for a size


@pytest.mark.parametrize("value", ["'3GiB\\nchunk=8MiB'", "'3GiB\\0'"])
def test_a_setting_of_more_than_a_line_is_an_error(place, value):
    done = place.python("-c", f"import gmlake; gmlake.enable(limit={value})", expect=1)
    assert f"a text of one line, and not 'limit={value[1:-1]}'".replace("\\0", "\\x00") in done.stderr


def test_a_later_call_keeps_the_settings_before_and_changes_those_given_anew(place):
    program = """import gmlake
from gmlake import activation
gmlake.enable(limit='3GiB', chunk='32MiB')
try:
    gmlake.enable(limit='banana')
except gmlake.Error:
    gmlake.enable(preset='lake', chunk='8MiB')
"""
    assert place.says(program + SETTINGS) == repr("limit=3GiB\nchunk=8MiB\npreset=lake\n")


@pytest.mark.parametrize("keywords", ["limit='banana'", "level='half'"])
def test_a_mistaken_keyword_is_an_error(place, keywords):
    done = place.python("-c", f"import gmlake; gmlake.enable({keywords})", expect=1)
    assert "gmlake.library.Error" in done.stderr
    assert keywords.split("'")[1] in done.stderr


@pytest.mark.parametrize("level", ["full", "plain"])
def test_cuda_in_use_is_an_error_and_leaves_gmlake_off(place, level):
    program = f"""import gmlake
try:
    gmlake.enable(level='{level}')
except gmlake.Error as error:
    print(gmlake.enabled(), 'in use' in str(error))
"""
    assert place.says(program, FAKE_BUSY="1") == "None True"


OFF_STILL = """
try:
    gmlake.enable(level='plain')
except gmlake.Error as error:
    print(gmlake.enabled(), torch.current, error)
"""


@pytest.mark.parametrize("variable", ["GMLAKE_RECORD", "GMLAKE_REPORT"])
@pytest.mark.parametrize("path", ["missing/x.csv", "."])
def test_a_file_that_cannot_be_written_leaves_gmlake_off(place, variable, path):
    assert place.says("import gmlake, torch\n" + OFF_STILL, **{variable: path}).startswith("None [] gmlake: ")


def test_a_recording_that_runs_already_leaves_gmlake_off(place):
    program = "import gmlake, torch; gmlake.allocator(); gmlake.record('a.csv')\n" + OFF_STILL
    said = place.says(program, GMLAKE_RECORD="b.csv")
    assert said.startswith("None [] ") and "is being recorded already" in said


def test_a_pytorch_without_cuda_is_an_error(place):
    assert "without CUDA" in place.python("-c", ENABLED, expect=1, FAKE_CPU="1").stderr


def test_enabling_again_is_fine_and_another_level_is_an_error(place):
    done = place.python("-c", ENABLED + "gmlake.enable(level='full'); gmlake.enable(level='plain')", expect=1)
    assert "the level is 'full' already" in done.stderr
    assert done.stderr.count("a note") == 1


def test_the_level_comes_from_the_environment_where_none_is_asked_for(place):
    assert place.says(ENABLED + "print(gmlake.enabled())", GMLAKE_LEVEL="plain") == "plain"


def test_figures_are_of_the_current_device_or_the_one_that_is_named(place):
    program = ENABLED + "print(gmlake.stats(), gmlake.stats('cuda:1')['live'], gmlake.stats(7), gmlake.snapshot(7))"
    expected = "{'requested': 5, 'live': 8} 8 {} {'chunks': [], 'blocks': [], 'stitches': [], 'planned': []}"
    assert place.says(program) == expected


@pytest.mark.parametrize("device", ["'cpu'", "1.5", "'cuda:one'", "[0]"])
def test_a_device_that_is_no_cuda_device_is_an_error(place, device):
    done = place.python("-c", ENABLED + f"gmlake.stats({device})", expect=1)
    assert f"gmlake: '{eval(device)}' is no CUDA device" in done.stderr


def test_figures_without_gmlake_are_an_error(place):
    assert "not switched on" in place.python("-c", "import gmlake; gmlake.stats()", expect=1).stderr


@pytest.mark.parametrize(
    "size, expected",
    [
        ("'1.5GiB'", 3 << 29),
        ("512", 512),
        ("'10MB'", 10_000_000),
        ("'.5KiB'", 512),
        ("'1e3'", 1000),
        ("2e9", 2_000_000_000),
        ("(1 << 60) - 1", (1 << 60) - 1),
    ],
)
def test_a_limit_is_bytes_or_a_text_on_the_current_device(place, size, expected):
    program = ENABLED + f"gmlake.set_limit({size}); from gmlake import activation; " + SETTINGS
    assert place.says(program) == f"'2 {expected}'"


@pytest.mark.parametrize(
    "size",
    [
        "'many'", "'3 parsecs'", "0", "-1", "True", "None", "'0GiB'", "'0.5'", "'1.5'", "2.5", "'30 GiB'", "'30GiB\\n'", "'3e99GiB'",
        "'\\u0663GiB'", "1 << 60", "1 << 64", "(1 << 64) + 1", "float('nan')",
    ],
)  # fmt: skip
def test_a_limit_that_is_no_size_is_an_error(place, size):
    assert "no size" in place.python("-c", ENABLED + f"gmlake.set_limit({size})", expect=1).stderr


def test_plans_are_saved_where_there_are_any(place, tmp_path):
    path = tmp_path / "run.plan"
    place.python("-c", ENABLED + f"gmlake.save_plans({str(path)!r}, device=0)")
    assert path.read_text() == "plans after 0 updates"
    said = place.python("-c", ENABLED + f"gmlake.save_plans({str(path)!r}, device=1)", expect=1).stderr
    assert "gmlake: there is no plan for device 1" in said


@pytest.mark.parametrize(
    ("environment", "updates"), [({}, 3), ({"FAKE_COMPILING": "1"}, 0), ({"FAKE_OLD": "1"}, 0)], ids=str
)
def test_the_library_is_told_of_each_optimizers_updates(place, tmp_path, environment, updates):
    path = tmp_path / "run.plan"
    told = "import torch\nfor hook in 3 * torch.after_updates: hook(None, (), {})\n"
    place.python("-c", ENABLED + told + f"gmlake.save_plans({str(path)!r}, device=0)", **environment)
    assert path.read_text() == f"plans after {updates} updates"


def test_placements_nest_and_end(place):
    program = (
        ENABLED
        + """
from gmlake import activation
def now():
    p = activation.in_use().number("gmlake_placement", 0)
    activation.in_use().number("gmlake_placement", p)
    return p
seen = []
with gmlake.one_handle():
    seen.append(now())
    with gmlake.own_chunks():
        seen.append(now())
    seen.append(now())
print(seen + [now()])
"""
    )
    assert place.says(program) == "[2, 1, 2, 0]"


def test_swappable_tags_nest_and_end(place):
    program = (
        ENABLED
        + """
from gmlake import activation
def now():
    g = activation.in_use().number("gmlake_swappable", 0)
    activation.in_use().number("gmlake_swappable", g)
    return g
seen = [now()]
with gmlake.swappable("weights", device=0):
    seen.append(now())
    with gmlake.swappable(device=0):
        seen.append(now())
    with gmlake.swappable("weights", device=0):
        seen.append(now())
    seen.append(now())
print(seen + [now()])
"""
    )
    assert place.says(program) == "[-1, 1, 0, 1, 1, -1]"


def test_groups_are_paused_and_resumed_by_their_tags(place):
    program = (
        ENABLED
        + """
with gmlake.swappable("a", device=0), gmlake.swappable("b", device=0):
    pass
print(gmlake.pause("b", device=1), gmlake.pause("a", keep=False, device=0), gmlake.resume("b", device=2), gmlake.pause(device=0))
"""
    )
    assert place.says(program) == "2011 1000 2020 1"
    assert "nothing was made swappable" in place.python("-c", ENABLED + "gmlake.pause('c', device=0)", expect=1).stderr


def test_host_memory_is_pinned_by_size(place):
    program = ENABLED + "from gmlake import activation\ngmlake.pin_host('1GiB', device=2)\n"
    assert place.says(program + "print(activation.in_use().text('gmlake_settings'))") == f"pin 2 {1 << 30}"


def test_marks_and_placements_do_nothing_without_gmlake(place):
    program = "import gmlake\nwith gmlake.step(), gmlake.one_handle(), gmlake.own_chunks(), gmlake.accesses():\n  gmlake.mark('x'); gmlake.frozen(); print('ran')"
    assert place.says(program) == "ran"


@pytest.mark.parametrize("label", ["''", "'a\\nb'", "'ü'", "5"])
def test_a_mark_that_the_format_has_no_place_for_is_an_error(place, label):
    assert "not printable" in place.python("-c", ENABLED + f"gmlake.mark({label})", expect=1).stderr


def test_a_pool_beside_pytorchs_allocator_is_of_the_plain_library(place):
    program = "import gmlake, torch; a = gmlake.allocator(); print(a is gmlake.allocator(), gmlake.stats(0)['live'],"
    said = place.says(program + " gmlake.enabled(), torch.current, a.names[0].endswith('plain.so'))")
    assert said == "True 8 None [] True"


def test_a_note_is_told_once_although_both_libraries_have_it(place):
    done = place.python("-c", ENABLED + "gmlake.allocator()")
    assert done.stderr == "gmlake: a note\n"


def test_of_several_ranks_the_first_one_tells_the_notes(place):
    told = [place.python("-c", ENABLED, RANK=rank, WORLD_SIZE="2").stderr for rank in "01"]
    assert told == ["gmlake: a note\n", ""]


def test_a_record_leaves_a_trace_for_each_device_that_was_used(place):
    program = (
        ENABLED
        + """
with gmlake.record("run.csv.gz") as r:
    with gmlake.step():
        gmlake.mark("backward")
print(r.stop())
"""
    )
    assert place.says(program) == "[]"
    assert place.trace("run.csv.gz") == "a,0,100,0\nm,step\nm,backward\n"
    assert place.trace("run.gpu2.csv.gz").startswith("a,0,102,0\n")
    assert not (place.folder / "run.gpu1.csv.gz").exists()


def test_a_record_that_nobody_stops_is_written_at_exit_wherever_the_process_is_then(place):
    place.python("-c", ENABLED + "gmlake.record('run.csv.gz'); import os; os.chdir('/')")
    assert place.trace("run.csv.gz") == "a,0,100,0\n"


def test_a_forked_child_does_not_write_its_parents_record(place):
    program = (
        ENABLED
        + """
import os
r = gmlake.record("run.csv.gz")
if os.fork() == 0:
    assert r.stop() == []
    raise SystemExit(0)
os.wait()
print(os.path.exists("run.csv.gz"), len(r.stop()))
"""
    )
    assert place.says(program) == "False 2"


def test_a_second_record_at_a_time_and_one_into_nowhere_are_errors(place):
    done = place.python("-c", ENABLED + "gmlake.record('a.csv.gz'); gmlake.record('b.csv.gz')", expect=1)
    assert "is being recorded already" in done.stderr
    done = place.python("-c", ENABLED + "gmlake.record('missing/a.csv.gz')", expect=1)
    assert "there is no folder" in done.stderr


@pytest.mark.parametrize("call", ["record", "report", "save_plans"])
@pytest.mark.parametrize("path", ["''", "5", "'a\\0b'"])
def test_what_is_no_path_is_an_error(place, call, path):
    done = place.python("-c", ENABLED + f"gmlake.{call}({path})", expect=1)
    assert f"gmlake: {eval(path)!r} is no path" in done.stderr


def test_a_record_to_where_no_file_can_be_written_is_an_error_before_it_begins(place):
    done = place.python("-c", ENABLED + "gmlake.record('.')", expect=1)
    assert f"{place.folder} is a folder" in done.stderr
    nobody = "import os; os.geteuid() or os.setuid(65534); "
    done = place.python("-c", ENABLED + nobody + "gmlake.record('/a.csv.gz')", expect=1)
    assert "may not write /a.csv.gz" in done.stderr


def test_the_environment_has_a_whole_process_recorded_and_reported(place):
    place.python("-c", ENABLED, GMLAKE_RECORD="run.csv.gz", GMLAKE_REPORT="run.html")
    assert place.trace("run.csv.gz") == "a,0,100,0\n"
    assert (place.folder / "run.html").read_text() == "a page of a recorded run"


def test_a_report_alone_shows_the_runs_course_too(place):
    place.python("-c", ENABLED, GMLAKE_REPORT="run.html")
    assert (place.folder / "run.html").read_text() == "a page of a recorded run"


def test_a_process_that_used_no_device_leaves_nothing(place):
    variables = {"GMLAKE_RECORD": "run.csv.gz", "GMLAKE_REPORT": "run.html", "FAKE_UNUSED": "1"}
    done = place.python("-c", ENABLED, **variables)
    assert not list(place.folder.glob("run*"))
    assert done.stderr == "gmlake: a note\n"


def test_ranks_write_files_of_their_own(place):
    for rank in "01":
        place.python("-c", ENABLED, GMLAKE_RECORD="run.csv.gz", GMLAKE_REPORT="r.html", RANK=rank, WORLD_SIZE="2")
    assert sorted(f.name for f in place.folder.glob("r*.*")) == [
        "r.rank0.html",
        "r.rank1.html",
        "run.rank0.csv.gz",
        "run.rank0.gpu2.csv.gz",
        "run.rank1.csv.gz",
        "run.rank1.gpu2.csv.gz",
    ]


def test_a_single_rank_writes_the_file_that_was_named(place):
    place.python("-c", ENABLED, GMLAKE_RECORD="run.csv.gz", RANK="0", WORLD_SIZE="1")
    assert (place.folder / "run.csv.gz").exists()


def test_processes_that_multiprocessing_starts_write_files_of_their_own(place):
    name = place.script("""
import multiprocessing, os, torch
def work():
    pass
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start(); child.join()
    print(child.pid)
""")
    pid = place.python("-m", "gmlake", "--record", "run.csv.gz", name).stdout.strip()
    assert (place.folder / "run.csv.gz").exists() and (place.folder / f"run.pid{pid}.csv.gz").exists()


def test_processes_started_by_others_write_files_of_their_own_and_tell_no_note_again(place):
    name = place.script("""
import subprocess, sys, torch
for _ in range(2):
    child = subprocess.Popen([sys.executable, "-c", "import torch"])
    child.wait()
    print(child.pid)
""")
    done = place.python("-m", "gmlake", "--record", "run.csv.gz", "--report", "run.html", name)
    names = {"run.csv.gz", "run.gpu2.csv.gz", "run.html"}
    for pid in done.stdout.split():
        names |= {f"run.pid{pid}.csv.gz", f"run.pid{pid}.gpu2.csv.gz", f"run.pid{pid}.html"}
    assert {f.name for f in place.folder.glob("run*")} == names
    assert done.stderr.count("a note") == 1


LOOK = "import gmlake, sys; print(gmlake.enabled(), 'torch' in sys.modules, sys.argv, __name__)"


def test_folders_and_packages_that_can_not_be_run_are_told(place):
    (place.folder / "inert").mkdir()
    done = place.python("-m", "gmlake", "inert", expect=2)
    assert "inert is a folder without a __main__.py" in done.stderr and "Traceback" not in done.stderr
    done = place.python("-m", "gmlake", "-m", "json", expect=2)
    assert "json is a package, and has no __main__" in done.stderr and "Traceback" not in done.stderr
    (place.folder / "inert/__main__.py").write_text("print('runs')")
    assert place.python("-m", "gmlake", "inert").stdout == "runs\n"


def test_the_launcher_runs_a_script_as_python_would(place):
    name = place.script("import torch\n" + LOOK)
    said = place.python("-m", "gmlake", name, "--lr", "0.1", "--limit").stdout.strip()
    assert said == "full True ['train.py', '--lr', '0.1', '--limit'] __main__"


def test_the_launcher_runs_a_module_as_python_would(place):
    place.script("import torch, sys\n" + LOOK, "trains.py")
    said = place.python("-m", "gmlake", "--level", "plain", "-m", "trains", "-m", "x").stdout.strip()
    assert said.startswith("plain True [") and said.endswith("/trains.py', '-m', 'x'] __main__")


def test_the_launcher_leaves_a_program_without_pytorch_alone(place):
    assert place.python("-m", "gmlake", place.script(LOOK)).stdout.startswith("None False")


def test_the_launchers_options_reach_the_library_and_child_processes(place):
    look = "import torch, gmlake, os; from gmlake import activation; " + SETTINGS + "; print(gmlake.enabled())"
    place.script(look, "child.py")
    name = place.script(f"{look}\nimport subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)")
    said = place.python("-u", "-m", "gmlake", "--limit", "2GiB", "--level", "plain", name).stdout.split()
    assert said == [r"'GMLAKE_LIMIT=2GiB\n'", "plain"] * 2


def test_a_child_process_without_pytorch_does_not_import_it(place):
    look = "import sys; print([m for m in sys.modules if m in ('torch', 'gmlake', 'ctypes')])"
    name = place.script(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {look!r}], check=True)")
    assert place.python("-m", "gmlake", name).stdout.strip() == "[]"


def test_looking_for_pytorch_does_not_use_up_the_hook(place):
    look = "import importlib.util as u; assert u.find_spec('torch'); import torch, gmlake; print(gmlake.enabled())"
    name = place.script(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {look!r}], check=True)\n{look}")
    assert place.python("-u", "-m", "gmlake", name).stdout.split() == ["full", "full"]


def test_a_child_without_the_package_on_its_path_finds_it_beside_its_own_file(place):
    (place.folder / "bare").mkdir()
    shutil.move(place.folder / "site/torch.py", place.folder / "bare/torch.py")
    variables = {
        "GMLAKE_AUTOSTART": "1",
        "PYTHONPATH": f"{place.folder}/site/gmlake/child{os.pathsep}{place.folder}/bare",
    }
    assert place.says("import torch, gmlake; print(gmlake.enabled())", **variables) == "full"


def test_a_sitecustomize_that_ours_hides_is_run_after_it(place):
    (place.folder / "mine").mkdir()
    (place.folder / "mine/sitecustomize.py").write_text("import builtins; builtins.mine = __file__")
    look = "import sys; print(mine == sys.modules['sitecustomize'].__file__)"
    name = place.script(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {look!r}], check=True)")
    assert place.python("-m", "gmlake", name, path=[place.folder / "mine"]).stdout.strip() == "True"


def test_the_childrens_sitecustomize_does_nothing_that_was_not_asked_for(place):
    look = "import torch, sys; print('gmlake' in sys.modules)"
    said = place.python("-c", look, path=[place.folder / "site/gmlake/child"]).stdout
    assert said.strip() == "False"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--limt", "3GiB", "train.py"], "--limt"),
        (["--lim", "3GiB", "train.py"], "--lim"),
        (["--level", "half", "train.py"], "half"),
        (["--limit", "banana", "train.py"], "banana"),
        (["--record", "missing/run.csv.gz", "train.py"], "there is no folder"),
        (["--record", ".", "train.py"], "is a folder"),
        (["--report", "", "train.py"], "'' is no path"),
        ([], "a script, or -m and a module, is missing"),
        (["-m"], "a script, or -m and a module, is missing"),
        (["nowhere.py"], "no script nowhere.py"),
        (["-m", "nowhere.at.all"], "no module named nowhere.at.all"),
        (["-m", "lacks.nothing"], "no module named lacks.nothing"),
        (["-m", "lacks.one.train"], "lacks.one.train can't be found: ModuleNotFoundError: No module named 'absent'"),
        (["-m", "lacks.name.train"], "lacks.name.train can't be found: ImportError: cannot import name 'absent'"),
    ],
)
def test_a_mistake_in_the_launchers_command_line_is_an_error_without_a_traceback(place, arguments, words):
    place.script("print('ran')")
    for name, text in {"": "", "one/": "import absent", "name/": "from lacks import absent"}.items():
        (place.folder / "lacks" / name).mkdir()
        place.script(text, f"lacks/{name}__init__.py")
    done = place.python("-m", "gmlake", *arguments, expect=2)
    assert words in done.stderr and "Traceback" not in done.stderr
    assert "ran" not in done.stdout


@pytest.mark.parametrize("variable, value", [("GMLAKE_LEVEL", "ful"), ("GMLAKE_RECORD", "missing/run.csv.gz")])
def test_a_mistake_in_the_environment_is_an_error_before_the_program_runs(place, variable, value):
    done = place.python("-m", "gmlake", place.script("print('ran')"), expect=2, **{variable: value})
    assert value.split("/")[0] in done.stderr and "ran" not in done.stdout


def test_the_launcher_passes_on_how_the_program_ends(place):
    done = place.python("-m", "gmlake", place.script("import torch\nraise SystemExit(7)"), expect=7)
    assert done.stderr == "gmlake: a note\n"


def test_a_library_for_another_pytorch_is_not_loaded(place):
    program = (
        "import gmlake\ntry: gmlake.enable(level='full')\nexcept gmlake.Error as e: print(e)\nprint(gmlake.enabled())"
    )
    said = place.says(program, FAKE_TORCH="2.12.1+cu130")
    assert "built for PyTorch 2.11.0, and this is 2.12.1+cu130" in said
    assert said.endswith("None")


def test_where_the_full_library_is_for_another_pytorch_the_plain_one_serves_and_says_so(place):
    done = place.python("-c", ENABLED + "print(gmlake.enabled())", FAKE_TORCH="2.12.1+cu130")
    assert done.stdout.strip() == "plain"
    assert "built for PyTorch 2.11.0" in done.stderr


def test_the_same_release_of_another_build_is_the_same_pytorch(place):
    assert place.says(ENABLED + "print(gmlake.enabled())", FAKE_TORCH="2.11.0a0+git1234") == "full"
