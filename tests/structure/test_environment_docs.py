"""docs/environment.md against the variables that the sources read."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Who reads a variable calls one of these. Its name may stand anywhere in that file, or in the header beside it.
READING = re.compile(r"\b(?:lookup|variable|environment|getenv)\(")
NAME = re.compile(r'"([A-Z][A-Z0-9_]*[A-Z0-9])=?"')
# A name in the call itself may look like anything.
CALL = re.compile(r'\b(?:lookup|variable|environment|getenv)\((?:[^"();]*, ?)?"([^"]+)"\)')
# Such words that no variable has for a name, or that are only written, by file.
GIVES_WORKERS_THEIRS = "cli/run/worker_environment.cpp"
OTHERS = {
    "cli/detect/detect.cpp": {"USR1", "USR2"},
    "cli/main.cpp": {"INFO"},
    "cli/numa_plan.cpp": {"CPU"},
    "cli/parse.cpp": {"SCRIPT"},
    "health/probe/probe_process.cpp": {"NCCL_COMM_ID"},  # taken away from the probe
}


def sources(root):
    for top in ("src", "cli", "rendezvous", "health"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cpp", ".c") and not path.name.endswith("_test.cpp"):
                yield path


def tables(root):
    """The variables in the first columns of docs/environment.md: those that are read, and all; X_* is all that begin so."""
    page = (root / "docs/environment.md").read_text()
    read = page.split("## Variables that elastic-run reads\n", 1)[1].split("\n## ", 1)[0]
    cells = [[line.split(" | ")[0] for line in text.splitlines() if line.startswith("| `")] for text in (read, page)]
    return [set(re.findall(r"`([^`]+)`", " ".join(column))) for column in cells]


def variables(root):
    """Those that the sources read, with the file."""
    read, listed = tables(root)
    others = OTHERS | {GIVES_WORKERS_THEIRS: listed - read}
    for path in sources(root):
        text, name = path.read_text(), path.relative_to(root).as_posix()
        beside = path.with_suffix(".cpp")
        readers = text if path.suffix != ".h" or not beside.exists() else text + beside.read_text()
        if READING.search(readers):
            for variable in set(NAME.findall(text)) - others.get(name, set()) | set(CALL.findall(text)):
                yield variable, name


def missing(root):
    """What the page does not list, and what it lists that nobody reads."""
    listed, read = tables(root)[0], set(variables(root))
    names = {variable for variable, _ in read}

    def is_listed(variable):
        return any(variable == name or name.endswith("*") and variable.startswith(name[:-1]) for name in listed)

    not_listed = [f"{variable} (read in {name})" for variable, name in sorted(read) if not is_listed(variable)]
    gone = [name for name in sorted(listed)
            if name != "PET_<FLAG>" and not any(variable == name or name.endswith("*") and variable.startswith(name[:-1])
                                                for variable in names)]
    return not_listed, gone


def test_every_variable_that_the_sources_read_is_in_environment_md_and_no_other():
    not_listed, gone = missing(ROOT)
    assert not not_listed, "docs/environment.md does not list: " + ", ".join(not_listed)
    assert not gone, "docs/environment.md lists what nobody reads: " + ", ".join(gone)


# --- The check is seen to fail. ---------------------------------------------------------------

PAGE = """\
| `RANK` | for workers |

## Variables that elastic-run reads

| variable | meaning |
|---|---|
| `PET_<FLAG>` | flags |
| `HOME`, `SLURM_*` | two |

## More
"""


@pytest.mark.parametrize("name, code, verdict", [
    ("cli/x.cpp", 'lookup(environment, "HOME"); variable("SLURM_JOB_ID");', ([], [])),
    ("cli/x.cpp", 'lookup(environment, "HOME"); number("SLURM_JOB_ID");', ([], [])),
    ("cli/x.cpp", 'variable("SLURM_X"); variable("HOME"); variable("a/b");', (["a/b (read in cli/x.cpp)"], [])),
    ("src/x.cpp", 'variable("SLURM_X"); for (const char* name : {"HOME", "TMP"}) lookup(all, name);',
     (["TMP (read in src/x.cpp)"], [])),
    ("health/gpu/x.c", 'getenv("SLURM_X"); getenv("HOME"); getenv("NEW");', (["NEW (read in health/gpu/x.c)"], [])),
    ("cli/run/worker_environment.cpp", 'lookup(all, "HOME"); add("RANK", 1);', ([], ["SLURM_*"])),
    ("cli/run/worker_environment.cpp", 'variable("RANK"); variable("HOME"); variable("SLURM_X");',
     (["RANK (read in cli/run/worker_environment.cpp)"], [])),
    ("cli/x.h", 'constexpr const char* kRank = "RANK"; environment("HOME"); environment("SLURM_X")',
     (["RANK (read in cli/x.h)"], [])),
    ("src/x.cpp", 'print("HOME"); print("OTHER");', ([], ["HOME", "SLURM_*"])),
])
def test_a_variable_that_the_page_lacks_is_found(tmp_path, name, code, verdict):
    for path, text in {name: code, "docs/environment.md": PAGE}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert missing(tmp_path) == verdict
