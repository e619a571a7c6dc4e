/* SPDX-License-Identifier: MIT
 *
 * Preloaded into ovs-vswitchd in a guest in real time. Open vSwitch counts its processors when its monotonic clock has come
 * to 10 s, and until then handles no packet that the kernel has no flow for. In virtual time to wait for that costs nothing
 * (dumbbell.py); here the clock that it sees is ahead, so that nobody has to wait.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

#define AHEAD_S 20

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*next)(clockid_t, struct timespec *);
	int result;

	if (!next)
		next = dlsym(RTLD_NEXT, "clock_gettime");
	result = next(clock, time);
	if (!result && clock == CLOCK_MONOTONIC)
		time->tv_sec += AHEAD_S;
	return result;
}
