"""elastic-run replays what the simulator has recorded, and decides the same.

recordings.py SIMULATE ELASTIC_RUN
"""

import json
import pathlib
import subprocess
import sys
import tempfile

# Seeds with a coordinator that dies and is started again, with two jobs, with a check before training, and others.
SEEDS = (2, 3, 9, 12, 68, 342, 571, 775, 985, 2012, 8121, 41450)
killed_files = set()


def messages_in(sent):
    """(session, message) for each receiver."""
    return [(session, {name: value for name, value in each.items() if name != "to"})
            for each in sent if "message" in each for session in each["to"]]


def replayed(elastic_run, file):
    """The messages of the replayed coordinator, and elastic-run's status and stderr."""
    done = subprocess.run([elastic_run, "--replay", file], capture_output=True, text=True, check=False)
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    return [told for step in steps for told in messages_in(step.get("sent", []))], done.returncode, done.stderr


def recorded(simulate, seed, folder):
    """{file: the messages of its coordinator}; killed_files gets the files whose coordinator was killed."""
    done = subprocess.run([simulate, "--seed", str(seed), "--record", folder / f"{seed}.jsonl"],
                          capture_output=True, text=True, check=True)
    told, file = {}, None
    for line in done.stdout.splitlines():
        if line.startswith("    "):
            told[file] = messages_in(json.loads(line))
            continue
        file = pathlib.Path(line.split(": ")[0])
        if line.endswith(", killed"):
            killed_files.add(file)
    return told


def is_alike(file, told, again):
    """Messages to a session that was broken already, or of a process that was killed meanwhile, were not sent."""
    left = iter(again)
    most = file.read_text().count('"session-ended"') + 50 * (file in killed_files)
    return all(what in left for what in told) and len(again) - len(told) <= most


def fail(text):
    print(text)
    sys.exit(1)


def main():
    simulate, elastic_run = sys.argv[1:]
    files = messages = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for seed in SEEDS:
            told = recorded(simulate, seed, folder)
            for file, then in told.items():
                now, status, stderr = replayed(elastic_run, file)
                if status != 0:
                    fail(f"seed {seed}: --replay ends with {status}: {stderr}")
                if not is_alike(file, then, now):
                    fail(f"seed {seed}, {file.name}: the coordinator told\n  " + "\n  ".join(map(str, then)) +
                         "\nand the replayed one\n  " + "\n  ".join(map(str, now)))
                files += 1
                messages += len(then)
        notices_what_is_changed(elastic_run, *max(told.items(), key=lambda entry: len(entry[1])))
    print(f"{files} recordings of {len(SEEDS)} seeds: {messages} messages are told again alike")


def notices_what_is_changed(elastic_run, file, told):
    lines = file.read_text().splitlines(keepends=True)
    changed = next(i for i, line in enumerate(lines) if '"node-joins"' in line)
    file.write_text("".join(lines[:changed] + lines[changed + 1:]))
    now, status, _ = replayed(elastic_run, file)
    if status != 0 or is_alike(file, told, now):
        fail(f"{file.name} without line {changed + 1}, in which a node joins, is told alike")
    lines[changed] = lines[changed].replace('"local_world_size"', '"local_word_size"')
    file.write_text("".join(lines))
    _, status, stderr = replayed(elastic_run, file)
    if status != 2 or f"{file.name}:{changed + 1}: " not in stderr:
        fail(f"line {changed + 1} of {file.name} is wrong, and --replay ends with {status}: {stderr}")


main()
