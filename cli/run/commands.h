#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/http_place.h"
#include "rendezvous/coordinator/coordinator_events.h"
#include "rendezvous/transport/rendezvous_settings.h"

namespace elastic::process {
struct InheritedState;
}

// What elastic-run does instead of running a job. Each of these functions returns the exit status.
namespace elastic::run {

// Serves one worker store on all addresses until SIGTERM, SIGINT, SIGHUP or SIGQUIT arrives; port 0: a free one. Prints
// the port to stderr. Returns 0 after a signal, 1 where the port cannot be opened.
int serve_store(std::uint16_t port);

// Serves the coordinator at the endpoint, for any number of jobs, until one of these signals arrives. Returns 0, or 1
// where the port cannot be opened.
int serve_coordinator(const transport::RendezvousSettings& rendezvous);

// Prints to stdout what a recorded coordinator was told and what it decided, from the file ("-": stdin). A recording
// that was cut off is replayed as far as it goes. Returns 0, or 2 with a message that names file and line if it is not
// a recording, or a line of it is wrong.
int print_replay(const std::string& file);

// Prints the failure report of an earlier run to stdout, from the failure.json in a run's directory, or from those in
// its direct subdirectories if it has none itself (--log-dir). Several reports are those of the nodes of one job.
// `html_file`, unless it is empty, gets the report as a page instead; "-" is stdout. Returns 0, or 2 with a message if
// there is no report or it cannot be read.
int print_report(const std::vector<std::string>& directories, const std::string& html_file);

// Which elastic-run to ask for its status, and how to show it.
struct StatusRequest {
  HttpPlace place;
  std::string key = {};     // made of the job's secret; empty: none is sent
  std::string run_id = {};  // the job to show; empty: all
  bool watch = false;       // ask again every 2 s, until SIGINT or SIGTERM
  bool json = false;        // print the JSON document instead of a page
};

// Prints the status of an elastic-run to stdout. Returns 0, or 1 if there is no answer, with the reason on stderr. With
// `watch` only the first attempt may end so: later ones report the error and try again.
int print_status(const StatusRequest& request);

// What --stacks is to look at.
struct StacksRequest {
  int pid = 0;                          // of this host: an elastic-run, whose workers are meant, or any other process
  std::optional<HttpPlace> place = {};  // instead: of a job, all workers of which are meant
  std::string secret = {};              // the job's; empty: the job has none
  std::string run_id = {};              // the job; empty: the only one there
  std::string input = {};               // the flag as it was typed, for errors
  bool json = false;                    // print the JSON document instead of a page
};

// Prints the stacks of these processes. Returns 0, or 1 with the reason on stderr if no stack could be read.
int print_stacks(const StacksRequest& request, const process::InheritedState& inherited);

// An operator's order (--drain, --stop), and where to send it.
struct OrderRequest {
  HttpPlace place = {};
  std::string secret = {};  // the job's; empty: the job has none
  std::string run_id = {};  // the job; empty: the only one there
  coordinator::OperatorOrder order = {};
  std::string input = {};  // the flag as it was typed, for errors
};

// Sends the order to an elastic-run, and prints to stdout what will happen. Returns 0 if the order was accepted, or 1
// with the reason on stderr.
int give_order(const OrderRequest& request);

}  // namespace elastic::run
