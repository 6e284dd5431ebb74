#include "health/progress/nvrx_session.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "health/progress/limits.h"
#include "health/progress/nvrx_test_support.h"

using namespace elastic;
using namespace elastic::progress;
using namespace elastic::progress::test;

namespace {

const std::vector<std::string> kSections = {"setup", "step"};

// A connection, and all that was said on it.
struct Talk {
  NvrxSession session{kSections};
  std::vector<NvrxWord> words = {};

  NvrxSession::Answer say_bytes(const std::string& sent) {
    return session.feed(sent, [this](const NvrxWord& word) { words.push_back(word); });
  }
  std::string say(const std::string& pickle) { return say_bytes(framed(pickle)).bytes; }
};

std::string section(const std::string& name) {
  std::string message = kOpenStep;
  const std::string usual = "\214\004step";
  const std::string wanted = "\214" + std::string(1, static_cast<char>(name.size())) + name;
  return message.replace(message.find(usual), usual.size(), wanted);
}

}  // namespace

TEST_CASE("a client is answered message by message, and its heartbeats are progress") {
  Talk talk;
  CHECK(talk.say(kAuthkey) == nvrx::ok());
  CHECK(talk.say(kInit) == nvrx::ok_with_settings(kSections));
  CHECK(talk.words.empty());
  CHECK(talk.say(kHeartbeat) == nvrx::ok());
  CHECK(talk.say(kTimeouts) == nvrx::ok());
  CHECK(talk.words == std::vector<NvrxWord>{{{}, Phase::kUnknown}});
}

TEST_CASE("sections are progress, and give its phase and its step") {
  Talk talk;
  talk.say(kInit);
  CHECK(talk.say(section("setup")) == nvrx::ok());
  CHECK(talk.say(kCloseAll) == nvrx::ok());
  CHECK(talk.say(kOpenStep118) == nvrx::ok());
  CHECK(talk.say(kCloseStep) == nvrx::ok());
  CHECK(talk.words ==
        std::vector<NvrxWord>{
            {{}, Phase::kSetup, "setup"}, {{}, Phase::kUnknown}, {118, Phase::kTrain, "step"}, {{}, Phase::kTrain}});
}

TEST_CASE("a section that is not known, open already, or not open is refused as NVRx's monitor does") {
  Talk talk;
  CHECK(talk.say(kOpenStep) == nvrx::error("InitMsg has to come first"));
  talk.say(kInit);
  CHECK(talk.say(kCloseStep) == nvrx::error("section 'step' is not open"));
  CHECK(talk.say(kOpenStep) == nvrx::ok());
  CHECK(talk.say(kOpenStep) == nvrx::error("section 'step' is already open"));
  CHECK(talk.say(section("upload")) == nvrx::error("section 'upload' is not among those of --progress-sections"));
  CHECK(talk.words.size() == 1);
  // The client begins again: nothing is open.
  talk.say(kInit);
  CHECK(talk.say(kOpenStep) == nvrx::ok());
}

TEST_CASE("a conversation means the same in whatever pieces it arrives") {
  const std::string all = framed(kAuthkey) + framed(kInit) + framed(kOpenStep) + framed(kCloseStep);
  Talk at_once;
  const std::string answers = at_once.say_bytes(all).bytes;
  Talk in_pieces;
  std::string in_pieces_answers;
  for (const char byte : all) in_pieces_answers += in_pieces.say_bytes(std::string(1, byte)).bytes;
  CHECK(in_pieces_answers == answers);
  CHECK(in_pieces.words == at_once.words);
}

TEST_CASE("who speaks no NVRx is told so, and what came before is answered") {
  Talk talk;
  const auto answer = talk.say_bytes(framed(kInit) + framed("no pickle") + framed(kHeartbeat));
  CHECK(answer.problem != "");
  CHECK(answer.bytes == nvrx::ok_with_settings(kSections) + nvrx::error(answer.problem));
  CHECK(talk.words.empty());
  Talk long_one;
  CHECK(long_one.say_bytes("GET / HTTP/1.1").problem ==
        "a message of 1195725856 bytes is longer than " + std::to_string(limits::kNvrxMessageBytes));
}

TEST_CASE("names of sections give phases") {
  CHECK(phase_of_section("checkpointing") == Phase::kCheckpoint);
  CHECK(phase_of_section("eval") == Phase::kEval);
  CHECK(phase_of_section("upload") == Phase::kUnknown);
}
