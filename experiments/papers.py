"""The statements of the four papers, in the papers' order, and the sentence that answers each one.

``says`` is the statement in our words; "We read:" marks a reading that goes beyond the text at
hand. ``finding`` is filled from the row of the primary claim, whose name was fixed before the run:
{value} is its value, {percent} is 100 value, {gain} is 100 (value - 1), {loss} is 100 (1 - value).
A statement that a theorem decides alone has no claim and no number; one that published numbers
answer has their means, which a test computes again.
"""

from dataclasses import dataclass


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
    says: str
    experiment: str  # "" if a theorem decides it
    claim: str  # the id of the primary claim of this experiment
    finding: str
    null: str = ""  # what the number would be without the effect
    proof: str = ""  # the test of a theorem that proves the statement, or a case of it
    counterexample: str = ""  # the test of a theorem that refutes it as a law
    data: str = ""  # the file of published numbers whose means the finding states


PAPERS = (
    Paper(
        "A1",
        "Multi-layer attention is the amplifier of demonstration effectiveness",
        "2508.00385",
        "a summary of the text, without its formulas, conditions and figures",
    ),
    Paper(
        "A2",
        "Enhancing in-context learning performance with just SVD-based weight pruning: "
        "a theoretical perspective",
        "2406.03768",
        "the text without its formulas, the code, and the logs beside the code",
    ),
    Paper(
        "A3",
        "Selecting demonstrations for many-shot in-context learning via gradient matching",
        "2506.04579",
        "a summary of the text, and the code",
    ),
    Paper(
        "A4",
        "How transformers utilize multi-head attention in in-context learning? "
        "A case study on sparse linear regression",
        "2408.04532",
        "a summary of the text, and a list of its figures",
    ),
)

A1 = (
    Statement("A1, Abstract",
        "Demonstrations selected by their gradient (GradS) beat those of the strongest other rule.",
        "lm_flow", "grads_less[similarity]",
        "In SmolLM2 the log-probability of the right label after demonstrations that GradS "
        "selects, less that after the most similar ones, is {value} nats.",
        null="0"),
    Statement("A1, Effectiveness",
        "The size of its gradient measures how effective a demonstration is.",
        "flow_factors", "share_of_ceiling",
        "The rank correlation between a demonstration's gradient and its effect on the error is "
        "{percent} % of the highest that any predictor can reach.",
        null="0"),
    Statement("A1, Eq. 2",
        "The gradient through one demonstration of one linear layer is composed of its relevance "
        "to the query and of what the model has not yet learnt.",
        "", "",
        "For all weights the gradient is s P + (P d)(K q)ᵀ, with s = d·K q.",
        proof="tests/theorems/test_one_shot_flow.py"),
    Statement("A1, Eq. 2, dichotomy",
        "We read: no gradient flows from a demonstration that is irrelevant or already learnt.",
        "flow_factors", "gradient[irrelevant]",
        "An irrelevant demonstration has {percent} % of the gradient of a relevant and new one, "
        "although its gradient times its input is exactly zero.",
        null="100",
        counterexample="tests/theorems/test_when_the_flow_vanishes.py"),
    Statement("A1, Eq. 2, effect",
        "A demonstration that is relevant and new to the model lowers the error.",
        "flow_factors", "helps",
        "A relevant and new demonstration multiplies the mean error of one layer of linear "
        "attention by {value}.",
        null="1",
        proof="tests/theorems/test_worth_to_the_bayes_rule.py"),
    Statement("A1, Theorem 1",
        "The ratio of the gradients of two demonstrations grows with the number of layers.",
        "amplification", "trained_alone",
        "With one demonstration, trained linear attention makes two gradients {value} times as "
        "unequal after the last layer as after the first.",
        null="1",
        proof="tests/theorems/test_depth_amplifies_what_is_longer_and_aligned.py",
        counterexample="tests/theorems/test_one_coordinate_law.py"),
    Statement("A1, Theorem 1, order",
        "We read: the demonstration with the larger gradient after one layer keeps it.",
        "", "",
        "Layers of width one that pull tokens towards zero reverse the order of the two gradients; "
        "layers that push tokens away keep it.",
        counterexample="tests/theorems/test_one_coordinate_law.py"),
    Statement("A1, Figures on depth",
        "We read: in trained models with many demonstrations, too, gradients become more unequal "
        "from layer to layer.",
        "amplification", "trained_together[transformer]",
        "With many demonstrations, trained transformers make two gradients {value} times as "
        "unequal after the last layer as after the first.",
        null="1"),
    Statement("A1, Ablation of layers",
        "We read: the gradient of the last layer selects better than that of an earlier one.",
        "grads", "last_layer[no noise]",
        "Without label noise, selection by the gradient of the last layer leaves {value} times "
        "the error of selection by the gradient of a model with one layer.",
        null="1"),
    Statement("A1, Critical path",
        "Demonstrations are encoded once, offline; for a query Eq. 2 is computed online.",
        "many_shot_flow", "offline_risk",
        "What Eq. 2 selects from an encoded pool has {value} times the excess risk of what the "
        "last layer's gradients select online.",
        null="1"),
    Statement("A1, Next check 3",
        "A variant of GradS that tracks how gradients change as demonstrations join would test the "
        "assumption of static gradients.",
        "grads", "recomputed[no noise]",
        "GradS recomputed after each choice leaves {value} times the error of GradS computed once.",
        null="1"),
    Statement("A1, Open question 1",
        "How do relevance and novelty act together where they are in conflict?",
        "flow_factors", "product_less_sum",
        "The share of the variance of error reductions that a product of relevance and novelty "
        "explains, less the share that a sum explains, is {value}.",
        null="0",
        proof="tests/theorems/test_worth_to_the_bayes_rule.py"),
    Statement("A1, Open question 2",
        "How do softmax and MLPs change the amplification?",
        "lm_flow", "beyond_untrained[alone]",
        "Training multiplies by {value} the factor by which the layers of SmolLM2 make the "
        "gradients of two demonstrations shown alone more unequal.",
        null="1"),
    Statement("A1, Open question 3",
        "Does the amplification persist among many demonstrations that interact?",
        "many_shot_flow", "agreement_rises[linear attention]",
        "The correlation between log gradients of trained linear attention and those of the Bayes "
        "rule, at the last layer less at the first, is {value}.",
        null="0"),
    Statement("A1, Limitation, residual connection",
        "Residual connections dampen the amplification.",
        "amplification", "residual[linear]",
        "In random linear stacks the growth of the inequality of two gradients with a weak "
        "residual connection is {value} times that with the usual one.",
        null="1"),
    Statement("A1, Limitation, knowledge",
        "Gradients fail to tell effective demonstrations where the model knows too little.",
        "flow_factors", "knows_little",
        "The share of the highest rank correlation with the effect that the gradient reaches is, "
        "where the model knows least, {value} above that where it knows half of the task.",
        null="0"),
)  # fmt: skip

A2 = (
    Statement("A2, Figure 1 (i)",
        "Truncating singular values of one weight matrix improves the model, in shallow and in "
        "deep layers.",
        "clipping_curves", "best_edit[regression]",
        "The truncation that is best for the other trainings changes the risk of transformers "
        "trained to regress by {gain} %.",
        null="0"),
    Statement("A2, Figure 1 (ii), deep layers",
        "Deep layers can be truncated drastically without much loss.",
        "clipping_curves", "last_layer[regression, attention]",
        "Drastic truncation of the last layer's attention multiplies the risk of transformers "
        "trained to regress by {value}.",
        null="1"),
    Statement("A2, Figure 1 (ii), shallow layers",
        "Sharp truncation of shallow layers makes the model collapse, unlike that of deep layers.",
        "clipping_curves", "over_last[regression, 1]",
        "In transformers trained to regress, drastic truncation of the first layer's attention "
        "multiplies the risk by {value} times the factor of the last layer's; neither makes "
        "the models collapse (`skill_kept`).",
        null="1"),
    # github.com/chen123CtrlS/EnhancingICL_SVDPruning, src/results at commit a3d1538: RTE and
    # COPA. A score of exactly 0 is no measurement. Logs of one model and task share prompts.
    Statement("A2, Figure 1 (ii), published logs",
        "Deep layers can be truncated drastically, and shallow layers cannot (the authors' logs).",
        "", "",
        "At rates from .75 on the score changes by -0.039 (-0.058 to -0.013) in the first two "
        "layers and by +0.003 (-0.007 to +0.019) in the last two: means of four pairs of model and "
        "task.",
        null="0",
        data="experiments/clipping/published_logs.csv"),
    Statement("A2, Figure 2",
        "With fewer shots the model collapses more slowly when shallow layers are truncated.",
        "clipping_curves", "few_shots[regression, 1]",
        "At few shots, drastic truncation of the first layer's attention multiplies the risk by "
        "{value} times its factor at as many shots as in training; it adds more to the larger "
        "risk at few shots (`few_added`).",
        null="1"),
    Statement("A2, Remark 1",
        "Models depend on the order of the demonstrations, and read both ends of a prompt best, "
        "as other work reports.",
        "order", "share",
        "In trained causal attention the spread of answers over orders is {percent} % of their "
        "spread over other demonstrations.",
        null="0",
        counterexample="tests/theorems/test_order_of_demonstrations.py"),
    Statement("A2, Theorem 1",
        "In linear attention one matrix W_t = I + Σ G_i takes every token to layer t.",
        "", "",
        "The matrix exists at every layer; the weights and the second moment of the "
        "demonstrations determine it.",
        proof="tests/theorems/test_moments_suffice.py"),
    Statement("A2, Assumption 1",
        "The noise of implicit gradients is Gaussian.",
        "noisy_descent", "gaussian",
        "The excess kurtosis of the noise of updates in trained linear stacks, less that of one "
        "step of descent, is {value}.",
        null="not 0: Gaussian noise has 0",
        counterexample="tests/theorems/test_size_of_an_update.py"),
    Statement("A2, Remark 3",
        "Descent with that noise (Eq. 4) tests like stochastic gradient descent, and so does "
        "in-context learning.",
        "noisy_descent", "tests_like_sgd",
        "Descent with the noise of Eq. 4 has {value} times the risk of stochastic gradient "
        "descent.",
        null="not 1: equal risks give 1"),
    Statement("A2, Theorem 2",
        "A sum over layers of logarithms of |G_t|² bounds the expected generalisation error.",
        "bound_and_gap", "bound_less_gap",
        "For descent without added noise the best bound less the generalisation gap is {value} "
        "times the largest possible loss: it holds, but no gap exceeds that loss.",
        null="0"),
    Statement("A2, Remark 4",
        "Truncating a weight matrix lowers the bound, and may so lower the risk.",
        "bound_and_gap", "bound_rises",
        "Truncating a matrix of a trained stack raises the bound in {percent} % of cases.",
        null="50"),
    Statement("A2, Examples 1 to 3",
        "Truncating W_V, W_K or W_Q lowers an upper bound on the size of the update.",
        "", "",
        "The upper bound never rises, whichever of the matrices is truncated.",
        proof="tests/theorems/test_norms_under_truncation.py"),
    Statement("A2, Remark 5",
        "The deeper the adjusted layer, the steadier its influence on the sum of |G_t|².",
        "", "",
        "A truncated layer leaves the terms of earlier layers as they are, so that a deeper layer "
        "changes fewer terms of the sum.",
        proof="tests/theorems/test_norms_under_truncation.py"),
    Statement("A2, Remarks 4 and 6",
        "Truncating a weight matrix lowers |G_t| itself, and with it the sum of |G_t|².",
        "bound_and_gap", "updates_rise",
        "Most truncations of trained stacks raise the sum of squared updates, and random edits of "
        "the same norm raise it more often still: the shares differ by {percent} percentage "
        "points.",
        null="0",
        counterexample="tests/theorems/test_norms_under_truncation.py"),
    Statement("A2, Figure 3",
        "Deep layers, the last ones above all, have larger condition numbers.",
        "condition_numbers", "deep[small transformer]",
        "In models of two classes we cannot tell whether training changes the ratio of the "
        "condition numbers of deep layers to those of shallow layers; in models of regression it "
        "multiplies that ratio by {value}.",
        null="1"),
    Statement("A2, Figure 4",
        "A rate searched at the layer with the largest condition number (Algorithm 1) improves "
        "the model, by an amount that depends on model and task.",
        "lm_clipping", "algorithm_less_random",
        "The accuracy of SmolLM2 after Algorithm 1, less that after the same search among random "
        "edits of the same norm, is {percent} percentage points.",
        null="0"),
    Statement("A2, Figure 4, published logs",
        "A searched rate improves the score on test prompts (the authors' logs).",
        "", "",
        "The searched rate changes the score on test prompts by +0.004 (-0.010 to +0.019): the "
        "mean of four pairs of model and task.",
        null="0",
        data="experiments/clipping/published_logs.csv"),
    Statement("A2, Section 4 (i)",
        "How does the theory extend to standard transformers?",
        "common_map", "misses[softmax attention]",
        "In trained softmax attention the best common matrix for all tokens misses {percent} % of "
        "what the layers write.",
        null="0, as in linear attention"),
    Statement("A2, Appendix B.3",
        "Truncating W_K alone, at a searched rate, gains next to nothing.",
        "clipping_search", "keys_alone[regression]",
        "A searched rate for W_K alone changes the risk of transformers trained to regress by "
        "{gain} %.",
        null="0"),
    Statement("A2, Appendix B.6",
        "Dropping a whole layer neither harms nor improves performance.",
        "lm_clipping", "dropped",
        "The accuracy of SmolLM2 without the attention of its last layer, less that of the whole "
        "model, is {percent} percentage points.",
        null="0"),
)  # fmt: skip

A3 = (
    Statement("A3, Abstract, hypothesis",
        "Demonstrations that teach in fine-tuning teach in context.",
        "matching_transfer", "tuned_given_bayes[own prefix, transformer]",
        "Over random subsets the rank correlation between a transformer's errors in context and "
        "those of its tuned prefix, given the ranks of the Bayes rule's errors, is {value}.",
        null="0",
        proof="tests/theorems/test_matched_gradients_predict_alike.py"),
    Statement("A3, Abstract, open models",
        "Subsets whose mean gradients match those of the pool teach better than random subsets.",
        "gradient_matching", "over_random",
        "Matched subsets leave {percent} % of the error of random subsets, in the geometric mean "
        "over sizes.",
        null="100"),
    Statement("A3, Abstract, transfer",
        "Subsets chosen on a small model serve larger models.",
        "matching_transfer", "over_random[prefix, transformer]",
        "Subsets chosen on a one-layer prefix leave a trained transformer {percent} % of the "
        "error of random subsets.",
        null="100"),
    Statement("A3, Curriculum",
        "We read: gradients along the whole training choose better than early ones alone.",
        "gradient_matching", "early_checkpoints",
        "Subsets matched at early checkpoints leave {value} times the error of subsets matched "
        "at as many checkpoints along the whole training.",
        null="1"),
    Statement("A3, Run time",
        "Selection takes three to four times as long as the tuning of the prefix.",
        "gradient_matching", "time",
        "Tuning, gradients and search together take {value} times as long as tuning alone."),
    Statement("A3, Tables, baselines",
        "We read: matched subsets teach better than those of clustering and of retrieval.",
        "gradient_matching", "over_baseline[k-means]",
        "Matched subsets leave {value} times the error of subsets chosen by k-means, in the "
        "geometric mean over sizes.",
        null="1"),
    Statement("A3, Section 4.6",
        "Up to 1024 shots open-ended tasks improve, while classification gets worse.",
        "many_shots", "classes[softmax attention]",
        "From 128 to 1024 demonstrations the share of wrong classes of trained softmax attention "
        "changes by {percent} percentage points.",
        null="0"),
    Statement("A3, Figure 4",
        "Subsets whose gradients mismatch the pool's teach worse than random subsets.",
        "gradient_matching", "mismatched",
        "Mismatched subsets leave {value} times the error of random subsets, in the geometric "
        "mean over sizes.",
        null="1"),
    Statement("A3, Table 6",
        "The label shares of matched subsets are closer to the test set's than those of random "
        "subsets.",
        "coverage", "with_intercept[5 classes]",
        "With an intercept in the small model, the KL divergence of label shares from a test "
        "set's, matched less random subsets, is {value}.",
        null="0",
        proof="tests/theorems/test_intercept_keeps_the_shares.py"),
    Statement("A3, Hybrid selection",
        "Fixed demonstrations together with demonstrations chosen for the query do better still.",
        "fixed_and_per_query", "both[softmax attention]",
        "Where clusters have tasks of their own, both kinds together leave trained softmax "
        "attention {value} times the error of the better kind alone.",
        null="1"),
    Statement("A3, Open question 3",
        "Does matching amplify or lessen bias?",
        "coverage", "minority[a task each]",
        "On a minority with a task of its own, matched subsets leave {percent} % of the error of "
        "random subsets.",
        null="100"),
)  # fmt: skip

A4 = (
    Statement("A4, Abstract, pattern",
        "Many heads count in the first layer, and one is enough in each later layer.",
        "heads_per_layer", "over_even",
        "Many heads first and one in each later layer have {value} times the risk of as many "
        "heads placed evenly.",
        null="1"),
    Statement("A4, Abstract, against ridge",
        "Many heads first and one in each later layer beat ridge regression and descent.",
        "heads_per_layer", "over_rules[ridge, as long as in training]",
        "Models with many heads first and one in each later layer have {percent} % of the excess "
        "risk of ridge regression, in the geometric mean over numbers of demonstrations.",
        null="100"),
    Statement("A4, Figure 1b",
        "We read: models with more heads have a lower risk.",
        "heads_per_layer", "more_heads",
        "Many heads in each layer have {value} times the risk of one head in each layer with as "
        "many parameters.",
        null="1"),
    Statement("A4, Levels of sparsity",
        "We read: at each level of sparsity more heads have a lower risk.",
        "heads_per_layer", "sparsity[sparse]",
        "For weights with one non-zero, the factor by which four heads in place of one multiply "
        "the risk is {value} times that for weights without zeros.",
        null="1"),
    Statement("A4, Attention patterns",
        "We read: the attention patterns of trained heads can be compared across layers and seeds.",
        "attention_patterns", "same_heads[sparse softmax]",
        "After alignment the heads of two trainings of softmax attention on sparse regression are "
        "{value} times as far apart as heads that are exchanged between them.",
        null="1"),
    Statement("A4, Figure 1c, first layer",
        "All heads of the first layer matter.",
        "head_pruning", "first_layer[sparse softmax]",
        "In softmax attention trained on sparse regression the number of effective heads in the "
        "first layer, less that in a layer chosen at random, is {value}.",
        null="0"),
    Statement("A4, Figure 1c, later layers",
        "One head dominates each later layer.",
        "head_pruning", "later_layers[sparse softmax]",
        "The later layers of softmax attention trained on sparse regression have {value} effective "
        "heads of four on average.",
        null="all heads of the layer"),
    Statement("A4, Figure 1d",
        "Removing all but the top head of each later layer, without retraining, changes little.",
        "head_pruning", "pruned[sparse softmax]",
        "In softmax attention trained on sparse regression, removing all but the top head of each "
        "later layer multiplies the risk by {value}.",
        null="1"),
    Statement("A4, Mechanism",
        "The first layer preprocesses the covariates, and later layers descend on them.",
        "layer_probes", "later_layers[sparse]",
        "Models have {value} times the risk of descent on what their first layer writes, with the "
        "best number of steps.",
        null="not 1: equal risks give 1"),
    Statement("A4, Construction",
        "Many heads in the first layer and one in each later layer can implement this algorithm.",
        "", "",
        "With a head for each coordinate, every later layer is exactly one step of the algorithm.",
        proof="tests/theorems/test_preprocess_then_optimise_construction.py"),
    Statement("A4, Heads needed",
        "We read: the first layer needs d heads to preprocess d covariates.",
        "preprocess_then_optimise", "fewer_heads",
        "Descent on what fewer than d heads write has {value} times the risk of descent on what d "
        "heads write, in the geometric mean over numbers of heads.",
        null="1",
        proof="tests/theorems/test_head_lower_bound.py"),
    Statement("A4, Risk, against descent and ridge",
        "Preprocessed descent has a lower excess risk than plain descent and ridge regression.",
        "sparse_risk", "over_ridge",
        "For sparse Gaussian weights preprocessed descent has {value} times the excess risk of "
        "ridge regression, in the geometric mean over numbers of covariates and demonstrations.",
        null="1"),
    Statement("A4, Risk, against the Lasso",
        "We read: its excess risk is comparable with that of the Lasso.",
        "sparse_risk", "over_lasso",
        "Preprocessed descent has {value} times the excess risk of the Lasso, in the geometric "
        "mean over settings, which lie on either side of 1.",
        null="not 1: equal risks give 1"),
    Statement("A4, Figure 5",
        "We read: the answer becomes more readable from layer to layer.",
        "layer_probes", "readable[sparse]",
        "A layer multiplies the risk of a linear reader of its output by {value} times the factor "
        "of a layer with random weights.",
        null="1"),
)  # fmt: skip

STATEMENTS = A1 + A2 + A3 + A4
