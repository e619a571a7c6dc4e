/* SPDX-License-Identifier: MIT
 *
 * Preloaded into an iperf3 client (Debian's, unmodified) whose streams are to begin together. iperf3 opens the streams of -P
 * one after another, each when the one before is open, and sends nothing before the last: the data of N streams begins N
 * round trips late.
 *
 * Here the first stream's connect() opens all streams (BBRLAB_TOGETHER says how many), and returns when each is open; those of
 * the others find theirs open. Nothing else changes: their order, what is sent on each, and what iperf3 sets on an open
 * connection (its congestion control).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define STREAMS 128 /* iperf3 allows no more */

static int (*next_connect)(int, const struct sockaddr *, socklen_t);
static int streams;                          /* of this client */
static int opened;                           /* connect() calls of iperf3 so far: the first is its control connection's */
static int sockets[STREAMS], errors[STREAMS]; /* of the streams: an error of 0 is an open connection */

static int is_tcp(int fd)
{
	int type = 0;
	socklen_t length = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) && type == SOCK_STREAM;
}

/* Open all streams at once, the first one on its own socket, and wait until each is open or has failed. */
static void open_all(int first, const struct sockaddr *address, socklen_t length)
{
	int i;

	for (i = 0; i < streams; i++) {
		errors[i] = 0;
		sockets[i] = i ? socket(address->sa_family, SOCK_STREAM, IPPROTO_TCP) : first;
		if (sockets[i] < 0 || fcntl(sockets[i], F_SETFL, O_NONBLOCK) ||
		    next_connect(sockets[i], address, length))
			errors[i] = errno;
	}
	for (i = 0; i < streams; i++) {
		struct pollfd open = { .fd = sockets[i], .events = POLLOUT };
		socklen_t size = sizeof(errors[i]);

		if (errors[i] == EINPROGRESS && poll(&open, 1, -1) == 1)
			getsockopt(sockets[i], SOL_SOCKET, SO_ERROR, &errors[i], &size);
		if (sockets[i] >= 0)
			fcntl(sockets[i], F_SETFL, 0);
	}
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	int stream;

	if (!next_connect) {
		const char *text = getenv("BBRLAB_TOGETHER");

		next_connect = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
		streams = text ? atoi(text) : 0;
		streams = streams > STREAMS ? STREAMS : streams;
	}
	stream = is_tcp(fd) ? opened++ - 1 : -1;
	if (stream < 0 || stream >= streams)
		return next_connect(fd, address, length);
	if (stream == 0)
		open_all(fd, address, length);
	if (errors[stream]) {
		errno = errors[stream];
		return -1;
	}
	if (stream > 0) {
		dup2(sockets[stream], fd);
		close(sockets[stream]);
	}
	return 0;
}
