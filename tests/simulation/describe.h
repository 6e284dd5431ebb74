#pragma once

#include <string>

#include "rendezvous/agent/agent.h"

// What happens, in words for a person who reads a trace. Empty: of no interest.
namespace elastic::simulation {

std::string text(const agent::AgentEvent& event);
std::string text(const agent::Effect& effect);
std::string text(const protocol::AgentMessage& message);
std::string text(const protocol::CoordinatorMessage& message);
std::string text(const protocol::Verdict& verdict);

}  // namespace elastic::simulation
