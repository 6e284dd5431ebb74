#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "health/hang/hang_facts.h"

// What the ports of InfiniBand and RoCE say, as facts about a hang.
namespace elastic::hang {

// A port at one moment, as sysfs has it.
struct LinkSample {
  std::string device = {};  // "mlx5_0"
  int port = 0;
  std::string state = {};                              // "ACTIVE"; empty: not known
  std::string phys_state = {};                         // "LinkUp"
  std::string link_layer = {};                         // "InfiniBand", "Ethernet"
  std::map<std::string, std::uint64_t> counters = {};  // those of kDataCounters and kErrorCounters that it has
};

// What a port has sent and received, in units of 4 bytes.
inline constexpr const char* kSentCounter = "port_xmit_data";
inline constexpr const char* kReceivedCounter = "port_rcv_data";
// What counts packets that were lost or damaged, or links that were: in the port's directory counters/, or in
// hw_counters/ (those of Mellanox's driver; RoCE has these only). What rises in a network without faults is not here.
inline constexpr const char* kErrorCounters[] = {"symbol_error",
                                                 "link_error_recovery",
                                                 "link_downed",
                                                 "port_rcv_errors",
                                                 "port_rcv_remote_physical_errors",
                                                 "port_rcv_constraint_errors",
                                                 "port_xmit_constraint_errors",
                                                 "port_xmit_discards",
                                                 "local_link_integrity_errors",
                                                 "excessive_buffer_overrun_errors",
                                                 "local_ack_timeout_err",
                                                 "packet_seq_err",
                                                 "rnr_nak_retry_err",
                                                 "req_transport_retries_exceeded",
                                                 "rx_icrc_encapsulated"};

// What is to be looked at, the inactive ports first: one "is DOWN (Polling)", another "has counted symbol_error 12 more
// within 2 s". `first` and `second` are looks at all ports of a node. A port that somebody has turned off is left out,
// and so is an inactive one of a kind of link of which none is active, where those of another kind are: a node that
// uses InfiniBand may have idle Ethernet ports.
std::vector<LinkFault> link_faults_of(std::span<const LinkSample> first, std::span<const LinkSample> second,
                                      std::int64_t ms_between);

// For people, one for each port: "port 1 of mlx5_0: ACTIVE (LinkUp), InfiniBand; 0 bytes sent and 0 received within 2
// s; link_downed 3". Of the errors those that are not 0, counted since the driver was loaded or they were reset.
std::vector<std::string> link_lines(std::span<const LinkSample> first, std::span<const LinkSample> second,
                                    std::int64_t ms_between);

}  // namespace elastic::hang
