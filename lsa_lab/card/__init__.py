"""Report cards of sequence models.

A card says which algorithm a model runs in context, how far its risk is from the best, and on which
prompts it fails.

    card = report_card(forward, init)             # train three seeds, then measure
    card = report_card(forward, params=params)    # measure a trained model
    card.save("figures/cards/mine")               # a page, a badge, card.json, weights.npz
    Card.load("figures/cards/mine")
    identify(forward, params, task)               # find the nearest known algorithm

The command ``lsa-lab card my_package:forward my_package:init --name mine`` does the same.
docs/card.md defines every number.
"""

from lsa_lab.card.card import Card, report_card
from lsa_lab.card.evaluation import Probe, Tier
from lsa_lab.card.identity import NearestRule, identify
from lsa_lab.card.model_under_test import UnfitError
from lsa_lab.card.recipe import sample_prompts

__all__ = ["Card", "NearestRule", "Probe", "Tier", "UnfitError", "identify", "report_card"]
__all__ += ["sample_prompts"]
