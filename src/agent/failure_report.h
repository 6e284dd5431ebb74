#pragma once

#include <string>

#include "rendezvous/protocol/messages.h"

namespace elastic::agent {

// What the workers of a failed job left on disk; empty where there is nothing.
struct LogPlaces {
  std::string error_file;  // of the first failure, written by torch's @record
  std::string directory;   // of the whole run
};

// What the user is told when a job has not succeeded, several lines with a line end each: the first
// failure, the others, those that only were stopped because of it, and where to read more. Empty for a
// job that succeeded.
std::string failure_report(const protocol::Verdict& verdict, int max_restarts, const LogPlaces& places);

}  // namespace elastic::agent
