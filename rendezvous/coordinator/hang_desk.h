#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "health/hang/hang_picture.h"
#include "health/hang/hang_report.h"
#include "health/hang/hang_verdict.h"
#include "health/hang/hang_watch.h"
#include "rendezvous/coordinator/coordinator_events.h"
#include "rendezvous/coordinator/hang_charges.h"
#include "rendezvous/coordinator/limits.h"
#include "rendezvous/coordinator/silent_sections.h"
#include "rendezvous/membership/roster.h"
#include "src/base/fields.h"

namespace elastic::coordinator {

// What is transferred to the next coordinator about the watch for hangs, as of a Unix time, since clocks differ.
struct TransferredHang {
  hang::HangRecord record = {};
  protocol::RoundNumber round = 0;
  std::int64_t unix_ms = 0;
  HangCharges::Record charges = {};
  bool ends = false;            // the round is to end for its hang
  bool suspects_links = false;  // HangDesk::suspects_links()
  std::vector<int> out = {};    // with `ends`: node ranks that are out of the job when the round has ended
  bool operator==(const TransferredHang&) const = default;
  static void fields(auto& io, auto& v) {
    each(io, "record", v.record, "round", v.round, "unix_ms", v.unix_ms, "charges", v.charges, "ends", v.ends);
    each(io, "suspects_links", v.suspects_links);
    io("out", v.out, at_most(limits::kTransferredHosts));
  }
};

// The job's nodes, and the time.
struct HangNow {
  const membership::Roster& roster;
  std::int64_t now_ms = 0;
  int least = 0;  // with fewer nodes the job has no round
};

// The round is to end for a hang (--hang=restart).
struct HangEnd {
  std::string because = {};  // as a clause
  std::string fatal = {};    // why the job ends; empty: another round follows
  // Nodes that leave the job, with the reason as a clause.
  std::map<protocol::AgentId, std::string> out = {};
  std::set<protocol::AgentId> aborts = {};  // nodes of whose workers not all stacks could be read
  bool dumps = false;                       // StopWorkers::dumps
};

// Watches a round for a hang (hang::HangWatch), asks all its nodes for evidence when there is one, judges the answers,
// tells all nodes the verdict, and says whether the round is to end for it. Times are milliseconds of the coordinator's
// clock.
class HangDesk {
 public:
  // A verdict that nodes were told.
  struct Told {
    protocol::RoundNumber round = 0;
    hang::HangVerdict verdict = {};
    std::int64_t silent_ms = 0;  // without progress until then
    std::int64_t at_ms = 0;
    bool is_over = false;  // progress has come since, or its round has ended
  };
  // For the status.
  struct Hang {
    bool is_watched = false;  // hangs are looked for
    hang::HangState state = hang::HangState::kIdle;
    hang::Phase phase = hang::Phase::kUnknown;  // of the newest progress
    std::int64_t silent_ms = 0;                 // since that progress, or since the round began
    std::optional<hang::Limit> limit = {};      // the limit that holds now
    // Of this coordinator: verdicts, those after which progress has come, and alarms withdrawn before a verdict.
    int told = 0;
    int recovered = 0;
    int withdrawn = 0;
    const Told* last = nullptr;  // the last verdict, owned by the desk; null: none
  };

  // Collections are numbered from there on. Coordinators of a job are to begin at different numbers: evidence that a
  // node reads for one of them may reach the next.
  explicit HangDesk(std::uint32_t collection = 0) : collection_(collection) {}

  // The rules of the job. Limits that were learned under other rules are kept.
  void follow(const protocol::JobRules& rules);
  // Takes over what an earlier coordinator of the job has transferred. `unix_ms`: now.
  void inherit(TransferredHang transferred, std::int64_t unix_ms);
  // What to transfer; empty where hangs are not looked for.
  std::optional<TransferredHang> transfer(std::int64_t now_ms, std::int64_t unix_ms) const;
  // What there is to transfer differs so much from what was transferred last that nodes should get it now. True once
  // for each such change.
  bool has_news(std::int64_t now_ms);

  // This round is to end for its hang, or has ended for it, and none has run since.
  bool ends(protocol::RoundNumber round) const;
  // The node of this rank, whose workers cannot be ended, is also out when that round has ended, beside those of End.
  void leave_out(protocol::RoundNumber round, int node_rank);
  // When nodes should be sent what leave_out() was told, for the next leader: at once, but for many nodes once a
  // second. Empty: they have it.
  std::optional<std::int64_t> stuck_due_ms() const;
  void has_handed_stuck(std::int64_t now_ms);

  // The transferred state, if it says that this round is to end for its hang; else null.
  const TransferredHang* was_ending(protocol::RoundNumber round) const;

  // Workers of this round run, on the nodes that are in it.
  void round_runs(protocol::RoundNumber round, HangNow now, Effects& out);
  void round_ends(std::int64_t now_ms);
  // The round that is watched; empty: none is.
  const std::optional<protocol::RoundNumber>& round() const { return round_; }

  // The round that is watched is to end; null: it goes on. Each end is returned once.
  std::unique_ptr<const HangEnd> take_end() { return std::move(end_); }
  // A round has ended for a hang that the links between the nodes may have caused, and none has run since: all nodes
  // are to be checked before the next one runs.
  bool suspects_links() const { return suspects_links_; }

  // Messages of nodes in the round that is watched.
  void on_progress(const membership::Node& node, const protocol::NodeProgress& message, HangNow now, Effects& out);
  void on_signs(const membership::Node& node, const protocol::HangSigns& message, HangNow now, Effects& out);
  void on_evidence(const membership::Node& node, const protocol::NodeEvidence& message, HangNow now, Effects& out);
  // Does what is due.
  void on_time(HangNow now, Effects& out);
  // When on_time() is due; empty: never.
  std::optional<std::int64_t> next_ms() const;

  Hang status(std::int64_t now_ms) const;
  void check_invariants() const;

 private:
  struct Member {
    std::string name;
    hang::RankRuns ranks;
    protocol::HangFacts facts = {};
    bool is_asked = false;                         // for evidence, and has not answered
    std::optional<hang::NodeFacts> evidence = {};  // of the present collection
  };

  void handle(const hang::HangEvent& event, HangNow now, Effects& out);
  void perform(const hang::HangEffect& effect, HangNow now, Effects& out);
  void perform_one(const hang::TellNotArmed& effect, HangNow now, Effects& out);
  void perform_one(const hang::TakeSample& effect, HangNow now, Effects& out);
  void perform_one(const hang::Collect& effect, HangNow now, Effects& out);
  void perform_one(const hang::Judge& effect, HangNow now, Effects& out);
  void perform_one(const hang::Withdraw& effect, HangNow now, Effects& out);
  void perform_one(const hang::TellRecovered& effect, HangNow now, Effects& out);
  void withdraw(const std::string& why, std::int64_t silent_ms, HangNow now, Effects& out);
  void note_section(protocol::AgentId agent, const protocol::ProgressOfRank& said, HangNow now, Effects& out);
  void beat(protocol::AgentId agent, const protocol::ProgressOfRank& said, HangNow now, Effects& out);
  void continue_stopped(const hang::HangPicture& picture, const std::string& cause, std::int64_t silent_ms, HangNow now,
                        Effects& out);
  void end_collection();
  bool may_restart(const hang::Collect& why) const;
  std::string end_round(const hang::HangPicture& picture, const hang::HangVerdict& verdict, HangNow now);
  std::vector<std::string> late_names() const;
  hang::JobFacts facts() const;
  hang::HangStory story() const;
  void tell_all(const protocol::CoordinatorMessage& message, const membership::Roster& roster, Effects& out) const;

  hang::LimitSettings settings_;
  bool restarts_ = false;  // a hang ends its round
  HangCharges charges_;
  std::unique_ptr<const HangEnd> end_;  // null: nothing is to end
  // A round that is to end for its hang, or has ended for it.
  struct Ending {
    protocol::RoundNumber round = 0;
    std::vector<int> out = {};  // node ranks that are out when it has ended; at most limits::kTransferredHosts
    void leave_out(int node_rank);
  };
  std::optional<Ending> ending_;  // until another round runs
  bool has_stuck_ = false;        // leave_out() was told what the nodes do not have yet
  std::optional<std::int64_t> stuck_handed_ms_;
  bool suspects_links_ = false;
  std::optional<hang::HangWatch> watch_;      // empty: hangs are not looked for
  std::optional<TransferredHang> inherited_;  // until its round runs
  std::optional<protocol::RoundNumber> round_;
  std::int32_t world_size_ = 0;
  std::map<protocol::AgentId, Member> members_;          // of the round
  SilentSections sections_;                              // empty where no section has a limit
  std::optional<int> section_rank_ = {};                 // the rank that is in the watch's section
  std::optional<protocol::ProgressOfRank> newest_ = {};  // progress of all nodes in this round
  std::int64_t newest_ms_ = 0;                           // when that progress was made
  std::optional<protocol::AgentId> newest_agent_ = {};   // the node that has told of it
  std::int64_t began_ms_ = 0;                            // when the watch of the round began
  std::uint32_t collection_;                             // number of the last one
  std::optional<hang::Collect> collecting_ = {};         // why the present collection was begun
  std::string over_section_ = {};                        // the section whose limit was over then; empty: none
  std::size_t awaited_ = 0;                              // nodes that were asked and have not answered
  bool has_continued_ = false;                           // in this round stopped workers got SIGCONT
  int told_ = 0;
  int recovered_ = 0;
  int withdrawn_ = 0;
  std::optional<Told> last_ = {};
  struct Kept {
    hang::HangState state = hang::HangState::kIdle;
    hang::LearnedLimits learned = {};
    std::int64_t at_ms = 0;
  };
  std::optional<Kept> kept_;
};

}  // namespace elastic::coordinator
