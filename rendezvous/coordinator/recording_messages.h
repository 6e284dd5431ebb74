#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/recording.h"
#include "rendezvous/protocol/messages.h"

// Events and messages of a coordinator in words, for people. Clauses on one line; texts of others in them are
// printable, and cut where they are very long.
namespace elastic::coordinator {

// "joins with 2 workers of role default ..." of who has said it; "the time has come" where nobody has.
std::string in_words(const Event& event);
// "stop the workers of round 0", to whom it is sent.
std::string in_words(const protocol::CoordinatorMessage& message);
// "forming", "rebuilding", ...
std::string in_words(Coordinator::State state);
std::string in_words(const protocol::Verdict& verdict);
// "+12.345 s"
std::string time_in_words(std::int64_t ms);

}  // namespace elastic::coordinator
