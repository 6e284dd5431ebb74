"""The words that the code no longer speaks, and where some of them are left.

Each is a part of names (door in TryDoorOf, or kept_out in kKeptOut) with the field's word for it; docs/architecture.md has the
glossary. LEFT counts the names that still have one, by word and folder. It only shrinks: whoever removes one lowers it.
"""

import collections
import importlib.machinery
import importlib.util
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# {the old part of a name: (the field's word, the folders in which the old one is wrong)}
RENDEZVOUS = ("rendezvous/",)
EVERYWHERE = ("cli/", "health/", "rendezvous/", "src/")
COORDINATION = tuple(f"rendezvous/{room}/" for room in ("agent", "coordinator", "discovery", "election", "protocol", "transport"))
# Verdicts and culprits are those of hangs, which these files are about.
OF_HANGS = {"verdict": r"hang|coordinator_status", "culprit": r"hang"}
OLD = {
    "successor": ("next_leader", EVERYWHERE),
    "successors": ("next_leaders", EVERYWHERE),
    "candidacy": ("candidate", EVERYWHERE),
    "electorate": ("voter_set", EVERYWHERE),
    "tally": ("quorum_tracker", EVERYWHERE),
    "allegiance": ("voter", EVERYWHERE),
    "testimony": ("voter_state", EVERYWHERE),
    "certificate": ("witnessed_death", RENDEZVOUS),
    "promise": ("vote", RENDEZVOUS),
    "promises": ("votes", RENDEZVOUS),
    "promised": ("voted", RENDEZVOUS),
    "mandate": ("leadership, leader_lease", EVERYWHERE),
    "office": ("elected", RENDEZVOUS),
    "testify": ("note_voter_state", RENDEZVOUS),
    "lend": ("grant", RENDEZVOUS),
    "lends": ("grants", RENDEZVOUS),
    "lent": ("granted", RENDEZVOUS),
    "door": ("peer_port", RENDEZVOUS),
    "doors": ("peer_ports", RENDEZVOUS),
    "looks_round": ("probes", RENDEZVOUS),
    "announcement": ("gossip", RENDEZVOUS),
    "announce": ("gossip", COORDINATION),
    "announces": ("gossips", COORDINATION),
    "announced": ("gossiped", COORDINATION),
    "announcer": ("gossip_sender", RENDEZVOUS),
    "rival": ("duplicate_job", RENDEZVOUS),
    "rebuilding": ("recovery", EVERYWHERE),
    "carried": ("transferred", RENDEZVOUS),
    "handover": ("leadership_transfer", RENDEZVOUS),
    "verdict": ("job_result", RENDEZVOUS),
    "standing": ("member_state", RENDEZVOUS),
    "seat": ("slot", RENDEZVOUS),
    "seats": ("slots", RENDEZVOUS),
    "seated": ("in_slot", RENDEZVOUS),
    "farewell": ("death_notice", ("src/process/", "cli/")),
    "sweep": ("kill_ladder", RENDEZVOUS),
    "narrator": ("event_log", EVERYWHERE),
    "end_gate": ("worker_barrier", EVERYWHERE),
    "order_desk": ("control_api", EVERYWHERE),
    "culprit": ("root_cause", ("cli/", "src/")),
    "kept_out": ("quarantined", EVERYWHERE),
    "keep_out": ("quarantine", EVERYWHERE),
    "excluded": ("evicted", RENDEZVOUS),
    "exclude": ("evict", RENDEZVOUS),
    "exclusion": ("eviction", RENDEZVOUS),
    "meeting": ("rendezvous, discovery", EVERYWHERE),
    "unfit": ("unhealthy", EVERYWHERE),
    "blame": ("charge", RENDEZVOUS),
    "blamed": ("charged", RENDEZVOUS),
    "blames": ("charges", RENDEZVOUS),
}
# Functions called so do not say what they are about: look_for_files, take_bytes, tell_status.
VAGUE = re.compile(r"^ {2,}(?!return\b)[\w:<>,&*\[\] ]+[ &*]((?:look|tell|told|take|say)s?)\(", re.MULTILINE)
# {(old word, folder): how many names, in all its files}
LEFT = {
    ("verdict", "rendezvous/protocol"): 2,
}


def renames():
    """scripts/renames, which knows what a name is."""
    loader = importlib.machinery.SourceFileLoader("renames", str(ROOT / "scripts/renames"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("renames", loader))
    loader.exec_module(module)
    return module


def has_part(name, parts):
    words = "_".join(part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name))
    return f"_{parts}_" in f"_{words}_"


def count(root):
    """{(old word, folder): how many names have it}, and {the same: which}. Names of test cases are texts."""
    token = renames().TOKEN
    found, examples = collections.Counter(), {}
    for top in ("cli", "health", "rendezvous", "src"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cpp"):
                continue
            path = file.relative_to(root).as_posix()
            folder = file.parent.relative_to(root).as_posix()
            names = collections.Counter(match["word"] for match in token.finditer(file.read_text()) if match["word"])
            names[file.stem] += 1
            for name, times in names.items():
                for old, (_, where) in OLD.items():
                    if path.startswith(where) and has_part(name, old) and not re.search(OF_HANGS.get(old, "^$"), path):
                        found[old, folder] += times
                        examples.setdefault((old, folder), []).append(f"{path}: {name}")
    return found, examples


def check(root, left):
    found, examples = count(root)
    wrong = []
    for key in sorted(found.keys() | left.keys()):
        old, folder = key
        if found[key] > left.get(key, 0):
            wrong.append(f"{', '.join(examples[key])}: the word for {old} is {OLD[old][0]} ({found[key]} names in {folder}, "
                         f"{left.get(key, 0)} are left)")
        elif found[key] < left.get(key, 0):
            wrong.append(f"tests/structure/words.py: LEFT[{old!r}, {folder!r}] is {found[key]} now")
    return wrong


def vague(root):
    """Functions of headers that are called only look, tell, take or say, as "path: name"."""
    headers = sorted(path for top in ("cli", "health", "rendezvous", "src") for path in (root / top).rglob("*.h"))
    return [f"{path.relative_to(root).as_posix()}: {name}" for path in headers if "_test_support" not in path.name
            for name in VAGUE.findall(path.read_text())]
