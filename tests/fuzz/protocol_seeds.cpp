// The seeds of the agent protocol's fuzzer: makes them, and plays files as the fuzzer does.
//
//   protocol_seeds --write DIRECTORY   writes the seeds, into DIRECTORY/quick
//   protocol_seeds --check DIRECTORY   the files there are the seeds, and each of them plays
//   protocol_seeds FILE ...            plays files

#include <string>

#include "tests/fuzz/protocol_events.h"
#include "tests/fuzz/seed_files.h"

namespace elastic {
namespace {

using namespace protocol_events;

// Messages by their index.
enum AgentSays : std::uint8_t {
  kJoins,
  kStoreIsOpen,
  kFailed,
  kSucceeded,
  kCannotRun,
  kStopped,
  kLeaves,
  kCheckDone,
  kJobResultHeard,
  kRoundHeard,
  kProgress,
  kStacks,
  kHangSigns,
  kNodeEvidence,
  kLoaderSays,
  kAgentMessages
};
enum CoordinatorSays : std::uint8_t {
  kPrepare,
  kRun,
  kStop,
  kEnd,
  kRunCheck,
  kDismiss,
  kRejected,
  kAreYouThere,
  kAwaiting,
  kLeaveJob,
  kResigned,
  kNextRound,
  kStacksWanted,
  kCollectEvidence,
  kHangTold,
  kHangOver,
  kKeepState,
  kLoaderTold,
  kCoordinatorMessages
};
constexpr std::uint8_t kAll = 0;

// NodeJoins with short fields: address, agent, workers, role, no rank, no host, terms, rules, facts, no
// verdict.
Writer& joins(Writer& story) {
  story.event(kAgentSays, kJoins).bytes("host");
  return story.numbers(7, 8)
      .bytes("role")
      .numbers(0, 0, 1, 2, 1, 3)
      .numbers(9, 9, 0, 1, 1, 3, 9, 9, 0)
      .numbers(0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 8, 0, 8, 0, 0, 0, 1, 0, 0);
}

// Up to a WELCOME of term 3 and incarnation 11.
Writer begun(std::uint8_t settings = 0) {
  Writer story(settings);
  joins(story);
  story.event(kToCoordinator, kAll).event(kToAgent, kAll).event(kToCoordinator, kAll);
  story.event(kWelcome, 3, 1).event(kToAgent, kAll);
  return story;
}

seed_files::Seeds make_seeds() {
  seed_files::Seeds seeds;
  const auto add = [&](const std::string& name, const Writer& story) { seeds["quick/" + name] = story.input(); };
  add("begin", begun());
  add("no_secret", begun(kNoSecret));
  add("other_secret", begun(kOtherSecret));
  add("newer_minor", begun(kNewerMinor).event(kForgeToAgent, 200, 11, 3, 0).bytes("new").event(kToAgent, kAll));
  add("other_major", begun(kOtherMajor));
  add("knows_job", begun(kKnowsJob).event(kAgentSays, kStopped, 3, 1, 0).event(kToCoordinator, kAll));
  for (std::uint8_t which = 0; which < kAgentMessages; ++which) {
    add("agent_says_" + std::to_string(which),
        begun().event(kAgentSays, which, 5, 1, 2, 3).event(kToCoordinator, kAll));
  }
  for (std::uint8_t which = 0; which < kCoordinatorMessages; ++which) {
    add("coordinator_says_" + std::to_string(which),
        begun().event(kCoordinatorSays, which, 5, 1, 2, 3).event(kToAgent, kAll));
  }
  Writer waiting(kKnowsJob);
  joins(waiting).event(kAgentSays, kSucceeded, 3).event(kAgentSays, kLeaves, 15).event(kToCoordinator, kAll);
  waiting.event(kToAgent, kAll).event(kToCoordinator, kAll).event(kWelcome, 4, 3).event(kToAgent, kAll);
  add("waiting_news_of_another_start", waiting.event(kToCoordinator, kAll));
  Writer older(kKnowsJob);
  joins(older).event(kToCoordinator, kAll).event(kToAgent, kAll).event(kToCoordinator, kAll).event(kWelcome, 1, 1);
  add("older_term", older.event(kToAgent, kAll).event(kToCoordinator, kAll));
  add("term_grows", begun()
                        .event(kSetStamp, 5, 2)
                        .event(kCoordinatorSays, kDismiss)
                        .event(kToAgent, kAll)
                        .event(kSetStamp, 4, 2)
                        .event(kCoordinatorSays, kStop, 1, 0, 0, 0)
                        .event(kToAgent, kAll)
                        .event(kAgentSays, kSucceeded, 1)
                        .event(kToCoordinator, kAll));
  add("taken_over", begun().event(kAgentSays, kSucceeded, 1).event(kSetStamp, 3, 2).event(kToCoordinator, kAll));
  add("older_round", begun()
                         .event(kCoordinatorSays, kPrepare, 9, 0, 3, 0, 1, 0, 8, 0, 8)
                         .bytes("")
                         .numbers(0, 1, 1)
                         .bytes("")
                         .numbers(7, 3, 0)
                         .bytes("")
                         .numbers(4, 0)
                         .event(kCoordinatorSays, kRun, 7)
                         .bytes("a")
                         .numbers(80)
                         .event(kToAgent, 9)
                         .event(kToAgent, kAll));
  add("keep_alives", begun()
                         .event(kKeepAlive)
                         .event(kKeepAlive)
                         .event(kToCoordinator, kAll)
                         .event(kLeaseGrant, 2)
                         .event(kLeaseGrant, 1)
                         .event(kToAgent, kAll)
                         .event(kLeaseGrant, 9)
                         .event(kToAgent, kAll));
  add("promises", begun()
                      .event(kKeepAlive)
                      .event(kKeepAlive)
                      .event(kToCoordinator, kAll)
                      .event(kLeaseGrant, 2)
                      .event(kToAgent, kAll)
                      .event(kLeaseAck, 2, 1, 2)
                      .numbers(3, 4, 9, 2, 1, 0, 1, 0, 1)
                      .numbers(3, 5, 8, 2, 0, 0, 0)
                      .numbers(1, 3, 4, 9, 2, 1, 0, 3, 1, 0, 50)
                      .event(kLeaseAck, 2, 0)
                      .event(kLeaseAck, 9, 1)
                      .event(kToCoordinator, kAll));
  add("refused", begun().event(kRefuse).event(kToAgent, kAll));
  add("rejected_at_once", Writer()
                              .event(kToCoordinator, kAll)
                              .event(kToAgent, kAll)
                              .event(kToCoordinator, kAll)
                              .event(kCoordinatorSays, kRejected, 3)
                              .event(kToAgent, kAll));
  Writer slow;
  joins(slow);
  for (int i = 0; i < 30; ++i) slow.event(kToCoordinator, 7).event(kToAgent, 5);
  add("in_pieces", slow.event(kWelcome, 3, 1));
  add("forged_hello", Writer()
                          .event(kForgeToCoordinator, 1, 0, 0, 0)
                          .bytes(std::string("\0\1\0\0\0\0\0\1j", 9))
                          .event(kToCoordinator, kAll));
  for (const int place : {0, 3, 5, 10, 20}) {
    add("patched_hello_" + std::to_string(place),
        Writer().event(kPatchToCoordinator, place, 1, 0).event(kToCoordinator, kAll).event(kToAgent, kAll));
    add("patched_challenge_" + std::to_string(place), Writer()
                                                          .event(kToCoordinator, kAll)
                                                          .event(kPatchToAgent, place, 1, 0)
                                                          .event(kToAgent, kAll)
                                                          .event(kToCoordinator, kAll));
    add("patched_proof_" + std::to_string(place), Writer()
                                                      .event(kToCoordinator, kAll)
                                                      .event(kToAgent, kAll)
                                                      .event(kPatchToCoordinator, place, 1, 0)
                                                      .event(kToCoordinator, kAll));
  }
  add("forged_news", begun()
                         .event(kForgeToCoordinator, 21, 13, 3, 4)
                         .bytes(std::string(4, '\0'))
                         .event(kToCoordinator, kAll)
                         .event(kForgeToCoordinator, 19, 11, 9, 4)
                         .bytes("")
                         .event(kToCoordinator, kAll));
  add("forged_orders", begun()
                           .event(kForgeToAgent, 50, 11, 1, 4)
                           .bytes(std::string(3, '\0'))
                           .event(kForgeToAgent, 48, 11, 3, 9)
                           .bytes("")
                           .event(kForgeToAgent, 49, 11, 3, 8)
                           .bytes("")
                           .event(kToAgent, kAll)
                           .event(kForgeToAgent, 127, 11, 3, 0)
                           .bytes("")
                           .event(kToAgent, kAll));
  add("too_many_failures",
      begun().event(kForgeToCoordinator, 21, 11, 3, 4).bytes(std::string("\0\0\0\x41", 4)).event(kToCoordinator, kAll));
  add("senseless_timeout", Writer()
                               .event(kToCoordinator, kAll)
                               .event(kToAgent, kAll)
                               .event(kToCoordinator, kAll)
                               .event(kForgeToAgent, 4, 11, 3, 0)
                               .bytes(std::string(8, '\0'))
                               .event(kToAgent, kAll));
  for (const std::string stranger : {"GET / HTTP/1.1\r\n", "SSH-2.0-x", "\x16\x03\x01\x02", "HTTP/1.1 400"}) {
    add("stranger_" + stranger.substr(0, 3) + std::to_string(stranger.size()),
        Writer(kNoSecret).event(kRawToAgent).bytes(stranger).event(kToAgent, kAll));
  }
  add("guardian", Writer().event(kGuardian, 255, 0).event(kGuardian, 30, 1).event(kGuardian, 60, 0x80));
  add("guardian_of_another_secret", Writer(kOtherSecret).event(kGuardian, 255, 0));
  return seeds;
}

}  // namespace
}  // namespace elastic

int main(int count, char** arguments) {
  return elastic::seed_files::run("protocol_seeds", elastic::make_seeds(), count, arguments);
}
