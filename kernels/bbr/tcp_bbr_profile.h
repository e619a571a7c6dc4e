/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tells one version of BBR from another. Gains are multiples of 1/256. The values come from the Internet-Drafts and,
 * for the released versions, from the slides of IETF 117 and 123.
 */
#include <linux/types.h>

#define EXTRA_ACKED_ROUNDS	10

/* Where the versions differ. */
struct profile {
	const char *name;
	u16 startup_pacing_gain, startup_cwnd_gain;
	u16 drain_pacing_gain, drain_cwnd_gain;
	u16 up_pacing_gain, up_cwnd_gain;
	u16 down_pacing_gain;
	u8 drain_round_limit;		/* leave Drain after that many rounds; 0: never for that reason */
	u8 full_loss_count;		/* loss events that end Startup */
	u8 startup_extra_acked_rounds;
	bool plateau_of_samples;	/* Startup's plateau is one of samples' rates (v3), not of max_bw (v2) */
	bool plateau_ends_up;		/* UP ends at a plateau (v3), not at one min_rtt and 1.25 BDP (v2) */
	bool min_rtt_ends_down;		/* DOWN ends after one min_rtt if the headroom is free */
	bool loss_exit_sets_inflight_hi;
	bool loss_exit_looks_at_latest;	/* ... to what was delivered, if that is more than the BDP */
	bool loss_anchors_round;	/* a loss round begins with its first loss (v3) */
	bool precautionary;		/* the probe after one that was too high stops at inflight_hi */
	bool undo_bounds;		/* a spurious loss gives the bounds back */
	bool undo_state;		/* ... and the state [D3-05] */
	bool small_quantum;		/* single segments at low rates */
	bool reno_exit;			/* without SACK, any loss in recovery is too much [D3-05] */
};
