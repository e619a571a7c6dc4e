// SPDX-License-Identifier: GPL-2.0-only
/*
 * AIMD: Reno with another decrease. The example of docs/howto/own_algorithm.md.
 *
 * The window grows as Reno's does: in slow start by one packet for each packet that arrived, later
 * by one packet in each round trip. A loss cuts it to keep_permille / 1000 of what it was: with 500
 * it is Reno, with 800 it gives up a fifth where Reno gives up half.
 */
#include <linux/module.h>
#include <net/tcp.h>

static unsigned int keep_permille __read_mostly = 500;
module_param(keep_permille, uint, 0644);
MODULE_PARM_DESC(keep_permille, "part of the window that a loss leaves, in thousandths");

/* Asked when a loss was found: how large may the window be from now on? In packets, at least 2. */
static u32 aimd_ssthresh(struct sock *sk)
{
	u64 window = tcp_snd_cwnd(tcp_sk(sk));

	return max_t(u32, div_u64(window * keep_permille, 1000), 2);
}

/* Called for each ACK outside recovery: acked more packets have arrived. */
static void aimd_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))	/* the application sends less than the window allows */
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
}

static struct tcp_congestion_ops aimd __read_mostly = {
	.name		= "aimd",	/* as the file is called */
	.owner		= THIS_MODULE,
	.ssthresh	= aimd_ssthresh,
	.cong_avoid	= aimd_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
};

static int __init aimd_register(void)
{
	if (keep_permille < 1 || keep_permille > 999)
		return -EINVAL;
	return tcp_register_congestion_control(&aimd);
}

static void __exit aimd_unregister(void)
{
	tcp_unregister_congestion_control(&aimd);
}

module_init(aimd_register);
module_exit(aimd_unregister);

MODULE_AUTHOR("bbrlab");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("AIMD: Reno with another decrease");
