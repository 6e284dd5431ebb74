#!/usr/bin/env python3
"""Every mistake that is planted in a program is found, by a seed that without the mistake breaks nothing.

    mutants.py PROGRAM PROGRAM_WITH_MISTAKES [--write]

Each mistake is played by the seed that seeds_of_mistakes.txt has for it. A change of the product may have made another
run of that seed: then the mistake is searched for in five times as many seeds, from 1 on, and the one that finds it is
told; --write puts it into the file. tests/mistakes.py has the mistakes.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import mistakes  # noqa: E402

SEEDS = HERE / "seeds_of_mistakes.txt"
SEARCHED = 5  # times as many seeds as the known one needs
FEWEST_SEARCHED = 2_000  # also where the first seeds know it, or none does


def read_seeds():
    rows = (line.split() for line in SEEDS.read_text().splitlines() if not line.startswith("#"))
    return {(program, letter): int(seed) for program, letter, seed in rows}


def write_seeds(seeds):
    head = [line for line in SEEDS.read_text().splitlines() if line.startswith("#")]
    rows = [f"{program} {letter} {seed}" for (program, letter), seed in sorted(seeds.items())]
    SEEDS.write_text("\n".join(head + rows) + "\n")


def play(program, *arguments):
    """The seed of the first run that breaks something, or None, and the line that says what."""
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return None, ""
    found = re.match(r"seed (\d+): .*", result.stdout)
    if result.returncode != 1 or not found:
        sys.exit(f"{' '.join(map(str, result.args))}: status {result.returncode}\n{result.stdout}{result.stderr}")
    return int(found[1]), found[0]


def main():
    program, with_mistakes, *rest = sys.argv[1:]
    name = pathlib.Path(with_mistakes).name
    seeds = read_seeds()
    for of, letter in seeds:
        if of not in mistakes.MISTAKES or all(mistake.letter != letter for mistake in mistakes.MISTAKES[of]):
            sys.exit(f"{SEEDS}: there is no mistake {letter} of {of}")
    failed = False
    for letter in dict.fromkeys(mistake.letter for mistake in mistakes.MISTAKES[name]):
        known = seeds.get((name, letter))
        seed, what = play(with_mistakes, "--mutant", letter, "--from", known, "--count", 1) if known else (None, "")
        if seed is None:
            most = max(FEWEST_SEARCHED, SEARCHED * (known or 0))
            seed, what = play(with_mistakes, "--mutant", letter, "--from", 1, "--count", most)
            if seed is None:
                print(f"mutant {letter}: NOT FOUND in {most} seeds")
                failed = True
                continue
            print(f"mutant {letter}: seed {known} finds it no more, and {seed} does: mutants.py --write keeps that one")
            seeds[name, letter] = seed
        print(f"mutant {letter}: {what}")
        clean, what = play(program, "--from", seed, "--count", 1)
        if clean is not None:
            print(f"mutant {letter}: also without it: {what}")
            failed = True
    if rest == ["--write"]:
        write_seeds(seeds)
    return failed


if __name__ == "__main__":
    sys.exit(main())
