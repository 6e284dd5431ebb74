"""Random hangs of a job on four hosts, with --hang=restart: who is told, whether training goes on, what is left."""

import collections
import dataclasses
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import time
import uuid

import common
import crowd
from common import BenchError, say

NODES, LEAST, RANKS = 4, 3, 2  # nodes, the fewest that train, ranks of each
LIMIT_S = 6             # of the job: a worker must be in state D for 10 s when it is judged
LOSS_S = 10             # loss_timeout
PATIENCE_S = 120        # for what must come
ENOUGH_STEPS = 3        # of a new round: training goes on
PAUSE_S = 0.05          # between two steps
TOLD = ("rule", "ranks_at_fault", "nodes_at_fault", "action", "cause")  # of the event
PORT = 29400            # where the nodes meet
MOST = 1_000_000        # restarts and hangs that are allowed

# {kind of hang: of hanging.LOADS the one in which the rank stands}
KINDS = {
    "sleep": "sleeps", "lock taken twice": "lock", "GIL held in C": "gil", "spin": "spins", "spin in C": "spins_in_c",
    "SIGSTOP": None, "SIGSTOP again": None, "state D": None, "lost init": None, "mismatched collective": None, "cut link": None,
}

NOTES = f"""\
{NODES} elastic-runs with --nnodes={LEAST}:{NODES} --hang=restart --hang-timeout={LIMIT_S}s, each on a host of its own (a
network namespace) with {RANKS} ranks of plain Python, which meet over TCP. One rank hangs: in a function of its own, by
SIGSTOP (from which SIGCONT, which is sent once, wakes it; or it stops again), in state D (the parent of a vfork, which SIGKILL ends), before it says to the worker store that it has come (as
PyTorch does with gloo; a killed rank begins the round), or in another collective than all others; or its host is cut off
without a word. Right: the rank or its node is told, the script if collectives differ, or that node is lost if it is cut
off. Unknown is allowed, and nobody else may be blamed. Overtaken: the round has ended for something else before there was
a verdict, such as a lease that a busy machine has cost. After each hang a new round must make {ENOUGH_STEPS} steps, or the
same one after SIGCONT. A node
that ends must be the one at fault; another host takes its place, or one that stood by. If it has the coordinator, it goes
on serving the job, and is told to end after the next hang with an even number. At the end all nodes end with status 0, and
no process, network namespace, mount or file is left. Kinds come in turns of all of them, each in a random order."""


class Wrong(Exception):
    """What was promised was not kept."""


@dataclasses.dataclass(frozen=True)
class Hang:
    """What is to happen; the seed has decided."""

    number: int
    kind: str
    rank: int
    steps: int      # of its round before
    stands_by: bool  # another node is started before


def sequence(seed, count):
    chance, found = random.Random(seed), []
    while len(found) < count:
        for kind in chance.sample(list(KINDS), len(KINDS)):
            found.append(Hang(len(found) + 1, kind, chance.randrange(NODES * RANKS), chance.randint(1, 40),
                              chance.random() < 0.3))
    return found[:count]


@dataclasses.dataclass
class Outcome:
    number: int
    kind: str
    rank: int
    host: str
    said: str = "overtaken"   # right, unknown, overtaken
    verdict: str = ""
    action: str = ""
    told_s: float | None = None   # after it hung
    again_s: float | None = None


# What a rank does before it meets the others.
BEFORE = """
import json, signal


def order():
    try:
        with open(os.path.join(directory, "order")) as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


# So that the script is not at fault: no two hangs are at the same line.
def stand(number, text, function):
    place = {}
    exec(compile("\\n" * (10 * number) + text, os.path.join(directory, "hangs.py"), "exec"), globals(), place)
    globals().update(place)
    place[function]()


note(f"who_{rank}", f"{os.getpid()} {fence} {socket.gethostname()}")
given = order()
if given.get("kind") == "lost init" and fence > given["after"] and given["rank"] == rank:
    os.unlink(os.path.join(directory, "order"))  # it is of this round alone
    stand(given["number"], LOADS["sleeps"], "load_batch")
init_process_group()
"""

# And then, until it is told to end or to hang.
TRAINING = """
number = 0
while True:
    all_reduce()
    number += 1
    step(number)
    if rank == 0:
        note("at", f"{fence} {number} {world}")
    given = order()
    if given.get("kind") == "end":
        # Rank 0 says when, before it comes to the next collective: all have heard of it after that.
        if given.get("fence") == fence and number >= given["step"]:
            break
        if given.get("fence") != fence and rank == 0:
            note("order", json.dumps({"kind": "end", "fence": fence, "step": number + 1}))
    if given.get("fence") == fence and given.get("rank") == rank:
        if given["kind"] in LOADS:
            stand(given["number"], LOADS[given["kind"]], "load_batch")
        elif given["kind"] == "state D":
            stand(given["number"], READ_BLOCK, "read_block")
        elif given["kind"] == "SIGSTOP again":
            signal.signal(signal.SIGCONT, lambda number, _: os.kill(os.getpid(), signal.SIGSTOP))
            os.kill(os.getpid(), signal.SIGSTOP)
        elif given["kind"] == "mismatched collective":
            broadcast()
    time.sleep(PAUSE_S)
"""


def worker_text(hanging, directory):
    texts = f"LOADS = {hanging.LOADS!r}\nREAD_BLOCK = {hanging.in_state_d(directory)!r}\nPAUSE_S = {PAUSE_S}\n"
    return hanging.worker_of_hosts(texts + hanging.INIT + BEFORE) + TRAINING


class Node(crowd.Node):
    """One elastic-run, on a host of its own."""

    def __init__(self, job, host):
        self.host = host
        self.events_file = job.place / f"events_{host.name}"
        meet = ",".join(job.meeting_hosts(host))
        command = [job.binary, f"--nnodes={LEAST}:{NODES}", f"--nproc-per-node={RANKS}", "--rdzv-backend=c10d",
                   f"--rdzv-endpoint={meet}:{PORT}", "--rdzv-id=soak", f"--local-addr={host.address}",
                   f"--rdzv-conf=last_call_timeout={PATIENCE_S},rejoin_timeout={PATIENCE_S},loss_timeout={LOSS_S}," +
                   f"hang_restarts={MOST},node_losses=-1,job_losses=-1", f"--max-restarts={MOST}", "--hang=restart", f"--hang-timeout={LIMIT_S}s", f"--events={self.events_file}",
                   f"--log-dir={job.place}/logs_{host.name}", str(job.script), str(job.directory)]
        super().__init__(command, job.place, enter=host.enter, variables={
            "TMPDIR": str(job.beside), "PYTHONDONTWRITEBYTECODE": "1", job.harness.MARKER: job.marker})

    def events(self, name=None):
        lines = self.events_file.read_bytes().splitlines(keepends=True) if self.events_file.exists() else []
        found = [json.loads(line) for line in lines if line.endswith(b"\n")]
        return [event for event in found if name in (None, event["event"])]

    def serves_others(self):
        """It has left the job; its coordinator serves the others."""
        return "its coordinator keeps serving" in self.output.read_text(errors="replace")

    def ends_with(self, status):
        try:
            found = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Wrong(f"{self.host.name} does not end: {self.told()}") from None
        if found != status:
            raise Wrong(f"{self.host.name} has ended with status {found}: {self.told()}")

    def has_left(self, why):
        return any(why in event["reason"] for event in self.events("verdict"))


class Job:
    def __init__(self, binary, temporary, hosts):
        import hanging  # pylint: disable=import-outside-toplevel,import-error
        import harness  # pylint: disable=import-outside-toplevel,import-error
        self.binary, self.harness = binary, harness
        self.place = pathlib.Path(temporary) / "random_hangs"
        self.directory, self.beside = self.place / "job", self.place / "beside"
        self.directory.mkdir(parents=True)
        self.beside.mkdir()
        self.script = self.place / "train.py"
        self.script.write_text(worker_text(hanging, self.place))
        self.marker = uuid.uuid4().hex
        self.network, self.namespaces = hosts.Network(), hosts.NETNS
        self.nodes = []
        self.serving = []  # have left the job, and their coordinator serves it until it ends
        self.ended = []

    # --- What the workers say. ---

    def at(self):
        """(fence, step, ranks) of the last step; ("", 0, 0) before the first."""
        try:
            fence, step, world = (self.directory / "at").read_text().split()
        except FileNotFoundError:
            return "", 0, 0
        return fence, int(step), int(world)

    def who(self, rank):
        """(fence of its round, pid, host) of a rank."""
        pid, fence, name = (self.directory / f"who_{rank}").read_text().split()
        return fence, int(pid), next(host for host in self.network.hosts if host.name == name)

    def order(self, **words):
        (self.directory / "order.new").write_text(json.dumps(words))
        os.rename(self.directory / "order.new", self.directory / "order")

    def no_order(self):
        (self.directory / "order").unlink(missing_ok=True)

    # --- Nodes. ---

    def fill(self, count=NODES):
        """Starts nodes in the places of those that have left."""
        while len(self.nodes) < count:
            self.nodes.append(Node(self, self.network.add()))

    def meeting_hosts(self, newcomer):
        """Addresses at which a newcomer asks for the job: the first nodes all have the same."""
        if len(self.network.hosts) <= NODES:
            return [f"10.77.0.{index + 1}" for index in range(NODES)]
        return [node.host.address for node in self.nodes] + [newcomer.address]

    def look(self, at_fault=None):
        """Who has left must be at fault."""
        for node in list(self.nodes):
            serves = node.runs() and node.serves_others()
            if node.runs() and not serves:
                continue
            if node.host is not at_fault or not node.has_left("the job hung, and this node is at fault"):
                raise Wrong(f"{node.host.name} ({node.host.address}) has left: {node.told()}")
            self.nodes.remove(node)
            (self.serving if serves else self.ended).append(node)
        for node in [node for node in self.serving if not node.runs()]:
            raise Wrong(f"{node.host.name} had the coordinator, and has ended: {node.told()}")

    def take_away(self):
        """Hosts that have left the job and serve it are told to end, as somebody does who repairs them: another node takes
        the coordinator over."""
        for node in list(self.serving):
            since_ms = now_ms()
            node.process.terminate()
            node.ends_with(1)
            self.serving.remove(node)
            self.ended.append(node)
            self.wait(lambda: self.acts(since_ms), "coordinator that acts")  # pylint: disable=cell-var-from-loop
            fence, step, _ = self.at()
            self.wait(lambda: self.at()[:2] > (fence, step + ENOUGH_STEPS), "further step")  # pylint: disable=cell-var-from-loop

    def acts(self, since_ms):
        """A coordinator has been elected since then."""
        return any("it acts from now on" in event["message"] and event["monotonic_ms"] >= since_ms
                   for node in self.nodes for event in node.events("coordinator"))

    def wait(self, condition, what, at_fault=None, patience_s=PATIENCE_S):
        ends = time.monotonic() + patience_s
        while not (found := condition()):
            self.look(at_fault)
            if time.monotonic() > ends:
                raise Wrong(f"in {patience_s} s there was no {what}; the last step: {self.at()}\n{self.tails()}")
            time.sleep(0.02)
        return found

    def all_nodes(self):
        return self.nodes + self.serving + self.ended

    def tails(self):
        return "\n".join(f"--- {node.host.name}: {node.told()}" for node in self.nodes)

    def all_train(self, steps, after=""):
        """The fence of a round of as many nodes as there may be, which has made so many steps."""
        def look():
            fence, step, world = self.at()
            return world == NODES * RANKS and fence > after and step >= steps and fence
        return self.wait(look, f"step {steps} of {NODES} nodes")

    def told(self, since_ms):
        """Verdicts since then, each once; all nodes must tell the same of a round."""
        found = {}
        for node in self.all_nodes():
            for event in node.events("hang"):
                if event["state"] == "told" and event["monotonic_ms"] >= since_ms:
                    key = event["round"]
                    said = {name: event[name] for name in TOLD}
                    if key in found and found[key][1] != said:
                        raise Wrong(f"nodes tell different verdicts of round {key}: {found[key][1]} and {said}")
                    found.setdefault(key, (event["monotonic_ms"], said))
        return [found[key] for key in sorted(found)]

    def lost(self, since_ms):
        """{rank of its node: host} of those that coordinators have lost since then. One that has taken over knows no host."""
        return {event["of_node"]: event["of_host"] for node in self.all_nodes() for event in node.events("node_lost")
                if event["monotonic_ms"] >= since_ms}

    def continued(self, since_ms):
        """(when, who is stopped) of the first SIGCONT since then; None: there was none."""
        found = [(event["monotonic_ms"], event["cause"]) for node in self.all_nodes() for event in node.events("hang")
                 if event["state"] == "continued" and event["monotonic_ms"] >= since_ms]
        return min(found, default=None)

    # --- The end. ---

    def end(self):
        """In order; all must end with status 0."""
        self.order(kind="end")
        for node in self.nodes:
            node.ends_with(0)
        for node in self.serving:
            node.ends_with(1)

    def clean(self):
        """Ends all, however it is. Returns what was left behind before that."""
        crowd.stop_all(self.all_nodes())
        left = [f"process {one}" for one in self.harness.marked_processes(self.marker)]
        for one in self.harness.kill_marked(self.marker):
            left.append(f"process that SIGKILL does not end: {one}")
        left += [f"file {path}" for path in self.beside.rglob("*")]
        try:
            self.network.remove()
        except subprocess.CalledProcessError as error:
            left.append(f"network namespaces, for one was gone before: {' '.join(error.cmd)}")
            for name in self.network.namespaces:
                subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        left += [f"network namespace {path.name}" for path in pathlib.Path(self.namespaces).glob(f"{self.network.prefix}*")]
        mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
        return left + [f"mount {line}" for line in mounts if self.network.prefix in line or str(self.place) in line]


# --- One hang. -----------------------------------------------------------------------------------


def now_ms():
    return time.monotonic_ns() // 1_000_000


def begin(job, hang):
    """(host of the rank that hangs, fence of the round that hangs, when it began)."""
    job.fill(NODES + hang.stands_by)
    fence = job.all_train(hang.steps)
    _, pid, host = job.who(hang.rank)
    if hang.kind == "lost init":
        # The next round begins with it.
        job.order(kind=hang.kind, number=hang.number, rank=hang.rank, after=fence)
        os.kill(pid, signal.SIGKILL)
        job.wait(lambda: job.who(hang.rank)[0] > fence, "further round")
        fence, _, host = job.who(hang.rank)
        began_ms = now_ms()
    elif hang.kind == "SIGSTOP":
        os.kill(pid, signal.SIGSTOP)
        began_ms = now_ms()
    elif hang.kind == "cut link":
        host.silence()
        began_ms = now_ms()
    else:
        job.order(kind=KINDS[hang.kind] or hang.kind, number=hang.number, rank=hang.rank, fence=fence)
        began_ms = now_ms()
    return host, fence, began_ms


def follow(job, hang):
    """Has the job hang, and waits until it goes on."""
    host, fence, began_ms = begin(job, hang)
    outcome = Outcome(hang.number, hang.kind, hang.rank, host.name)
    # A node that is at fault may end before the others go on.
    at_fault = None if hang.kind in ("mismatched collective", "cut link") else host

    _, before, _ = job.at()

    def goes_on():
        its, step, _ = job.at()
        is_awake = hang.kind == "SIGSTOP" and its == fence and step >= before + 1 + ENOUGH_STEPS
        return is_awake or (its > fence and step >= ENOUGH_STEPS)
    job.wait(goes_on, "further step", at_fault)
    outcome.again_s = (now_ms() - began_ms) / 1000
    job.no_order()
    if hang.kind == "cut link":
        host.restore()
    judge(job, hang, outcome, host, began_ms)
    if "without" in outcome.action:
        job.wait(lambda: host not in [node.host for node in job.nodes], f"end of {host.name}, which is out", at_fault)
    if hang.number % 2 == 0:
        job.take_away()
    return outcome


def judge(job, hang, outcome, host, began_ms):
    told = job.told(began_ms)
    if len(told) > 1:
        raise Wrong(f"{len(told)} verdicts of one hang: {told}")
    if hang.kind == "cut link":
        lost = job.lost(began_ms)
        outcome.verdict = "lost: " + (", ".join(f"node {rank} ({name})" for rank, name in lost.items()) or "nobody")
        # A busy machine may cost others their leases.
        is_right = lost.get(hang.rank // RANKS, "another") in (None, host.name, host.address)
        outcome.said = "right" if is_right else "overtaken"
    continued = job.continued(began_ms)
    if hang.kind.startswith("SIGSTOP") and continued:
        if f"rank {hang.rank} (node {host.address}) is stopped" not in continued[1]:
            raise Wrong(f"rank {hang.rank} on {host.name} ({host.address}) is stopped, and this is told: {continued[1]}")
        outcome.said, outcome.told_s = "right", (continued[0] - began_ms) / 1000
        outcome.verdict, outcome.action = f"continued: {continued[1]}", "SIGCONT"
    elif continued:
        raise Wrong(f"nobody is stopped, and this is told: {continued[1]}")
    if told:
        told_ms, said = told[0]
        outcome.told_s = (told_ms - began_ms) / 1000
        outcome.verdict = f"rule {said['rule']}: {said['cause']}"
        outcome.action = said["action"] or ""
        outcome.said = said_of(hang, said, host)


def said_of(hang, said, host):
    blamed = said["ranks_at_fault"], said["nodes_at_fault"]
    if said["rule"] == 11 and blamed == ([], []):
        return "unknown"
    if hang.kind == "mismatched collective":
        right = said["rule"] == 6 and blamed == ([], [])
    elif hang.kind == "cut link":
        right = said["rule"] == 1 and blamed[1] == [host.address]
    else:
        right = blamed[0] == [hang.rank] or (said["rule"] == 3 and blamed == ([], [host.address]))
    if not right:
        raise Wrong(f"rank {hang.rank} on {host.name} ({host.address}) hangs ({hang.kind}), and this is told: {said}")
    return "right"


# --- All. ----------------------------------------------------------------------------------------


def networks():
    """tests/system/networks.py."""
    found = crowd.network_namespaces()
    if found is None:
        raise BenchError("random hangs need network namespaces, which are for root only; --only=slow does without")
    return found


def soak(binary, args, temporary, hosts):
    """`hosts` makes them. What was found, and what is wrong, for --json."""
    print(f"random hangs: seed {args.seed}", flush=True)
    outcomes = []
    wrong, left = run(binary, temporary, hosts, sequence(args.seed, args.hangs), outcomes)
    if wrong is None and left:
        wrong = "this was left behind: " + "; ".join(left)
    say("")
    report(outcomes, args.seed)
    print(f"\n{NOTES}")
    print("\nverdict: " + (f"WRONG (seed {args.seed})\n{wrong}" if wrong else
                            "nobody was told wrongly, training went on each time, nothing is left"))
    return {"seed": args.seed, "hangs": [dataclasses.asdict(one) for one in outcomes], "wrong": wrong, "left": left}


def run(binary, temporary, hosts, hangs, outcomes):
    """Adds the outcome of each hang. Returns what is wrong, or None, and what is left behind."""
    job, wrong = Job(binary, temporary, hosts), None
    try:
        for hang in hangs:
            say(f"hang {hang.number} of {len(hangs)}: {hang.kind}")
            outcomes.append(follow(job, hang))
            say("")
            print(line(outcomes[-1]), flush=True)
        job.fill()
        job.all_train(1)
        job.end()
    except (Wrong, BenchError, OSError, subprocess.CalledProcessError) as error:
        wrong = str(error)
    finally:
        left = job.clean()
    return wrong, left


def line(one):
    when = "" if one.told_s is None else f" after {one.told_s:.1f} s"
    where = f"rank {one.rank}" + (f" on {one.host}" if one.host else "")
    done = f"; {one.action}" if one.action else ""
    return (f"hang {one.number:3}: {one.kind:21} {where:17} {one.said}{when}; steps again after {one.again_s:.1f} s; "
            f"{one.verdict}{done}")


def report(outcomes, seed):
    print(f"\nRANDOM HANGS, SEED {seed}")
    rows = []
    for kind in KINDS:
        found = [one for one in outcomes if one.kind == kind]
        said = collections.Counter(one.said for one in found)
        told = [one.told_s for one in found if one.told_s is not None]
        again = [one.again_s for one in found]
        rows.append([kind, str(len(found)), *(str(said[word]) for word in ("right", "unknown", "overtaken")),
                     f"{statistics.median(told):.1f}" if told else "", f"{max(told):.1f}" if told else "",
                     f"{statistics.median(again):.1f}" if again else "", f"{max(again):.1f}" if again else ""])
    common.print_table(["<kind", "hangs", "right", "unknown", "overtaken", "told after, s", "max", "steps after, s", "max"],
                       rows)
