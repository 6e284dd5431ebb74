#include "cli/run/evidence_collector.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/run/evidence_order.h"
#include "cli/run/stacks_collector.h"
#include "cli/run/whole_file.h"
#include "health/evidence/store_waiters.h"
#include "health/evidence_reader/reader_process.h"
#include "health/hang/hang_facts.h"
#include "health/hang_evidence/evidence_part.h"
#include "health/hang_evidence/stack_facts.h"
#include "health/hang_evidence/store_facts.h"
#include "health/stacks/document.h"
#include "health/stacks/look.h"
#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/base/log.h"
#include "src/base/program_name.h"
#include "src/base/result.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/net/interfaces.h"
#include "src/process/descendants.h"

namespace elastic::run {
namespace {

static_assert(EvidenceTimes{}.reading_ms + EvidenceTimes{}.writing_ms < kEvidenceMs);

std::string_view name_of_part(hang::Part part) { return hang::names_of(hang::Part{})[static_cast<std::size_t>(part)]; }

struct EvidenceFile {
  std::string path;
  std::string text;
};

constexpr std::size_t kNameBytes = 100;

// A node's name as a part of a file's name.
std::string file_name_of(const std::string& node) {
  std::string name = node.substr(0, kNameBytes);
  for (char& c : name) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (!is_plain) c = '_';
  }
  return name.empty() || name.front() == '.' ? "node" + name : name;
}

// What the files of a collection begin with.
std::string stem_of(const EvidenceOrder& order) {
  return format("{}/{}_round_{}_{}", order.directory, file_name_of(order.node), order.round, order.collection);
}

Json json_of(const EvidenceOrder& order, const hang::NodeFacts& facts, const std::vector<std::string>& lines) {
  Json list = Json::array();
  for (const std::string& line : lines) list.push(Json(line));
  Json json = Json::object();
  json.set("round", order.round).set("collection", order.collection).set("node", order.node);
  json.set("facts", write_json(facts, JsonForm::kPlain)).set("lines", std::move(list));
  return json;
}

// What was seen, as files in the order's directory: the stacks for people, and all as JSON. `lines` is what the parts
// say besides.
//   NODE_round_3_1_stacks.txt, NODE_round_3_1_evidence.json
std::vector<EvidenceFile> evidence_files(const EvidenceOrder& order, const hang::NodeFacts& facts,
                                         const std::vector<stacks::RankLook>& looks,
                                         const std::vector<std::string>& lines) {
  const stacks::StacksDocument document{.all = stacks::grouped(looks)};
  std::string page = stacks::page_of(document);
  if (!lines.empty()) page += "\n" + join(lines, "\n") + "\n";
  Json json = json_of(order, facts, lines);
  json.set("stacks", stacks::json_of(document));
  const std::string stem = stem_of(order);
  return {{stem + "_stacks.txt", std::move(page)}, {stem + "_evidence.json", json.dump() + "\n"}};
}

// The same of dumps that were asked for later, as JSON.
//   NODE_round_3_1_dumps.json
std::vector<EvidenceFile> dumps_file(const EvidenceOrder& order, const hang::NodeFacts& facts,
                                     const std::vector<std::string>& lines) {
  return {{stem_of(order) + "_dumps.json", json_of(order, facts, lines).dump() + "\n"}};
}

// Makes the directory and writes the files. Returns what went wrong, as a clause; empty if nothing did.
std::string write_evidence(const std::string& directory, const std::vector<EvidenceFile>& files) {
  // As the directories of logs: what other users may see of it is up to the umask.
  if (mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    return format("cannot make {}: {}", printable(directory), errno_text(errno));
  }
  for (const EvidenceFile& file : files) {
    if (const int error = replace_file(file.path, file.text); error != 0) {
      return format("cannot write {}: {}", printable(file.path), errno_text(error));
    }
  }
  return {};
}

}  // namespace

struct EvidenceCollector::Run {
  // A process that reads one part.
  struct Reader {
    explicit Reader(net::Loop& loop) : deadline(loop) {}
    hang::Part part = hang::Part::kProcesses;
    pid_t pid = 0;
    UniqueFd channel = {};
    std::optional<net::ReadWatch> watch = {};
    std::string to_send = {};
    std::string received = {};
    net::Timer deadline;
    bool is_done = false;
    std::optional<hang::EvidenceAnswer> answer = {};
    hang::SourceFacts why_not = {};
  };

  Run(EvidenceCollector& owner, EvidenceOrder its_order, OnDone its_on_done)
      : of(owner),
        order(std::move(its_order)),
        on_done(std::move(its_on_done)),
        stacks(owner.loop_, {.start = owner.handlers_.start, .kill = owner.handlers_.kill}),
        next_look(owner.loop_),
        end(owner.loop_) {}
  ~Run() {
    for (Reader& reader : readers) end_reader(reader);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void begin();
  void begin_all();
  void begin_part(hang::Part part);
  bool are_stacks_there() const { return order.dumps_least_ms || looks_had == looks.size(); }
  std::vector<EvidenceFile> files_of_all() const;
  void note_store_clients();
  void send(Reader& reader);
  void read(Reader& reader);
  void end_reader(Reader& reader);
  void lost(Reader& reader, hang::Source state, std::string why);
  void look_at_stacks();
  void go_on();
  void judge_and_write();
  hang::NodeFacts facts_of_all();
  void add_store(hang::NodeFacts& facts);
  void done();

  EvidenceCollector& of;
  EvidenceOrder order;
  OnDone on_done;
  std::vector<StacksTarget> targets = {};
  StacksCollector stacks;
  std::array<std::vector<stacks::RankLook>, 2> looks = {};
  std::size_t looks_had = 0;
  net::Timer next_look;
  net::Timer end;
  std::deque<Reader> readers = {};      // a reader stays where it is
  std::vector<std::string> peers = {};  // clients that wait in the store
  std::vector<std::string> lines = {};
  Collected collected = {};
  bool is_writing = false;
};

void EvidenceCollector::Run::begin() {
  const std::vector<process::ProcessFacts> all = process::descendants_of(getpid());
  for (const EvidenceWorker& worker : order.workers) {
    targets.push_back({.rank = worker.rank, .pid = worker.pid, .children = children_of(worker.pid, all)});
  }
  // In a turn of its own: a failure at once must not call back from within collect().
  next_look.start(0, [this] {
    end.start(of.settings_.times.reading_ms, [this] { judge_and_write(); });
    order.dumps_least_ms ? begin_part(hang::Part::kDumps) : begin_all();
  });
}

void EvidenceCollector::Run::begin_all() {
  begin_part(hang::Part::kProcesses);
  begin_part(hang::Part::kRecorder);
  if (order.asks_ras) begin_part(hang::Part::kRas);
  if (of.settings_.asks_gpus) begin_part(hang::Part::kGpus);
  begin_part(hang::Part::kLinks);
  note_store_clients();
  if (!peers.empty()) begin_part(hang::Part::kStoreClients);
  look_at_stacks();
}

// --- The parts ---

void EvidenceCollector::Run::begin_part(hang::Part part) {
  Reader& reader = readers.emplace_back(of.loop_);
  reader.part = part;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return lost(reader, hang::Source::kRefused, "no socket can be made: " + errno_text(errno));
  }
  reader.channel = UniqueFd(ends[0]);
  const UniqueFd its(ends[1]);
  const process::Command command{.path = "/proc/self/exe",
                                 .arguments = {std::string(program_name()), evidence::kEvidenceArgument},
                                 .environment = of.settings_.environment,
                                 .variables = order.variables,
                                 .channel = its.get()};
  const auto pid = of.handlers_.start(command);
  if (!pid) return lost(reader, hang::Source::kRefused, pid.error().text());
  reader.pid = *pid;
  hang::EvidenceTask task{.part = part,
                          .world_size = order.world_size,
                          .round_began_us = order.round_began_us,
                          .gpu_program = of.settings_.gpu_program,
                          .temporary = of.settings_.temporary,
                          .ras_is_ours = order.ras_is_ours,
                          .least_ms = order.dumps_least_ms.value_or(0)};
  if (part == hang::Part::kStoreClients) task.peers = peers;
  for (std::size_t i = 0; i < order.workers.size(); ++i) {
    const EvidenceWorker& worker = order.workers[i];
    const std::size_t count = std::min(targets[i].children.size(), hang::kMostChildren);
    task.workers.push_back({.rank = worker.rank, .local_rank = worker.local_rank, .pid = worker.pid});
    task.workers.back().children.assign(targets[i].children.begin(),
                                        targets[i].children.begin() + static_cast<std::ptrdiff_t>(count));
  }
  for (const net::Interface& interface : net::interfaces()) task.addresses.push_back(interface.address);
  reader.to_send = evidence::line_of(task) + "\n";
  reader.watch.emplace(of.loop_, reader.channel.get(), [this, &reader] { read(reader); });
  send(reader);
}

void EvidenceCollector::Run::note_store_clients() {
  const auto view = of.handlers_.store ? of.handlers_.store(order.world_size) : std::nullopt;
  if (!view) return;
  for (const store::StoreView::Waiting& waiting : view->waiting) {
    if (peers.size() < hang::kMostStoreClients) peers.push_back(waiting.peer);
  }
}

// The whole task, or as much as the socket takes; the rest a moment later.
void EvidenceCollector::Run::send(Reader& reader) {
  constexpr std::int64_t kAMomentMs = 5;
  const ssize_t count =
      ::send(reader.channel.get(), reader.to_send.data(), reader.to_send.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0 && errno != EAGAIN && errno != EINTR) {
    return lost(reader, hang::Source::kLost, "the process that reads it has ended");
  }
  if (count > 0) reader.to_send.erase(0, static_cast<std::size_t>(count));
  if (!reader.to_send.empty()) return reader.deadline.start(kAMomentMs, [this, &reader] { send(reader); });
  const std::int64_t limit_ms = of.settings_.times.of_part_ms.value_or(evidence::limit_ms(reader.part));
  reader.deadline.start(limit_ms, [this, &reader, limit_ms] {
    lost(reader, hang::Source::kLate, format("it was not read within {} s", limit_ms / 1000));
  });
}

void EvidenceCollector::Run::read(Reader& reader) {
  std::array<char, 64 * 1024> piece{};
  const ssize_t count = recv(reader.channel.get(), piece.data(), piece.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return lost(reader, hang::Source::kLost, "the process that reads it has ended");
  reader.received.append(piece.data(), static_cast<std::size_t>(count));
  if (reader.received.size() > evidence::kMostEvidenceBytes) {
    return lost(reader, hang::Source::kLost, "what was read of it is too long");
  }
  if (!reader.received.ends_with('\n')) return;
  reader.received.pop_back();
  reader.answer = evidence::read_evidence(reader.received);
  if (!reader.answer) return lost(reader, hang::Source::kLost, "what was read of it makes no sense");
  reader.received = {};
  reader.is_done = true;
  end_reader(reader);
  go_on();
}

void EvidenceCollector::Run::end_reader(Reader& reader) {
  reader.deadline.stop();
  reader.watch.reset();
  reader.channel = UniqueFd();
  if (reader.pid > 0) of.handlers_.kill(std::exchange(reader.pid, 0));
}

void EvidenceCollector::Run::lost(Reader& reader, hang::Source state, std::string why) {
  end_reader(reader);
  reader.why_not = {state, std::move(why)};
  reader.is_done = true;
  go_on();
}

// --- The stacks ---

void EvidenceCollector::Run::look_at_stacks() {
  stacks.collect(targets, [this](std::vector<stacks::RankLook> seen) {
    looks[looks_had++] = std::move(seen);
    if (looks_had < looks.size()) {
      next_look.start(of.settings_.times.between_looks_ms, [this] { look_at_stacks(); });
    } else {
      go_on();
    }
  });
}

// --- The end ---

void EvidenceCollector::Run::go_on() {
  if (is_writing || !are_stacks_there() || !std::ranges::all_of(readers, &Reader::is_done)) return;
  // In a turn of its own: it may end this collection, in which its caller is.
  end.start(0, [this] { judge_and_write(); });
}

hang::NodeFacts EvidenceCollector::Run::facts_of_all() {
  hang::NodeFacts facts{.name = order.node, .has_answered = true};
  for (const EvidenceWorker& worker : order.workers) {
    facts.own_ranks.add(worker.rank);
    facts.ranks.push_back({.rank = worker.rank, .pid = worker.pid});
  }
  for (const Reader& reader : readers) {
    const std::string_view name = name_of_part(reader.part);
    if (reader.answer) {
      hang::add_part(facts, reader.part, reader.answer->facts);
      for (const std::string& line : reader.answer->lines) lines.push_back(format("{}: {}", name, line));
    } else {
      const hang::SourceFacts missing =
          reader.is_done ? reader.why_not : hang::SourceFacts{hang::Source::kLate, "it was not read in time"};
      hang::add_missing(facts, reader.part, missing);
      lines.push_back(format("{}: {}", name, missing.why));
    }
  }
  if (order.dumps_least_ms) return facts;
  hang::add_stacks(facts, looks[0], looks[1]);
  add_store(facts);
  return facts;
}

void EvidenceCollector::Run::add_store(hang::NodeFacts& facts) {
  const auto view = of.handlers_.store ? of.handlers_.store(order.world_size) : std::nullopt;
  if (!view) return;
  std::map<std::string_view, int> ranks;
  for (const Reader& reader : readers) {
    if (!reader.answer) continue;
    for (const hang::StoreClient& client : reader.answer->clients) ranks.emplace(client.peer, client.rank);
  }
  const std::vector<std::string_view> keys(view->init_keys.begin(), view->init_keys.end());
  std::vector<evidence::StoreWait> waits;
  for (const store::StoreView::Waiting& waiting : view->waiting) {
    const auto known = ranks.find(waiting.peer);
    waits.push_back({.rank = known == ranks.end() ? std::nullopt : std::optional(known->second), .keys = waiting.keys});
  }
  const evidence::StoreFacts seen = evidence::store_facts(keys, waits, order.world_size);
  facts.store = hang::store_facts_of(seen, order.world_size);
  facts.store_source = {view->has_more ? hang::Source::kPartial : hang::Source::kHad, {}};
  for (const std::string& line : hang::store_lines(seen)) lines.push_back("store: " + line);
  if (view->first_to_time_out && *view->first_to_time_out >= 0) {
    lines.push_back(format("store: rank {} was the first whose collective has timed out", *view->first_to_time_out));
  }
}

std::vector<EvidenceFile> EvidenceCollector::Run::files_of_all() const {
  if (order.directory.empty()) return {};
  if (order.dumps_least_ms && order.workers.empty()) return {};
  if (order.dumps_least_ms) return dumps_file(order, collected.facts, lines);
  const std::vector<stacks::RankLook>& seen = looks_had == looks.size() ? looks.back() : looks.front();
  return evidence_files(order, collected.facts, seen, lines);
}

void EvidenceCollector::Run::judge_and_write() {
  is_writing = true;
  collected.facts = facts_of_all();
  for (Reader& reader : readers) end_reader(reader);
  auto files = std::make_shared<std::vector<EvidenceFile>>(files_of_all());
  if (files->empty()) return done();
  for (const EvidenceFile& file : *files) collected.files.push_back(file.path);
  auto problem = std::make_shared<std::string>();
  // The collection may be over when the thread is done with it.
  of.written_ = std::make_shared<bool>(true);
  of.files_.post(
      order.directory, [files, problem, directory = order.directory] { *problem = write_evidence(directory, *files); },
      [this, problem, still = std::weak_ptr(of.written_)] {
        if (!problem->empty()) log::warning("hang_evidence", *problem);
        if (!still.expired()) done();
      });
  end.start(of.settings_.times.writing_ms, [this] { done(); });
}

void EvidenceCollector::Run::done() {
  end.stop();
  of.written_.reset();
  // The call may begin the next collection, which ends this one.
  const OnDone call = std::move(on_done);
  Collected result = std::move(collected);
  const std::unique_ptr<Run> self = std::move(of.run_);
  call(std::move(result));
}

// --- EvidenceCollector ---

EvidenceCollector::EvidenceCollector(net::Loop& loop, net::SideThread& files, EvidenceSettings settings,
                                     Handlers handlers)
    : loop_(loop), files_(files), settings_(std::move(settings)), handlers_(std::move(handlers)) {}

EvidenceCollector::~EvidenceCollector() = default;

void EvidenceCollector::collect(EvidenceOrder order, OnDone on_done) {
  stop();
  run_ = std::make_unique<Run>(*this, std::move(order), std::move(on_done));
  run_->begin();
}

bool EvidenceCollector::is_collecting() const { return run_ != nullptr; }

void EvidenceCollector::stop() {
  written_.reset();
  run_.reset();
}

}  // namespace elastic::run
