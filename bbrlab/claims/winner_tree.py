"""When BBR, when CUBIC: a decision tree over RTT, rate and buffer (Cao et al. 2019, section 4.1.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bbrlab.base.arrays import Array

DEPTH = 3  # as many levels as their Fig. 4 shows
FOLDS = 5
SEED = 1  # of the folds
MIN_SIDE = 2 * FOLDS  # cases of either kind below which a fold may lack one


def fit(features: Array, wins: Array) -> Any:
    """A tree over all cases.

    Args:
        features: shape (cases, features).
        wins: shape (cases,), whether the first of the two won.

    Returns:
        A fitted sklearn DecisionTreeClassifier.
    """
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=DEPTH, random_state=SEED).fit(features, wins)


def accuracy(features: Array, wins: Array) -> float:
    """Mean accuracy in five-fold cross-validation; NaN if there are too few cases of one kind."""
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.tree import DecisionTreeClassifier

    if min(int(wins.sum()), int((~wins).sum())) < MIN_SIDE:
        return float("nan")
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=SEED)
    return float(np.mean(cross_val_score(tree, features, wins, cv=folds)))
