/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the kernels that the lab is built from differ: the only file that asks for a version.
 */
#ifndef _TCP_BBR_COMPAT_H
#define _TCP_BBR_COMPAT_H

#include <linux/random.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define get_random_u32_below(n)	prandom_u32_max(n)
#endif

/* What cong_control() is told beside the socket. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define BBRM_CONG_CONTROL_ARGS	const struct rate_sample *rs
#else
#define BBRM_CONG_CONTROL_ARGS	u32 ack, int flag, const struct rate_sample *rs
#endif

#endif /* _TCP_BBR_COMPAT_H */
