#pragma once

#include <memory>

#include "cli/run/on_event.h"
#include "rendezvous/events/node_event_log.h"
#include "rendezvous/protocol/messages.h"

// The settings of each part of a launcher, composed of those of the launch.
namespace elastic::run {

struct CheckRunnerSettings;
struct EvidenceSettings;
struct LaunchSettings;
struct ReportSettings;

CheckRunnerSettings check_settings(const LaunchSettings& settings);
EvidenceSettings evidence_settings(const LaunchSettings& settings);
// What this node tells the coordinator of HCCL's ports, of which it tries all now; null where --training-port does not
// act.
std::shared_ptr<const protocol::TrainingPorts> training_ports(const LaunchSettings& settings);

ReportSettings report_settings(const LaunchSettings& settings);
OnEvent::Settings on_event_settings(const LaunchSettings& settings);
events::NodeEventLog::Settings node_event_log_settings(const LaunchSettings& settings);

}  // namespace elastic::run
