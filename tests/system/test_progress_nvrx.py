"""NVRx's client at the sockets of --progress-from=nvrx, by what it sends: docs/progress.md. The client itself runs in
tests/peers/test_nvrx.py."""

import json

from harness import wait_until
from http_client import http_port, status

# Classes by the names of NVRx's own, which are all that a pickle has of them, and a client with its frames.
CLIENT = '''
import enum, os, pickle, socket, struct, sys, time, types

def module(name):
    made = types.ModuleType(name)
    sys.modules[name] = made
    return made

for name in ("nvidia_resiliency_ext", "nvidia_resiliency_ext.fault_tolerance"):
    module(name)
data = module("nvidia_resiliency_ext.fault_tolerance.data")
config = module("nvidia_resiliency_ext.fault_tolerance.config")

def add(home, kind):
    kind.__module__, kind.__qualname__ = home.__name__, kind.__name__
    setattr(home, kind.__name__, kind)
    return kind

def message(name):
    def init(self, **members):
        self.__dict__.update(members)
    return add(data, type(name, (), {"__init__": init}))

AuthkeyMsg, InitMsg, HeartbeatMsg, SectionMsg, UpdateConfigMsg, OkMsg, ErrorMsg, WorkloadControlRequest = map(message, (
    "AuthkeyMsg", "InitMsg", "HeartbeatMsg", "SectionMsg", "UpdateConfigMsg", "OkMsg", "ErrorMsg",
    "WorkloadControlRequest"))
add(config, type("FaultToleranceConfig", (), {}))
SectionAction = add(data, enum.Enum("SectionAction", {"OPEN": 1, "CLOSE": 2, "CLOSE_ALL": 3}))
WorkloadAction = add(data, enum.Enum("WorkloadAction", {"Continue": 0, "ExcludeThisNode": 1, "ShutdownWorkload": 2}))

class Client:
    def __init__(self, variable="FT_RANK_MONITOR_IPC_SOCKET"):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.environ[variable])

    def receive(self, count):
        got = b""
        while len(got) < count:
            more = self.socket.recv(count - len(got))
            if not more:
                raise EOFError
            got += more
        return got

    def ask_bytes(self, pickled):
        self.socket.sendall(struct.pack(">I", len(pickled)))
        self.socket.sendall(pickled)
        return pickle.loads(self.receive(struct.unpack(">I", self.receive(4))[0]))

    def ask(self, said):
        return self.ask_bytes(pickle.dumps(said))

    def begin(self):
        assert type(self.ask(AuthkeyMsg(authkey=b"0" * 32))) is OkMsg
        return self.ask(InitMsg(rank_info=None)).cfg

def section(name, action, **members):
    return SectionMsg(rank=os.environ["RANK"], section=name, action=action, **members)

def wait():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
'''


def start(elastic_run, script, body, *options, **popen):
    go = elastic_run.directory / "go"
    run = elastic_run.start("--standalone", "--http-port=0", "--log-level=info", "--progress-from=nvrx", *options,
                            script("train.py", CLIENT + body), go, **popen)
    run.port = http_port(run)
    return run, go


def end(run, go):
    go.write_text("")
    result = run.wait()
    assert result.returncode == 0, result
    return result


def progress_of(run, local_rank=0):
    return status(run.port)["node"]["workers"][local_rank]["progress"]


def test_heartbeats_and_sections_of_nvrx_are_progress(elastic_run, script):
    run, go = start(elastic_run, script, '''
client = Client()
settings = client.begin()
assert settings.rank_section_timeouts == {"setup": None, "step": None}, settings.__dict__
assert settings.rank_heartbeat_timeout is None and settings.skip_section_response is False
if os.environ["RANK"] == "0":
    assert type(client.ask(HeartbeatMsg(rank="0", state={}))) is OkMsg
    assert type(client.ask(UpdateConfigMsg(hb_timeouts=None, section_timeouts=None))) is OkMsg
else:
    for step in (117, 118):
        assert type(client.ask(section("step", SectionAction.OPEN, iteration=step))) is OkMsg
        assert type(client.ask(section("step", SectionAction.CLOSE))) is OkMsg
    assert type(client.ask(section("setup", SectionAction.OPEN))) is OkMsg
    assert "already open" in client.ask(section("setup", SectionAction.OPEN)).cause
    assert type(client.ask(section(None, SectionAction.CLOSE_ALL))) is OkMsg
    assert "--progress-sections" in client.ask(section("upload", SectionAction.OPEN)).cause
wait()
''', "--nproc-per-node=2", "--progress-sections=setup,step")
    wait_until(lambda: progress_of(run, 0) and progress_of(run, 1) and progress_of(run, 1)["step"] == 118, timeout=60,
               what="both workers to be seen")
    beats = progress_of(run, 0)
    assert (beats["source"], beats["step"], beats["phase"]) == ("nvrx", None, "unknown"), beats
    steps = progress_of(run, 1)
    assert (steps["source"], steps["step"]) == ("nvrx", 118), steps
    end(run, go)


def test_a_pickle_that_calls_something_runs_nothing_and_ends_its_connection_alone(elastic_run, script, tmp_path):
    run, go = start(elastic_run, script, f'''
good = Client()
good.begin()
evil = Client()
answer = evil.ask_bytes(b"\\x80\\x02cos\\nsystem\\nX" + struct.pack("<I", 99) + b"touch {tmp_path}/called".ljust(99)
                        + b"\\x85R.")
assert type(answer) is ErrorMsg and "os system" in answer.cause, answer.__dict__
try:
    evil.receive(1)
    raise SystemExit("the connection goes on")
except EOFError:
    pass
stranger = Client()
stranger.socket.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n")
stranger.receive(4)
assert type(good.ask(HeartbeatMsg(rank="0", state={{}}))) is OkMsg
wait()
''', "--nproc-per-node=1")
    wait_until(lambda: progress_of(run), timeout=60, what="the heartbeat to be seen")
    result = end(run, go)
    assert not (tmp_path / "called").exists()
    assert result.stderr.count("an NVRx client is not understood") == 1, result


def test_a_client_of_the_next_round_begins_anew(elastic_run, script):
    run, go = start(elastic_run, script, '''
client = Client()
client.begin()
assert type(client.ask(section("step", SectionAction.OPEN))) is OkMsg
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    sys.exit(3)
wait()
''', "--nproc-per-node=1", "--max-restarts=1")
    wait_until(lambda: status(run.port)["node"]["restart_count"] == 1 and progress_of(run), timeout=60,
               what="the second round's section")
    assert progress_of(run)["phase"] == "train"
    end(run, go)


def test_a_request_to_the_launcher_is_told_and_refused(elastic_run, script):
    run, go = start(elastic_run, script, '''
def ask(action):
    return Client("FT_LAUNCHER_IPC_SOCKET").ask((0, WorkloadControlRequest(action=action, description="bad GPU")))

assert ask(WorkloadAction.Continue) == b"ok"
assert "--drain" in ask(WorkloadAction.ExcludeThisNode)
assert "--stop" in ask(WorkloadAction.ShutdownWorkload)
wait()
''', "--nproc-per-node=1")
    run.wait_for_line(r"rank 0 asks by NVRx to leave out its node \(bad GPU\), which is not done")
    run.wait_for_line(r"asks by NVRx to end the job")
    end(run, go)


SHOWS = ["--no-python", "sh", "-c", "env | grep ^FT_ || echo none"]


def test_without_the_flag_or_with_a_variable_of_the_user_no_variable_changes(elastic_run):
    plain = elastic_run("--standalone", *SHOWS)
    assert plain.stdout == "none\n", plain
    kept = elastic_run("--standalone", "--progress-from=nvrx", *SHOWS,
                       env={"FT_RANK_MONITOR_IPC_SOCKET": "/of/the/user"})
    assert kept.stdout == "FT_RANK_MONITOR_IPC_SOCKET=/of/the/user\n", kept


def test_a_directory_with_a_name_too_long_for_sockets_is_told_and_the_job_runs(elastic_run, tmp_path):
    long_one = tmp_path / ("x" * 100)
    long_one.mkdir()
    result = elastic_run("--standalone", "--progress-from=nvrx", *SHOWS, env={"TMPDIR": str(long_one)})
    assert result.returncode == 0 and result.stdout == "none\n", result
    assert "too long for a socket; set TMPDIR to a shorter one" in result.stderr, result


def test_names_of_sections_that_nobody_asks_for_are_told(elastic_run):
    result = elastic_run("--standalone", "--progress-sections=step", *SHOWS)
    assert result.returncode == 0 and "it is ignored without --progress-from=nvrx" in result.stderr, result


def test_a_rank_that_stays_in_a_section_beyond_its_limit_is_a_hang_and_not_in_one_that_may_take_longer(
        elastic_run, script):
    run, go = start(elastic_run, script, '''
client = Client()
settings = client.begin()
assert settings.rank_section_timeouts == {"setup": None, "step": None}, settings.__dict__
client.ask(section("setup", SectionAction.OPEN))
began = time.monotonic()
while time.monotonic() - began < 12:  # longer than it takes to tell a hang by --hang-timeout
    time.sleep(0.1)
client.ask(section("setup", SectionAction.CLOSE))
client.ask(section("step", SectionAction.OPEN))
wait()
''', "--nproc-per-node=2", "--progress-sections=setup:1h,step:2s", "--hang-timeout=3s",
                    f"--log-dir={elastic_run.directory}/logs")
    run.wait_for_line(r'no progress for .* \(limit of section "step", in which rank [01] is: 2\.000 s', timeout=120)
    file = wait_until(lambda: next(elastic_run.directory.glob("logs/*/attempt_0/hang/hang.json"), None), what="hang.json")
    report = json.loads(file.read_text())["hang"]
    assert (report["section"], report["limit_s"], report["limit_from"]) == ("step", 2, "section"), report
    assert report["section_rank"] in (0, 1), report
    assert end(run, go).stderr.count("warning: no progress for") == 1


def test_names_of_sections_that_are_none_are_refused(elastic_run):
    for names in ("a:0", "a:soon", "a:", ":30", "a:1,a:2", "a,,b", "a b", "x" * 65, ",".join(f"s{i}" for i in range(65))):
        result = elastic_run("--progress-from=nvrx", f"--progress-sections={names}", "--no-python", "true")
        assert result.returncode == 2 and "--progress-sections" in result.stderr, result
