"""Hosts in network namespaces of their own, joined by a bridge: each has an address, a name, and a cable that can
be pulled without a word. All of it goes with the test. For root only."""

import ctypes
import itertools
import os
import subprocess

import pytest

CLONE_NEWNET = 0x40000000
CLONE_NEWUTS = 0x04000000
NETNS = "/run/netns"


def free_numbers(first):
    """Of networks of this process: not those under which an earlier process of the same number has left something."""
    return (number for number in itertools.count(first)
            if not os.path.exists(f"{NETNS}/er{os.getpid()}-{number}-b"))


numbers = free_numbers(0)
libc = ctypes.CDLL(None, use_errno=True)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def checked(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


class Host:
    """One host. `enter` is a preexec_fn: what is started with it runs on this host."""

    def __init__(self, network, index):
        self.name = f"node{index}"
        self.address = f"10.77.{index // 250}.{index % 250 + 1}"
        self.address6 = f"fd77::{index + 1}"
        self.namespace = f"{network.prefix}{index}"
        self.port = f"p{index}"  # of the bridge
        self._bridge = network.bridge
        ip("netns", "add", self.namespace)
        network.namespaces.append(self.namespace)
        ip("-n", self._bridge, "link", "add", self.port, "type", "veth", "peer", "name", "eth0",
           "netns", self.namespace)
        ip("-n", self._bridge, "link", "set", self.port, "master", "br0", "up")
        ip("-n", self.namespace, "link", "set", "lo", "up")
        ip("-n", self.namespace, "addr", "add", f"{self.address}/16", "dev", "eth0")
        ip("-n", self.namespace, "addr", "add", f"{self.address6}/64", "dev", "eth0", "nodad")
        ip("-n", self.namespace, "link", "set", "eth0", "up")

    def enter(self):
        handle = os.open(f"{NETNS}/{self.namespace}", os.O_RDONLY | os.O_CLOEXEC)
        checked(libc.setns(handle, CLONE_NEWNET), "setns")
        os.close(handle)
        checked(libc.unshare(CLONE_NEWUTS), "unshare")
        name = self.name.encode()
        checked(libc.sethostname(name, len(name)), "sethostname")

    def ip(self, *arguments):
        """Runs `ip` on this host."""
        ip("-n", self.namespace, *arguments)

    def silence(self):
        """From now on nothing comes from it and nothing gets to it; nobody is told."""
        self._port_state("disabled")

    def slow_down(self, megabits):
        """What it sends goes out at so many 10^6 bits a second, a burst of 256 KiB excepted."""
        self._tc("tbf", "rate", f"{megabits}mbit", "burst", "256kb", "latency", "500ms")

    def lose_packets(self):
        """Of what it sends quickly much gets lost: its queue has room for two packets."""
        self._tc("tbf", "rate", "100mbit", "burst", "3200", "limit", "3200")

    def drop_large_packets(self):
        """Of what it sends only small packets arrive, as where a switch takes none of its size; nobody is told."""
        self._tc("tbf", "rate", "100mbit", "burst", "1000", "limit", "1mb")

    def let_all_through(self):
        """The end of what its queue was told to do."""
        subprocess.run(["tc", "-n", self.namespace, "qdisc", "delete", "dev", "eth0", "root"],
                       check=True, capture_output=True)

    def cut_off_from(self, other):
        """What it sends to the other host gets nowhere, which nobody is told."""
        for address in other.address, other.address6:
            self.ip("neigh", "replace", address, "lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent")

    def reach_again(self, other):
        """The end of cut_off_from()."""
        for address in other.address, other.address6:
            self.ip("neigh", "delete", address, "dev", "eth0")

    def refuse_new_connections(self, *, silently=False):
        """A firewall: other hosts cannot connect to it, and are told so unless `silently`; it can connect to them."""
        verdict = "drop" if silently else "reject with tcp reset"
        self._nft(f"add table inet fw; add chain inet fw in {{ type filter hook input priority 0; }}; "
                  f"add rule inet fw in iif eth0 tcp flags syn / syn,ack {verdict}")

    def open_firewall(self):
        """The end of refuse_new_connections()."""
        self._nft("delete table inet fw")

    def _nft(self, rules):
        subprocess.run(["ip", "netns", "exec", self.namespace, "nft", rules], check=True, capture_output=True)

    def _tc(self, *discipline):
        subprocess.run(["tc", "-n", self.namespace, "qdisc", "replace", "dev", "eth0", "root", *discipline],
                       check=True, capture_output=True)

    def restore(self):
        self._port_state("forwarding")

    def _port_state(self, state):
        subprocess.run(["ip", "netns", "exec", self._bridge, "bridge", "link", "set", "dev", self.port,
                        "state", state], check=True, capture_output=True)


class Network:
    def __init__(self):
        self.prefix = f"er{os.getpid()}-{next(numbers)}-"
        self.bridge = self.prefix + "b"
        self.namespaces = []
        ip("netns", "add", self.bridge)
        self.namespaces.append(self.bridge)
        ip("-n", self.bridge, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
        ip("-n", self.bridge, "link", "set", "br0", "up")
        self.hosts = []

    def add(self):
        self.hosts.append(Host(self, len(self.hosts)))
        return self.hosts[-1]

    def remove(self):
        for name in reversed(self.namespaces):
            subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.fixture
def network(elastic_run):  # its programs end before their hosts go
    """network(n): so many hosts. `network.hosts`, `network.add()` for one more."""
    if os.geteuid() != 0:
        pytest.skip("only root makes network namespaces")
    made = Network()

    def make(count):
        for _ in range(count):
            made.add()
        return made.hosts

    make.hosts = made.hosts
    make.add = made.add
    yield make
    elastic_run.kill_all()
    made.remove()
