"""A slow training on an overloaded machine is no hang; random hangs of a job on four hosts end, and training goes on."""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import select
import signal
import sys
import tempfile
import time
import urllib.request

import common
from common import BenchError, positive, say
from hogs import hogs
from parts import random_hangs

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from ports import free_port  # noqa: E402

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/fashion_mnist.py"
EPOCHS = 100_000         # far more than there is time for
CHECKPOINT_MB_PER_S = 4  # written, in one piece a second
BEGINNING_S = 600        # for the first step to be seen: every rank imports PyTorch first
SLOW, RANDOM = "slow", "random"  # the parts
TOLD = re.compile(rb"no progress for|cause: |hang\.html")

# The example as it is, with an evaluation of all test images every so many steps, and checkpoints that take long. Each is
# noted in a file; nothing of it is printed, so that the step lines are all that elastic-run sees.
TRAINING = """
import os, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import fashion_mnist as example
notes, evaluate_every, checkpoint_s = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
read_images, batch_of_step, save_checkpoint, train = (
    example.read_images, example.batch_of_step, example.save_checkpoint, example.train)
test, trained = [], []


def note(what, began):
    if os.environ["RANK"] == "0":
        with open(notes, "a") as file:
            file.write(f"{what} {time.monotonic() - began:.3f}\\n")


def read_and_keep(args, part, device):
    found = read_images(args, part, device)
    if part == "t10k":
        test[:] = found
    return found


def evaluate():
    began = time.monotonic()
    example.count_correct(trained[0].module, *test)
    note("evaluation", began)


def evaluate_now_and_then(step, *rest):
    if step > 0 and step % evaluate_every == 0:
        evaluate()
    return batch_of_step(step, *rest)


def save_slowly(path, state):
    began = time.monotonic()
    with open(path + ".slow", "wb") as file:
        while time.monotonic() - began < checkpoint_s:
            file.write(os.urandom(1_000_000) * {megabytes})
            file.flush()
            os.fsync(file.fileno())
            file.truncate(0)
            file.seek(0)
            time.sleep(1)
    save_checkpoint(path, state)
    note("checkpoint", began)


def train_and_know_the_model(model, *rest):
    trained.append(model)
    train(model, *rest)


example.read_images, example.batch_of_step = read_and_keep, evaluate_now_and_then
example.save_checkpoint, example.train = save_slowly, train_and_know_the_model
del sys.argv[1:5]
example.main()
""".replace("{megabytes}", str(CHECKPOINT_MB_PER_S))

NOTES = f"""\
examples/fashion_mnist.py beside processes that do nothing but compute, with elastic-run's defaults, so that its limits are
learned. All test images are evaluated every so many steps. For as long as a checkpoint is to take rank 0 writes
{CHECKPOINT_MB_PER_S} MB a second, while the others wait for it in the next step. The script says nothing of either. When elastic-run has
seen the first step the others begin to compute, so that steps are many times slower than those before, and the time counts.
Nothing may be told as a hang: no event `hang` with a verdict, no line on the screen, no hang.json. The node must say all the
time that it sees steps: else nobody has watched. A suspicion that comes to nothing is an event at the level info, and is
counted here."""


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    machine = common.machine()
    networks = random_hangs.networks() if RANDOM in args.only else None
    done = {}
    with tempfile.TemporaryDirectory(prefix="elastic-run-soak.") as temporary:
        binary = common.elastic_run_binary()
        print(f"{common.elastic_run_version(binary)}; {common.describe(machine)}")
        if SLOW in args.only:
            done["slow_training"] = slow_training(binary, args, temporary)
        if RANDOM in args.only:
            done["random_hangs"] = random_hangs.soak(binary, args, temporary, networks)
    if args.json:
        common.write_json(args.json, {"soak": "hang", "machine": machine} | done)
    return 0 if all(one["wrong"] is None for one in done.values()) else 1


def slow_training(binary, args, temporary):
    """What was found, and what is wrong, for --json."""
    job, wrong = None, None
    try:
        job = Job(binary, args, temporary)
        wait_for_steps(job)
        with hogs(args.load):
            watch(job, args)
    except (Wrong, BenchError) as error:
        wrong = str(error)
    finally:
        if job:
            job.launch.stop()
    found = job.found() if job else {}
    say("")
    report(args, found)
    print(f"\n{NOTES}")
    print("\nverdict: " + (f"WRONG\n{wrong}" if wrong else "steps were seen, and nothing was told as a hang"))
    return {"minutes": args.minutes, "load": args.load, "ranks": args.ranks, "wrong": wrong} | found


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak hang", description=__doc__)
    parser.add_argument("--minutes", type=positive, default=30, metavar="N", help="from the first step on (%(default)s)")
    parser.add_argument("--load", type=natural, default=50, metavar="N", help="processes that compute (%(default)s)")
    parser.add_argument("--ranks", type=positive, default=2, metavar="N", help="(%(default)s)")
    parser.add_argument("--log-every", type=positive, default=10, metavar="STEPS", help="between step lines (%(default)s)")
    parser.add_argument("--evaluate-every", type=positive, default=60, metavar="STEPS", help="(%(default)s)")
    parser.add_argument("--checkpoint-every", type=positive, default=120, metavar="STEPS", help="(%(default)s)")
    parser.add_argument("--checkpoint-seconds", type=positive, default=90, metavar="N", help="(%(default)s)")
    parser.add_argument("--only", type=parts, default=[SLOW, RANDOM], metavar="slow,random", help="(both)")
    parser.add_argument("--hangs", type=positive, default=100, metavar="N", help="random ones (%(default)s)")
    parser.add_argument("--seed", type=positive, default=random.randrange(1, 1_000_000), metavar="N",
                        help="of random hangs; the same one has the same sequence (another one each time)")
    parser.add_argument("--json", metavar="FILE", help="what was found, as JSON")
    return parser.parse_args()


def parts(text):
    chosen = text.split(",")
    if not set(chosen) <= {SLOW, RANDOM}:
        raise argparse.ArgumentTypeError(f"{text!r} is not {SLOW}, {RANDOM} or {SLOW},{RANDOM}")
    return chosen


def natural(text):
    return 0 if text == "0" else positive(text)


class Wrong(Exception):
    """What was promised was not kept."""


class Job:
    """The training under elastic-run, and what elastic-run has told of it."""

    def __init__(self, binary, args, temporary):
        self.directory = pathlib.Path(temporary) / "job"
        self.directory.mkdir()
        script, self._notes = self.directory / "training.py", self.directory / "notes"
        script.write_text(TRAINING)
        self._output = self.directory / "told"
        self._events = self.directory / "events"
        self.logs = self.directory / "logs"
        self.port = free_port()
        self.most_silent_s = 0.0
        self.states = collections.Counter()
        self.limits = set()
        python = pathlib.Path(common.torchrun()).with_name("python3")
        command = [binary, "--standalone", f"--nproc-per-node={args.ranks}", f"--events={self._events}",
                   f"--http-port={self.port}", f"--log-dir={self.logs}", str(script), str(EXAMPLE), str(self._notes),
                   str(args.evaluate_every), str(args.checkpoint_seconds), f"--epochs={EPOCHS}", f"--log-every={args.log_every}",
                   f"--checkpoint={self.directory}/checkpoint", f"--checkpoint-every={args.checkpoint_every}"]
        output = os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self.launch = common.Launch(command, temporary, output=output,
                                        variables={"PYTHON_EXEC": str(python), "PYTHONDONTWRITEBYTECODE": "1"})
        finally:
            os.close(output)

    def told(self):
        return self._output.read_bytes()

    def events(self):
        lines = self._events.read_bytes().splitlines(keepends=True) if self._events.exists() else []
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def has_ended(self):
        return bool(select.select([self.launch.pidfd], [], [], 0)[0])

    def steps(self):
        """The last step that a rank has printed, and how many lines of that kind there are."""
        found = re.findall(rb"^step (\d+)/", self.told(), re.MULTILINE)
        return int(found[-1]) if found else 0, len(found)

    def look(self):
        """What the node says of itself and its job; None where it has no processor to answer in time."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status", timeout=30) as answer:
                document = json.load(answer)
        except (OSError, ValueError):
            return None
        of_job, = document["coordinator"]["jobs"]
        hang = of_job["hang"]
        self.states[hang["state"]] += 1
        if hang["state"] != "starting":
            self.most_silent_s = max(self.most_silent_s, hang["silent_seconds"] or 0)
        if hang["limit_seconds"] is not None:
            self.limits.add((hang["limit_from"], round(hang["limit_seconds"])))
        return document

    def found(self):
        """In numbers, for the report."""
        step, lines = self.steps()
        notes = [line.split() for line in self._notes.read_text().splitlines()] if self._notes.exists() else []
        took = {what: [float(seconds) for name, seconds in notes if name == what] for what in ("evaluation", "checkpoint")}
        hangs = collections.Counter(event["state"] for event in self.events() if event["event"] == "hang")
        return {"step": step, "step_lines": lines, "seconds": took, "most_silent_s": self.most_silent_s,
                "limits_s": sorted(self.limits), "hang_events": dict(hangs), "states": dict(self.states)}


def wait_for_steps(job):
    ends = time.monotonic() + BEGINNING_S
    while not any(event["event"] == "progress_seen" for event in job.events()):
        if time.monotonic() > ends:
            raise Wrong(f"no step was seen within {BEGINNING_S} s: {tail(job)}")
        check_that_nothing_is_told(job)
        time.sleep(1)


def watch(job, args):
    """Until the time is over; raises Wrong as soon as something is."""
    began, answers = time.monotonic(), 0
    while (since_s := time.monotonic() - began) < 60 * args.minutes:
        say(f"{since_s:.0f} of {60 * args.minutes} s, step {job.steps()[0]}")
        check_that_nothing_is_told(job)
        answers += check_that_steps_are_seen(job)
        time.sleep(1)
    if not answers:
        raise Wrong(f"the node has never said what it sees: {tail(job)}")
    found = job.found()
    if not all(found["seconds"].values()):
        raise Wrong(f"there was no evaluation or no checkpoint, and so nothing that could be taken for a hang: {found}")


def check_that_nothing_is_told(job):
    if job.has_ended():
        raise Wrong(f"the job has ended: {tail(job)}")
    for event in job.events():
        if event["event"] == "hang" and event["state"] in ("told", "recovered"):
            raise Wrong(f"a hang was told: {json.dumps(event)}\n{tail(job)}")
    if TOLD.search(job.told()):
        raise Wrong(f"a hang was told: {tail(job)}")
    if found := list(job.logs.glob("**/hang.json")):
        raise Wrong(f"a hang was told: {found[0].read_text()}")


def check_that_steps_are_seen(job):
    """False where the node has not said."""
    document = job.look()
    if document is None:
        return False
    progress = document["node"]["progress"]
    if not progress or progress["step"] is None:
        raise Wrong(f"steps are not seen any more: {json.dumps(document['node'])}\n{tail(job)}")
    return True


def tail(job):
    return job.told()[-3000:].decode(errors="replace")


def report(args, found):
    if not found:
        return
    print(f"\n{args.ranks} RANKS, {args.load} PROCESSES THAT COMPUTE, {args.minutes} MINUTES FROM THE FIRST STEP ON")
    print(f"{found['step']} steps, {found['step_lines']} lines that say them; longest silence that was seen: "
          f"{found['most_silent_s']:.0f} s")
    print("limits: " + (", ".join(f"{seconds} s ({where})" for where, seconds in found["limits_s"]) or "none"))
    common.print_table(["<the job", "times", "median, s", "max, s"], [
        [what, str(len(took)), *(f"{value:.1f}" for value in (common.Spread.of(took).median, max(took)))]
        if took else [what, "0", "", ""] for what, took in found["seconds"].items()])
    events = found["hang_events"]
    print(f"suspicions {events.get('suspect', 0)}, of which came to nothing {events.get('withdrawn', 0)}; "
          f"hangs told {events.get('told', 0)}")


if __name__ == "__main__":
    common.run_main(main)
