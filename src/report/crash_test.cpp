#include "src/report/crash.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

using namespace elastic::report;
using Kind = PythonCrash::Kind;

namespace {

std::optional<PythonCrash> crash_in(std::string tail) {
  return crash_of({.exit = {.code = 1}, .tail = {.bytes = std::move(tail)}});
}

std::string imports(int line, const std::string& module) {
  return "Traceback (most recent call last):\n  File \"/work/train.py\", line 9, in <module>\n    import model\n"
         "  File \"/work/model.py\", line " +
         std::to_string(line) + ", in <module>\n    import " + module + "\nModuleNotFoundError: No module named '" +
         module + "'\n";
}

TEST_CASE("a module that is missing is a crash at the deepest frame") {
  CHECK(crash_in("epoch 1\n" + imports(3, "timm")) ==
        PythonCrash{Kind::kImport, "ModuleNotFoundError", "No module named 'timm'", "\"/work/model.py\", line 3"});
}

TEST_CASE("crashes are alike only where type, text, file and line are") {
  const auto digest = [](const std::string& tail) { return crash_in(tail)->digest(); };
  CHECK(digest(imports(3, "timm")) == digest("another first line\n" + imports(3, "timm")));
  CHECK(digest(imports(3, "timm")) != digest(imports(4, "timm")));
  CHECK(digest(imports(3, "timm")) != digest(imports(3, "tinn")));
  std::string other_type = imports(3, "timm");
  other_type.replace(other_type.find("ModuleNotFoundError"), 19, "ImportError");
  CHECK(digest(imports(3, "timm")) != digest(other_type));
  std::string other_file = imports(3, "timm");
  other_file.replace(other_file.find("model.py"), 8, "layer.py");
  CHECK(digest(imports(3, "timm")) != digest(other_file));
}

TEST_CASE("the prefix of a rank that torch sets before each line makes no difference") {
  std::string prefixed;
  for (std::size_t at = 0; const char c : imports(3, "timm")) {
    if (at++ == 0 || prefixed.back() == '\n') prefixed += "[rank0]: ";
    prefixed += c;
  }
  CHECK(crash_in(prefixed) == crash_in(imports(3, "timm")));
}

TEST_CASE("a script that cannot be parsed is a crash, though Python draws no traceback of it") {
  CHECK(crash_in("  File \"/work/train.py\", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax\n") ==
        PythonCrash{Kind::kSyntax, "SyntaxError", "invalid syntax", "\"/work/train.py\", line 3"});
  CHECK(crash_in("  File \"a.py\", line 2\n    x\nIndentationError: unexpected indent\n")->kind == Kind::kSyntax);
  CHECK(crash_in("  File \"a.py\", line 2\n    x\nTabError: inconsistent use of tabs and spaces in indentation\n")
            ->kind == Kind::kSyntax);
  CHECK(!crash_in("SyntaxError: said by somebody\n"));
}

TEST_CASE("a module that cannot be parsed is a crash at its own line, not at the import's") {
  const auto crash = crash_in(
      "Traceback (most recent call last):\n  File \"/work/train.py\", line 1, in <module>\n"
      "    import model\n  File \"/work/model.py\", line 7\n    def f(:\n          ^\n"
      "SyntaxError: invalid syntax\n");
  CHECK(crash == PythonCrash{Kind::kSyntax, "SyntaxError", "invalid syntax", "\"/work/model.py\", line 7"});
}

TEST_CASE("a file that is missing is a crash, and so is a script or a module of the command line") {
  CHECK(crash_in("Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    open('x')\n"
                 "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n") ==
        PythonCrash{Kind::kMissingFile, "FileNotFoundError", "[Errno 2] No such file or directory: 'x'",
                    "\"t.py\", line 1"});
  CHECK(crash_in("python: can't open file '/work/x.py': [Errno 2] No such file or directory\n")->kind ==
        Kind::kMissingFile);
  CHECK(crash_in("/opt/venv/bin/python3: No module named nothing\n")->kind == Kind::kImport);
  CHECK(crash_in("/usr/bin/python3: Error while finding module specification for 'a.b' (ModuleNotFoundError: No module "
                 "named 'a')\n")
            ->kind == Kind::kImport);
  CHECK(!crash_in("my note: No module named nothing\n"));
}

TEST_CASE("a few lines may follow the error, and more of them say that the program has survived it") {
  std::string tail = imports(3, "timm");
  for (int line = 0; line < 10; ++line) tail += "a warning on the way out\n";
  CHECK(crash_in(tail + "\n\n") == crash_in(imports(3, "timm")));
  CHECK(!crash_in(tail + "an epoch\n"));
}

TEST_CASE("other exceptions are no crash, and neither is a worker that a signal has ended") {
  CHECK(!crash_in(
      "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    f()\nRuntimeError: boom\n"));
  CHECK(!crash_in(imports(3, "timm") +
                  "Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    f()\n"
                  "RuntimeError: boom\n"));
  CHECK(
      !crash_in("Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    f()\n"
                "my.ImportError: not Python's\n"));
  CHECK(!crash_in(""));
  CHECK(!crash_of({.exit = {.signal = SIGKILL}, .tail = {.bytes = imports(3, "timm")}}));
}

TEST_CASE("what the worker has said in its error.json goes before its stderr") {
  FailedWorker worker{.exit = {.code = 1}, .tail = {.bytes = imports(3, "timm")}};
  worker.error = ErrorFile{.message = "ModuleNotFoundError: No module named 'flash'", .traceback = imports(8, "flash")};
  CHECK(crash_of(worker) ==
        PythonCrash{Kind::kImport, "ModuleNotFoundError", "No module named 'flash'", "\"/work/model.py\", line 8"});
  FailedWorker told = worker;
  told.exit = {.signal = SIGTERM};
  CHECK(!crash_of(told));
  told.error_came_first = true;
  CHECK(crash_of(told) == crash_of(worker));
  worker.error->traceback.clear();
  CHECK(crash_of(worker) == crash_in(imports(3, "timm")));
}

TEST_CASE("of a chain of exceptions the last counts, with the first line of its message") {
  const std::string chain =
      imports(3, "timm") +
      "\nDuring handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"/work/train.py\", line 12, in <module>\n    f()\n"
      "ImportError: first line\nsecond line\n";
  CHECK(crash_in(chain) == PythonCrash{Kind::kImport, "ImportError", "first line", "\"/work/train.py\", line 12"});
}

}  // namespace
