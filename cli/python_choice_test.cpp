#include "cli/python_choice.h"

#include <doctest/doctest.h>

#include "cli/host_test_support.h"

using namespace elastic;
using namespace elastic::cli;
using Lines = std::vector<std::string>;

namespace {

// A host with a Python of its own, on which environments are made.
struct Choice {
  Choice() { host.program("/usr/bin/python3"); }

  void venv(const std::string& prefix) {
    host.file(prefix + "/pyvenv.cfg");
    host.program(prefix + "/bin/python");
    host.program(prefix + "/bin/python3");
  }
  void conda(const std::string& prefix) {
    host.directory(prefix + "/conda-meta");
    host.program(prefix + "/bin/python");
  }
  void set(const std::string& name, const std::string& value) {
    std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name + "="); });
    environment.push_back(name + "=" + value);
  }
  Python python() const {
    auto chosen = choose_python(environment, host);
    REQUIRE_MESSAGE(chosen.has_value(), (chosen ? "" : chosen.error().text()));
    return *chosen;
  }
  std::string file() const { return python().command.front(); }
  Lines warnings() const { return python().warnings; }
  std::string error() const {
    const auto chosen = choose_python(environment, host);
    REQUIRE(!chosen.has_value());
    CHECK(!chosen.error().remedy.empty());
    return chosen.error().text();
  }

  FakeHost host;
  Environment environment{"PATH=/usr/local/bin:/usr/bin"};
};

}  // namespace

TEST_CASE("without an environment it is python3 on PATH, else python, else the one beside us") {
  Choice c;
  c.host.program("/usr/local/bin/python");
  CHECK(c.file() == "/usr/bin/python3");
  CHECK(c.python().origin == "PATH");
  c.host.files.erase("/usr/bin/python3");
  CHECK(c.file() == "/usr/local/bin/python");
  c.set("PATH", "/sbin");
  CHECK(c.file() == "/usr/local/bin/python");
  CHECK(c.python().origin == "beside /usr/local/bin/elastic-run; none is on PATH");
  c.host.files.erase("/usr/local/bin/python");
  CHECK(c.error().starts_with("no Python: neither python3 nor python is on PATH or beside elastic-run; "));
}

TEST_CASE("the environment in which we lie is the one, whatever PATH says") {
  Choice c;
  c.venv("/venv");
  c.conda("/conda");
  c.host.own = {"/venv/bin/elastic-run"};
  CHECK(c.file() == "/venv/bin/python");
  CHECK(c.python().origin == "beside /venv/bin/elastic-run, in a virtual environment");
  c.host.own = {"/conda/bin/elastic-run"};
  CHECK(c.file() == "/conda/bin/python");
  CHECK(c.python().origin == "beside /conda/bin/elastic-run, in a conda environment");
  // A link into an environment, and one out of it: the first that lies in one.
  c.host.own = {"/usr/local/bin/torchrun", "/venv/bin/elastic-run"};
  CHECK(c.file() == "/venv/bin/python");
  c.host.own = {"/venv/bin/torchrun", "/usr/local/bin/elastic-run"};
  CHECK(c.file() == "/venv/bin/python");
  CHECK(c.warnings().empty());
}

TEST_CASE("an environment in which we lie and that has lost its Python is passed over with a warning") {
  Choice c;
  c.host.file("/venv/pyvenv.cfg");
  c.host.own = {"/venv/bin/elastic-run"};
  CHECK(c.file() == "/usr/bin/python3");
  CHECK(c.warnings() == Lines{"/venv/bin/elastic-run lies in a virtual environment without a Python; looking on PATH"});
}

TEST_CASE("what was activated is taken where PATH leads to it, and no word is said") {
  Choice c;
  c.venv("/venv");
  c.set("VIRTUAL_ENV", "/venv");
  c.set("PATH", "/venv/bin/:/usr/bin");
  CHECK(c.file() == "/venv/bin/python3");
  CHECK(c.python().origin == "PATH, as VIRTUAL_ENV says");
  CHECK(c.warnings().empty());
  // conda activate within it, and the other way round: the later one is first on PATH.
  c.conda("/conda");
  c.set("CONDA_PREFIX", "/conda");
  c.set("PATH", "/conda/bin:/venv/bin:/usr/bin");
  CHECK(c.file() == "/conda/bin/python");
  CHECK(c.warnings().empty());
  c.set("PATH", "/venv/bin:/conda/bin:/usr/bin");
  CHECK(c.file() == "/venv/bin/python3");
  CHECK(c.warnings().empty());
  // The same directory by another name.
  c.host.links["/home/me/venv/bin"] = "/venv/bin";
  c.set("VIRTUAL_ENV", "/home/me/venv");
  CHECK(c.python().origin == "PATH, as VIRTUAL_ENV says");
  CHECK(c.warnings().empty());
}

TEST_CASE("a variable that PATH does not bear out loses, with one warning") {
  Choice c;
  c.venv("/venv");
  c.set("VIRTUAL_ENV", "/venv");
  CHECK(c.file() == "/usr/bin/python3");
  CHECK(c.warnings() ==
        Lines{"VIRTUAL_ENV=/venv: its bin is not on PATH; /usr/bin/python3 runs; to choose, set PYTHON_EXEC"});
  c.set("PATH", "/usr/bin:/venv/bin");
  CHECK(c.file() == "/usr/bin/python3");
  CHECK(c.warnings() ==
        Lines{"VIRTUAL_ENV=/venv: another Python comes before its bin on PATH; /usr/bin/python3 runs; to "
              "choose, set PYTHON_EXEC"});
  c.set("VIRTUAL_ENV", "/gone");
  CHECK(c.warnings() == Lines{"VIRTUAL_ENV=/gone has no bin/python; /usr/bin/python3 runs"});
  c.set("VIRTUAL_ENV", "");
  CHECK(c.warnings().empty());
}

TEST_CASE("who lies in one environment while another is active runs his own, with a warning") {
  Choice c;
  c.venv("/mine");
  c.venv("/active");
  c.host.own = {"/mine/bin/elastic-run"};
  c.set("VIRTUAL_ENV", "/active");
  c.set("PATH", "/active/bin:/mine/bin:/usr/bin");
  CHECK(c.file() == "/mine/bin/python");
  CHECK(c.warnings() == Lines{"VIRTUAL_ENV=/active: elastic-run lies in another environment; /mine/bin/python runs; to "
                              "choose, set PYTHON_EXEC"});
  c.set("PATH", "/mine/bin:/active/bin:/usr/bin");
  CHECK(c.warnings().empty());
}

TEST_CASE("environments are known by relative parts of PATH, too") {
  Choice c;
  c.host.file("./pyvenv.cfg");
  c.host.program("bin/python");
  c.set("PATH", "bin:/usr/bin");
  CHECK(c.file() == "bin/python");
  c.host.file("./../pyvenv.cfg");
  c.host.program("./python");
  c.set("PATH", ":/usr/bin");
  CHECK(c.file() == "./python");
}

TEST_CASE("PYTHON_EXEC goes before all, and one that is none is an error") {
  Choice c;
  c.venv("/venv");
  c.host.own = {"/venv/bin/elastic-run"};
  c.host.program("/usr/bin/pypy");
  c.set("PYTHON_EXEC", "pypy");
  CHECK(c.file() == "/usr/bin/pypy");
  CHECK(c.python().origin == "environment: PYTHON_EXEC");
  CHECK(c.python().title == "pypy");
  CHECK(!c.python().is_wrapper);
  c.set("PYTHON_EXEC", "/gone/python");
  CHECK(c.error().starts_with("PYTHON_EXEC=/gone/python: not an executable file; "));
  c.set("PYTHON_EXEC", "gone");
  CHECK(c.error().starts_with("PYTHON_EXEC=gone: not found on PATH; "));
}

TEST_CASE("a PYTHON_EXEC of several words, of another name than Python's, or that is a script is a wrapper") {
  Choice c;
  c.host.program("/usr/bin/apptainer");
  c.set("PYTHON_EXEC", "apptainer exec '/data/my image.sif' \"a \\\" b\"  python\\ 3");
  CHECK(c.python().command == Lines{"/usr/bin/apptainer", "exec", "/data/my image.sif", "a \" b", "python 3"});
  CHECK(c.python().is_wrapper);
  CHECK(c.python().origin == "environment: PYTHON_EXEC, a wrapper, which finds the script itself");
  c.host.program("/opt/in-image");
  c.set("PYTHON_EXEC", "/opt/in-image");
  CHECK(c.python().is_wrapper);
  c.host.program("/opt/python3");
  c.set("PYTHON_EXEC", "/opt/python3");
  CHECK(!c.python().is_wrapper);
  c.host.contents["/opt/python3"] = "#!/bin/sh\nexec apptainer exec image python \"$@\"\n";
  CHECK(c.python().is_wrapper);
  // As torchrun takes it: a path with a blank.
  c.host.program("/opt/my python/bin/python3");
  c.set("PYTHON_EXEC", "/opt/my python/bin/python3");
  CHECK(c.python().command == Lines{"/opt/my python/bin/python3"});
  CHECK(!c.python().is_wrapper);

  c.set("PYTHON_EXEC", "apptainer exec 'image");
  CHECK(c.error().find(": a quote is not closed; ") != std::string::npos);
  c.set("PYTHON_EXEC", "gone exec image");
  CHECK(c.error().starts_with("PYTHON_EXEC=gone exec image: gone: not found on PATH; "));
}
