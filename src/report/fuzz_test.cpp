#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/screen_text.h"
#include "src/report/error_file.h"
#include "src/report/failure_json.h"
#include "src/report/html.h"
#include "src/report/likely_cause.h"
#include "src/report/merge.h"
#include "src/report/python_traceback.h"
#include "src/report/summary.h"

using namespace elastic;
using namespace elastic::report;

namespace {

// Pseudo-random numbers that are the same in every run and on every machine.
class Dice {
 public:
  std::size_t below(std::size_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::size_t>(state_ % bound);
  }

 private:
  std::uint64_t state_ = 0x9E3779B97F4A7C15;
};

// Words that the parsers know, which reach more of their code than noise.
constexpr std::string_view kWords[] = {"Traceback (most recent call last):",
                                       "\n",
                                       "  File \"a.py\", line 1\n",
                                       "ValueError: x\n",
                                       "[rank0]: ",
                                       "During handling of the above exception, another exception occurred:",
                                       "  + Exception Group ",
                                       "  | ",
                                       "NVRM: Xid (PCI:0000:3b:00): ",
                                       "79",
                                       "NCCL",
                                       "Last error:",
                                       "CUDA error: ",
                                       "block: [",
                                       "Assertion `",
                                       "DataLoader worker",
                                       "\x1b[31m",
                                       "\r",
                                       "\xff",
                                       "\xe2\x82",
                                       "{",
                                       "}",
                                       "[",
                                       "]",
                                       "\"",
                                       "\\",
                                       "\\ud800",
                                       "\\u",
                                       ":",
                                       ",",
                                       "\"message\"",
                                       "\"extraInfo\"",
                                       "1e999",
                                       "-0",
                                       "null",
                                       "true",
                                       "\"version\": 1",
                                       "\"failures\"",
                                       "\"rounds\"",
                                       ""};

std::string noise(Dice& dice, std::size_t max_pieces) {
  std::string out;
  for (std::size_t left = dice.below(max_pieces); left > 0; --left) {
    if (dice.below(3) == 0) {
      out += static_cast<char>(dice.below(256));
    } else {
      out += kWords[dice.below(std::size(kWords))];
    }
  }
  return out;
}

std::string mutated(Dice& dice, std::string text) {
  for (std::size_t left = 1 + dice.below(8); left > 0; --left) {
    const std::size_t at = dice.below(text.size() + 1);
    switch (dice.below(4)) {
      case 0: text.insert(at, noise(dice, 4)); break;
      case 1: text.erase(at, dice.below(20)); break;
      case 2: text.insert(at, text.substr(dice.below(text.size() + 1), dice.below(60))); break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(dice.below(256));
    }
  }
  return text;
}

FailedWorker noisy_worker(Dice& dice) {
  FailedWorker worker{.rank = static_cast<int>(dice.below(5000)),
                      .exit = {.signal = static_cast<int>(dice.below(70))},
                      .wall_ms = static_cast<std::int64_t>(dice.below(2'000'000'000'000)),
                      .stopped_by_us = dice.below(3) == 0};
  worker.host = noise(dice, 5);
  worker.kernel_log = noise(dice, 20);
  worker.tail.bytes = noise(dice, 60);
  if (dice.below(2) == 0) {
    worker.error = ErrorFile{.message = noise(dice, 5), .traceback = noise(dice, 30)};
  }
  return worker;
}

// Checks that a report that was read can be printed, written, and read again as the same.
void use(const JobReport& report) {
  const std::string summary = failure_summary(report);
  for (const char c : summary) REQUIRE((static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t'));
  const std::string text = failure_json(report);
  REQUIRE(is_utf8(text));
  const auto again = parse_failure_json(text, "x");
  REQUIRE(again);
  REQUIRE(failure_json(*again) == text);
  REQUIRE(is_utf8(html_page(report)));
}

}  // namespace

TEST_CASE("random bytes never crash the readers of error files, tracebacks and causes") {
  Dice dice;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = noise(dice, 120);
    static_cast<void>(parse_error_file(text));
    static_cast<void>(error_file_for_parent(text, 1));
    static_cast<void>(parse_failure_json(text, "x"));
    if (const auto found = last_traceback(text)) {
      REQUIRE(found->begin < found->end);
      REQUIRE(found->end <= text.size());
      REQUIRE_FALSE(found->exception.empty());
    }
    if (const auto cause = likely_cause(noisy_worker(dice))) {
      REQUIRE(cause->evidence.size() <= kEvidenceBytes + 3);
    }
  }
}

TEST_CASE("mutated error files are read or refused, and the launcher's copy of one can be read again") {
  Dice dice;
  const std::string original = R"({"message": {"message": "RuntimeError: boom \u00fc", "extraInfo": {"py_callstack": )"
                               R"("Traceback\nValueError: x\n", )"
                               R"("timestamp": "1795279603"}, "errorCode": -11}, "timestamp": 5})";
  for (int i = 0; i < 3000; ++i) {
    const std::string text = mutated(dice, original);
    const auto error = parse_error_file(text);
    const auto copy = error_file_for_parent(text, 3);
    REQUIRE(error.has_value() == copy.has_value());
    if (copy) {
      const auto again = parse_error_file(*copy);
      REQUIRE(again);
      REQUIRE(again->message == error->message);
    }
  }
}

TEST_CASE("mutated reports are read or refused, and what was read can be printed, written and merged") {
  Dice dice;
  for (int i = 0; i < 150; ++i) {
    JobReport report{
        .run_id = noise(dice, 3), .title = noise(dice, 3), .failures = {noisy_worker(dice), noisy_worker(dice)}};
    report.rounds.push_back({.began_ms = 5, .ended_ms = 900, .failures = {noisy_worker(dice)}});
    const auto clean = parse_failure_json(failure_json(report), "x");
    REQUIRE(clean);
    use(*clean);
    for (int j = 0; j < 4; ++j) {
      const auto read = parse_failure_json(mutated(dice, failure_json(report)), "x");
      if (!read) continue;
      use(*read);
      if (read->run_id == clean->run_id) REQUIRE(merge_reports({*read, *clean, *read}));
    }
  }
}
