#include "cli/flag_checks.h"

#include <algorithm>
#include <array>
#include <csignal>

#include "cli/limits.h"
#include "cli/lost_value.h"
#include "health/progress/step_pattern.h"
#include "rendezvous/events/event_commands.h"
#include "src/base/limits.h"
#include "src/base/program_name.h"
#include "src/base/signals.h"
#include "src/base/text.h"
#include "src/output/limits.h"

namespace elastic::cli {
namespace {

constexpr std::int64_t kMaxPort = 65535;
constexpr std::int64_t kDefaultMasterPort = 29500;
constexpr unsigned kBothStreams = 3;
constexpr std::string_view kPlugIns = "others are plug-ins in Python, which a program without Python cannot load";

std::unexpected<Error> bad(std::string_view input, std::string reason, std::string remedy) {
  return fail(std::string(input), std::move(reason), std::move(remedy));
}

// Whether it matches Python's ^[\w\.:-]+$, for ASCII.
bool is_host(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == ':' || c == '-';
  });
}

std::optional<unsigned> parse_streams(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return {};
  return static_cast<unsigned>(text[0] - '0');
}

}  // namespace

Result<NodeRange> check_nnodes(std::string_view value, std::string_view input) {
  const std::string remedy = "write N or MIN:MAX with 0 < MIN <= MAX, such as --nnodes=2:4";
  const std::vector<std::string> parts = split(value, ':');
  if (parts.size() > 2) return bad(input, "this is not N or MIN:MAX", remedy);
  const auto min = parse_int(parts.front());
  const auto max = parse_int(parts.back());
  if (!min || !max) {
    return bad(input, "this is neither a whole number nor two with a colon between them", remedy);
  }
  if (*min < 1) return bad(input, "a job needs at least one node", remedy);
  if (*min > *max) return bad(input, "the minimum is above the maximum", remedy);
  if (*max > kMaxNodes) return bad(input, format("more than {} nodes", kMaxNodes), remedy);
  return NodeRange{*min, *max};
}

Result<WorkersPerNode> check_nproc_per_node(std::string_view value, std::string_view input) {
  using Kind = WorkersPerNode::Kind;
  const std::string remedy = format("give a number from 1 to {}, or auto, cpu, gpu or xpu", limits::kMaxWorkersPerNode);
  if (const auto number = parse_int(value)) {
    if (*number < 1) return bad(input, "a node needs at least one worker", remedy);
    if (*number > limits::kMaxWorkersPerNode) {
      return bad(input, "too many workers for one node", remedy);
    }
    return WorkersPerNode{Kind::kNumber, *number};
  }
  if (value == "auto") return WorkersPerNode{Kind::kAuto, 0};
  if (value == "cpu") return WorkersPerNode{Kind::kCpu, 0};
  if (value == "gpu") return WorkersPerNode{Kind::kGpu, 0};
  if (value == "xpu") return WorkersPerNode{Kind::kXpu, 0};
  return bad(input, "this is neither a whole number nor a known word", remedy);
}

Result<Backend> check_rdzv_backend(std::string_view value, std::string_view input) {
  const std::string remedy = "use c10d, which needs no other service, or static";
  if (value == "static") return Backend::kStatic;
  if (value == "c10d" || value == "dlrover-master") return Backend::kC10d;
  if (value == "etcd" || value == "etcd-v2") {
    return bad(input, "no client for etcd is built in", remedy);
  }
  return bad(input, format("backends are static and c10d; {}", kPlugIns), remedy);
}

Result<Endpoint> check_endpoint(std::string_view value, std::string_view input) {
  const std::string_view text = trim(value);
  const std::string remedy =
      text.contains('/') ? "write HOST:PORT, such as node0:29400; nodes that meet by a file need store_type=file "
                           "in --rdzv-conf"
                         : "write HOST:PORT, or [ADDRESS]:PORT for IPv6, such as node0:29400";
  if (text.empty()) return Endpoint{.host = "localhost", .port = {}};
  Endpoint endpoint;
  std::string_view host = text;
  const std::size_t colon = text.rfind(':');
  const bool only_address = text.front() == '[' && text.back() == ']';
  if (!only_address && colon != std::string_view::npos) {
    host = text.substr(0, colon);
    const std::string_view digits = text.substr(colon + 1);
    const bool is_number =
        !digits.empty() && digits.size() <= 5 && digits.find_first_not_of("0123456789") == std::string_view::npos;
    const auto port = is_number ? parse_int(digits) : std::nullopt;
    if (!port || *port > kMaxPort) {
      return bad(input, format("the port {} is not a number from 0 to 65535", printable(digits)), remedy);
    }
    endpoint.port = static_cast<std::uint16_t>(*port);
    if (host.ends_with(':') && !host.ends_with("::")) {
      return bad(input, "an IPv6 address must stand in brackets", remedy);
    }
  }
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (!is_host(host)) {
    return bad(input,
               format("{} is neither a name nor an IP address", host.empty() ? "the empty host" : printable(host)),
               remedy);
  }
  endpoint.host = host;
  return endpoint;
}

Result<std::vector<Endpoint>> check_endpoint_list(std::string_view value, std::string_view input) {
  std::vector<Endpoint> hosts;
  for (const std::string& part : split(value, ',')) {
    if (trim(part).empty() && value.contains(',')) {
      return bad(input, "the list of hosts has an empty place", "write HOST,HOST,HOST:PORT");
    }
    auto host = check_endpoint(part, input);
    if (!host) return std::unexpected(std::move(host.error()));
    hosts.push_back(std::move(*host));
  }
  if (hosts.size() > limits::kEndpointHosts) {
    return bad(input, format("{} hosts are more than {}", hosts.size(), limits::kEndpointHosts),
               "name the first of them: each leads to the job");
  }
  for (std::size_t i = hosts.size(); i-- > 1;) {
    if (!hosts[i - 1].port) hosts[i - 1].port = hosts[i].port;
  }
  for (auto host = hosts.begin(); host != hosts.end(); ++host) {
    if (std::find(hosts.begin(), host, *host) == host) continue;
    return bad(input, format("{} stands there twice", printable(host->host)), "name each host once");
  }
  return hosts;
}

Result<StreamMap> check_stream_map(std::string_view value, std::string_view input) {
  const std::string remedy = "write 0, 1 (stdout), 2 (stderr) or 3 (both) for all ranks, or a list such as 0:3,1:1";
  StreamMap map;
  if (const auto streams = parse_streams(value)) {
    map.all = *streams;
    return map;
  }
  for (const std::string& part : split(value, ',')) {
    const std::size_t colon = part.find(':');
    const std::string rank_text = part.substr(0, colon);
    const bool digits = !rank_text.empty() && rank_text.find_first_not_of("0123456789") == std::string::npos;
    const auto rank = digits ? parse_int(rank_text) : std::nullopt;
    const auto streams =
        colon == std::string::npos ? std::nullopt : parse_streams(std::string_view(part).substr(colon + 1));
    if (!rank || !streams || *rank >= limits::kMaxWorkersPerNode) {
      return bad(input, format("'{}' is not LOCAL_RANK:STREAMS", printable(part)), remedy);
    }
    map.by_rank[*rank] = *streams;
  }
  return map;
}

unsigned StreamMap::of(std::int64_t local_rank) const {
  const auto found = by_rank.find(local_rank);
  return (found == by_rank.end() ? all : found->second) & kBothStreams;
}

Result<std::optional<std::set<std::int64_t>>> check_local_ranks_filter(std::string_view value, std::string_view input) {
  if (value.empty()) return std::nullopt;
  std::set<std::int64_t> ranks;
  for (const std::string& part : split(value, ',')) {
    const auto rank = parse_int(part);
    if (!rank || *rank < 0) {
      return bad(input, format("'{}' is not a local rank", printable(part)),
                 "write a list of local ranks, such as 0,1,2");
    }
    ranks.insert(*rank);
  }
  return ranks;
}

Result<SignalList> check_signals_to_handle(std::string_view value, std::string_view input) {
  SignalList list;
  std::vector<int>& signals = list.numbers;
  for (const std::string& part : split(value, ',')) {
    const std::string_view name = trim(part);
    if (name.empty()) continue;
    const auto number = signal_number(name);
    if (!number) {
      list.unknown.emplace_back(name);
      continue;
    }
    if (*number == SIGKILL || *number == SIGSTOP) {
      return bad(input, format("no program can handle {}", signal_name(*number)), "leave it out of the list");
    }
    // SIGCHLD tells the end of a child; a terminal and a shell use the next four for job control; SIGWINCH tells the
    // terminal's size, SIGPIPE a reader that has gone.
    const std::array needed = {SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGPIPE};
    if (std::find(needed.begin(), needed.end(), *number) != needed.end()) {
      return bad(input, format("{} needs {} for itself", program_name(), signal_name(*number)),
                 "leave it out of the list");
    }
    if (std::find(signals.begin(), signals.end(), *number) == signals.end()) {
      signals.push_back(*number);
    }
  }
  return list;
}

Result<std::vector<int>> check_signals(std::string_view value, std::string_view input) {
  auto list = check_signals_to_handle(value, input);
  if (!list) return std::unexpected(std::move(list.error()));
  if (list->unknown.empty()) return std::move(list->numbers);
  return bad(input, format("there is no signal '{}'", printable(list->unknown.front())),
             "write names separated by commas, such as SIGTERM,SIGUSR1");
}

Result<std::uint64_t> check_log_max_bytes(std::string_view value, std::string_view input) {
  constexpr std::string_view kUnits = "kmgt";
  const std::string remedy =
      format("give a size such as 100M or 1G, of at least {}K, or 0 for no bound", limits::kLeastLogMaxBytes / 1024);
  const std::string text = lower(trim(value));
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = digits == 0 ? std::nullopt : parse_int(text.substr(0, digits));
  const std::string unit = text.substr(digits);
  std::size_t power = 0;
  std::uint64_t base = 1024;
  if (!unit.empty() && unit != "b") {
    power = kUnits.find(unit.front()) + 1;  // 0 where it is none: npos + 1
    const std::string rest = unit.substr(1);
    if (rest == "b") base = 1000;
    if (power == 0 || (!rest.empty() && rest != "b" && rest != "ib")) return bad(input, "this is not a size", remedy);
  }
  if (!number) return bad(input, digits == 0 ? "this is not a size" : "the size is too large", remedy);
  auto bytes = static_cast<std::uint64_t>(*number);
  for (; power > 0; --power) {
    if (__builtin_mul_overflow(bytes, base, &bytes)) return bad(input, "the size is too large", remedy);
  }
  if (bytes != 0 && bytes < limits::kLeastLogMaxBytes) return bad(input, "the size is too small", remedy);
  return bytes;
}

Result<std::int64_t> check_seconds(std::string_view value, std::string_view input) {
  const auto seconds = parse_int(value);
  if (!seconds || *seconds < 0 || *seconds > limits::kMaxTimeoutSeconds) {
    return bad(input,
               !seconds       ? "the value is not a whole number"
               : *seconds < 0 ? "a time cannot be negative"
                              : "the time is too long",
               format("give whole seconds from 0 to {}", limits::kMaxTimeoutSeconds));
  }
  return *seconds;
}

Result<std::int64_t> check_span(std::string_view value, std::string_view input) {
  const std::string remedy = "give seconds, or a number with s, m or h, such as 90s, 5m or 1h";
  std::string_view digits = trim(value);
  std::int64_t unit = 1;
  if (!digits.empty() && (digits.back() == 's' || digits.back() == 'm' || digits.back() == 'h')) {
    unit = digits.back() == 'h' ? 3600 : digits.back() == 'm' ? 60 : 1;
    digits.remove_suffix(1);
  }
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return bad(input, "this is not a time", remedy);
  }
  const auto number = parse_int(digits);
  std::int64_t seconds = 0;
  if (!number || __builtin_mul_overflow(*number, unit, &seconds) || seconds > limits::kMaxTimeoutSeconds) {
    return bad(input, "the time is too long", format("give at most {} s", limits::kMaxTimeoutSeconds));
  }
  if (seconds == 0) return bad(input, "the time must be above 0", "use --hang=off to look for no hangs");
  return seconds;
}

namespace {

Status check_event_log_handler(const ParsedFlags& flags) {
  const std::string& name = flags.text(FlagId::kEventLogHandler);
  if (name == "null" || name == "dynamic_rendezvous" || name == "console") return {};
  return bad(flags.input(FlagId::kEventLogHandler),
             format("handlers are null, dynamic_rendezvous and console; {}", kPlugIns), "leave it out or use null");
}

// The error about a flag's value, or, where that got lost on its way, the one that says so.
std::unexpected<Error> refused(Error error, const ParsedFlags& flags, FlagId id) {
  const bool is_typed = flags[id].origin == Origin::kCommandLine;
  return std::unexpected(lost_value(flag_of(id), flags.input(id), flags.text(id), is_typed).value_or(std::move(error)));
}

// Runs a check on a flag's text and keeps what it finds.
template <class T>
Status keep(T& target, const ParsedFlags& flags, FlagId id, Result<T> (*check)(std::string_view, std::string_view)) {
  Result<T> result = check(flags.text(id), flags.input(id));
  if (!result) return refused(std::move(result.error()), flags, id);
  target = std::move(*result);
  return {};
}

// Decides what is run: of the three switches, the one that counts in torchrun.
Status check_command(CheckedFlags& checked, const ParsedFlags& flags) {
  checked.run_path = flags.on(FlagId::kRunPath);
  if (checked.run_path) return {};
  checked.module = flags.on(FlagId::kModule);
  checked.no_python = flags.on(FlagId::kNoPython);
  if (!checked.module || !checked.no_python) return {};
  return bad(format("{} and {}", flags.input(FlagId::kModule), flags.input(FlagId::kNoPython)),
             "a module cannot be run without Python", "leave one of the two out");
}

bool names_no_endpoint(const ParsedFlags& flags) { return trim(flags.text(FlagId::kRdzvEndpoint)).empty(); }

// Takes address and port of node 0 from --master-addr and --master-port.
Status take_master(CheckedFlags& checked, const ParsedFlags& flags) {
  const std::int64_t port = flags.is_set(FlagId::kMasterPort) ? flags.integer(FlagId::kMasterPort) : kDefaultMasterPort;
  const std::string address = format("{}:{}", trim(flags.text(FlagId::kMasterAddr)), port);
  auto endpoint = check_endpoint(address, flags.input(FlagId::kMasterAddr));
  if (!endpoint) return refused(std::move(endpoint.error()), flags, FlagId::kMasterAddr);
  checked.endpoint = std::move(*endpoint);
  checked.endpoint_is_master = true;
  return {};
}

// Finds address and port of node 0: those of the endpoint, or else --master-addr and --master-port.
Status check_static(CheckedFlags& checked, const ParsedFlags& flags) {
  FlagId port_flag = FlagId::kRdzvEndpoint;
  if (names_no_endpoint(flags)) {
    port_flag = FlagId::kMasterPort;
    if (Status status = take_master(checked, flags); !status) return status;
  } else if (Status status = keep(checked.endpoint, flags, FlagId::kRdzvEndpoint, check_endpoint); !status) {
    return status;
  }
  if (!checked.endpoint.port) {
    return bad(flags.input(FlagId::kRdzvEndpoint), "the static backend needs a port here",
               format("write {}:{}", checked.endpoint.host, kDefaultMasterPort));
  }
  if (*checked.endpoint.port == 0) {
    return bad(flags.input(port_flag), "the other nodes and the workers must know the port in advance",
               "give a port from 1 to 65535, or leave it out on one node to get a free one");
  }
  // With --auto-config the number of nodes is not settled yet.
  if (checked.node_rank < checked.nodes.max || flags.on(FlagId::kAutoConfig)) return {};
  return bad(flags.input(FlagId::kNodeRank),
             format("the last node rank of a job of {} nodes is {}", checked.nodes.max, checked.nodes.max - 1),
             "give each node a rank of its own, or raise --nnodes");
}

// Decides how nodes meet in the order of torchrun's run.py: --standalone first, then its plain case of one node.
Status check_rendezvous(CheckedFlags& checked, const ParsedFlags& flags) {
  if (flags.on(FlagId::kStandalone)) {
    checked.rendezvous = Rendezvous::kStandalone;
    return {};
  }
  if (const std::size_t bytes = flags.text(FlagId::kRdzvId).size(); bytes > limits::kAgentNameBytes) {
    return bad(flags.input(FlagId::kRdzvId), format("the job's id is too long, with {} bytes", bytes),
               format("use one of at most {} bytes", limits::kAgentNameBytes));
  }
  Backend backend = Backend::kStatic;
  if (Status status = keep(backend, flags, FlagId::kRdzvBackend, check_rdzv_backend); !status) {
    return status;
  }
  if (backend == Backend::kC10d) {
    checked.rendezvous = Rendezvous::kC10d;
    const std::string* store_type = checked.rdzv_conf.find("store_type");
    if (store_type && *store_type == "file") return {};  // the endpoint is a path
    // As NVIDIA's launcher does it; torchrun's nodes would each wait for themselves.
    const bool may_be_many = checked.nodes.max > 1 || flags.on(FlagId::kAutoConfig);
    if (may_be_many && names_no_endpoint(flags) && flags.is_given(FlagId::kMasterAddr)) {
      return take_master(checked, flags);
    }
    std::vector<Endpoint> hosts;
    if (Status status = keep(hosts, flags, FlagId::kRdzvEndpoint, check_endpoint_list); !status) return status;
    checked.endpoint = std::move(hosts.front());
    checked.more_endpoints.assign(std::make_move_iterator(hosts.begin() + 1), std::make_move_iterator(hosts.end()));
    return {};
  }
  const bool names_no_port = !flags.is_set(FlagId::kMasterPort) || flags.integer(FlagId::kMasterPort) == 0;
  if (flags.text(FlagId::kRdzvEndpoint).empty() && names_no_port && checked.nodes.max == 1) {
    checked.rendezvous = Rendezvous::kImplicitStandalone;
    return {};
  }
  checked.rendezvous = Rendezvous::kStatic;
  return check_static(checked, flags);
}

// Lines that match a filter are copied to a file, so there must be log files.
Status check_filters(const ParsedFlags& flags) {
  for (const FlagId id : {FlagId::kDuplicateStdoutFilters, FlagId::kDuplicateStderrFilters}) {
    if (flags.list(id).empty() || flags.text(FlagId::kLogDir) != "/dev/null") continue;
    return bad(flags.input(id), format("{} means that there are no log files", flags.input(FlagId::kLogDir)),
               "leave one of the two out");
  }
  return {};
}

Status check_record(const ParsedFlags& flags) {
  const std::string& file = flags.text(FlagId::kRecord);
  if (!flags.is_given(FlagId::kRecord) || (!file.empty() && file != "-")) return {};
  return bad(flags.input(FlagId::kRecord), "a recording is written to a file", "name a file");
}

Status check_events(const ParsedFlags& flags) {
  if (!flags.is_given(FlagId::kEvents) || flags.text(FlagId::kEvents) != "-") return {};
  return bad(flags.input(FlagId::kEvents), "events are written to a file", "name a file; /dev/stderr is one, too");
}

Status check_on_event(std::set<std::string>& kinds, const ParsedFlags& flags) {
  const auto& known = events::kEventCommandKinds;
  for (const std::string& kind : split(flags.text(FlagId::kOnEventKinds), ',')) {
    const std::string name(trim(kind));
    if (std::ranges::find(known, std::string_view(name)) == std::end(known)) {
      return bad(flags.input(FlagId::kOnEventKinds),
                 format("\"{}\" is not an event that can run a command", printable(name)),
                 "name any of node_lost, node_unfit, node_kept_out and job_ends, separated by commas");
    }
    kinds.insert(name);
  }
  return {};
}

Status check_progress_pattern(const ParsedFlags& flags) {
  const std::string& pattern = flags.text(FlagId::kProgressPattern);
  if (pattern.empty()) return {};
  auto made = progress::StepPattern::make(pattern);
  if (made) return {};
  return bad(flags.input(FlagId::kProgressPattern), made.error().reason, made.error().remedy);
}

// "step:30": the name of a section, and its limit.
Result<CheckedFlags::Section> check_section(std::string_view text, std::string_view input) {
  const std::size_t colon = text.rfind(':');
  CheckedFlags::Section section{.name = std::string(text.substr(0, colon)), .limit_seconds = {}};
  // NVRx's client gets the names, as UTF-8.
  const bool is_plain = std::ranges::all_of(section.name, [](char each) { return each > ' ' && each <= '~'; });
  if (section.name.empty() || !is_plain || section.name.size() > limits::kNvrxSectionBytes) {
    return bad(input,
               format("\"{}\" is no name of 1 to {} ASCII characters without blanks", printable(section.name),
                      limits::kNvrxSectionBytes),
               "name the sections that scripts open, separated by commas");
  }
  if (colon == std::string_view::npos) return section;
  const auto seconds = check_span(text.substr(colon + 1), input);
  if (!seconds) {
    return bad(input, format("the limit of section \"{}\": {}", section.name, seconds.error().reason),
               "give seconds, or a number with s, m or h, such as step:90s, or leave the limit out");
  }
  section.limit_seconds = *seconds;
  return section;
}

Status check_progress_sections(CheckedFlags& checked, const ParsedFlags& flags) {
  const std::string& text = flags.text(FlagId::kProgressSections);
  const std::string input = flags.input(FlagId::kProgressSections);
  if (text.empty()) return {};
  const std::vector<std::string> parts = split(text, ',');
  if (parts.size() > limits::kNvrxSections) {
    return bad(input, format("more than {} names", limits::kNvrxSections), "name the sections that scripts open");
  }
  for (const std::string& part : parts) {
    auto section = check_section(part, input);
    if (!section) return std::unexpected(std::move(section.error()));
    if (std::ranges::find(checked.progress_sections, section->name, &CheckedFlags::Section::name) !=
        checked.progress_sections.end()) {
      return bad(input, format("section \"{}\" is named twice", section->name), "name each section once");
    }
    checked.progress_sections.push_back(*std::move(section));
  }
  return {};
}

Status check_hang(CheckedFlags& checked, const ParsedFlags& flags) {
  for (const auto& [id, seconds] : {std::pair(FlagId::kHangTimeout, &checked.hang_timeout_seconds),
                                    std::pair(FlagId::kHangFirstTimeout, &checked.hang_first_timeout_seconds)}) {
    if (!flags.is_set(id)) continue;
    std::int64_t known = 0;
    Status status = keep(known, flags, id, check_span);
    if (!status) return status;
    *seconds = known;
  }
  return {};
}

}  // namespace

Result<CheckedFlags> check_flags(const ParsedFlags& flags) {
  CheckedFlags checked;
  Status status = keep(checked.nodes, flags, FlagId::kNnodes, check_nnodes);
  if (status) status = keep(checked.workers, flags, FlagId::kNprocPerNode, check_nproc_per_node);
  if (status) status = keep(checked.rdzv_conf, flags, FlagId::kRdzvConf, check_rdzv_conf);
  if (status) {
    checked.node_rank = flags.integer(FlagId::kNodeRank);
    checked.max_restarts = flags.integer(FlagId::kMaxRestarts);
    if (flags.is_set(FlagId::kShutdownTimeout)) {
      checked.shutdown_timeout_seconds = flags.integer(FlagId::kShutdownTimeout);
    }
    status = check_rendezvous(checked, flags);
  }
  if (status) status = check_command(checked, flags);
  SignalList to_handle;
  if (status) status = keep(to_handle, flags, FlagId::kSignalsToHandle, check_signals_to_handle);
  checked.signals = std::move(to_handle.numbers);
  checked.unknown_signals = std::move(to_handle.unknown);
  if (status) status = keep(checked.forward_signals, flags, FlagId::kForwardSignals, check_signals);
  for (const int signal : checked.forward_signals) {
    if (!status || std::ranges::find(checked.signals, signal) == checked.signals.end()) continue;
    status =
        bad(flags.input(FlagId::kForwardSignals), format("{} ends the job by --signals-to-handle", signal_name(signal)),
            "name it in one of the two lists only");
  }
  if (status) status = keep(checked.redirects, flags, FlagId::kRedirects, check_stream_map);
  if (status) status = keep(checked.tee, flags, FlagId::kTee, check_stream_map);
  if (status) {
    status = keep(checked.local_ranks_filter, flags, FlagId::kLocalRanksFilter, check_local_ranks_filter);
  }
  if (status) status = keep(checked.log_max_bytes, flags, FlagId::kLogMaxBytes, check_log_max_bytes);
  if (status) status = check_filters(flags);
  if (status) status = check_record(flags);
  if (status) status = check_events(flags);
  if (status) status = check_on_event(checked.on_event_kinds, flags);
  if (status) status = check_event_log_handler(flags);
  if (status) status = check_progress_pattern(flags);
  if (status) status = check_progress_sections(checked, flags);
  if (status) status = check_hang(checked, flags);
  if (!status) return std::unexpected(std::move(status.error()));
  return checked;
}

}  // namespace elastic::cli
