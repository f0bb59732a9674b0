"""Level 1 of the ledger: one sentence a message, by theme, beside its null. The verdicts that a
sentence supposes stand with it; all hold where none are named."""

from lsa_lab.harness.report.headlines import Message

ONE_LAYER = (
    Message(
        "A trained layer of linear attention has on average at most {0:%} % more risk than "
        "theory's optimum",
        "one_layer_optimum.risk",
        "none needed, because no layer is better than the optimum",
    ),
    Message(
        "At other scales and lengths a trained layer has {0} times the risk that theory predicts",
        "one_layer_optimum.theory",
        "none needed, because the prediction is in closed form",
    ),
    Message(
        "At three times the scale of training even the longest prompt leaves a layer worse than "
        "predicting 0, by {0} of the signal",
        "one_layer_optimum.floor",
        "descent with each prompt's own step leaves {0} of the signal there",
        "one_layer_optimum.floor_descent",
    ),
    Message(
        "On short prompts of the diabetes table a layer trained on Gaussians has more error than "
        "the mean, by {0} of the variance",
        "one_layer_optimum.table",
        "descent with each prompt's own step has less than the layer there, by {0}",
        "one_layer_optimum.table_descent",
        stands="fails",
    ),
    Message(
        "Training on samples is off the logistic law by {0:%} % of the limit on average over time",
        "training_dynamics.samples",
        "none needed, because the law is in closed form",
    ),
    Message(
        "Modes are learnt in the order of squared eigenvalues: each takes at least {0} times as "
        "long as the one before",
        "training_dynamics.order",
        "none needed, because equal times would have the ratio one",
    ),
    Message(
        "With half as many pretraining tasks as dimensions a layer memorises them: new tasks have "
        "{0} times their risk",
        "finite_pretraining.memorised",
        "with four times as many tasks as dimensions {0} times",
        "finite_pretraining.learned",
    ),
)

DESCENT = (
    Message(
        "Without label noise one, two and three converged linear layers have in the median {0}, "
        "{1} and {2} times the risk of as many tuned steps of descent, one on correlated "
        "covariates {3}",
        "depth.descent_one depth.descent_two depth.descent_three depth.rotated_descent_one",
        "at the identity covariance tuned descent is at most {0:%} % off the best steps that all "
        "prompts can share",
        "depth.closed_form",
    ),
    Message(
        "Converged linear stacks are not tuned GD++ at every depth: at the worst place, three "
        "layers, they have {0} of its risk",
        "depth.plus_plus_settled",
        "against plain descent {0} there",
        "depth.descent_three",
        stands="fails",
    ),
    Message(
        "The last layer of linear attention is nearer to ridge, which takes no steps, than to GD++",
        "implicit_trajectories.not_ridge",
        "the difference of the distances is {0}, that to GD++ itself {1}",
        "implicit_trajectories.not_ridge implicit_trajectories.linear",
        stands="fails",
    ),
    Message(
        "In random stacks softmax, causal masks, norms or MLPs leave a prompt's tokens no common "
        "map: the best one misses {all} of the stream, by kind, where it misses least",
        "common_map.softmax common_map.causal common_map.norm common_map.mlp",
        "in linear attention it misses none, by a theorem; a query that is read changes the map, "
        "by {0}",
        "common_map.query_as_key_queries",
    ),
    Message(
        "The noise of implicit gradients is not Gaussian in {fails} of {cells} layers: its excess "
        "kurtosis is {0} in the last ones, and earlier {1} in linear and {2} in softmax attention",
        "noisy_descent.*_last noisy_descent.linear_early_? noisy_descent.softmax_early_?",
        "a test of normality lets a share of {0} pass, on average over layers",
        "noisy_descent.passes_*",
        stands="counted",
    ),
    Message(
        "Descent with Gaussian noise on its gradients has {0} times the risk of the model",
        "noisy_descent.tests_alike",
        "fresh demonstrations have {0} times, so that Gaussian noise has {1} times theirs; half of "
        "the noise leaves {2} of its risk",
        "noisy_descent.learns_like_sgd noisy_descent.sgd_alike noisy_descent.size_matters",
        stands="fails",
    ),
    Message(
        "Norms before the layers make updates {0} times as large, and excess risks {1} times as "
        "high",
        "norms_and_updates.smaller_updates norms_and_updates.helps",
        "shrunk writes have {0} times the risk of shrunk answers",
        "norms_and_updates.shrinking_beats_answers",
        stands="holds fails",
    ),
    Message(
        "In linear attention updates grow with the shots as a sum (slope {0}), and so fall as a "
        "mean ({1}), whose slope is one less",
        "norms_and_updates.linear_grows_as_in_the_paper norms_and_updates.linear_grows",
        "the slopes of softmax attention, {0} and {1}, depend on the scale of its keys, and what "
        "it computes does not",
        "norms_and_updates.softmax_grows_as_in_the_paper norms_and_updates.softmax_grows",
        stands="holds fails",
    ),
    Message(
        "Against the middle of a prompt a relevant demonstration is worth {1} of the mean error "
        "more at the end, and {0:size} less at the beginning: no U-shape",
        "order.beginning order.end",
        "with labels as noisy as the others' {0} at the end",
        "order.noisy_end",
        stands="fails holds",
    ),
)

FLOW = (
    Message(
        "What a demonstration takes off the error is, on average over classes of equal relevance "
        "and novelty, a product of the two rather than a sum: R² differs by {0}",
        "flow_factors.reduction_is_a_product",
        "beside other demonstrations in trained models by {0}",
        "relevance_and_novelty.*_product",
    ),
    Message(
        "A demonstration that is relevant and new takes {0} off the error on average",
        "flow_factors.helps",
        "single ones lower it in a share of {0} of cases, for the Bayes rule in {1}",
        "flow_factors.share_of_attention flow_factors.share_of_bayes",
    ),
    Message(
        "An irrelevant demonstration has {0} of the others' gradient, a learned one {1}: less, and "
        "not none",
        "flow_factors.either_or_flow flow_factors.either_or_less",
        "none needed, because the other demonstrations are the comparison",
        stands="fails holds",
    ),
    Message(
        "The size of its gradient says little of what a demonstration is worth: rank correlation "
        "{0}",
        "flow_factors.flow_predicts",
        "the best prediction, by the Bayes rule, reaches {0}",
        "flow_factors.predicts_ceiling",
        stands="fails",
    ),
    Message(
        "In random linear stacks the ratio of two gradients typically grows with depth, in "
        "{holds} of {cells} kinds",
        "amplification.typically_*",
        "for nearly all pairs in none: at most {0}; ascent finds stacks where the log ratio falls "
        "by {1:size}",
        "amplification.theorem_1 bayes_flows.theorem_1",
        stands="counted",
    ),
    Message(
        "In random linear stacks of large weights depth multiplies the log ratio of two lone "
        "gradients by {0}",
        "amplification.large_disparity",
        "at softmax's gain by {0}, in softmax stacks by {1} and, tied, by {2}",
        "amplification.usual_disparity amplification.*_random_disparity "
        "amplification.*_tied_disparity",
    ),
    Message(
        "Random softmax stacks make two gradients more unequal in {holds} of {cells} kinds: {all} "
        "times",
        "amplification.*_random_disparity amplification.*_tied_disparity",
        "they widen the lead of the one ahead in {holds} of {cells}",
        "amplification.*_random_lead amplification.*_tied_lead",
        stands="counted",
    ),
    Message(
        "In trained models, on prompts as in training, two gradients end as unequal as the Bayes "
        "rule's: {all} times",
        "many_shot_flow.linear_ends_at_bayes many_shot_flow.softmax_ends_at_bayes "
        "many_shot_flow.transformer_ends_at_bayes",
        "from the first layer on they have grown {0} times; each alone, as never in training, they "
        "end {1} times as unequal as the Bayes rule's",
        "amplification.*_trained_shared_disparity many_shot_flow.linear_alone_ends_at_bayes",
    ),
    Message(
        "Under the dense prior, once linear stacks are near the Bayes rule in risk, two gradients "
        "are as unequal as its own, at every depth that comes near: {all} times",
        "bayes_flows.*_ends",
        "all kinds, near it or not, end at {all} times",
        "bayes_flows.*_no_further",
    ),
    Message(
        "Under the dense prior the squared distance of gradients from the Bayes rule's is {all} "
        "times the excess risk at every depth",
        "bayes_flows.*_degree",
        "none needed, because the least that the theorem allows is one",
    ),
    Message(
        "Only linear attention comes to listen to the demonstrations of the Bayes rule: log "
        "gradients correlate by {0}, those of softmax attention by {1} and of transformers by {2}",
        "many_shot_flow.linear_listens_as_bayes many_shot_flow.softmax_listens_as_bayes "
        "many_shot_flow.transformer_listens_as_bayes",
        "where the first demonstration leads they end {0} from the Bayes rule's lead",
        "many_shot_flow.*_lead_ends_at_bayes",
        stands="holds fails fails",
    ),
    Message(
        "Among many demonstrations depth makes gradients more unequal in {holds} of {cells} stacks",
        "many_shot_flow.depth_*",
        "none ends beyond least squares: {0} of its disparity",
        "many_shot_flow.*_ends_at_least_squares",
        stands="counted",
    ),
    Message(
        "Beside its near-duplicate a demonstration's gradient is {all:exp} times what it is beside "
        "another",
        "many_shot_flow.explained_away_*",
        "none needed, because an unrelated demonstration in its place is the comparison",
    ),
    Message(
        "GradS has {0} times the error of selection by relevance without noise in the labels, and "
        "{1} times with it: noise is new",
        "grads.without_noise grads.with_noise",
        "of a random choice's error {0}, of the best rival's in each task {1}",
        "grads.random grads.strongest",
        stands="holds fails",
    ),
    Message(
        "A pool that is encoded once costs a query {0:%} % of the operations by the formula of one "
        "layer, and {1:%} % by all layers",
        "offline_encoding.operations offline_encoding.operations_all",
        "what that formula selects has {0} times the excess risk of what gradients online select",
        "offline_encoding.risk",
        stands="holds fails",
    ),
    Message(
        "Over classes of demonstrations the mean gains of trained models correlate with the Bayes "
        "rule's by {0}; within classes of one factor their rank correlation with the other is at "
        "least {1} in linear attention, and {2} in softmax models",
        "relevance_and_novelty.*_alike relevance_and_novelty.linear_flow "
        "relevance_and_novelty.[st]*_flow",
        "an untrained model's values correlate by {0}",
        "relevance_and_novelty.untrained_map",
        stands="holds holds fails",
    ),
)

CLIPPING = (
    Message(
        "On the task of its training the best edit of other runs improves a model in {holds} of "
        "{cells} cases: risks change by {all}",
        "clipping_curves.helps_few clipping_curves.helps_trained",
        "an edit that is searched for the model itself gains {0}",
        "why_a_rate.gain_matched",
        stands="counted",
    ),
    Message(
        "Depth alone does not tell which attention tolerates clipping: drastic rates multiply the "
        "risk by {0}, {1}, {2} and {3} in layers 1 to 4",
        "clipping_curves.attention_1_is_flat clipping_curves.attention_2_is_flat "
        "clipping_curves.attention_3_is_flat clipping_curves.attention_deep_is_flat",
        "none needed, because the same model unclipped is the comparison",
        stands="fails",
    ),
    Message(
        "No layer's MLP degrades much at drastic rates short of all of it: {all} times the risk on "
        "average over rates",
        "clipping_curves.mlp_*_is_flat",
        "none needed, because the same model unclipped is the comparison",
    ),
    Message(
        "Clipped sharply, attention or MLP of a layer leaves the model guessing in {holds} of "
        "{cells} cases",
        "clipping_curves.*_collapses",
        "predicting 0 is the guess, at which risks are cut: attention of layer 2 has {0} of it",
        "clipping_curves.attention_2_collapses",
        stands="counted",
    ),
    Message(
        "Fewer shots sharpen the factor of clipped risks in layer 1 ({0} times) and soften it "
        "in layer 2 ({1} times)",
        "clipping_curves.attention_few_shots_collapse_less "
        "clipping_curves.attention_2_few_shots_collapse_less",
        "none needed, because the same models unclipped at these shots are the comparison",
        stands="fails holds",
    ),
    Message(
        "Algorithm 1 gains something on fresh prompts in {holds} of {cells} tasks and parts, "
        "without larger inputs, on which our models are worse than predicting 0",
        "clipping_search.attention_[!l]* clipping_search.mlp_[!l]*",
        "the model left alone does as well in a share of {0} of the tasks, one searched number "
        "times the answer in {1}",
        "clipping_search.no_edit clipping_search.scaled_answers",
        stands="counted",
    ),
    Message(
        "What Algorithm 1 gains on its own prompts is in part won by selection: {0} of the risk, "
        "and {1} more by a wider search",
        "clipping_search.selection clipping_search.wider_is_more_optimistic",
        "in A2's own logs {0} of the score",
        "published_logs.optimism",
    ),
    Message(
        "Clipping W_K alone gains nothing to speak of in {holds} of {cells} conditions, the "
        "paper's among them ({0})",
        "why_a_rate.single_module why_a_rate.single_module_*",
        "any edit at all gains {0}, most on shifted inputs",
        "why_a_rate.gain_*",
        stands="counted",
    ),
    Message(
        "No statistic of a spectrum tells its best rank: correlation {all}",
        "why_a_rate.*_ranks",
        "a second search with other prompts agrees by {0}",
        "why_a_rate.search_repeats",
        stands="fails",
    ),
    Message(
        "Training makes deep layers worse conditioned than shallow ones, by {0} decades",
        "condition_numbers.deep_is_larger",
        "before training they differ by {0}",
        "condition_numbers.random_is_level",
    ),
    Message(
        "On average over matrices the layer with the larger condition number tolerates clipping "
        "better: correlation {0}",
        "condition_numbers.condition_tells",
        "for the two matrices that carry the harm it has {0}, and depth alone {1}",
        "condition_numbers.harm_by_condition condition_numbers.harm_by_depth",
    ),
    Message(
        "Where truncation lowers the bound, it lowers the risk in a share of {0} of cases, {1} "
        "more than random edits as large do",
        "bound_and_gap.truncation_lowers_risk bound_and_gap.risk_falls_with_it",
        "random edits lower it in a share of {0}, and the bound itself rises in {1} of all cases",
        "bound_and_gap.random_lowers_risk bound_and_gap.bound_falls",
        stands="estimated holds",
    ),
    Message(
        "The last layer moves the log of the sum of updates by {1:size} less than the first one in "
        "trained stacks, for it touches little of it, and by {0:size} less in random ones",
        "truncation_norms.deep_is_steady truncation_norms.deep_is_steady_when_trained",
        "what it touches accounts for {0} of the log in trained stacks",
        "truncation_norms.touched_explains*",
    ),
    Message(
        "For descent with noise put in by hand Theorem 2's bound is valid, by {0}; for descent "
        "without, the best bound exceeds the largest loss by {1:size}",
        "bound_and_gap.above_with_noise bound_and_gap.says_something",
        "the number of shots alone ranks gaps as well: {0}",
        "bound_and_gap.better_than_counting",
        stands="holds fails",
    ),
    Message(
        "Without one of its layers, the median one, a regression model has {all} times more risk",
        "why_a_rate.dropping_*",
        "against leaving that layer alone dropping it multiplies the risk by {0:exp}, against "
        "clipping it by {1:exp}",
        "why_a_rate.leave_or_drop why_a_rate.clip_or_drop",
        stands="fails",
    ),
    Message(
        "Classifiers tolerate drastic clipping in deep layers ({0}), no better than in shallow "
        "ones ({1} apart), and no edit helps them ({2})",
        "label_clipping.*_deep_is_flat label_clipping.*_deep_tolerates_more label_clipping.helps_*",
        "a moved threshold differs from the best edit by {0} of accuracy, and helps no more",
        "label_clipping.threshold",
        stands="holds fails fails",
    ),
    Message(
        "In A2's own logs deep layers are flat ({0}), and a searched rate gains {1} on test",
        "published_logs.deep_is_flat published_logs.search_gains",
        "the gain on validation is {0} larger than on test",
        "published_logs.optimism",
        stands="holds fails",
    ),
)

MATCHING = (
    Message(
        "Matched demonstrations leave {0} of the error of random ones at the worst size",
        "gradient_matching.random",
        "designs that see no label do better there: matching has {0} and {1} times their error",
        "gradient_matching.over_determinantal gradient_matching.over_leverage",
    ),
    Message(
        "Matching beats {holds} of {cells} rivals at their worst size: at half of the pool "
        "determinantal and leverage designs beat it",
        "gradient_matching.over_*",
        "its error over theirs is {0}",
        "gradient_matching.over_*",
        stands="counted",
    ),
    Message(
        "Mismatched demonstrations teach worse than random ones at {holds} of {cells} sizes",
        "gradient_matching.mismatched_*",
        "on the least of all sizes, fixed before, they have {0} of random ones' error",
        "gradient_matching.mismatched",
        stands="counted",
    ),
    Message(
        "Checkpoints along the whole training choose subsets with {0} times less error than as "
        "many early ones",
        "gradient_matching.checkpoints_equal",
        "one checkpoint against all gives {0}, early over late ones {1}: the spread counts",
        "gradient_matching.checkpoints gradient_matching.checkpoints_late",
    ),
    Message(
        "A subset that matches d + 1 checkpoints still leaves {0} of a random subset's gap: the "
        "theorem's hypothesis, equal gradients, is not met",
        "matching_is_exact.subset",
        "none needed, because random subsets are the comparison",
        stands="fails",
    ),
    Message(
        "Whitened gradients leave {0} of a random subset's gap, and {1} of what plain ones leave",
        "matching_is_exact.whitened_subset matching_is_exact.whitened_nearer",
        "before softmax attention {0} of what plain ones leave",
        "matching_is_exact.whitened_softmax",
    ),
    Message(
        "What teaches a model in fine-tuning teaches it in context in {holds} of {cells} cases: "
        "random subsets rank alike by {0} for its own prefix and {1} for a linear model's weights",
        "matching_transfer.own_tuned_as_* matching_transfer.linear_tuned_as_*",
        "the Bayes rule, which nobody fine-tunes, ranks subsets alike by {0}",
        "matching_transfer.bayes_as_*",
        stands="counted",
    ),
    Message(
        "Subsets that a proxy chooses help every target: {0} of random subsets' error by the "
        "linear proxy, {1} by a prefix of a layer, {2} by one of a trained stack (linear "
        "attention, one of the targets)",
        "matching_transfer.proxy matching_transfer.prefix matching_transfer.stack",
        "over determinantal subsets, chosen without a gradient, the linear proxy's do not win ({0} "
        "times their error), and those of prefixes always do ({1} and {2})",
        "matching_transfer.proxy_over_diverse_* matching_transfer.prefix_over_diverse_* "
        "matching_transfer.stack_over_diverse_*",
    ),
    Message(
        "Which random subsets are better a proxy of one step does not tell: rank correlation {0} "
        "at the worst of the larger models",
        "matching_transfer.rank_random",
        "a trained linear stack ranks them by {0}",
        "matching_transfer.stack_ranks_*",
        stands="fails",
    ),
    Message(
        "Matching without an intercept keeps class shares as A3's table does for {holds} of "
        "{cells} numbers of classes: KL {all}",
        "coverage.plain_?",
        "random subsets have {0}, and an intercept, by a theorem, {1}",
        "coverage.random_? coverage.intercept_?",
        stands="counted",
    ),
    Message(
        "Matching teaches a minority no worse than random choice: {all} of its error",
        "coverage.*_minority",
        "none needed, because random subsets are the comparison",
    ),
    Message(
        "Where clusters' tasks differ, in part or in all, demonstrations matched once and others "
        "for the query beat either alone: {all} of the better one's error",
        "fixed_and_per_query.*_tasks",
        "none needed, because each part alone is the comparison",
    ),
    Message(
        "Matching gains with flipped labels, but descent keeps less of its gain: {0} and {1} "
        "times the ratio in clean pools",
        "fixed_and_per_query.descent_few_flipped_kept "
        "fixed_and_per_query.descent_many_flipped_kept",
        "none needed, because clean pools are the comparison",
        stands="fails",
    ),
    Message(
        "Divided by their number, demonstrations beyond the trained length lower errors to {all} "
        "of those at that length",
        "many_shots.*_normalised many_shots.softmax",
        "divided by the trained length they explode; divided by n they leave {0} times the Bayes "
        "rule's error at the noise of training",
        "many_shots.*_bayes",
    ),
    Message(
        "Classification does not lose from more demonstrations: the share of errors changes by "
        "{all}",
        "many_shots.*_classes",
        "none needed, because the same prompts are compared",
        stands="fails",
    ),
)

HEADS = (
    Message(
        "At lengths of training many heads first and one later beat ridge and descent: {all} of "
        "their risk",
        "heads_per_layer.beats_ridge_* heads_per_layer.beats_descent_* heads_per_layer.first_ridge",
        "one head in each layer does so in {holds} of {cells} cases: {all}",
        "heads_per_layer.single_beats_ridge_* heads_per_layer.single_beats_descent_* "
        "heads_per_layer.single_ridge",
    ),
    Message(
        "Many heads in all later layers do more than many in the first: the latter have {all} "
        "times the risk or more",
        "heads_per_layer.first_before_later_*",
        "with equal numbers of heads {0} times",
        "heads_per_layer.early_*",
        stands="fails",
    ),
    Message(
        "Many heads have {all} of the risk of one head a layer",
        "heads_per_layer.more_heads_* heads_per_layer.first_layer_helps_*",
        "beyond d heads {0}",
        "heads_per_layer.beyond_d_*",
    ),
    Message(
        "The first layer uses more of its heads than chance would have it in {holds} of {cells} "
        "readings: a share of {0} is in effect",
        "head_pruning.first.* head_pruning.layers_* head_pruning.heads_*",
        "over layers or heads that are exchanged {0} and {1}",
        "head_pruning.layers_* head_pruning.heads_*",
        stands="counted",
    ),
    Message(
        "{all} heads of a later layer matter, not one",
        "head_pruning.later.*",
        "of the first layer a share of {0}",
        "head_pruning.first.*",
        stands="fails",
    ),
    Message(
        "Without retraining, pruning later layers to their top heads multiplies the risk by {all}",
        "head_pruning.narrow head_pruning.softmax",
        "a random head of each later layer costs {0} times that, clearly more in {holds} of "
        "{cells} kinds",
        "head_pruning.random_heads_*",
        stands="fails",
    ),
    Message(
        "A model trained with one head in each later layer has {all} times the full model's risk",
        "head_pruning.trained_*",
        "the best mixture of heads without retraining {0}",
        "head_pruning.best_mixed_depth_*",
        stands="fails",
    ),
    Message(
        "Each layer makes the answer more readable: a linear reader's risk falls to {0} of before "
        "or less",
        "layer_probes.steady",
        "in a model with one head a layer {0}, in one with random weights {1}",
        "layer_probes.steady_single layer_probes.steady_random",
    ),
    Message(
        "The first layer does not answer: a linear reader of it has at least {0} times ridge's "
        "risk",
        "layer_probes.not_yet",
        "a reader of the last layer has {0} or less",
        "layer_probes.at_last",
    ),
    Message(
        "Later layers do more than descend on the first one's tokens: the model has {0} of that "
        "descent's risk",
        "layer_probes.later_layers",
        "that descent has {0} of the risk on raw covariates, and {1} of that on the formula's",
        "layer_probes.descent_raw layer_probes.descent_formula",
        stands="fails",
    ),
    Message(
        "Features of fewer than d heads cost descent {all} times the risk",
        "preprocess_then_optimise.cost*",
        "trained models with d heads have {0} times the risk of half as many where the first layer "
        "has them, and {1} where every layer has",
        "heads_per_layer.up_to_d_first heads_per_layer.up_to_d_full",
    ),
    Message(
        "At its best step preprocessed descent has {all} of the risk of ridge",
        "preprocess_then_optimise.best_step*",
        "after a few steps it is worse than descent on raw covariates: {0}",
        "preprocess_then_optimise.slow",
    ),
    Message(
        "For sparse weights preprocessed descent gains {all} of the bound over ridge",
        "sparse_risk.preprocessed sparse_risk.noise sparse_risk.less_sparse",
        "for dense weights it loses {0}",
        "sparse_risk.dense",
    ),
    Message(
        "Preprocessed descent loses about what the Lasso does in {holds} of {cells} settings, and "
        "less in the other {fails}: {all} times its excess risk",
        "sparse_risk.gaussian_* sparse_risk.flat_*",
        "where it is clearest, for flat weights and many shots, {0}",
        "sparse_risk.flat_16_32",
        stands="counted",
    ),
    Message(
        "On long prompts the excess risk of preprocessed descent falls like n to the {0} and grows "
        "like s to the {1}",
        "sparse_risk.preprocessed_n sparse_risk.preprocessed_s",
        "rules without directions pay for d instead: to the {0}",
        "sparse_risk.directionless_d",
    ),
)

LANGUAGE = (
    Message(
        "Drastic clipping of a deep layer costs SmolLM2 no AUC in {holds} of {cells} cases: {all}",
        "lm_clipping.*_deep_is_flat",
        "of accuracy, clipped attention changes it by {0} and a clipped MLP by {1}",
        "lm_clipping.*_attention_deep_keeps_accuracy lm_clipping.*_mlp_deep_keeps_accuracy",
        stands="counted",
    ),
    Message(
        "In SmolLM2's second layer clipped attention leaves guessing (AUC {0}), a clipped MLP does "
        "not ({1})",
        "lm_clipping.*_attention_shallow_collapses lm_clipping.*_mlp_shallow_collapses",
        "none needed, because guessing has an AUC of a half",
        stands="holds fails",
    ),
    Message(
        "One edit for all prompts does not improve SmolLM2's accuracy on reviews ({0}); on news "
        "it is open ({1})",
        "lm_clipping.rotten_tomatoes_helps lm_clipping.reuters_helps",
        "a threshold fitted on the same labels gains {0} more than a search for each prompt",
        "lm_clipping.threshold",
        stands="fails undecided",
    ),
    Message(
        "A searched edit gains {0} of SmolLM2's accuracy by Algorithm 1, and {1} over more layers",
        "lm_clipping.algorithm_gains lm_clipping.wider_gains",
        "by collection and part Algorithm 1 gains {0}; a threshold fitted on the same sentences "
        "gains {1} more than the wider search; in five collections Algorithm 1 gains {3}, "
        "and it is undecided whether random edits as large gain less ({2:size})",
        "lm_clipping.*_algorithm lm_clipping.threshold lm_one_number.random_gains "
        "lm_one_number.gains",
    ),
    Message(
        "With fewer shots clipping costs SmolLM2 less on reviews ({0}) and more on news ({1})",
        "lm_clipping.rotten_tomatoes_few_shots lm_clipping.reuters_few_shots",
        "more shots change the AUC of the unclipped model by {0} and by {1}",
        "lm_clipping.rotten_tomatoes_more_shots lm_clipping.reuters_more_shots",
        stands="holds fails",
    ),
    Message(
        "Without attention in one deep layer SmolLM2's accuracy changes by {0}, without MLP by {1} "
        "on reviews",
        "lm_clipping.*_attention_dropped lm_clipping.rotten_tomatoes_mlp_dropped",
        "none needed, because the row is an equivalence",
        stands="holds fails",
    ),
    Message(
        "SmolLM2's condition numbers are not seen to rise with depth: by {0} decades to the deeper "
        "half, by {1} to the last two layers, whose first over median value does rise, by {2}",
        "lm_clipping.deep_condition lm_clipping.last_condition lm_clipping.last_median",
        "another error of rounding to four bits moves those of W_Q and W_O by {0} decades; beyond "
        "random matrices of the same norms the last layers' condition rises by {1}, and their "
        "first over median value by {2}",
        "lm_clipping.condition_rounded_square lm_clipping.last_condition_beyond_norms "
        "lm_clipping.last_median_beyond_norms",
        stands="undecided undecided holds",
    ),
    Message(
        "Each demonstration alone, early layers make SmolLM2's gradients more unequal and later "
        "ones do not: after the last they are {all} times as unequal as after the first",
        "lm_flow.*_alone_*_disparity",
        "in an untrained decoder, all in one prompt, {0} times",
        "lm_flow.*_untrained",
    ),
    Message(
        "In one prompt depth makes SmolLM2's gradients more unequal on news alone, in {holds} of "
        "{cells} cases; on IMDB it is open: {all}",
        "lm_flow.*_shared_*_disparity",
        "in an untrained decoder {0} times",
        "lm_flow.*_untrained",
        stands="counted",
    ),
    Message(
        "A share of {all} of the pairs changes its order between SmolLM2's first and last layer",
        "lm_flow.*_order",
        "none needed, because chance would turn a half",
        stands="fails",
    ),
    Message(
        "What a demonstration adds in SmolLM2 follows its label ({0} nats), on reviews in part, "
        "and falls as its gradient grows (rank correlation {1})",
        "lm_flow.*_label lm_flow.*_predicts_margin",
        "similarity and BM25 predict it by {0} and {1}",
        "lm_flow.*_predicts_similarity lm_flow.*_predicts_bm25",
        stands="holds fails",
    ),
    Message(
        "GradS selects worse prompts for SmolLM2 than random choice, by {all:size} nats",
        "lm_flow.*_prompts_*_random",
        "than similarity by {0:size} nats",
        "lm_flow.*_prompts_*_similarity",
        stands="fails",
    ),
    Message(
        "Matched demonstrations leave SmolLM2 {0} of the cross-entropy after random ones",
        "lm_gradient_matching.*_random",
        "of random ones with the same shares of labels {0}; an empty prompt does as well: matched "
        "ones have {1} times its cross-entropy, random ones {2}",
        "lm_gradient_matching.*_stratified lm_gradient_matching.*_matching_over_none "
        "lm_gradient_matching.*_random_over_none",
        stands="estimated",
    ),
    Message(
        "In the later layer that SmolLM2's answers need most one head does nearly all: {0} and {1} "
        "matter; in another {2} and {3} do",
        "lm_heads.*_layer_22_change lm_heads.*_layer_22_mean lm_heads.*_layer_15_change "
        "lm_heads.*_layer_15_mean",
        "closing all heads of these two changes answers by {0} and {1} nats, of two others, whose "
        "rows all fail, by {2} and {3}; of the first layer's heads a share of {4} and {5} matters",
        "lm_heads.*_layer_22_closed lm_heads.*_layer_15_closed lm_heads.*_layer_8_closed "
        "lm_heads.*_layer_29_closed lm_heads.*_first_change lm_heads.*_first_mean",
        stands="fails holds fails fails",
    ),
    Message(
        "With the top head of each later layer alone SmolLM2's order of answers is lost: rank "
        "correlation {0}",
        "lm_heads.*_pruned",
        "the top two thirds of all heads keep {0} more of it than as many random ones",
        "lm_heads.*_top_heads",
        stands="fails",
    ),
)

RECURRENT = (
    Message(
        "One trained layer reaches the closed curve of its rule in {holds} of {cells} kinds: it "
        "has {all} times the curve's risk",
        "learning_curves.curve_*",
        "none needed, because the curve is in closed form; the layer's distance to its own rule is "
        "{all} of that to the nearest other",
        "learning_curves.own_*",
        stands="counted",
    ),
    Message(
        "On prompts twice and eight times as long as in training DeltaNet has {all} times the risk "
        "that follows from the step it has learned",
        "learning_curves.floor_as_are_*",
        "the curve for labels divided by |x|, which it does not read, would make that {all}",
        "learning_curves.floor_divided_*",
    ),
    Message(
        "The risk of one trained layer does not rise on prompts twice and eight times as long as "
        "in training: {all} times",
        "learning_curves.grows_*",
        "none needed, because no closed curve rises; softmax attention has none, and linear "
        "attention is far from its own on longer prompts",
    ),
    Message(
        "Two trained layers of linear attention, LMS and DeltaNet, gated or not, are not twice as "
        "near to ridge regression as to one pass of their rule: the distances have the ratio "
        "{all}; of LMS nearly half of the stacks diverged",
        "learning_curves.ridge_*",
        "none needed, because the rule of one layer is the comparison",
        stands="fails",
    ),
    Message(
        "After a longer training two layers of DeltaNet, gated or not, are not twice as near to "
        "ridge regression as to one pass: the distances have the ratio {all}",
        "learning_curves.longer_*",
        "none needed, because one pass of the rule is the comparison",
        stands="fails",
    ),
    Message(
        "On interleaved tokens two trained layers with gates do not reach the closed curve of "
        "bound ones: {1} times its risk; of DeltaNet it is open ({0})",
        "learning_curves.reads_delta learning_curves.reads_gated_delta",
        "linear attention, whose state has no order, has {all}, the risk of predicting 0, as its "
        "control asks; so have nearly all mesa stacks, whose row fails",
        "learning_curves.no_order",
        stands="undecided fails",
    ),
)

MESSAGES = {
    "one_layer": ONE_LAYER,
    "descent": DESCENT,
    "flow": FLOW,
    "clipping": CLIPPING,
    "matching": MATCHING,
    "heads": HEADS,
    "recurrent": RECURRENT,
    "language": LANGUAGE,
}
