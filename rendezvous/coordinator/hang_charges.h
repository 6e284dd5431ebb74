#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "health/hang/hang_verdict.h"
#include "rendezvous/coordinator/limits.h"
#include "rendezvous/protocol/message_parts.h"
#include "src/base/fields.h"

namespace elastic::coordinator {

// What the hangs of a job have cost: how many there were, which nodes were charged with them, and where a rank of each
// stood. It decides what follows from a further one. Hangs have a budget of their own beside --max-restarts.
class HangCharges {
 public:
  // A node that was charged with a hang.
  struct Charge {
    std::string node;        // membership::Node::identity()
    int times = 0;           // 1, or 2 for more
    std::string place = {};  // where its rank stood the last time: "load_batch data.py:88"; empty: unknown
    bool operator==(const Charge&) const = default;
    static void fields(auto& io, auto& v) {
      io("node", v.node, protocol::bounds::kName);
      io("times", v.times);
      io("place", v.place, protocol::bounds::kName);
    }
  };
  // What is transferred to the next coordinator.
  struct Record {
    int used = 0;                      // hangs after which another round was to follow
    std::vector<Charge> charges = {};  // those that were charged last, the newest at the end
    bool operator==(const Record&) const = default;
    static void fields(auto& io, auto& v) {
      io("used", v.used);
      io("charges", v.charges, at_most(limits::kHangCharges));
    }
  };

  // A hang with its verdict.
  struct Charged {
    std::string node;        // membership::Node::identity()
    std::string name;        // for messages
    std::string place = {};  // as in Charge
  };
  struct Hang {
    hang::Fault fault = hang::Fault::kNone;
    std::vector<Charged> charged = {};  // each node once
    int nodes = 0;                      // of the round
    int standbys = 0;                   // further nodes, which wait for a place
    int least = 0;                      // with fewer nodes the job has no round
  };
  struct Decision {
    std::vector<std::string> out = {};  // identities of the nodes that leave the job
    std::string fatal = {};             // why the job ends; empty: another round follows
    std::string action = {};            // what is done, as a clause
  };

  // `limit`: so many hangs may be followed by another round.
  void allow(int limit) { limit_ = limit; }
  // Counts a hang, charges the nodes that are at fault for it, and decides:
  //
  //   a rank of another node stood at the same place in an earlier hang    the script is at fault: the job ends
  //   more hangs than the budget has                                       the job ends
  //   hard fault                                                           the node is out
  //   soft fault, and a standby waits                                      the node is out: it is replaced
  //   soft fault, for the second time                                      the node is out
  //   soft fault, and without the node the job had too few                 the node stays
  //   nobody's, or the script's                                            another round with the same nodes
  Decision charge(const Hang& hang);

  int used() const { return used_; }
  int limit() const { return limit_; }
  // The charges that were added last, with limits::kHangChargesBytes at most.
  Record record() const;
  // Takes over the record of an earlier coordinator.
  void restore(const Record& record);

 private:
  Charge& charge_of(const std::string& node);

  int limit_ = 0;
  int used_ = 0;
  std::vector<Charge> charges_;  // at most limits::kHangCharges, the newest at the end
};

}  // namespace elastic::coordinator
