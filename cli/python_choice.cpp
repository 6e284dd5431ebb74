#include "cli/python_choice.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/path_search.h"
#include "src/base/program_name.h"
#include "src/base/text.h"

namespace elastic::cli {
namespace {

constexpr std::array<const char*, 2> kActivated = {"VIRTUAL_ENV", "CONDA_PREFIX"};
constexpr std::size_t kWrapperBytes = 64 << 10;  // a script that starts Python; an interpreter has more

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// --- PYTHON_EXEC ---------------------------------------------------------------------------------

std::optional<std::string> program_named(const Environment& environment, const HostView& host,
                                         const std::string& name) {
  if (name.find('/') == std::string::npos) return on_path(environment, host, name);
  return can_execute(host, name) ? std::optional(name) : std::nullopt;
}

// Whether it is a Python by its name, and not a script of that name that starts one.
bool is_interpreter(const HostView& host, const std::string& path) {
  const std::string name = name_of(path);
  if (!name.starts_with("python") && !name.starts_with("pypy")) return false;
  const auto text = host.read_file(path, kWrapperBytes);
  return !text || !text->starts_with("#!");
}

Result<Python> python_from_variable(const Environment& environment, const HostView& host, const std::string& wanted) {
  const std::string input = format("PYTHON_EXEC={}", printable(wanted));
  Python python{
      .command = {}, .origin = "environment: PYTHON_EXEC", .title = wanted, .is_wrapper = true, .warnings = {}};
  // torchrun takes the whole value for one program. It is split into words only where there is no such program.
  auto words = std::optional(std::vector<std::string>{wanted});
  auto program = program_named(environment, host, wanted);
  if (program) {
    python.is_wrapper = !is_interpreter(host, *program);
  } else if (wanted.find(' ') != std::string::npos) {
    words = words_of_command(wanted);
    if (!words) return fail(input, "a quote is not closed", "close it, or put a backslash before it");
    if (words->size() > 1) program = program_named(environment, host, words->front());
  }
  if (!program) {
    const std::string name = words->empty() ? wanted : words->front();
    const std::string reason = name.find('/') == std::string::npos ? "not found on PATH" : "not an executable file";
    return fail(input, words->size() > 1 ? format("{}: {}", printable(name), reason) : reason,
                "name the Python to run, or unset it");
  }
  words->front() = *program;
  python.command = std::move(*words);
  if (python.is_wrapper) python.origin += ", a wrapper, which finds the script itself";
  return python;
}

// --- Environments --------------------------------------------------------------------------------

// The kind of environment that `bin` belongs to: "virtual" or "conda".
std::optional<std::string_view> environment_with(const HostView& host, const std::string& bin) {
  const std::string name = name_of(bin);
  const bool is_named = name != "." && name != "..";
  const std::string prefix = !is_named ? bin + "/.." : name == bin ? "." : folder_of(bin);
  if (host.look_at(prefix + "/pyvenv.cfg").exists) return "virtual";
  if (host.look_at(prefix + "/conda-meta").directory) return "conda";
  return {};
}

std::optional<std::string> python_in(const HostView& host, const std::string& folder) {
  for (const char* name : {"python", "python3"}) {
    if (can_execute(host, format("{}/{}", folder, name))) return format("{}/{}", folder, name);
  }
  return {};
}

// Looks for a Python without PYTHON_EXEC.
class Search {
 public:
  Search(const Environment& environment, const HostView& host)
      : environment_(environment), host_(host), path_(path_folders(environment)) {}

  std::optional<Python> search() {
    auto python = around_us();
    if (!python) python = on_the_path();
    if (!python) python = beside_us();
    if (!python) return {};
    const std::string folder = folder_of(python->command.front());
    for (const char* variable : kActivated) look_at_variable(variable, folder, *python);
    python->warnings.insert(python->warnings.begin(), warnings_.begin(), warnings_.end());
    return python;
  }

 private:
  static Python found(std::string file, std::string origin) {
    return {
        .command = {std::move(file)}, .origin = std::move(origin), .title = {}, .is_wrapper = false, .warnings = {}};
  }

  std::optional<Python> around_us() {
    for (const std::string& own : host_.own_paths()) {
      const auto kind = environment_with(host_, folder_of(own));
      if (!kind) continue;
      if (auto file = python_in(host_, folder_of(own))) {
        lies_in_it_ = true;
        return found(std::move(*file), format("beside {}, in a {} environment", printable(own, 4096), *kind));
      }
      warnings_.push_back(
          format("{} lies in a {} environment without a Python; looking on PATH", printable(own), *kind));
    }
    return {};
  }

  std::optional<Python> on_the_path() {
    for (const std::string& folder : path_) {
      if (can_execute(host_, folder + "/python3")) return found_on_path(folder + "/python3");
      // Outside an environment `python` may be Python 2.
      if (environment_with(host_, folder)) {
        if (auto file = python_in(host_, folder)) return found_on_path(std::move(*file));
      }
    }
    if (auto file = on_path(environment_, host_, "python")) return found_on_path(std::move(*file));
    return {};
  }

  Python found_on_path(std::string file) const {
    std::string origin = "PATH";
    for (const char* variable : kActivated) {
      const auto prefix = elastic::lookup(environment_, variable);
      if (!prefix || prefix->empty() || !is_same(*prefix + "/bin", folder_of(file))) continue;
      origin = format("PATH, as {} says", variable);
      break;
    }
    return found(std::move(file), std::move(origin));
  }

  std::optional<Python> beside_us() const {
    for (const std::string& own : host_.own_paths()) {
      const std::string folder = folder_of(own);
      const std::string origin = format("beside {}; none is on PATH", printable(own, 4096));
      if (can_execute(host_, folder + "/python3")) return found(folder + "/python3", origin);
      if (can_execute(host_, folder + "/python")) return found(folder + "/python", origin);
    }
    return {};
  }

  bool is_same(const std::string& one, const std::string& other) const {
    const std::string real = host_.resolved(one);
    return one == other || (!real.empty() && real == host_.resolved(other));
  }

  // The position of the directory on PATH; the length of PATH where it is not there.
  std::size_t place_on_path(const std::string& folder) const {
    const auto at = std::ranges::find_if(path_, [&](const std::string& part) { return is_same(part, folder); });
    return static_cast<std::size_t>(at - path_.begin());
  }

  // Warns if the variable names another environment than the Python's, but not if one environment was activated within
  // another: then both are on PATH, the later one first.
  void look_at_variable(const char* variable, const std::string& chosen, Python& python) const {
    const auto prefix = elastic::lookup(environment_, variable);
    if (!prefix || prefix->empty()) return;
    const std::string bin = *prefix + "/bin";
    if (is_same(bin, chosen)) return;
    const std::string input = format("{}={}", variable, printable(*prefix));
    const std::string runs = format("{} runs", printable(python.command.front()));
    if (!python_in(host_, bin)) return python.warnings.push_back(format("{} has no bin/python; {}", input, runs));
    const std::size_t place = place_on_path(bin);
    if (environment_with(host_, chosen) && place_on_path(chosen) < place && place < path_.size()) return;
    const std::string why = lies_in_it_             ? format("{} lies in another environment", program_name())
                            : place == path_.size() ? "its bin is not on PATH"
                                                    : "another Python comes before its bin on PATH";
    python.warnings.push_back(format("{}: {}; {}; to choose, set PYTHON_EXEC", input, why, runs));
  }

  const Environment& environment_;
  const HostView& host_;
  std::vector<std::string> path_;
  bool lies_in_it_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace

Result<Python> choose_python(const Environment& environment, const HostView& host) {
  if (const auto wanted = elastic::lookup(environment, "PYTHON_EXEC"); wanted && !wanted->empty()) {
    return python_from_variable(environment, host, *wanted);
  }
  if (auto python = Search(environment, host).search()) return std::move(*python);
  return fail("no Python", format("neither python3 nor python is on PATH or beside {}", program_name()),
              "activate an environment, set PYTHON_EXEC, or use --no-python for another program");
}

}  // namespace elastic::cli
