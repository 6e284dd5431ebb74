#include "src/base/program_name.h"

#include "src/base/text.h"

namespace elastic {
namespace {

constexpr std::string_view kOurs = "elastic-run";
// The launchers whose command lines we take.
constexpr std::string_view kOthers[] = {"torchrun", "dlrover-run"};

std::string_view name = kOurs;

}  // namespace

std::string_view program_name() { return name; }

void set_program_name(std::string_view started_as) {
  const std::string_view file = started_as.substr(started_as.rfind('/') + 1);  // npos + 1 == 0
  name = kOurs;
  for (const std::string_view other : kOthers) {
    if (file == other) name = other;
  }
}

std::string in_our_name(std::string text) {
  if (name == kOurs) return text;
  const std::string spelled(name);
  text = replace_all(std::move(text), kOurs, spelled);
  return replace_all(std::move(text), "elastic_run", replace_all(spelled, "-", "_"));
}

}  // namespace elastic
