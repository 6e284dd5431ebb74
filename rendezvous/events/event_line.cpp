#include "rendezvous/events/event_line.h"

#include "rendezvous/events/limits.h"
#include "src/base/text.h"
#include "src/base/wall_time.h"

namespace elastic::events {
namespace {

// A line that is too long has its texts cut to this many bytes, and its lists to this many elements: the first cut that
// is enough.
constexpr std::size_t kCuts[] = {1024, 256, 64, 16, 0};

Json cut(const Json& value, std::size_t most) {
  if (const auto* text = value.as_string()) return Json(text->substr(0, most));
  if (const auto* array = value.as_array()) {
    Json out = Json::array();
    for (std::size_t i = 0; i < array->size() && i < most; ++i) out.push(cut((*array)[i], most));
    return out;
  }
  if (const auto* object = value.as_object()) {
    Json out = Json::object();
    for (const auto& [name, member] : *object) out.set(name, cut(member, most));
    return out;
  }
  return value;
}

}  // namespace

std::string EventLines::line(std::string_view level, std::string_view event, std::string_view text, const Json& fields,
                             Moment moment) {
  if (event == "round_prepared") {
    node_rank_ = *fields.find("node_rank");
    round_ = *fields.find("round");
    restart_count_ = *fields.find("restart_count");
  }
  Json whole = Json::object();
  whole.set("event", event)
      .set("time", utc_time_us(moment.unix_us))
      .set("monotonic_ms", moment.monotonic_ms)
      .set("level", level)
      .set("job", launch_.job)
      .set("host", launch_.host)
      .set("launcher", launch_.launcher)
      .set("node", node_rank_)
      .set("round", round_)
      .set("restart_count", restart_count_)
      .set("message", text);
  // The coordinator's events may name another job, which must not replace this launcher's.
  for (const auto& [name, value] : *fields.as_object()) whole.set(name == "job" ? "of_job" : name, value);
  std::string made = whole.dump() + "\n";
  for (const std::size_t most : kCuts) {
    if (made.size() <= limits::kEventLineBytes) break;
    Json shorter = Json::object();
    for (const auto& [name, value] : *whole.as_object()) {
      const bool is_key = name == "event" || name == "time" || name == "level";
      shorter.set(name, is_key ? value : cut(value, most));
    }
    made = shorter.set("cut", true).dump() + "\n";
  }
  return made;
}

}  // namespace elastic::events
