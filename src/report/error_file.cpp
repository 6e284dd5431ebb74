#include "src/report/error_file.h"

#include <utility>

#include "src/base/text.h"
#include "src/report/bounded_json.h"

namespace elastic::report {
namespace {

constexpr std::int64_t kLastSecond = 253'402'300'799;  // the end of the year 9999

Result<Json> read(std::string_view text) {
  auto json = parse_bounded_json(text, kErrorFileBytes, "the error file");
  if (!json) return json;
  if (json->as_object() == nullptr) {
    return fail("cannot read the error file", "it is not a JSON object");
  }
  const Json* message = json->find("message");
  if (message == nullptr) return fail("cannot read the error file", "it has no \"message\"");
  if (message->as_string() == nullptr && message->as_object() == nullptr) {
    return fail("cannot read the error file", "its \"message\" is neither a string nor an object");
  }
  return json;
}

}  // namespace

Result<ErrorFile> parse_error_file(std::string_view text) {
  const auto json = read(text);
  if (!json) return std::unexpected(json.error());
  const Json& message = *json->find("message");
  ErrorFile out;
  if (const std::string* plain = message.as_string()) {
    out.plain_message = true;
    out.message = *plain;
    out.timestamp_s = int_member(*json, "timestamp", 0, 0, kLastSecond);
    return out;
  }
  out.message = message.text_or_empty("message");
  if (const Json* extra = message.find("extraInfo")) {
    out.traceback = extra->text_or_empty("py_callstack");
    out.timestamp_s = int_member(*extra, "timestamp", 0, 0, kLastSecond);
  }
  if (message.find("errorCode") != nullptr) {
    const std::int64_t code = int_member(message, "errorCode", INT64_MIN, INT32_MIN, INT32_MAX);
    if (code != INT64_MIN) out.error_code = code;
  }
  return out;
}

bool is_whole_record(std::string_view text) {
  const auto file = parse_error_file(text);
  return file && !file->plain_message && !file->message.empty() && !file->traceback.empty() && file->timestamp_s > 0;
}

Result<std::string> error_file_for_parent(std::string_view text, int python_code) {
  auto json = read(text);
  if (!json) return std::unexpected(json.error());
  const Json* message = json->find("message");
  if (python_code != 0 && message->as_object() != nullptr) {
    Json changed = *message;
    changed.set("errorCode", python_code);
    json->set("message", std::move(changed));
  }
  return json->dump();
}

std::string error_file_of_launcher(const std::string& message, std::int64_t timestamp_s) {
  Json extra = Json::object();
  extra.set("py_callstack", message + "\n").set("timestamp", format("{}", timestamp_s));
  Json said = Json::object();
  said.set("message", message).set("extraInfo", std::move(extra));
  return Json::object().set("message", std::move(said)).dump();
}

}  // namespace elastic::report
