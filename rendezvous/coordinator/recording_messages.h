#pragma once

#include <cstdint>
#include <string>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/coordinator/recording.h"
#include "rendezvous/protocol/messages.h"

// Events and messages of a coordinator in words, for people. Each is a clause on one line. Texts that come from other
// processes are made printable, and shortened if they are very long.
namespace elastic::coordinator {

// "joins with 2 workers of role default ...", to follow the name of the node; "a deadline has passed" if no node is
// involved.
std::string in_words(const Event& event);
// "stop the workers of round 0", to follow the name of the node that gets the message.
std::string in_words(const protocol::CoordinatorMessage& message);
// "forming", "rebuilding", ...
std::string in_words(Coordinator::State state);
std::string in_words(const protocol::Verdict& verdict);
// "+12.345 s"
std::string time_in_words(std::int64_t ms);

}  // namespace elastic::coordinator
