// SPDX-License-Identifier: GPL-2.0-only
/*
 * The congestion controls that this module registers. Each is a set of parameters: the profiles
 * below, and what is written to the module parameter "sets", a line each:
 *
 *	NAME BASE [profile=PROFILE] [OPTION=VALUE ...]
 *
 * BASE is the congestion control of a profile, such as "bbr2" or "bbr3". Flows with different
 * sets share a bottleneck that way; a set, once there, never changes.
 */
#include <linux/ctype.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "tcp_bbr_model.h"

#define BBRM_SETS_MAX	64

/* ---- profiles ---- */

#define BBRM_V2_COMMON					\
	.version = 2,					\
	.ecn_max_rtt_us = 5000,				\
	.probe_rtt_interval_ms = BBRM_PROBE_RTT_INTERVAL_MS, \
	.up_pacing_gain = 320,		/* 1.25 */	\
	.up_cwnd_gain = 512,				\
	.small_quantum = true,				\
	.extra_acked = true,				\
	.offload_budget = true,				\
	.headroom = true

#define BBRM_V2ALPHA					\
	.startup_pacing_gain = 739,	/* 2.885 */	\
	.startup_cwnd_gain = 739,			\
	.drain_pacing_gain = 88,	/* 1 / 2.885 */	\
	.drain_cwnd_gain = 739,				\
	.down_pacing_gain = 192,	/* .75 */	\
	.full_loss_count = 8,				\
	.startup_extra_acked_rounds = 1,		\
	.loss_exit_sets_inflight_hi = true,		\
	.loss_anchors_round = true,			\
	.precautionary = true,				\
	.undo_bounds = true

#define BBRM_V3_COMMON					\
	.version = 3,					\
	.startup_cwnd_gain = 512,			\
	.drain_cwnd_gain = 512,				\
	.up_pacing_gain = 320,		/* 1.25 */	\
	.up_cwnd_gain = 576,		/* 2.25 */	\
	.drain_round_limit = 3,		/* only matters when Drain would never end */ \
	.full_loss_count = 6,				\
	.startup_extra_acked_rounds = 1,		\
	.plateau_of_samples = true,			\
	.plateau_ends_up = true,			\
	.loss_exit_sets_inflight_hi = true,		\
	.loss_exit_looks_at_latest = true,		\
	.loss_anchors_round = true,			\
	.precautionary = true,				\
	.undo_bounds = true,				\
	.extra_acked = true,				\
	.offload_budget = true,				\
	.headroom = true

#define BBRM_V3_DRAFTS					\
	.probe_rtt_interval_ms = BBRM_PROBE_RTT_INTERVAL_MS, \
	.startup_pacing_gain = 709,	/* 4 ln 2 */	\
	.down_pacing_gain = 230		/* .9 */

#define BBRM_V3_DRAIN_GAIN	90	/* .35 */

#define BBRM_AS_RELEASED				\
	.whole_packets = true,				\
	.precaution_at_departure = true,		\
	.samples_cut = true,				\
	.drain_after_ack = true

#define BBRM_V3_AS_RELEASED				\
	BBRM_V3_COMMON,					\
	BBRM_AS_RELEASED,				\
	.startup_pacing_gain = 710,	/* 2.77 */	\
	.drain_pacing_gain = 88,	/* 1 / 2.885 */	\
	.down_pacing_gain = 232,	/* .91 */	\
	.plateau_at_each_ack = true

static struct bbrm_set bbrm_profiles[] = {
	{
		/* The version that was released and that papers measured. Its constants are
		 * published facts (slides of IETF 117, issues of other projects); its mechanisms
		 * are those of the drafts, and where these leave a choice, what agrees with the
		 * released code's behaviour (data/google). The published list of changes from v2
		 * to v3 does not have the loss round, so that it is v3's.
		 */
		.ops.name = "bbr2",
		.params = {
			BBRM_V2_COMMON,
			BBRM_V2ALPHA,
			BBRM_AS_RELEASED,
			.profile = "v2alpha",
			.whole_departures = true,
			.equal_rtt_renews = true,
		},
	},
	{
		/* The same as it was before the released code was at hand. */
		.ops.name = "bbr2_before",
		.params = {
			BBRM_V2_COMMON,
			BBRM_V2ALPHA,
			.profile = "v2alpha-before",
			.min_rtt_ends_down = true,
		},
	},
	{
		/* [D2], which is newer and has part of what became BBRv3. */
		.ops.name = "bbr2_draft",
		.params = {
			BBRM_V2_COMMON,
			.profile = "v2-draft",
			.startup_pacing_gain = 709,	/* 4 ln 2 */
			.startup_cwnd_gain = 512,
			.drain_pacing_gain = 128,
			.drain_cwnd_gain = 512,
			.down_pacing_gain = 230,	/* .9 */
			.full_loss_count = 3,
			.startup_extra_acked_rounds = BBRM_EXTRA_ACKED_ROUNDS,
		},
	},
	{
		/* The constants of [D3-00] to [D3-04], which are those of the released version,
		 * with precautionary probing, which that version has but the drafts describe from
		 * -06 on; and where the drafts leave a choice, what agrees with the released
		 * code's behaviour (data/google).
		 */
		.ops.name = "bbr3",
		.params = {
			BBRM_V3_AS_RELEASED,
			.profile = "v3",
			.probe_rtt_interval_ms = BBRM_PROBE_RTT_INTERVAL_MS,
		},
	},
	{
		/* To the letter of the drafts. */
		.ops.name = "bbr3_drafts",
		.params = {
			BBRM_V3_COMMON,
			BBRM_V3_DRAFTS,
			.profile = "v3-drafts",
			.drain_pacing_gain = BBRM_V3_DRAIN_GAIN,
		},
	},
	{
		/* The default before the released code was at hand: the same, but for when the
		 * filter is rotated, which was chosen after a comparison with published
		 * measurements, by a rule that stood before it. The released code refutes it.
		 */
		.ops.name = "bbr3_before",
		.params = {
			BBRM_V3_COMMON,
			BBRM_V3_DRAFTS,
			.profile = "v3-before",
			.drain_pacing_gain = BBRM_V3_DRAIN_GAIN,
			.filter_after_probe_rtt = BBRM_AFTER_CUT_UP,
		},
	},
	{
		/* [D3-06] */
		.ops.name = "bbr3_06",
		.params = {
			BBRM_V3_COMMON,
			BBRM_V3_DRAFTS,
			.profile = "v3-06",
			.drain_pacing_gain = 128,
			.undo_state = true,
			.reno_exit = true,
		},
	},
	{
		/* v3 as [#109] proposes it: the intervals of min_rtt and of ProbeRTT are both 10 s,
		 * as in BBRv1, so that both end at once, and ProbeRTT's window is half of the BDP
		 * before that.
		 */
		.ops.name = "bbr3_issue109",
		.params = {
			BBRM_V3_AS_RELEASED,
			.profile = "v3-issue109",
			.probe_rtt_interval_ms = BBRM_MIN_RTT_WINDOW_US / USEC_PER_MSEC,
			.probe_rtt_cwnd_fixed = true,
		},
	},
};

/* ---- options ---- */

enum bbrm_kind { BBRM_SWITCH, BBRM_NUMBER, BBRM_PERCENT, BBRM_WORD };

struct bbrm_option {
	const char *name;
	enum bbrm_kind kind;
	u16 offset;
	u32 low, high;			/* of BBRM_NUMBER, BBRM_PERCENT */
	const char * const *words;	/* of BBRM_WORD, ended by NULL */
};

#define BBRM_AT(field)	.offset = offsetof(struct bbrm_params, field)

static const char * const bbrm_ecn_words[] = { "off", "ignore", "on", NULL };
static const char * const bbrm_lower_bounds_words[] = {
	"outside-probes", "lossy-refill", "probes-too", NULL
};

static const char * const bbrm_filter_words[] = { "kept", "after-cut-up", "always", NULL };

static const struct bbrm_option bbrm_options[] = {
	/* off: no ECT, though marks are echoed; ignore: ECT but no response; on: tcp_bbr_ecn.c */
	{ "ecn", BBRM_WORD, BBRM_AT(ecn), .words = bbrm_ecn_words },
	{ "ecn_max_rtt_us", BBRM_NUMBER, BBRM_AT(ecn_max_rtt_us), 0, U32_MAX },
	{ "lower_bounds", BBRM_WORD, BBRM_AT(lower_bounds), .words = bbrm_lower_bounds_words },
	{ "filter_after_probe_rtt", BBRM_WORD, BBRM_AT(filter_after_probe_rtt),
	  .words = bbrm_filter_words },
	{ "probe_rtt_interval_ms", BBRM_NUMBER, BBRM_AT(probe_rtt_interval_ms), 200, 600000 },
	{ "up_pacing_gain_percent", BBRM_PERCENT, BBRM_AT(up_pacing_gain), 10, 1000 },
	{ "down_pacing_gain_percent", BBRM_PERCENT, BBRM_AT(down_pacing_gain), 10, 1000 },
	{ "extra_acked", BBRM_SWITCH, BBRM_AT(extra_acked) },
	{ "offload_budget", BBRM_SWITCH, BBRM_AT(offload_budget) },
	{ "headroom", BBRM_SWITCH, BBRM_AT(headroom) },
	{ "precautionary", BBRM_SWITCH, BBRM_AT(precautionary) },
#ifdef CONFIG_TCP_CONG_BBR_TEST
	{ "counters_start", BBRM_NUMBER, BBRM_AT(counters_start), 0, U32_MAX },
#endif
};

static int bbrm_parse_number(const char *value, const struct bbrm_option *option, u32 *number)
{
	int ret = kstrtou32(value, 10, number);

	return ret ?: *number < option->low || *number > option->high ? -ERANGE : 0;
}

/* Put an option's value in its place. */
static int bbrm_parse_value(void *at, const struct bbrm_option *option, const char *value)
{
	u32 number;
	int ret;

	switch (option->kind) {
	case BBRM_SWITCH:
		return kstrtobool(value, at);
	case BBRM_WORD:
		for (number = 0; option->words[number]; number++) {
			if (!strcmp(option->words[number], value)) {
				*(u8 *)at = number;
				return 0;
			}
		}
		return -EINVAL;
	case BBRM_NUMBER:
		return bbrm_parse_number(value, option, at);
	case BBRM_PERCENT:
		ret = bbrm_parse_number(value, option, &number);
		if (!ret)
			*(u16 *)at = number * BBRM_UNIT / 100;
		return ret;
	}
	return -EINVAL;
}

static int bbrm_print_value(char *to, size_t size, const void *at, const struct bbrm_option *option)
{
	switch (option->kind) {
	case BBRM_SWITCH:
		return scnprintf(to, size, "%c", *(const bool *)at ? 'Y' : 'N');
	case BBRM_WORD:
		return scnprintf(to, size, "%s", option->words[*(const u8 *)at]);
	case BBRM_NUMBER:
		return scnprintf(to, size, "%u", *(const u32 *)at);
	case BBRM_PERCENT:
		return scnprintf(to, size, "%u", DIV_ROUND_UP(*(const u16 *)at * 100U, BBRM_UNIT));
	}
	return 0;
}

/* ---- sets ---- */

static const struct tcp_congestion_ops *bbrm_template;
static LIST_HEAD(bbrm_sets);		/* guarded by the lock of the module's parameters */
static unsigned int bbrm_set_count;

static int bbrm_add_set(struct bbrm_set *set)
{
	char name[TCP_CA_NAME_MAX];
	int ret;

	strscpy(name, set->ops.name, sizeof(name));
	set->ops = *bbrm_template;
	strscpy(set->ops.name, name, sizeof(set->ops.name));
	if (set->params.ecn == BBRM_ECN_OFF)
		set->ops.flags |= TCP_CONG_NO_ECT;
	ret = tcp_register_congestion_control(&set->ops);
	if (ret)
		return ret;
	list_add_tail(&set->list, &bbrm_sets);
	bbrm_set_count++;
	return 0;
}

static const struct bbrm_params *bbrm_find_base(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bbrm_profiles); i++) {
		if (!strcmp(bbrm_profiles[i].ops.name, name))
			return &bbrm_profiles[i].params;
	}
	return NULL;
}

/* The profile replaces all that the base gave, and so comes before other options. */
static int bbrm_choose_profile(struct bbrm_set *set, const char *profile)
{
	u8 version = set->params.version;
	int i;

	for (i = 0; i < ARRAY_SIZE(bbrm_profiles); i++) {
		if (!strcmp(bbrm_profiles[i].params.profile, profile) && !set->given &&
		    bbrm_profiles[i].params.version == version) {
			set->params = bbrm_profiles[i].params;
			return 0;
		}
	}
	return -EINVAL;
}

static int bbrm_parse_option(struct bbrm_set *set, char *word)
{
	char *value = strchr(word, '=');
	int i;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	if (!strcmp(word, "profile"))
		return bbrm_choose_profile(set, value);
	for (i = 0; i < ARRAY_SIZE(bbrm_options); i++) {
		if (!strcmp(word, bbrm_options[i].name)) {
			set->given |= BIT(i);
			return bbrm_parse_value((char *)&set->params + bbrm_options[i].offset,
						&bbrm_options[i], value);
		}
	}
	return -EINVAL;
}

static int bbrm_parse_set(struct bbrm_set *set, char *line)
{
	char *name = strsep(&line, " "), *base = strsep(&line, " "), *word;
	const struct bbrm_params *params = base ? bbrm_find_base(base) : NULL;
	int ret;

	if (!params || !*name || strlen(name) >= TCP_CA_NAME_MAX)
		return -EINVAL;
	strscpy(set->ops.name, name, sizeof(set->ops.name));
	set->params = *params;
	while ((word = strsep(&line, " "))) {
		ret = bbrm_parse_option(set, word);
		if (ret) {
			pr_err("%s: refused '%s'\n", name, word);
			return ret;
		}
	}
	return 0;
}

static int bbrm_sets_write(const char *value, const struct kernel_param *kp)
{
	struct bbrm_set *set;
	char *line;
	int ret;

	if (!bbrm_template)		/* still loading */
		return -EBUSY;
	if (bbrm_set_count >= BBRM_SETS_MAX)
		return -ENOSPC;
	line = kstrdup(value, GFP_KERNEL);
	set = kzalloc(sizeof(*set), GFP_KERNEL);
	ret = line && set ? bbrm_parse_set(set, strim(line)) : -ENOMEM;
	if (!ret)
		ret = bbrm_add_set(set);
	if (ret)
		kfree(set);
	kfree(line);
	return ret;
}

static int bbrm_sets_read(char *to, const struct kernel_param *kp)
{
	const struct bbrm_set *set;
	int i, n = 0;

	list_for_each_entry(set, &bbrm_sets, list) {
		n += scnprintf(to + n, PAGE_SIZE - n, "%s profile=%s", set->ops.name,
			       set->params.profile);
		for (i = 0; i < ARRAY_SIZE(bbrm_options); i++) {
			if (!(set->given & BIT(i)))
				continue;
			n += scnprintf(to + n, PAGE_SIZE - n, " %s=", bbrm_options[i].name);
			n += bbrm_print_value(to + n, PAGE_SIZE - n,
					      (char *)&set->params + bbrm_options[i].offset,
					      &bbrm_options[i]);
		}
		n += scnprintf(to + n, PAGE_SIZE - n, "\n");
	}
	return n;
}

static const struct kernel_param_ops bbrm_sets_ops = {
	.set = bbrm_sets_write,
	.get = bbrm_sets_read,
};

/* Late: on the kernel's command line, after the module is there. */
late_param_cb(sets, &bbrm_sets_ops, NULL, 0644);
MODULE_PARM_DESC(sets, "write NAME BASE [profile=PROFILE] [OPTION=VALUE ...] to add one");

static int bbrm_options_read(char *to, const struct kernel_param *kp)
{
	int i, n = scnprintf(to, PAGE_SIZE, "profile");

	for (i = 0; i < ARRAY_SIZE(bbrm_options); i++)
		n += scnprintf(to + n, PAGE_SIZE - n, " %s", bbrm_options[i].name);
	return n + scnprintf(to + n, PAGE_SIZE - n, "\n");
}

static const struct kernel_param_ops bbrm_options_ops = { .get = bbrm_options_read };

module_param_cb(options, &bbrm_options_ops, NULL, 0444);
MODULE_PARM_DESC(options, "the options that a set may have");

static int bbrm_profiles_read(char *to, const struct kernel_param *kp)
{
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(bbrm_profiles); i++)
		n += scnprintf(to + n, PAGE_SIZE - n, "bbr%u %s\n", bbrm_profiles[i].params.version,
			       bbrm_profiles[i].params.profile);
	return n;
}

static const struct kernel_param_ops bbrm_profiles_ops = { .get = bbrm_profiles_read };

module_param_cb(profiles, &bbrm_profiles_ops, NULL, 0444);
MODULE_PARM_DESC(profiles, "the profiles that a set may have, each after its version");

int __init bbrm_register_sets(const struct tcp_congestion_ops *ops)
{
	int i, ret;

	bbrm_template = ops;
	for (i = 0; i < ARRAY_SIZE(bbrm_profiles); i++) {
		ret = bbrm_add_set(&bbrm_profiles[i]);
		if (ret) {
			bbrm_unregister_sets();
			return ret;
		}
	}
	return 0;
}

void bbrm_unregister_sets(void)
{
	struct bbrm_set *set, *next;

	list_for_each_entry_safe(set, next, &bbrm_sets, list) {
		tcp_unregister_congestion_control(&set->ops);
		list_del(&set->list);
		if (set < bbrm_profiles || set >= bbrm_profiles + ARRAY_SIZE(bbrm_profiles))
			kfree(set);
	}
	bbrm_set_count = 0;
}
