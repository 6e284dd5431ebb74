#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "rendezvous/protocol/messages.h"

// Random messages for tests: every field is drawn from a source of numbers and texts.
namespace elastic::protocol::test {

// Random numbers from a seed (splitmix64).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t number() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
    return mixed ^ mixed >> 31;
  }
  // A text of any bytes; most texts are short.
  std::string text(std::size_t limit) {
    const std::uint64_t kind = number() % 16;
    std::string text(kind == 0 ? limit : number() % 20, '\0');
    for (char& byte : text) byte = static_cast<char>(number());
    // The last byte is not part of a longer character, so that a text of the limit is not shortened.
    if (!text.empty()) text.back() = 'z';
    return text;
  }

 private:
  std::uint64_t state_;
};

// Makes whole messages. A Source has number() and text(limit), as Dice does.
template <class Source>
class Maker {
 public:
  explicit Maker(Source& source) : source_(source) {}

  // The variant's alternative `index`, modulo their number.
  template <class Variant>
  Variant message(std::size_t index) {
    return make<Variant>(index % std::variant_size_v<Variant>,
                         std::make_index_sequence<std::variant_size_v<Variant>>());
  }

 private:
  template <class Variant, std::size_t... kIndexes>
  Variant make(std::size_t index, std::index_sequence<kIndexes...>) {
    Variant made;
    static_cast<void>(((index == kIndexes && (draw(made.template emplace<kIndexes>()), true)) || ...));
    return made;
  }

  template <class T>
  requires std::is_integral_v<T>
  void draw(T& number) {
    if constexpr (std::is_same_v<T, bool>) {
      number = source_.number() % 2 == 1;
    } else {
      number = static_cast<T>(source_.number());
    }
  }
  template <class T>
  void draw(std::optional<T>& value) {
    if (source_.number() % 2 == 1) draw(value.emplace());
  }
  template <class Enum>
  void draw(Enum& value, unsigned count) {
    value = static_cast<Enum>(source_.number() % count);
  }
  void draw(std::string& text, std::size_t limit) { text = source_.text(limit); }
  void draw(std::vector<WorkerFailure>& failures) {
    failures.resize(source_.number() % 16 == 0 ? 64 : source_.number() % 4);
    for (WorkerFailure& failure : failures) draw(failure);
  }

  void draw(StoreEndpoint& endpoint) {
    draw(endpoint.address, 1024);
    draw(endpoint.port);
  }
  void draw(WorkerFailure& failure) {
    draw(failure.rank);
    draw(failure.local_rank);
    draw(failure.node_rank);
    draw(failure.pid);
    draw(failure.exit.code);
    draw(failure.exit.signal);
    draw(failure.exit.core_dumped);
    draw(failure.wall_ms);
    draw(failure.stopped_by_us);
    draw(failure.kind, 4);
    draw(failure.host, 1024);
  }
  void draw(NodePlace& place) {
    draw(place.node_rank);
    draw(place.node_count);
    draw(place.base_rank);
    draw(place.world_size);
    draw(place.base_role_rank);
    draw(place.role_world_size);
  }
  void draw(Verdict& verdict) {
    draw(verdict.outcome, 3);
    draw(verdict.reason, 16384);
    draw(verdict.round);
    draw(verdict.restarts_used);
    draw(verdict.signal);
    draw(verdict.failures);
    draw(verdict.left_behind, 16384);
  }
  void draw(JobTerms& terms) {
    draw(terms.min_nodes);
    draw(terms.max_nodes);
    draw(terms.node_unit);
    draw(terms.max_restarts);
  }
  void draw(AgentFacts& facts) {
    draw(facts.incarnation);
    draw(facts.term);
    draw(facts.round);
    draw(facts.activity, 5);
    draw(facts.place);
    draw(facts.restart_count);
    draw(facts.losses);
    draw(facts.membership);
    draw(facts.failures);
    draw(facts.verdict);
  }

  void draw(JobRules& rules) {
    draw(rules.last_call_ms);
    draw(rules.join_timeout_ms);
    draw(rules.replacement_grace_ms);
    draw(rules.scale_up, 4);
    draw(rules.scale_up_after_ms);
    draw(rules.node_losses);
    draw(rules.loss_window_ms);
    draw(rules.keep_out_ms);
    draw(rules.job_losses);
  }
  void draw(CheckRules& rules) {
    draw(rules.when, 4);
    draw(rules.excludes_stragglers);
    draw(rules.only);
    draw(rules.measures_all);
  }
  void draw(NodeJoins& message) {
    draw(message.local_world_size);
    draw(message.role, 1024);
    draw(message.agent);
    draw(message.address, 1024);
    draw(message.node_rank);
    draw(message.hosts_coordinator);
    draw(message.terms);
    draw(message.rules);
    draw(message.facts);
    draw(message.addresses, 4096);
    draw(message.check);
    draw(message.session);
    draw(message.group, 1024);
    draw(message.rules.replacement_wait_ms);
    draw(message.rules.crash_loop, 2);
    if (message.facts.verdict) draw(message.facts.verdict->is_deterministic);
  }
  void draw(StoreIsOpen& message) {
    draw(message.round);
    draw(message.endpoint);
  }
  void draw(WorkerFailed& message) {
    draw(message.round);
    draw(message.failure);
  }
  void draw(WorkersSucceeded& message) { draw(message.round); }
  void draw(NodeCannotRun& message) {
    draw(message.round);
    draw(message.reason, 16384);
  }
  void draw(Crash& crash) {
    draw(crash.kind, 3);
    draw(crash.digest);
  }
  void draw(NodeStopped& message) {
    draw(message.round);
    draw(message.failures);
    draw(message.crash);
  }
  void draw(NodeLeaves& message) { draw(message.signal); }
  void draw(CheckDone& message) {
    draw(message.round);
    draw(message.phase);
    draw(message.result, 131072);
  }
  void draw(VerdictHeard& message) { draw(message.details, 65536); }

  void draw(PrepareRound& message) {
    draw(message.round);
    draw(message.restart_count);
    draw(message.max_restarts);
    draw(message.place);
    draw(message.reason, 16384);
    draw(message.losses);
    draw(message.membership);
    draw(message.charged);
    draw(message.admits, 131072);
  }
  void draw(RunWorkers& message) {
    draw(message.round);
    draw(message.store);
  }
  void draw(StopWorkers& message) {
    draw(message.round);
    draw(message.scope, 3);
  }
  void draw(EndJob& message) {
    draw(message.verdict);
    draw(message.verdict.is_deterministic);
  }
  void draw(RunCheck& message) {
    draw(message.round);
    draw(message.phase);
    draw(message.order, 131072);
  }
  void draw(Dismiss& message) { draw(message.details, 65536); }
  void draw(Rejected& message) {
    draw(message.why, 8);
    draw(message.reason, 16384);
    draw(message.retry_ms);
  }
  void draw(AreYouThere&) {}
  void draw(Awaiting& message) {
    draw(message.here);
    draw(message.least);
    draw(message.most);
    draw(message.for_ms);
    draw(message.left_ms);
    draw(message.what, 16384);
    draw(message.because, 16384);
    draw(message.because_ms);
  }

  Source& source_;
};

}  // namespace elastic::protocol::test
