#pragma once

#include <expected>
#include <string>
#include <utility>

namespace elastic {

// Why something failed, in the three parts that a message needs.
struct Error {
  std::string what;    // what was tried, on what: "cannot listen on port 29500"
  std::string reason;  // why it failed: "address already in use by process 4711 (python)"
  std::string remedy;  // what to do about it: "end that process or choose another --master-port"

  // "what: reason; remedy", without the parts that are empty.
  std::string text() const;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// Makes the failure of a Result or Status.
inline std::unexpected<Error> fail(std::string what, std::string reason, std::string remedy = {}) {
  return std::unexpected<Error>(Error{std::move(what), std::move(reason), std::move(remedy)});
}

// Makes the failure of a system call: the reason is the text of `error_number` (an errno).
std::unexpected<Error> fail_errno(std::string what, int error_number, std::string remedy = {});

// The text of an errno value, independent of the locale: "No such file or directory".
std::string errno_text(int error_number);

}  // namespace elastic
