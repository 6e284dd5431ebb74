#pragma once

#include "src/base/signals.h"

// The numbers of the signals that an agent decides about. What is pure includes no <csignal>.
namespace elastic::agent {

inline const int kSigTerm = *signal_number("TERM");
inline const int kSigKill = *signal_number("KILL");
inline const int kSigInt = *signal_number("INT");
inline const int kSigHup = *signal_number("HUP");
inline const int kSigQuit = *signal_number("QUIT");
inline const int kSigStop = *signal_number("STOP");
inline const int kSigTstp = *signal_number("TSTP");
inline const int kSigCont = *signal_number("CONT");

}  // namespace elastic::agent
