#!/usr/bin/env python3
"""Mistakes that the simulator, the model of elections, the fuzzer and the gate of the test suite must find, planted
while the programs that have them are built.

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
    letter: str  # of --mutant; a word for elastic-run-planted; empty: always there
    meaning: str
    file: str
    text: str
    becomes: str


COORDINATOR = "rendezvous/coordinator/"
AGENT = "rendezvous/agent/"
DISCOVERY = "rendezvous/discovery/"
ELECTION = "rendezvous/election/"
HANG = "health/hang/"
REPORT = "src/report/"

# What a source with a mistake includes, by what the mistake says.
SEAMS = {"mutant::": "tests/simulation/mutant.h", "planted::": "tests/planted/planted.h"}

MISTAKES = {
    "simulate_mutants": [
        Mistake("a", "an agent of an older round is let in with its workers", COORDINATOR + "admission.cpp",
                "if (has_processes && !applicant.comes_back",
                "if (!mutant::is('a') && has_processes && !applicant.comes_back"),
        Mistake("b", "failures on two nodes are charged twice", COORDINATOR + "round_stop.cpp",
                "  if (!budgets.restarts.spend()) return JobResult{.outcome = Outcome::kFailed};\n",
                "  if (!budgets.restarts.spend()) return JobResult{.outcome = Outcome::kFailed};\n"
                "  const auto of_another_node = [&](const auto& failure) {\n"
                "    return failure.node_rank != stop.failures.front().node_rank;\n"
                "  };\n"
                "  if (mutant::is('b') && std::ranges::any_of(stop.failures, of_another_node)) (void)budgets.restarts.spend();\n"),
        Mistake("c", "an agent whose workers are stale joins without ending them", AGENT + "lifecycle_ending.cpp",
                "  if (message.why == Rejected::Why::kRoundWentOn) {\n",
                "  if (message.why == Rejected::Why::kRoundWentOn) {\n"
                "    if (mutant::is('c')) state_ = State::kIdle;\n"
                "    if (mutant::is('c')) return;\n"),
        Mistake("c", "", AGENT + "lifecycle.cpp",
                "  if (!needs_lease()) return;\n",
                "  if (!needs_lease()) return;\n"
                "  if (mutant::is('c')) state_ = State::kIdle;\n"
                "  if (mutant::is('c')) return;\n"),
        Mistake("d", "a node on standby is promoted twice", COORDINATOR + "round_slots.cpp",
                "    chosen.push_back(eligible[index]);\n",
                "    chosen.push_back(eligible[index]);\n"
                "    if (!mutant::is('d') || last.empty() || eligible[index].slot) continue;\n"
                "    nodes.push_back(ready[index]);\n"
                "    chosen.push_back(eligible[index]);\n"),
        Mistake("e", "a node that has heard the job result does not bring it to the next coordinator", AGENT + "lifecycle.cpp",
                "  if (!dismissed_) facts.job_result = job_result_;\n",
                "  if (!dismissed_ && !mutant::is('e')) facts.job_result = job_result_;\n"),
        Mistake("f", "the lease is longer than the loss timeout", AGENT + "link.cpp",
                "const std::int64_t lease_ms = lease_.lease_ms();",
                "const std::int64_t lease_ms = mutant::is('f') ? 2 * lease_.loss_timeout_ms : lease_.lease_ms();"),
        Mistake("g", "a worker's failure is charged before a silent node is known to be lost",
                COORDINATOR + "coordinator.cpp",
                "if (roster_.count(MemberState::kStopping) + roster_.count(MemberState::kLeaving) == 0) conclude_round(out);",
                "if (roster_.count(MemberState::kStopping) + roster_.count(MemberState::kLeaving) == 0 ||\n"
                "          (mutant::is('g') && !round_.stopping().failures.empty())) conclude_round(out);"),
        Mistake("h", "an entry with a silent place is replaced", DISCOVERY + "entry_search.cpp",
                "how == Tried::kRefused || how == Tried::kStranger",
                "how == Tried::kRefused || how == Tried::kStranger || (mutant::is('h') && how == Tried::kSilent)"),
        Mistake("i", "a lease lasts longer than the authority", ELECTION + "leader_lease.cpp",
                "  return granted_ms;",
                "  return mutant::is('i') ? times_.lease_ms() : granted_ms;"),
        Mistake("j", "a round runs before a quorum has heard of it", ELECTION + "leader_lease.cpp",
                "{ return b.quorum_tracker.has_heard(b.round.tie_breaker); }",
                "{ return b.quorum_tracker.has_heard(b.round.tie_breaker) || mutant::is('j'); }"),
        Mistake("k", "nobody waits for the leases of a coordinator whose death is proven", ELECTION + "voter.cpp",
                "  if (!released_early_ms_) return kKillMs;",
                "  if (!released_early_ms_ || mutant::is('k')) return kKillMs;"),
        Mistake("l", "a coordinator whose leader lease is over goes on", ELECTION + "leader.cpp",
                "  if (lease_ && !lease_->authority().holds(now_ms + times_.least_ms()))\n    return",
                "  if (lease_ && !lease_->authority().holds(now_ms + times_.least_ms()) && !mutant::is('l'))\n    return"),
        Mistake("m", "a node that is not in the next round is not told of it", ELECTION + "leader.cpp",
                "  if (!begun.before.empty()) next_round_ =",
                "  if (!begun.before.empty() && !mutant::is('m')) next_round_ ="),
        Mistake("n", "a coordinator that has transferred its leadership goes on deciding", COORDINATOR + "coordinator_ending.cpp",
                "    out.push_back(Drop{*node.session, why});\n  }\n  state_ = State::kEnded;\n",
                "    if (mutant::is('n') && transfers_leadership && node.agent == config_.own_agent) continue;\n"
                "    out.push_back(Drop{*node.session, why});\n  }\n"
                "  if (!mutant::is('n') || !transfers_leadership) state_ = State::kEnded;\n"),
        Mistake("o", "a coordinator that returns without its memory forms a round at once",
                COORDINATOR + "coordinator_round.cpp",
                "const bool is_first = settings_.is_most(decision.size) && !identity_.met_others();",
                "const bool is_first = (settings_.is_most(decision.size) && !identity_.met_others()) || mutant::is('o');"),
        Mistake("p", "the next leader does not know the size of the first round", COORDINATOR + "transferred_state.cpp",
                "  if (state->first_size != 0) {\n",
                "  if (state->first_size != 0 && !mutant::is('p')) {\n"),
        Mistake("q", "the next leader does not know which hosts are evicted", COORDINATOR + "transferred_state.cpp",
                "    parts.check.evict_host(host.name,",
                "    if (!mutant::is('q')) parts.check.evict_host(host.name,"),
        Mistake("r", "a leader of a lower term overwrites the entry of a later one", DISCOVERY + "entry.cpp",
                "there->term <= own.term", "mutant::is('r') || there->term <= own.term"),
        Mistake("s", "a node that does not answer is at fault for a hang", HANG + "hang_rules.cpp",
                "    if (!node.lost.empty()) {\n",
                "    if (!node.lost.empty() || (mutant::is('s') && !node.has_answered)) {\n"),
        Mistake("t", "the verdict on a hang does not wait for evidence", COORDINATOR + "hang_desk.cpp",
                'counted(static_cast<int>(awaited_), "node"))});\n  if (awaited_ == 0) handle',
                'counted(static_cast<int>(awaited_), "node"))});\n'
                "  if (awaited_ == 0 || mutant::is('t')) handle"),
        Mistake("u", "evidence that a coordinator was collecting is not collected by the one that takes over", HANG + "hang_watch.cpp",
                "      state_ = HangState::kConfirmed;\n      const Limit known",
                "      state_ = mutant::is('u') ? HangState::kJudged : HangState::kConfirmed;\n"
                "      if (mutant::is('u')) break;\n"
                "      const Limit known"),
        Mistake("v", "nobody is told that a hang is over", COORDINATOR + "hang_desk.cpp",
                "  tell_all(HangOver{.round = *round_, .why = HangOver::Why::kRecovered",
                "  if (!mutant::is('v')) tell_all(HangOver{.round = *round_, .why = HangOver::Why::kRecovered"),
    ],
    "election_mutants": [
        Mistake("a", "a coordinator counts a vote from the acknowledgement", "tests/election/coordinators.cpp",
                "  Coordinator& c = *coordinators_[index];\n"
                "  if (!find(index, i, session)) return;\n"
                "  if (c.candidate)",
                "  Coordinator& c = *coordinators_[index];\n"
                "  if (!find(index, i, session)) return;\n"
                "  if (mutant::is('a')) token_ms = ms(c.machine);\n"
                "  if (c.candidate)"),
        Mistake("d", "an idle node witnesses a death, too", ELECTION + "voter.cpp",
                "  if (circumstances.holds_lease && circumstances.runs_workers) {",
                "  const bool ran = circumstances.runs_workers || mutant::is('d');\n"
                "  if (circumstances.holds_lease && ran) {"),
        Mistake("c", "every proven death counts as witnessed", ELECTION + "voter.cpp",
                "if (circumstances.holds_lease && ran) {",
                "if (mutant::is('c') || (circumstances.holds_lease && ran)) {"),
        Mistake("e", "with a witnessed death any half is enough", ELECTION + "voter_set.cpp",
                "  tie_breaker_ = TieBreaker::node(first);",
                "  tie_breaker_ = mutant::is('e') ? TieBreaker::coordinator() : TieBreaker::node(first);"),
        Mistake("g", "a prepared round is the only one whose quorum a candidate needs", ELECTION + "candidate.cpp",
                "  if (ran != last.rend()) last.erase(last.begin(), std::prev(ran.base()));",
                "  if (ran != last.rend()) last.erase(last.begin(), std::prev(ran.base()));\n"
                "  if (mutant::is('g')) last.erase(last.begin(), last.end() - 1);"),
        Mistake("h", "nobody waits for the leases of a coordinator whose death is proven", ELECTION + "voter.cpp",
                "  if (!released_early_ms_) return kKillMs;",
                "  if (!released_early_ms_ || mutant::is('h')) return kKillMs;"),
        Mistake("i", "a candidate is its own tie-breaker", ELECTION + "candidate.cpp",
                "round.tie_breaker ? TieBreaker::node(*round.tie_breaker) : TieBreaker::nobody());",
                "mutant::is('i') ? TieBreaker::coordinator() : round.tie_breaker\n"
                "                 ? TieBreaker::node(*round.tie_breaker) : TieBreaker::nobody());"),
        Mistake("j", "half of a round, rounded down, elects", ELECTION + "candidate.cpp",
                "    return voter_set_of(round, votes).is_quorum(ranks);",
                "    if (mutant::is('j')) return static_cast<int>(ranks.size()) >= round.node_count / 2;\n"
                "    return voter_set_of(round, votes).is_quorum(ranks);"),
        Mistake("k", "a lease lasts longer than the authority", ELECTION + "leader_lease.cpp",
                "  return granted_ms;",
                "  return mutant::is('k') ? times_.lease_ms() : granted_ms;"),
        Mistake("l", "a round runs before a quorum has heard of it", ELECTION + "leader_lease.cpp",
                "{ return b.quorum_tracker.has_heard(b.round.tie_breaker); }",
                "{ return b.quorum_tracker.has_heard(b.round.tie_breaker) || mutant::is('l'); }"),
        Mistake("m", "a candidate takes the round before the last one for the last", ELECTION + "candidate.cpp",
                "  // What has run makes",
                "  if (mutant::is('m') && last.size() > 1) last.pop_back();\n"
                "  // What has run makes"),
        Mistake("n", "a member that died after its vote had ended counts as a voter", ELECTION + "leader_lease.cpp",
                "  if (voted_until_ms(agent) <= now_ms) return false;",
                "  if (voted_until_ms(agent) <= now_ms && !mutant::is('n')) return false;"),
        Mistake("p", "an agent votes for another while its vote holds", ELECTION + "voter.cpp",
                "  return coordinator == voted_for_ || is_released(now_ms);",
                "  return coordinator == voted_for_ || is_released(now_ms) || mutant::is('p');"),
        Mistake("q", "an agent goes back to a coordinator of an earlier term", ELECTION + "voter.cpp",
                "  acknowledged_ = coordinator;",
                "  if (!mutant::is('q')) acknowledged_ = coordinator;"),
        Mistake("u", "who has heard of a round speaks against its having run", ELECTION + "candidate.cpp",
                "if (known && known->rank && counts(vote->voter_state)) ranks",
                "if (known && known->rank && (counts(vote->voter_state) || mutant::is('u'))) ranks"),
        Mistake("v", "somebody is elected on a first round that never ran", ELECTION + "candidate.cpp",
                "  if (last.size() == 1 && !has_run(last.front())) return {};",
                "  if (last.size() == 1 && !has_run(last.front()) && !mutant::is('v')) return {};"),
        Mistake("b", "a node whose workers have ended with its lease witnesses a death", "tests/election/agents.cpp",
                "  at.runs_workers = node.runs && node.known.rounds().back().round == *node.runs;\n",
                "  at.runs_workers = node.runs && node.known.rounds().back().round == *node.runs;\n"
                "  if (mutant::is('b') && lasts_.contains(i) && !node.known.rounds().empty()) {\n"
                "    at.holds_lease = true;\n"
                "    at.runs_workers = node.known.rounds().back().round.membership == lasts_[i];\n"
                "  }\n"),
        Mistake("r", "a candidate needs no vote of a member that it knows to be dead", "tests/election/faults.cpp",
                "          if (c.is_dead || c.is_closed || !c.lease) return;\n",
                "          if (mutant::is('r') && c.candidate && c.node && !c.is_dead && !c.is_closed) {\n"
                "            VoterState known = {.rounds = voter_state_of(i).rounds};\n"
                "            const auto& own = nodes_[*c.node].known.rounds();\n"
                "            std::erase_if(known.rounds, [&](const KnownRound& each) {\n"
                "              return std::ranges::find(own, each.round, &KnownRound::round) == own.end();\n"
                "            });\n"
                "            c.candidate->votes(agent(i), known, ms(c.machine), ms(c.machine));\n"
                "            c.candidate->acknowledges(agent(i), ms(c.machine));\n"
                "          }\n"
                "          if (c.is_dead || c.is_closed || !c.lease) return;\n"),
        Mistake("s", "a vote lasts from the sending of the keep-alive, not from the receipt of KEPT",
                "tests/election/agents.cpp",
                "  if (!node.voter.lease_granted(coordinators_[index]->id, ms(i))) return;\n",
                "  const bool counts_from_sending = mutant::is('s') && granted_ms > 0;\n"
                "  if (!node.voter.lease_granted(coordinators_[index]->id, counts_from_sending ? sent_ms : ms(i))) return;\n"),
        Mistake("t", "a coordinator that returns empty begins the job instead of standing for election",
                "tests/election/faults.cpp",
                "    open(nodes_.size(), next_term(static_cast<protocol::Term>(random_.number(0, 40))));\n",
                "    Coordinator& c = open(nodes_.size(), next_term(static_cast<protocol::Term>(random_.number(0, 40))));\n"
                "    if (mutant::is('t')) {\n"
                "      c.lease.emplace(kTimes, own(c));\n"
                "      c.candidate.reset();\n"
                "    }\n"),
        Mistake("w", "an agent votes for two candidates of one term", ELECTION + "voter.cpp",
                "  const bool is_same_start = coordinator.incarnation == acknowledged_.incarnation;\n",
                "  if (mutant::is('w') && coordinator.term == voted_for_.term) return true;\n"
                "  const bool is_same_start = coordinator.incarnation == acknowledged_.incarnation;\n"),
        Mistake("o", "a coordinator that has transferred its leadership goes on", "tests/election/coordinators.cpp",
                "  c.is_closed = true;\n",
                "  c.is_closed = !mutant::is('o');\n"),
    ],
    "hangs_mutants": [
        Mistake("a", "a node that does not answer is at fault", HANG + "hang_rules.cpp",
                "    if (!node.lost.empty()) {\n",
                "    if (!node.lost.empty() || (mutant::is('a') && !node.has_answered)) {\n"),
        Mistake("b", "a rank of which nothing is known in one group is at fault in another", HANG + "wait_walk.cpp",
                "!waits_[rank] && !is_unknown_[rank])",
                "!waits_[rank] && (!is_unknown_[rank] || mutant::is('b')))"),
        Mistake("c", "by RAS the last rank that is known is at fault", HANG + "wait_walk.cpp",
                "entry.enqueued > lowest || !is_all;",
                "entry.enqueued > lowest || (!is_all && !mutant::is('c'));"),
        Mistake("d", "a rank that waits, but for less than others, is at fault", HANG + "wait_walk.cpp",
                "      waits_[static_cast<std::size_t>(entry.rank)] = true;\n",
                "      if (!mutant::is('d')) waits_[static_cast<std::size_t>(entry.rank)] = true;\n"),
        Mistake("e", "fewer than half of the ranks may accuse others", HANG + "hang_rules.cpp",
                "  if (outliers.empty() || 2 * waiting.size() <= picture.ranks().size()) return {};\n",
                "  if (outliers.empty() || (!mutant::is('e') && 2 * waiting.size() <= picture.ranks().size())) return {};\n"),
        Mistake("f", "one rank at its storage is at fault while others are not seen", HANG + "hang_rules.cpp",
                "  if (is_storage && known != picture.ranks().size()) return {};\n",
                "  if (!mutant::is('f') && is_storage && known != picture.ranks().size()) return {};\n"),
        Mistake("g", "a rank that waits where nobody has counted is at fault", HANG + "hang_rules.cpp",
                "    if (!picture.rank(culprit.rank).is_in(Doing::kCollective)) all",
                "    if (mutant::is('g') || !picture.rank(culprit.rank).is_in(Doing::kCollective)) all"),
        Mistake("h", "a circle of ranks that wait is not seen", HANG + "wait_walk.cpp",
                "        if (low[node] == index[node]) close(node);\n",
                "        if (low[node] == index[node] || mutant::is('h')) close(node);\n"),
        Mistake("i", "a wait of one node for network storage is its fault while others are not seen", HANG + "hang_rules.cpp",
                "    if (is_network_storage(known.facts->wchan) && !picture.without_facts().empty()) return;\n",
                "    if (!mutant::is('i') && is_network_storage(known.facts->wchan) && !picture.without_facts().empty()) return;\n"),
        Mistake("j", "different collectives are told though not all ranks are seen", HANG + "hang_rules.cpp",
                "if (picture.waits().has_facts || picture.known_stacks() != picture.ranks().size()) return {};\n",
                "if (picture.waits().has_facts || (!mutant::is('j') && picture.known_stacks() != picture.ranks().size()))\n"
                "    return {};\n"),
        Mistake("j", "", HANG + "hang_rules.cpp",
                "    if (!rank.is_in(Doing::kCollective)) return {};\n",
                "    if (mutant::is('j') && rank.is_in(Doing::kUnknown)) continue;\n"
                "    if (!rank.is_in(Doing::kCollective)) return {};\n"),
        Mistake("k", "disk activity is progress", HANG + "hang_watch.cpp",
                "state_ == HangState::kSuspect) is_stretched_ = true;\n",
                "state_ == HangState::kSuspect) is_stretched_ = true;\n"
                "  if (mutant::is('k')) last_ms_ = now_ms_;\n"),
        Mistake("l", "disk activity does not stretch the limit", HANG + "hang_watch.cpp",
                "  if (is_stretched_) limit",
                "  if (is_stretched_ && !mutant::is('l')) limit"),
        Mistake("m", "the longest gap itself is the limit", HANG + "learned_limits.cpp",
                "known.longest_ms * settings.factor",
                "known.longest_ms * (mutant::is('m') ? 1 : settings.factor)"),
        Mistake("n", "an alarm is not withdrawn", HANG + "hang_watch.cpp",
                "  } else if (is_collecting || has_continued_) {\n",
                "  } else if (!mutant::is('n') && (is_collecting || has_continued_)) {\n"),
        Mistake("o", "without a beat the round's beginning counts as one", HANG + "hang_watch.cpp",
                "  } else if (settings_.first_timeout_ms) {\n",
                "  } else if (settings_.first_timeout_ms || mutant::is('o')) {\n"
                "    if (mutant::is('o')) return learned_.limit(phase_, settings_);\n"),
    ],
    "elastic-run-planted": [
        Mistake("exit_not_told", "the coordinator does not hear that a worker has failed", AGENT + "lifecycle.cpp",
                "  out.push_back(ToCoordinator{WorkerFailed{round_.number(), *round_.cause()}});\n",
                "  if (planted::is(\"exit_not_told\")) return;\n"
                "  out.push_back(ToCoordinator{WorkerFailed{round_.number(), *round_.cause()}});\n"),
        Mistake("lease_not_kept", "workers live on when their lease is over", AGENT + "lifecycle.cpp",
                "  if (dismissed_) return false;\n  // Nobody can take",
                "  if (dismissed_ || planted::is(\"lease_not_kept\")) return false;\n  // Nobody can take"),
        Mistake("store_used_again", "a round has the store of the round before", "rendezvous/store/store_host.cpp",
                "void StoreHost::close() {\n",
                "void StoreHost::close() {\n  if (planted::is(\"store_used_again\")) return;\n"),
        Mistake("store_used_again", "", "rendezvous/store/store_host.cpp",
                "  Result<std::uint16_t> port = settings_.port;\n",
                "  if (planted::is(\"store_used_again\") && server_)\n"
                "    return protocol::StoreEndpoint{settings_.master_addr, server_->port()};\n"
                "  Result<std::uint16_t> port = settings_.port;\n"),
        Mistake("orphan", "a process whose parent has ended is not adopted, and survives", "src/process/guardian.cpp",
                "ELASTIC_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);",
                "ELASTIC_CHECK(planted::is(\"orphan\") || prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);"),
        Mistake("orphan", "", "src/process/tree.cpp",
                "ELASTIC_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);",
                "ELASTIC_CHECK(planted::is(\"orphan\") || prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);"),
        Mistake("restart_not_counted", "a worker's failure is not charged to --max-restarts",
                COORDINATOR + "budget.cpp",
                "  ++used_;\n",
                "  if (!planted::is(\"restart_not_counted\")) ++used_;\n"),
        Mistake("cause_not_printed", "the report on the screen does not say what failed first", REPORT + "summary.cpp",
                "report.first_failed_elsewhere) return last;",
                "report.first_failed_elsewhere || planted::is(\"cause_not_printed\"))\n    return last;"),
        Mistake("cause_not_printed", "", REPORT + "short_report.cpp",
                "Outcome::kStopped || first == nullptr)",
                "Outcome::kStopped || first == nullptr || planted::is(\"cause_not_printed\"))"),
        Mistake("unfit_node_let_in", "a node that has failed the check trains", COORDINATOR + "coordinator_check.cpp",
                "  for (const health::CheckPlan::Unhealthy& found : unhealthy) leave_out(found, out);\n",
                "  for (const health::CheckPlan::Unhealthy& found : unhealthy)\n"
                "    if (!planted::is(\"unfit_node_let_in\")) leave_out(found, out);\n"),
        Mistake("status_0", "elastic-run ends with status 0 though the job has failed", "cli/run/final_status.cpp",
                "  if (job.job_result.outcome == JobResult::Outcome::kSucceeded) return 0;\n",
                "  if (planted::is(\"status_0\")) return 0;\n"
                "  if (job.job_result.outcome == JobResult::Outcome::kSucceeded) return 0;\n"),
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
    seams = "".join(f'#include "{header}"\n' for word, header in SEAMS.items() if word in source)
    return f'{seams}#line 1 "{file}"\n{source}'


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
