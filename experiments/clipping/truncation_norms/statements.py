"""What `truncation_norms` judges, by the criteria in its Config."""

from lsa_lab.claims import Statement

A2 = "A2 (2406.03768)"
SHARE = "the share of draws in which it rises"
OVERALL = "the share of draws, matrices, layers and ranks in which it rises"
FRESH = "32 fresh seeds, 16 before"
FRESH_RUNS = "16 fresh runs, 10 before"
CONTROLS = 'A2 says "controls" of |G_t|, and "decreases" of its upper bound alone, a theorem here'


def statements(config) -> tuple[Statement, ...]:
    return (
        *_about_updates(config),
        *_about_the_typical_draw(config),
        *_about_depth(),
    )


def _about_updates(config):
    seeds = {"over": "seeds", "redrawn": FRESH}
    scale = _scale(config)
    return (
        Statement(
            "own",
            f"{A2}, Remarks 4 and 6, our reading, in our setting",
            "Truncating W_V, W_K or W_Q lowers the norm of its own G_t",
            OVERALL,
            at_most=config.rarely,
            note=f"{CONTROLS}; {scale}",
            **seeds,
        ),
        Statement(
            "sum",
            f"{A2}, Remark 6 and Theorem 2, our reading, in our setting",
            "Truncating W_V, W_K or W_Q lowers Σ|G_t|², which the bound contains",
            OVERALL,
            at_most=config.rarely,
            note=f"{CONTROLS}; {scale}",
            **seeds,
        ),
        Statement(
            "sum_when_trained",
            f"{A2}, Remark 6 and Theorem 2, our reading, in our setting",
            "Truncating w_pv or w_kq of a trained stack lowers Σ|G_t|²",
            "the share of prompts, matrices, layers and ranks in which it rises",
            at_most=config.rarely,
            note=CONTROLS,
            redrawn=FRESH_RUNS,
        ),
        Statement(
            "mlp_with_residuals",
            f"modelled on {A2}, Example 4",
            "|ΔW + W_MLP + W_MLP ΔW|, the update of a block with residuals, falls as W_MLP is cut",
            SHARE,
            at_most=config.rarely,
            note="A2 has |W_MLP ΔW|, which never rises: a theorem here",
            **seeds,
        ),
        Statement(
            "unprovable",
            "derived here",
            "|G_t| does rise with W_K anywhere, with W_Q and W_Kᵀ W_Q at later layers",
            f"{SHARE}, at the one where it is least",
            at_least=config.visible,
            note=scale,
            **seeds,
        ),
    )


def _about_the_typical_draw(config):
    return (
        Statement(
            "typical",
            "derived here",
            "In the typical random stack Σ|G_t|² falls all the same, whatever is truncated",
            "the median log(after / before), averaged over ranks, at the worst matrix and layer",
            at_most=0.0,
            over="seeds",
            note=_scale(config),
            revision="it was taken at the worst rank, where next to nothing is cut",
            redrawn=FRESH,
        ),
    )


def _scale(config):
    return f"random entries of variance {config.scale:g}²/e; the share depends on it"


def _about_depth():
    source = f"{A2}, Remark 5, our reading, in our setting"
    less = {
        "is_steady": ("less Σ|G_t|² moves", "the mean |log(after / before)| over draws"),
        "varies_less": (
            "less the change of Σ|G_t|² varies",
            "the deviation of log(after / before)",
        ),
    }
    kinds = {
        "": ("", "seeds", FRESH),
        "_when_trained": (" of trained stacks", "runs", FRESH_RUNS),
    }
    changed = "it was |median log ratio|, which cancels"
    return tuple(
        Statement(
            f"deep_{name}{suffix}",
            source,
            f"The deeper the layer{of} that is truncated, the {says}",
            f"{measured}, last layer - first layer",
            at_most=0.0,
            over=over,
            revision=changed if name + suffix == "is_steady" else "added",
            redrawn=fresh,
        )
        for name, (says, measured) in less.items()
        for suffix, (of, over, fresh) in kinds.items()
    )
