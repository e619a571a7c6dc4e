"""Packs finished figures to ship with the package, and judges them anew: `bbrlab ship`, `bbrlab rejudge`."""
