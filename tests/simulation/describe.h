#pragma once

#include <string>

#include "rendezvous/agent/agent.h"

// Events and effects in words, for a person who reads a trace. An empty text means that the trace leaves it out.
namespace elastic::simulation {

std::string text(const agent::AgentEvent& event);
std::string text(const agent::Effect& effect);
std::string text(const protocol::AgentMessage& message);
std::string text(const protocol::CoordinatorMessage& message);
std::string text(const protocol::JobResult& job_result);

}  // namespace elastic::simulation
