/* SPDX-License-Identifier: MIT
 *
 * Preloaded into iperf3 (Debian's, unmodified) in a guest, where a wake-up of a process is the dearest thing there is.
 * Two habits of iperf3 cost more than all of TCP, and one loses data; no change touches what goes over the wire
 * meanwhile:
 *
 * 1. The server is woken for every packet. BBRLAB_RECEIVE_LOWAT sets SO_RCVLOWAT on data connections, so that it is
 *    woken for that many bytes. The first bytes on each connection are a 37-byte cookie, and the control connection
 *    exchanges short messages; waiting for more than those would deadlock. So the mark is set at the first read of at
 *    least that length, which only data connections make. TCP's ACK rule takes the mark into account
 *    (__tcp_ack_snd_check), so the ACK stream stays the same.
 *
 * 2. Between TEST_START and TEST_RUNNING (one RTT) the client spins: select() says that the data sockets are writable,
 *    but it does not write yet. A select() for writing that follows others without a read or write in between waits
 *    for readable sockets only, which is what the client really waits for.
 *
 * 3. A client with a size to send (-n) says TEST_END as soon as it has handed the last byte to its socket; the server
 *    then closes, and what is still in the socket is lost. Here TEST_END waits until everything is acknowledged.
 *
 * 4. Since 3.16 (Debian 13) each stream has a thread, which spins from the last byte of a size (-n) on until the main
 *    thread notices: for ever, in virtual time. A call that writes nothing waits for a moment; and the main thread, which
 *    without a report interval would sleep until the server speaks, looks every so often (BBRLAB_FINITE).
 *
 * 5. Before each select() the client writes ten times and asks for the time ten times, though its socket is full from the
 *    first time on; the server reads until there is nothing left to read. In virtual time nothing happens while a program
 *    runs: a socket that is full or drained stays so, and the clock stands, until the program waits. So the answers are
 *    known, and the kernel is not asked. Only for iperf3 without threads (before 3.16), whose one waiting call is select().
 *
 * 6. Each stream, at both ends, has a block of its own (-l, 1 MiB) that a file in memory backs and that is filled with random
 *    bytes: 4 MiB a stream. Nobody looks at what is sent, and what is received is thrown away (MSG_TRUNC), so all streams
 *    of a process share one block without a file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTORS 4096
#define PATIENCE 3 /* selects in a row without a read or write before the next one waits */

#define TEST_END 4 /* iperf3's control message of one byte */
#define DRAIN_POLL_NS 2000000
#define SENT_ALL_POLL_NS 1000000
#define NOTICE_POLL_US 20000

static int idle_selects;
static unsigned char has_sent[DESCRIPTORS];
static __thread unsigned long writes;

static unsigned long moment = 1; /* counts the calls that may wait */
static int settled;              /* whether this moment began with select(), so that no call of it waits unseen */
static unsigned long full[DESCRIPTORS], drained[DESCRIPTORS]; /* the moment at which a socket was found so */
static unsigned char nonblocking[DESCRIPTORS];                /* it said EAGAIN once */

static void *block; /* of every stream */
static size_t block_bytes;

static int threaded(void)
{
	static int known = -1;

	if (known < 0)
		known = dlsym(RTLD_NEXT, "iperf_send_mt") != NULL;
	return known;
}

/* Note what a read or write of a descriptor told of its socket. */
static void learn(int fd, unsigned long *exhausted, ssize_t result, size_t length)
{
	int known = fd >= 0 && fd < DESCRIPTORS;

	if (known && result < 0 && errno == EAGAIN)
		nonblocking[fd] = 1;
	if (!known || !nonblocking[fd]) {
		moment++;
		settled = 0;
	} else if ((result > 0 && (size_t)result < length) || (result < 0 && errno == EAGAIN)) {
		exhausted[fd] = moment;
	}
}

/* Whether a socket is known to be exhausted; then errno says so, too. */
static int known_to_be(const unsigned long *exhausted, int fd)
{
	if (!settled || threaded() || fd < 0 || fd >= DESCRIPTORS || exhausted[fd] != moment)
		return 0;
	errno = EAGAIN;
	return 1;
}

/* libiperf's only use of it are the streams' blocks, all of one length. */
void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	static void *(*next)(void *, size_t, int, int, int, off_t);

	if (!next)
		next = dlsym(RTLD_NEXT, "mmap");
	if (fd < 0 || address || !(protection & PROT_WRITE))
		return next(address, length, protection, flags, fd, offset);
	if (block && length == block_bytes)
		return block;
	block = next(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	block_bytes = length;
	if (block == MAP_FAILED) {
		block = NULL;
		return MAP_FAILED;
	}
	return block;
}

void *mmap64(void *, size_t, int, int, int, off64_t) __attribute__((alias("mmap"))); /* its name in programs for large files */

int munmap(void *address, size_t length)
{
	static int (*next)(void *, size_t);

	if (!next)
		next = dlsym(RTLD_NEXT, "munmap");
	return address == block ? 0 : next(address, length);
}

/* Wait until every byte written to the data sockets is acknowledged. */
static void drain(int control)
{
	const struct timespec pause = { .tv_nsec = DRAIN_POLL_NS };
	int fd, unacknowledged;

	for (fd = 0; fd < DESCRIPTORS; fd++)
		while (has_sent[fd] && fd != control && !ioctl(fd, SIOCOUTQ, &unacknowledged) && unacknowledged > 0)
			nanosleep(&pause, NULL);
}

ssize_t read(int fd, void *buffer, size_t length)
{
	static ssize_t (*next)(int, void *, size_t);
	static unsigned char seen[DESCRIPTORS];
	static int mark;
	ssize_t result;

	if (!next) {
		const char *text = getenv("BBRLAB_RECEIVE_LOWAT");

		next = dlsym(RTLD_NEXT, "read");
		mark = text ? atoi(text) : 0;
	}
	if (mark > 0 && fd >= 0 && fd < DESCRIPTORS && length >= (size_t)mark && !seen[fd]) {
		seen[fd] = 1;
		setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark));
	}
	idle_selects = 0;
	if (known_to_be(drained, fd))
		return -1;
	/* Nobody looks at the data; the kernel need not copy it. */
	if (fd >= 0 && fd < DESCRIPTORS && seen[fd])
		result = recv(fd, buffer, length, MSG_TRUNC);
	else
		result = next(fd, buffer, length);
	learn(fd, drained, result, length);
	return result;
}

ssize_t write(int fd, const void *buffer, size_t length)
{
	static ssize_t (*next)(int, const void *, size_t);
	ssize_t result;

	if (!next)
		next = dlsym(RTLD_NEXT, "write");
	idle_selects = 0;
	writes++;
	if (length == 1 && *(const char *)buffer == TEST_END)
		drain(fd);
	if (fd > 2 && fd < DESCRIPTORS)
		has_sent[fd] = 1;
	if (known_to_be(full, fd))
		return -1;
	result = next(fd, buffer, length);
	learn(fd, full, result, length);
	return result;
}

int close(int fd)
{
	static int (*next)(int);

	if (!next)
		next = dlsym(RTLD_NEXT, "close");
	if (fd >= 0 && fd < DESCRIPTORS)
		nonblocking[fd] = 0;
	return next(fd);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*next)(clockid_t, struct timespec *);
	static struct timespec last;
	static unsigned long asked;
	int result;

	if (!next)
		next = dlsym(RTLD_NEXT, "clock_gettime");
	if (clock == CLOCK_MONOTONIC && asked == moment && settled && !threaded()) {
		*time = last;
		return 0;
	}
	result = next(clock, time);
	if (clock == CLOCK_MONOTONIC && !result && !threaded()) {
		last = *time;
		asked = moment;
	}
	return result;
}

int select(int count, fd_set *readers, fd_set *writers, fd_set *others, struct timeval *timeout)
{
	static int (*next)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
	static int finite;
	struct timeval pause = { .tv_usec = NOTICE_POLL_US };
	int result;

	if (!next) {
		next = dlsym(RTLD_NEXT, "select");
		finite = getenv("BBRLAB_FINITE") && threaded();
	}
	if (finite && readers && writers && (!timeout || timeout->tv_sec > 0 || timeout->tv_usec > NOTICE_POLL_US))
		timeout = &pause;
	if (writers && readers && ++idle_selects > PATIENCE)
		FD_ZERO(writers);
	moment++;
	settled = 0; /* a signal may end the call for good */
	result = next(count, readers, writers, others, timeout);
	settled = 1;
	return result;
}

/* libiperf's own, called by each stream's thread again and again. */
int iperf_send_mt(void *stream)
{
	static int (*next)(void *);
	const struct timespec pause = { .tv_nsec = SENT_ALL_POLL_NS };
	unsigned long before = writes;
	int result;

	if (!next)
		next = dlsym(RTLD_NEXT, "iperf_send_mt");
	result = next(stream);
	if (writes == before)
		nanosleep(&pause, NULL);
	return result;
}
