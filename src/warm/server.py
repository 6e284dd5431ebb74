# The import server of warm workers, and what a worker that it has forked does before the user's script
# (docs/warm-workers.md). elastic-run holds this text and runs it with the workers' own Python, their options and
# their environment: python -u -c BOOT TEXT KIND TARGET WANTED STRUCK RUNNING. Descriptor 3 is a SOCK_SEQPACKET socket to
# the launcher. Each packet is a letter and fields that NULs separate (src/warm/packets.h).
#
# Whatever this text names stays out of __main__, and it imports as little as it can: what it imports the user's script
# finds imported.
import os
import sys

AT_FIRST = set(sys.modules)
PATH = list(sys.path)
sys.path[:] = [place for place in PATH if place]  # what this text imports is not in the working directory

import array
import gc
import resource
import socket

CHANNEL = 3
try:
    import ctypes
    ctypes.pythonapi.PyRun_SimpleFileExFlags
except (ImportError, AttributeError) as error:
    os.write(CHANNEL, b'F\0this Python has no ctypes that can run a script: ' + os.fsencode(str(error)))
    os._exit(1)

# RUNNING: the pid of a worker of the present round, or ''.
KIND, TARGET, WANTED, STRUCK, RUNNING = sys.argv[2:7]
LAUNCHER = os.getppid()
JUDGED_LATE = 'PYTORCH_NVML_BASED_CUDA_CHECK'
# They differ between the ranks of a node, or between rounds. A module that reads one at import is not preloaded.
OF_RANKS = {
    'RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'GROUP_RANK', 'GROUP_WORLD_SIZE', 'ROLE_RANK',
    'ROLE_WORLD_SIZE', 'ROLE_NAME', 'MASTER_ADDR', 'MASTER_PORT', 'TORCHELASTIC_RESTART_COUNT',
    'TORCHELASTIC_MAX_RESTARTS', 'TORCHELASTIC_RUN_ID', 'TORCHELASTIC_USE_AGENT_STORE', 'TORCHELASTIC_ERROR_FILE',
    'TORCHELASTIC_SIGNALS_TO_HANDLE', 'ELASTIC_RUN_FENCE', 'ELASTIC_RUN_PROGRESS', 'RUNTIME_METRICS_PATH',
    'FT_RANK_MONITOR_IPC_SOCKET', 'FT_LAUNCHER_IPC_SOCKET', 'HCCL_IF_BASE_PORT'}
# Libraries read these when they are loaded, with getenv(), which is not seen here.
READ_BY_LIBRARIES = ('OMP_', 'GOMP_', 'KMP_', 'MKL_', 'OPENBLAS_', 'GOTO_', 'ONEDNN_', 'DNNL_', 'PYTORCH_', 'TORCH_',
                     'C10_', 'ATEN_', 'CUDA_', 'CUBLAS_', 'CUDNN_', 'TRITON_', 'LD_', 'MALLOC_', 'PYTHON', 'LC_',
                     'BLIS_')
# But not these: the CUDA driver reads them when it is initialised, which no import may do, and Python when it starts.
READ_LATER = {'CUDA_VISIBLE_DEVICES', 'CUDA_DEVICE_ORDER', 'PYTHONHASHSEED'}
DEVICES = ('/dev/nvidia', '/dev/kfd', '/dev/dri', '/dev/davinci', '/dev/infiniband')
# Ends of threads that survive a fork harmlessly: jemalloc handles forks itself.
HARMLESS_THREADS = {'jemalloc_bg_thd'}

REHEARSAL = '''
import copy, os, sys, tempfile
os.environ['CUDA_VISIBLE_DEVICES'] = ''
import torch
import torch.distributed as dist
import torch.utils.data
with tempfile.TemporaryDirectory() as place:
    dist.init_process_group('gloo', init_method='file://' + place + '/store', rank=0, world_size=1)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    loss = torch.nn.functional.mse_loss(model(torch.ones(2, 2)), torch.zeros(2, 2))
    loss.backward()
    optimizer.step()
    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict()}, place + '/state')
    torch.load(place + '/state')
    dist.broadcast(torch.zeros(1), 0)
    dist.destroy_process_group()
'''


class Refused(Exception):
    """Workers of this server would not be what a fresh interpreter is; the reason is its text."""


def say(kind, *fields):
    os.write(CHANNEL, b'\0'.join([kind] + [os.fsencode(str(field)) for field in fields]))


def text_of(path):
    try:
        with open(path, 'rb') as file:
            return file.read()
    except OSError:
        return b''


def in_child(work):
    """What `work` returns in a child of this process, as bytes; None where it did not end well."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(out)
            os.close(CHANNEL)
            data = work()
            while data:
                data = data[os.write(into, data):]
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(into)
    data = b''
    while part := os.read(out, 1 << 16):
        data += part
    os.close(out)
    return data if os.waitpid(pid, 0)[1] == 0 else None


# --- Which modules. ----------------------------------------------------------------------------------


def places():
    """Where modules may be preloaded from, and the entries of sys.path below which none may."""
    import site
    import sysconfig
    mine = {sysconfig.get_path(name) for name in ('stdlib', 'platstdlib', 'purelib', 'platlib')}
    mine.update(site.getsitepackages())
    if site.ENABLE_USER_SITE:
        mine.add(site.getusersitepackages())
    mine.update(entry for entry in sys.path if entry.endswith(('site-packages', 'dist-packages', 'lib-dynload')))
    users = set(filter(None, os.environ.get('PYTHONPATH', '').split(os.pathsep)))
    return sorted(os.path.realpath(place) for place in mine - users if place)


def absolute():
    """The path of the script as Python itself makes it absolute: nothing more is changed."""
    if os.path.isabs(TARGET) or sys.version_info < (3, 9):
        return TARGET
    return os.getcwd() + '/' + TARGET


def path_of_worker():
    """sys.path as a fresh interpreter begins with it."""
    if PATH[0] != '':  # with -P or -I
        return PATH
    return [os.getcwd() if KIND == 'module' else os.path.dirname(os.path.realpath(TARGET))] + PATH[1:]


def script_path():
    if KIND == 'script':
        return absolute()
    import importlib.util
    sys.path[:] = path_of_worker()
    found = importlib.util.find_spec(TARGET)
    if found is not None and found.submodule_search_locations is not None:
        found = importlib.util.find_spec(TARGET + '.__main__')
    if found is None or not found.origin:
        raise Refused('no module ' + TARGET)
    return found.origin


def read_script():
    """The modules that script and local files import, and the variables that they set: lines of two kinds."""
    import ast
    import pkgutil
    first = script_path()
    if KIND == 'script' and pkgutil.get_importer(first) is not None:
        return b'never the script is a directory or an archive'
    roots = [os.path.dirname(os.path.realpath(first)), os.getcwd()]
    roots += filter(None, os.environ.get('PYTHONPATH', '').split(os.pathsep))
    lines = []
    seen = set()
    to_read = [first]

    def local(name):
        parts = name.split('.')
        found = []
        for root in roots:
            for count in range(len(parts), 0, -1):
                base = os.path.join(root, *parts[:count])
                found += [file for file in (base + '.py', os.path.join(base, '__init__.py')) if os.path.isfile(file)]
        return found

    def meets(name, path, level=0):
        if level:
            base = os.path.dirname(path)
            for _ in range(level - 1):
                base = os.path.dirname(base)
            inner = os.path.join(base, *name.split('.')) if name else base
            to_read.extend(file for file in (inner + '.py', os.path.join(inner, '__init__.py')) if os.path.isfile(file))
            return
        files = local(name)
        to_read.extend(files)
        if not files:
            lines.append('import ' + name)

    def is_environment(node):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ''
        return name in ('environ', 'environb')

    def sets(node):
        if type(node).__name__ == 'Index':  # Python 3.8
            node = node.value
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
            lines.append('set ' + os.fsdecode(node.value))

    def sets_all(node):
        for key in node.keys if isinstance(node, ast.Dict) else []:
            sets(key)

    while to_read and len(seen) < 1000:
        path = to_read.pop()
        if path in seen:
            continue
        seen.add(path)
        try:
            tree = ast.parse(text_of(path), path)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    meets(name.name, path)
            elif isinstance(node, ast.ImportFrom):
                meets(node.module or '', path, node.level)
                for name in node.names:
                    if name.name != '*' and (node.module or node.level):
                        meets((node.module + '.' if node.module else '') + name.name, path, node.level)
            elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Delete)):
                for target in [node.target] if isinstance(node, ast.AugAssign) else node.targets:
                    if isinstance(target, ast.Subscript) and is_environment(target.value):
                        sets(target.slice)
                    elif is_environment(target):  # environ |= {...}
                        sets_all(getattr(node, 'value', None))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                call = node.func.attr
                if call in ('putenv', 'unsetenv') or call in ('setdefault', 'pop') and is_environment(node.func.value):
                    for name in node.args[:1]:
                        sets(name)
                elif call == 'update' and is_environment(node.func.value):
                    lines.extend('set ' + named.arg for named in node.keywords if named.arg)
                    for given in node.args:
                        sets_all(given)
    return '\n'.join(dict.fromkeys(lines)).encode()


def rehearse():
    """The names of all modules that a first step of training needs."""
    before = set(sys.modules)
    exec(compile(REHEARSAL, '<rehearsal>', 'exec'), {'__name__': '_elastic_run_rehearsal'})
    return '\n'.join(name for name in sys.modules if name not in before).encode()


class Reads:
    """The variables that are read while it is entered."""

    def __init__(self):
        self.names = set()
        self.of_ranks = set()

    def __enter__(self):
        self.kind = type(os.environ)
        self.before = self.kind.__getitem__
        before = self.before

        def read(environment, name):
            if environment is os.environ and isinstance(name, str):
                self.names.add(name)
                if name in OF_RANKS:
                    self.of_ranks.add(name)
            return before(environment, name)
        self.kind.__getitem__ = read
        return self

    def __exit__(self, *_):
        self.kind.__getitem__ = self.before


class Misses:
    """The last of sys.meta_path: which modules, not counting those in packages, were looked for in vain."""

    def __init__(self):
        self.names = set()

    def find_spec(self, name, path=None, target=None):
        if path is None:
            self.names.add(name)


def hidden(missed, others, finders):
    """The modules of which a fresh interpreter finds others, the user's own, than are here; some only there."""
    from importlib.machinery import PathFinder
    users = set(os.environ.get('PYTHONPATH', '').split(os.pathsep)) | set(path_of_worker()[:1] if PATH[0] == '' else [])
    found = []
    for name in {name for name in sys.modules if '.' not in name} - AT_FIRST - missed:
        theirs = PathFinder.find_spec(name, [place for place in path_of_worker() if place in users])
        here = getattr(sys.modules[name], '__file__', None)
        if theirs and here and theirs.origin and theirs.origin != here:
            found.append(name)
    for name in missed:
        if PathFinder.find_spec(name, others) or any(finder.find_spec(name, None, None) for finder in finders):
            found.append(name)
    return ', '.join(sorted(found)).encode()


def bring(name):
    """Imports a module; False where that fails, as it may for a name that is no module, or only for some systems."""
    try:
        __import__(name)
        return True
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return False


class Importer:
    def __init__(self, nice):
        self.nice = nice
        self.reads = Reads()
        self.struck = [name for name in STRUCK.split(',') if name]
        wanted = [name for name in WANTED.split(',') if name]
        self.misses = Misses()
        self.mine = in_child(lambda: '\n'.join(places()).encode())
        self.mine = os.fsdecode(self.mine or b'').split('\n')
        read = in_child(read_script)
        if read is None:
            raise Refused('the script cannot be read')
        lines = [line.split(' ', 1) for line in os.fsdecode(read).split('\n') if line]
        for kind, why in lines:
            if kind == 'never':
                raise Refused(why)
        self.sets = [name for kind, name in lines if kind == 'set']
        # Nothing of the user's own is found, installed to be edited or not, unless he has asked for it by name.
        allowed = [entry for entry in PATH if self.is_mine(entry) or entry.endswith('.zip')]
        with self.reads:
            sys.path[:] = path_of_worker()
            for name in wanted:
                self.one(name)
            sys.path[:] = allowed
            finders = list(sys.meta_path)
            edited = [finder for finder in finders if 'editable' in getattr(finder, '__module__', '')]
            sys.meta_path[:] = [finder for finder in finders if finder not in edited] + [self.misses]
            for name in ['torch'] + [name for kind, name in lines if kind == 'import']:
                self.one(name)
            if 'torch' not in sys.modules:
                raise Refused('there is no PyTorch')
            rehearsed = in_child(rehearse)
            for name in os.fsdecode(rehearsed or b'').split('\n'):
                if name and name.split('.')[0] not in self.struck:
                    bring(name)
            for name in os.fsdecode(in_child(self.loaded_by_worker) or b'').split('\n'):
                self.one(name)
        sys.meta_path.remove(self.misses)
        for finder in edited:  # where `pip install -e` has put them
            sys.meta_path.insert(finders.index(finder), finder)
        if rehearsed is None:
            raise Refused('the rehearsal of a first step failed')
        others = [entry for entry in path_of_worker() if not self.is_mine(entry)]
        mistaken = in_child(lambda: hidden(self.misses.names, others, edited))
        if mistaken != b'':
            raise Refused('files of the user hide, or add, modules that others import: ' +
                          os.fsdecode(mistaken or b'which ones is not known'))
        if self.reads.of_ranks:
            raise Refused('modules read %s at import' % ', '.join(sorted(self.reads.of_ranks)))
        for name in self.sets:
            if name in self.reads.names or name.startswith(READ_BY_LIBRARIES) and name not in READ_LATER:
                raise Refused('the script sets %s, which modules read when they are imported' % name)

    def loaded_by_worker(self):
        """The extension modules that the running worker has loaded, with what no import statement tells: plug-ins."""
        from importlib.machinery import EXTENSION_SUFFIXES
        found = []
        for line in text_of('/proc/%s/maps' % RUNNING).split(b'\n') if RUNNING else []:
            path = os.fsdecode(line.split(None, 5)[-1]) if b'/' in line else ''
            place = max((each for each in self.mine if path.startswith(each + '/')), key=len, default='')
            suffix = max((each for each in EXTENSION_SUFFIXES if path.endswith(each)), key=len, default='')
            parts = path[len(place) + 1:-len(suffix)].split('/') if place and suffix else ['']
            if all(part.isidentifier() for part in parts) and not parts[-1].startswith('lib'):
                found.append('.'.join(parts))
        return '\n'.join(dict.fromkeys(found)).encode()

    def is_mine(self, place):
        place = os.path.realpath(place)
        return any(place == each or place.startswith(each + '/') for each in self.mine)

    def one(self, name):
        """Imports a listed module. If that does what no fork survives, all begins again without its package."""
        package = name.split('.')[0]
        if not name or package in self.struck or name in sys.modules:
            return
        before = set(self.reads.of_ranks)
        opened = set(left_open())
        alone = len(threads()) <= 1
        missed = set(self.misses.names)
        if not bring(name) and package not in missed:
            self.misses.names.discard(package)  # only the script has looked for it
        if self.reads.of_ranks - before:
            self.strike(package, 'reads %s at import' % ', '.join(sorted(self.reads.of_ranks - before)))
        opened = set(left_open()) - opened
        if opened:
            self.strike(package, 'leaves %s open at import' % ', '.join(sorted(opened)))
        if alone and len(threads()) > 1:
            trial_fork()  # some libraries end their threads then
            if len(threads()) > 1:
                self.strike(package, 'starts threads at import')

    def strike(self, package, why):
        if package == 'torch':
            raise Refused('torch ' + why)
        say(b'S', package, why)
        fields = [KIND, TARGET, WANTED, ','.join(self.struck + [package]), RUNNING]
        sys.stdout.flush()
        os.closerange(CHANNEL + 1, 1 << 16)
        if self.nice is not None:
            os.setpriority(os.PRIO_PROCESS, 0, self.nice)
        os.execve(sys.executable, ORIGINAL[:-5] + fields, ENVIRONMENT)


# --- What makes a fork of this process unlike a fresh interpreter. -----------------------------------------


def threads():
    names = []
    for task in os.listdir('/proc/self/task'):
        name = text_of('/proc/self/task/%s/comm' % task).decode(errors='replace').strip()
        if name not in HARMLESS_THREADS:
            names.append(name)
    return names


def left_open():
    """The files that are open besides those that the launcher gave: devices, above all."""
    found = []
    for number in os.listdir('/proc/self/fd'):
        try:
            to = os.readlink('/proc/self/fd/' + number)
        except OSError:
            continue  # the directory's own
        if to.startswith(DEVICES) or int(number) > CHANNEL and '/fd' not in to:
            found.append(to)
    return found


def trial_fork():
    pid = os.fork()
    if pid == 0:
        torch = sys.modules.get('torch')
        bad = getattr(getattr(torch, 'cuda', None), '_is_in_bad_fork', None)
        os._exit(1 if bad is not None and bad() else 0)
    return os.waitpid(pid, 0)[1] == 0


def check():
    if not trial_fork():
        raise Refused('a module has initialised CUDA')
    if len(threads()) > 1:
        raise Refused('modules have started threads (%s)' % ', '.join(sorted(threads())[:4]))
    for to in left_open():
        raise Refused('a module has left %s open' % to)
    try:
        os.waitpid(-1, os.WNOHANG)
        raise Refused('a module has started a process')
    except ChildProcessError:
        pass
    own = 0
    for line in text_of('/proc/self/status').split(b'\n'):
        if line.startswith(b'RssAnon:'):
            own = int(line.split()[1])
    if memory_left() < 2 * own:
        raise Refused('too little memory is left')
    return own


def memory_left():
    """KiB that the host, and each cgroup that this process is in, have left. Files that are cached count as free."""
    left = [int(line.split()[1]) for line in text_of('/proc/meminfo').split(b'\n') if line.startswith(b'MemAvailable:')]
    for line in text_of('/proc/self/cgroup').split(b'\n')[:-1]:
        _, controllers, path = os.fsdecode(line).split(':', 2)
        if controllers == '':
            root, limit, used, cached = '/sys/fs/cgroup', 'memory.max', 'memory.current', b'inactive_file '
        elif controllers == 'memory':
            root, limit, used, cached = ('/sys/fs/cgroup/memory', 'memory.limit_in_bytes', 'memory.usage_in_bytes',
                                         b'total_inactive_file ')
        else:
            continue
        while True:  # in a container the path may be the host's; then only the last one is there
            most, now = (text_of(root + path.rstrip('/') + '/' + name).strip() for name in (limit, used))
            if most.isdigit() and now.isdigit():
                files = [int(each.split()[1]) for each in text_of(root + path.rstrip('/') + '/memory.stat').split(b'\n')
                         if each.startswith(cached)]
                left.append((int(most) - int(now) + sum(files)) // 1024)
            if path in ('/', ''):
                break
            path = os.path.dirname(path)
    return min(left, default=sys.maxsize)


# --- Priority: the first imports of a job that trains must not wait for these. ----------------------------------


def step_back():
    """Takes the lowest priority, if this process may take its own again. Returns that, or None."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    may = False
    for line in text_of('/proc/self/status').split(b'\n'):
        if line.startswith(b'CapEff:'):
            may = bool(int(line.split()[1], 16) >> 23 & 1)  # CAP_SYS_NICE
    limit = resource.getrlimit(13)[0]  # RLIMIT_NICE
    if not may and limit != resource.RLIM_INFINITY and limit < 20 - before:
        return None
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    return before


# --- A worker. ------------------------------------------------------------------------------------------


class MemoryMap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        'start_code', 'end_code', 'start_data', 'end_data', 'start_brk', 'brk', 'start_stack', 'arg_start', 'arg_end',
        'env_start', 'env_end')] + [
            ('auxv', ctypes.c_void_p), ('auxv_size', ctypes.c_uint32), ('exe_fd', ctypes.c_uint32)]


def set_title(argv):
    """Writes this command line over the process's own, as `ps` shows it."""
    fields = text_of('/proc/self/stat').rsplit(b')', 1)[1].split()
    start, end = int(fields[45]), int(fields[46])
    title = b'\0'.join(os.fsencode(part) for part in argv) + b'\0'
    if not start or end - start <= len(title):
        return
    numbers = {'start_code': 23, 'end_code': 24, 'start_stack': 25, 'start_data': 42, 'end_data': 43, 'start_brk': 44,
               'arg_start': 45, 'arg_end': 46, 'env_start': 47, 'env_end': 48}
    there = MemoryMap(**{name: int(fields[index]) for name, index in numbers.items()})
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, title, len(title))
    there.arg_end = start + len(title)
    libc = ctypes.CDLL(None, use_errno=True)
    there.brk = libc_brk(libc)
    there.exe_fd = 0xffffffff
    if libc.prctl(35, 14, ctypes.byref(there), ctypes.sizeof(there), 0) == 0:  # PR_SET_MM, PR_SET_MM_MAP
        return
    # Not allowed here: the kernel shows a text up to its first NUL if the last byte of the whole is none.
    ctypes.memmove(start, title[:-1].replace(b'\0', b' ') + b'\0', len(title))
    ctypes.memset(end - 1, 1, 1)


def libc_brk(libc):
    libc.sbrk.restype = ctypes.c_void_p
    return libc.sbrk(0) or 0


def tell_apart():
    """Workers of one server have the same random numbers ahead of them, and its identity; fresh ones do not."""
    numpy = sys.modules.get('numpy')
    if numpy is not None and 'numpy.random' in sys.modules:
        numpy.random.seed()
    torch = sys.modules.get('torch')
    if torch is not None and torch.default_generator.initial_seed() != 67280421310721:
        torch.default_generator.seed()
    processes = sys.modules.get('multiprocessing.process')
    if processes is not None:
        processes.current_process().authkey = os.urandom(32)
    threading = sys.modules.get('threading')
    if threading is not None and hasattr(threading.Thread, '_set_native_id'):
        threading.main_thread()._set_native_id()  # Python 3.11 leaves that to whoever forks


def reopen(stream):
    """A stream remembers of what kind the file is that it was opened for; its descriptor stands for another now."""
    try:
        is_buffered = hasattr(stream.buffer, 'raw')
        buffer = open(stream.fileno(), 'wb', -1 if is_buffered else 0, closefd=False)
        raw = buffer.raw if is_buffered else buffer
        raw.name = stream.name
        by_line = stream.line_buffering or is_buffered and raw.isatty()
        stream.__init__(buffer, stream.encoding, stream.errors, '\n', by_line, stream.write_through)
    except (AttributeError, ValueError):
        pass  # there is none, or a module has replaced it


def park(nice, way):
    """Forks a worker that waits for its rank. Returns in the worker only, with its order. On its way it holds a pipe's ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    middle = os.fork()
    if middle != 0:
        ours.close()
        theirs.close()
        os.waitpid(middle, 0)
        return None
    middle = os.getpid()
    if os.fork() != 0:
        os._exit(0)
    while os.getppid() == middle:
        os.sched_yield()
    libc = ctypes.CDLL(None)
    libc.prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL: fires at each change of parent, so after the last one
    if os.getppid() != LAUNCHER:
        os._exit(1)
    channel = socket.socket(fileno=CHANNEL)
    channel.sendmsg([b'W' + str(os.getpid()).encode()],
                    [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [theirs.fileno()]))])
    channel.close()
    theirs.close()
    for end in way:
        os.close(end)
    order, ancillary, _, _ = ours.recvmsg(1 << 18, socket.CMSG_SPACE(4 * 4))
    if not order:
        os._exit(1)  # the launcher has gone, or does not need it
    given = array.array('i')
    for _, _, data in ancillary:
        given.frombytes(data)
    fields = order[1:].split(b'\0')
    count = int(fields[0])
    become(nice, list(given), fields[1:1 + count])
    argv = [os.fsdecode(part) for part in fields[1 + count:]]
    prepare(argv)
    ours.send(b'T')
    if ours.recv(1) != b'G':
        os._exit(1)
    ours.close()
    return argv


def become(nice, given, variables):
    os.setsid()
    for place, number in enumerate(given[:2], 1):
        os.dup2(number, place)
    if len(given) > 2:
        try:
            os.write(given[2], b'0')  # cgroup.procs
        except OSError:
            pass  # process groups and subreapers still find every process
    for number in given:
        os.close(number)
    reopen(sys.__stdout__)
    reopen(sys.__stderr__)
    if nice is not None:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    for variable in variables:
        name, value = variable.split(b'=', 1)
        os.environb[name] = value
    if os.environ.get(JUDGED_LATE) == '':
        del os.environ[JUDGED_LATE]


def prepare(argv):
    """`argv`: of the whole command, the program's name first."""
    tell_apart()
    set_title(argv)
    at = argv.index('-m' if KIND == 'module' else TARGET, 1)
    sys.argv[:] = argv[at:] if KIND == 'script' else ['-m'] + argv[at + 2:]
    if hasattr(sys, 'orig_argv'):
        sys.orig_argv[:] = argv
    sys.path[:] = path_of_worker()
    import atexit
    atexit.register(gc.unfreeze)


def show(error):
    """What PyErr_Print() does with an exception."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(type(error), error, error.__traceback__)
        return
    except SystemExit:
        raise
    except BaseException as caught:
        worse = caught.with_traceback(caught.__traceback__.tb_next)
    for title, each in (('Error in sys.excepthook:', worse), ('\nOriginal exception was:', error)):
        print(title, file=sys.stderr)
        sys.__excepthook__(type(each), each, each.__traceback__)


def serve():
    """Returns in workers only: the order of one."""
    nice = step_back()
    late = os.environ.setdefault(JUDGED_LATE, '1') if JUDGED_LATE not in os.environ else None
    try:
        importer = Importer(nice)
        if late is not None:
            os.environ[JUDGED_LATE] = ''
        gc.collect()
        gc.freeze()
        own = check()
    except Refused as why:
        say(b'F', why)
        os._exit(1)
    except BaseException as why:
        say(b'F', 'its imports failed: %r' % why)
        os._exit(1)
    times = os.times()
    places = [place for place in importer.mine if place.endswith('-packages')]
    places.append(os.path.join(sys.prefix, 'pyvenv.cfg'))
    say(b'R', len(sys.modules), int(1000 * sum(times[:4])), int(1000 * sum(times[:2])), own, ','.join(importer.struck), *places)
    sys.stdout.flush()
    while True:
        order = os.read(CHANNEL, 4096)
        if not order:
            os._exit(0)  # the launcher has gone, or needs no workers any more
        way = os.pipe()
        for _ in range(int(order[1:])):
            if argv := park(nice, way):
                return argv
        os.close(way[1])
        os.read(way[0], 1)  # until none is on its way any more
        os.close(way[0])
        say(b'D')


ENVIRONMENT = dict(os.environb)
ORIGINAL = text_of('/proc/self/cmdline').split(b'\0')[:-1]
main = sys.modules['__main__']
argv = serve()
if KIND == 'script':
    # What `python FILE` itself ends in: it sets __file__ and __loader__, and prints tracebacks without our frames.
    script = absolute()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fopen.restype = ctypes.c_void_p
    file = libc.fopen(os.fsencode(script), b'rb')
    if not file:
        number = ctypes.get_errno()
        print("%s: can't open file %r: [Errno %d] %s" % (argv[0], script, number, os.strerror(number)), file=sys.stderr)
        sys.stderr.flush()
        os._exit(2)
    run = ctypes.pythonapi.PyRun_SimpleFileExFlags
    run.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    failed = run(file, os.fsencode(script), 1, None)
    # After a KeyboardInterrupt Python ends itself by SIGINT, as it would.
    if failed and getattr(sys, 'last_type', None) is not KeyboardInterrupt:
        raise SystemExit(1)
else:
    import runpy
    error = None
    try:
        runpy._run_module_as_main(TARGET)
    except SystemExit:
        raise
    except BaseException as caught:
        error = caught.with_traceback(caught.__traceback__.tb_next)
    if error is not None:
        show(error)
        if type(error) is not KeyboardInterrupt:
            raise SystemExit(1)
        # After one that comes out of this function, Python ends itself by SIGINT, as it would.
        sys.excepthook = lambda *_: None
        ctypes.pythonapi.PyRun_SimpleString(b'raise KeyboardInterrupt')
