"""Level 0 of the ledger: a line for each statement of the papers, and those of the front page."""

from lsa_lab.harness.report.headlines import Headline, Proof, Words
from lsa_lab.judging.claims import Verdict


def proof(verdict: Verdict, name: str, condition: str = "") -> Proof:
    """What the theorem ``tests/theorems/test_NAME.py`` says of a statement."""
    return Proof(verdict, f"tests/theorems/test_{name}.py", condition)


FIRST = (
    "A1, Eq. 2",
    "A1, Theorem 1",
    "A1, Abstract",
    "A2, Theorem 1",
    "A2, Theorem 2",
    "A2, Figure 1 (ii), deep layers",
    "A2, Figure 4",
    "A3, Abstract, hypothesis",
    "A3, Abstract, open models",
    "A3, Abstract, transfer",
    "A4, Abstract, pattern",
    "A4, Figure 1c, later layers",
    "A4, Heads needed",
)

HEADLINES = (
    Headline(
        "A1, Eq. 2",
        "The gradient through one demonstration is s P + (P d)(K q)ᵀ",
        Words("none needed, because it is an identity for all weights"),
        proof("holds", "one_shot_flow"),
    ),
    Headline(
        "A1, Eq. 2, dichotomy",
        "No gradient flows from a demonstration that is irrelevant or learned",
        Words(
            "less flows: from a learned one {0} of the others' gradient",
            "flow_factors.either_or_less",
        ),
        proof("fails", "when_the_flow_vanishes"),
        Words(
            "from an irrelevant one {0:i} of the others' gradient", "flow_factors.either_or_flow"
        ),
    ),
    Headline(
        "A1, Eq. 2, effect",
        "A demonstration that is relevant and new lowers the error",
        Words(
            "it does on average; of single ones a share of {0} does, for the Bayes rule {1}",
            "flow_factors.share_of_attention flow_factors.share_of_bayes",
        ),
        proof("holds", "worth_to_the_bayes_rule"),
        Words("taken off the error on average {0:i}", "flow_factors.helps"),
        Words("rank correlation of both factors together and worth {0:i}", "lm_flow.*_both"),
    ),
    Headline(
        "A1, Theorem 1",
        "The ratio of two demonstrations' gradients grows with depth (tested in every stack: A1's "
        "conditions are not public)",
        Words(
            "chance would let half of the pairs grow; in random linear stacks more do, {0:verdict} "
            "kinds, {0}; in softmax stacks fewer, {1}",
            "amplification.typically_* amplification.*_typically",
        ),
        proof("fails", "layers_turn_the_order_of_flows"),
        Words(
            "change of the log ratio in the stack that ascent finds {0:i}; random linear stacks, "
            "share of pairs {1:i}; trained on one demonstration, linear: disparity, last over "
            "first layer {2:i}, change of the lead {3:i}",
            "bayes_flows.theorem_1 amplification.theorem_1 amplification.linear_trained_disparity "
            "amplification.linear_trained_lead",
        ),
        Words(
            "last over first layer, each alone {0:i}, in one prompt {1:i}",
            "lm_flow.*_alone_*_disparity lm_flow.*_shared_*_disparity",
        ),
    ),
    Headline(
        "A1, Theorem 1, order",
        "The demonstration that leads after one layer leads after the last",
        Words(
            "the Bayes rule's own lead is where trained models end: {0} apart",
            "many_shot_flow.*_lead_ends_at_bayes",
        ),
        proof("fails", "layers_turn_the_order_of_flows"),
        Words("random linear stacks, share of pairs that turn {0:i}", "amplification.order"),
        Words("share of pairs that turn {0:i}", "lm_flow.*_order"),
    ),
    Headline(
        "A1, Figures on depth",
        "In trained models with many demonstrations depth makes gradients more unequal",
        Words(
            "the Bayes rule's own gradients: the last layer has {all} times their disparity",
            "many_shot_flow.linear_ends_at_bayes many_shot_flow.softmax_ends_at_bayes "
            "many_shot_flow.transformer_ends_at_bayes",
        ),
        trained=Words(
            "disparity, last over first layer {0:i}; change of the lead {1:i}",
            "amplification.*_trained_shared_disparity amplification.*_trained_shared_lead",
        ),
        language=Words("last over first layer {0:i}", "lm_flow.*_shared_*_disparity"),
    ),
    Headline(
        "A1, Abstract",
        "Selection by gradients (GradS) beats its rivals",
        Words(
            "none needed, because the rivals are the comparison; noise in a label is new to the "
            "weights, and the gradient grows with it",
        ),
        trained=Words(
            "error over that by random choice {0:i}, by relevance without noise in labels {1:i} "
            "and with it {2:i}, by the best rival of each task {3:i}",
            "grads.random grads.without_noise grads.with_noise grads.strongest",
        ),
        language=Words(
            "nats of log-probability gained {all:i}",
            "lm_flow.*_prompts_*",
        ),
    ),
    Headline(
        "A1, Effectiveness",
        "The size of its gradient predicts what a demonstration is worth",
        Words(
            "the best prediction reaches {0} in regression; similarity has {1} on the texts",
            "flow_factors.predicts_ceiling lm_flow.*_predicts_similarity",
        ),
        trained=Words("rank correlation {0:i}", "flow_factors.flow_predicts"),
        language=Words("rank correlation {0:i}", "lm_flow.*_predicts_margin"),
    ),
    Headline(
        "A1, Ablation of layers",
        "The gradient at the last layer selects best",
        Words(
            "with noise in labels it has {0} times the error by relevance, one layer {1}; without "
            "it {2} and {3}",
            "grads.last_layer_with_noise grads.with_noise grads.last_layer_without_noise "
            "grads.without_noise",
        ),
        trained=Words(
            "without noise in labels, error over the best earlier layer's {0:i}",
            "grads.last_layer",
        ),
        language=Words("rank correlation gained {0:i}", "lm_flow.*_last_layer"),
    ),
    Headline(
        "A1, Open question 2",
        "Softmax amplifies too",
        Words("linear stacks of the same gain: disparity {0}", "amplification.usual_disparity"),
        trained=Words(
            "random weights, disparity of gradients, last over first layer, untied {0:i}, tied "
            "{1:i}; change of the lead {2:i}, {3:i}",
            "amplification.*_random_disparity amplification.*_tied_disparity "
            "amplification.*_random_lead amplification.*_tied_lead",
        ),
    ),
    Headline(
        "A2, Theorem 1",
        "In linear attention one matrix takes every token to layer t; with softmax, a causal mask, "
        "a norm or an MLP none does (this half answers a question of A2)",
        Words(
            "a common map would leave none; a query that is read changes the map, by {0}",
            "common_map.query_as_key_queries",
        ),
        proof("holds", "moments_suffice"),
        Words(
            "random stacks with softmax, causal mask, norm, MLP: least distance from a common map "
            "{all:i}",
            "common_map.softmax common_map.causal common_map.norm common_map.mlp",
        ),
        Words("distance from a common map {0:i}", "lm_heads.*_map"),
    ),
    Headline(
        "A2, Examples 1 to 3",
        "Truncating W_V, W_K or W_Q lowers the update's upper bound",
        Words("none needed, because the bound before truncation is the comparison"),
        proof("holds", "norms_under_truncation"),
    ),
    Headline(
        "A2, Remarks 4 and 6",
        "Truncating W_V, W_K or W_Q lowers the update itself, and Σ|G_t|²",
        Words("none needed, because the update before truncation is the comparison"),
        proof("fails", "norms_under_truncation"),
        Words(
            "share of truncations that raise it {all:i}",
            "truncation_norms.own truncation_norms.sum*",
        ),
    ),
    Headline(
        "A2, Theorem 2",
        "The bound lies above the generalisation error",
        Words(
            "for descent without such noise the best bound exceeds the largest loss, which bounds "
            "every error, by {0:size}",
            "bound_and_gap.says_something",
        ),
        trained=Words(
            "bound less error, of descent with noise put in {0:i}, of descent as it is {1:i}",
            "bound_and_gap.above_with_noise bound_and_gap.above",
        ),
    ),
    Headline(
        "A2, Remark 4",
        "Clipping lowers the bound and may lower the risk (tested: more often than random edits)",
        Words(
            "it does so in a share of {0} of these cases, random edits in {1}; the bound rises in "
            "{2} of all",
            "bound_and_gap.truncation_lowers_risk bound_and_gap.random_lowers_risk "
            "bound_and_gap.bound_falls",
        ),
        trained=Words(
            "share of truncations, less random {0:i}", "bound_and_gap.risk_falls_with_it"
        ),
    ),
    Headline(
        "A2, Remark 5",
        "The deeper the clipped layer, the steadier Σ|G_t|²",
        Words("what it touches accounts for {0} of this", "truncation_norms.touched_explains*"),
        trained=Words(
            "change of the log, last layer less first {0:i}",
            "truncation_norms.deep_is_steady_when_trained",
        ),
    ),
    Headline(
        "A2, Figure 1 (i)",
        "Clipping singular values improves the model",
        Words(
            "it gains on shifted inputs alone; on classifiers neither the edit nor a moved "
            "threshold gains, and they differ by {0}; on texts a fitted threshold gains {1} more "
            "than the search",
            "label_clipping.threshold lm_clipping.threshold",
        ),
        trained=Words(
            "the best edit of other runs changes the risk by {0:i}, the accuracy of classifiers by "
            "{1:i}; a searched one gains {2:i} of the risk",
            "clipping_curves.helps_* label_clipping.helps_* why_a_rate.gain_*",
        ),
        language=Words(
            "accuracy, one edit for all prompts {0:i}, one searched for each {1:i}",
            "lm_clipping.*_helps lm_clipping.wider_gains",
        ),
    ),
    Headline(
        "A2, Figure 1 (ii), deep layers",
        "Deep layers can be reduced drastically without much degradation",
        Words(
            "in regression MLPs tolerate it in every layer, unless the first is dropped: {0} times "
            "the risk",
            "clipping_curves.mlp_*_is_flat",
        ),
        trained=Words(
            "last layer, attention {0:i}, MLP {1:i} times the risk; accuracy {2:i}",
            "clipping_curves.attention_deep_is_flat clipping_curves.mlp_deep_is_flat "
            "label_clipping.*_deep_is_flat",
        ),
        language=Words(
            "AUC {0:i}, accuracy {1:i}",
            "lm_clipping.*_deep_is_flat lm_clipping.*_deep_keeps_accuracy",
        ),
    ),
    Headline(
        "A2, Figure 1 (ii), shallow layers",
        "Shallow layers tolerate less clipping than the last one",
        Words("in A2's own logs by {0} of the score", "published_logs.deep_is_steadier"),
        trained=Words(
            "attention, times the last layer's factor {0:i}; accuracy {1:i}",
            "clipping_curves.*_bears_* label_clipping.*_deep_tolerates_more",
        ),
        language=Words("AUC {0:i}", "lm_clipping.*_deep_tolerates_more"),
    ),
    Headline(
        "A2, Figure 2",
        "With fewer shots clipping shallow layers costs less",
        Words(
            "what there is to lose: more shots change the AUC of the unclipped model by {0} on "
            "reviews and {1} on news",
            "lm_clipping.rotten_tomatoes_more_shots lm_clipping.reuters_more_shots",
        ),
        trained=Words(
            "factor {0:i}, rise of the risk {1:i}, accuracy {2:i}",
            "clipping_curves.*_few_shots_collapse_less clipping_curves.*_few_shots_rise_less "
            "label_clipping.*_few_shots_fall_less",
        ),
        language=Words("AUC {0:i}", "lm_clipping.*_few_shots"),
    ),
    Headline(
        "A2, Figure 3",
        "Deep layers have larger condition numbers",
        Words(
            "training: before it they differ by {0} decades; in SmolLM2 another error of rounding "
            "to four bits moves those of W_Q and W_O by {1}",
            "condition_numbers.random_is_level lm_clipping.condition_rounded_square",
        ),
        trained=Words(
            "decades {all:i}", "condition_numbers.deep_is_larger condition_numbers.last_is_largest"
        ),
        language=Words(
            "decades, deeper half less the other {0:i}, last two layers less the others {1:i}; of "
            "the first over the median value {2:i}",
            "lm_clipping.deep_condition lm_clipping.last_condition lm_clipping.*_median",
        ),
    ),
    Headline(
        "A2, Figure 4",
        "Algorithm 1, a searched rate at a layer chosen by condition number, improves the model",
        Words(
            "it seldom gains: the model left alone does as well in a share of {0}, one number "
            "times the answer in {1}; on texts, where its mean is {2}, a fitted threshold gains "
            "{3} more than a wider search; in five collections random edits gain {4:size} less "
            "than the {5} of Algorithm 1, {4:verdict}",
            "clipping_search.no_edit clipping_search.scaled_answers lm_clipping.algorithm_gains "
            "lm_clipping.threshold lm_one_number.random_gains lm_one_number.gains",
        ),
        trained=Words(
            "tasks and parts without larger inputs, on which models are worse than predicting 0, "
            "share of the risk {all:i}",
            "clipping_search.attention_[!l]* clipping_search.mlp_[!l]*",
        ),
        language=Words("accuracy, by collection and part {0:i}", "lm_clipping.*_algorithm"),
    ),
    Headline(
        "A2, Appendix B.3",
        "Clipping W_K alone gains nothing",
        Words(
            "any edit gains {0} in the same conditions; on reviews any other one matrix of "
            "attention does as little, {1}",
            "why_a_rate.gain_* lm_clipping.rotten_tomatoes_w_?_alone",
        ),
        trained=Words("conditions, share of the risk {0:i}", "why_a_rate.single_module*"),
        language=Words("AUC {0:i}", "lm_clipping.*_keys_alone"),
    ),
    Headline(
        "A2, Appendix B.6",
        "Dropping a layer neither harms nor improves",
        Words(
            "against leaving the layer alone it multiplies the risk by {0:exp}, against clipping "
            "it by {1:exp}",
            "why_a_rate.leave_or_drop why_a_rate.clip_or_drop",
        ),
        trained=Words("conditions, relative change of the risk {0:i}", "why_a_rate.dropping_*"),
        language=Words("accuracy {0:i}", "lm_clipping.*_dropped"),
    ),
    Headline(
        "A3, Abstract, hypothesis",
        "What teaches in fine-tuning teaches in context",
        Words(
            "the Bayes rule, never fine-tuned, ranks subsets alike: {0}; the theorem's equal "
            "gradients are not met: {1} of a random subset's gap is left",
            "matching_transfer.bayes_as_* matching_is_exact.subset",
        ),
        proof("holds", "matched_gradients_predict_alike", "if gradients are equal"),
        Words("rank correlation over random subsets {0:i}", "matching_transfer.*_tuned_as_*"),
    ),
    Headline(
        "A3, Abstract, open models",
        "Matched subsets teach better than random ones",
        Words(
            "designs that only spread, and see no label, do better at half of the pool: matching "
            "has {0} and {1} times their error; on texts random subsets with the pool's shares of "
            "labels do as well ({2}), and so does an empty prompt ({3})",
            "gradient_matching.over_determinantal gradient_matching.over_leverage "
            "lm_gradient_matching.*_stratified lm_gradient_matching.*_matching_over_none",
        ),
        trained=Words("error over random choice's {0:i}", "gradient_matching.random"),
        language=Words("cross-entropy over random choice's {0:i}", "lm_gradient_matching.*_random"),
    ),
    Headline(
        "A3, Figure 4",
        "Mismatched subsets teach worse than random ones",
        Words(
            "on the least of all sizes, the row fixed before, they have {0} of random ones' error",
            "gradient_matching.mismatched",
        ),
        trained=Words(
            "by size, error over random choice's {0:i}", "gradient_matching.mismatched_*"
        ),
        language=Words(
            "cross-entropy over random choice's {0:i}", "lm_gradient_matching.*_mismatched"
        ),
    ),
    Headline(
        "A3, Abstract, transfer",
        "Subsets chosen on a small model serve larger ones",
        Words(
            "beside determinantal subsets, which see no gradient, a linear proxy's have {0} times "
            "their error, those of prefixes {1} and {2}; the proxy's ranks of what it has "
            "not chosen correlate by {3}, a trained stack's by {4}",
            "matching_transfer.proxy_over_diverse_* matching_transfer.prefix_over_diverse_* "
            "matching_transfer.stack_over_diverse_* matching_transfer.rank_random "
            "matching_transfer.stack_ranks_*",
        ),
        trained=Words(
            "error over random choice's {all:i}",
            "matching_transfer.proxy matching_transfer.prefix matching_transfer.stack",
        ),
    ),
    Headline(
        "A3, Table 6",
        "Matching keeps the shares of classes, KL at most as in the table",
        Words(
            "an intercept in the proxy keeps them by a theorem: {0}; random subsets {1}",
            "coverage.intercept_? coverage.random_?",
        ),
        proof("holds", "intercept_keeps_the_shares", "with an intercept"),
        trained=Words("without an intercept KL {0:i}", "coverage.plain_?"),
        language=Words("KL over random choice's {0:i}", "lm_gradient_matching.*_shares"),
    ),
    Headline(
        "A3, Curriculum",
        "Gradients along the whole training choose better than early ones",
        Words(
            "one against all gives {0}, early over late {1}: the spread counts",
            "gradient_matching.checkpoints gradient_matching.checkpoints_late",
        ),
        trained=Words(
            "error of as many early ones over that of all {0:i}",
            "gradient_matching.checkpoints_equal",
        ),
    ),
    Headline(
        "A4, Abstract, pattern",
        "Heads count in the first layer and one is enough in each later layer",
        Words(
            "as many heads elsewhere: the pattern has {0} times their risk at d = 4, estimates, "
            "and {1} times that of other placements at d = 8; on texts the top head leaves {2} on "
            "average",
            "heads_per_layer.early_* head_placement.over_* lm_heads.*_one_is_enough",
        ),
        trained=Words(
            "risk over the rival pattern's {all:i}",
            "heads_per_layer.first_before_later_* heads_per_layer.first_layer_suffices_*",
        ),
        language=Words(
            "what the top head leaves, layer by layer {0:i}",
            "lm_heads.*_layer_*_left",
        ),
    ),
    Headline(
        "A4, Abstract, against ridge",
        "Many heads first and one later beat ridge and descent of as many steps",
        Words(
            "one head in each layer does so in {holds} of {cells} cases: {all} of their risk",
            "heads_per_layer.single_beats_ridge_* heads_per_layer.single_beats_descent_* "
            "heads_per_layer.single_ridge",
        ),
        trained=Words(
            "risk over theirs {all:i}",
            "heads_per_layer.beats_ridge_* heads_per_layer.beats_descent_* "
            "heads_per_layer.first_ridge",
        ),
    ),
    Headline(
        "A4, Figure 1b",
        "More heads have a lower risk",
        Words("beyond d heads {0}", "heads_per_layer.beyond_d_*"),
        trained=Words(
            "risk over that with fewer heads {all:i}",
            "heads_per_layer.more_heads_* heads_per_layer.first_layer_helps_* "
            "heads_per_layer.up_to_d_*",
        ),
    ),
    Headline(
        "A4, Figure 1c, first layer",
        "All heads of the first layer matter",
        Words(
            "chance, layers or heads exchanged: {0} and {1} times its heads in effect",
            "head_pruning.layers_* head_pruning.heads_*",
        ),
        trained=Words(
            "share of heads in effect {0:i}, over layers or heads exchanged {1:i}, {2:i}",
            "head_pruning.first.* head_pruning.layers_* head_pruning.heads_*",
        ),
        language=Words(
            "share of heads in effect {all:i}",
            "lm_heads.*_first_change lm_heads.*_first_mean",
        ),
    ),
    Headline(
        "A4, Figure 1c, later layers",
        "One head dominates each later layer",
        Words(
            "the first layer's share in the same models is {0}; closing all heads of these two "
            "layers of SmolLM2 changes answers by {1} and {2} nats, of two others, whose rows all "
            "fail and are left out, by {3} and {4}",
            "head_pruning.first.* lm_heads.*_layer_15_closed lm_heads.*_layer_22_closed "
            "lm_heads.*_layer_8_closed lm_heads.*_layer_29_closed",
        ),
        trained=Words("heads in effect {0:i}", "head_pruning.later.*"),
        language=Words(
            "heads in effect in the two layers that answers need {0:i} and {1:i}, {2:i} and {3:i}",
            "lm_heads.*_layer_15_change lm_heads.*_layer_15_mean lm_heads.*_layer_22_change "
            "lm_heads.*_layer_22_mean",
        ),
    ),
    Headline(
        "A4, Figure 1d",
        "Without retraining, all but the top head of each later layer can be pruned",
        Words("a model trained with one head there: {0}", "head_pruning.trained_*"),
        trained=Words(
            "risk over the full model's {all:i}", "head_pruning.narrow head_pruning.softmax"
        ),
        language=Words("rank correlation of answers {0:i}", "lm_heads.*_pruned"),
    ),
    Headline(
        "A4, Figure 5",
        "The answer gets more readable from layer to layer",
        Words(
            "in a model with one head a layer too ({0}), and in one with random weights {1}",
            "layer_probes.steady_single layer_probes.steady_random",
        ),
        trained=Words(
            "risk of a linear reader, a layer over the one before {0:i}", "layer_probes.steady"
        ),
    ),
    Headline(
        "A4, Heads needed",
        "The first layer needs d heads to preprocess d covariates",
        Words(
            "in trained models half as many in layer 1 do as well ({0}), in every layer not (d has "
            "{1} of their risk)",
            "heads_per_layer.up_to_d_first heads_per_layer.up_to_d_full",
        ),
        proof("holds", "head_lower_bound"),
        Words("risk over that with d heads {0:i}", "preprocess_then_optimise.cost*"),
    ),
    Headline(
        "A4, Risk, against descent and ridge",
        "Preprocessed descent has less excess risk than descent and ridge",
        Words("for dense weights it has more: {0}", "sparse_risk.dense"),
        trained=Words(
            "share of the bound gained {all:i}", "sparse_risk.preprocessed sparse_risk.noise"
        ),
    ),
    Headline(
        "A4, Risk, against the Lasso",
        "It is comparable with the Lasso",
        Words(
            "elsewhere it is better: for flat weights and many shots {0}",
            "sparse_risk.flat_16_32",
        ),
        trained=Words(
            "excess risk over the Lasso's {all:i}", "sparse_risk.gaussian_* sparse_risk.flat_*"
        ),
    ),
)
