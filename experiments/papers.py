"""The statements of the four papers, in the papers' order, and the sentence that answers each one.

``says`` is the statement in our words; "We read:" marks a reading that goes beyond the text at
hand. ``finding`` is filled from the row of the primary claim, whose name was fixed before the run:
{value} is its value, {percent} is 100 value, {gain} is 100 (value - 1), {loss} is 100 (1 - value).
A statement that a theorem decides alone has no claim and no number; one that published numbers
answer has their means, which a test computes again.
"""

from dataclasses import KW_ONLY, dataclass


@dataclass(frozen=True)
class Paper:
    """A paper, and what we had of it."""

    key: str
    title: str
    arxiv: str
    text: str


@dataclass(frozen=True)
class Statement:
    """A statement of a paper, the claim that decides it, and our answer with one number."""

    key: str  # the `source` of claims: "A1, Theorem 1"
    experiment: str = ""  # "" if a theorem decides it
    claim: str = ""  # the id of the primary claim of this experiment
    _: KW_ONLY
    null: str = ""  # what the number would be without the effect
    says: str
    finding: str
    proof: str = ""  # the test of a theorem that proves the statement, or a case of it
    counterexample: str = ""  # the test of a theorem that refutes it as a law
    data: str = ""  # the file of published numbers whose means the finding states


PAPERS = (
    Paper("A1", arxiv="2508.00385",
          title="Multi-layer attention is the amplifier of demonstration effectiveness",
          text="a summary of the text, without its formulas, conditions and figures"),
    Paper("A2", arxiv="2406.03768",
          title="Enhancing in-context learning performance with just SVD-based weight pruning: a "
          "theoretical perspective",
          text="the text without its formulas, the code, and the logs beside the code"),
    Paper("A3", arxiv="2506.04579",
          title="Selecting demonstrations for many-shot in-context learning via gradient matching",
          text="a summary of the text, and the code"),
    Paper("A4", arxiv="2408.04532",
          title="How transformers utilize multi-head attention in in-context learning? A case "
          "study on sparse linear regression",
          text="a summary of the text, and a list of its figures"),
)  # fmt: skip

A1 = (
    Statement("A1, Abstract", "lm_flow", "grads_less[similarity]", null="0",
        says="Demonstrations selected by their gradient (GradS) beat those of the strongest other "
        "rule.",
        finding="In SmolLM2 the log-probability of the right label after demonstrations that GradS "
        "selects, less that after the most similar ones, is {value} nats."),
    Statement("A1, Effectiveness", "flow_factors", "share_of_ceiling", null="0",
        says="The size of its gradient measures how effective a demonstration is.",
        finding="The rank correlation between a demonstration's gradient and its effect on the "
        "error is {percent} % of the highest that any predictor can reach."),
    Statement("A1, Eq. 2",
        says="The gradient through one demonstration of one linear layer is composed of its "
        "relevance to the query and of what the model has not yet learnt.",
        finding="For all weights the gradient is s P + (P d)(K q)ᵀ, with s = d·K q.",
        proof="tests/theorems/test_one_shot_flow.py"),
    Statement("A1, Eq. 2, dichotomy", "flow_factors", "gradient[irrelevant]", null="100",
        says="We read: no gradient flows from a demonstration that is irrelevant or already "
        "learnt.",
        finding="An irrelevant demonstration has {percent} % of the gradient of a relevant and new "
        "one, although its gradient times its input is exactly zero.",
        counterexample="tests/theorems/test_when_the_flow_vanishes.py"),
    Statement("A1, Eq. 2, effect", "flow_factors", "helps", null="1",
        says="A demonstration that is relevant and new to the model lowers the error.",
        finding="A relevant and new demonstration multiplies the mean error of one layer of linear "
        "attention by {value}.",
        proof="tests/theorems/test_worth_to_the_bayes_rule.py"),
    Statement("A1, Theorem 1", "amplification", "trained_alone", null="1",
        says="The ratio of the gradients of two demonstrations grows with the number of layers.",
        finding="With one demonstration, trained linear attention makes two gradients {value} "
        "times as unequal after the last layer as after the first.",
        proof="tests/theorems/test_depth_amplifies_what_is_longer_and_aligned.py",
        counterexample="tests/theorems/test_one_coordinate_law.py"),
    Statement("A1, Theorem 1, order",
        says="We read: the demonstration with the larger gradient after one layer keeps it.",
        finding="Layers of width one that pull tokens towards zero reverse the order of the two "
        "gradients; layers that push tokens away keep it.",
        counterexample="tests/theorems/test_one_coordinate_law.py"),
    Statement("A1, Figures on depth", "amplification", "trained_together[transformer]", null="1",
        says="We read: in trained models with many demonstrations, too, gradients become more "
        "unequal from layer to layer.",
        finding="With many demonstrations, trained transformers make two gradients {value} times "
        "as unequal after the last layer as after the first."),
    Statement("A1, Ablation of layers", "grads", "last_layer[no noise]", null="1",
        says="We read: the gradient of the last layer selects better than that of an earlier one.",
        finding="Without label noise, selection by the gradient of the last layer leaves {value} "
        "times the error of selection by the gradient of a model with one layer."),
    Statement("A1, Critical path", "many_shot_flow", "offline_risk", null="1",
        says="Demonstrations are encoded once, offline; for a query Eq. 2 is computed online.",
        finding="What Eq. 2 selects from an encoded pool has {value} times the excess risk of what "
        "the last layer's gradients select online."),
    Statement("A1, Next check 3", "grads", "recomputed[no noise]", null="1",
        says="A variant of GradS that tracks how gradients change as demonstrations join would "
        "test the assumption of static gradients.",
        finding="GradS recomputed after each choice leaves {value} times the error of GradS "
        "computed once."),
    Statement("A1, Open question 1", "flow_factors", "product_less_sum", null="0",
        says="How do relevance and novelty act together where they are in conflict?",
        finding="The share of the variance of error reductions that a product of relevance and "
        "novelty explains, less the share that a sum explains, is {value}.",
        proof="tests/theorems/test_worth_to_the_bayes_rule.py"),
    Statement("A1, Open question 2", "lm_flow", "beyond_untrained[alone]", null="1",
        says="How do softmax and MLPs change the amplification?",
        finding="Training multiplies by {value} the factor by which the layers of SmolLM2 make the "
        "gradients of two demonstrations shown alone more unequal."),
    Statement("A1, Open question 3", "many_shot_flow", "agreement_rises[linear attention]",
        null="0",
        says="Does the amplification persist among many demonstrations that interact?",
        finding="The correlation between log gradients of trained linear attention and those of "
        "the Bayes rule, at the last layer less at the first, is {value}."),
    Statement("A1, Limitation, residual connection", "amplification", "residual[linear]", null="1",
        says="Residual connections dampen the amplification.",
        finding="In random linear stacks the growth of the inequality of two gradients with a weak "
        "residual connection is {value} times that with the usual one."),
    Statement("A1, Limitation, knowledge", "flow_factors", "knows_little", null="0",
        says="Gradients fail to tell effective demonstrations where the model knows too little.",
        finding="The share of the highest rank correlation with the effect that the gradient "
        "reaches is, where the model knows least, {value} above that where it knows half of the "
        "task."),
)  # fmt: skip

A2 = (
    Statement("A2, Figure 1 (i)", "clipping_curves", "best_edit[regression]", null="0",
        says="Truncating singular values of one weight matrix improves the model, in shallow and "
        "in deep layers.",
        finding="The truncation that is best for the other trainings changes the risk of "
        "transformers trained to regress by {gain} %."),
    Statement("A2, Figure 1 (ii), deep layers", "clipping_curves",
        "last_layer[regression, attention]", null="1",
        says="Deep layers can be truncated drastically without much loss.",
        finding="Drastic truncation of the last layer's attention multiplies the risk of "
        "transformers trained to regress by {value}."),
    Statement("A2, Figure 1 (ii), shallow layers", "clipping_curves", "over_last[regression, 1]",
        null="1",
        says="Sharp truncation of shallow layers makes the model collapse, unlike that of deep "
        "layers.",
        finding="In transformers trained to regress, drastic truncation of the first layer's "
        "attention multiplies the risk by {value} times the factor of the last layer's; neither "
        "makes the models collapse (`skill_kept`)."),
    Statement("A2, Figure 1 (ii), published logs", null="0",
        says="Deep layers can be truncated drastically, and shallow layers cannot (the authors' "
        "logs).",
        finding="At rates from .75 on the score changes by -0.039 (-0.058 to -0.013) in the first "
        "two layers and by +0.003 (-0.007 to +0.019) in the last two: means of four pairs of model "
        "and task.",
        data="experiments/clipping/published_logs.csv"),
    Statement("A2, Figure 2", "clipping_curves", "few_shots[regression, 1]", null="1",
        says="With fewer shots the model collapses more slowly when shallow layers are truncated.",
        finding="At few shots, drastic truncation of the first layer's attention multiplies the "
        "risk by {value} times its factor at as many shots as in training; it adds more to the "
        "larger risk at few shots (`few_added`)."),
    Statement("A2, Remark 1", "order", "share", null="0",
        says="Models depend on the order of the demonstrations, and read both ends of a prompt "
        "best, as other work reports.",
        finding="In trained causal attention the spread of answers over orders is {percent} % of "
        "their spread over other demonstrations.",
        counterexample="tests/theorems/test_order_of_demonstrations.py"),
    Statement("A2, Theorem 1",
        says="In linear attention one matrix W_t = I + Σ G_i takes every token to layer t.",
        finding="The matrix exists at every layer; the weights and the second moment of the "
        "demonstrations determine it.",
        proof="tests/theorems/test_moments_suffice.py"),
    Statement("A2, Assumption 1", "noisy_descent", "gaussian", null="not 0: Gaussian noise has 0",
        says="The noise of implicit gradients is Gaussian.",
        finding="The excess kurtosis of the noise of updates in trained linear stacks, less that "
        "of one step of descent, is {value}.",
        counterexample="tests/theorems/test_size_of_an_update.py"),
    Statement("A2, Remark 3", "noisy_descent", "tests_like_sgd", null="not 1: equal risks give 1",
        says="Descent with that noise (Eq. 4) tests like stochastic gradient descent, and so does "
        "in-context learning.",
        finding="Descent with the noise of Eq. 4 has {value} times the risk of stochastic gradient "
        "descent."),
    Statement("A2, Theorem 2", "bound_and_gap", "bound_less_gap", null="0",
        says="A sum over layers of logarithms of |G_t|² bounds the expected generalisation error.",
        finding="For descent without added noise the best bound less the generalisation gap is "
        "{value} times the largest possible loss: it holds, but no gap exceeds that loss."),
    Statement("A2, Remark 4", "bound_and_gap", "bound_rises", null="50",
        says="Truncating a weight matrix lowers the bound, and may so lower the risk.",
        finding="Truncating a matrix of a trained stack raises the bound in {percent} % of cases."),
    Statement("A2, Examples 1 to 3",
        says="Truncating W_V, W_K or W_Q lowers an upper bound on the size of the update.",
        finding="The upper bound never rises, whichever of the matrices is truncated.",
        proof="tests/theorems/test_norms_under_truncation.py"),
    Statement("A2, Remark 5",
        says="The deeper the adjusted layer, the steadier its influence on the sum of |G_t|².",
        finding="A truncated layer leaves the terms of earlier layers as they are, so that a "
        "deeper layer changes fewer terms of the sum.",
        proof="tests/theorems/test_norms_under_truncation.py"),
    Statement("A2, Remarks 4 and 6", "bound_and_gap", "updates_rise", null="0",
        says="Truncating a weight matrix lowers |G_t| itself, and with it the sum of |G_t|².",
        finding="Most truncations of trained stacks raise the sum of squared updates, and random "
        "edits of the same norm raise it more often still: the shares differ by {percent} "
        "percentage points.",
        counterexample="tests/theorems/test_norms_under_truncation.py"),
    Statement("A2, Figure 3", "condition_numbers", "deep[small transformer]", null="1",
        says="Deep layers, the last ones above all, have larger condition numbers.",
        finding="In models of two classes we cannot tell whether training changes the ratio of the "
        "condition numbers of deep layers to those of shallow layers; in models of regression it "
        "multiplies that ratio by {value}."),
    Statement("A2, Figure 4", "lm_clipping", "algorithm_less_random", null="0",
        says="A rate searched at the layer with the largest condition number (Algorithm 1) "
        "improves the model, by an amount that depends on model and task.",
        finding="The accuracy of SmolLM2 after Algorithm 1, less that after the same search among "
        "random edits of the same norm, is {percent} percentage points."),
    Statement("A2, Figure 4, published logs", null="0",
        says="A searched rate improves the score on test prompts (the authors' logs).",
        finding="The searched rate changes the score on test prompts by +0.004 (-0.010 to +0.019): "
        "the mean of four pairs of model and task.",
        data="experiments/clipping/published_logs.csv"),
    Statement("A2, Section 4 (i)", "common_map", "misses[softmax attention]",
        null="0, as in linear attention",
        says="How does the theory extend to standard transformers?",
        finding="In trained softmax attention the best common matrix for all tokens misses "
        "{percent} % of what the layers write."),
    Statement("A2, Appendix B.3", "clipping_search", "keys_alone[regression]", null="0",
        says="Truncating W_K alone, at a searched rate, gains next to nothing.",
        finding="A searched rate for W_K alone changes the risk of transformers trained to regress "
        "by {gain} %."),
    Statement("A2, Appendix B.6", "lm_clipping", "dropped", null="0",
        says="Dropping a whole layer neither harms nor improves performance.",
        finding="The accuracy of SmolLM2 without the attention of its last layer, less that of the "
        "whole model, is {percent} percentage points."),
)  # fmt: skip

A3 = (
    Statement("A3, Abstract, hypothesis", "matching_transfer",
        "tuned_given_bayes[own prefix, transformer]", null="0",
        says="Demonstrations that teach in fine-tuning teach in context.",
        finding="Over random subsets the rank correlation between a transformer's errors in "
        "context and those of its tuned prefix, given the ranks of the Bayes rule's errors, is "
        "{value}.",
        proof="tests/theorems/test_matched_gradients_predict_alike.py"),
    Statement("A3, Abstract, open models", "gradient_matching", "over_random", null="100",
        says="Subsets whose mean gradients match those of the pool teach better than random "
        "subsets.",
        finding="Matched subsets leave {percent} % of the error of random subsets, in the "
        "geometric mean over sizes."),
    Statement("A3, Abstract, transfer", "matching_transfer", "over_random[prefix, transformer]",
        null="100",
        says="Subsets chosen on a small model serve larger models.",
        finding="Subsets chosen on a one-layer prefix leave a trained transformer {percent} % of "
        "the error of random subsets."),
    Statement("A3, Curriculum", "gradient_matching", "early_checkpoints", null="1",
        says="We read: gradients along the whole training choose better than early ones alone.",
        finding="Subsets matched at early checkpoints leave {value} times the error of subsets "
        "matched at as many checkpoints along the whole training."),
    Statement("A3, Run time", "gradient_matching", "time",
        says="Selection takes three to four times as long as the tuning of the prefix.",
        finding="Tuning, gradients and search together take {value} times as long as tuning "
        "alone."),
    Statement("A3, Tables, baselines", "gradient_matching", "over_baseline[k-means]", null="1",
        says="We read: matched subsets teach better than those of clustering and of retrieval.",
        finding="Matched subsets leave {value} times the error of subsets chosen by k-means, in "
        "the geometric mean over sizes."),
    Statement("A3, Section 4.6", "many_shots", "classes[softmax attention]", null="0",
        says="Up to 1024 shots open-ended tasks improve, while classification gets worse.",
        finding="From 128 to 1024 demonstrations the share of wrong classes of trained softmax "
        "attention changes by {percent} percentage points."),
    Statement("A3, Figure 4", "gradient_matching", "mismatched", null="1",
        says="Subsets whose gradients mismatch the pool's teach worse than random subsets.",
        finding="Mismatched subsets leave {value} times the error of random subsets, in the "
        "geometric mean over sizes."),
    Statement("A3, Table 6", "coverage", "with_intercept[5 classes]", null="0",
        says="The label shares of matched subsets are closer to the test set's than those of "
        "random subsets.",
        finding="With an intercept in the small model, the KL divergence of label shares from a "
        "test set's, matched less random subsets, is {value}.",
        proof="tests/theorems/test_intercept_keeps_the_shares.py"),
    Statement("A3, Hybrid selection", "fixed_and_per_query", "both[softmax attention]", null="1",
        says="Fixed demonstrations together with demonstrations chosen for the query do better "
        "still.",
        finding="Where clusters have tasks of their own, both kinds together leave trained softmax "
        "attention {value} times the error of the better kind alone."),
    Statement("A3, Open question 3", "coverage", "minority[a task each]", null="100",
        says="Does matching amplify or lessen bias?",
        finding="On a minority with a task of its own, matched subsets leave {percent} % of the "
        "error of random subsets."),
)  # fmt: skip

A4 = (
    Statement("A4, Abstract, pattern", "heads_per_layer", "over_even", null="1",
        says="Many heads count in the first layer, and one is enough in each later layer.",
        finding="Many heads first and one in each later layer have {value} times the risk of as "
        "many heads placed evenly."),
    Statement("A4, Abstract, against ridge", "heads_per_layer",
        "over_rules[ridge, as long as in training]", null="100",
        says="Many heads first and one in each later layer beat ridge regression and descent.",
        finding="Models with many heads first and one in each later layer have {percent} % of the "
        "excess risk of ridge regression, in the geometric mean over numbers of demonstrations."),
    Statement("A4, Figure 1b", "heads_per_layer", "more_heads", null="1",
        says="We read: models with more heads have a lower risk.",
        finding="Many heads in each layer have {value} times the risk of one head in each layer "
        "with as many parameters."),
    Statement("A4, Levels of sparsity", "heads_per_layer", "sparsity[sparse]", null="1",
        says="We read: at each level of sparsity more heads have a lower risk.",
        finding="For weights with one non-zero, the factor by which four heads in place of one "
        "multiply the risk is {value} times that for weights without zeros."),
    Statement("A4, Attention patterns", "attention_patterns", "same_heads[sparse softmax]",
        null="1",
        says="We read: the attention patterns of trained heads can be compared across layers and "
        "seeds.",
        finding="After alignment the heads of two trainings of softmax attention on sparse "
        "regression are {value} times as far apart as heads that are exchanged between them."),
    Statement("A4, Figure 1c, first layer", "head_pruning", "first_layer[sparse softmax]", null="0",
        says="All heads of the first layer matter.",
        finding="In softmax attention trained on sparse regression the number of effective heads "
        "in the first layer, less that in a layer chosen at random, is {value}."),
    Statement("A4, Figure 1c, later layers", "head_pruning", "later_layers[sparse softmax]",
        null="all heads of the layer",
        says="One head dominates each later layer.",
        finding="The later layers of softmax attention trained on sparse regression have {value} "
        "effective heads of four on average."),
    Statement("A4, Figure 1d", "head_pruning", "pruned[sparse softmax]", null="1",
        says="Removing all but the top head of each later layer, without retraining, changes "
        "little.",
        finding="In softmax attention trained on sparse regression, removing all but the top head "
        "of each later layer multiplies the risk by {value}."),
    Statement("A4, Mechanism", "layer_probes", "later_layers[sparse]",
        null="not 1: equal risks give 1",
        says="The first layer preprocesses the covariates, and later layers descend on them.",
        finding="Models have {value} times the risk of descent on what their first layer writes, "
        "with the best number of steps."),
    Statement("A4, Construction",
        says="Many heads in the first layer and one in each later layer can implement this "
        "algorithm.",
        finding="With a head for each coordinate, every later layer is exactly one step of the "
        "algorithm.",
        proof="tests/theorems/test_preprocess_then_optimise_construction.py"),
    Statement("A4, Heads needed", "preprocess_then_optimise", "fewer_heads", null="1",
        says="We read: the first layer needs d heads to preprocess d covariates.",
        finding="Descent on what fewer than d heads write has {value} times the risk of descent on "
        "what d heads write, in the geometric mean over numbers of heads.",
        proof="tests/theorems/test_head_lower_bound.py"),
    Statement("A4, Risk, against descent and ridge", "sparse_risk", "over_ridge", null="1",
        says="Preprocessed descent has a lower excess risk than plain descent and ridge "
        "regression.",
        finding="For sparse Gaussian weights preprocessed descent has {value} times the excess "
        "risk of ridge regression, in the geometric mean over numbers of covariates and "
        "demonstrations."),
    Statement("A4, Risk, against the Lasso", "sparse_risk", "over_lasso",
        null="not 1: equal risks give 1",
        says="We read: its excess risk is comparable with that of the Lasso.",
        finding="Preprocessed descent has {value} times the excess risk of the Lasso, in the "
        "geometric mean over settings, which lie on either side of 1."),
    Statement("A4, Figure 5", "layer_probes", "readable[sparse]", null="1",
        says="We read: the answer becomes more readable from layer to layer.",
        finding="A layer multiplies the risk of a linear reader of its output by {value} times the "
        "factor of a layer with random weights."),
)  # fmt: skip

STATEMENTS = A1 + A2 + A3 + A4
