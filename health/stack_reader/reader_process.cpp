#include "health/stack_reader/reader_process.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "health/stack_reader/onlooker.h"
#include "src/base/json.h"
#include "src/base/json_archive.h"
#include "src/base/unique_fd.h"
#include "src/process/confinement.h"
#include "src/process/spawn.h"

namespace elastic::stacks {
namespace {

// A message of a question, which may carry a descriptor.
struct Letter {
  ReaderQuestion question;
  iovec part{&question, sizeof question};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};

  Letter() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
  }
  Letter(const Letter&) = delete;
  Letter& operator=(const Letter&) = delete;

  void allow_descriptor() {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
};

std::string text_of(ReaderAnswer answer) {
  for (;;) {
    std::string text = write_json(answer, JsonForm::kForgiving).dump();
    if (text.size() < kMostAnswerBytes || answer.look.threads.size() <= 1) return text;
    answer.look.threads.resize(answer.look.threads.size() / 2);
    answer.look.is_cut = true;
  }
}

bool say(int channel, ProcessLook look, bool is_last) {
  const std::string line = text_of({is_last, std::move(look)}) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = send(channel, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
  return true;
}

// Returns false when there are no more questions.
bool hear(int channel, ReaderQuestion& question, UniqueFd& memory) {
  Letter letter;
  letter.allow_descriptor();
  ssize_t count = 0;
  do {
    count = recvmsg(channel, &letter.header, MSG_WAITALL | MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  const cmsghdr* attached = CMSG_FIRSTHDR(&letter.header);
  if (attached != nullptr && attached->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(attached), sizeof descriptor);
    memory = UniqueFd(descriptor);
  }
  question = letter.question;
  return count == static_cast<ssize_t>(sizeof question);
}

}  // namespace

Status ask(int channel, const ReaderQuestion& question, int memory) {
  Letter letter;
  letter.question = question;
  if (memory >= 0) {
    letter.allow_descriptor();
    cmsghdr* attached = CMSG_FIRSTHDR(&letter.header);
    attached->cmsg_level = SOL_SOCKET;
    attached->cmsg_type = SCM_RIGHTS;
    attached->cmsg_len = CMSG_LEN(sizeof memory);
    std::memcpy(CMSG_DATA(attached), &memory, sizeof memory);
  }
  if (sendmsg(channel, &letter.header, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof question)) return {};
  return fail_errno("cannot ask the process that reads stacks", errno);
}

std::optional<ReaderAnswer> read_answer(std::string_view line) {
  constexpr std::size_t kMostLevels = 8;
  constexpr std::size_t kMostMembers = 16;
  if (!json_over_bounds(line, kMostLevels, kMostMembers).empty()) return {};
  const auto json = Json::parse(line, "an answer");
  ReaderAnswer answer;
  if (!json || json->find("look") == nullptr) return {};
  if (!read_json(*json, answer, JsonForm::kForgiving, kMostNameBytes).empty() || answer.look.threads.empty()) return {};
  return answer;
}

int run_reader_process() {
  const int channel = process::kChannel;
  const Status confined = process::confine({});
  Onlooker onlooker;
  ReaderQuestion question;
  for (;;) {
    UniqueFd memory;
    if (!hear(channel, question, memory)) return 0;
    ProcessLook first = Onlooker::kernel_look(question.pid);
    if (!confined) first.problem = "its memory is not read: " + confined.error().text();
    if (!say(channel, first, !confined)) return 0;
    if (confined && !say(channel, onlooker.read_process(question.pid, std::move(memory), question.error), true))
      return 0;
  }
}

}  // namespace elastic::stacks
