#include "src/report/hang.h"

#include <algorithm>

#include "src/base/json_archive.h"
#include "src/report/bounded_json.h"

namespace elastic::report {
namespace {

constexpr std::size_t kTextBytes = 4096;

}  // namespace

std::int64_t ms_of(double seconds) {
  constexpr double kYear = 366.0 * 24 * 3600;
  return static_cast<std::int64_t>(std::clamp(seconds, 0.0, kYear) * 1000 + 0.5);
}

Result<Hang> hang_of(std::string_view text) {
  const auto json = parse_bounded_json(text, kHangTextBytes, "the report of a hang");
  if (!json) return std::unexpected(json.error());
  Hang hang;
  const std::string wrong = read_json(*json, hang, JsonForm::kPlain, kTextBytes);
  if (json->as_object() == nullptr) return fail("cannot read the report of a hang", wrong);
  return hang;
}

std::string hang_json(const Hang& hang, std::string_view run_id) {
  return Json::object()
             .set("version", kHangJsonVersion)
             .set("run_id", run_id)
             .set("hang", write_json(hang, JsonForm::kPlain))
             .dump(2) +
         "\n";
}

}  // namespace elastic::report
