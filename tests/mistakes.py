#!/usr/bin/env python3
"""Mistakes that the simulator and the fuzzer must find, planted while those programs are built.

    mistakes.py PROGRAM --files              which files of the product PROGRAM has with mistakes, one a line
    mistakes.py PROGRAM FILE ROOT OUT        writes OUT: ROOT/FILE with the mistakes of PROGRAM that concern it
    mistakes.py simulate_mutants --list      the letters and what they stand for

The product's own sources know nothing of them. A mistake replaces a text that stands exactly once in its file; a text
that has gone is an error of the build, so that no mistake can vanish in silence.
"""

import pathlib
import sys
from typing import NamedTuple


class Mistake(NamedTuple):
    letter: str  # simulate_mutants --mutant; empty: always there
    meaning: str
    file: str
    text: str
    becomes: str


COORDINATOR = "rendezvous/coordinator/"
AGENT = "rendezvous/agent/"
LOCATE = "rendezvous/locate/"

MISTAKES = {
    "simulate_mutants": [
        Mistake("a", "an agent of an older round is let in with its workers", COORDINATOR + "admission.cpp",
                "if (has_processes && !applicant.comes_back",
                "if (!mutant::is('a') && has_processes && !applicant.comes_back"),
        Mistake("b", "failures on two nodes are charged twice", COORDINATOR + "round_stop.cpp",
                "  if (!budgets.restarts.spend()) return Verdict{.outcome = Outcome::kFailed};\n",
                "  if (!budgets.restarts.spend()) return Verdict{.outcome = Outcome::kFailed};\n"
                "  const auto of_another_node = [&](const auto& failure) {\n"
                "    return failure.node_rank != stop.failures.front().node_rank;\n"
                "  };\n"
                "  if (mutant::is('b') && std::ranges::any_of(stop.failures, of_another_node)) (void)budgets.restarts.spend();\n"),
        Mistake("c", "an agent whose workers are stale joins without ending them", AGENT + "lifecycle.cpp",
                "  if (message.why == Rejected::Why::kRoundWentOn) {\n",
                "  if (message.why == Rejected::Why::kRoundWentOn) {\n"
                "    if (mutant::is('c')) state_ = State::kIdle;\n"),
        Mistake("c", "", AGENT + "lifecycle.cpp",
                "  if (!needs_lease()) return;\n  if (state_ == State::kIdle) return;\n",
                "  if (!needs_lease()) return;\n"
                "  if (mutant::is('c')) state_ = State::kIdle;\n"
                "  if (state_ == State::kIdle) return;\n"),
        Mistake("d", "a node that stood by is promoted twice", COORDINATOR + "round_seats.cpp",
                "    chosen_candidates.push_back(candidates[index]);\n",
                "    chosen_candidates.push_back(candidates[index]);\n"
                "    if (!mutant::is('d') || last.empty() || candidates[index].seat) continue;\n"
                "    chosen.push_back(ready[index]);\n"
                "    chosen_candidates.push_back(candidates[index]);\n"),
        Mistake("e", "a node that has heard the verdict does not bring it to the next coordinator", AGENT + "lifecycle.cpp",
                "  if (!dismissed_) facts.verdict = verdict_;\n",
                "  if (!dismissed_ && !mutant::is('e')) facts.verdict = verdict_;\n"),
        Mistake("f", "the lease is longer than the loss timeout", AGENT + "link.cpp",
                "const std::int64_t lease_ms = lease_.lease_ms();",
                "const std::int64_t lease_ms = mutant::is('f') ? 2 * lease_.loss_timeout_ms : lease_.lease_ms();"),
        Mistake("g", "a worker's failure is charged before a silent node is known to be lost",
                COORDINATOR + "coordinator.cpp",
                "if (roster_.count(Standing::kStopping) + roster_.count(Standing::kLeaving) == 0) conclude_round(out);",
                "if (roster_.count(Standing::kStopping) + roster_.count(Standing::kLeaving) == 0 ||\n"
                "          (mutant::is('g') && !stopping_.failures.empty())) conclude_round(out);"),
        Mistake("h", "a claim is taken over while its holder may still act", LOCATE + "claim.cpp",
                "view.unchanged_ms >= good_for_ms)",
                "view.unchanged_ms >= (mutant::is('h') ? good_for_ms / 2 : good_for_ms))"),
    ],
    "store_fuzzer_planted": [
        Mistake("", "a length is taken for one of 32 bits", "rendezvous/store/codec.cpp",
                "  const std::uint64_t length = *announced;\n",
                "  const std::uint64_t length = static_cast<std::uint32_t>(*announced);\n"),
    ],
}


def planted(program, file, source):
    for mistake in MISTAKES[program]:
        if mistake.file != file:
            continue
        if source.count(mistake.text) != 1:
            sys.exit(f"tests/mistakes.py: {file} has {source.count(mistake.text)} times the text that a mistake of "
                     f"{program} replaces, and not once; write the mistake anew:\n{mistake.text}")
        source = source.replace(mistake.text, mistake.becomes)
    # Messages of the compiler name the file in which the code is to be repaired.
    seam = '#include "tests/simulation/mutant.h"\n' if "mutant::" in source else ""
    return f'{seam}#line 1 "{file}"\n{source}'


def main():
    program, *rest = sys.argv[1:]
    if rest == ["--files"]:
        print("\n".join(dict.fromkeys(mistake.file for mistake in MISTAKES[program])))
    elif rest == ["--list"]:
        print("\n".join(f"{mistake.letter} {mistake.meaning}" for mistake in MISTAKES[program] if mistake.meaning))
    else:
        file, root, out = rest
        pathlib.Path(out).write_text(planted(program, file, (pathlib.Path(root) / file).read_text()))


if __name__ == "__main__":
    main()
