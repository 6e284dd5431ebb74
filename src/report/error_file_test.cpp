#include "src/report/error_file.h"

#include <doctest/doctest.h>

#include "src/base/json.h"

using namespace elastic;
using namespace elastic::report;

namespace {

// An error.json as torch's @record writes it.
constexpr std::string_view kRecorded =
    R"({"message": {"message": "RuntimeError: boom \u00fc", "extraInfo": {"py_callstack": )"
    R"("Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nRuntimeError: boom\n", )"
    R"("timestamp": "1795279603"}}})";

std::string reason(std::string_view text) {
  const auto parsed = parse_error_file(text);
  return parsed ? "" : parsed.error().reason;
}

}  // namespace

TEST_CASE("an error file that torch's @record wrote is read whole") {
  const auto error = parse_error_file(kRecorded);
  REQUIRE(error);
  CHECK(*error == ErrorFile{.message = "RuntimeError: boom ü",
                            .traceback = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
                                         "RuntimeError: boom\n",
                            .timestamp_s = 1795279603});
}

TEST_CASE("an error file with a plain text message is read, with its time if it has one") {
  const auto timed = parse_error_file(R"({"message": "boom", "timestamp": 1795279603})");
  REQUIRE(timed);
  CHECK(*timed == ErrorFile{.message = "boom", .timestamp_s = 1795279603, .plain_message = true});
  CHECK(parse_error_file(R"({"message": "boom"})")->timestamp_s == 0);
}

TEST_CASE("a time in an error file counts as text or number, and what is neither counts as none") {
  const auto at = [](std::string_view time) {
    return parse_error_file(R"({"message": {"extraInfo": {"timestamp": )" + std::string(time) + "}}}")->timestamp_s;
  };
  CHECK(at("\"12\"") == 12);
  CHECK(at("12") == 12);
  CHECK(at("12.75") == 12);
  CHECK(at("\"twelve\"") == 0);
  CHECK(at("null") == 0);
  CHECK(at("-1") == 0);
  CHECK(at("1e300") == 0);
  CHECK(at("\"nan\"") == 0);
  CHECK(at("99999999999999999999999") == 0);
}

TEST_CASE("an error file without a part is read without it") {
  CHECK(parse_error_file(R"({"message": {}})") == ErrorFile{});
  CHECK(parse_error_file(R"({"message": {"message": 5, "extraInfo": "x"}})") == ErrorFile{});
  CHECK(parse_error_file(R"({"message": {"message": "m", "errorCode": -11}})") ==
        ErrorFile{.message = "m", .error_code = -11});
}

TEST_CASE("an error file that cannot be understood says why") {
  CHECK(reason("") == "it is empty");
  CHECK(reason(" \n") == "it is empty");
  CHECK(reason("[]") == "it is not a JSON object");
  CHECK(reason("{}") == "it has no \"message\"");
  CHECK(reason(R"({"message": 3})") == "its \"message\" is neither a string nor an object");
  CHECK(reason(R"({"message": "cut o)").contains("parse error"));
  CHECK(reason(std::string("\x7f"
                           "ELF\0\1\2\xff\xfe",
                           9))
            .contains("parse error"));
  CHECK(reason(R"({"message": "boom", "timestamp": 1e999})").size() > 10);
}

TEST_CASE("an error file that would cost too much to read is refused by its bound") {
  CHECK(reason(std::string(kErrorFileBytes + 1, ' ')) == "it is longer than 1048576 bytes");
  const std::string deep(500'000, '[');
  CHECK(reason(deep + std::string(500'000, ']')) == "it is nested deeper than 64 levels");
  CHECK(reason(deep) == "it is nested deeper than 64 levels");
  std::string wide = "{";
  for (int i = 0; i < 100'000; ++i) wide += "\"" + std::to_string(i) + "\":1,";
  CHECK(reason(wide + "\"message\":\"x\"}") == "an object in it has more than 1000 members");
  // Brackets and colons within a text are text.
  const std::string brackets = std::string(5000, '[') + std::string(5000, ':');
  CHECK(parse_error_file(R"({"message": ")" + brackets + "\"}")->message == brackets);
}

TEST_CASE("the reason that an error file is refused is short and printable, whatever stands in it") {
  const std::string text = "{\"message\": \"" + std::string(100'000, 'a') + "\x01";
  CHECK_FALSE(reason(text).empty());
  CHECK(reason(text).size() < 250);
  CHECK_FALSE(reason(text).contains('\x01'));
}

TEST_CASE("bytes that are not UTF-8 and lone surrogates do not cost the rest of an error file") {
  CHECK(parse_error_file("{\"message\": \"a\xff"
                         "b\"}")
            ->message ==
        "a\xef\xbf\xbd"
        "b");
  CHECK(parse_error_file(R"({"message": "caf\udce9"})")->message == "caf\xef\xbf\xbd");
  CHECK(parse_error_file(R"({"message": "\ud83d\ude00 \ud83d \\ud83d"})")->message == "😀 \xef\xbf\xbd \\ud83d");
  CHECK(parse_error_file(R"({"message": "\ud83d\ud83d\ude00"})")->message == "\xef\xbf\xbd😀");
}

TEST_CASE("the launcher's own error file is its worker's with the worker's exit code") {
  const auto copy = error_file_for_parent(kRecorded, -11);
  REQUIRE(copy);
  const auto error = parse_error_file(*copy);
  REQUIRE(error);
  CHECK(error->error_code == -11);
  CHECK(error->message == "RuntimeError: boom ü");
  CHECK(error->traceback == parse_error_file(kRecorded)->traceback);
  CHECK(Json::parse(*copy, "copy")->find("message")->find("extraInfo")->find("timestamp")->as_string() != nullptr);
}

TEST_CASE("the launcher's own error is in the form that it reads itself") {
  const auto read = parse_error_file(error_file_of_launcher("the job was \"stopped\"", 1795279603));
  REQUIRE(read.has_value());
  CHECK(*read == ErrorFile{.message = "the job was \"stopped\"",
                           .traceback = "the job was \"stopped\"\n",
                           .timestamp_s = 1795279603});
}

TEST_CASE("no exit code is put where torch puts none") {
  CHECK_FALSE(parse_error_file(*error_file_for_parent(kRecorded, 0))->error_code);
  CHECK(*error_file_for_parent(R"({"message": "boom", "timestamp": 5})", 1) == R"({"message":"boom","timestamp":5})");
  CHECK(error_file_for_parent("{}", 1).error().reason == "it has no \"message\"");
}

TEST_CASE("only the whole text of an exception, as @record writes it, is a whole record") {
  CHECK(is_whole_record(kRecorded));
  for (std::size_t bytes = 0; bytes < kRecorded.size(); ++bytes)
    CHECK_FALSE(is_whole_record(kRecorded.substr(0, bytes)));
  CHECK_FALSE(is_whole_record(R"({"message": "boom", "timestamp": 1795279603})"));
  CHECK_FALSE(is_whole_record(R"({"message": {"message": "boom"}})"));
  CHECK_FALSE(is_whole_record(R"({"message": {"message": "boom", "extraInfo": {"py_callstack": "Traceback"}}})"));
}
