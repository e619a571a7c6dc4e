// SPDX-License-Identifier: GPL-2.0-only
/*
 * BBRv3: the congestion control "bbr3". Its profiles:
 *   v3     the constants of draft-ietf-ccwg-bbr-00 to -04, which are those of the released version, with precautionary
 *          probing, which that version has but the drafts describe from -06 on.
 *   v3-06  draft-ietf-ccwg-bbr-06.
 */
#define BBR_NAME		"bbr3"
#define PROFILES_DEFAULT	"v3"
#define ECN_MAX_RTT_US_DEFAULT	0

#include "tcp_bbr_profile.h"

static const struct profile profiles[] = {
	{
		.name = "v3",
		.startup_pacing_gain = 709,	/* 2.77 */
		.startup_cwnd_gain = 512,
		.drain_pacing_gain = 90,	/* .35 */
		.drain_cwnd_gain = 512,
		.up_pacing_gain = 320,		/* 1.25 */
		.up_cwnd_gain = 576,		/* 2.25 */
		.down_pacing_gain = 230,	/* .9 */
		.drain_round_limit = 3,		/* only matters when Drain would never end */
		.full_loss_count = 6,
		.startup_extra_acked_rounds = 1,
		.plateau_of_samples = true,
		.plateau_ends_up = true,
		.loss_exit_sets_inflight_hi = true,
		.loss_exit_looks_at_latest = true,
		.loss_anchors_round = true,
		.precautionary = true,
		.undo_bounds = true,
	},
	{
		.name = "v3-06",
		.startup_pacing_gain = 709,
		.startup_cwnd_gain = 512,
		.drain_pacing_gain = 128,
		.drain_cwnd_gain = 512,
		.up_pacing_gain = 320,
		.up_cwnd_gain = 576,
		.down_pacing_gain = 230,
		.drain_round_limit = 3,
		.full_loss_count = 6,
		.startup_extra_acked_rounds = 1,
		.plateau_of_samples = true,
		.plateau_ends_up = true,
		.loss_exit_sets_inflight_hi = true,
		.loss_exit_looks_at_latest = true,
		.loss_anchors_round = true,
		.precautionary = true,
		.undo_bounds = true,
		.undo_state = true,
		.reno_exit = true,
	},
};

#include "tcp_bbr_model.h"

MODULE_DESCRIPTION("TCP BBRv3, written from the Internet-Drafts");
