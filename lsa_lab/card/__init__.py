"""A report card for any sequence model: what it computes in context, how far it is from the best
there is, and where it breaks.

    card = report_card(forward, init)             # three seeds are trained, then asked
    card = report_card(forward, params=params)    # a trained model
    card.save("figures/cards/mine")               # card.json, index.html, badge.svg
    identify(forward, params, task)               # which algorithm is it?

The same as a command: ``lsa-lab card my_package:forward my_package:init --name mine``. What each
number means stands in docs/card.md.
"""

from lsa_lab.card.card import Card, report_card
from lsa_lab.card.identity import Nearest, identify
from lsa_lab.card.probe import Probe
from lsa_lab.card.recipe import Tier
from lsa_lab.card.subject import UnfitError

__all__ = ["Card", "Nearest", "Probe", "Tier", "UnfitError", "identify", "report_card"]
