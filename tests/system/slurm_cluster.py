"""A real Slurm on this machine: slurmctld and four slurmd, each on a host of its own (networks.py) with its own name
and address, and munge between them. Everything of it lies in one directory and goes with the fixture. For root only."""

import os
import re
import shutil
import signal
import stat
import subprocess
import time
import uuid

import pytest

import harness
from deaf_server import CLONE_NEWNS, MS_PRIVATE, MS_REC
from networks import Network, checked, libc

MS_BIND = 4096
NODES = 4
GPUS = 2  # of each node: copies of /dev/null in the place of devices
REQUEUE_STATUS = 75
PROGRAMS = ["slurmctld", "slurmd", "munged", "srun", "sbatch", "salloc", "scancel", "scontrol", "squeue", "sinfo"]
PLACES = "/usr/sbin:/usr/bin:/sbin:/bin"

# Slurm's usual values, but where that would only be a wait: a node has 16 CPUs and the scheduler looks each second; a
# requeued job waits for cred_expire instead of two minutes.
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={control}({control_address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool.%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
LaunchParameters=use_interactive_step
PropagateResourceLimits=NONE
ReturnToService=2
SlurmdTimeout=300
KillWait=30
RequeueExit={requeue_status}
GresTypes=gpu
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
"""


def kill(pid):
    """SIGKILL to what may be gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def ask_until(condition, timeout, what):
    """For what only one of Slurm's commands can tell: asked ten times a second."""
    def asked():
        if value := condition():
            return value
        time.sleep(0.1)
        return None
    return harness.wait_until(asked, timeout, what)


class Cluster:
    def __init__(self, directory):
        self.directory = directory
        self.marker = uuid.uuid4().hex
        self.daemons = {}
        self.started = []  # each program and host, in order
        self._network = Network()
        self.hosts = [self._network.add() for _ in range(1 + NODES)]  # the first is slurmctld's, and the users'
        hosts = "127.0.0.1 localhost\n" + "".join(f"{host.address} {host.name}\n" for host in self.hosts)
        (directory / "hosts").write_text(hosts)

    def start(self):
        directory = self.directory
        for number in range(GPUS):
            os.mknod(directory / f"gpu{number}", stat.S_IFCHR | 0o600, os.makedev(1, 3))  # another /dev/null
        nodes = (f"NodeName={host.name} NodeAddr={host.address} CPUs=16 RealMemory=1000 Gres=gpu:{GPUS}"
                 for host in self.hosts[1:])
        (directory / "slurm.conf").write_text(CONFIGURATION.format(
            directory=directory, control=self.hosts[0].name, control_address=self.hosts[0].address,
            requeue_status=REQUEUE_STATUS, nodes="\n".join(nodes)))
        (directory / "gres.conf").write_text(f"Name=gpu File={directory}/gpu[0-{GPUS - 1}]\n")
        (directory / "state").mkdir()
        key = directory / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self._start_daemon("munged", 0, "--foreground", "--force", f"--key-file={key}",
                           f"--socket={directory}/munge.socket", f"--pid-file={directory}/munge.pid",
                           f"--log-file={directory}/munge.log", f"--seed-file={directory}/munge.seed")
        harness.wait_until((directory / "munge.socket").exists, what="munged's socket")
        self._start_daemon("slurmctld", 0, "-D", "-f", directory / "slurm.conf")
        for index in range(1, 1 + NODES):
            self.start_slurmd(index)
        self.wait_until_idle()

    def start_slurmd(self, index):
        name = self.hosts[index].name
        (self.directory / f"spool.{name}").mkdir(exist_ok=True)
        self._start_daemon("slurmd", index, "-D", "-N", name, "-f", self.directory / "slurm.conf")

    def _start_daemon(self, program, index, *arguments):
        self.started.append((program, index))
        with open(self.directory / f"{program}.{index}.out", "ab") as log:
            self.daemons[program, index] = subprocess.Popen(
                [shutil.which(program, path=PLACES), *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={"PATH": PLACES, harness.MARKER: self.marker}, cwd=self.directory, start_new_session=True,
                preexec_fn=lambda: (self.enter(index), harness.ends_with_the_tests()))

    def enter(self, index=0):
        """A preexec_fn: what is started with it is on that host, and finds the others by name."""
        self.hosts[index].enter()
        checked(libc.unshare(CLONE_NEWNS), "unshare")
        checked(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount /")
        checked(libc.mount(os.fsencode(self.directory / "hosts"), b"/etc/hosts", None, MS_BIND, None), "mount hosts")

    def ask(self, program, *arguments):
        """What one of Slurm's commands prints. On a loaded machine slurmctld resets connections of Slurm's own commands,
        none of which elastic-run takes part in: the command is then run again."""
        for _ in range(20):
            done = subprocess.run([program, *arguments], env={"PATH": PLACES, "SLURM_CONF": self.configuration},
                                  capture_output=True, text=True, check=False, preexec_fn=self.enter, timeout=60)
            if "Connection reset by peer" not in done.stderr:
                break
            time.sleep(0.5)
        if done.returncode:
            raise harness.HarnessError(f"{program} {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    @property
    def configuration(self):
        return str(self.directory / "slurm.conf")

    def wait_until_idle(self, timeout=harness.RUN_PATIENCE):
        """Until all nodes are up, and no job is left on any of them."""
        def idle():
            try:
                return set(self.ask("sinfo", "-hN", "-o", "%T").split()) == {"idle"}
            except harness.HarnessError:  # slurmctld is not there yet
                return False
        try:
            ask_until(idle, timeout, "every node of Slurm is idle")
        except harness.HarnessError as error:
            raise harness.HarnessError(f"{error}\n{self.logs()}") from None

    def logs(self):
        """The last lines of what Slurm says of itself."""
        return "\n".join(f"--- {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-15:])
                         for file in sorted(self.directory.glob("*.log")))

    def processes_on(self, index, marker):
        """What runs on that host with that marker in its environment."""
        there = os.stat(f"/run/netns/{self.hosts[index].namespace}").st_ino

        def is_there(process):
            try:
                return os.stat(f"/proc/{process.pid}/ns/net").st_ino == there
            except FileNotFoundError:
                return False
        return [process for process in harness.marked_processes(marker) if is_there(process)]

    def wait_until_up(self, index):
        """Until slurmd answers on that node."""
        log = self.directory / f"slurmd.{self.hosts[index].name}.log"
        wanted = sum(name == ("slurmd", index) for name in self.started)
        harness.wait_until(lambda: log.read_text().count("slurmd started on") >= wanted, what=f"{wanted} starts in {log}")

    def kill_slurm_on(self, index):
        """slurmd and what it has started for steps, which are left without it."""
        self.kill_slurmd(index)
        for process in self.processes_on(index, self.marker):
            kill(process.pid)

    def kill_slurmd(self, index):
        self.daemons["slurmd", index].kill()
        self.daemons["slurmd", index].wait()

    def mend(self):
        """Nodes that were made to fail are as they were."""
        for index in range(1, 1 + NODES):
            self.hosts[index].restore()
            if self.daemons["slurmd", index].poll() is not None:
                self.start_slurmd(index)
        for line in self.ask("sinfo", "-hN", "-o", "%N %T").splitlines():
            name, state = line.split()
            if state.startswith(("down", "drain", "fail")):
                try:
                    self.ask("scontrol", "update", f"NodeName={name}", "State=RESUME")
                except harness.HarnessError:  # it has come back by itself meanwhile; otherwise the wait tells
                    pass
        self.wait_until_idle()

    def stop(self):
        for process in reversed(self.daemons.values()):
            process.terminate()
        for process in self.daemons.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        harness.kill_marked(self.marker)  # slurmstepd is nobody's child
        self._network.remove()


class Slurm:
    """What a user of the cluster has: Slurm's commands, on the host of slurmctld."""

    def __init__(self, cluster, elastic_run):
        self.cluster = cluster
        self._programs = elastic_run
        self.directory = elastic_run.directory

    def start(self, *command, env=None, **options):
        """Starts one of Slurm's commands; the rest as with elastic_run.start()."""
        command = [self._programs.binary if part == "elastic-run" else part for part in command]
        return self._programs.start(program=command, env={"SLURM_CONF": self.cluster.configuration} | (env or {}),
                                    preexec_fn=self.cluster.enter, **options)

    def srun(self, *arguments, **options):
        return self.start("srun", *arguments, **options)

    def sbatch(self, *arguments, env=None):
        """Submits a job; its output goes to the file job.N in the test's directory. Returns its number."""
        binary = os.path.dirname(self._programs.binary)
        path = {"PATH": f"{binary}:" + self._programs.environment()["PATH"]}
        done = self.start("sbatch", "--parsable", f"--output={self.directory}/job.%A", "--open-mode=append", *arguments,
                          env=path | (env or {})).wait()
        assert done.returncode == 0, done
        return Job(self, done.stdout.strip())

    def ask(self, *command):
        return self.cluster.ask(*command)

    @property
    def binary(self):
        return self._programs.binary

    def processes_on(self, node):
        """Of this test, on node1, node2, ...; slurmstepd is the cluster's."""
        return self.cluster.processes_on(node, self._programs.marker)

    def kill_processes_on(self, node):
        """Launcher, guardian and workers, the first two as nearly at once as can be."""
        found = self.processes_on(node)
        assert {"elastic-run", "elastic_launch"} <= {process.name for process in found}, found
        for process in sorted(found, key=lambda process: not process.name.startswith("elastic")):
            kill(process.pid)

    def finish(self):
        """Ends all jobs; Slurm has none left afterwards."""
        try:
            # The array, not its tasks: Slurm does not know a running task by its own number when another one has ended.
            for job in set(self.ask("squeue", "-h", "-o", "%F").split()):
                self.ask("scancel", job)
        except harness.HarnessError as error:
            raise harness.HarnessError(f"{error}\n{self.cluster.logs()}") from None
        self.cluster.mend()


class Job:
    """A batch job."""

    def __init__(self, slurm, number):
        self.number = number
        self.output = slurm.directory / f"job.{number}"
        self._slurm = slurm

    @property
    def text(self):
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def wait_for(self, pattern, count=1, timeout=harness.PATIENCE):
        """So many matches in its output; a list."""
        def found():
            matches = re.findall(pattern, self.text, re.MULTILINE)
            return matches if len(matches) >= count else None
        try:
            return harness.wait_until(found, timeout, f"{count} times {pattern!r}")
        except harness.HarnessError as error:
            raise harness.HarnessError(f"{error}\n--- output of job {self.number}\n{self.text}") from None

    def field(self, name):
        """Of what `scontrol show job` says: "JobState", "ExitCode", "Restarts"."""
        return re.search(rf"\b{name}=(\S+)", self._slurm.ask("scontrol", "show", "job", self.number)).group(1)

    def wait(self, timeout=harness.RUN_PATIENCE):
        """Its state at the end: "COMPLETED", "FAILED", "CANCELLED", ..."""
        states = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"}
        try:
            ask_until(lambda: self.field("JobState") in states, timeout, f"the end of job {self.number}")
        except harness.HarnessError as error:
            raise harness.HarnessError(f"{error}\n--- output of job {self.number}\n{self.text}") from None
        return self.field("JobState")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """One cluster for all tests of a file: it takes a second or two to come up."""
    if os.geteuid() != 0:
        pytest.skip("only root makes the hosts of a Slurm cluster")
    if missing := [name for name in PROGRAMS if not shutil.which(name, path=PLACES)]:
        pytest.skip(f"no Slurm here ({', '.join(missing)}); scripts/test installs it")
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def slurm(cluster, elastic_run):
    made = Slurm(cluster, elastic_run)
    yield made
    made.finish()
