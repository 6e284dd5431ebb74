#include "tests/simulation/hang_invariants.h"

#include <algorithm>

#include "rendezvous/protocol/hang_parts.h"
#include "src/base/json.h"
#include "src/base/text.h"
#include "tests/simulation/simulation.h"

namespace elastic::simulation {

using namespace protocol;

namespace {

// How long a coordinator waits for evidence at least, by a clock that is 1 % fast.
constexpr Ms kWaitMs = 19'700;

}  // namespace

HangInvariants::Key HangInvariants::key_of(const Node& node, const Stamp& stamp, RoundNumber round,
                                           const Server& server) const {
  return {server.start_number(), node.setup().job, stamp.incarnation, round};
}

void HangInvariants::sent(const Node& node, ConnectionId connection, const Stamp& stamp, const CollectEvidence& message,
                          const Server& server) {
  Collection& collection = collections_[key_of(node, stamp, message.round, server)];
  if (collection.number != message.collection) {
    collection = {message.collection, simulation_.now_ms()};
    ++simulation_.hangs().counts().collections();
  }
  collection.answered[connection] = false;
}

void HangInvariants::answered(ConnectionId connection, const NodeEvidence& message) {
  for (auto& [key, collection] : collections_) {
    const auto asked = collection.answered.find(connection);
    if (asked != collection.answered.end() && collection.number == message.collection) asked->second = true;
  }
}

void HangInvariants::taken(const Server& server, const std::string& job, Incarnation incarnation,
                           const NodeEvidence& message) {
  const auto collection = collections_.find({server.start_number(), job, incarnation, message.round});
  if (collection == collections_.end() || collection->second.number != message.collection) return;
  if (auto facts = decode_facts(message.facts)) collection->second.taken.push_back(*std::move(facts));
}

void HangInvariants::has_read(const Node& node, const CollectEvidence& order, bool hangs, bool is_whole) {
  read_[node.index()] = {order.collection, order.round, hangs, is_whole};
}

void HangInvariants::sent(const Node& node, ConnectionId connection, const Stamp& stamp, const HangTold& message,
                          const Server& server) {
  if (message.what != HangTold::What::kVerdict) return;
  const Key key = key_of(node, stamp, message.round, server);
  if (std::exchange(told_[{key, connection}], true))
    simulation_.invariants().broken("a hang is told once", format("node {}, round {}", node.index(), message.round));
  const auto collection = collections_.find(key);
  if (collection == collections_.end())
    simulation_.invariants().broken("a verdict follows from evidence",
                                    format("round {}: none was asked for", message.round));
  const bool is_first = std::ranges::none_of(told_, [&](const auto& told) {
    return told.second && told.first.first == key && told.first.second != connection;
  });
  if (is_first) check_wait(collection->second);
  // The node may have ended its workers meanwhile, and know no world of the round any more.
  const auto world = simulation_.hangs().world_of(node);
  if (!world || simulation_.workers().world(*world).round != message.round) return;
  check_names(*world, collection->second, message, is_first);
  if (!is_first) return;
  ++simulation_.hangs().counts().verdicts();
  if (!said_.culprits.empty()) ++simulation_.hangs().counts().named();
}

void HangInvariants::sent(const Node& node, ConnectionId connection, const Stamp& stamp, const HangOver& message,
                          const Server& server) {
  const Key key = key_of(node, stamp, message.round, server);
  told_[{key, connection}] = false;
  if (message.why != HangOver::Why::kWithdrawn) return;
  const auto collection = collections_.find(key);
  const auto world = simulation_.hangs().world_of(node);
  if (collection == collections_.end() || !world || simulation_.workers().world(*world).round != message.round) return;
  const Hang* const hang = simulation_.hangs().hang_of(*world);
  if (hang != nullptr && hang->is_now() && is_like_a_step(*hang, collection->second))
    simulation_.hangs().was_taken_for_a_step(*world);
}

// By what the coordinator has got, nothing tells this hang from a long step: a rank computes, and no other rank is seen
// to wait for that one, by its stack or by how far both are in a group.
bool HangInvariants::is_like_a_step(const Hang& hang, const Collection& collection) {
  if (!computes(hang)) return false;
  bool is_seen = false;
  bool is_counted = false;
  bool are_others_counted = false;
  for (const hang::NodeFacts& node : collection.taken) {
    for (const hang::RankFacts& rank : node.ranks) {
      if (rank.rank != hang.rank && rank.stack) return false;
      is_seen = is_seen || (rank.rank == hang.rank && rank.stack);
    }
    for (const hang::GroupFact& fact : node.group_facts) {
      const bool is_culprit = fact.ranks.contains(hang.rank);
      is_counted = is_counted || is_culprit;
      are_others_counted = are_others_counted || !is_culprit;
    }
  }
  return is_seen && !(is_counted && are_others_counted);
}

void HangInvariants::check_wait(const Collection& collection) const {
  if (simulation_.now_ms() >= collection.asked_ms + kWaitMs) return;
  for (const auto& [connection, has_answered] : collection.answered) {
    if (has_answered || !simulation_.network().is_open(connection, End::kServer)) continue;
    simulation_.invariants().broken("a verdict waits for evidence",
                                    format("{} ms after it was asked for, and connection {} has not answered",
                                           simulation_.now_ms() - collection.asked_ms, connection));
  }
}

const HangInvariants::Said& HangInvariants::said_by(const std::string& report) {
  if (report == report_) return said_;
  report_ = report;
  said_ = {};
  const auto json = Json::parse(report, "a report");
  if (!json) simulation_.invariants().broken("a report of a hang can be read", json.error().text());
  said_.cause = json->text_or_empty("cause");
  said_.is_complete = json->text_or_empty("without_evidence").empty();
  const Json* const culprits = json->find("culprits");
  for (const Json& each : *culprits->as_array())
    said_.culprits.push_back({each.find("rank")->as_integer(), each.text_or_empty("node")});
  return said_;
}

void HangInvariants::check_names(std::size_t world, const Collection& collection, const HangTold& message,
                                 bool is_first) {
  const Said& said = said_by(message.report);
  const Ms now_ms = simulation_.now_ms();
  const Ms since_ms = now_ms - message.silent_ms - simulation_.setup().hangs->beat_ms;
  const Hang* hang = simulation_.hangs().hang_of(world);
  if (hang != nullptr && hang->ended_ms && *hang->ended_ms < since_ms) hang = nullptr;
  const bool is_over = hang != nullptr && (!hang->is_now() || !simulation_.hangs().is_whole(world));
  const bool may_name_anybody = is_over && is_of_two_moments(world, collection);
  for (const Culprit& culprit : said.culprits) {
    if (may_name_anybody) break;
    const bool is_right = hang != nullptr && has_culprit(hang->kind) && culprit.node == hang->address &&
                          culprit.rank.value_or(hang->rank) == hang->rank;
    if (is_right) continue;
    simulation_.invariants().broken(
        "a verdict names nobody who is not at fault",
        format("{} of {}: \"{}\", but {}", culprit.rank ? format("rank {}", *culprit.rank) : "the node", culprit.node,
               said.cause,
               hang == nullptr ? "nothing hangs"
                               : format("{}, rank {} of {}", name(hang->kind), hang->rank, hang->address)));
  }
  if (simulation_.hangs().is_whole(world) && simulation_.hangs().stood_ms(world) < since_ms)
    simulation_.invariants().broken("nothing is told of a round that makes progress",
                                    format("round {}: \"{}\"", message.round, said.cause));
  const bool hung_all_the_time = hang != nullptr && hang->is_now() && hang->began_ms <= collection.asked_ms;
  if (!hung_all_the_time || !said.is_complete || !all_is_read(world, collection) ||
      !must_be_named(*hang, collection.asked_ms - hang->began_ms))
    return;
  if (is_first) ++simulation_.hangs().counts().known();
  if (said.culprits.empty())
    simulation_.invariants().broken(
        "with all evidence the one at fault is named",
        format("{}, rank {} of {}: \"{}\"", name(hang->kind), hang->rank, hang->address, said.cause));
}

std::vector<HangInvariants::Read> HangInvariants::read_of(std::size_t world, const Collection& collection) const {
  std::vector<Read> all;
  for (const int node : simulation_.hangs().nodes_of(world)) {
    const auto read = read_.find(node);
    if (read != read_.end() && read->second.collection == collection.number &&
        read->second.round == simulation_.workers().world(world).round)
      all.push_back(read->second);
  }
  return all;
}

bool HangInvariants::all_is_read(std::size_t world, const Collection& collection) const {
  const std::vector<Read> all = read_of(world, collection);
  return all.size() == simulation_.hangs().nodes_of(world).size() &&
         std::ranges::all_of(all, [](const Read& read) { return read.hangs && read.is_whole; });
}

// Some nodes have read theirs while the round hung, and others when it did not.
bool HangInvariants::is_of_two_moments(std::size_t world, const Collection& collection) const {
  const std::vector<Read> all = read_of(world, collection);
  return std::ranges::any_of(all, &Read::hangs) && !std::ranges::all_of(all, &Read::hangs);
}

}  // namespace elastic::simulation
