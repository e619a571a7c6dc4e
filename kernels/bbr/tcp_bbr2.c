// SPDX-License-Identifier: GPL-2.0-only
/*
 * BBRv2: the congestion control "bbr2". Its profiles:
 *   v2alpha   the version that was released and that papers measured. Its constants are published facts (slides of IETF
 *             117, issues of other projects); its mechanisms are those of the drafts.
 *   v2-draft  draft-cardwell-iccrg-bbr-congestion-control-02, which is newer and has part of what became BBRv3.
 */
#define BBR_NAME		"bbr2"
#define PROFILES_DEFAULT	"v2alpha"
#define ECN_MAX_RTT_US_DEFAULT	5000

#include "tcp_bbr_profile.h"

static const struct profile profiles[] = {
	{
		.name = "v2alpha",
		.startup_pacing_gain = 739,	/* 2.885 */
		.startup_cwnd_gain = 739,
		.drain_pacing_gain = 88,	/* 1 / 2.885 */
		.drain_cwnd_gain = 739,
		.up_pacing_gain = 320,		/* 1.25 */
		.up_cwnd_gain = 512,
		.down_pacing_gain = 192,	/* .75 */
		.full_loss_count = 8,
		.startup_extra_acked_rounds = 1,
		.min_rtt_ends_down = true,
		.loss_exit_sets_inflight_hi = true,
		.precautionary = true,
		.undo_bounds = true,
		.small_quantum = true,
	},
	{
		.name = "v2-draft",
		.startup_pacing_gain = 709,	/* 4 ln 2 */
		.startup_cwnd_gain = 512,
		.drain_pacing_gain = 128,
		.drain_cwnd_gain = 512,
		.up_pacing_gain = 320,
		.up_cwnd_gain = 512,
		.down_pacing_gain = 230,	/* .9 */
		.full_loss_count = 3,
		.startup_extra_acked_rounds = EXTRA_ACKED_ROUNDS,
		.small_quantum = true,
	},
};

#include "tcp_bbr_model.h"

MODULE_DESCRIPTION("TCP BBRv2, written from the Internet-Drafts");
