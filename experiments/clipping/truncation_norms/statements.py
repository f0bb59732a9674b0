"""What `truncation_norms` judges, by the criteria in its Config; fixed before its first run."""

from lsa_lab.claims import Statement

A2 = "A2 (2406.03768)"
OWN = 'derived here; docs/theory, "Norms under truncation"'
SHARE = "the share of draws in which it rises"
OVERALL = "the share of draws, matrices, layers and ranks in which it rises"


def statements(config) -> tuple[Statement, ...]:
    return (
        *_about_bounds(config),
        *_about_proofs(config),
        *_about_updates(config),
        *_about_the_typical_draw(config),
    )


def _about_bounds(config):
    return (
        Statement(
            "bounds",
            f"{A2}, Examples 1 to 3",
            "The upper bound UB of a layer falls, whichever of its W_V, W_K and W_Q is truncated",
            f"{SHARE}, at the worst matrix",
            at_most=0.0,
            over="seeds",
        ),
        Statement(
            "mlp",
            f"{A2}, Example 4",
            "|W_MLP ΔW| falls when W_MLP is truncated, as its bound does",
            SHARE,
            at_most=0.0,
            over="seeds",
        ),
        Statement(
            "mlp_with_residuals",
            f"{A2}, Example 4 for a block with residuals",
            "|ΔW + W_MLP + W_MLP ΔW| falls when W_MLP is truncated, too",
            SHARE,
            at_most=config.rarely,
            over="seeds",
        ),
    )


def _about_proofs(config):
    return (
        Statement(
            "provable",
            OWN,
            "|G_t| never rises with W_V at its own layer, with W_Q and W_Kᵀ W_Q at the first",
            f"{SHARE}, at the worst of these",
            at_most=0.0,
            over="seeds",
        ),
        Statement(
            "provable_when_trained",
            OWN,
            "In trained stacks, too, these and the upper bounds never rise",
            "the share of prompts in which it rises, at the worst of these",
            at_most=0.0,
        ),
        Statement(
            "unprovable",
            OWN,
            "|G_t| does rise with W_K anywhere, with W_Q and W_Kᵀ W_Q at later layers",
            f"{SHARE}, at the one where it is least",
            at_least=config.visible,
            over="seeds",
        ),
    )


def _about_updates(config):
    return (
        Statement(
            "own",
            f"{A2}, Remark 4",
            "Truncating W_V, W_K or W_Q lowers the norm of its own G_t",
            OVERALL,
            at_most=config.rarely,
            over="seeds",
        ),
        Statement(
            "sum",
            f"{A2}, Remark 4 and Theorem 2",
            "Truncating W_V, W_K or W_Q lowers Σ|G_t|², which the bound contains",
            OVERALL,
            at_most=config.rarely,
            over="seeds",
        ),
        Statement(
            "sum_when_trained",
            f"{A2}, Remark 4 and Theorem 2",
            "Truncating w_pv or w_kq of a trained stack lowers Σ|G_t|²",
            "the share of prompts, matrices, layers and ranks in which it rises",
            at_most=config.rarely,
        ),
    )


def _about_the_typical_draw(config):
    return (
        Statement(
            "typical",
            "derived here",
            "In the typical draw Σ|G_t|² falls all the same, whatever is truncated",
            "the median log(after / before), at the worst matrix, layer and rank",
            at_most=0.0,
            over="seeds",
        ),
        Statement(
            "deep_is_steady",
            f"{A2}, Remark 5",
            "The deeper the layer that is truncated, the less Σ|G_t|² moves",
            "|median log(after / before)|, last layer - first layer",
            at_most=0.0,
            over="seeds",
        ),
        Statement(
            "counterexample",
            OWN,
            "Truncating the W_K that is written down there raises |G| from 0.1 to 1.0",
            "the largest distance of the two norms to 0.1 and 1.0",
            "value",
            at_most=config.exact,
        ),
    )
