#include "health/host/hook.h"

#include <doctest/doctest.h>

using namespace elastic;
using namespace elastic::health;

namespace {

using Findings = std::vector<Finding>;

Findings exited(int code, std::string_view output) {
  return hook_findings("check.sh", {.status = {.code = code}}, output);
}

const char* const kRemedy = "run it by hand on this host";

}  // namespace

TEST_CASE("a hook that ends well and says nothing in JSON has found nothing") {
  CHECK(exited(0, "").empty());
  CHECK(exited(0, "all is well\n\n").empty());
  CHECK(exited(0, "{\"level\":\"info\",\"message\":\"a line of a log\"}\n").empty());
  CHECK(exited(0, "{\"findings\":[]}").empty());
}

TEST_CASE("the last line that is a JSON object of findings is taken over, whatever the exit status") {
  const std::string output =
      "{\"severity\":\"fatal\",\"what\":\"an earlier one\"}\n"
      "  {\"severity\":\"warning\",\"what\":\"ECC errors: 12\",\"where\":\"GPU 3\",\"remedy\":\"drain it\"} \r\n"
      "{\"elapsed_ms\":3}\nbye\n";
  const Findings wanted = {{Severity::kWarning, "ECC errors: 12", "GPU 3", "drain it"}};
  CHECK(exited(0, output) == wanted);
  CHECK(exited(3, output) == wanted);
  CHECK(exited(0, R"({"findings":[{"severity":"note","what":"a","where":"b"},7,{"severity":"fatal","what":"c"}]})") ==
        Findings{{Severity::kNote, "a", "b", ""}, {Severity::kFatal, "c", "check.sh", ""}});
}

TEST_CASE("an exit status without a finding is fatal, with the last line of what the hook wrote") {
  CHECK(exited(3, "looking\nno driver\n\n") ==
        Findings{{Severity::kFatal, "the health hook check.sh ended with 3: no driver", "check.sh", kRemedy}});
  CHECK(exited(1, "") == Findings{{Severity::kFatal, "the health hook check.sh ended with 1", "check.sh", kRemedy}});
  CHECK(exited(1, "{\"findings\":[]}").size() == 1);
  CHECK(exited(1, "{\"findings\":[]}").front().severity == Severity::kFatal);
}

TEST_CASE("a hook that was killed or took too long is fatal, with and without findings") {
  const Findings killed = hook_findings("check.sh", {.status = {.signal = 11}}, "half a\x1b line");
  CHECK(killed == Findings{{Severity::kFatal, "the health hook check.sh was killed by SIGSEGV: half a\\x1b line",
                            "check.sh", kRemedy}});
  const Findings late = hook_findings("check.sh", {.timed_out_after_s = 30}, "{\"severity\":\"note\",\"what\":\"a\"}");
  CHECK(late == Findings{{Severity::kNote, "a", "check.sh", ""},
                         {Severity::kFatal, "the health hook check.sh did not end in 30 s", "check.sh", kRemedy}});
}

TEST_CASE("a hook that could not be started is fatal") {
  CHECK(hook_findings("check.sh", {.why_not_started = "no process is left"}, "") ==
        Findings{
            {Severity::kFatal, "the health hook check.sh was not started: no process is left", "check.sh", kRemedy}});
}

TEST_CASE("a severity that is none of ours is a warning that says so, and a finding without words is one") {
  const Findings dire = exited(0, R"({"severity":"dire","what":"it is hot"})");
  REQUIRE(dire.size() == 1);
  CHECK(dire[0].severity == Severity::kWarning);
  CHECK(dire[0].what == "it is hot (its severity \"dire\" is not note, warning or fatal)");
  const Findings silent = exited(0, R"({"severity":"fatal"})");
  REQUIRE(silent.size() == 1);
  CHECK(silent[0].severity == Severity::kFatal);
  CHECK(silent[0].what == "the health hook check.sh does not say what it has found");
}

TEST_CASE("what a hook may write is bounded: depth, members, findings, texts and the whole") {
  CHECK(exited(0, std::string(60000, '{')).empty());
  CHECK(exited(0, R"({"severity":"fatal","x":)" + std::string(60000, '[')).empty());
  std::string wide = R"({"severity":"fatal")";
  for (int i = 0; i < 100; ++i) wide += ",\"" + std::to_string(i) + "\":1";
  CHECK(exited(0, wide + "}").empty());
  CHECK(exited(0, R"({"severity":"fatal","what":{"deep":[1]},"where":3})").size() == 1);

  std::string many = R"({"findings":[{"severity":"note"})";
  for (int i = 0; i < 100; ++i) many += R"(,{"severity":"note"})";
  CHECK(exited(0, many + "]}").size() == kHookFindings);

  const std::string text(10000, 'x');
  const Findings longest =
      exited(0, R"({"severity":"note","what":")" + text + R"(","where":"\n","remedy":"\u001b[2J"})");
  REQUIRE(longest.size() == 1);
  CHECK(longest[0].what == text.substr(0, kHookTextBytes) + "...");
  CHECK(longest[0].where == "\\x0a");
  CHECK(longest[0].remedy == "\\x1b[2J");

  const std::string fatal = "{\"severity\":\"fatal\",\"what\":\"a\"}\n";
  CHECK(exited(0, fatal + std::string(kHookOutputBytes - fatal.size(), 'x')).size() == 1);
  CHECK(exited(0, fatal + std::string(kHookOutputBytes, 'x')).empty());
  CHECK(exited(1, std::string(kHookOutputBytes, '\n')).size() == 1);
  CHECK(hook_findings(std::string(5000, 'c'), {.status = {.code = 1}}, "").front().what.size() < 200);
}
