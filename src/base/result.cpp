#include "src/base/result.h"

#include <cstring>

#include "src/base/text.h"

namespace elastic {

std::string Error::text() const {
  std::string out = what;
  if (!reason.empty()) out += (out.empty() ? "" : ": ") + reason;
  if (!remedy.empty()) out += (out.empty() ? "" : "; ") + remedy;
  return out;
}

std::string errno_text(int error_number) {
  const char* text = strerrordesc_np(error_number);
  return text != nullptr ? text : format("error number {}", error_number);
}

std::unexpected<Error> fail_errno(std::string what, int error_number, std::string remedy) {
  return fail(std::move(what), errno_text(error_number), std::move(remedy));
}

}  // namespace elastic
