"""Root directories other than the machine's, and ways into them. All mounts are made in mount namespaces that go with
their last process, so nothing has to be unmounted, however a test ends. Root only."""

import os
import pathlib
import shutil
import subprocess

import pytest

DEBIAN = "bookworm"


def entered(root, *command):
    """The command line that runs `command` in `root`, where it may write, as PID 1 of a pid namespace; with /proc where
    there is such a directory."""
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-c",
            '[ ! -d "$0/proc" ] || mount -t proc proc "$0/proc"; exec chroot "$0" "$@"', root, *command]


# Makes the namespaces and runs a program in ROOT as their PID 1; with /proc where ROOT has such a directory.
# Ends as that ends, 128 plus the signal's number where one killed it.
CONTAINER = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void must(int result, const char* what) {
  if (result != 0) { perror(what); _exit(125); }
}
int main(int argc, char** argv) {
  if (argc < 3) return 125;
  must(unshare(CLONE_NEWPID | CLONE_NEWNS), "unshare");
  pid_t first = fork();
  if (first == 0) {
    must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private mounts");
    must(mount(argv[1], argv[1], NULL, MS_BIND | MS_REC, NULL), "bind mount");
    must(chdir(argv[1]), argv[1]);
    /* An initial ramdisk's root cannot be exchanged. */
    if (syscall(SYS_pivot_root, ".", ".") == 0) must(umount2(".", MNT_DETACH), "umount");
    else must(chroot("."), "chroot");
    must(chdir("/"), "/");
    must(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), "read-only root");
    if (access("/proc", F_OK) == 0) must(mount("proc", "/proc", "proc", 0, NULL), "proc");
    execv(argv[2], argv + 2);
    perror(argv[2]);
    _exit(125);
  }
  int status = 0;
  if (first < 0 || waitpid(first, &status, 0) != first) return 125;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
"""


class Memory:
    """A directory in memory, in a mount namespace of its own, in which root directories are made and entered. It goes
    with the process that holds the namespace, and that ends with us, however we end."""

    def __init__(self, mountpoint):
        self.mountpoint = mountpoint
        if os.geteuid() != 0:
            pytest.skip("only root makes namespaces and mounts")
        holds = 'mount -t tmpfs -o mode=755 none "$0" && echo mounted && exec cat'
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", holds, mountpoint],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdout.readline() == b"mounted\n"
        # The directory as it is seen from outside its namespace.
        self.path = pathlib.Path(f"/proc/{self._holder.pid}/root{mountpoint}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._holder.stdin.close()
        self._holder.wait(30)
        self._holder.stdout.close()

    def here(self, *command):
        """The command line that runs `command` in the directory, in its namespace."""
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", f"--wd={self.path}", *command]

    def run(self, *command, **options):
        """Runs it there; it must succeed."""
        done = subprocess.run(self.here(*command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False, **options)
        assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout[-2000:]}"

    def entered(self, root, *command):
        """As entered(), for a root directory here."""
        return self.here(*entered(f"{self.mountpoint}/{root}", *command))


def make_bare_system(memory, name):
    """Makes the smallest Debian that there is, from the network: 206 MiB, 20 s of a processor."""
    if shutil.which("debootstrap") is None:
        pytest.skip("there is no debootstrap; scripts/test installs it")
    memory.run("debootstrap", "--variant=minbase", DEBIAN, f"{memory.mountpoint}/{name}", env=os.environ | proxy())


def proxy():
    """The variables by which debootstrap, and apt in another root directory, find the way that apt has here."""
    said = subprocess.run(["apt-config", "dump", "--format=%v", "Acquire::http::Proxy"], capture_output=True, text=True,
                          check=False).stdout.strip()
    ours = {name: os.environ[name] for name in ("http_proxy", "https_proxy", "no_proxy") if name in os.environ}
    return ours | ({"http_proxy": said} if said and said != "DIRECT" else {})


def files_in(root):
    """Every file, link and directory below `root`, as paths from it; what runs of programs leave is left out."""
    passing = ("proc/", "tmp/", "var/cache/", "var/log/", "var/lib/dpkg/", "dev/", "run/")
    found = subprocess.run(["find", f"{root}/", "-xdev", "-mindepth", "1", "-printf", "%P\n"], capture_output=True,
                           text=True, check=True).stdout.splitlines()
    return {path for path in found if not path.startswith(passing)}
