#include "cli/program.h"

#include <utility>

#include "cli/path_search.h"
#include "cli/python_choice.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

// Runs the script as torchrun's --run-path does: under torch's @record, in a fresh interpreter. If the script succeeds,
// the interpreter waits until those of the other workers are done (process::WorkerBarrier at descriptor 3). A child
// that the script has forked does not wait, and nobody waits for it.
constexpr const char* kRunPathStub = R"(import os, runpy, stat, sys
def gate():
    try:
        facts = os.fstat(3)
        return stat.S_ISSOCK(facts.st_mode) and facts.st_ino
    except OSError:
        return False
mine, worker = gate(), os.getpid()
if mine:
    os.set_inheritable(3, False)
def wait():
    if mine and mine == gate() and os.getpid() == worker:
        try:
            os.write(3, b'${local_rank}')
            os.read(3, 1)
        except OSError:
            pass
sys.argv = sys.argv[1:]
try:
    from torch.distributed.elastic.multiprocessing.errors import record
except ImportError:
    record = lambda run: run
try:
    record(lambda: runpy.run_path(sys.argv[0], run_name='__main__'))()
except SystemExit as end:
    if not end.code:
        wait()
    raise
wait()
)";

Status check_script(const HostView& host, const std::string& script) {
  // "--" before the script lets an option of Python stand in its place ("-c").
  if (script.starts_with('-')) return {};
  const HostView::PathFacts facts = host.look_at(script);
  const std::string input = printable(script);
  if (!facts.exists) {
    return fail(input.empty() ? "training script ''" : input, "no such file",
                "give the path of the training script, -m for a module, or --no-python for a program");
  }
  if (facts.directory && !host.look_at(script + "/__main__.py").exists) {
    return fail(input, "it is a directory without a __main__.py", "give the path of the training script");
  }
  if (!facts.readable) {
    return fail(input, "it cannot be read: permission denied", "check its permissions (chmod +r)");
  }
  return {};
}

Result<std::string> find_binary(const Environment& environment, const HostView& host, const std::string& program) {
  const std::string input = printable(program);
  if (program.find('/') == std::string::npos) {
    if (auto path = on_path(environment, host, program)) return *path;
    return fail(input.empty() ? "program ''" : input, "not found on PATH",
                host.look_at(program).exists ? format("to run the file in this directory write ./{}", input)
                                             : "give the path of the program");
  }
  const HostView::PathFacts facts = host.look_at(program);
  if (!facts.exists) return fail(input, "no such file", "give the path of the program");
  if (facts.directory) return fail(input, "it is a directory", "give the path of the program");
  if (!facts.executable) {
    return fail(input, "it is not executable", "chmod +x it, or leave out --no-python for a Python script");
  }
  return program;
}

}  // namespace

Result<WorkerProgram> find_worker_program(const ParsedFlags& flags, const CheckedFlags& checked,
                                          const Environment& environment, const HostView& host) {
  WorkerProgram program;
  if (checked.no_python) {
    auto path = find_binary(environment, host, flags.script);
    if (!path) return std::unexpected(path.error());
    program = {*path, "command line", {flags.script}, flags.script, {}};
  } else {
    auto python = choose_python(environment, host);
    // A wrong script is reported before a missing Python.
    if (!checked.module && !(python && python->is_wrapper)) {
      if (const Status found = check_script(host, flags.script); !found) return std::unexpected(found.error());
    }
    if (!python) return std::unexpected(python.error());
    program = {python->command.front(), python->origin, python->command,
               python->title.empty() ? flags.script : python->title, std::move(python->warnings)};
    program.is_wrapper = python->is_wrapper;
    program.arguments.emplace_back("-u");
    if (checked.run_path) program.title = "run_script_path";
    if (checked.run_path) program.arguments.insert(program.arguments.end(), {"-c", kRunPathStub});
    if (checked.module) program.arguments.emplace_back("-m");
    program.script = program.arguments.size();
    program.arguments.push_back(flags.script);
  }
  program.arguments.insert(program.arguments.end(), flags.script_arguments.begin(), flags.script_arguments.end());
  return program;
}

}  // namespace elastic::cli
