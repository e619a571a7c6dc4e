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
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
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
	/* Nobody looks at the data; the kernel need not copy it. */
	if (fd >= 0 && fd < DESCRIPTORS && seen[fd])
		return recv(fd, buffer, length, MSG_TRUNC);
	return next(fd, buffer, length);
}

ssize_t write(int fd, const void *buffer, size_t length)
{
	static ssize_t (*next)(int, const void *, size_t);

	if (!next)
		next = dlsym(RTLD_NEXT, "write");
	idle_selects = 0;
	writes++;
	if (length == 1 && *(const char *)buffer == TEST_END)
		drain(fd);
	if (fd > 2 && fd < DESCRIPTORS)
		has_sent[fd] = 1;
	return next(fd, buffer, length);
}

int select(int count, fd_set *readers, fd_set *writers, fd_set *others, struct timeval *timeout)
{
	static int (*next)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
	static int finite;
	struct timeval pause = { .tv_usec = NOTICE_POLL_US };

	if (!next) {
		next = dlsym(RTLD_NEXT, "select");
		finite = getenv("BBRLAB_FINITE") && dlsym(RTLD_NEXT, "iperf_send_mt");
	}
	if (finite && readers && writers && (!timeout || timeout->tv_sec > 0 || timeout->tv_usec > NOTICE_POLL_US))
		timeout = &pause;
	if (writers && readers && ++idle_selects > PATIENCE)
		FD_ZERO(writers);
	return next(count, readers, writers, others, timeout);
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
