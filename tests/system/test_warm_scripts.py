"""A script in a warm worker does, byte for byte, what it does in a fresh interpreter. The import server runs here
without elastic-run; a stub stands in for PyTorch where PyTorch itself plays no part."""
# ctest: computes
# ctest: long
# ctest: release-only

import os
import pathlib
import sys
import sysconfig
import textwrap
import venv

import pytest

from warm_server import ImportServer
from workers import LEAVE

SCRIPT = "script.py"
RANK = {"RANK": "3", "WORLD_SIZE": "4"}

# What a script does: (its text, its status). A `{...}` of these texts is Python's own.
SCRIPTS = {
    "a plain traceback": ("""\
        def inner(value):
            return 1 / value
        def outer():
            inner(0)
        outer()
        """, 1),
    "chained tracebacks, notes of causes and of contexts": ("""\
        try:
            try:
                {}["key"]
            except KeyError as error:
                raise ValueError("cause") from error
        except ValueError:
            print([][1])
        """, 1),
    "a SyntaxError": ("""\
        print("never")
        def broken(:
            pass
        """, 1),
    "an IndentationError": ("if True:\nprint(1)\n", 1),
    "an encoding that is declared": (b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'), __doc__)\n", 0),
    "a missing file": (None, 2),
    "sys.exit()": ("import sys\nprint('left')\nsys.exit()\n", 0),
    "sys.exit(number)": ("import sys\nsys.exit(3)\n", 3),
    "sys.exit(text)": ("import sys\nsys.exit('a reason')\n", 1),
    "os._exit": ("import os\nos._exit(7)\n", 7),
    "argparse, which names the program": ("""\
        import argparse
        argparse.ArgumentParser().parse_args()
        """, 2),
    "death by SIGTERM": ("""\
        import os, signal, sys
        print("first")
        os.kill(os.getpid(), signal.SIGTERM)
        """, -15),
    "death by SIGSEGV": ("import ctypes\nprint('first')\nctypes.string_at(0)\n", -11),
    "a KeyboardInterrupt, after which threads and atexit have their turn": ("""\
        import atexit, threading, time
        atexit.register(print, "at exit")
        threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
        raise KeyboardInterrupt
        """, -2),
    "SIGINT": ("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nprint('never')\n", -2),
    "sys.excepthook": ("""\
        import sys, traceback
        def hook(kind, value, trace):
            print("hook", kind, value, [frame.name for frame in traceback.extract_tb(trace)])
            print(sys.last_type, sys.last_value, sys.last_traceback is trace)
        sys.excepthook = hook
        raise ValueError("caught")
        """, 1),
    "a sys.excepthook that fails": ("""\
        import sys
        def hook(*error):
            raise RuntimeError("worse")
        sys.excepthook = hook
        raise ValueError("bad")
        """, 1),
    "a sys.excepthook that leaves": ("import sys\nsys.excepthook = lambda *error: sys.exit(9)\n1 / 0\n", 9),
    "atexit": ("""\
        import atexit
        atexit.register(print, "last")
        atexit.register(divmod, 1, 0)
        atexit.register(print, "first")
        """, 0),
    "threads at the end": ("""\
        import os, threading, time
        def work():
            time.sleep(0.2)
            print(threading.current_thread().name, threading.main_thread().is_alive())
            raise ValueError("in a thread")
        threading.Thread(target=work).start()
        threading.Thread(target=time.sleep, args=[1000], daemon=True).start()
        main = threading.main_thread()
        print(threading.active_count(), main.name, main.native_id == threading.get_native_id() == os.getpid())
        print(main.ident == threading.get_ident(), "end")
        """, 0),
    "__del__ at the end": ("""\
        import atexit
        class Last:
            def __init__(self, name):
                self.name = name
            def __del__(self):
                print("del", self.name, __name__)
        first, ring = Last("global"), Last("ring")
        ring.itself = ring
        atexit.register(print, "at exit")
        print("end")
        """, 0),
    "__del__ after an exception": ("""\
        class Last:
            def __del__(self):
                print("del")
        def fails():
            local = Last()
            raise ValueError
        fails()
        """, 1),
    "an exception that nobody can catch": ("""\
        import sys
        class Bad:
            def __del__(self):
                raise ValueError("in __del__")
        sys.unraisablehook = lambda error: print(error.exc_value, file=sys.stderr)
        Bad()
        """, 0),
    "stdout that cannot be written at the end": ("import sys\nsys.stdout = open('/dev/full', 'w')\nprint(1)\n", 120),
    "the names in __main__": ("""\
        value: int = 1
        for name, value in sorted(globals().items()):
            if name not in ("__builtins__", "__loader__", "__spec__"):
                print(name, repr(value))
        print(__spec__ and (__spec__.name, __spec__.origin, __spec__.parent))
        print(__builtins__, type(__loader__), __loader__.name, __loader__.path)
        print(__import__("__main__").__dict__ is globals())
        """, 0),
    "sys.argv, sys.orig_argv, sys.path, sys.flags": ("""\
        import os, sys
        print(sys.argv, getattr(sys, "orig_argv", None), sys.path, sys.flags, sys.warnoptions, sys._xoptions, sep="\\n")
        print(sys.executable, sys.prefix, sys.base_prefix, os.getcwd(), sys.getrecursionlimit(), sys.gettrace())
        """, 0),
    "streams": ("""\
        import sys
        for stream in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            print(stream, type(stream.buffer), stream.errors, stream.newlines, stream.line_buffering,
                  stream.write_through, stream.isatty(), stream.seekable(), stream.fileno(), stream.buffer)
        print(sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__)
        print("\\u00e9\\udc80".encode(sys.stdout.encoding, sys.stderr.errors), end="")
        print("half a line", end="")
        sys.stderr.write("another half")
        __import__("os").write(1, b"|")
        """, 0),
    "signals": ("""\
        import os, signal
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.sigpending(), signal.getitimer(signal.ITIMER_REAL))
        print([(int(number), signal.getsignal(number)) for number in signal.valid_signals() if signal.getsignal(number)
               is not signal.default_int_handler], signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        for line in open("/proc/self/status"):
            name, value = line.split(":", 1)
            if name in ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"):
                print(name, hex(int(value, 16) & ~(3 << 31)))  # two are the C library's own
            if name in ("Threads", "NoNewPrivs", "CapEff", "Seccomp"):
                print(line)
        """, 0),
    "session, group, parent, umask, limits, priority and open files": ("""\
        import os, resource
        print(os.getsid(0) == os.getpgrp() == os.getpid(), os.getppid(), os.umask(0))
        print(os.getpriority(os.PRIO_PROCESS, 0), os.getcwd(), open("/proc/self/oom_score_adj").read())
        print([resource.getrlimit(limit) for limit in range(16)], os.sched_getaffinity(0), os.sched_getscheduler(0))
        print({number: os.readlink("/proc/self/fd/" + number) for number in os.listdir("/proc/self/fd")
               if number not in "12" and os.path.exists("/proc/self/fd/" + number)})
        print([os.get_inheritable(number) for number in (0, 1, 2)])
        """, 0),
    "the environment, also the C library's": ("""\
        import ctypes, os, subprocess, sys
        for name in list(os.environ):
            if name.startswith("TORCHINDUCTOR_"):
                del os.environ[name]  # imports have set it; another script tells of that
        print(sorted(os.environ.items()))
        libc = ctypes.CDLL(None)
        libc.getenv.restype = ctypes.c_char_p
        print([libc.getenv(name) for name in (b"RANK", b"WORLD_SIZE", b"PATH", b"PYTORCH_NVML_BASED_CUDA_CHECK")])
        print(sorted(subprocess.run(["env"], stdout=subprocess.PIPE).stdout.splitlines()))
        """, 0),
    "the command line": ("""\
        print(open("/proc/self/cmdline", "rb").read(), open("/proc/self/comm").read())
        """, 0),
    "inspect.getsource, frames and doctest": ("""\
        '''A text.

        >>> 1 + 1
        3
        '''
        import doctest, inspect
        class Thing:
            def method(self):
                return inspect.currentframe().f_code.co_filename
        print(inspect.getsource(Thing), inspect.getfile(Thing), Thing().method(), __doc__)
        print(doctest.testmod())
        """, 0),
    "pickles of classes of __main__": ("""\
        import pickle
        class Thing:
            value = 1
        data = pickle.dumps([Thing, Thing()])
        print(data, pickle.loads(data)[0] is Thing)
        """, 0),
    "a warning": ("""\
        import warnings
        warnings.warn("once")
        def deprecated():
            warnings.warn("twice", DeprecationWarning, stacklevel=2)
        deprecated()
        """, 0),
    "logging and asyncio": ("""\
        import asyncio, logging
        logging.warning("to stderr")
        async def work():
            await asyncio.sleep(0)
            logging.getLogger(__name__).exception("none")
            return await asyncio.gather(*[asyncio.to_thread(abs, -number) for number in range(3)])
        print(asyncio.run(work()))
        """, 0),
    "random numbers with a seed": ("""\
        import random
        random.seed(1)
        print(random.random(), random.sample(range(100), 5))
        """, 0),
}
for method in ("fork", "spawn", "forkserver"):
    SCRIPTS[f"a pool by {method}"] = (f"""\
        import multiprocessing, os
        class Thing:
            def __init__(self, value):
                self.value = value
        def work(thing):
            return Thing(thing.value ** 2 + int(os.environ["RANK"]))
        def name(_):
            return multiprocessing.current_process().name, __name__, multiprocessing.parent_process().pid
        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(1) as pool:
                print([thing.value for thing in pool.map(work, map(Thing, range(5)))])
                child, module, parent = pool.map(name, [0])[0]
                print(child, module, parent == os.getpid() or "{method}" == "forkserver")
                pool.close()
                pool.join()  # so that it has time to write what it has not
            multiprocessing.Process(target=print, args=["a process"]).start()
        """, 0)

# Of PyTorch itself: compared with the real one only.
TORCH_SCRIPTS = {
    "DataLoader workers by fork and spawn": ("""\
        import torch
        class Squares(torch.utils.data.Dataset):
            def __len__(self):
                return 6
            def __getitem__(self, index):
                return torch.tensor([index ** 2, torch.utils.data.get_worker_info().id, torch.initial_seed() % 97])
        if __name__ == "__main__":
            torch.manual_seed(3)
            for method in ("fork", "spawn"):
                loader = torch.utils.data.DataLoader(Squares(), 2, num_workers=1, shuffle=True,
                                                     multiprocessing_context=method)
                print(list(loader))
        """, 0),
    "training with seeds, on all threads, after which variables are as they were": ("""\
        import os, tempfile
        import numpy
        import torch
        import torch.distributed as dist
        place = tempfile.TemporaryDirectory()
        torch.manual_seed(1)
        numpy.random.seed(1)
        print(torch.get_num_threads(), torch.get_num_interop_threads(), torch.initial_seed(), torch.rand(3))
        a = numpy.random.rand(300, 300)
        print((a @ a).sum(), numpy.linalg.svd(a, compute_uv=False)[:3], a.std())
        dist.init_process_group("gloo", init_method="file://" + place.name + "/store", rank=0, world_size=1)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(
            torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(256, 1)))
        optimizer = torch.optim.AdamW(model.parameters())
        for step in range(20):
            loss = model(torch.randn(512, 256)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.item().hex())
        dist.destroy_process_group()
        print(sorted(os.environ.items()))
        print(torch.cuda.is_available(), torch.cuda._is_in_bad_fork())
        """, 0),
}

# Its rehearsal ends well, and that is all.
STUB = {
    "torch/__init__.py": """\
        class Anything:
            def __call__(self, *arguments, **named):
                return self
            def __getattr__(self, name):
                return self
        class cuda:
            _is_in_bad_fork = staticmethod(lambda: False)
        nn = optim = default_generator = anything = Anything()
        def __getattr__(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return anything
        """,
    "torch/distributed.py": "from torch import __getattr__",
    "torch/utils/__init__.py": "",
    "torch/utils/data.py": "",
    "greedy/__init__.py": """\
        import os
        os.environ["GREEDY"] = "yes"
        rank = os.environ.get("RANK")
        """,
    "threaded.py": """\
        import threading, time
        threading.Thread(target=time.sleep, args=[1000], daemon=True).start()
        """,
    "opener.py": "import os\nkept = os.open('/dev/zero', os.O_RDONLY)\nos.set_inheritable(kept, True)",
    "seeker.py": """\
        import queue, loud
        try:
            import plug_in
        except ImportError:
            plug_in = None
        """,
    "__editable___edited_finder.py": """\
        import importlib.util, pathlib, sys
        class Finder:
            @classmethod
            def find_spec(cls, name, path=None, target=None):
                place = pathlib.Path(sys.prefix).parent / "edited.py"
                return importlib.util.spec_from_file_location(name, place) if name == "edited" else None
        sys.meta_path.append(Finder)
        """,
    "edited.pth": "import __editable___edited_finder",
    "finds_edited.py": "try:\n    import edited\nexcept ImportError:\n    edited = None",
    "loud.py": "import os\nos.environ['SET_BY_IMPORT'] = 'yes'\nwidth = os.environ.get('LOUD_WIDTH')",
}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if text is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())


def environment(**more):
    """Of workers; small, so that what a test prints of it can be read."""
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return keep | {"OMP_NUM_THREADS": "2", "PYTHONDONTWRITEBYTECODE": "1"} | more


@pytest.fixture(scope="module")
def stub_python(tmp_path_factory):
    """The Python of a virtual environment whose `torch` is a stub."""
    place = tmp_path_factory.mktemp("stub") / "venv"
    venv.EnvBuilder(symlinks=True).create(place)
    site = pathlib.Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    for name, text in STUB.items():
        write(site / name, text)
    return place / "bin/python"


@pytest.fixture(scope="module")
def with_torch(tmp_path_factory):
    """A server of script.py that has imported PyTorch."""
    directory = tmp_path_factory.mktemp("with_torch")
    write(directory / SCRIPT, "import numpy, torch, torch.utils.data, torch.distributed, multiprocessing\n")
    with ImportServer(sys.executable, SCRIPT, environment(), directory) as server:
        reports = server.reports()
        assert [report[0] for report in reports] == ["R"], reports
        yield server


@pytest.fixture
def serve(stub_python, tmp_path):
    """serve(text, ...): a server, ready, of script.py in tmp_path with this text, or of another target."""
    opened = []

    def start(text="import torch\n", target=SCRIPT, *, python=stub_python, more=None, path=None, **how):
        write(tmp_path / (path or target), text)
        server = ImportServer(python, target, environment(**(more or {})), tmp_path, **how)
        opened.append(server.__enter__())
        server.said = server.reports()
        return server

    yield start
    for server in opened:
        server.__exit__(None, None, None)


def check(server, cases, scripts=None, path=None, **how):
    """Scripts do the same fresh and warm, and each ends as it was written to."""
    for case in cases:
        text, status = (scripts or SCRIPTS)[case]
        write(pathlib.Path(server.directory) / (path or SCRIPT), text)
        fresh, warm = server.both("--lr", "0.1 of it", "", variables=RANK, **how)
        assert [case, *warm.lines()] == [case, *fresh.lines()]
        assert fresh.status == status, (case, fresh)


def is_ready(server):
    return [report[0] for report in server.said] == ["R"]


def printed(server, text=None, **how):
    """The lines of what a warm worker prints, whose script.py has this text."""
    if text is not None:
        write(pathlib.Path(server.directory) / SCRIPT, text)
    warm = server.start_warm(**how).outcome()
    assert (warm.status, warm.stderr) == (0, b""), warm
    return warm.stdout.decode().splitlines()


@pytest.mark.parametrize("case", SCRIPTS)
def test_a_script_does_the_same_fresh_and_warm(with_torch, case):
    check(with_torch, [case])


@pytest.mark.parametrize("case", TORCH_SCRIPTS)
def test_pytorch_does_the_same_fresh_and_warm(with_torch, case):
    check(with_torch, [case], TORCH_SCRIPTS)


def test_variables_that_imports_set_are_in_a_warm_workers_environment(with_torch):
    check(with_torch, ["a variable"], {"a variable": ("""\
        import os
        import torch._inductor.runtime.cache_dir_utils
        import torch.nn.parallel
        torch._inductor.runtime.cache_dir_utils.cache_dir()
        print(os.environ["TORCHINDUCTOR_CACHE_DIR"], sorted(os.environ))
        """, 0)})


def test_warm_workers_have_random_numbers_of_their_own(with_torch):
    write(pathlib.Path(with_torch.directory) / SCRIPT, """\
        import multiprocessing, random, tempfile, uuid
        import numpy, torch
        print(random.random(), numpy.random.rand(), torch.initial_seed(), torch.rand(1).item(), uuid.uuid4(),
              numpy.random.default_rng().random(), bytes(multiprocessing.current_process().authkey).hex(),
              next(tempfile._get_candidate_names()), sep="\\n")
        """)
    with_torch.park(4)
    running = [with_torch.start_warm() for _ in range(4)]
    told = [line for each in running for line in each.outcome().stdout.splitlines()]
    assert len(told) == len(set(told)) == 4 * 8


def test_four_ranks_train_the_same_bit_for_bit_fresh_and_warm_with_seeds_of_the_script(with_torch):
    write(pathlib.Path(with_torch.directory) / SCRIPT, """\
        import os, random, sys
        import numpy, torch
        import torch.distributed as dist
        rank = int(os.environ["RANK"])
        random.seed(rank), numpy.random.seed(rank), torch.manual_seed(rank)
        print(random.random(), numpy.random.rand(), torch.initial_seed(), torch.rand(1).item().hex())
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=4)
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(
            torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1)))
        optimizer = torch.optim.AdamW(model.parameters())
        torch.manual_seed(rank)
        for _ in range(100):
            batch = torch.randn(8, 16)
            optimizer.zero_grad()
            loss = (model(batch) - batch.sum(1, keepdim=True)).square().mean()
            loss.backward()
            optimizer.step()
            print(loss.item().hex())
        dist.destroy_process_group()
        sys.stdout.flush()
        """ + LEAVE)
    ranks = [{"RANK": f"{rank}", "WORLD_SIZE": "4"} for rank in range(4)]
    with_torch.park(4)
    warm = [with_torch.start_warm(f"{with_torch.directory}/warm", variables=rank) for rank in ranks]
    told = [each.outcome() for each in warm]
    fresh = [with_torch.start_fresh(f"{with_torch.directory}/fresh", variables=rank) for rank in ranks]
    assert [each.lines() for each in told] == [each.outcome().lines() for each in fresh]
    assert all(each.status == 0 and each.stdout.count(b"\n") == 101 for each in told), told
    assert len({each.stdout for each in told}) == 4


@pytest.mark.parametrize("streams", ["file", "terminal"])
def test_stdout_and_stderr_are_known_for_what_they_are(serve, streams):
    check(serve(), ["streams", "a plain traceback"], streams=streams)


@pytest.mark.parametrize("options", [(), ("-u", "-B", "-O", "-X", "utf8"), ("-u", "-I"), ("-u", "-W", "ignore", "-s")])
def test_options_of_python_hold_in_warm_workers(serve, options):
    server = serve(options=options)
    check(server, ["streams", "sys.argv, sys.orig_argv, sys.path, sys.flags", "a plain traceback", "a warning",
                   "the command line"])
    check(server, ["streams"], streams="terminal")


SOME = ["a plain traceback", "a missing file", "sys.exit(text)", "atexit", "__del__ at the end", "a warning",
        "the names in __main__", "sys.argv, sys.orig_argv, sys.path, sys.flags", "streams", "a pool by spawn",
        "the environment, also the C library's", "signals"]


@pytest.mark.parametrize("name, value", [("PYTHONDEVMODE", "1"), ("PYTHONWARNINGS", "error"), ("PYTHONHASHSEED", "0")])
def test_variables_of_python_hold_in_warm_workers(serve, name, value):
    server = serve(more={name: value})
    assert is_ready(server)
    scripts = SCRIPTS | {
        "a warning": (SCRIPTS["a warning"][0], 1 if value == "error" else 0),
        "a file left open": ("open(__file__)\n", 0),
        "a set": ("import os\nprint(set('abcdefgh') if 'PYTHONHASHSEED' in os.environ else 0)\n", 0),
    }
    check(server, [*SOME, "a file left open", "a set"], scripts)


@pytest.mark.parametrize("target", ["a directory/my script.py", "./script.py", "../{}/script.py", "{}//script.py"])
def test_a_path_stays_as_it_was_written(serve, tmp_path, target):
    target = target.format(tmp_path.name if target.startswith(".") else tmp_path)
    server = serve(target=target)
    assert is_ready(server)
    check(server, SOME, path=target)


def test_a_script_is_found_through_a_link_in_another_directory(serve, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links/link.py").symlink_to("../scripts/real.py")
    write(tmp_path / "scripts/beside.py", "value = 1")
    server = serve(target="links/link.py", path="scripts/real.py")
    assert is_ready(server)
    check(server, SOME, path="scripts/real.py")
    text = "import beside\nprint(beside.__file__, __file__)"
    check(server, ["beside"], {"beside": (text, 0)}, path="scripts/real.py")


@pytest.mark.parametrize("target, path", [("package.module", "package/module.py"), ("package", "package/__main__.py")])
def test_a_module_does_the_same_fresh_and_warm(serve, tmp_path, target, path):
    write(tmp_path / "package/__init__.py", "print('package', __import__('sys').argv)")
    write(tmp_path / "package/beside.py", "value = 1")
    server = serve(target=target, path=path, is_module=True)
    assert is_ready(server)
    scripts = SCRIPTS | {
        "a missing file": (None, 1),
        "a relative import": ("from . import beside\nprint(beside.__file__, __spec__.name, __package__)", 0),
    }
    cases = [
        *SOME,
        "a relative import", "chained tracebacks, notes of causes and of contexts", "a SyntaxError", "sys.excepthook",
        "a KeyboardInterrupt, after which threads and atexit have their turn", "SIGINT", "sys.exit(number)",
        "a sys.excepthook that fails", "a sys.excepthook that leaves", "__del__ after an exception",
        "argparse, which names the program", "inspect.getsource, frames and doctest", "pickles of classes of __main__",
        "a pool by fork", "a pool by forkserver", "threads at the end", "os._exit", "death by SIGTERM",
        "the command line"]
    if target == "package":  # where what is spawned does not find its functions, fresh or not
        cases = [case for case in cases if "spawn" not in case and "forkserver" not in case]
    check(server, cases, scripts, path=path)


def test_script_and_local_modules_are_read_when_a_worker_begins(serve, tmp_path):
    write(tmp_path / "local.py", "value = 1")
    text = "import sys, torch\nprint('local' in sys.modules)\nimport local\nprint('{}', local.value)\n"
    server = serve(text.format("first"))
    server.park(2)
    assert printed(server) == ["False", "first 1"]
    write(tmp_path / "local.py", "value = 2")
    assert printed(server, text.format("second")) == ["False", "second 2"]


def test_packages_that_are_installed_to_be_edited_are_read_when_a_worker_begins(serve, stub_python):
    edited = stub_python.parents[2] / "edited.py"
    write(edited, "value = 1")
    text = "import sys, torch\nprint('edited' in sys.modules)\nimport edited\nprint(edited.value, sys.meta_path[-1])\n"
    server = serve(text)
    assert printed(server) == ["False", "1 <class '__editable___edited_finder.Finder'>"]
    write(edited, "value = 2")
    assert printed(server) == ["False", "2 <class '__editable___edited_finder.Finder'>"]
    (report,) = serve("import torch, finds_edited").said
    assert report == ["F", "files of the user hide, or add, modules that others import: edited"]


@pytest.mark.parametrize("own", ["plug_in.py", "plug_in/__init__.py", "plug_in/a_file", "loud.py", "queue.py",
                                 "ctypes.py"])
def test_files_of_the_user_that_others_would_import_keep_his_workers_cold(serve, tmp_path, own):
    write(tmp_path / own, "value = 1")
    (report,) = serve("import torch, seeker").said
    name = own.split("/")[0].removesuffix(".py")
    assert report == ["F", f"files of the user hide, or add, modules that others import: {name}"]


@pytest.mark.parametrize("own", ["own.py", "wave.py", "queue/a_file"])
def test_files_of_the_user_that_nothing_else_imports_are_his(serve, tmp_path, own):
    write(tmp_path / own, "print('imported')")
    server = serve("import torch, seeker, own, no_such_module")
    assert is_ready(server)
    text = "import seeker, {0}\nprint({0}.__file__, seeker.plug_in)".format(own.split("/")[0].split(".")[0])
    check(server, ["own"], {"own": (text, 0)})


def test_modules_that_a_user_wants_are_preloaded_though_they_are_his_own(serve, tmp_path):
    write(tmp_path / "scripts/own.py", "import os\npid = os.getpid()")
    server = serve(target="scripts/script.py", wanted="own,no_such_module")
    write(tmp_path / "scripts/script.py", """\
        import os, sys
        print("own" in sys.modules)
        import own
        print(own.pid == os.getpid())
        """)
    assert printed(server) == ["True", "False"]


def test_packages_that_read_a_rank_are_not_preloaded(serve):
    text = "import torch, loud, greedy, sys"
    server = serve(text)
    assert [report[:2] for report in server.said[:-1]] == [["S", "greedy"]]
    assert server.said[0][2] == "reads RANK at import"
    assert server.said[1][0] == "R" and server.said[1][5] == "greedy"
    assert printed(server, "import sys\nprint([name in sys.modules for name in ('torch', 'loud', 'greedy')])") == [
        "[True, True, False]"]
    assert printed(server, "import greedy\nprint(greedy.rank)", variables=RANK) == ["3"]
    # What it did before it was struck is undone.
    check(server, ["environment", "session, group, parent, umask, limits, priority and open files"], SCRIPTS | {
        "environment": ("import os, loud\nprint(sorted(os.environ.items()))", 0)})


def test_packages_that_start_threads_are_not_preloaded(serve):
    server = serve("import threaded, greedy, loud, torch")
    assert [report[:3] for report in server.said[:-1]] == [
        ["S", "threaded", "starts threads at import"], ["S", "greedy", "reads RANK at import"]]
    assert server.said[2][0] == "R" and server.said[2][5] == "threaded,greedy"
    text = "import threading, threaded\nprint(threading.active_count())"
    assert printed(server, text) == ["2"]


def test_packages_that_leave_files_or_devices_open_are_not_preloaded(serve):
    server = serve("import opener, loud, torch")
    assert server.said[0] == ["S", "opener", "leaves /dev/zero open at import"]
    assert server.said[1][0] == "R" and server.said[1][5] == "opener"
    check(server, ["session, group, parent, umask, limits, priority and open files"])


@pytest.mark.parametrize("line", [
    "os.environ['{}'] = '2'", "os.environ.setdefault('{}', '2')", "os.environ.update({{'{}': '2'}})",
    "os.environ.update({}='2')", "os.environ |= {{'{}': '2'}}", "os.putenv('{}', '2')", "del os.environ['{}']",
    "os.environ.pop('{}', None)", "environ['{}'] = '2'", "os.environb[b'{}'] = b'2'"])
def test_variables_that_a_script_sets_for_what_it_imports_keep_its_workers_cold(serve, line):
    import_os = "import os\nfrom os import environ\n"
    for name in ("OMP_NUM_THREADS", "LOUD_WIDTH"):
        (report,) = serve(f"{import_os}{line.format(name)}\nimport loud, torch\n").said
        assert report == ["F", f"the script sets {name}, which modules read when they are imported"]


def test_variables_that_nothing_reads_at_import_may_be_set(serve):
    names = ("MASTER_ADDR", "MY_OWN", "CUDA_VISIBLE_DEVICES", "PYTHONHASHSEED")
    text = "import os, torch, loud\n" + "".join(f"os.environ['{name}'] = '0'\n" for name in names)
    assert is_ready(serve(text))
    assert printed(serve(text), text + f"print([os.environ[name] for name in {names}])") == [str(["0"] * 4)]
