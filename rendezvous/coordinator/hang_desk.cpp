#include "rendezvous/coordinator/hang_desk.h"

#include <algorithm>
#include <array>
#include <utility>

#include "health/hang/hang_facts.h"
#include "health/hang/hang_judge.h"
#include "rendezvous/coordinator/limits.h"
#include "rendezvous/protocol/limits.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;
using hang::Fact;
using hang::HangState;
using hang::RankRuns;
using membership::MemberState;
using membership::Node;
using membership::Roster;

namespace {

// Ages are rounded: of two steps that are so close in time the greater one is the later.
constexpr std::int64_t kSameMs = 5;
// Time between two transfers of state if only a longer gap is new.
constexpr std::int64_t kKeepMs = 60'000;
// Time between two transfers of state if only nodes that are out are new.
constexpr std::int64_t kStuckMs = 1'000;
// A node's time to answer ends so long before its answer is too late.
constexpr std::int64_t kAnswerMarginMs = 2'000;
// An age that is sent is cut to this: a year.
constexpr std::int64_t kOldestMs = 365LL * 24 * 3'600'000;

// A phase's limit is good enough to restart the job for it if it was learned from so many gaps between steps.
constexpr std::int64_t kGapsToRestart = 16;
// The rule that finds stopped workers at fault.
constexpr int kRuleOfStopped = 4;
// The rule that finds only the links between the nodes at fault.
constexpr int kRuleOfLinks = 10;
// Verdicts of this rule and later ones follow from where ranks stand, and do not hold if they move.
constexpr int kFirstRuleOfPlaces = 6;
// At most so many ranks of a round are judged: a place that an agent brings may have any numbers.
constexpr std::int32_t kMostRanks = 1 << 20;

RankRuns ranks_of(const Node& node) {
  RankRuns ranks;
  const std::int64_t first = node.place.base_rank;
  const std::int64_t last = first + node.shape.local_world_size - 1;
  if (first < 0 || last < first || last >= kMostRanks) return ranks;
  ranks.runs = {{static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)}};
  return ranks;
}

hang::Phase phase_of(progress::Phase phase) {
  switch (phase) {
    case progress::Phase::kUnknown: return hang::Phase::kUnknown;
    case progress::Phase::kSetup: return hang::Phase::kSetup;
    case progress::Phase::kTrain: return hang::Phase::kTrain;
    case progress::Phase::kEval: return hang::Phase::kEvaluate;
    case progress::Phase::kCheckpoint: return hang::Phase::kCheckpoint;
  }
  return hang::Phase::kUnknown;
}

bool holds(const HangFacts& facts, Fact fact) {
  switch (fact) {
    case Fact::kDiskWait: return facts.waits_for_disk;
    case Fact::kStopped: return facts.is_stopped;
    case Fact::kGpuLost: return facts.lacks_gpu;
    case Fact::kDumpKey: return facts.has_dump_key;
    case Fact::kInitKey: return facts.misses_init_key;
  }
  return false;
}

bool is_in_round(const Node& node) {
  return node.member_state() == MemberState::kMember || node.member_state() == MemberState::kDone;
}

// The facts of a node that has left because all its workers have succeeded.
hang::NodeFacts facts_of_done(const RankRuns& ranks) {
  hang::NodeFacts facts{.has_answered = true};
  ranks.for_each([&](std::int32_t rank) {
    if (facts.ranks.size() < hang::bounds::kRanks)
      facts.ranks.push_back({.rank = rank, .state = hang::ThreadState::kGone});
  });
  return facts;
}

// A report that fits into one message; the more nodes get it, the shorter.
std::string report_text(const hang::HangPicture& picture, const hang::HangVerdict& verdict,
                        const hang::HangStory& story, std::size_t nodes) {
  const std::size_t most = std::clamp<std::size_t>(limits::kHangReportsBytes / std::max<std::size_t>(nodes, 1),
                                                   limits::kHangReportBytes / 8, limits::kHangReportBytes);
  for (std::size_t groups = hang::bounds::kGroupsShown;; groups /= 2) {
    std::string text = hang_json(picture, verdict, story, groups).dump();
    if (text.size() <= most || groups == 0) return text.size() <= limits::kHangReportBytes ? text : std::string();
  }
}

// The first whole lines of a text.
std::string first_lines(std::string text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  text.resize(most_bytes);
  const std::size_t end = text.rfind('\n');
  text.resize(end == std::string::npos ? most_bytes : end + 1);
  return text;
}

}  // namespace

void HangDesk::follow(const JobRules& rules) {
  settings_ = {.timeout_ms = rules.hang_timeout_ms,
               .first_timeout_ms = rules.hang_first_timeout_ms,
               .sections = rules.hang_sections};
  restarts_ = rules.restarts_hangs();
  charges_.allow(rules.hang_restarts.value_or(0));
  if (rules.hang == JobRules::Hang::kOff) {
    watch_.reset();
    return;
  }
  // Rules change only before a round runs.
  watch_ = watch_ ? hang::HangWatch(settings_, watch_->record(0), 0) : hang::HangWatch(settings_);
}

void HangDesk::inherit(TransferredHang transferred, std::int64_t unix_ms) {
  // Without an alarm, progress may have been made since that was not reported: the limit begins with the new
  // coordinator, so that it does not take a round that goes on for one that hangs.
  const HangState state = transferred.record.state;
  const bool is_alarm =
      state == HangState::kConfirmed || state == HangState::kCollecting || state == HangState::kJudged;
  const std::int64_t since_ms = is_alarm ? std::clamp<std::int64_t>(unix_ms - transferred.unix_ms, 0, kOldestMs) : 0;
  const std::int64_t silent_ms = is_alarm ? std::clamp<std::int64_t>(transferred.record.silent_ms, 0, kOldestMs) : 0;
  transferred.record.silent_ms = silent_ms + since_ms;
  transferred.unix_ms = unix_ms;
  charges_.restore(transferred.charges);
  suspects_links_ = transferred.suspects_links;
  inherited_ = std::move(transferred);
}

std::optional<TransferredHang> HangDesk::transfer(std::int64_t now_ms, std::int64_t unix_ms) const {
  if (!watch_) return {};
  // State that was not taken up is passed on.
  if (inherited_ && !round_) {
    TransferredHang transferred = *inherited_;
    if (!ending_ || ending_->round != transferred.round) return transferred;
    Ending both{transferred.round, std::move(transferred.out)};
    for (const int node_rank : ending_->out) both.leave_out(node_rank);
    transferred.out = std::move(both.out);
    return transferred;
  }
  const Ending ending = ending_.value_or(Ending{});
  return TransferredHang{.record = watch_->record(now_ms),
                         .round = round_.value_or(ending.round),
                         .unix_ms = unix_ms,
                         .charges = charges_.record(),
                         .ends = ending_.has_value(),
                         .suspects_links = suspects_links_,
                         .out = ending.out};
}

void HangDesk::Ending::leave_out(int node_rank) {
  const bool is_known = std::ranges::find(out, node_rank) != out.end();
  if (!is_known && out.size() < limits::kTransferredHosts) out.push_back(node_rank);
}

bool HangDesk::ends(RoundNumber round) const {
  return (ending_ && ending_->round == round) || was_ending(round) != nullptr;
}

void HangDesk::leave_out(RoundNumber round, int node_rank) {
  if (!ending_ || ending_->round != round) ending_ = Ending{round, {}};
  ending_->leave_out(node_rank);
  has_stuck_ = true;
}

std::optional<std::int64_t> HangDesk::stuck_due_ms() const {
  if (!has_stuck_) return {};
  return stuck_handed_ms_ ? *stuck_handed_ms_ + kStuckMs : 0;
}

void HangDesk::has_handed_stuck(std::int64_t now_ms) {
  if (std::exchange(has_stuck_, false)) stuck_handed_ms_ = now_ms;
}

const TransferredHang* HangDesk::was_ending(RoundNumber round) const {
  return inherited_ && inherited_->ends && inherited_->round == round ? &*inherited_ : nullptr;
}

bool HangDesk::has_news(std::int64_t now_ms) {
  if (!watch_ || !round_) return false;
  const auto kind = [](HangState state) {
    if (state == HangState::kConfirmed) return HangState::kCollecting;
    return state == HangState::kSuspect ? HangState::kArmed : state;
  };
  const hang::LearnedLimits& learned = watch_->learned();
  const bool is_changed = kept_ && kind(kept_->state) != kind(watch_->state());
  bool has_learned = false;
  for (std::size_t i = 0; i < hang::kPhases && kept_; ++i) {
    const auto phase = static_cast<hang::Phase>(i);
    has_learned |= learned.of(phase).longest_ms > kept_->learned.of(phase).longest_ms * 3 / 2;
  }
  const bool is_due = kept_ && (is_changed || (has_learned && now_ms - kept_->at_ms >= kKeepMs));
  if (!kept_ || is_due) kept_ = Kept{watch_->state(), learned, now_ms};
  return is_due;
}

void HangDesk::round_runs(RoundNumber round, HangNow now, Effects& out) {
  suspects_links_ = false;
  ending_.reset();
  has_stuck_ = false;
  if (!watch_) return;
  round_ = round;
  began_ms_ = now.now_ms;
  has_continued_ = false;
  newest_.reset();
  sections_.clear();
  section_rank_.reset();
  end_collection();
  kept_.reset();
  members_.clear();
  world_size_ = 0;
  for (const auto& [agent, node] : now.roster.nodes()) {
    if (!is_in_round(node)) continue;
    world_size_ = std::clamp<std::int32_t>(node.place.world_size, world_size_, kMostRanks);
    members_.emplace(agent, Member{.name = node.address, .ranks = ranks_of(node)});
  }
  const auto inherited = std::exchange(inherited_, {});
  if (inherited) watch_ = hang::HangWatch(settings_, inherited->record, now.now_ms);
  const bool goes_on = inherited && inherited->round == round && inherited->record.state != HangState::kIdle;
  if (goes_on) {
    began_ms_ = now.now_ms - inherited->record.silent_ms;
    return on_time(now, out);
  }
  handle(hang::RoundBegan{}, now, out);
}

void HangDesk::round_ends(std::int64_t now_ms) {
  if (watch_) watch_->handle(hang::RoundEnded{}, now_ms);
  if (last_) last_->is_over = true;
  round_.reset();
  if (end_) ending_.reset();  // the end was not taken up
  end_.reset();
  members_.clear();
  newest_.reset();
  sections_.clear();
  end_collection();
}

void HangDesk::end_collection() {
  collecting_.reset();
  awaited_ = 0;
  for (auto& [agent, member] : members_) {
    member.is_asked = false;
    member.evidence.reset();
  }
}

void HangDesk::on_progress(const Node& node, const NodeProgress& message, HangNow now, Effects& out) {
  if (round_ != message.round) return;
  note_section(node.agent, message.oldest, now, out);
  beat(node.agent, message.newest, now, out);
}

// A node that is done stays silent, and no other node waits for it.
void HangDesk::note_section(AgentId agent, const ProgressOfRank& said, HangNow now, Effects& out) {
  if (settings_.sections.empty() || !members_.contains(agent)) return;
  const std::int64_t age_ms = std::clamp<std::int64_t>(said.age_ms, 0, kOldestMs);
  sections_.heard(agent, {now.now_ms - age_ms, said.rank, said.section});
  const SilentSections::Silent* const longest = sections_.longest([&](AgentId each) {
    const auto found = now.roster.nodes().find(each);
    return found != now.roster.nodes().end() && found->second.member_state() == MemberState::kMember;
  });
  if (longest == nullptr) return;
  section_rank_ = longest->rank;
  if (watch_->section() != longest->section) handle(hang::InSection{longest->section}, now, out);
}

// A node reports again only what its ranks have done since. By its time that may be no later: a section may end and the
// next one begin within a millisecond, and one report may travel faster than the one before.
void HangDesk::beat(AgentId agent, const ProgressOfRank& said, HangNow now, Effects& out) {
  const std::int64_t at_ms = now.now_ms - std::clamp<std::int64_t>(said.age_ms, 0, kOldestMs);
  const bool is_further = newest_ && newest_->step < said.step && at_ms + kSameMs > newest_ms_;
  const bool is_later = agent == newest_agent_ || is_further;
  if (newest_ && at_ms <= newest_ms_ && !is_later) return;  // another node's progress is newer
  newest_ms_ = newest_ ? std::max(at_ms, newest_ms_) : at_ms;
  newest_ = said;
  newest_agent_ = agent;
  handle(hang::Beat{phase_of(said.phase), now.now_ms - at_ms}, now, out);
}

void HangDesk::on_signs(const Node& node, const HangSigns& message, HangNow now, Effects& out) {
  const auto member = members_.find(node.agent);
  if (round_ != message.round || member == members_.end()) return;
  const HangFacts before = std::exchange(member->second.facts, message.facts);
  for (std::size_t i = 0; i < hang::kFacts; ++i) {
    const auto fact = static_cast<Fact>(i);
    if (holds(before, fact) == holds(message.facts, fact)) continue;
    const bool any = std::ranges::any_of(members_, [&](const auto& each) { return holds(each.second.facts, fact); });
    handle(hang::FactSeen{fact, any}, now, out);
  }
  if (message.disks_move) handle(hang::DiskMoves{}, now, out);
}

void HangDesk::on_evidence(const Node& node, const NodeEvidence& message, HangNow now, Effects& out) {
  const auto found = members_.find(node.agent);
  if (round_ != message.round || !collecting_ || message.collection != collection_ || found == members_.end()) return;
  Member& member = found->second;
  if (!std::exchange(member.is_asked, false)) return;
  --awaited_;
  member.evidence = decode_facts(message.facts);
  if (!member.evidence) out.push_back(Note{format("the evidence of {} cannot be read", node.name())});
  if (awaited_ == 0) handle(hang::Collected{}, now, out);
}

void HangDesk::on_time(HangNow now, Effects& out) {
  if (!round_) return;
  const auto due_ms = next_ms();
  if (due_ms && *due_ms <= now.now_ms) handle(hang::Tick{}, now, out);
}

std::optional<std::int64_t> HangDesk::next_ms() const {
  if (!watch_ || !round_) return {};
  return watch_->next_ms();
}

void HangDesk::handle(const hang::HangEvent& event, HangNow now, Effects& out) {
  if (!watch_ || !round_) return;
  for (const hang::HangEffect& effect : watch_->handle(event, now.now_ms)) perform(effect, now, out);
}

void HangDesk::perform(const hang::HangEffect& effect, HangNow now, Effects& out) {
  std::visit([&](const auto& known) { perform_one(known, now, out); }, effect);
}

void HangDesk::perform_one(const hang::TellNotArmed&, HangNow now, Effects& out) {
  const std::string text =
      "no progress of this job is seen, so that nobody would notice if it hung; docs/progress.md says what is seen";
  out.push_back(Note{"no node has shown progress in this round: it is not watched for hangs"});
  tell_all(
      HangTold{.round = *round_, .what = HangTold::What::kNotArmed, .silent_ms = now.now_ms - began_ms_, .text = text},
      now.roster, out);
}

// No sample is taken before the evidence, which has two of each stack itself: whether the ranks move is not known here.
void HangDesk::perform_one(const hang::TakeSample& effect, HangNow now, Effects& out) {
  if (effect.is_second) handle(hang::Sampled{hang::Sampled::Is::kUnknown}, now, out);
}

void HangDesk::perform_one(const hang::Collect& effect, HangNow now, Effects& out) {
  end_collection();
  collecting_ = effect;
  over_section_ = effect.limit.from == hang::LimitFrom::kSection ? watch_->section() : "";
  ++collection_;
  const CollectEvidence order{.round = *round_,
                              .collection = collection_,
                              .silent_ms = effect.silent_ms,
                              .limit_ms = effect.limit.limit_ms,
                              .within_ms = std::max<std::int64_t>(settings_.collect_ms - kAnswerMarginMs, 0)};
  for (auto& [agent, member] : members_) {
    const auto found = now.roster.nodes().find(agent);
    if (found == now.roster.nodes().end()) {
      member.evidence = facts_of_done(member.ranks);
      continue;
    }
    if (!found->second.session) continue;
    member.is_asked = true;
    ++awaited_;
    out.push_back(Send{*found->second.session, order});
  }
  out.push_back(Note{format("the job has been silent for {} ms: collecting evidence of {}", effect.silent_ms,
                            counted(static_cast<int>(awaited_), "node"))});
  if (awaited_ == 0) handle(hang::Collected{}, now, out);
}

void HangDesk::perform_one(const hang::Judge& effect, HangNow now, Effects& out) {
  const hang::HangPicture picture(facts());
  const hang::HangVerdict verdict = hang::judge(picture);
  hang::HangStory told = story();
  told.silent_ms = std::max<std::int64_t>(now.now_ms - (newest_ ? newest_ms_ : began_ms_), 0);
  if (effect.is_late) out.push_back(Note{format("no evidence in time of {}", some_of(late_names()))});
  awaited_ = 0;
  // A fact speaks for itself, whatever the other ranks do.
  const bool is_moving = !collecting_->fact && verdict.rule >= kFirstRuleOfPlaces && hang::is_moving(picture);
  const bool continues = restarts_ && verdict.rule == kRuleOfStopped && !has_continued_ && may_restart(*collecting_);
  // Whether the watch tells the verdict: that storage stands is told only when it has lasted.
  handle(hang::Judged{.is_storage = verdict.is_storage(), .is_moving = is_moving, .continues = continues}, now, out);
  if (is_moving) return withdraw("the ranks move", told.silent_ms, now, out);
  if (continues) return continue_stopped(picture, verdict.cause, told.silent_ms, now, out);
  out.push_back(Note{format("the job hangs: {}", verdict.cause)});
  if (watch_->state() == HangState::kJudged) {
    ++told_;
    if (restarts_) {
      told.action = may_restart(*collecting_) ? end_round(picture, verdict, now)
                                              : "none: only a limit that is given, or learned from 16 steps, restarts";
    }
    last_ = Told{.round = *round_, .verdict = verdict, .silent_ms = told.silent_ms, .at_ms = now.now_ms};
    tell_all(HangTold{.round = *round_,
                      .what = HangTold::What::kVerdict,
                      .silent_ms = told.silent_ms,
                      .text = first_lines(hang_screen(picture, verdict, told), limits::kAgentTextBytes),
                      .report = report_text(picture, verdict, told, members_.size())},
             now.roster, out);
  }
  end_collection();
}

// A restart needs a limit that the user has given, or that the job itself has shown for long enough.
bool HangDesk::may_restart(const hang::Collect& why) const {
  const bool has_learned = watch_->learned().of(why.phase).gaps >= kGapsToRestart;
  switch (why.limit.from) {
    case hang::LimitFrom::kFlag:
    case hang::LimitFrom::kSection: return true;
    case hang::LimitFrom::kFirst: return settings_.first_timeout_ms.has_value();
    case hang::LimitFrom::kLearned: return has_learned;
    case hang::LimitFrom::kShortcut: return has_learned || settings_.timeout_ms || settings_.first_timeout_ms;
    case hang::LimitFrom::kNone: return false;
  }
  return false;
}

// Charges the nodes at fault, and has the round end. Returns what is done, as a clause.
std::string HangDesk::end_round(const hang::HangPicture& picture, const hang::HangVerdict& verdict, HangNow now) {
  HangCharges::Hang hang{
      .fault = verdict.fault, .nodes = static_cast<int>(now.roster.count(MemberState::kMember)), .least = now.least};
  std::map<AgentId, std::string> whys;
  for (const hang::HangCulprit& culprit : verdict.culprits) {
    const auto found = std::ranges::find_if(members_, [&](const auto& each) {
      return culprit.rank >= 0 ? each.second.ranks.contains(culprit.rank) : each.second.name == culprit.node;
    });
    if (found == members_.end()) continue;
    const auto node = now.roster.nodes().find(found->first);
    if (node == now.roster.nodes().end()) continue;
    const std::string identity = node->second.identity();
    const std::string subject = culprit.rank >= 0 ? format("rank {} hung: ", culprit.rank) : "";
    whys.emplace(found->first, subject + culprit.why);
    if (std::ranges::find(hang.charged, identity, &HangCharges::Charged::node) == hang.charged.end())
      hang.charged.push_back({identity, node->second.name(), culprit.place});
  }
  // A node that was started again on a charged host replaces no other.
  hang.standbys = static_cast<int>(std::ranges::count_if(now.roster.nodes(), [&](const auto& entry) {
    const Node& other = entry.second;
    return other.member_state() == MemberState::kReady &&
           std::ranges::find(hang.charged, other.identity(), &HangCharges::Charged::node) == hang.charged.end();
  }));
  HangCharges::Decision decision = charges_.charge(hang);
  HangEnd end{.because = format("the job hung: {}", verdict.cause),
              .fatal = decision.fatal.empty() ? "" : format("{}; {}", decision.fatal, verdict.cause),
              .dumps = hang::want_dump_key(picture.facts())};
  suspects_links_ = verdict.rule == kRuleOfLinks;
  ending_ = Ending{*round_, {}};
  for (const auto& [agent, why] : whys) {
    const std::string identity = now.roster.at(agent).identity();
    if (std::ranges::find(decision.out, identity) == decision.out.end()) continue;
    end.out.emplace(agent, why);
    ending_->leave_out(now.roster.at(agent).place.node_rank);
  }
  for (const auto& [agent, member] : members_) {
    bool is_unseen = false;
    member.ranks.for_each([&](std::int32_t number) {
      if (static_cast<std::size_t>(number) >= picture.ranks().size()) return;
      const hang::HangPicture::Rank& rank = picture.rank(number);
      is_unseen = is_unseen || (rank.stack == nullptr && !rank.is(hang::ThreadState::kGone));
    });
    if (is_unseen) end.aborts.insert(agent);
  }
  end_ = std::make_unique<const HangEnd>(std::move(end));
  return std::move(decision.action);
}

std::vector<std::string> HangDesk::late_names() const {
  std::vector<std::string> names;
  for (const auto& [agent, member] : members_) {
    if (member.is_asked) names.push_back(member.name.empty() ? "a node" : member.name);
  }
  return names;
}

void HangDesk::perform_one(const hang::Withdraw& effect, HangNow now, Effects& out) {
  withdraw(format("progress after {} ms", effect.silent_ms), effect.silent_ms, now, out);
}

void HangDesk::withdraw(const std::string& why, std::int64_t silent_ms, HangNow now, Effects& out) {
  end_collection();
  ++withdrawn_;
  out.push_back(Note{format("{}: the job does not hang", why)});
  tell_all(HangOver{.round = *round_, .why = HangOver::Why::kWithdrawn, .after_ms = silent_ms}, now.roster, out);
}

// A user may have stopped a worker and forgotten it: before the round ends for that, SIGCONT is tried.
void HangDesk::continue_stopped(const hang::HangPicture& picture, const std::string& cause, std::int64_t silent_ms,
                                HangNow now, Effects& out) {
  has_continued_ = true;
  end_collection();
  const RankRuns stopped =
      picture.ranks_where([](const hang::HangPicture::Rank& rank) { return rank.is(hang::ThreadState::kStopped); });
  out.push_back(Note{format("{}: sending SIGCONT, once", cause)});
  for (const auto& [agent, member] : members_) {
    const auto found = now.roster.nodes().find(agent);
    if (found == now.roster.nodes().end() || !found->second.session) continue;
    bool is_stopped = false;
    member.ranks.for_each([&](std::int32_t rank) { is_stopped = is_stopped || stopped.contains(rank); });
    out.push_back(Send{*found->second.session, HangTold{.round = *round_,
                                                        .what = HangTold::What::kContinues,
                                                        .silent_ms = silent_ms,
                                                        .text = cause,
                                                        .is_stopped = is_stopped}});
  }
}

void HangDesk::perform_one(const hang::TellRecovered& effect, HangNow now, Effects& out) {
  ++recovered_;
  if (last_) last_->is_over = true;
  out.push_back(Note{format("the job makes progress again, after {} ms", effect.silent_ms)});
  tell_all(HangOver{.round = *round_, .why = HangOver::Why::kRecovered, .after_ms = effect.silent_ms}, now.roster, out);
}

void HangDesk::tell_all(const CoordinatorMessage& message, const Roster& roster, Effects& out) const {
  for (const auto& [agent, member] : members_) {
    const auto found = roster.nodes().find(agent);
    if (found != roster.nodes().end() && found->second.session) out.push_back(Send{*found->second.session, message});
  }
}

hang::JobFacts HangDesk::facts() const {
  hang::JobFacts facts{.world_size = world_size_};
  for (const auto& [agent, member] : members_) {
    hang::NodeFacts node = member.evidence.value_or(hang::NodeFacts{});
    node.has_answered = member.evidence.has_value();
    node.lost.clear();
    node.own_ranks = member.ranks;
    // The node of a job of one has no name.
    if (!member.name.empty()) node.name = member.name;
    facts.nodes.push_back(std::move(node));
  }
  std::ranges::sort(facts.nodes, {},
                    [](const hang::NodeFacts& node) { return node.own_ranks.empty() ? -1 : node.own_ranks.front(); });
  return facts;
}

hang::HangStory HangDesk::story() const {
  hang::HangStory story{.silent_ms = collecting_->silent_ms,
                        .limit = collecting_->limit,
                        .section = over_section_,
                        .phase = collecting_->phase,
                        .longest_gap_ms = collecting_->longest_gap_ms};
  if (!story.section.empty()) story.section_rank = section_rank_.value_or(-1);
  if (newest_) {
    const std::string source = progress::name_of(newest_->source);
    story.last_line = newest_->step ? format("step {} ({})", *newest_->step, source) : source;
    story.last_rank = newest_->rank.value_or(-1);
  }
  return story;
}

HangDesk::Hang HangDesk::status(std::int64_t now_ms) const {
  Hang out{.is_watched = watch_.has_value(),
           .told = told_,
           .recovered = recovered_,
           .withdrawn = withdrawn_,
           .last = last_ ? &*last_ : nullptr};
  if (!watch_ || !round_) return out;
  out.state = watch_->state();
  if (newest_) out.phase = phase_of(newest_->phase);
  out.silent_ms = std::max<std::int64_t>(now_ms - (newest_ ? newest_ms_ : began_ms_), 0);
  out.limit = watch_->limit();
  return out;
}

void HangDesk::check_invariants() const {
  ELASTIC_CHECK(watch_ || !round_);
  ELASTIC_CHECK(round_ || (members_.empty() && !collecting_ && !end_));
  ELASTIC_CHECK(!end_ || ending_);
  ELASTIC_CHECK(!ending_ || !round_ || ending_->round == round_);
  ELASTIC_CHECK(collecting_ || awaited_ == 0);
  ELASTIC_CHECK(!watch_ || collecting_.has_value() == (watch_->state() == HangState::kCollecting));
  const auto asked = std::ranges::count_if(members_, [](const auto& each) { return each.second.is_asked; });
  ELASTIC_CHECK(static_cast<std::size_t>(asked) == awaited_);
  if (watch_) watch_->check_invariants();
}

}  // namespace elastic::coordinator
