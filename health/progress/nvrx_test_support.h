#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// What NVRx's client 0.4.1 sends under Python 3.11, without the length before it, and how other versions of Python
// pickle an action.
namespace elastic::progress::test {

// A literal with all its bytes, zeros too.
template <std::size_t kSize>
std::string bytes(const char (&literal)[kSize]) {
  return std::string(literal, kSize - 1);
}

// AuthkeyMsg(b'0123456789abcdef0123456789abcdef').
inline const std::string kAuthkey = bytes(
    "\200\004\225q\000\000\000\000\000\000\000\214*nvidia_resiliency_ext.fault_tolerance.data\224\214\012"
    "AuthkeyMsg\224\223\224)\201\224}\224\214\007authkey\224C 0123456789abcdef0123456789abcdef\224sb.");
// InitMsg with RankInfo.
inline const std::string kInit = bytes(
    "\200\004\225\235\000\000\000\000\000\000\000\214*nvidia_resiliency_ext.fault_tolerance.data\224\214"
    "\007InitMsg\224\223\224)\201\224}\224\214\011rank_info\224h\000\214\010RankInfo\224\223\224)\201\224"
    "}\224(\214\013global_rank\224\214\0013\224\214\012local_rank\224K\001\214\004host\224\214\005host0"
    "\224\214\003pid\224Mg\022ubsb.");
// HeartbeatMsg.
inline const std::string kHeartbeat = bytes(
    "\200\004\225\\\000\000\000\000\000\000\000\214*nvidia_resiliency_ext.fault_tolerance.data\224\214"
    "\014HeartbeatMsg\224\223\224)\201\224}\224(\214\004rank\224\214\0013\224\214\005state\224}\224ub.");
// SectionMsg: "step" opens.
inline const std::string kOpenStep = bytes(
    "\200\004\225\204\000\000\000\000\000\000\000\214*nvidia_resiliency_ext.fault_tolerance.data\224\214"
    "\012SectionMsg\224\223\224)\201\224}\224(\214\004rank\224\214\0013\224\214\007section\224\214\004ste"
    "p\224\214\006action\224h\000\214\015SectionAction\224\223\224K\001\205\224R\224ub.");
// SectionMsg: it closes.
inline const std::string kCloseStep = bytes(
    "\200\004\225\204\000\000\000\000\000\000\000\214*nvidia_resiliency_ext.fault_tolerance.data\224\214"
    "\012SectionMsg\224\223\224)\201\224}\224(\214\004rank\224\214\0013\224\214\007section\224\214\004ste"
    "p\224\214\006action\224h\000\214\015SectionAction\224\223\224K\002\205\224R\224ub.");
// SectionMsg: all close.
inline const std::string kCloseAll = bytes(
    "\200\004\225~\000\000\000\000\000\000\000\214*nvidia_resiliency_ext.fault_tolerance.data\224\214\012"
    "SectionMsg\224\223\224)\201\224}\224(\214\004rank\224\214\0013\224\214\007section\224N\214\006action"
    "\224h\000\214\015SectionAction\224\223\224K\003\205\224R\224ub.");
// UpdateConfigMsg: both kinds of limits, a set of names.
inline const std::string kTimeouts = bytes(
    "\200\004\225P\001\000\000\000\000\000\000\214*nvidia_resiliency_ext.fault_tolerance.data\224\214\017"
    "UpdateConfigMsg\224\223\224)\201\224}\224(\214\013hb_timeouts\224h\000\214\021HeartbeatTimeouts\224"
    "\223\224)\201\224}\224(\214\007initial\224G?\370\000\000\000\000\000\000\214\012subsequent\224G@\004"
    "\000\000\000\000\000\000\214\017were_calculated\224\210ub\214\020section_timeouts\224h\000\214\017Se"
    "ctionTimeouts\224\223\224)\201\224}\224(\214\007section\224}\224\214\004step\224G@\010\000\000\000"
    "\000\000\000s\214\016out_of_section\224N\214\023calculated_sections\224\217\224(h\024\220\214\034is_"
    "out_of_section_calculated\224\211ubub.");
// (3, WorkloadControlRequest): exclude this node, "bad GPU".
inline const std::string kExclude = bytes(
    "\200\004\225\221\000\000\000\000\000\000\000K\003\214*nvidia_resiliency_ext.fault_tolerance.data\224"
    "\214\026WorkloadControlRequest\224\223\224)\201\224}\224(\214\006action\224h\000\214\016WorkloadActi"
    "on\224\223\224K\001\205\224R\224\214\013description\224\214\007bad GPU\224ub\206\224.");
// SectionMsg of later clients: "step" opens in iteration 118.
inline const std::string kOpenStep118 = bytes(
    "\200\004\225\220\000\000\000\000\000\000\000\214*nvidia_resiliency_ext.fault_tolerance.data\224\214"
    "\012SectionMsg\224\223\224)\201\224}\224(\214\004rank\224K\003\214\007section\224\214\004step\224"
    "\214\006action\224h\000\214\015SectionAction\224\223\224K\001\205\224R\224\214\011iteration\224Kvub.");

// The message with its length before it, as it goes over the socket.
inline std::string framed(const std::string& pickle) {
  std::string out;
  for (int i = 3; i >= 0; --i) out += static_cast<char>(pickle.size() >> (8 * i) & 0xFF);
  return out + pickle;
}

// A message whose action is pickled in another way than the enum called with 1.
inline std::string with_action(const std::string& message, std::string_view action) {
  const std::string usual = bytes("h\000\214\015SectionAction\224\223\224K\001\205\224R\224");
  std::string out = message;
  return out.replace(out.find(usual), usual.size(), action);
}

}  // namespace elastic::progress::test
