// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hooks for tests, which no kernel needs that only sends.
 */
#include "tcp_bbr_model.h"

/* Let the packet counters wrap soon, while no packet is out that remembers the old counts. */
void bbrm_test_move_counters(struct sock *sk)
{
	u32 by = bbrm_params_of(sk)->counters_start;
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbrm *bbr = bbrm_of(sk);

	if (!by || bbr->counters_moved || tp->packets_out)
		return;
	bbr->counters_moved = 1;
	tp->delivered += by;
	tp->lost += by;
	if (tp->app_limited)
		tp->app_limited = tp->app_limited + by ?: 1;
	bbr->initial_delivered += by;
	bbr->next_round_delivered += by;
	bbr->loss_round_delivered += by;
	bbr->recovery_delivered += by;
	bbr->ecn_round_delivered += by;
}
