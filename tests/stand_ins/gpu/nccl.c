// The stand-in for libnccl.so.2. It gathers over TCP: rank 0, in the process that made the id, receives each rank's
// share and sends all of them to every rank.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/stand_ins/gpu/stand_in.h"

#define NCCL STAND_IN_EXPORT NcclResult

enum { kMaxRanks = 64, kMaxIds = 256, kPollMs = 20, kShortBytes = 1024 };

// The content of an id.
typedef struct {
  char magic[8];
  uint64_t token;
  struct sockaddr_in root;
} Id;

struct NcclCommObject {
  int rank, world, device;
  Id id;
  int sockets[kMaxRanks];  // rank 0 has one to each rank, the others have the first one, to rank 0
  _Atomic int state;       // NcclResult
  _Atomic bool is_aborted;
  _Atomic int running;  // gathers that have not ended yet
  int gathers;          // in all
  bool is_blocking;
  NcclComm* place;  // the caller's variable, written again when the initialization is over, as 2.14 does
  bool has_thread;  // a thread works in the background, one at a time
  pthread_t thread;
  char error[512];
};

static struct {
  uint64_t token;
  int listener;
} ids[kMaxIds];
static int id_count;

// NCCL prints to stdout.
static void say(const char* format, int number) {
  if (getenv("NCCL_DEBUG") == NULL) return;
  printf(format, number);
  fflush(stdout);
}

static int device_now(void) { return ((DeviceFunction)find_in_cuda("stand_in_device"))(); }

// --- Errors --------------------------------------------------------------------------------------------

static bool fail(NcclComm comm, NcclResult result, const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(comm->error, sizeof comm->error, format, values);
  va_end(values);
  atomic_store(&comm->state, result);
  return false;
}

STAND_IN_EXPORT const char* ncclGetErrorString(NcclResult result) {
  static const char* const kTexts[] = {"no error",
                                       "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                       "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                       "internal error - please report this issue to the NCCL developers",
                                       "invalid argument (run with NCCL_DEBUG=WARN for details)",
                                       "invalid usage (run with NCCL_DEBUG=WARN for details)",
                                       "remote process exited or there was a network error",
                                       "NCCL operation in progress"};
  return result >= 0 && result <= kNcclInProgress ? kTexts[result] : "unknown result code";
}

STAND_IN_EXPORT const char* ncclGetLastError(NcclComm comm) { return comm != NULL ? comm->error : ""; }

// --- Sockets -------------------------------------------------------------------------------------------

// Waits until the socket is ready. Returns false if the communicator is aborted before.
static bool wait_for(NcclComm comm, int fd, short events) {
  struct pollfd waiting = {fd, events, 0};
  while (!atomic_load(&comm->is_aborted)) {
    if (poll(&waiting, 1, kPollMs) > 0) return true;
  }
  return false;
}

static bool transfer(NcclComm comm, int fd, void* bytes, size_t count, bool is_sending) {
  char* at = bytes;
  while (count != 0) {
    if (!wait_for(comm, fd, is_sending ? POLLOUT : POLLIN)) return false;
    ssize_t done = is_sending ? send(fd, at, count, MSG_NOSIGNAL | MSG_DONTWAIT) : recv(fd, at, count, MSG_DONTWAIT);
    if (done < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (done < 0) return fail(comm, kNcclRemoteError, "socket of rank %d: %s", comm->rank, strerror(errno));
    if (done == 0)
      return fail(comm, kNcclRemoteError, "socket of rank %d: connection closed by remote peer", comm->rank);
    at += done;
    count -= (size_t)done;
  }
  return true;
}

// Whether the interface has one of the comma-separated prefixes in NCCL_SOCKET_IFNAME, or that variable is not set.
static bool is_wanted(const char* interface) {
  const char* given = getenv("NCCL_SOCKET_IFNAME");
  if (given == NULL) return true;
  for (const char* at = given; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
    if (strncmp(interface, at, strcspn(at, ",")) == 0) return true;
  }
  return false;
}

// The first address that other hosts can reach; the loopback address if there is none.
static struct in_addr own_address(void) {
  struct in_addr found = {htonl(INADDR_LOOPBACK)};
  struct ifaddrs* all = NULL;
  if (getifaddrs(&all) != 0) return found;
  for (struct ifaddrs* one = all; one != NULL; one = one->ifa_next) {
    if (one->ifa_addr == NULL || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP)) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) || !is_wanted(one->ifa_name)) continue;
    found = ((struct sockaddr_in*)(void*)one->ifa_addr)->sin_addr;
    break;
  }
  freeifaddrs(all);
  return found;
}

static int connect_to_root(NcclComm comm) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0, one = 1;
  socklen_t length = sizeof error;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(fd, (const struct sockaddr*)(const void*)&comm->id.root, sizeof comm->id.root) != 0 &&
      errno != EINPROGRESS) {
    error = errno;
  } else if (wait_for(comm, fd, POLLOUT)) {
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  } else {
    error = ECANCELED;
  }
  if (error == 0) return fd;
  close(fd);
  char address[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &comm->id.root.sin_addr, address, sizeof address);
  fail(comm, kNcclSystemError, "Connect to %s<%d> failed : %s", address, ntohs(comm->id.root.sin_port),
       strerror(error));
  return -1;
}

// --- Initialization ------------------------------------------------------------------------------------

typedef struct {
  uint64_t token;
  int32_t rank;
  int32_t version;
  int32_t device;
  char host[64];  // NCCL_HOSTID
} Hello;

static int own_version(void) { return (int)fact_number(-1, "nccl_version"); }

static Hello own_hello(NcclComm comm) {
  const char* host = getenv("NCCL_HOSTID");
  Hello mine = {comm->id.token, comm->rank, own_version(), comm->device, ""};
  snprintf(mine.host, sizeof mine.host, "%s", host != NULL ? host : "");
  return mine;
}

// Whether two ranks cannot be in one communicator: their versions differ, or both have the same GPU of one host.
// Without NCCL_HOSTID each rank is a host of its own.
static bool check_hello(NcclComm comm, const Hello* theirs) {
  Hello mine = own_hello(comm);
  if (theirs->version != mine.version) {
    return fail(comm, kNcclInvalidUsage, "Mismatched NCCL version detected : rank %d version %d rank %d version %d",
                comm->rank, mine.version, theirs->rank, theirs->version);
  }
  if (mine.host[0] != '\0' && strcmp(mine.host, theirs->host) == 0 && mine.device == theirs->device) {
    return fail(comm, kNcclInvalidUsage, "Duplicate GPU detected : rank %d and rank %d both on CUDA device %x000",
                comm->rank, theirs->rank, 0x1a + (unsigned)mine.device);
  }
  return true;
}

static bool meet_ranks(NcclComm comm) {
  int listener = -1;
  for (int i = 0; i < id_count; ++i) {
    if (ids[i].token == comm->id.token) listener = ids[i].listener;
  }
  if (listener < 0) return fail(comm, kNcclInternalError, "rank 0 has not made this id");
  Hello mine = own_hello(comm);
  for (int met = 1; met < comm->world; ++met) {
    if (!wait_for(comm, listener, POLLIN)) return false;
    Hello hello;
    int one = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return fail(comm, kNcclSystemError, "accept: %s", strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!transfer(comm, fd, &hello, sizeof hello, false) || !transfer(comm, fd, &mine, sizeof mine, true)) return false;
    if (hello.token != comm->id.token || hello.rank < 1 || hello.rank >= comm->world ||
        comm->sockets[hello.rank] >= 0) {
      return fail(comm, kNcclInternalError, "a stranger among the ranks");
    }
    comm->sockets[hello.rank] = fd;
    if (!check_hello(comm, &hello)) return false;
  }
  return true;
}

static bool meet_root(NcclComm comm) {
  Hello hello = own_hello(comm);
  comm->sockets[0] = connect_to_root(comm);
  return comm->sockets[0] >= 0 && transfer(comm, comm->sockets[0], &hello, sizeof hello, true) &&
         transfer(comm, comm->sockets[0], &hello, sizeof hello, false) && check_hello(comm, &hello);
}

// NCCL keeps its buffers for ranks of one host in /dev/shm.
static bool make_shared_memory(NcclComm comm) {
  char path[256];
  const char* directory = getenv("STAND_IN_GPU_SHM");
  snprintf(path, sizeof path, "%s/nccl-%d-%d", directory != NULL ? directory : "/dev/shm", (int)getpid(), comm->rank);
  int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    return fail(comm, kNcclSystemError, "Error while creating shared memory segment %s (size 9637888), error: %s (%d)",
                path, strerror(errno), errno);
  }
  close(fd);
  unlink(path);
  return true;
}

// Writes a record such as the driver writes to the kernel log, in the format of /dev/kmsg; its time is after all
// others.
static void write_xid(int device, int xid) {
  const char* path = getenv("STAND_IN_GPU_KMSG");
  FILE* file = path != NULL ? fopen(path, "ae") : NULL;
  if (file == NULL) return;
  unsigned domain = 0, bus = 0, place = 0;
  sscanf(fact(device, "bus_id"), "%x:%x:%x", &domain, &bus, &place);
  fprintf(file, "3,1,9000000000000000,-;NVRM: Xid (PCI:%04x:%02x:%02x): %d, pid=7, x\n", domain, bus, place, xid);
  fclose(file);
}

static void* initialise(void* argument) {
  NcclComm comm = argument;
  double xid = 0;
  if (has_fault("xid", comm->device, comm->rank, &xid)) write_xid(comm->device, (int)xid);
  if (has_fault("crash_in_init", comm->device, comm->rank, NULL)) crash();
  while (has_fault("hang_in_init", comm->device, comm->rank, NULL) && !atomic_load(&comm->is_aborted))
    usleep(kPollMs * 1000);
  if (has_fault("init_fails", comm->device, comm->rank, NULL)) {
    fail(comm, kNcclSystemError, "Call to ibv_modify_qp failed with 110 Connection timed out");
  } else if (make_shared_memory(comm) && (comm->rank == 0 ? meet_ranks(comm) : meet_root(comm))) {
    atomic_store(&comm->state, kNcclSuccess);
  }
  *comm->place = comm;
  return NULL;
}

// Runs a function in the background, as NCCL does for a nonblocking communicator.
static NcclResult begin(NcclComm comm, void* (*work)(void*), void* argument) {
  if (comm->has_thread) pthread_join(comm->thread, NULL);
  atomic_store(&comm->state, kNcclInProgress);
  comm->has_thread = pthread_create(&comm->thread, NULL, work, argument) == 0;
  return comm->has_thread ? kNcclInProgress : kNcclSystemError;
}

static NcclComm new_comm(NcclComm* place, int ranks, NcclId id, int rank) {
  NcclComm comm = calloc(1, sizeof *comm);
  comm->place = place;
  comm->is_blocking = true;
  comm->rank = rank;
  comm->world = ranks;
  comm->device = device_now();
  memcpy(&comm->id, id.bytes, sizeof comm->id);
  for (int i = 0; i < kMaxRanks; ++i) comm->sockets[i] = -1;
  atomic_store(&comm->state, kNcclInProgress);
  return comm;
}

static bool is_usable(int ranks, NcclId id, int rank) {
  return ranks >= 1 && ranks <= kMaxRanks && rank >= 0 && rank < ranks && memcmp(id.bytes, "stand-in", 8) == 0;
}

NCCL ncclGetVersion(int* version) {
  *version = own_version();
  return kNcclSuccess;
}

NCCL ncclGetUniqueId(NcclId* id) {
  Id made = {{'s', 't', 'a', 'n', 'd', '-', 'i', 'n'}, 0, {0}};
  socklen_t length = sizeof made.root;
  struct sockaddr_in any = {.sin_family = AF_INET};
  say("NCCL version %d+stand-in\n", own_version());
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (id_count == kMaxIds || bind(listener, (const struct sockaddr*)(const void*)&any, sizeof any) != 0 ||
      listen(listener, kMaxRanks) != 0 || getsockname(listener, (struct sockaddr*)(void*)&made.root, &length) != 0 ||
      getrandom(&made.token, sizeof made.token, 0) != sizeof made.token) {
    return kNcclSystemError;
  }
  made.root.sin_addr = own_address();
  ids[id_count].token = made.token;
  ids[id_count++].listener = listener;
  memset(id, 0, sizeof *id);
  memcpy(id->bytes, &made, sizeof made);
  return kNcclSuccess;
}

NCCL ncclCommInitRank(NcclComm* comm, int ranks, NcclId id, int rank) {
  if (!is_usable(ranks, id, rank)) return kNcclInvalidArgument;
  *comm = new_comm(comm, ranks, id, rank);
  initialise(*comm);
  return atomic_load(&(*comm)->state);
}

NCCL ncclCommInitRankConfig(NcclComm* comm, int ranks, NcclId id, int rank, NcclConfig* config) {
  if (!is_usable(ranks, id, rank) || config->magic != NCCL_CONFIG_MAGIC || config->size < sizeof *config) {
    return kNcclInvalidArgument;
  }
  if (config->blocking != 0) return ncclCommInitRank(comm, ranks, id, rank);
  *comm = new_comm(comm, ranks, id, rank);
  (*comm)->is_blocking = false;
  return begin(*comm, initialise, *comm);
}

NCCL ncclCommGetAsyncError(NcclComm comm, NcclResult* error) {
  *error = atomic_load(&comm->state);
  return kNcclSuccess;
}

// --- Gathering -----------------------------------------------------------------------------------------

typedef struct {
  NcclComm comm;
  const char* send;
  char* receive;
  size_t bytes;
  CudaStream stream;
} Order;

// Puts all shares into their places, and sets the largest of all ranks' factors by which the gather is slow.
static bool gather(const Order* order, double* factor) {
  NcclComm comm = order->comm;
  size_t all = order->bytes * (size_t)comm->world;
  *factor = fault_factor("slow_gather", comm->device, comm->rank);
  memmove(order->receive + (size_t)comm->rank * order->bytes, order->send, order->bytes);
  if (comm->rank != 0) {
    return transfer(comm, comm->sockets[0], factor, sizeof *factor, true) &&
           transfer(comm, comm->sockets[0], order->receive + (size_t)comm->rank * order->bytes, order->bytes, true) &&
           transfer(comm, comm->sockets[0], factor, sizeof *factor, false) &&
           transfer(comm, comm->sockets[0], order->receive, all, false);
  }
  for (int rank = 1; rank < comm->world; ++rank) {
    double theirs;
    if (!transfer(comm, comm->sockets[rank], &theirs, sizeof theirs, false) ||
        !transfer(comm, comm->sockets[rank], order->receive + (size_t)rank * order->bytes, order->bytes, false)) {
      return false;
    }
    if (theirs > *factor) *factor = theirs;
  }
  for (int rank = 1; rank < comm->world; ++rank) {
    if (!transfer(comm, comm->sockets[rank], factor, sizeof *factor, true) ||
        !transfer(comm, comm->sockets[rank], order->receive, all, true)) {
      return false;
    }
  }
  return true;
}

static void wait_for_abort(NcclComm comm) {
  while (!atomic_load(&comm->is_aborted)) usleep(kPollMs * 1000);
}

static double run(void* argument) {
  Order order = *(Order*)argument;
  NcclComm comm = order.comm;
  double factor = 1;
  free(argument);
  if (has_fault("crash_in_gather", comm->device, comm->rank, NULL)) crash();
  if (has_fault("hang_in_gather", comm->device, comm->rank, NULL)) wait_for_abort(comm);
  static _Atomic int all_gathers;
  double short_from = 0;
  bool is_short = has_fault("short_from_gather", comm->device, comm->rank, &short_from);
  char* memory = order.receive;
  if (atomic_fetch_add(&all_gathers, 1) + 1 < (int)short_from) is_short = false;
  if (is_short) order.receive = malloc(order.bytes * (size_t)comm->world);
  // As with NCCL, a kernel whose peers are gone does not end by itself.
  if (!gather(&order, &factor)) wait_for_abort(comm);
  if (has_fault("gather_wrong", comm->device, comm->rank, NULL))
    order.receive[order.bytes * (size_t)comm->world - 4] ^= 1;
  if (is_short) {
    memcpy(memory, order.receive, order.bytes < kShortBytes ? order.bytes : kShortBytes);
    free(order.receive);
    order.receive = memory;
  }
  double cost_ms = 0.02 + (double)(order.bytes * (size_t)(comm->world - 1)) / 50e6;
  atomic_fetch_sub(&comm->running, 1);
  return cost_ms * factor;
}

static void* launch(void* argument) {
  Order* order = argument;
  NcclComm comm = order->comm;
  usleep(100);  // so that the caller goes on before the gather is on the stream
  ((EnqueueFunction)find_in_cuda("stand_in_enqueue"))(order->stream, run, order);
  NcclResult expected = kNcclInProgress;
  atomic_compare_exchange_strong(&comm->state, &expected, kNcclSuccess);  // a failed communicator stays failed
  return NULL;
}

NCCL ncclAllGather(const void* send, void* receive, size_t count, int type, NcclComm comm, CudaStream stream) {
  if (type != kNcclInt8) return kNcclInvalidArgument;
  Order* order = malloc(sizeof *order);
  *order = (Order){comm, send, receive, count, stream};
  atomic_fetch_add(&comm->running, 1);
  ++comm->gathers;
  if (!comm->is_blocking) return begin(comm, launch, order);
  launch(order);
  return kNcclSuccess;
}

// --- End -----------------------------------------------------------------------------------------------

static NcclResult drop(NcclComm comm) {
  if (comm->has_thread) pthread_join(comm->thread, NULL);
  while (atomic_load(&comm->running) != 0) usleep(1000);
  for (int i = 0; i < kMaxRanks; ++i) {
    if (comm->sockets[i] >= 0) close(comm->sockets[i]);
  }
  say("%d gathers\n", comm->gathers);
  free(comm);
  return kNcclSuccess;
}

NCCL ncclCommFinalize(NcclComm comm) {
  if (has_fault("hang_in_end", comm->device, comm->rank, NULL)) {
    atomic_store(&comm->state, kNcclInProgress);
    return kNcclInProgress;
  }
  return kNcclSuccess;
}

NCCL ncclCommDestroy(NcclComm comm) { return drop(comm); }

NCCL ncclCommAbort(NcclComm comm) {
  if (has_fault("hang_in_abort", comm->device, comm->rank, NULL)) hang_for_ever();
  atomic_store(&comm->is_aborted, true);
  return drop(comm);
}
