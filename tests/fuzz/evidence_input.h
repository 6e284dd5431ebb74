#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// The input of the evidence fuzzer: a byte that says which reader it is for (modulo kReaders), one byte of settings,
// and what another program may have written.
namespace elastic::evidence_input {

enum Reader : std::uint8_t {
  kPickle,      // a dump of the flight recorder; settings: where it is cut off, in 256ths
  kJson,        // the same as JSON
  kRasReports,  // two reports with a 0 byte between
  kRasAnswers,  // what RAS sends; settings: the size of the pieces, 0: all at once
  kProcess,     // stat, status, wchan, syscall, io, and the same again, with a 0 byte between each; settings: ticks
  kStore,       // keys, one a line; a 0 byte; keys that are waited for; settings: the world's size
  kNvrx,        // what a rank sends to NVRx's monitor; settings: the size of the pieces, 0: all at once
  kTimers,      // requests of file timers, a line each; settings: the size of the pieces, 0: one byte
  kControl,     // what a worker's control server answers; settings: the size of the pieces, 0: all at once
  kReaders,
};

inline std::string make(Reader reader, std::uint8_t settings, std::string_view content) {
  return std::string{static_cast<char>(reader), static_cast<char>(settings)}.append(content);
}

}  // namespace elastic::evidence_input
